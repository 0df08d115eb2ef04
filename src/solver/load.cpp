#include "solver/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include "base/parallel.hpp"
#include "element/basis.hpp"
#include "problem/regions.hpp"
#include "problem/validate.hpp"

namespace solenoid {
namespace {

/// Row-major rows x columns: test functions x quadrature points.
struct Table {
  int rows = 0;
  int columns = 0;
  std::vector<double> values;
};

/// Some cells of one size, one row and one block of records, so that their quadrature points are a tensor grid and their
/// test functions the same.
struct Strip {
  Record first;  ///< cell of lane 0
  Point widths;
  int count = 0;
  std::array<int, interleave> lane{};  ///< of each cell: its number less `first`

  [[nodiscard]] Record cell(int i) const { return first + lane[i]; }
};

/// Integrals of functions given at tensor quadrature points against tensor-product test functions, for strips of cells
/// at a time. Arrays of a strip have the cell as the fastest index.
class StripIntegrals {
 public:
  /// By Gauss rules of so many points per direction.
  StripIntegrals(const Problem& problem, const Level& level, int points)
      : problem_(problem),
        level_(level),
        grid_(level.grid),
        dim_(level.equation.dim),
        has_velocity_(level.equation.velocities() > 0),
        components_(has_velocity_ ? dim_ : 1),
        n_(level.equation.n()),
        along_(grid_.numbering()[0]),
        block_(power(n_, dim_)),
        columns_(power(n_, dim_ - 1)),
        rule_(gauss(points)) {
    for (int side = 0; side < 2 * dim_; ++side) side_data_[side] = data_on(problem.boundary, side);
  }

  /// Adds all integrals of the cells of a block to their records and what belongs to their upper hats to `upper` (dim
  /// n^(dim-1) numbers a record), both interleaved.
  void of_block(CellRange cells, double* records, double* upper) {
    for_strips(cells, [&](const Strip& strip) {
      if (!is_zero(problem_.force)) {
        make_points(strip, -1, 0);
        for (int c = 0; c < components_; ++c) {
          if (problem_.force[c].is_zero()) continue;
          evaluate(problem_.force[c], strip.count);
          add(strip, c, tables_of(c), records, upper);
        }
      }
      for (const Face face : {Face::velocity, Face::outflow}) {
        for_faces(strip, face, [&](const Strip& faces, int side, const VectorField& data) {
          add_faces(faces, side, face, data, records, upper);
        });
      }
    });
  }

  /// Whether some face of a cell has boundary data that are not zero.
  bool has_boundary_data(CellRange cells) {
    bool any = false;
    const auto found = [&](const Strip&, int, const VectorField&) { any = true; };
    for_strips(cells, [&](const Strip& strip) {
      for (const Face face : {Face::velocity, Face::outflow}) for_faces(strip, face, found);
    });
    return any;
  }

  /// visit(cell, side, coefficients) for the faces of the cells where velocity is prescribed and not zero: the L2
  /// projection of its normal component, n^(dim-1) hat coefficients.
  template <class Visit>
  void for_normal_coefficients(CellRange cells, const Visit& visit) {
    std::vector<double> record(static_cast<std::size_t>(level_.equation.record()) * interleave);
    for_strips(cells, [&](const Strip& strip) {
      for_faces(strip, Face::velocity, [&](const Strip& faces, int side, const VectorField& data) {
        const int a = side / 2;
        if (data[a].is_zero()) return;
        make_points(faces, a, side % 2);
        evaluate(data[a], faces.count);
        // The trace of a hat is coefficient / sqrt(h): invert that.
        const Table hat{1, 1, {std::sqrt(strip.widths[a])}};
        std::array<const Table*, 3> tables = tables_of(a);
        tables[a] = &hat;
        std::fill(record.begin(), record.end(), 0.0);
        add(faces, a, tables, record.data(), nullptr);
        for (int i = 0; i < faces.count; ++i) {
          const Record cell = faces.cell(i);
          std::vector<double> coefficients(columns_);
          for (int j = 0; j < columns_; ++j) {
            coefficients[j] = record[(a * block_ + j) * interleave + cell % interleave];
          }
          visit(cell, side, coefficients);
        }
      });
    });
  }

