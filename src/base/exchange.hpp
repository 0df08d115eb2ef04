#pragma once
/// \file
/// Exchange of unknowns for their equations, which inverts symmetric matrices in place: n^3 operations for n unknowns.

#include <Eigen/Core>
#include <cstdint>

#include "base/threads.hpp"

namespace solenoid {

/// Exchanges unknowns [begin, end) for their equations: M x = b becomes M' x' = b' with these unknowns, negative, in b'
/// and their right-hand sides in x'. M and M' are symmetric; of both the lower triangle is used. After all unknowns
/// M' = -M^-1. The result does not depend on the number of threads; it is rounded as the instruction set of the machine
/// has it, with AVX-512, AVX2 or without. Above the diagonal anything may be left.
void exchange(Eigen::Ref<Eigen::MatrixXd> matrix, std::int64_t begin, std::int64_t end, int threads = cores());

/// Makes a matrix symmetric whose lower triangle is there.
void fill_upper(Eigen::Ref<Eigen::MatrixXd> matrix, int threads = cores());

}  // namespace solenoid
