#include "solver/load.hpp"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "base/parallel.hpp"
#include "solenoid/error.hpp"
#include "univariate/basis.hpp"

namespace solenoid {
namespace {

using Record = Grid::Record;

/// Row-major rows x columns: test functions x quadrature points.
struct Table {
  int rows = 0;
  int columns = 0;
  std::vector<double> values;
};

/// Integrals of a function given at tensor quadrature points against tensor-product test functions.
class CellIntegrals {
 public:
  CellIntegrals(const Problem& problem, const Level& level)
      : problem_(problem),
        level_(level),
        grid_(level.grid),
        dim_(level.equation.dim),
        n_(level.equation.n()),
        block_(power(n_, dim_)),
        columns_(power(n_, dim_ - 1)),
        rule_(gauss(n_ + 1)) {
    const int count = static_cast<int>(rule_.points.size());
    for (int a = 0; a < dim_; ++a) {
      const double h = grid_.size()[a];
      legendre_[a] = {n_, count, std::vector<double>(static_cast<std::size_t>(n_) * count)};
      continuous_[a] = {n_ + 1, count, std::vector<double>(static_cast<std::size_t>(n_ + 1) * count)};
      for (int q = 0; q < count; ++q) {
        const auto psi = legendre(n_ - 1, rule_.points[q]);
        const auto b = continuous(n_ - 1, rule_.points[q]);
        const double weight = rule_.weights[q] * std::sqrt(h);  // weight h, function / sqrt(h)
        for (int i = 0; i < n_; ++i) legendre_[a].values[i * count + q] = weight * psi[i];
        for (int i = 0; i <= n_; ++i) continuous_[a].values[i * count + q] = weight * b[i];
      }
    }
  }

  /// All integrals of one cell: its record; what belongs to its upper hats is added to `upper` (dim blocks of
  /// n^(dim-1)).
  const std::vector<double>& of_cell(Record cell, double* upper) {
    record_.assign(level_.equation.record(), 0.0);
    if (!is_zero(problem_.force)) {
      make_points(cell, -1, 0);
      for (int c = 0; c < dim_; ++c) {
        if (problem_.force[c].is_zero()) continue;
        evaluate(problem_.force[c]);
        std::array<const Table*, 3> tables = tangential_tables(c);
        tables[c] = &continuous_[c];
        add(c, tables, record_.data(), upper);
      }
    }
    for (int side = 0; side < 2 * dim_; ++side) {
      const Face face = grid_.face(cell, side);
      if (face == Face::velocity || face == Face::outflow) add_face(cell, side, face, record_.data(), upper);
    }
    return record_;
  }

  /// L2 projection of the normal component of the side's velocity: the n^(dim-1) hat coefficients on a face.
  std::vector<double> normal_coefficients(Record cell, int side) {
    const int a = side / 2;
    const ScalarField& g = data_of(cell, side)[a];
    std::vector<double> record(level_.equation.record(), 0.0);
    std::vector<double> upper(dim_ * columns_, 0.0);
    if (!g.is_zero()) {
      make_points(cell, a, side % 2);
      evaluate(g);
      // The trace of a hat is coefficient / sqrt(h): invert that.
      const Table hat{1, 1, {std::sqrt(grid_.size()[a])}};
      std::array<const Table*, 3> tables = tangential_tables(a);
      tables[a] = &hat;
      add(a, tables, record.data(), upper.data());
    }
    return {record.begin() + a * block_, record.begin() + a * block_ + columns_};
  }

 private:
  [[nodiscard]] const VectorField& data_of(Record cell, int side) const {
    const int a = side / 2;
    const int at = grid_.position(cell)[a];
    const bool on_side = at == (side % 2 == 0 ? 0 : grid_.extent()[a] - 1);
    return (on_side ? problem_.boundary.sides[side] : problem_.boundary.holes).data;
  }

  [[nodiscard]] std::array<const Table*, 3> tangential_tables(int c) const {
    std::array<const Table*, 3> tables{};
    for (int a = 0; a < dim_; ++a) {
      if (a != c) tables[a] = &legendre_[a];
    }
    return tables;
  }