 private:
  /// visit(strip) for the strips of a block's cells, with the tables of their size.
  template <class Visit>
  void for_strips(CellRange cells, const Visit& visit) {
    for (auto begin = static_cast<Record>(cells.begin); begin < cells.end;) {
      Strip strip{begin, grid_.widths(begin)};
      auto row = grid_.position(begin);
      for (Record cell = begin; cell < cells.end; ++cell) {
        const auto& position = grid_.position(cell);
        row[along_] = position[along_];
        if (position != row || grid_.widths(cell) != strip.widths) break;
        strip.lane[strip.count++] = cell - begin;
      }
      begin += strip.count;
      make_tables(strip.widths);
      visit(strip);
    }
  }

  /// Test functions at the points of the rule in cells of this size.
  void make_tables(const Point& widths) {
    const int count = static_cast<int>(rule_.points.size());
    for (int a = 0; a < dim_; ++a) {
      if (widths[a] == widths_[a]) continue;
      legendre_[a] = {n_, count, std::vector<double>(static_cast<std::size_t>(n_) * count)};
      continuous_[a] = {n_ + 1, count, std::vector<double>(static_cast<std::size_t>(n_ + 1) * count)};
      for (int q = 0; q < count; ++q) {
        const auto psi = legendre(n_ - 1, rule_.points[q]);
        const auto b = continuous(n_ - 1, rule_.points[q]);
        const double weight = rule_.weights[q] * std::sqrt(widths[a]);  // weight h, function / sqrt(h)
        for (int i = 0; i < n_; ++i) legendre_[a].values[i * count + q] = weight * psi[i];
        for (int i = 0; i <= n_; ++i) continuous_[a].values[i * count + q] = weight * b[i];
      }
    }
    widths_ = widths;
  }

  /// visit(strip, side, data) for faces of this kind with data that are not zero, together those of one side of the
  /// cells on one side of the domain or on holes.
  template <class Visit>
  void for_faces(const Strip& strip, Face face, const Visit& visit) const {
    for (int side = 0; side < 2 * dim_; ++side) {
      if (grid_.count_faces(side, face) == 0) continue;
      std::array<int, interleave> hole{};  // behind each cell (Grid::hole)
      std::vector<int> found;
      for (int i = 0; i < strip.count; ++i) {
        const Record cell = strip.cell(i);
        if (grid_.face(cell, side) != face) continue;
        hole[i] = grid_.hole(cell, side);
        if (std::find(found.begin(), found.end(), hole[i]) == found.end()) found.push_back(hole[i]);
      }
      for (const int number : found) {
        const VectorField& data = number < 0 ? side_data_[side] : hole_side(problem_.boundary, number).data;
        if (is_zero(data)) continue;
        Strip faces{strip.first, strip.widths};
        for (int i = 0; i < strip.count; ++i) {
          if (grid_.face(strip.cell(i), side) == face && hole[i] == number) faces.lane[faces.count++] = strip.lane[i];
        }
        visit(faces, side, data);
      }
    }
  }

  /// True if direction a is that in which component c is in P.
  [[nodiscard]] bool parallel(int c, int a) const { return has_velocity_ && a == c; }

  [[nodiscard]] std::array<const Table*, 3> tables_of(int c) const {
    std::array<const Table*, 3> tables{};
    for (int a = 0; a < dim_; ++a) tables[a] = parallel(c, a) ? &continuous_[a] : &legendre_[a];
    return tables;
  }

