#include "studies/paper_kernels/cube.hpp"

#include <cmath>

#include "element/matrices.hpp"
#include "level/patch_solver.hpp"

namespace solenoid::paper {
namespace {

constexpr bool lower_wall(int line_kind) { return (line_kind & 1) != 0; }
constexpr bool upper_wall(int line_kind) { return (line_kind & 2) != 0; }

template <class Wanted>
PatchList list_patches(const Cube& cube, Wanted wanted) {
  PatchList list;
  const auto& extent = cube.extent;
  for (int z = 0; z + 1 < extent[2]; ++z) {
    for (int y = 0; y + 1 < extent[1]; ++y) {
      for (int x = 0; x + 1 < extent[0]; ++x) {
        const std::array<int, 3> position{x, y, z};
        if (!wanted(position)) continue;
        int kind = 0;
        for (int d = 0; d < 3; ++d) {
          kind |= (position[d] == 0 ? 1 : 0) << 2 * d | (position[d] + 2 == extent[d] ? 2 : 0) << 2 * d;
        }
        list.kind.push_back(static_cast<std::uint8_t>(kind));
        for (int bits = 0; bits < 8; ++bits) {
          list.cells.push_back(cube.cell({x + (bits & 1), y + (bits >> 1 & 1), z + (bits >> 2)}));
        }
      }
    }
  }
  return list;
}

/// Row-major, as a block of a `rows` x `columns` matrix.
void append(std::vector<double>& values, const Matrix& matrix, int rows, int columns) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) values.push_back(i < matrix.rows() && j < matrix.cols() ? matrix(i, j) : 0.0);
  }
}

}  // namespace

Cube::Cube(int order_, std::array<int, 3> extent_) : order(order_), extent(extent_) {
  const int n = order + 1;
  const int columns = n * n;
  const std::int64_t cells = std::int64_t{extent[0]} * extent[1] * extent[2];
  first.resize(cells * entities);
  std::int64_t next = 0;
  std::int64_t on_walls = 0;
  const auto number = [&](std::int32_t cell, int entity, int count) {
    first[std::int64_t{cell} * entities + entity] = static_cast<std::int32_t>(next);
    next += count;
  };
  std::array<int, 3> position{};
  for (position[2] = 0; position[2] < extent[2]; ++position[2]) {
    for (position[1] = 0; position[1] < extent[1]; ++position[1]) {
      for (position[0] = 0; position[0] < extent[0]; ++position[0]) {
        const std::int32_t here = cell(position);
        for (int c = 0; c < 3; ++c) {
          if (position[c] == 0) {
            number(here, 2 * c + lower_face, columns);
            on_walls += columns;
          } else {
            auto below = position;
            --below[c];
            first[std::int64_t{here} * entities + 2 * c + lower_face] =
                first[std::int64_t{cell(below)} * entities + 2 * c + upper_face];
          }
          number(here, 2 * c + upper_face, columns);
          if (position[c] + 1 == extent[c]) on_walls += columns;
        }
        number(here, interior, 3 * order * columns);
      }
    }
  }
  for (std::int64_t i = 0; i < cells; ++i) number(static_cast<std::int32_t>(i), pressure, n * columns);
  size = next;
  unknowns = next - on_walls;
}

PatchList all_patches(const Cube& cube) {
  return list_patches(cube, [](const auto&) { return true; });
}

PatchList patches_of_colour(const Cube& cube, int colour) {
  return list_patches(cube, [&](const std::array<int, 3>& position) {
    return position[0] % 2 + 2 * (position[1] % 2) + 4 * (position[2] % 2) == colour;
  });
}

int patch_unknowns(int order) {
  const int modes = 2 * (order + 1);
  return (3 * (modes - 1) + modes) * modes * modes;
}

SeparatePatches::SeparatePatches(int order, int kind) {
  const Cube alone(order, {2, 2, 2});
  const int count = patch_unknowns(order);
  size = alone.size * count;
  for (int i = 0; i < count; ++i) {
    for (const std::int32_t place : alone.first) first.push_back(static_cast<std::int32_t>(place + alone.size * i));
    for (int cell = 0; cell < 8; ++cell) patches.cells.push_back(8 * i + cell);
    patches.kind.push_back(static_cast<std::uint8_t>(kind));
  }
}

std::vector<double> operator_matrices(int order, double h, bool padded) {
  const int n = order + 1;
  const int modes = 2 * n;
  const int rows = modes + 1;
  const int size = padded ? rows : modes;
  const CellMatrices cell(order);
  const PatchMatrices patch(cell);
  std::vector<double> values;
  for (int kind = 0; kind < line_kinds; ++kind) {
    // The lower cell, the face in the middle, and what lies at walls. The upper cell only before a wall.
    Matrix mass_o = Matrix::Identity(modes, modes);
    Matrix laplace_o = patch.laplace_o(lower_wall(kind) ? 2 : 0, upper_wall(kind) ? 2 : 0);
    Matrix mass_p = patch.mass_p;
    Matrix laplace_p = patch.stiffness_p;
    Matrix divergence = patch.divergence;
    if (!upper_wall(kind)) {
      mass_o.bottomRightCorner(n, n).setZero();
      laplace_o.bottomRightCorner(n, n) -= cell.volume;
      mass_p.bottomRightCorner(n + 1, n + 1) -= cell.mass;
      laplace_p.bottomRightCorner(n + 1, n + 1) -= cell.stiffness;
      divergence.bottomRightCorner(n, n + 1).setZero();
    }
    for (const int end : {0, modes}) {  // the normal velocity is zero on walls
      if (!(end == 0 ? lower_wall(kind) : upper_wall(kind))) continue;
      for (Matrix* const matrix : {&mass_p, &laplace_p}) {
        matrix->row(end).setZero();
        matrix->col(end).setZero();
      }
      divergence.col(end).setZero();
    }
    append(values, mass_o, size, size);
    append(values, laplace_o / (h * h), size, size);
    append(values, mass_p, rows, rows);
    append(values, laplace_p / (h * h), rows, rows);
    append(values, divergence / h, size, rows);
  }
  return values;
}

std::vector<double> solver_matrices(int order, double h) {
  const int n = order + 1;
  const int modes = 2 * n;
  const int rows = modes - 1;
  const CellMatrices cell(order);
  const PatchMatrices patch(cell);
  Matrix constant = Matrix::Zero(1, modes);
  constant(0, 0) = constant(0, n) = std::sqrt(0.5);
  std::vector<double> values;
  for (int kind = 0; kind < line_kinds; ++kind) {
    PatchEnds ends;
    ends.weight = ends.face = {lower_wall(kind) ? 2 : 1, upper_wall(kind) ? 2 : 1};
    const PatchSolver solver({.dim = 3, .order = order}, Coefficients{}, {h, h, h}, {ends, ends, ends},
                             LocalSolverKind::cg);
    const PatchDirection& line = solver.direction(0);
    append(values, line.eigen_o, modes, modes);
    append(values, line.eigen_o.transpose(), modes, modes);
    append(values, Matrix::Identity(modes, modes), modes, modes);
    append(values, line.eigen_p, rows, rows);
    append(values, patch.divergence.middleCols(1, rows) / h, modes, rows);
    append(values, line.lambda_o.transpose(), 1, modes);
    append(values, line.lambda_p.transpose(), 1, rows);
    append(values, constant, 1, modes);
  }
  return values;
}

}  // namespace solenoid::paper