  void add_face(Record cell, int side, Face face, double* record, double* upper) {
    const int a = side / 2;
    const bool upper_side = side % 2 == 1;
    const VectorField& data = data_of(cell, side);
    if (is_zero(data)) return;
    make_points(cell, a, upper_side ? 1 : 0);
    const double h = grid_.size()[a];
    const double x = upper_side ? 1.0 : 0.0;
    const auto psi = legendre(n_ - 1, x);
    const auto slope = legendre(n_ - 1, x, 1);
    for (int c = 0; c < dim_; ++c) {
      if (data[c].is_zero() || (c == a && face == Face::velocity)) continue;
      evaluate(data[c]);
      Table trace;
      if (c == a) {  // the hat of this face
        trace = {upper_side ? n_ + 1 : 1, 1, std::vector<double>(upper_side ? n_ + 1 : 1, 0.0)};
        trace.values.back() = 1.0 / std::sqrt(h);
      } else {
        trace = {n_, 1, std::vector<double>(n_)};
        for (int i = 0; i < n_; ++i) {
          const double value = psi[i] / std::sqrt(h);
          const double normal_slope = (upper_side ? 1.0 : -1.0) * slope[i] / (h * std::sqrt(h));
          trace.values[i] = face == Face::outflow
                                ? value
                                : problem_.viscosity * (2.0 * level_.equation.penalty(h) * value - normal_slope);
        }
      }
      std::array<const Table*, 3> tables = tangential_tables(c);
      tables[a] = &trace;
      if (c != a) tables[c] = &continuous_[c];
      add(c, tables, record, upper);
    }
  }

  /// Tensor quadrature points of the cell, or of its face `upper` in direction `normal`.
  void make_points(Record cell, int normal, int upper) {
    const Point corner = grid_.corner(cell);
    std::array<int, 3> count{1, 1, 1};
    for (int a = 0; a < dim_; ++a) count[a] = a == normal ? 1 : static_cast<int>(rule_.points.size());
    points_.clear();
    for (int k = 0; k < count[2]; ++k) {
      for (int j = 0; j < count[1]; ++j) {
        for (int i = 0; i < count[0]; ++i) {
          const std::array<int, 3> q{i, j, k};
          Point point{};
          for (int a = 0; a < dim_; ++a) {
            point[a] = corner[a] + grid_.size()[a] * (a == normal ? upper : rule_.points[q[a]]);
          }
          points_.push_back(point);
        }
      }
    }
  }

  void evaluate(const ScalarField& field) {
    values_.resize(points_.size());
    field.evaluate(points_, values_);
  }

  /// Contracts `values_` with one table per direction and adds the result to component c.
  void add(int c, const std::array<const Table*, 3>& tables, double* record, double* upper) {
    std::array<int, 3> size{1, 1, 1};
    for (int a = 0; a < dim_; ++a) size[a] = tables[a]->columns;
    in_ = values_;
    for (int a = 0; a < dim_; ++a) {
      const Table& table = *tables[a];
      const int inner = a == 0 ? 1 : a == 1 ? size[0] : size[0] * size[1];
      const int outer = static_cast<int>(in_.size()) / (inner * size[a]);
      out_.assign(static_cast<std::size_t>(inner) * table.rows * outer, 0.0);
      for (int o = 0; o < outer; ++o) {
        for (int i = 0; i < table.rows; ++i) {
          for (int q = 0; q < table.columns; ++q) {
            const double factor = table.values[i * table.columns + q];
            const double* from = &in_[(o * table.columns + q) * inner];
            double* to = &out_[(o * table.rows + i) * inner];
            for (int k = 0; k < inner; ++k) to[k] += factor * from[k];
          }
        }
      }
      size[a] = table.rows;
      in_.swap(out_);
    }
    const int order = level_.equation.order;
    std::size_t position = 0;
    for (int k = 0; k < size[2]; ++k) {
      for (int j = 0; j < size[1]; ++j) {
        for (int i = 0; i < size[0]; ++i) {
          const std::array<int, 3> index{i, j, k};
          int offset = 0;
          for (int a = 0; a < dim_; ++a) {
            if (a != c) offset += index[a] * velocity_stride(dim_, order, c, a);
          }
          if (index[c] == n_) {
            upper[c * columns_ + offset] += in_[position++];
          } else {
            record[c * block_ + index[c] * columns_ + offset] += in_[position++];
          }
        }
      }
    }
  }

