#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/agreement.hpp"
#include "base/parallel.hpp"
#include "element/convection_points.hpp"
#include "level/level.hpp"
#include "mesh/grid.hpp"
#include "mesh/record.hpp"
#include "problem/names.hpp"
#include "problem/parts.hpp"
#include "problem/regions.hpp"
#include "problem/validate.hpp"
#include "solenoid/error.hpp"
#include "solenoid/solution.hpp"
#include "solution/body_forces.hpp"
#include "solution/cell_rule.hpp"
#include "solution/cells_of.hpp"
#include "solution/face_lanes.hpp"
#include "solution/viscosity_of_forces.hpp"

namespace solenoid {

namespace {

constexpr int sides_of_box = 6;

// A boundary face, and what kinds of faces its cell has: two bits for each side.
struct FaceOfCell {
  Record cell;
  int side;
  int kinds;

  [[nodiscard]] auto group() const { return std::pair(side, kinds); }
};

// Of the cells of this rank, by group.
std::vector<FaceOfCell> faces_on_boundary(const Grid& grid) {
  std::vector<FaceOfCell> faces;
  for (const Record cell : grid.layout().owned_cells()) {
    int kinds = 0;
    for (int side = 0; side < 2 * grid.dim(); ++side) kinds |= static_cast<int>(grid.face(cell, side)) << 2 * side;
    for (int side = 0; side < 2 * grid.dim(); ++side) {
      if (grid.face(cell, side) != Face::interior) faces.push_back({cell, side, kinds});
    }
  }
  std::ranges::stable_sort(faces, {}, &FaceOfCell::group);
  return faces;
}

// Sums over boundary faces, many side by side. One object serves one thread.
class BoundaryForces {
 public:
  // What is handed over must outlive this.
  BoundaryForces(const Grid& grid, const FlowOfForces& flow, const Bodies& bodies, const std::vector<double>& tables)
      : grid_(&grid),
        flow_(&flow),
        velocity_of_flow_{{1.0}, {flow.flow}},
        bodies_(&bodies),
        kernel_(&force_kernel()),
        lanes_(kernel_->lanes),
        dim_(grid.dim()),
        n_(flow.problem.order + 1),
        force_(force_field(flow.problem)),
        data_(data_of_conditions(flow.problem)) {
    const int points = force_points(flow.problem);
    for (int side = CellRule::inside; side < 2 * dim_; ++side) {
      rules_.emplace_back(grid, points, side);
      viscosities_.emplace_back(flow.coefficients, grid, rules_.back().xi(), side);
    }
    for (int c = 0; c < dim_; ++c) find_places(c);
    const AffineMap map = grid.metric().map() == nullptr ? AffineMap::identity(dim_) : *grid.metric().map();
    faces_.tested = tested_flow(flow.problem, grid, flow.about);
    faces_.layout = {n_, points};
    faces_.tables = tables.data();
    faces_.measure = map.jacobian();
    for (int a = 0; a < 3; ++a) {
      faces_.areas[a] = map.jacobian() * std::sqrt(map.inverse_metric()[a][a]);
      for (int i = 0; i < 3; ++i) faces_.image[i][a] = map.direction(a)[i] / map.jacobian();
    }
  }

  // Of one group, as many as there are lanes, or fewer.
  void add(std::span<const FaceOfCell> faces, SumsOfBodies& bodies) {
    Cells cells{};
    for (int l = 0; l < lanes_; ++l) cells[l] = faces[std::min<std::size_t>(l, faces.size() - 1)].cell;
    faces_.side = faces[0].side;
    take(cells);
    FaceSums found;
    kernel_->add_up(faces_, found);
    for (std::size_t l = 0; l < faces.size(); ++l) {
      ForceSums sums;
      auto from = found.sums.begin();
      for (Point* const part : {&sums.force, &sums.torque, &sums.pressure, &sums.viscous}) {
        for (double& value : *part) value = (*from++)[l];
      }
      if (has_rows()) {
        const Rows rows{found.rows[0][l], {found.rows[1][l], found.rows[2][l], found.rows[3][l]}};
        faces_.tested.add(sums, faces_.side, rows, grid_->corner(cells[l]), grid_->widths(cells[l]));
      }
      bodies.of_body[bodies_->at(cells[l], faces_.side)].merge(sums);
    }
  }

  [[nodiscard]] int lanes() const { return lanes_; }

 private:
  using Cells = std::array<Record, FaceLanes::most_lanes>;
  using Numbers = std::vector<double>;  // [..][lane]

  // Where a coefficient is.
  struct Place {
    std::int64_t offset;  // in the record of the cell,
    bool is_above;        // or of that above it
  };
  struct Velocity {
    Numbers widths;
    Numbers coefficients;
  };

