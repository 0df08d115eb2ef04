#pragma once
/// \file
/// Integrals of functions against basis functions, on the host: what loads and boundary data are made of.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/agreement.hpp"
#include "base/parallel.hpp"
#include "element/basis.hpp"
#include "engine/tables.hpp"
#include "level/level.hpp"
#include "level/viscosity_in_cells.hpp"
#include "problem/pulled_back.hpp"
#include "problem/regions.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// Integrals of functions given at tensor quadrature points against tensor-product test functions, for strips of cells
/// at a time. Arrays of a strip have the cell as the fastest index. On cells that are parallelepipeds all is done on
/// the boxes that these are made of, with data that are pulled back.
class StripIntegrals {
 public:
  /// By Gauss rules of so many points per direction.
  StripIntegrals(const Problem& problem, const Level& level, int points)
      : problem_(problem),
        level_(level),
        grid_(level.grid),
        map_(level.grid.metric().map()),
        dim_(level.equation.dim),
        has_velocity_(level.equation.velocities() > 0),
        components_(has_velocity_ ? dim_ : 1),
        n_(level.equation.n()),
        along_(grid_.numbering()[0]),
        block_(power(n_, dim_)),
        columns_(power(n_, dim_ - 1)),
        rule_(gauss(points)),
        force_(map_ == nullptr ? force_field(problem) : pulled_back_force(force_field(problem), *map_)) {
    for (int side = 0; side < 2 * dim_; ++side) {
      const VectorField data = data_on(problem.boundary, side);
      velocity_data_[side] = in_boxes(data, side, Face::velocity);
      traction_data_[side] = in_boxes(data, side, Face::outflow);
    }
  }

