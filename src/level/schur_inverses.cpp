#include "level/schur_inverses.hpp"

#include <utility>

namespace solenoid {

SchurKey::SchurKey(const Equation& equation, const Coefficients& coefficients, const Point& h, const PatchKind& patch)
    : dim(equation.dim),
      order(equation.order),
      relative_penalty(equation.relative_penalty),
      viscosity(coefficients.viscosity),
      reaction(coefficients.reaction),
      weights(equation.weights),
      cell{},
      kind{} {
  for (int a = 0; a < dim; ++a) {
    cell[a] = reaction == 0.0 ? h[a] / h[0] : h[a];
    kind[a] = patch[a].problem_or_image();
  }
}

SchurInverses::Keep::Keep(SchurInverses& inverses) : inverses_(inverses) {
  const std::lock_guard lock(inverses_.guard_);
  ++inverses_.keepers_;
}

SchurInverses::Keep::~Keep() {
  const std::lock_guard lock(inverses_.guard_);
  if (--inverses_.keepers_ == 0) inverses_.blocks_.clear();
}

SchurInverses::Blocks SchurInverses::find(const SchurKey& key) const {
  const std::lock_guard lock(guard_);
  const auto found = blocks_.find(key);
  return found == blocks_.end() ? Blocks{} : found->second;
}

void SchurInverses::add(const SchurKey& key, Blocks blocks) {
  const std::lock_guard lock(guard_);
  if (keepers_ > 0) blocks_.emplace(key, std::move(blocks));
}

}  // namespace solenoid
