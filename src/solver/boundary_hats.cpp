#include "solver/boundary_hats.hpp"

#include <algorithm>
#include <array>

namespace solenoid {

BoundaryHats::BoundaryHats(Engine& engine, const Level& all, const Level& some) {
  const SharedHats shared = shared_hats(all, some);
  shared_in_all_ = on_device(engine, shared.all);
  shared_in_some_ = on_device(engine, shared.some);
  boundary_ = on_device(engine, boundary_hats(all));
  hat_only_ = on_device(engine, hat_only(some));
  zeros_ = Vector<double>(engine, std::max(boundary_.size(), hat_only_.size()));
  moved_ = Vector<double>(engine, shared_in_all_.size());
  std::array<std::int64_t, 1> count{boundary_.size() + hat_only_.size()};
  all.grid.add_up<std::int64_t>(count);
  are_same_ = count[0] == 0;
}

void BoundaryHats::to_some(Kernels<double>& kernels, double* x) {
  if (are_same_) return;
  kernels.gather(moved_.size(), shared_in_all_.data(), x, moved_.data());
  kernels.scatter(boundary_.size(), boundary_.data(), zeros_.data(), x);
  kernels.scatter(moved_.size(), shared_in_some_.data(), moved_.data(), x);
}

void BoundaryHats::to_all(Kernels<double>& kernels, double* x) {
  if (are_same_) return;
  kernels.gather(moved_.size(), shared_in_some_.data(), x, moved_.data());
  kernels.scatter(hat_only_.size(), hat_only_.data(), zeros_.data(), x);
  kernels.scatter(moved_.size(), shared_in_all_.data(), moved_.data(), x);
}

}  // namespace solenoid