  /// Adds all integrals of the cells of a block to their records and what belongs to their upper hats to `upper` (dim
  /// n^(dim-1) numbers a record), both interleaved.
  void of_block(CellRange cells, double* records, double* upper) {
    for_strips(cells, [&](const Strip& strip) {
      if (!is_zero(force_)) {
        make_points(strip, -1, 0);
        for (int c = 0; c < components_; ++c) {
          if (force_[c].is_zero()) continue;
          evaluate(force_[c], strip.count);
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

  /// The same of <min(g_n, 0) g, v> for tangential v on the faces with a prescribed velocity g, n outward.
  void inflow_of_block(CellRange cells, double* records, double* upper) {
    for_strips(cells, [&](const Strip& strip) {
      for_faces(strip, Face::velocity, [&](const Strip& faces, int side, const VectorField& data) {
        add_inflow(faces, side, data, records, upper);
      });
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
  /// Row-major rows x columns: test functions x quadrature points.
  struct Table {
    int rows = 0;
    int columns = 0;
    std::vector<double> values;
  };

  /// Some cells of one size, one row and one block of records, so that their quadrature points are a tensor grid and
  /// their test functions the same.
  struct Strip {
    Record first;  ///< cell of lane 0
    Point widths;
    int count = 0;
    std::array<int, interleave> lane{};  ///< of each cell: its number less `first`

    [[nodiscard]] Record cell(int i) const { return first + lane[i]; }
  };

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
        const auto& of_sides = face == Face::velocity ? velocity_data_ : traction_data_;
        const VectorField data =
            number < 0 ? of_sides[side] : in_boxes(hole_side(problem_.boundary, number).data, side, face);
        if (is_zero(data)) continue;
        Strip faces{strip.first, strip.widths};
        for (int i = 0; i < strip.count; ++i) {
          if (grid_.face(strip.cell(i), side) == face && hole[i] == number) faces.lane[faces.count++] = strip.lane[i];
        }
        visit(faces, side, data);
      }
    }
  }

  /// Velocities or tractions on a side.
  [[nodiscard]] VectorField in_boxes(const VectorField& data, int side, Face face) const {
    if (map_ == nullptr) return data;
    if (face == Face::velocity) return pulled_back_velocity(data, *map_);
    // Per area of the box's face.
    return pulled_back_force(data, *map_, std::sqrt(map_->inverse_metric()[side / 2][side / 2]));
  }

  /// True if direction a is that in which component c is in P.
  [[nodiscard]] bool parallel(int c, int a) const { return has_velocity_ && a == c; }

  [[nodiscard]] std::array<const Table*, 3> tables_of(int c) const {
    std::array<const Table*, 3> tables{};
    for (int a = 0; a < dim_; ++a) tables[a] = parallel(c, a) ? &continuous_[a] : &legendre_[a];
    return tables;
  }

  void add_faces(const Strip& faces, int side, Face face, const VectorField& data, double* records, double* upper) {
    if (map_ != nullptr && face == Face::velocity) {
      add_sheared_faces(faces, side, data, records, upper);
      return;
    }
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
      if (face == Face::velocity) scale_by_viscosity(faces, side);
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

  /// nu / J times, nu that of the cell where it varies, <2 gamma' g q, z> for tangential z, gamma' = G_aa gamma, less
  /// <sum_b G_ab d_b z, g q> outwards, g q the metric times what is tangential of the data
  /// (engine/cpu/kernels/sheared_operator.hpp).
  void add_sheared_faces(const Strip& faces, int side, const VectorField& data, double* records, double* upper) {
    const int a = side / 2;
    const double x = side % 2;
    const double h = faces.widths[a];
    const double factor = level_.coefficients.viscosity / map_->jacobian();
    const Point& inverse = map_->inverse_metric()[a];
    const double outward = side % 2 == 1 ? 1.0 : -1.0;
    make_points(faces, a, side % 2);
    std::array<std::vector<double>, 3> values;
    for (int c = 0; c < dim_; ++c) {
      if (c == a || data[c].is_zero()) continue;
      evaluate(data[c], faces.count);
      scale_by_viscosity(faces, side);
      values[c].assign(in_.begin(), in_.begin() + points_of_strip());
    }
    const auto psi = legendre(n_ - 1, x);
    const auto psi_slope = legendre(n_ - 1, x, 1);
    const auto b_slope = continuous(n_ - 1, x, 1);
    for (int c = 0; c < dim_; ++c) {
      const auto add_term = [&](const std::array<const Table*, 3>& tables) {
        make_room(in_, points_of_strip());
        std::fill_n(in_.begin(), points_of_strip(), 0.0);
        for (int other = 0; other < dim_; ++other) {
          const double g = map_->metric()[c][other];
          for (std::size_t q = 0; q < values[other].size(); ++q) in_[q] += g * values[other][q];
        }
        add(faces, c, tables, records, upper);
      };
      std::array<const Table*, 3> tables = tables_of(c);
      Table trace{c == a ? n_ + 1 : n_, 1, {}};
      for (int i = 0; i < trace.rows; ++i) {
        const double slope = (c == a ? b_slope[i] : psi_slope[i]) / (h * std::sqrt(h));
        const double value = c == a ? 0.0 : psi[i] / std::sqrt(h);  // hats are prescribed there
        trace.values.push_back(factor * inverse[a] * (2.0 * level_.equation.penalty(h) * value - outward * slope));
      }
      tables[a] = &trace;
      add_term(tables);
      if (c == a) continue;
      for (int b = 0; b < dim_; ++b) {
        if (b == a) continue;
        Table along = trace;
        for (int i = 0; i < n_; ++i) along.values[i] = -outward * factor * inverse[b] * psi[i] / std::sqrt(h);
        const Table derivative = derivative_of(c, b, faces.widths[b]);
        tables = tables_of(c);
        tables[a] = &along;
        tables[b] = &derivative;
        add_term(tables);
      }
    }
  }

  /// Derivatives of the functions of component c in direction b at the points of the rule, with its weights.
  [[nodiscard]] Table derivative_of(int c, int b, double width) const {
    Table table{parallel(c, b) ? n_ + 1 : n_, static_cast<int>(rule_.points.size()), {}};
    table.values.resize(static_cast<std::size_t>(table.rows) * table.columns);
    for (int q = 0; q < table.columns; ++q) {
      const auto slope = parallel(c, b) ? continuous(n_ - 1, rule_.points[q], 1) : legendre(n_ - 1, rule_.points[q], 1);
      for (int i = 0; i < table.rows; ++i) {
        table.values[i * table.columns + q] = rule_.weights[q] / std::sqrt(width) * slope[i];
      }
    }
    return table;
  }

  void add_inflow(const Strip& faces, int side, const VectorField& data, double* records, double* upper) {
    const int a = side / 2;
    if (data[a].is_zero()) return;
    make_points(faces, a, side % 2);
    evaluate(data[a], faces.count);
    std::vector<double> inward(in_.begin(), in_.begin() + points_of_strip());
    for (double& normal : inward) normal = std::min(side % 2 == 1 ? normal : -normal, 0.0);
    const auto psi = legendre(n_ - 1, side % 2);
    Table trace{n_, 1, std::vector<double>(n_)};
    for (int i = 0; i < n_; ++i) trace.values[i] = psi[i] / std::sqrt(faces.widths[a]);
    const auto add_component = [&](int c) {
      for (std::size_t q = 0; q < inward.size(); ++q) in_[q] *= inward[q];
      std::array<const Table*, 3> tables = tables_of(c);
      tables[a] = &trace;
      add(faces, c, tables, records, upper);
    };
    if (map_ == nullptr) {
      for (int c = 0; c < dim_; ++c) {
        if (c == a || data[c].is_zero()) continue;
        evaluate(data[c], faces.count);
        add_component(c);
      }
      return;
    }
    // What is carried has all components (engine/convection.hpp).
    std::array<std::vector<double>, 3> values;
    for (int c = 0; c < dim_; ++c) {
      if (data[c].is_zero()) continue;
      evaluate(data[c], faces.count);
      values[c].assign(in_.begin(), in_.begin() + points_of_strip());
    }
    const Matrix3 metric = convection_metric(*map_);
    for (int c = 0; c < dim_; ++c) {
      if (c == a) continue;
      std::fill_n(in_.begin(), points_of_strip(), 0.0);
      for (int other = 0; other < dim_; ++other) {
        for (std::size_t q = 0; q < values[other].size(); ++q) in_[q] += metric[c][other] * values[other][q];
      }
      add_component(c);
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

  [[nodiscard]] std::size_t points_of_strip() const { return axes_[0].size() * axes_[1].size() * axes_[2].size(); }
  /// Values of a field at the points of `count` cells, in `in_`.
  void evaluate(const ScalarField& field, int count) {
    const std::size_t points = points_of_strip();
    make_room(in_, points);
    field.evaluate(Axes{axes_[0], axes_[1], axes_[2]}, std::span(in_).first(points));
    if (along_ > 0 && count > 1) make_cells_fastest(points, count);
  }
  /// Values that evaluate() left on faces `side` of cells, times the viscosity where that varies.
  void scale_by_viscosity(const Strip& strip, int side) {
    if (level_.coefficients.by_cell == nullptr) return;
    std::array<std::vector<double>, 3> xi{rule_.points, rule_.points, rule_.points};
    xi[side / 2] = {static_cast<double>(side % 2)};
    ViscosityInCells viscosity(level_.coefficients, dim_, xi);
    for (int i = 0; i < strip.count; ++i) {
      const std::vector<double>& nu = viscosity.of_operator(strip.cell(i));
      for (std::size_t q = 0; q < nu.size(); ++q) in_[q * strip.count + i] *= nu[q];
    }
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
  const AffineMap* map_;  ///< of cells that are parallelepipeds, or nullptr
  int dim_;
  bool has_velocity_;
  int components_;  ///< of the force
  int n_;
  int along_;  ///< the direction of rows
  int block_;
  int columns_;
  Quadrature rule_;
  VectorField force_;
  std::array<VectorField, 6> velocity_data_;
  std::array<VectorField, 6> traction_data_;
  Point widths_{};  ///< of the cells that the tables are for
  std::array<Table, 3> legendre_;
  std::array<Table, 3> continuous_;
  std::array<std::vector<double>, 3> axes_;
  std::vector<double> in_;  ///< may be longer than what is in it
  std::vector<double> out_;
};

/// Calls visit(integrals, cells) for every block of records that has owned cells or ghosts next to them, whose faces
/// carry unknowns of owned cells, from several threads. If one rank throws, all do.
template <class Visit>
void for_blocks(const Problem& problem, const Level& level, int points, const Visit& visit) {
  const Ranges blocks{level.grid.layout().near_cells().size(), interleave};
  in_agreement(level.grid.communicator(), [&] {
    parallel_for(blocks.number(), [&] {
      return [&, integrals = StripIntegrals(problem, level, points)](std::int64_t i) mutable {
        visit(integrals, blocks[i]);
      };
    });
  });
}

}  // namespace solenoid