  void add_faces(const Strip& faces, int side, Face face, const VectorField& data, double* records, double* upper) {
    const int a = side / 2;
    const bool upper_side = side % 2 == 1;
    make_points(faces, a, upper_side ? 1 : 0);
    const double h = faces.widths[a];
    const double x = upper_side ? 1.0 : 0.0;
    const auto psi = legendre(n_ - 1, x);
    const auto slope = legendre(n_ - 1, x, 1);
    for (int c = 0; c < components_; ++c) {
      if (data[c].is_zero() || (parallel(c, a) && face == Face::velocity)) continue;
      evaluate(data[c], faces.count);
      Table trace;
      if (parallel(c, a)) {  // the hat of this face
        trace = {upper_side ? n_ + 1 : 1, 1, std::vector<double>(upper_side ? n_ + 1 : 1, 0.0)};
        trace.values.back() = 1.0 / std::sqrt(h);
      } else {
        trace = {n_, 1, std::vector<double>(n_)};
        for (int i = 0; i < n_; ++i) {
          const double value = psi[i] / std::sqrt(h);
          const double normal_slope = (upper_side ? 1.0 : -1.0) * slope[i] / (h * std::sqrt(h));
          trace.values[i] = face == Face::outflow ? value
                                                  : level_.coefficients.viscosity *
                                                        (2.0 * level_.equation.penalty(h) * value - normal_slope);
        }
      }
      std::array<const Table*, 3> tables = tables_of(c);
      tables[a] = &trace;
      add(faces, c, tables, records, upper);
    }
  }

  /// Tensor quadrature points of the cells, or of their faces `upper` in direction `normal`: along the row for each
  /// point of the rule those of all cells.
  void make_points(const Strip& strip, int normal, int upper) {
    for (int a = 0; a < 3; ++a) {
      std::vector<double>& axis = axes_[a];
      axis.clear();
      const std::size_t points = a >= dim_ || a == normal ? 1 : rule_.points.size();
      for (std::size_t q = 0; q < points; ++q) {
        const double xi = a >= dim_ ? 0.0 : a == normal ? upper : rule_.points[q];
        for (int i = 0; i < (a == along_ ? strip.count : 1); ++i) {
          axis.push_back(grid_.corner(strip.cell(i))[a] + strip.widths[a] * xi);
        }
      }
    }
  }

  /// Values of a field at the points of `count` cells, in `in_`.
  void evaluate(const ScalarField& field, int count) {
    const std::size_t points = axes_[0].size() * axes_[1].size() * axes_[2].size();
    make_room(in_, points);
    field.evaluate(Axes{axes_[0], axes_[1], axes_[2]}, std::span(in_).first(points));
    if (along_ > 0 && count > 1) make_cells_fastest(points, count);
  }
  /// From [points][cell][points of the directions below that of the row].
  void make_cells_fastest(std::size_t points, int count) {
    const std::size_t below = along_ == 1 ? axes_[0].size() : axes_[0].size() * axes_[1].size();
    make_room(out_, points);
    for (std::size_t begin = 0; begin < points; begin += below * count) {
      for (int i = 0; i < count; ++i) {
        const double* const from = &in_[begin + i * below];
        for (std::size_t q = 0; q < below; ++q) out_[begin + q * count + i] = from[q];
      }
    }
    in_.swap(out_);
  }
  /// Nothing is set that will be overwritten.
  static void make_room(std::vector<double>& values, std::size_t count) {
    if (values.size() < count) values.resize(count);
  }

  /// out(outer, row, inner) = sum over columns of table(row, column) in(outer, column, inner)
  void contract(const Table& table, int outer, int inner) {
    make_room(out_, static_cast<std::size_t>(outer) * table.rows * inner);
    double* to = out_.data();
    for (int o = 0; o < outer; ++o) {
      for (int i = 0; i < table.rows; ++i, to += inner) {
        const double* factors = &table.values[static_cast<std::size_t>(i) * table.columns];
        const double* from = &in_[static_cast<std::size_t>(o) * table.columns * inner];
        const double first = factors[0];
        for (int k = 0; k < inner; ++k) to[k] = first * from[k];
        for (int q = 1; q < table.columns; ++q) {
          from += inner;
          const double factor = factors[q];
          for (int k = 0; k < inner; ++k) to[k] += factor * from[k];
        }
      }
    }
    in_.swap(out_);
  }

