#include "solenoid/arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/cuda_array.hpp"
#include "base/parallel.hpp"
#include "element/basis.hpp"
#include "image/array_file.hpp"
#include "mesh/grid.hpp"
#include "mesh/metric.hpp"
#include "mesh/record.hpp"
#include "problem/names.hpp"
#include "problem/point_array.hpp"
#include "problem/validate.hpp"
#include "problem/vectors.hpp"
#include "solenoid/cellwise.hpp"
#include "solenoid/error.hpp"
#include "solenoid/image.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/field_evaluator.hpp"
#include "solution/gradients.hpp"
#include "solution/joined.hpp"

namespace solenoid {
namespace {

using Counts = std::array<int, 3>;

constexpr int most_points = 16;

/// \throws InputError unless there are so many Gauss points.
void require_points(int points) {
  if (points >= 1 && points <= most_points) return;
  throw InputError(fmt::format("points: expected 1 to {} per direction in a cell, got {}", most_points, points));
}

/// \throws InputError if there are no such points.
void check(const ArrayPoints& at) {
  validate(at.mesh);
  require_points(at.points);
  if (at.side >= -1 && at.side < 2 * at.mesh.dim) return;
  throw InputError(
      fmt::format("side: expected 0 to {}, or -1 for points in cells, got {}", 2 * at.mesh.dim - 1, at.side));
}

/// Where in an array the place (i, j, k) lies, with one component.
std::size_t index(const Counts& count, int i, int j, int k) {
  return (static_cast<std::size_t>(i) * count[1] + j) * count[2] + k;
}

/// In each cell a polynomial through values at Gauss points.
class Interpolant {
 public:
  explicit Interpolant(const ArrayPoints& at, std::shared_ptr<const PointArray> array)
      : metric_(Metric::of(at.mesh)),
        polynomial_(at.points),
        count_(array->shape().count),
        components_(array->shape().components),
        array_(std::move(array)) {
    for (int a = 0; a < 3; ++a) has_axis_[a] = a < at.mesh.dim && a != normal_of(at);
  }

  /// The direction in which there is one point; -1: none.
  static int normal_of(const ArrayPoints& at) { return at.side < 0 ? -1 : at.side / 2; }

  [[nodiscard]] bool has_boxes() const { return metric_.map() == nullptr; }
  /// Coordinates are those of boxes, as axes_of() has them.
  void evaluate(const Axes& axes, int component, std::span<double> values) const {
    const std::vector<double>& values_of_array = array_->values();
    std::array<Line, 3> lines;
    for (int a = 0; a < 3; ++a) lines[a] = line(a, axes[a]);
    const auto& [x, y, z] = lines;
    // One direction after the other: values [x][y][z] at coordinates of those that are done, at points of the others.
    std::vector<double> along_x;
    for (const Place& at : x.places) {
      for (int j = y.begin; j < y.end; ++j) {
        for (int k = z.begin; k < z.end; ++k) {
          along_x.push_back(
              at.sum([&](int i) { return values_of_array[index(count_, i, j, k) * components_ + component]; }));
        }
      }
    }
    const int depth = z.end - z.begin;
    std::vector<double> along_xy;
    for (std::size_t i = 0; i < x.places.size(); ++i) {
      const double* const from = &along_x[i * (y.end - y.begin) * depth];
      for (const Place& at : y.places) {
        for (const double* column = from; column < from + depth; ++column) {
          along_xy.push_back(at.sum([&](int j) { return column[(j - y.begin) * depth]; }));
        }
      }
    }
    const std::size_t row = x.places.size();
    for (std::size_t i = 0; i < row * y.places.size(); ++i) {
      const std::size_t to = i / y.places.size() + i % y.places.size() * row;
      const double* const from = &along_xy[i * depth];
      for (std::size_t k = 0; k < z.places.size(); ++k) {
        values[to + k * row * y.places.size()] = z.places[k].sum([&](int l) { return from[l - z.begin]; });
      }
    }
  }
  void evaluate(std::span<const Point> points, int component, std::span<double> values) const {
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto& [x, y, z] = metric_.map() == nullptr ? points[i] : metric_.map()->pulled_back(points[i]);
      evaluate(Axes{std::span(&x, 1), std::span(&y, 1), std::span(&z, 1)}, component, values.subspan(i, 1));
    }
  }

