#include "engine/tables.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "base/parallel.hpp"
#include "element/matrices.hpp"

namespace solenoid {

template <class T>
PatchTables<T>::PatchTables(const Equation& equation, const PatchKind& kind, const PatchSolver& solver, bool by_parity,
                            int row_multiple) {
  const int n = equation.n();
  for (int a = 0; a < equation.dim; ++a) {
    const PatchDirection& d = solver.direction(a);
    const int np = d.last - d.first + 1;
    data_.first[a] = d.first;
    data_.last[a] = d.last;
    for (int end = 0; end < 2; ++end) {
      data_.hat[a][end] = kind[a].hat[end];
      data_.cut[a][end] = kind[a].cut[end];
    }
    eigen_o_[a] = by_parity ? keep(d.eigen_o.block(0, 0, n, n), d.eigen_o.block(0, n, n, n)) : keep(d.eigen_o);
    inverse_lambda_[a] = keep(solver.inverse_lambda(a));
    if (equation.kind == EquationKind::poisson) continue;
    if (by_parity) {
      eigen_p_[a] = keep(d.eigen_p.block(0, 0, n, n), d.eigen_p.block(0, n, n - 1, n - 1));
      divergence_[a] = keep(d.divergence.block(n, 0, n, n), d.divergence.block(0, n, n, np - n));
    } else {
      eigen_p_[a] = keep(d.eigen_p);
      divergence_[a] = keep(d.divergence);
    }
  }
  for (const SchurBlock& block : solver.blocks()) {
    const int i = data_.block_count++;
    std::copy(block.start.begin(), block.start.end(), data_.block_start[i]);
    std::copy(block.length.begin(), block.length.end(), data_.block_length[i]);
    const long size = block.inverse.cols();
    Matrix rows = Matrix::Zero(block.inverse.rows(), (size + row_multiple - 1) / row_multiple * row_multiple);
    rows.leftCols(size) = block.inverse;
    block_inverse_[i] = keep(rows);
  }
  if (solver.constant().size() > 0) constant_ = keep(Matrix(solver.constant()));
  if (const SchurPreconditioner& p = solver.preconditioner(); !p.inverse.empty()) {
    for (int a = 0; a < equation.dim; ++a) {
      pressure_modes_[a] =
          by_parity ? keep(p.modes[a].topLeftCorner(n, n), p.modes[a].bottomRightCorner(n, n)) : keep(p.modes[a]);
    }
    preconditioner_ = keep(p.inverse);
  }
  for (int i = 0; i < 2; ++i) data_.schur_bounds[i] = static_cast<T>(solver.schur_bounds()[i]);
  if (solver.dense().size() > 0) dense_ = keep(solver.dense());
  data_.dense_size = solver.dense().rows();
}

template <class T>
PatchData<T> PatchTables<T>::data(const T* values) const {
  const auto at = [values](std::int64_t offset) { return offset == none ? nullptr : values + offset; };
  PatchData<T> data = data_;
  for (int a = 0; a < 3; ++a) {
    data.eigen_o[a] = at(eigen_o_[a]);
    data.eigen_p[a] = at(eigen_p_[a]);
    data.divergence[a] = at(divergence_[a]);
    data.inverse_lambda[a] = at(inverse_lambda_[a]);
    data.pressure_modes[a] = at(pressure_modes_[a]);
  }
  for (int i = 0; i < data.block_count; ++i) data.block_inverse[i] = at(block_inverse_[i]);
  data.constant = at(constant_);
  data.preconditioner = at(preconditioner_);
  data.dense = at(dense_);
  return data;
}

/// Every table begins where vector loads may.
template <class T>
void PatchTables<T>::align() {
  constexpr std::size_t numbers = 32;
  values_.resize((values_.size() + numbers - 1) / numbers * numbers);
}

template <class T>
std::int64_t PatchTables<T>::keep(const Matrix& a, const Matrix& b) {
  align();
  const auto offset = static_cast<std::int64_t>(values_.size());
  for (const Matrix* m : {&a, &b}) {
    for (long i = 0; i < m->rows(); ++i) {
      for (long j = 0; j < m->cols(); ++j) values_.push_back(static_cast<T>((*m)(i, j)));
    }
  }
  return offset;
}

template <class T>
std::int64_t PatchTables<T>::keep(const std::vector<double>& a) {
  align();
  const auto offset = static_cast<std::int64_t>(values_.size());
  std::transform(a.begin(), a.end(), std::back_inserter(values_), [](double value) { return static_cast<T>(value); });
  return offset;
}

template <class T>
CellData<T> make_cell_data(const Level& level) {
  const Equation& equation = level.equation;
  const CellMatrices matrices(equation.order, equation.relative_penalty);
  const int n = equation.n();
  CellData<T> data{};
  for (int i = 0; i <= n; ++i) {
    for (int j = 0; j <= n; ++j) {
      data.mass[i][j] = static_cast<T>(matrices.mass(i, j));
      for (int child = 0; child < 2; ++child) data.embed_p[child][i][j] = static_cast<T>(matrices.embed_p[child](i, j));
    }
  }
  for (int i = 0; i < n; ++i) {
    data.value[i] = static_cast<T>(matrices.value[i]);
    data.slope[i] = static_cast<T>(matrices.slope[i]);
    for (int j = 0; j < n; ++j) {
      for (int child = 0; child < 2; ++child) data.embed_o[child][i][j] = static_cast<T>(matrices.embed_o[child](i, j));
    }
  }
  data.penalty = static_cast<T>(matrices.penalty);
  const Point h = level.grid.metric().uniform_width();
  for (int a = 0; a < equation.dim; ++a) data.inverse_h[a] = static_cast<T>(1.0 / h[a]);
  data.viscosity = static_cast<T>(level.coefficients.viscosity);
  data.alpha = static_cast<T>(level.coefficients.reaction);
  const auto factor = [&](int t) { return level.coefficients.viscosity / (h[t] * h[t]); };
  for (int j = 0; j < n; ++j) {
    const double v = matrices.value[j];
    const double d = matrices.slope[j];
    for (int i = j % 2; i < n; i += 2) {  // both faces: E doubles for equal parities and cancels for others
      const double face =
          matrices.penalty * v * matrices.value[i] - 0.5 * (d * matrices.value[i] + v * matrices.slope[i]);
      const double sum = matrices.volume(j, i) + 2.0 * face;
      data.interior[j][i] = static_cast<T>(sum);
      for (int t = 0; t < equation.dim; ++t) data.own[t][j][i] = static_cast<T>(factor(t) * sum);
    }
    // Test function j on the lower face of the cell, (-1)^j v and -(-1)^j d, against trial i on the upper face of the
    // cell below.
    const double sign = j % 2 == 1 ? -1.0 : 1.0;
    for (int i = 0; i < n; ++i) {
      const double form =
          0.5 * (v * matrices.slope[i] + d * matrices.value[i]) - matrices.penalty * v * matrices.value[i];
      for (int t = 0; t < equation.dim; ++t) data.below[t][j][i] = static_cast<T>(factor(t) * sign * form);
    }
  }
  return data;
}

void require_tables_of_smoothers(bool complete) {
  if (complete) return;
  throw std::logic_error("tables of coefficients were made before a smoother was prepared: make them after it");
}

std::vector<Record> children_of(const Level& fine, const Level& coarse) {
  const int dim = fine.equation.dim;
  const int corners = 1 << dim;
  const std::int64_t cells = coarse.grid.layout().cells().size();
  std::vector<Record> children(cells * corners, fine.grid.layout().null());
  parallel_ranges({cells}, [&](CellRange range, std::int64_t) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      for (int bits = 0; bits < corners; ++bits) {
        std::array<int, 3> position = coarse.grid.position(cell);
        bool exists = true;
        for (int a = 0; a < dim; ++a) {
          const int bit = bits >> a & 1;
          exists = exists && bit < fine.coarsening.children(a, position[a]);
          position[a] = fine.coarsening.first_child(a, position[a]) + bit;
        }
        if (exists) children[static_cast<std::size_t>(cell) * corners + bits] = fine.grid.at(position);
      }
    }
  });
  return children;
}

template class PatchTables<float>;
template class PatchTables<double>;
template CellData<float> make_cell_data<float>(const Level&);
template CellData<double> make_cell_data<double>(const Level&);

}  // namespace solenoid