  /// Contracts what evaluate() left with one table per direction and adds the result to component c.
  void add(const Strip& strip, int c, const std::array<const Table*, 3>& tables, double* records, double* upper) {
    std::array<int, 3> size{1, 1, 1};
    for (int a = 0; a < dim_; ++a) size[a] = tables[a]->columns;
    int inner = strip.count;
    for (int a = 0; a < dim_; ++a) {
      contract(*tables[a], a == 0 ? size[1] * size[2] : a == 1 ? size[2] : 1, inner);
      size[a] = tables[a]->rows;
      inner *= size[a];
    }
    std::array<int, 3> stride{};
    for (int a = 0; a < dim_; ++a) {
      const int order = level_.equation.order;
      stride[a] = has_velocity_ ? velocity_stride(dim_, order, c, a) : pressure_stride(order, a);
    }
    const bool side_by_side = strip.lane[strip.count - 1] == strip.count - 1;
    const double* from = in_.data();
    for (int k = 0; k < size[2]; ++k) {
      for (int j = 0; j < size[1]; ++j) {
        for (int i = 0; i < size[0]; ++i, from += strip.count) {
          const std::array<int, 3> index{i, j, k};
          const bool upper_hat = has_velocity_ && index[c] == n_;
          const int offset = i * stride[0] + j * stride[1] + k * stride[2] - (upper_hat ? n_ * stride[c] : 0);
          double* to =
              upper_hat ? upper + (c * columns_ + offset) * interleave : records + (c * block_ + offset) * interleave;
          to += strip.first % interleave;
          if (side_by_side) {
            for (int l = 0; l < strip.count; ++l) to[l] += from[l];
          } else {
            for (int l = 0; l < strip.count; ++l) to[strip.lane[l]] += from[l];
          }
        }
      }
    }
  }

