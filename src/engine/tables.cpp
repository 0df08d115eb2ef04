#include "engine/tables.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>

#include "base/parallel.hpp"
#include "element/matrices.hpp"
#include "level/small_solver.hpp"

namespace solenoid {

namespace {

/// `size` rounded up to where vector loads may begin.
std::size_t aligned(std::size_t size) {
  constexpr std::size_t numbers = 32;
  return (size + numbers - 1) / numbers * numbers;
}

/// The tables of one kind but for the inverse blocks, as they are made.
template <class T>
class KindTables {
 public:
  KindTables() = default;
  /// Writes to `data` what is no table.
  KindTables(const Equation& equation, const PatchKind& kind, const PatchSolver& solver, bool by_parity,
             PatchData<T>& data);

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  /// Copies the tables, and lets the data point there.
  void move_to(T* values) {
    std::copy(values_.begin(), values_.end(), values);
    for (const auto& [table, offset] : tables_) *table = values + offset;
    values_ = {};
  }

 private:
  void begin(const T*& table) {
    values_.resize(aligned(values_.size()));
    tables_.push_back({&table, values_.size()});
  }
  void append(const Matrix& a) {
    const std::size_t offset = values_.size();
    values_.resize(offset + a.size());
    Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(values_.data() + offset, a.rows(),
                                                                                  a.cols()) = a.cast<T>();
  }
  void keep(const T*& table, const Matrix& a) {
    begin(table);
    append(a);
  }
  void keep(const T*& table, const Matrix& a, const Matrix& b) {
    keep(table, a);
    append(b);
  }
  void keep(const T*& table, const std::vector<double>& a) {
    begin(table);
    std::transform(a.begin(), a.end(), std::back_inserter(values_), [](double value) { return static_cast<T>(value); });
  }

  struct Table {
    const T** at;
    std::size_t offset;
  };
  std::vector<T> values_;
  std::vector<Table> tables_;
};

template <class T>
KindTables<T>::KindTables(const Equation& equation, const PatchKind& kind, const PatchSolver& solver, bool by_parity,
                          PatchData<T>& data) {
  const int n = equation.n();
  for (int a = 0; a < equation.dim; ++a) {
    const PatchDirection& d = solver.direction(a);
    const int np = d.last - d.first + 1;
    data.first[a] = d.first;
    data.last[a] = d.last;
    for (int end = 0; end < 2; ++end) {
      data.hat[a][end] = kind[a].hat[end];
      data.cut[a][end] = kind[a].cut[end];
    }
    if (by_parity) {
      keep(data.eigen_o[a], d.eigen_o.block(0, 0, n, n), d.eigen_o.block(0, n, n, n));
    } else {
      keep(data.eigen_o[a], d.eigen_o);
    }
    keep(data.inverse_lambda[a], solver.inverse_lambda(a));
    if (equation.kind == EquationKind::poisson) continue;
    if (by_parity) {
      keep(data.eigen_p[a], d.eigen_p.block(0, 0, n, n), d.eigen_p.block(0, n, n - 1, n - 1));
      keep(data.divergence[a], d.divergence.block(n, 0, n, n), d.divergence.block(0, n, n, np - n));
    } else {
      keep(data.eigen_p[a], d.eigen_p);
      keep(data.divergence[a], d.divergence);
    }
  }
  for (const SchurBlock& block : solver.blocks()) {
    const int i = data.block_count++;
    std::copy(block.start.begin(), block.start.end(), data.block_start[i]);
    std::copy(block.length.begin(), block.length.end(), data.block_length[i]);
  }
  if (solver.constant().size() > 0) keep(data.constant, Matrix(solver.constant()));
  if (const SchurPreconditioner& p = solver.preconditioner(); !p.inverse.empty()) {
    for (int a = 0; a < equation.dim; ++a) {
      if (by_parity) {
        keep(data.pressure_modes[a], p.modes[a].topLeftCorner(n, n), p.modes[a].bottomRightCorner(n, n));
      } else {
        keep(data.pressure_modes[a], p.modes[a]);
      }
    }
    keep(data.preconditioner, p.inverse);
  }
  for (int i = 0; i < 2; ++i) data.schur_bounds[i] = static_cast<T>(solver.schur_bounds()[i]);
  if (solver.dense().size() > 0) keep(data.dense, solver.dense());
  data.dense_size = solver.dense().rows();
}

SchurKey key_of(const Level& level, const Coefficients& coefficients, int kind) {
  return {level.equation, coefficients, level.grid.metric().uniform_width(), level.patches.kinds[kind]};
}

}  // namespace

CellTopology topology_of(const Grid& grid) {
  const VectorLayout& layout = grid.layout();
  CellTopology topology{{}, {}, layout.cells().size(), layout.records().size(), layout.null()};
  for (int side = 0; side < 6; ++side) {
    topology.neighbour[side] = grid.neighbours(side);
    topology.face[side] = grid.faces(side);
  }
  return topology;
}

template <class T>
PatchTables<T>::PatchTables(const Level& level, const Coefficients& coefficients, const std::vector<int>& kinds,
                            LocalSolverKind local, bool by_parity, const std::function<std::size_t(int)>& room)
    : kinds_(kinds.size()) {
  const Equation& equation = level.equation;
  const auto made_where = room ? BlockInverses::elsewhere : BlockInverses::here;
  std::vector<KindTables<T>> made(kinds.size());
  std::vector<std::optional<PatchSolver>> solvers(kinds.size());  // with inverses to be copied or made
  for_each_local_solver(level, coefficients, kinds, local, made_where, [&](std::size_t i, const PatchSolver& solver) {
    const PatchKind& kind = level.patches.kinds[kinds[i]];
    made[i] = {equation, kind, solver, by_parity && splits_by_parity(kind, equation.dim), kinds_[i]};
    if (local == LocalSolverKind::direct) solvers[i] = solver;
  });

  std::vector<std::size_t> offsets;
  for (const KindTables<T>& tables : made) {
    offsets.push_back(made_);
    made_ += aligned(tables.size());
  }
  struct Inverse {
    const Matrix* matrix;
    std::size_t offset;
  };
  std::vector<Inverse> inverses;
  std::map<SchurKey, std::vector<std::size_t>> places;  // of blocks
  size_ = made_;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (!solvers[i] || solvers[i]->blocks().empty()) continue;
    auto& mine = places[key_of(level, coefficients, kinds[i])];
    if (!mine.empty()) continue;
    for (const SchurBlock& block : solvers[i]->blocks()) {
      mine.push_back(size_);
      if (!room) inverses.push_back({block.inverse.get(), size_});
      size_ += aligned(room ? room(block.size()) : block.inverse->size());
    }
    if (room) missing_.push_back({*solvers[i], mine});
  }
  if (!room) made_ = size_;