  [[nodiscard]] bool has_rows() const { return faces_.faces[faces_.side] != Face::outflow; }
  [[nodiscard]] std::int64_t offset(Record record) const { return record_offset(record, record_size(dim_, n_ - 1)); }

  // In the order of tensors.
  void find_places(int c) {
    const auto count = [&](int a) { return a >= dim_ ? 1 : a == c ? n_ + 1 : n_; };
    for (int z = 0; z < count(2); ++z) {
      for (int y = 0; y < count(1); ++y) {
        for (int x = 0; x < count(0); ++x) {
          std::array<int, 3> i{x, y, z};
          const bool is_above = i[c] == n_;
          if (is_above) i[c] = 0;
          std::int64_t number = c * power(n_, dim_);
          for (int a = 0; a < dim_; ++a) number += i[a] * velocity_stride(dim_, n_ - 1, c, a);
          places_[c].push_back({interleave * number, is_above});
        }
      }
    }
  }

  void take(const Cells& cells) {
    for (int side = 0; side < 2 * dim_; ++side) faces_.faces[side] = grid_->face(cells[0], side);
    take_corners(cells);
    const TestedFlow& tested = faces_.tested;
    const int of = faces_.side;
    faces_.cells = take_velocity(cells, velocity_of_flow_, TestedFlow::all, velocity_);
    take_pressure(cells);
    take_viscosity(cells);
    for (int side = 0; side < 2 * dim_; ++side) {
      if (faces_.faces[side] != Face::interior) take_data(cells, side);
    }
    if (!has_rows()) return;
    if (!flow_->acceleration.flows.empty()) {
      faces_.change = take_velocity(cells, flow_->acceleration, tested.read_of_change(of), change_).velocity;
    }
    take_force(cells);
    for (int side = 0; side < 2 * dim_; ++side) {
      if (faces_.faces[side] != Face::interior) continue;
      Cells behind{};
      for (int l = 0; l < lanes_; ++l) behind[l] = grid_->neighbour(cells[l], side);
      faces_.behind[side] = take_velocity(behind, velocity_of_flow_, tested.read_behind(side, of), behind_[side]);
    }
  }

  void take_corners(const Cells& cells) {
    corner_.resize(3 * lanes_);
    mass_.resize(lanes_);
    for (int l = 0; l < lanes_; ++l) {
      put(grid_->corner(cells[l]), l, corner_.data());
      const auto& by_cell = flow_->coefficients.by_cell;
      mass_[l] = by_cell == nullptr ? flow_->coefficients.reaction : by_cell->reaction[cells[l]];
    }
    faces_.corner = corner_.data();
    faces_.mass = mass_.data();
  }

  // Functions are scaled by it (element/basis.hpp).
  [[nodiscard]] double scale(Record cell) const {
    const Point widths = grid_->widths(cell);
    double volume = 1.0;
    for (int a = 0; a < dim_; ++a) volume *= widths[a];
    return 1.0 / std::sqrt(volume);
  }

  FaceLanes::Cells take_velocity(const Cells& cells, const SumOfFlows& flow, const ReadComponents& read,
                                 Velocity& velocity) const {
    std::array<double, FaceLanes::most_lanes> scales{};
    velocity.widths.resize(3 * lanes_);
    for (int l = 0; l < lanes_; ++l) {
      scales[l] = scale(cells[l]);
      put(grid_->widths(cells[l]), l, velocity.widths.data());
    }
    const std::size_t component = places_[0].size() * lanes_;
    velocity.coefficients.resize(dim_ * component);
    for (int c = 0; c < dim_; ++c) {
      if (!read.has(c)) continue;
      std::array<std::array<std::int64_t, FaceLanes::most_lanes>, 2> records{};  // of cells, above them
      for (int l = 0; l < lanes_; ++l) {
        records[0][l] = offset(cells[l]);
        records[1][l] = offset(grid_->neighbour(cells[l], 2 * c + 1));
      }
      double* const begin = &velocity.coefficients[c * component];
      std::fill_n(begin, component, 0.0);
      for (std::size_t i = 0; i < flow.flows.size(); ++i) {
        const double factor = flow.factors[i];
        double* to = begin;
        for (const Place& place : places_[c]) {
          const double* const from = flow.flows[i] + place.offset;
          const auto& of_lanes = records[place.is_above ? 1 : 0];
          for (int l = 0; l < lanes_; ++l) *to++ += factor * from[of_lanes[l]];
        }
      }
      for (double* to = begin; to < begin + component; to += lanes_) {
        for (int l = 0; l < lanes_; ++l) to[l] *= scales[l];
      }
    }
    return {velocity.widths.data(), velocity.coefficients.data()};
  }