  const Problem& problem_;
  const Level& level_;
  const Grid& grid_;
  int dim_;
  bool has_velocity_;
  int components_;  ///< of the force
  int n_;
  int along_;  ///< the direction of rows
  int block_;
  int columns_;
  Quadrature rule_;
  std::array<VectorField, 6> side_data_;
  Point widths_{};  ///< of the cells that the tables are for
  std::array<Table, 3> legendre_;
  std::array<Table, 3> continuous_;
  std::array<std::vector<double>, 3> axes_;
  std::vector<double> in_;  ///< may be longer than what is in it
  std::vector<double> out_;
};

/// Calls visit(integrals, cells) for every block of records that has cells, from several threads.
template <class Visit>
void for_blocks(const Problem& problem, const Level& level, int points, const Visit& visit) {
  const Ranges blocks{level.grid.layout().owned_cells().size(), interleave};
  parallel_for(blocks.number(), [&] {
    return [&, integrals = StripIntegrals(problem, level, points)](std::int64_t i) mutable {
      visit(integrals, blocks[i]);
    };
  });
}

/// The record of another grid of the same mesh that holds the same unknowns.
Record counterpart(const Grid& grid, Record record, const Grid& other) {
  if (grid.layout().is_cell(record)) return record;
  const int hat = grid.hat_direction(record);
  return other.neighbour(grid.neighbour(record, 2 * hat), 2 * hat + 1);
}

/// Through the sides of a cell, or of a part of the domain: out of it, and the sum of sizes.
struct Flux {
  double net = 0.0;
  double total = 0.0;
};
struct CellFlux {
  Record cell;
  Flux flux;
};
/// visit(cell, flux) for cells through whose sides something flows, by block of records.
template <class Visit>
void for_fluxes(const std::vector<std::vector<CellFlux>>& of_blocks, const Visit& visit) {
  for (const auto& block : of_blocks) {
    for (const auto& [cell, flux] : block) visit(cell, flux);
  }
}

/// The kind of the face that the hats of a record in direction c lie on.
Face hat_kind(const Grid& grid, Record r, int c) {
  return grid.layout().is_cell(r) ? grid.face(r, 2 * c) : grid.hat_face(r);
}

/// Of the parts without an outflow side, where what flows in must flow out; others have none. \throws InvalidEntry if
/// it does not.
std::vector<Flux> fluxes_of_parts(const Grid& grid, const std::vector<std::vector<CellFlux>>& of_blocks) {
  std::vector<Flux> fluxes(grid.parts());
  for_fluxes(of_blocks, [&](Record cell, const Flux& flux) {
    fluxes[grid.part(cell)].net += flux.net;
    fluxes[grid.part(cell)].total += flux.total;
  });
  constexpr double tolerance = 1e-6;
  for (int part = 0; part < grid.parts(); ++part) {
    auto& [net, total] = fluxes[part];
    if (grid.has_face(part, Face::outflow)) net = 0.0;
    if (std::abs(net) <= tolerance * total) continue;
    std::string where = "the domain";
    if (grid.parts() > 1) {
      Record first = 0;
      while (grid.part(first) != part) ++first;
      Point centre = grid.corner(first);
      for (int a = 0; a < 3; ++a) centre[a] += 0.5 * grid.widths(first)[a];
      where = fmt::format("the part of the domain around [{:.6g}]",
                          fmt::join(centre.begin(), centre.begin() + grid.dim(), ", "));
    }
    throw InvalidEntry("boundary",
                       fmt::format("the prescribed velocities do not balance: the net flux out of {} is {:.6e}, of "
                                   "{:.6e} through all sides. Without an outflow side it must be zero: correct the "
                                   "velocities, make one side outflow, or refine the mesh if it is too coarse for them",
                                   where, net, total));
  }
  return fluxes;
}

}  // namespace

HostVector assemble_load(const Problem& problem, const Level& level) {
  const Grid& grid = level.grid;
  const int dim = level.equation.dim;
  const int block = power(level.equation.n(), dim);
  const int columns = power(level.equation.n(), dim - 1);
  const int velocities = level.equation.velocities();
  HostVector load = zeros(level.size());
  // Shares of upper hats, kept apart so that every record has one writer.
  HostVector upper = zeros(whole_blocks(grid.layout().owned_cells().size()) * velocities * columns);
  for_blocks(problem, level, level.equation.n() + 1, [&](StripIntegrals& integrals, CellRange cells) {
    integrals.of_block(cells, &load[level.index(cells.begin, 0)],
                       upper.data() + record_offset(cells.begin, velocities * columns));
  });
  if (velocities == 0) return load;
  parallel_ranges({grid.layout().records().size()}, [&](CellRange records, std::int64_t) {
    for (auto r = static_cast<Record>(records.begin); r < records.end; ++r) {
      for (int c = 0; c < dim; ++c) {
        const Record below = grid.neighbour(r, 2 * c);
        for (int i = 0; i < columns; ++i) {
          double& hat = load[level.index(r, c * block + i)];
          if (grid.layout().is_cell(below)) {
            hat += upper[record_offset(below, dim * columns) + std::int64_t{interleave} * (c * columns + i)];
          }
          if (normal_fixed(hat_kind(grid, r, c))) hat = 0.0;
        }
      }
    }
  });
  return load;
}

SparseVector assemble_boundary_load(const Problem& problem, const Level& level) {
  using Entry = std::pair<std::int64_t, double>;
  const Grid& grid = level.grid;
  const int block = power(level.equation.n(), level.equation.dim);
  const int columns = power(level.equation.n(), level.equation.dim - 1);
  const int velocities = level.equation.velocities();
  const int record = level.equation.record();
  Problem boundary = problem;
  boundary.force = {};
  std::vector<std::vector<Entry>> of_blocks(whole_blocks(grid.layout().owned_cells().size()) / interleave);
  for_blocks(boundary, level, level.equation.n() + 1, [&](StripIntegrals& integrals, CellRange cells) {
    if (!integrals.has_boundary_data(cells)) return;
    std::vector<double> records(std::size_t{interleave} * record);
    std::vector<double> upper(std::size_t{interleave} * velocities * columns);
    integrals.of_block(cells, records.data(), upper.data());
    std::vector<Entry>& entries = of_blocks[cells.begin / interleave];
    const auto enter = [&](Record r, int i, double value) {
      const bool hat = i < velocities * block && i % block < columns;
      if (value == 0.0 || (hat && normal_fixed(hat_kind(grid, r, i / block)))) return;
      entries.emplace_back(level.index(r, i), value);
    };
    for (auto cell = static_cast<Record>(cells.begin); cell < cells.end; ++cell) {
      const Record lane = cell % interleave;
      for (int i = 0; i < record; ++i) enter(cell, i, records[i * interleave + lane]);
      for (int c = 0; c < velocities; ++c) {
        const Record above = grid.neighbour(cell, 2 * c + 1);
        if (above == grid.layout().null()) continue;
        for (int i = 0; i < columns; ++i) enter(above, c * block + i, upper[(c * columns + i) * interleave + lane]);
      }
    }
  });
  std::vector<Entry> entries;
  for (const auto& some : of_blocks) entries.insert(entries.end(), some.begin(), some.end());
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.first < b.first; });
  SparseVector load;
  for (const auto& [place, value] : entries) {
    if (!load.places.empty() && load.places.back() == place) {
      load.values.back() += value;
    } else {
      load.add(place, value);
    }
  }
  return load;
}