  values_ = std::make_unique_for_overwrite<T[]>(made_);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    made[i].move_to(values_.get() + offsets[i]);
    inverse_at_.push_back(solvers[i] ? places[key_of(level, coefficients, kinds[i])] : std::vector<std::size_t>());
  }
  const auto write = [&](std::int64_t i) {
    const auto& [matrix, offset] = inverses[i];  // symmetric: rows are columns
    std::transform(matrix->data(), matrix->data() + matrix->size(), values_.get() + offset,
                   [](double x) { return static_cast<T>(x); });
  };
  constexpr std::size_t worth_threads = 1 << 18;
  parallel_for(
      std::ssize(inverses), [&] { return write; }, made_ < worth_threads ? 1 : cores());
}

template <class T>
PatchData<T> PatchTables<T>::data(std::size_t i, const T* values) const {
  const auto move = [&](const T*& table) {
    if (table != nullptr) table = values + (table - values_.get());
  };
  PatchData<T> data = kinds_[i];
  for (int a = 0; a < 3; ++a) {
    move(data.eigen_o[a]);
    move(data.eigen_p[a]);
    move(data.divergence[a]);
    move(data.inverse_lambda[a]);
    move(data.pressure_modes[a]);
  }
  for (std::size_t block = 0; block < inverse_at_[i].size(); ++block) {
    data.block_inverse[block] = values + inverse_at_[i][block];
  }
  move(data.constant);
  move(data.preconditioner);
  move(data.dense);
  return data;
}

template <class T>
CellData<T> make_cell_data(const Level& level) {
  const Equation& equation = level.equation;
  const CellMatrices matrices(equation.order, equation.relative_penalty, equation.lumped);
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
  // Kernels have B = inverse_h times numbers, and nu inverse_h^2.
  for (int a = 0; a < equation.dim; ++a) data.inverse_h[a] = static_cast<T>(level.coefficients.coupling / h[a]);
  data.viscosity =
      static_cast<T>(level.coefficients.viscosity / level.coefficients.coupling / level.coefficients.coupling);
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

std::vector<std::vector<SmallPlace>> small_places(const Level& level) {
  std::vector<std::vector<SmallPlace>> places;
  for (const SmallShape& shape : level.small_patches.shapes) {
    auto& of_shape = places.emplace_back();
    for (const auto& [record, value] : small_unknowns(level.equation, shape)) {
      of_shape.push_back({record, interleave * value});
    }
  }
  return places;
}

template <class T>
std::vector<std::vector<T>> small_inverses(const Level& level) {
  const auto& shapes = level.small_patches.shapes;
  if (shapes.empty()) return {};
  const Point h = level.grid.metric().uniform_width();
  std::vector<std::vector<T>> inverses(shapes.size());
  const auto invert = [&](std::int64_t i) {
    const Matrix inverse = small_inverse(level.equation, level.coefficients, h, shapes[i]);
    inverses[i].assign(inverse.data(), inverse.data() + inverse.size());
  };
  parallel_for(std::ssize(shapes), [&] { return invert; });
  return inverses;
}
template std::vector<std::vector<float>> small_inverses<float>(const Level&);
template std::vector<std::vector<double>> small_inverses<double>(const Level&);

std::array<double, 3> convection_scale(const Grid& grid) {
  const Point h = grid.metric().uniform_width();
  double volume = 1.0;
  for (int a = 0; a < grid.dim(); ++a) volume *= h[a];
  std::array<double, 3> scale{};
  for (int a = 0; a < grid.dim(); ++a) scale[a] = 1.0 / (h[a] * std::sqrt(volume));
  return scale;
}

Matrix3 convection_metric(const AffineMap& map) {
  Matrix3 result = map.metric();
  for (auto& row : result) {
    for (double& entry : row) entry /= map.jacobian() * map.jacobian();
  }
  return result;
}

void require_tables_of_smoothers(bool complete) {
  if (complete) return;
  throw std::logic_error("tables of coefficients were made before a smoother was prepared: make them after it");
}

Unset<Record> children_of(const Level& fine, const Level& coarse) {
  const int dim = fine.equation.dim;
  const int corners = 1 << dim;
  const std::int64_t cells = coarse.grid.layout().cells().size();
  Unset<Record> children(cells * corners);
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
        const Record child = exists ? fine.grid.at(position) : -1;
        children[static_cast<std::size_t>(cell) * corners + bits] = child < 0 ? fine.grid.layout().null() : child;
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