 private:
  /// Of a coordinate: the first point of its cell, and what each point of the cell counts.
  struct Place {
    int first = 0;
    std::vector<double> weights{1.0};

    /// Of value(i) over the points of the cell.
    template <class Value>
    [[nodiscard]] double sum(const Value& value) const {
      double result = 0.0;
      for (std::size_t q = 0; q < weights.size(); ++q) result += weights[q] * value(first + static_cast<int>(q));
      return result;
    }
  };
  /// Coordinates along a direction, and the points of all their cells.
  struct Line {
    std::vector<Place> places;
    int begin = std::numeric_limits<int>::max();
    int end = 0;
  };
  [[nodiscard]] Line line(int a, std::span<const double> axis) const {
    Line result;
    for (const double x : axis) {
      const Place& at = result.places.emplace_back(place(a, x));
      result.begin = std::min(result.begin, at.first);
      result.end = std::max(result.end, at.first + static_cast<int>(at.weights.size()));
    }
    return result;
  }

  [[nodiscard]] Place place(int a, double x) const {
    if (!has_axis_[a]) return {};
    const double t = metric_.lattice_coordinate(a, x);
    const int cell = std::clamp(static_cast<int>(std::floor(t)), 0, metric_.extent(a) - 1);
    return {cell * polynomial_.points(), polynomial_.at(t - cell)};
  }

  Metric metric_;
  GaussInterpolation polynomial_;
  std::array<bool, 3> has_axis_{};
  Counts count_;
  std::size_t components_;
  std::shared_ptr<const PointArray> array_;
};

/// Of an array of so many components.
PointArray::Shape shape_of(const ArrayPoints& at, int components) {
  const Metric metric = Metric::of(at.mesh);
  PointArray::Shape shape{at.points, {1, 1, 1}, components, at.side < 0};
  for (int a = 0; a < at.mesh.dim; ++a) {
    shape.lower[a] = metric.plane(a, 0);
    shape.upper[a] = metric.plane(a, metric.extent(a));
    if (a != Interpolant::normal_of(at)) shape.count[a] = metric.extent(a) * at.points;
  }
  return shape;
}

}  // namespace

std::array<std::vector<double>, 3> axes_of(const ArrayPoints& at) {
  check(at);
  const Metric metric = Metric::of(at.mesh);
  const Quadrature rule = gauss(at.points);
  std::array<std::vector<double>, 3> axes{{{0.0}, {0.0}, {0.0}}};
  for (int a = 0; a < at.mesh.dim; ++a) {
    axes[a].clear();
    if (a == Interpolant::normal_of(at)) {
      axes[a].push_back(metric.plane(a, at.side % 2 == 0 ? 0 : metric.extent(a)));
      continue;
    }
    for (int i = 0; i < metric.extent(a); ++i) {
      for (const double xi : rule.points) axes[a].push_back(metric.plane(a, i) + metric.width(a, i) * xi);
    }
  }
  return axes;
}

std::size_t array_size(const ArrayPoints& at, int components) {
  check(at);
  return shape_of(at, components).size();
}

std::vector<Point> points_of(const ArrayPoints& at) {
  const auto axes = axes_of(at);
  const Metric metric = Metric::of(at.mesh);
  std::vector<Point> points;
  points.reserve(axes[0].size() * axes[1].size() * axes[2].size());
  for (const double x : axes[0]) {
    for (const double y : axes[1]) {
      for (const double z : axes[2]) {
        points.push_back(metric.map() == nullptr ? Point{x, y, z} : metric.map()->at({x, y, z}));
      }
    }
  }
  return points;
}