  void take_pressure(const Cells& cells) {
    const int count = power(n_, dim_);
    pressure_.resize(count * lanes_);
    for (int l = 0; l < lanes_; ++l) {
      const double* const from = flow_->flow + offset(cells[l]) + std::int64_t{interleave} * dim_ * count;
      const double factor = scale(cells[l]);
      for (int i = 0; i < count; ++i) pressure_[i * lanes_ + l] = factor * from[interleave * i];
    }
    faces_.pressure = pressure_.data();
  }

  void take_viscosity(const Cells& cells) {
    if (!viscosity_.empty() && flow_->coefficients.by_cell == nullptr) return;
    std::size_t points = 0;
    for (const CellRule& rule : rules_) points += rule.size();
    viscosity_.resize(points * lanes_);
    for (int l = 0; l < lanes_; ++l) {
      double* to = viscosity_.data();
      for (ViscosityOfForces& viscosity : viscosities_) to = put(viscosity.of(cells[l]), l, to);
    }
    faces_.viscosity = viscosity_.data();
  }

  void take_force(const Cells& cells) {
    if (!force_values_.empty() && std::ranges::all_of(force_, is_constant)) return;
    for (int l = 0; l < lanes_; ++l) take_field(force_, rules_[0], cells[l], l, force_values_);
    faces_.force = force_values_.data();
  }
  void take_data(const Cells& cells, int side) {
    for (int l = 0; l < lanes_; ++l) {
      take_field(data_[condition_at(*grid_, cells[l], side)], rules_[1 + side], cells[l], l, data_values_[side]);
    }
    faces_.data[side] = data_values_[side].data();
  }
  void take_field(const VectorField& field, CellRule& rule, Record cell, int lane, Numbers& numbers) {
    values_.resize(rule.size());
    numbers.resize(dim_ * rule.size() * lanes_);
    if (!std::ranges::all_of(field, is_constant)) rule.move_to(cell);
    double* to = numbers.data();
    for (int c = 0; c < dim_; ++c) {
      if (is_constant(field[c])) {
        std::ranges::fill(values_, *field[c].constant());
      } else {
        rule.evaluate(field[c], values_);
      }
      to = put(values_, lane, to);
    }
  }

  static bool is_constant(const ScalarField& field) { return field.constant().has_value(); }

  // To a lane; where the next values go.
  double* put(std::span<const double> values, int lane, double* to) const {
    for (const double value : values) {
      to[lane] = value;
      to += lanes_;
    }
    return to;
  }

