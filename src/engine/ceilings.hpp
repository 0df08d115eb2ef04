#pragma once
/// \file
/// What engines say about the machine and their kernels, for studies.

#include <cstdint>
#include <string>

namespace solenoid {

/// What a machine can do at most, per second and measured; 0: not measured.
struct Ceilings {
  double memory = 0.0;      ///< bytes read and written by a copy of arrays that no cache holds
  double cache = 0.0;       ///< bytes read from the last-level cache
  double shared = 0.0;      ///< bytes read from the memory that threads of a block share
  double fma_float = 0.0;   ///< floating-point operations, two in a fused multiply-add
  double fma_double = 0.0;  ///< the same in double precision
};

/// A kernel that some work started.
struct KernelUse {
  std::string name;
  std::int64_t launches = 0;      ///< on the finest level
  double seconds = 0.0;           ///< of such a launch, the median
  double all_seconds = 0.0;       ///< of all launches together, on all levels
  int threads = 0;                ///< of a block
  int registers = 0;              ///< of a thread
  std::int64_t local_bytes = 0;   ///< of a thread, for what registers do not hold
  std::int64_t shared_bytes = 0;  ///< of a block
  double occupancy = 0.0;         ///< threads on a multiprocessor, over the most it could have
};

}  // namespace solenoid
