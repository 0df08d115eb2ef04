#include "solver/lift_operator.hpp"

namespace solenoid {

LiftOperator::LiftOperator(Engine& engine, const Level& all, const Level& some, LocalSolverKind local)
    : engine_(engine), kernels_(make_kernels<double>(engine, all, local)) {
  const SharedHats shared = shared_hats(all, some);
  shared_in_all_ = on_device(engine, shared.all);
  shared_in_some_ = on_device(engine, shared.some);
  boundary_ = on_device(engine, boundary_hats(all));
  zeros_ = Vector<double>(engine, boundary_.size());
  moved_ = Vector<double>(engine, shared_in_all_.size());
}

void LiftOperator::apply(const SparseVector& velocities, double* work, double* image) {
  const auto put = [&](const Vector<std::int64_t>& places, const Vector<double>& values, double* x) {
    kernels_->scatter(places.size(), places.data(), values.data(), x);
  };
  kernels_->zero(work);
  put(on_device(engine_, velocities.places), on_device(engine_, velocities.values), work);
  kernels_->apply(work, image);
  // From the grid that stores all boundary hats to the other.
  kernels_->gather(moved_.size(), shared_in_all_.data(), image, moved_.data());
  put(boundary_, zeros_, image);
  put(shared_in_some_, moved_, image);
}

}  // namespace solenoid