SparseVector boundary_lift(const Problem& problem, const Level& lift) {
  const Grid& grid = lift.grid;
  const int dim = lift.equation.dim;
  const int block = power(lift.equation.n(), dim);
  struct LiftedFace {
    Record cell;
    bool upper;
    std::size_t first;  // of its coefficients, mode 0
  };
  struct OfBlock {
    SparseVector hats;
    std::vector<LiftedFace> faces;
  };
  const std::int64_t blocks = whole_blocks(grid.layout().owned_cells().size()) / interleave;
  std::vector<std::unique_ptr<OfBlock>> of_blocks(blocks);
  std::vector<std::vector<CellFlux>> fluxes_of_blocks(blocks);
  // More points than for loads: what the fluxes of smooth data lack of balance is an error of this rule.
  const int points = lift.equation.n() + 5;
  for_blocks(problem, lift, points, [&](StripIntegrals& integrals, CellRange cells) {
    std::array<Flux, interleave> fluxes;
    auto& mine = of_blocks[cells.begin / interleave];
    integrals.for_normal_coefficients(cells, [&](Record cell, int side, const std::vector<double>& coefficients) {
      if (mine == nullptr) mine = std::make_unique<OfBlock>();
      const int a = side / 2;
      const Record owner = side % 2 == 0 ? cell : grid.neighbour(cell, side);
      mine->faces.push_back({cell, side % 2 == 1, mine->hats.places.size()});
      for (std::size_t i = 0; i < coefficients.size(); ++i) {
        mine->hats.add(lift.index(owner, a * block + static_cast<int>(i)), coefficients[i]);
      }
      // Mode 0 carries the flux: coefficient / sqrt(h_a) * sqrt(area).
      const Point widths = grid.widths(cell);
      double area = 1.0;
      for (int t = 0; t < dim; ++t) area *= t == a ? 1.0 : widths[t];
      const double outward = (side % 2 == 0 ? -1.0 : 1.0) * coefficients[0] * std::sqrt(area / widths[a]);
      Flux& flux = fluxes[cell - cells.begin];
      flux.net += outward;
      flux.total += std::abs(outward);
    });
    for (auto cell = static_cast<Record>(cells.begin); cell < cells.end; ++cell) {
      const Flux& flux = fluxes[cell - cells.begin];
      if (flux.total != 0.0) fluxes_of_blocks[cells.begin / interleave].push_back({cell, flux});
    }
  });
  const std::vector<Flux> fluxes = fluxes_of_parts(grid, fluxes_of_blocks);
  SparseVector hats;
  for (const auto& mine : of_blocks) {
    if (mine == nullptr) continue;
    // What is left is taken off in proportion, so that there is a velocity whose divergence is zero to rounding.
    for (const auto& [cell, upper, first] : mine->faces) {
      const auto& [net, total] = fluxes[grid.part(cell)];
      if (net == 0.0) continue;
      double& mode = mine->hats.values[first];
      const bool outward = (mode > 0.0) == upper;
      mode *= 1.0 - (outward ? net : -net) / total;
    }
    hats.places.insert(hats.places.end(), mine->hats.places.begin(), mine->hats.places.end());
    hats.values.insert(hats.values.end(), mine->hats.values.begin(), mine->hats.values.end());
  }
  return hats;
}

