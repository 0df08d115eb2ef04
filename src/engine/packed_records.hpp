#pragma once
/// \file
/// Parts of vectors as messages have them.

#include <cstdint>

namespace solenoid {

/// Some values of some records, as a message has them: value `first` + i of `records[j]` lies at `at` + i * `count` +
/// j.
struct PackedRecords {
  const std::int32_t* records = nullptr;  ///< in the engine's memory
  std::int64_t count = 0;
  int first = 0;
  int last = 0;  ///< one behind
  std::int64_t at = 0;
};

}  // namespace solenoid
