#include "solver/lift_operator.hpp"

#include <iterator>

namespace solenoid {

LiftOperator::LiftOperator(Engine& engine, const Level& all, const Level& some, LocalSolverKind local)
    : engine_(engine), kernels_(make_kernels<double>(engine, all, local)), hats_(engine, all, some) {
  kernels_->take_points();
}

void LiftOperator::apply(const SparseVector& velocities, double* work, double* image) {
  kernels_->zero(work);
  kernels_->scatter(std::ssize(velocities.places), on_device(engine_, velocities.places).data(),
                    on_device(engine_, velocities.values).data(), work);
  kernels_->apply(work, image);
  hats_.to_some(*kernels_, image);
}

}  // namespace solenoid