namespace {

/// \throws InputError unless an array has so many numbers.
PointArray::Shape checked_shape(const ArrayPoints& at, int components, std::size_t given, const std::string& label) {
  check(at);
  const PointArray::Shape shape = shape_of(at, components);
  if (given == shape.size()) return shape;
  throw InputError(fmt::format("{}: expected {} numbers, {} component{} at {} points, got {}", label, shape.size(),
                               components, components == 1 ? "" : "s", fmt::join(shape.count, " x "), given));
}

/// The components of an array as fields.
std::vector<ScalarField> components_of(const ArrayPoints& at, const std::shared_ptr<const PointArray>& array,
                                       const std::string& label) {
  const int components = array->shape().components;
  const auto interpolant = std::make_shared<const Interpolant>(at, array);
  std::vector<ScalarField> fields;
  for (int c = 0; c < components; ++c) {
    const std::string name = components == 1 ? label : fmt::format("{}[{}]", label, c);
    const ScalarField::Bulk at_points = [interpolant, c](std::span<const Point> points, std::span<double> to) {
      interpolant->evaluate(points, c, to);
    };
    if (interpolant->has_boxes()) {
      fields.emplace_back(
          at_points, [interpolant, c](const Axes& axes, std::span<double> to) { interpolant->evaluate(axes, c, to); },
          array, c, name);
    } else {
      fields.emplace_back(at_points, name);
    }
  }
  return fields;
}

std::vector<ScalarField> components_of(const ArrayPoints& at, int components, std::vector<double> values,
                                       const std::string& label) {
  const PointArray::Shape shape = checked_shape(at, components, values.size(), label);
  return components_of(at, std::make_shared<const PointArray>(shape, std::move(values)), label);
}

/// "4 x 8 x 2": how an array is written whose last index is the fastest.
std::string product(std::vector<std::int64_t> extent) {
  std::reverse(extent.begin(), extent.end());
  return fmt::format("{}", fmt::join(extent, " x "));
}

/// Components of an array in a file, one or one for each direction: values at Gauss points, or numbers for cells.
std::vector<ScalarField> read_components(const Mesh& mesh, const FieldFile& from, bool vector) {
  check({mesh, from.points});
  const ArrayFile array = open_array(from.file, from.dataset);
  const std::size_t dim = mesh.dim;
  if (array.extent.size() != dim + (vector ? 1 : 0) || (vector && array.extent.back() != mesh.dim)) {
    throw InputError(fmt::format("the array is {}, expected [{}{}]{}", product(array.extent),
                                 vector ? "component, " : "", dim == 2 ? "y, x" : "z, y, x",
                                 vector ? fmt::format(" with {} components", dim) : ""));
  }
  std::array<std::int64_t, 3> extent{1, 1, 1};
  std::copy_n(array.extent.begin(), dim, extent.begin());
  Counts at_points{1, 1, 1};
  for (std::size_t a = 0; a < dim; ++a) at_points[a] = (mesh.cells[a] << mesh.refine) * from.points;
  if (from.points > 1 && !std::equal(extent.begin(), extent.end(), at_points.begin())) {
    throw InputError(fmt::format("the array has {} values, expected {} with {} points per direction in each cell",
                                 product({extent.begin(), extent.begin() + mesh.dim}),
                                 product({at_points.begin(), at_points.begin() + mesh.dim}), from.points));
  }
  const std::vector<double> values = read_all(array);
  const std::size_t size = extent[0] * extent[1] * extent[2];
  std::vector<ScalarField> fields;
  for (std::size_t first = 0; first < values.size(); first += size) {
    std::vector<double> component(values.begin() + first, values.begin() + first + size);
    if (from.points == 1) {
      fields.push_back(cellwise(mesh, extent, std::move(component)));
      continue;
    }
    fields.push_back(scalar_field_of_file({mesh, from.points}, component, ""));
  }
  return fields;
}

/// The same; what is wrong is said of the file.
std::vector<ScalarField> read_file(const Mesh& mesh, const FieldFile& from, bool vector) {
  try {
    return read_components(mesh, from, vector);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", from.file.string(), error.what()));
  }
}

}  // namespace

VectorField field_of(const ArrayPoints& at, std::vector<double> values, const std::string& label) {
  VectorField field;
  std::ranges::copy(components_of(at, at.mesh.dim, std::move(values), label), field.begin());
  return field;
}

