#pragma once
/// \file
/// Large host vectors.

#include <cstdint>

#include "base/unset.hpp"

namespace solenoid {

struct HostVector : Unset<double> {
  using Base = Unset<double>;
  using Base::Base;
};

/// `count` zeros, which all cores write.
HostVector zeros(std::int64_t count);

}  // namespace solenoid
