#pragma once
/// \file
/// Which records there are on a level, and what vectors have room for.

#include <cstdint>

#include "mesh/record.hpp"

namespace solenoid {

/// Number of a record (mesh/record.hpp): of a cell, or of a hat-only record that carries the normal unknowns of an
/// upper boundary face.
using Record = std::int32_t;

/// Records of consecutive numbers.
class RecordRange {
 public:
  class Iterator {
   public:
    explicit Iterator(Record record) : record_(record) {}
    Record operator*() const { return record_; }
    Iterator& operator++() {
      ++record_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return record_ != other.record_; }

   private:
    Record record_;
  };

  RecordRange(Record first, Record last) : first_(first), last_(last) {}
  [[nodiscard]] Iterator begin() const { return Iterator(first_); }
  [[nodiscard]] Iterator end() const { return Iterator(last_); }
  [[nodiscard]] Record first() const { return first_; }
  [[nodiscard]] Record last() const { return last_; }  ///< one behind the range
  [[nodiscard]] Record size() const { return last_ - first_; }
  [[nodiscard]] bool empty() const { return first_ == last_; }
  [[nodiscard]] bool contains(Record record) const { return first_ <= record && record < last_; }

 private:
  Record first_;
  Record last_;
};

struct RecordCount {
  Record cells = 0;
  Record hats = 0;  ///< hat-only records
};

/// Records in the order of a vector: cells that are owned, ghost cells, those next to owned ones first, hat-only
/// records that are owned, ghosts among them, and in a block of its own the null record, which is always zero and
/// stands for "nothing there". Ghosts are copies of what another rank owns: neighbours read them, but sums, unknowns
/// and results are those of owned records.
class VectorLayout {
 public:
  VectorLayout() = default;
  /// `near_ghosts`: cells among the ghosts that touch owned ones.
  explicit VectorLayout(RecordCount owned, RecordCount ghosts = {}, Record near_ghosts = 0)
      : owned_(owned), ghosts_(ghosts), near_ghosts_(near_ghosts) {}

  [[nodiscard]] RecordRange owned_cells() const { return {0, owned_.cells}; }
  [[nodiscard]] RecordRange cells() const { return {0, owned_.cells + ghosts_.cells}; }
  /// Owned cells and those next to them, in whose rows the operator is applied: coarser levels need some.
  [[nodiscard]] RecordRange near_cells() const { return {0, owned_.cells + near_ghosts_}; }
  [[nodiscard]] RecordRange owned_hats() const { return {cells().last(), cells().last() + owned_.hats}; }
  [[nodiscard]] RecordRange hats() const { return {cells().last(), owned_hats().last() + ghosts_.hats}; }
  /// Cells and hat-only records.
  [[nodiscard]] RecordRange records() const { return {0, hats().last()}; }
  [[nodiscard]] bool has_ghosts() const { return ghosts_.cells > 0; }

  [[nodiscard]] bool is_cell(Record record) const { return cells().contains(record); }
  [[nodiscard]] bool is_hat(Record record) const { return hats().contains(record); }
  [[nodiscard]] bool is_owned(Record record) const {
    return owned_cells().contains(record) || owned_hats().contains(record);
  }

  [[nodiscard]] Record null() const { return static_cast<Record>(whole_blocks(records().last())); }
  /// Records that a vector has room for: whole blocks up to that of the null record.
  [[nodiscard]] Record storage() const { return null() + interleave; }

 private:
  RecordCount owned_;
  RecordCount ghosts_;
  Record near_ghosts_ = 0;
};

}  // namespace solenoid