VectorField field_of(const ArrayPoints& at, const DeviceArray& values, const std::string& label) {
  const PointArray::Shape shape = checked_shape(at, at.mesh.dim, values.size, label);
  if (values.data == nullptr) throw InputError(fmt::format("{}: there is no array", label));
  const auto fetch = [values](double* host) { copy_from_cuda(host, values.data, values.size * sizeof(double)); };
  VectorField field;
  std::ranges::copy(components_of(at, std::make_shared<const PointArray>(shape, values.data, fetch), label),
                    field.begin());
  return field;
}

ScalarField scalar_field_of(const ArrayPoints& at, std::vector<double> values, const std::string& label) {
  return components_of(at, 1, std::move(values), label)[0];
}

ScalarField scalar_field_of_file(const ArrayPoints& at, const std::vector<double>& values, const std::string& label) {
  Counts count{1, 1, 1};
  for (int a = 0; a < at.mesh.dim; ++a) count[a] = (at.mesh.cells[a] << at.mesh.refine) * at.points;
  std::vector<double> z_fastest(values.size());
  auto next = values.begin();
  for (int k = 0; k < count[2]; ++k) {
    for (int j = 0; j < count[1]; ++j) {
      for (int i = 0; i < count[0]; ++i) z_fastest[index(count, i, j, k)] = *next++;
    }
  }
  return scalar_field_of(at, std::move(z_fastest), label);
}

VectorField read_field(const Mesh& mesh, const FieldFile& from) {
  VectorField field;
  std::ranges::copy(read_file(mesh, from, true), field.begin());
  return field;
}

ScalarField read_scalar_field(const Mesh& mesh, const FieldFile& from) { return read_file(mesh, from, false)[0]; }

namespace {

/// Numbers of a solution at m points per direction of all cells, on a side in its faces: NaN where there is none.
/// make_fill(xi) makes, for each thread, what fills in the numbers of a cell, fill(cell, numbers), for one point after
/// the other, x fastest.
template <class MakeFill>
std::vector<double> values_at(const Solution& solution, int points, int side, std::size_t components,
                              const MakeFill& make_fill) {
  require_points(points);
  const Grid& grid = solution.grid();
  const int normal = side < 0 ? -1 : side / 2;
  const bool upper = side >= 0 && side % 2 == 1;
  Counts cells{1, 1, 1};
  Counts per_cell{1, 1, 1};
  Counts count{1, 1, 1};
  TensorPoints xi{{{0.0}, {0.0}, {0.0}}};
  for (int a = 0; a < grid.dim(); ++a) {
    if (a == normal) {
      xi[a] = {upper ? 1.0 : 0.0};
      continue;
    }
    cells[a] = grid.extent()[a];
    per_cell[a] = points;
    count[a] = cells[a] * points;
    xi[a] = gauss(points).points;
  }
  const auto size = [](const Counts& of) { return static_cast<std::size_t>(of[0]) * of[1] * of[2]; };
  std::vector<double> values(size(count) * components, 0.0);
  std::vector<double> found(size(cells), 0.0);
  /// visit(first number of a point) for the points of a cell, x fastest.
  const auto for_points = [&](const Counts& cell, const auto& visit) {
    for (int k = cell[2] * per_cell[2]; k < (cell[2] + 1) * per_cell[2]; ++k) {
      for (int j = cell[1] * per_cell[1]; j < (cell[1] + 1) * per_cell[1]; ++j) {
        for (int i = cell[0] * per_cell[0]; i < (cell[0] + 1) * per_cell[0]; ++i) {
          visit(&values[index(count, i, j, k) * components]);
        }
      }
    }
  };
  in_agreement(grid.communicator(), [&] {
    const Ranges ranges{grid.layout().owned_cells().size(), 1024};
    parallel_for(ranges.number(), [&] {
      std::vector<double> in_cell(size(per_cell) * components);
      return [&, fill = make_fill(xi), in_cell = std::move(in_cell)](std::int64_t i) mutable {
        for (std::int64_t cell = ranges[i].begin; cell < ranges[i].end; ++cell) {
          Counts at{};
          std::ranges::copy(grid.position(static_cast<Record>(cell)), at.begin());
          if (normal >= 0 && std::exchange(at[normal], 0) != (upper ? grid.extent()[normal] - 1 : 0)) continue;
          fill(cell, in_cell.data());
          found[index(cells, at[0], at[1], at[2])] = 1.0;
          const double* from = in_cell.data();
          for_points(at, [&](double* to) {
            std::copy_n(from, components, to);
            from += components;
          });
        }
      };
    });
  });
  grid.add_up<double>(values);
  grid.add_up<double>(found);
  for (int i = 0; i < cells[0]; ++i) {
    for (int j = 0; j < cells[1]; ++j) {
      for (int k = 0; k < cells[2]; ++k) {
        if (found[index(cells, i, j, k)] != 0.0) continue;
        for_points({i, j, k},
                   [&](double* to) { std::fill_n(to, components, std::numeric_limits<double>::quiet_NaN()); });
      }
    }
  }
  return values;
}

/// The same of what numbers(flow at a point, its numbers) makes.
template <class Numbers>
std::vector<double> made_at(const Solution& solution, int points, int side, std::size_t components,
                            const Numbers& numbers) {
  require_velocity(solution.problem());
  return values_at(solution, points, side, components, [&](const TensorPoints& xi) {
    FieldEvaluator evaluator(solution);
    evaluator.set_points(xi);
    return [evaluator, components, &numbers](std::int64_t cell, double* to) mutable {
      evaluator.for_points(cell, [&](std::size_t q, const FlowAtPoint& at) { numbers(at, to + q * components); });
    };
  });
}

/// The entries of a tensor that there are in so many dimensions.
void copy_tensor(const Gradient& tensor, int dim, double* to) {
  for (int c = 0; c < dim; ++c) std::copy_n(tensor[c].begin(), dim, to + static_cast<std::ptrdiff_t>(c) * dim);
}

}  // namespace

