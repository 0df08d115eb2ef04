#pragma once
/// \file
/// VTK's XML files with appended, compressed binary data.

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/new_file.hpp"
#include "base/parallel.hpp"
#include "base/threads.hpp"

namespace solenoid {

/// The head of a file. Version 2.2 says how the nodes of Lagrange cells are counted; 1.0 is what all readers know.
inline std::string vtk_head(std::string_view type, std::string_view version = "1.0") {
  return fmt::format(
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"{}\" version=\"{}\" byte_order=\"{}\" header_type=\"UInt64\" "
      "compressor=\"vtkZLibDataCompressor\">\n",
      type, version, std::endian::native == std::endian::little ? "LittleEndian" : "BigEndian");
}

/// Writes one XML file whose arrays follow in its binary appendix. What is known only later (where an array starts, how
/// long its compressed blocks are) is left blank and filled in afterwards, so arrays of any length pass in blocks.
class VtkWriter {
 public:
  /// Arrays have values for each of so many cells.
  VtkWriter(NewFile& file, std::int64_t cells) : out_(file.stream()), cells_(cells) {}

  void text(const std::string& xml) { out_ << xml; }

  /// The declaration of an array in the XML part, in the order of the arrays.
  void declare(const std::string& type, const std::string& name, int components) {
    out_ << "<DataArray type=\"" << type << "\" Name=\"" << name << "\"";
    if (components > 1) out_ << " NumberOfComponents=\"" << components << "\"";
    out_ << " format=\"appended\" offset=\"";
    offset_positions_.push_back(out_.tellp());
    // Blanks stand behind the attribute: not every reader takes them inside.
    out_ << "0\"" << std::string(offset_digits, ' ') << "/>\n";
  }

  void begin_appendix() {
    out_ << "<AppendedData encoding=\"raw\">\n_";
    appendix_ = out_.tellp();
  }

  /// The next array: `per_cell` values of type T for every cell, filled in by make_fill()(cell, values).
  template <class T, class MakeFill>
  void array(int per_cell, MakeFill make_fill) {
    const std::int64_t bytes_per_cell = std::int64_t{per_cell} * sizeof(T);
    const std::int64_t cells_per_block = std::max<std::int64_t>(1, block_bytes / bytes_per_cell);
    const std::int64_t blocks = (cells_ + cells_per_block - 1) / cells_per_block;
    patch_offset();

    // Header: number of blocks, bytes of a block, bytes of the last block if it is shorter (else 0), compressed sizes.
    std::vector<std::uint64_t> header(3 + blocks);
    header[0] = blocks;
    header[1] = cells_per_block * bytes_per_cell;
    header[2] = cells_ % cells_per_block * bytes_per_cell;
    const auto start = out_.tellp();
    write(header.data(), header.size() * sizeof(header[0]));

    const std::int64_t batch = std::int64_t{4} * cores();
    std::vector<std::vector<unsigned char>> compressed(batch);
    for (std::int64_t first = 0; first < blocks && out_; first += batch) {
      const std::int64_t count = std::min(batch, blocks - first);
      parallel_for(count, [&] {
        return [&, fill = make_fill(), values = std::vector<T>()](std::int64_t i) mutable {
          const std::int64_t begin = (first + i) * cells_per_block;
          const std::int64_t end = std::min(cells_, begin + cells_per_block);
          values.resize((end - begin) * per_cell);
          for (std::int64_t cell = begin; cell < end; ++cell) fill(cell, values.data() + (cell - begin) * per_cell);
          compressed[i] = deflate(std::as_bytes(std::span(values)));
        };
      });
      for (std::int64_t i = 0; i < count; ++i) {
        header[3 + first + i] = compressed[i].size();
        write(compressed[i].data(), compressed[i].size());
      }
    }
    const auto end = out_.tellp();
    out_.seekp(start);
    write(header.data(), header.size() * sizeof(header[0]));
    out_.seekp(end);
  }

 private:
  static constexpr int offset_digits = 20;
  static constexpr std::int64_t block_bytes = 1 << 18;

  static std::vector<unsigned char> deflate(std::span<const std::byte> bytes) {
    uLongf size = compressBound(bytes.size());
    std::vector<unsigned char> result(size);
    constexpr int fast = 1;  // level 6 takes three times as long for a few percent on floating-point data
    compress2(result.data(), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), fast);
    result.resize(size);
    return result;
  }

  void write(const void* data, std::size_t bytes) {
    out_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  }

  void patch_offset() {
    const auto here = out_.tellp();
    out_.seekp(offset_positions_[arrays_written_++]);
    out_ << here - appendix_ << '"';
    out_.seekp(here);
  }

  std::fstream& out_;
  std::int64_t cells_;
  std::streampos appendix_ = 0;
  std::vector<std::streampos> offset_positions_;
  std::size_t arrays_written_ = 0;
};

}  // namespace solenoid
