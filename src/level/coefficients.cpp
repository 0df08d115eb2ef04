#include "level/coefficients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/parallel.hpp"
#include "base/unset.hpp"
#include "element/basis.hpp"
#include "mesh/shared_records.hpp"
#include "problem/validate.hpp"

namespace solenoid {
namespace {

/// The tensor points of a rule in a cell, with weights that add up to 1.
struct CellPoints {
  std::vector<Point> place;  ///< in [0, 1] in each direction
  std::vector<double> weight;

  CellPoints(int dim, const Quadrature& rule) : place(1, Point{}), weight(1, 1.0) {
    for (int a = 0; a < dim; ++a) {
      CellPoints product;
      for (std::size_t q = 0; q < rule.points.size(); ++q) {
        for (std::size_t i = 0; i < place.size(); ++i) {
          product.place.push_back(place[i]);
          product.place.back()[a] = rule.points[q];
          product.weight.push_back(weight[i] * rule.weights[q]);
        }
      }
      *this = std::move(product);
    }
  }

 private:
  CellPoints() = default;
};

/// A coefficient of a problem, and what its values may be.
struct Coefficient {
  std::string_view entry;
  ScalarField field;
  bool may_be_zero;
  std::optional<std::array<double, 2>> cap;
};

/// Means over cells; where a coefficient is constant in a cell, that value to the last bit. `values`: gets those at the
/// points, [cell][point], unless it is nullptr. \throws InvalidEntry
std::vector<double> means(const Coefficient& coefficient, int order, const Grid& grid,
                          Unset<double>* values = nullptr) {
  const CellPoints points(grid.dim(), gauss(order + 2));
  std::vector<double> result(grid.layout().cells().size());
  if (values != nullptr) values->resize(result.size() * points.place.size());
  parallel_ranges({std::ssize(result)}, [&](CellRange cells, std::int64_t) {
    std::vector<Point> place(points.place.size());
    std::vector<double> value(place.size());
    for (auto cell = static_cast<Record>(cells.begin); cell < cells.end; ++cell) {
      const Point corner = grid.corner(cell);
      const Point widths = grid.widths(cell);
      for (std::size_t q = 0; q < place.size(); ++q) {
        for (int a = 0; a < grid.dim(); ++a) place[q][a] = corner[a] + widths[a] * points.place[q][a];
        if (grid.metric().map() != nullptr) place[q] = grid.metric().map()->at(place[q]);
      }
      coefficient.field.evaluate(place, value);
      double more = 0.0;  // than at the first point
      for (std::size_t q = 0; q < value.size(); ++q) {
        if (!(value[q] > 0.0 || (coefficient.may_be_zero && value[q] == 0.0))) {
          throw InvalidEntry(std::string(coefficient.entry),
                             fmt::format("must be {} everywhere, got {} at the point ({:.6g}, {:.6g}, {:.6g})",
                                         coefficient.may_be_zero ? "zero or positive" : "positive", value[q],
                                         place[q][0], place[q][1], place[q][2]));
        }
        if (coefficient.cap) value[q] = std::clamp(value[q], (*coefficient.cap)[0], (*coefficient.cap)[1]);
        more += points.weight[q] * (value[q] - value[0]);
      }
      result[cell] = value[0] + more;
      if (values != nullptr) std::copy(value.begin(), value.end(), values->begin() + cell * std::ssize(value));
    }
  });
  return result;
}

/// Numbers of cells, of which ghosts get what their owners have.
void bring_ghosts(const Grid& grid, std::span<std::vector<double>* const> fields) {
  using Message = Communicator::Message;
  const ExchangePlan plan(grid);
  std::vector<std::vector<double>> sent;
  std::vector<std::vector<double>> received;
  std::vector<Message> sends;
  std::vector<Message> receives;
  const auto message = [](int rank, std::vector<double>& numbers) {
    return Message{rank, reinterpret_cast<std::byte*>(numbers.data()), numbers.size() * sizeof(double)};
  };
  const auto for_cells = [&](const std::vector<Record>& records, const auto& visit) {
    for (std::vector<double>* const field : fields) {
      for (const Record record : records) {
        if (grid.layout().is_cell(record)) visit((*field)[record]);
      }
    }
  };
  for (const auto& [rank, mine, theirs] : plan.neighbours) {
    for_cells(mine, [&, &numbers = sent.emplace_back()](double value) { numbers.push_back(value); });
    for_cells(theirs, [&numbers = received.emplace_back()](double) { numbers.emplace_back(); });
  }
  for (std::size_t i = 0; i < plan.neighbours.size(); ++i) {
    sends.push_back(message(plan.neighbours[i].rank, sent[i]));
    receives.push_back(message(plan.neighbours[i].rank, received[i]));
  }
  grid.partition()->communicator().exchange(sends, receives);
  for (std::size_t i = 0; i < plan.neighbours.size(); ++i) {
    auto next = received[i].begin();
    for_cells(plan.neighbours[i].receives, [&](double& value) { value = *next++; });
  }
}

/// Numbers of the cells of a grid that ranks share, on the whole grid.
std::vector<double> gathered(const std::vector<double>& field, const GatherPlan& plan, const Grid& shared,
                             const Grid& whole) {
  const Communicator& ranks = shared.partition()->communicator();
  // Hat-only records count, too, with any number.
  std::vector<double> mine;
  for (const Record record : plan.mine) mine.push_back(shared.layout().is_cell(record) ? field[record] : 0.0);
  std::vector<std::size_t> bytes;
  for (const std::size_t count : plan.counts) bytes.push_back(count * sizeof(double));
  std::vector<double> all(plan.all.size());
  ranks.gather_all(std::as_bytes(std::span(mine)), bytes, reinterpret_cast<std::byte*>(all.data()));
  std::vector<double> result(whole.layout().cells().size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (whole.layout().is_cell(plan.all[i])) result[plan.all[i]] = all[i];
  }
  return result;
}

std::vector<double> copies_of(const std::vector<double>& values, int count) {
  std::vector<double> result;
  result.reserve(values.size() * count);
  for (int i = 0; i < count; ++i) result.insert(result.end(), values.begin(), values.end());
  return result;
}

}  // namespace

bool CellCoefficients::operator==(const CellCoefficients& other) const {
  const bool same_points =
      points == other.points || (points != nullptr && other.points != nullptr && *points == *other.points);
  return same_points && viscosity == other.viscosity && reaction == other.reaction;
}

bool are_same(const Coefficients& a, const Coefficients& b, const Grid& grid) {
  if (a.viscosity != b.viscosity || a.reaction != b.reaction || a.coupling != b.coupling) return false;
  if (a.by_cell == nullptr || b.by_cell == nullptr) return a.by_cell == b.by_cell;
  const bool same = a.by_cell == b.by_cell || *a.by_cell == *b.by_cell;
  return grid.communicator() == nullptr ? same : grid.communicator()->all(same);
}

double largest_reaction(const Coefficients& coefficients, const Grid& grid) {
  if (coefficients.by_cell == nullptr) return coefficients.reaction;
  double largest = 0.0;
  for (const double reaction : coefficients.by_cell->reaction) largest = std::max(largest, reaction);
  if (grid.communicator() != nullptr) grid.communicator()->maximum({&largest, 1});
  return largest;
}

Coefficients coefficients_of(const Problem& problem) { return {problem.viscosity, problem.mass}; }

Coefficients coefficients_of(const Problem& problem, const Grid& grid) {
  if (!has_coefficients_by_cell(problem)) return coefficients_of(problem);
  const auto by_cell = std::make_shared<CellCoefficients>();
  const Coefficient viscosity{"viscosity", viscosity_field(problem), false, problem.viscosity_cap};
  Unset<double> values;
  const bool with_points = problem.viscosity_points == ViscosityPlaces::gauss;
  by_cell->viscosity = means(viscosity, problem.order, grid, with_points ? &values : nullptr);
  if (with_points) {
    by_cell->points = std::make_shared<const ViscosityPoints>(grid.dim(), problem.order, std::move(values));
  }
  by_cell->reaction = means({"mass", mass_field(problem), true, {}}, problem.order, grid);
  return {.by_cell = by_cell};
}

Coefficients coarse_coefficients(const Coefficients& fine, const Grid& fine_grid, const Coarsening& pairs,
                                 const Grid& coarse) {
  if (fine.by_cell == nullptr) return fine;
  if (fine_grid.partition() != nullptr && coarse.partition() == nullptr) {
    const Grid shared = fine_grid.coarsen(pairs);
    return whole_coefficients(coarse_coefficients(fine, fine_grid, pairs, shared), shared, coarse);
  }
  const auto by_cell = std::make_shared<CellCoefficients>();
  by_cell->viscosity.resize(coarse.layout().cells().size());
  by_cell->reaction.resize(coarse.layout().cells().size());
  for (const Record cell : coarse.layout().owned_cells()) {
    const auto& position = coarse.position(cell);
    int children = 0;
    for (int bits = 0; bits < 1 << coarse.dim(); ++bits) {
      std::array<int, 3> place{};
      bool exists = true;
      for (int a = 0; a < coarse.dim(); ++a) {
        const int bit = bits >> a & 1;
        exists = exists && bit < pairs.children(a, position[a]);
        place[a] = pairs.first_child(a, position[a]) + bit;
      }
      if (!exists) continue;
      const Record child = fine_grid.at(place);
      by_cell->viscosity[cell] += fine.by_cell->viscosity[child];
      by_cell->reaction[cell] += fine.by_cell->reaction[child];
      ++children;
    }
    by_cell->viscosity[cell] /= children;
    by_cell->reaction[cell] /= children;
  }
  if (coarse.partition() != nullptr) {
    bring_ghosts(coarse, std::array{&by_cell->viscosity, &by_cell->reaction});
  }
  Coefficients result = fine;
  result.by_cell = by_cell;
  return result;
}

Coefficients whole_coefficients(const Coefficients& coefficients, const Grid& shared, const Grid& whole) {
  if (coefficients.by_cell == nullptr) return coefficients;
  const GatherPlan plan(shared, whole);
  const auto on_whole = [&](const std::vector<double>& field) { return gathered(field, plan, shared, whole); };
  Coefficients result = coefficients;
  result.by_cell = std::make_shared<const CellCoefficients>(
      CellCoefficients{on_whole(coefficients.by_cell->viscosity), on_whole(coefficients.by_cell->reaction), {}});
  return result;
}

Coefficients copied(const Coefficients& coefficients, int count) {
  if (coefficients.by_cell == nullptr) return coefficients;
  Coefficients result = coefficients;
  result.by_cell = std::make_shared<const CellCoefficients>(CellCoefficients{
      copies_of(coefficients.by_cell->viscosity, count), copies_of(coefficients.by_cell->reaction, count), {}});
  return result;
}

}  // namespace solenoid