std::vector<double> velocity_at(const Solution& solution, int points) {
  require_velocity(solution.problem());
  return values_at(solution, points, -1, solution.grid().dim(), [&](const TensorPoints& xi) {
    CellEvaluator evaluator(solution);
    evaluator.set_points(xi);
    return [evaluator](std::int64_t cell, double* u) mutable { evaluator.velocity(cell, u); };
  });
}

std::vector<double> pressure_at(const Solution& solution, int points) {
  return values_at(solution, points, -1, 1, [&](const TensorPoints& xi) {
    CellEvaluator evaluator(solution);
    evaluator.set_points(xi);
    return [evaluator](std::int64_t cell, double* p) mutable { evaluator.pressure(cell, p); };
  });
}

std::vector<double> gradient_at(const Solution& solution, int points) {
  const int dim = solution.grid().dim();
  return made_at(solution, points, -1, static_cast<std::size_t>(dim) * dim,
                 [dim](const FlowAtPoint& at, double* to) { copy_tensor(at.gradient, dim, to); });
}

int field_components(FlowField field, int dim) { return is_tensor(field) ? dim * dim : parts_of(field, dim).count; }

std::vector<double> field_at(const Solution& solution, FlowField field, int points) {
  const int dim = solution.grid().dim();
  const std::size_t components = field_components(field, dim);
  if (!is_tensor(field)) {
    return made_at(solution, points, -1, components, [=](const FlowAtPoint& at, double* to) {
      std::copy_n(value_of(field, at).begin() + parts_of(field, dim).first, components, to);
    });
  }
  return made_at(solution, points, -1, components, [=](const FlowAtPoint& at, double* to) {
    copy_tensor(field == FlowField::stress ? stress_of(at) : strain_rate_of(at.gradient), dim, to);
  });
}