  const Grid* grid_;
  const FlowOfForces* flow_;
  SumOfFlows velocity_of_flow_;
  const Bodies* bodies_;
  const ForceKernel* kernel_;
  int lanes_;
  int dim_;
  int n_;
  VectorField force_;
  std::vector<VectorField> data_;               // of conditions
  std::vector<CellRule> rules_;                 // in cells, on their sides
  std::vector<ViscosityOfForces> viscosities_;  // the same
  std::array<std::vector<Place>, 3> places_;    // [c]
  FaceLanes faces_{};
  // Of faces_:
  Numbers corner_;
  Numbers mass_;
  Numbers pressure_;
  Numbers viscosity_;
  Numbers force_values_;
  std::array<Numbers, 6> data_values_;
  Velocity velocity_;
  Velocity change_;
  std::array<Velocity, 6> behind_;
  Numbers values_;  // of a field in a cell
};

}  // namespace

Bodies::Bodies(const Mesh& mesh, const Grid& grid) : mesh_(&mesh), grid_(&grid), holes_(holes_of_boxes(mesh)) {}

int Bodies::at(Record cell, int side) const {
  if (grid_->hole(cell, side) < 0) return side;
  std::array<int, 3> box{};
  for (int a = 0; a < grid_->dim(); ++a) {
    const int extent = grid_->extent()[a];
    int i = grid_->position(cell)[a];
    if (a == side / 2) i = (i + (side % 2 == 0 ? -1 : 1) + extent) % extent;
    box[a] = i / (extent / mesh_->cells[a]);
  }
  return sides_of_box + holes_[number_of_box(*mesh_, box)];
}

int condition_at(const Grid& grid, Record cell, int side) {
  const int hole = grid.hole(cell, side);
  return hole < 0 ? side : sides_of_box + hole;
}

std::vector<VectorField> data_of_conditions(const Problem& problem) {
  std::vector<VectorField> data(sides_of_box);
  for (int side = 0; side < 2 * problem.mesh.dim; ++side) data[side] = data_on(problem.boundary, side);
  for (int i = 0; i <= std::ssize(problem.boundary.single_holes); ++i) {
    data.push_back(hole_side(problem.boundary, i).data);
  }
  return data;
}

int force_points(const Problem& problem) {
  return std::max(problem.order + 2, problem.convection ? convection_points(problem.order) : 0);
}

TestedFlow tested_flow(const Problem& problem, const Grid& grid, const Point& about) {
  const int dim = grid.dim();
  const AffineMap map = grid.metric().map() != nullptr ? *grid.metric().map() : AffineMap::identity(dim);
  TestedFlow result{.dim = dim,
                    .boxes = grid.metric().map() == nullptr,
                    .stress_form = form_of(problem) == ViscousForm::stress,
                    .convection = problem.convection,
                    .linear = problem.order > 0,
                    .penalty = Equation{dim, problem.order}.penalty(1.0),
                    .origin = map.at({})};
  for (int a = 0; a < dim; ++a) {
    result.origin[a] -= about[a];
    result.edge[a] = map.direction(a);
    result.across[a] = map.inverse()[a];
    result.height[a] = map.height(a, 1.0);
    for (const int side : {2 * a, 2 * a + 1}) {
      add_times(result.normal[side], TestedFlow::outward(side) * result.height[a], result.across[a]);
    }
  }
  return result;
}

std::vector<BoundaryForce> forces_on_bodies(const Problem& problem, const Grid& grid, const SumsOfBodies& sums) {
  std::vector<BoundaryForce> result;
  const auto add = [&](std::string name, int body) {
    const auto found = sums.of_body.find(body);
    ForceSums s = found == sums.of_body.end() ? ForceSums{} : found->second;
    for (Point* const part : {&s.force, &s.torque, &s.pressure, &s.viscous}) grid.add_up(std::span<double>(*part));
    result.push_back({std::move(name), s.force, s.torque, s.pressure, s.viscous});
  };
  for (int side = 0; side < 2 * grid.dim(); ++side) {
    if (problem.boundary.sides[side].kind != SideKind::periodic) add(std::string(side_names[side]), side);
  }
  for (int i = 0; i < hole_count(problem.mesh); ++i) {
    add(fmt::format("holes[{}]", i), sides_of_box + i);
  }
  return result;
}

SumsOfBodies sums_of_forces(const Grid& grid, const FlowOfForces& flow) {
  SumsOfBodies sums;
  in_agreement(grid.communicator(), [&] {
    const Bodies bodies(flow.problem.mesh, grid);
    const std::vector<double> tables = make_tables({flow.problem.order + 1, force_points(flow.problem)});
    const std::vector<FaceOfCell> all = faces_on_boundary(grid);
    sums = reduce_cells<SumsOfBodies>(std::ssize(all), [&] {
      return [&, forces = BoundaryForces(grid, flow, bodies, tables)](CellRange range, SumsOfBodies& mine) mutable {
        auto faces = std::span(all).subspan(range.begin, range.end - range.begin);
        while (!faces.empty()) {
          std::size_t count = 1;
          const auto goes_on = [&] { return faces[count].group() == faces[0].group(); };
          while (count < faces.size() && std::cmp_less(count, forces.lanes()) && goes_on()) ++count;
          forces.add(faces.first(count), mine);
          faces = faces.subspan(count);
        }
      };
    });
  });
  return sums;
}

std::vector<Record> cells_of_forces(const Grid& grid) {
  const int sides = 2 * grid.dim();
  std::vector<Record> cells;
  for (const Record cell : grid.layout().owned_cells()) {
    const auto is_inside = [&](int side) { return grid.face(cell, side) == Face::interior; };
    int inside = 0;
    for (int side = 0; side < sides; ++side) inside += is_inside(side) ? 1 : 0;
    if (inside == sides) continue;
    cells.push_back(cell);
    for (int side = 0; side < sides; ++side) {
      if (is_inside(side)) cells.push_back(grid.neighbour(cell, side));
    }
  }
  return cells;
}

std::vector<BoundaryForce> Solution::forces(const Point& about) const {
  if (problem_.equation == EquationKind::poisson) {
    throw InputError("forces: the solution of Poisson's equation has no velocity");
  }
  if (!has_forces()) {
    throw InputError(
        "forces: before its first step a flow in time has neither a pressure nor an acceleration, and a mean flow has "
        "none");
  }
  const Coefficients coefficients = equation_coefficients();
  SumOfFlows acceleration;
  if (acceleration_ != nullptr) acceleration = {{1.0}, {acceleration_->coefficients().data()}};
  const FlowOfForces flow{problem_, coefficients, this->coefficients().data(), acceleration, about};
  return forces_on_bodies(problem_, *grid_, sums_of_forces(*grid_, flow));
}

}  // namespace solenoid
