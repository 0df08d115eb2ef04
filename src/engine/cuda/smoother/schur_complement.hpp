#pragma once
/// \file
/// Kernels of device_inverses.cpp.

#include "engine/cuda/dense.hpp"
#include "engine/cuda/smoother/inverse_form.hpp"

namespace solenoid::cuda {

/// One block of the Schur complement of a kind of patches (level/patch_solver.hpp), on the device.
struct SchurComplement {
  int dim;
  int modes;
  int start[3];
  int length[3];
  int functions[3];                 ///< columns of C
  const double* divergence[3];      ///< C, row-major
  const double* inverse_lambda[3];  ///< PatchSolver::inverse_lambda
  const double* null;               ///< PatchSolver::constant_in, or nullptr
  double* shift;                    ///< of this block: what was added times null null^T, written by assemble_schur
  std::int64_t place;               ///< of its inverse among the tables
};

/// matrix = sum_c C diag(1 / lambda_c) C^T + shift null null^T of each of `number` blocks, the lower triangle. `most`:
/// unknowns of the largest.
void assemble_schur(const SchurComplement* blocks, const Exchanged* matrices, int number, int most, Stream stream);

/// The pseudo-inverses, where matrices were exchanged for -S^-1, to their places.
template <class T>
void write_inverses(const SchurComplement* blocks, const Exchanged* matrices, int number, int most, InverseForm form,
                    T* tables, Stream stream);

}  // namespace solenoid::cuda