std::vector<double> normal_stress_at(const Solution& solution, int side, int points) {
  const Problem& problem = solution.problem();
  check({problem.mesh, points, side});
  if (side < 0 || problem.boundary.sides[side].kind == SideKind::periodic) {
    throw InputError(fmt::format("side: expected one that is not periodic, got {}",
                                 side < 0 ? std::to_string(side) : std::string(side_names[side])));
  }
  const int a = side / 2;
  Point normal{};
  normal[a] = 1.0;
  if (const AffineMap* const map = solution.grid().metric().map(); map != nullptr) {
    for (double& x : normal) x = 0.0;
    add_times(normal, map->height(a, 1.0), map->inverse()[a]);
  }
  return made_at(solution, points, side, 1, [normal](const FlowAtPoint& at, double* to) {
    const Gradient stress = stress_of(at);
    *to = 0.0;
    for (int c = 0; c < 3; ++c) *to += normal[c] * dot_product(stress[c], normal);
  });
}

namespace {

/// visit(position, flux) for the faces across `axis` of cells: the lower one, and the upper one if it is not the lower
/// one of another cell on this side of the domain. A face has the lattice position of the cell above it.
template <class Visit>
void for_fluxes(const Solution& solution, int axis, CellRange cells, const Visit& visit) {
  const Grid& grid = solution.grid();
  const int order = solution.problem().order;
  const int record = record_size(grid.dim(), order);
  // Of the values on a face the constant one has an integral, as in Solution::flux().
  const std::int64_t constant = std::int64_t{interleave} * axis * power(order + 1, grid.dim());
  for (auto cell = static_cast<Record>(cells.begin); cell < cells.end; ++cell) {
    const Point widths = grid.widths(cell);
    double scale = 1.0;
    for (int b = 0; b < grid.dim(); ++b) scale *= std::pow(widths[b], b == axis ? -0.5 : 0.5);
    const auto flux = [&](Record from) {
      return scale * solution.coefficients()[record_offset(from, record) + constant];
    };
    std::array<int, 3> at{};
    std::ranges::copy(grid.position(cell), at.begin());
    visit(at, flux(cell));
    const Record above = grid.neighbour(cell, 2 * axis + 1);
    ++at[axis];
    if (at[axis] == grid.extent()[axis] || !grid.layout().is_cell(above)) visit(at, flux(above));
  }
}

}  // namespace

std::array<std::vector<double>, 3> face_fluxes(const Solution& solution) {
  require_velocity(solution.problem());
  const Grid& grid = solution.grid();
  std::array<std::vector<double>, 3> fluxes;
  for (int a = 0; a < grid.dim(); ++a) {
    Counts count = grid.extent();
    ++count[a];
    fluxes[a].assign(static_cast<std::size_t>(count[0]) * count[1] * count[2], 0.0);
    parallel_ranges({grid.layout().owned_cells().size()}, [&](CellRange cells, std::int64_t) {
      for_fluxes(solution, a, cells, [&](const std::array<int, 3>& at, double flux) {
        fluxes[a][index(count, at[0], at[1], at[2])] = flux;
      });
    });
    grid.add_up<double>(fluxes[a]);
  }
  return fluxes;
}

std::int64_t face_flux_count(const Mesh& mesh, int a) {
  std::int64_t count = 1;
  for (int b = 0; b < mesh.dim; ++b) count *= (mesh.cells[b] << mesh.refine) + (b == a ? 1 : 0);
  return count;
}

std::vector<double> plane_fluxes(const Solution& solution, int axis) {
  require_velocity(solution.problem());
  const Grid& grid = solution.grid();
  const int planes = grid.extent()[axis] + 1;
  const Ranges ranges{grid.layout().owned_cells().size(), 1 << 18};
  std::vector<double> of_range(static_cast<std::size_t>(ranges.number()) * planes, 0.0);
  parallel_ranges(ranges, [&](CellRange cells, std::int64_t i) {
    double* const mine = &of_range[i * planes];
    for_fluxes(solution, axis, cells, [&](const std::array<int, 3>& at, double flux) { mine[at[axis]] += flux; });
  });
  std::vector<double> fluxes(planes, 0.0);
  for (std::int64_t i = 0; i < ranges.number(); ++i) {
    for (int plane = 0; plane < planes; ++plane) fluxes[plane] += of_range[i * planes + plane];
  }
  grid.add_up<double>(fluxes);
  return fluxes;
}

}  // namespace solenoid