bool has_boundary_values(const Problem& problem) {
  const std::vector<Side> all = conditions(problem);
  return std::any_of(all.begin(), all.end(),
                     [](const Side& side) { return side.kind == SideKind::velocity && !is_zero(side.data); });
}

bool has_boundary_data(const Problem& problem) {
  const std::vector<Side> all = conditions(problem);
  return std::any_of(all.begin(), all.end(), [](const Side& side) { return !is_zero(side.data); });
}

bool has_boundary_velocity(const Problem& problem) {
  return problem.equation == EquationKind::stokes && has_boundary_values(problem);
}

HatMoves moves_of_hats(const Level& from, const Level& to) {
  const int block = power(to.equation.n(), to.equation.dim);
  const int columns = power(to.equation.n(), to.equation.dim - 1);
  const auto for_hats = [&](const Level& level, Record r, int c, const auto& visit) {
    for (int i = 0; i < columns; ++i) visit(level.index(r, c * block + i));
  };
  HatMoves moves;
  const Ranges cells{to.grid.layout().owned_cells().size(), 1 << 14};
  std::vector<std::vector<std::int64_t>> fixed(cells.number());
  parallel_ranges(cells, [&](CellRange range, std::int64_t number) {
    for (auto cell = static_cast<Record>(range.begin); cell < range.end; ++cell) {
      for (int c = 0; c < to.equation.velocities(); ++c) {
        if (!normal_fixed(to.grid.face(cell, 2 * c))) continue;
        for_hats(from, cell, c, [&](std::int64_t place) { fixed[number].push_back(place); });
      }
    }
  });
  for (const auto& some : fixed) moves.fixed.insert(moves.fixed.end(), some.begin(), some.end());
  for (const Record r : from.grid.layout().owned_hats()) {
    for_hats(from, r, from.grid.hat_direction(r), [&](std::int64_t place) { moves.fixed.push_back(place); });
  }
  for (const Record r : to.grid.layout().owned_hats()) {
    const int c = to.grid.hat_direction(r);
    for_hats(to, r, c, [&](std::int64_t place) { moves.to.push_back(place); });
    for_hats(from, counterpart(to.grid, r, from.grid), c, [&](std::int64_t place) { moves.from.push_back(place); });
  }
  return moves;
}

void move_hats(const Level& from, const Level& to, HostVector& values) {
  const RecordRange hats = from.grid.layout().hats();
  const int record = from.equation.record();
  const std::int64_t begin = from.index(hats.first() / interleave * interleave, 0);  // the first block that has some
  const std::vector<double> tail(values.begin() + begin, values.begin() + from.size());
  const auto for_values = [&](const auto& visit) {
    for (const Record r : hats) {
      for (int i = 0; i < record; ++i) visit(r, i);
    }
  };
  for_values([&](Record r, int i) { values[from.index(r, i)] = 0.0; });
  for_values([&](Record r, int i) {
    values[to.index(counterpart(from.grid, r, to.grid), i)] = tail[from.index(r, i) - begin];
  });
}

HostVector random_vector(const Level& level, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  HostVector values = zeros(level.size());
  level.for_each_unknown([&](std::int64_t index) { values[index] = uniform(engine); });
  return values;
}

}  // namespace solenoid
