#pragma once
/// \file
/// The local solver of small patches: the inverse of their matrix, the same for all patches of one shape on a level.
///
/// The matrix is [A -B^T; -B 0] on the unknowns of the patch, or A with Poisson's equation, by tensor products of the
/// univariate matrices. It is small: dense inverses cost less than what would make use of their structure.

#include <vector>

#include "element/matrices.hpp"
#include "level/coefficients.hpp"
#include "level/level.hpp"
#include "level/small_patches.hpp"

namespace solenoid {

/// Where an unknown of a small patch lies: in which of its records (SmallRecords), which value of that.
struct SmallUnknown {
  int record = 0;
  int value = 0;
};

/// The unknowns of small patches of a shape, velocities first.
std::vector<SmallUnknown> small_unknowns(const Equation& equation, const SmallShape& shape);

/// The inverse of their matrix, for cells with widths h; it maps the constant pressure to zero where that is in the
/// kernel, that is, but at outflow faces.
Matrix small_inverse(const Equation& equation, const Coefficients& coefficients, const Point& h,
                     const SmallShape& shape);

}  // namespace solenoid