  const Problem& problem_;
  const Level& level_;
  const Grid& grid_;
  int dim_;
  int n_;
  int block_;
  int columns_;
  Quadrature rule_;
  std::array<Table, 3> legendre_;
  std::array<Table, 3> continuous_;
  std::vector<Point> points_;
  std::vector<double> values_;
  std::vector<double> record_;
  std::vector<double> in_;
  std::vector<double> out_;
};

constexpr std::int64_t cells_per_task = 64;

/// Calls visit(integrals, cell) for every cell from several threads.
template <class Visit>
void for_cells(const Problem& problem, const Level& level, Visit visit) {
  const std::int64_t cells = level.grid.cells();
  parallel_for((cells + cells_per_task - 1) / cells_per_task, [&] {
    return [&, integrals = CellIntegrals(problem, level)](std::int64_t task) mutable {
      const std::int64_t end = std::min(cells, (task + 1) * cells_per_task);
      for (std::int64_t cell = task * cells_per_task; cell < end; ++cell) visit(integrals, static_cast<Record>(cell));
    };
  });
}

}  // namespace

std::vector<double> assemble_load(const Problem& problem, const Level& level) {
  const Grid& grid = level.grid;
  const int dim = level.equation.dim;
  const int record = level.equation.record();
  const int block = power(level.equation.n(), dim);
  const int columns = power(level.equation.n(), dim - 1);
  std::vector<double> load(level.size(), 0.0);
  // Shares of upper hats, kept apart so that every record has one writer.
  std::vector<double> upper(static_cast<std::size_t>(grid.cells()) * dim * columns, 0.0);
  for_cells(problem, level, [&](CellIntegrals& integrals, Record cell) {
    const std::vector<double>& own = integrals.of_cell(cell, &upper[static_cast<std::size_t>(cell) * dim * columns]);
    for (int i = 0; i < record; ++i) load[level.index(cell, i)] = own[i];
  });
  const auto complete = [&](Record r) {
    for (int c = 0; c < dim; ++c) {
      const Record below = grid.neighbour(r, 2 * c);
      const Face face = r < grid.cells() ? grid.face(r, 2 * c) : grid.hat_face(r);
      for (int i = 0; i < columns; ++i) {
        double& hat = load[level.index(r, c * block + i)];
        if (below < grid.cells()) hat += upper[(static_cast<std::size_t>(below) * dim + c) * columns + i];
        if (normal_fixed(face)) hat = 0.0;
      }
    }
  };
  for (Record r = 0; r < grid.records(); ++r) complete(r);
  return load;
}

std::vector<double> boundary_lift(const Problem& problem, const Level& lift) {
  const Grid& grid = lift.grid;
  const int dim = lift.equation.dim;
  const int block = power(lift.equation.n(), dim);
  std::vector<double> hats(lift.size(), 0.0);
  double net = 0.0;
  double total = 0.0;
  std::vector<std::pair<double, double>> flux(grid.cells(), {0.0, 0.0});
  for_cells(problem, lift, [&](CellIntegrals& integrals, Record cell) {
    for (int side = 0; side < 2 * dim; ++side) {
      if (grid.face(cell, side) != Face::velocity) continue;
      const int a = side / 2;
      const auto coefficients = integrals.normal_coefficients(cell, side);
      const Record owner = side % 2 == 0 ? cell : grid.neighbour(cell, side);
      for (std::size_t i = 0; i < coefficients.size(); ++i) {
        hats[lift.index(owner, a * block + static_cast<int>(i))] = coefficients[i];
      }
      // Mode 0 carries the flux: coefficient / sqrt(h_a) * sqrt(area).
      double area = 1.0;
      for (int t = 0; t < dim; ++t) area *= t == a ? 1.0 : grid.size()[t];
      const double outward = (side % 2 == 0 ? -1.0 : 1.0) * coefficients[0] * std::sqrt(area / grid.size()[a]);
      flux[cell].first += outward;
      flux[cell].second += std::abs(outward);
    }
  });
  for (const auto& [outward, magnitude] : flux) {
    net += outward;
    total += magnitude;
  }
  constexpr double tolerance = 1e-6;  // quadrature of smooth data is far more accurate
  if (!grid.has_face(Face::outflow) && std::abs(net) > tolerance * total) {
    throw InputError(fmt::format(
        "[boundary]: the prescribed velocities do not balance: the net flux out of the domain is {:.6e}, of {:.6e} "
        "through "
        "all sides. Without an outflow side it must be zero: correct the velocities or make one side outflow",
        net, total));
  }
  return hats;
}

bool has_boundary_velocity(const Problem& problem) {
  for (int side = 0; side < 2 * problem.mesh.dim; ++side) {
    const Side& s = problem.boundary.sides[side];
    if (s.kind == SideKind::velocity && !is_zero(s.data)) return true;
  }
  return problem.boundary.holes.kind == SideKind::velocity && !is_zero(problem.boundary.holes.data);
}

void copy_common(const Level& from, const std::vector<double>& source, const Level& to, std::vector<double>& target) {
  const int record = from.equation.record();
  const auto copy = [&](Record a, Record b) {
    for (int i = 0; i < record; ++i) target[to.index(b, i)] = source[from.index(a, i)];
  };
  for (Record cell = 0; cell < from.grid.cells(); ++cell) {
    copy(cell, cell);
    for (int a = 0; a < from.equation.dim; ++a) {
      const Record mine = from.grid.neighbour(cell, 2 * a + 1);
      const Record theirs = to.grid.neighbour(cell, 2 * a + 1);
      const bool both = mine >= from.grid.cells() && mine != from.grid.null() && theirs != to.grid.null();
      if (both) copy(mine, theirs);
    }
  }
}

std::vector<double> random_vector(const Level& level, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::vector<double> values(level.size(), 0.0);
  level.for_each_unknown([&](std::int64_t index) { values[index] = uniform(engine); });
  return values;
}

}  // namespace solenoid
