#pragma once
/// \file
/// How inverse Schur blocks lie in the tables of a family of smoothers.

#include "engine/cuda/kernels/smoother/general.hpp"
#include "engine/cuda/kernels/smoother/parity.hpp"

namespace solenoid::cuda {

enum class InverseForm {
  padded_rows,  ///< rows of inverse_row_multiple numbers (general.hpp)
  operands,     ///< matrices or, if large, operands of tensor cores (SchurTiles)
};

struct InverseEntry {
  int row;
  int column;
};

/// Numbers of the inverse of a block of `size` unknowns.
constexpr int inverse_numbers(InverseForm form, int size) {
  if (form == InverseForm::padded_rows) {
    return size * ((size + inverse_row_multiple - 1) / inverse_row_multiple * inverse_row_multiple);
  }
  return size <= largest_plain_schur ? size * size : SchurTiles(size).numbers();
}

/// The entry at a place; outside the matrix there are zeros.
constexpr InverseEntry inverse_entry(InverseForm form, int size, int place) {
  if (form == InverseForm::operands && size > largest_plain_schur) {
    const int rows = SchurTiles(size).rows;
    const int tile = place / SchurTiles::tile;
    const int lane = place % SchurTiles::tile / 4;
    const int i = place % 4;
    return {tile % rows * 16 + lane / 4 + i % 2 * 8, tile / rows * 8 + lane % 4 + i / 2 * 4};
  }
  const int row_length = inverse_numbers(form, size) / size;
  return {place / row_length, place % row_length};
}

}  // namespace solenoid::cuda
