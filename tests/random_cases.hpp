#pragma once
/// \file
/// Random cases: everything that a case file can say of domain, sides, coefficients and solver, drawn from one seed; or
/// those of coefficients that vary and cells that are parallelepipeds.
///
/// A draw is the text of a case file, so that what fails can be handed to `solenoid solve`; a few settings that have no
/// key are applied on top of it and named in comments. Draws are not filtered: the program's own validation refuses
/// those that make no sense, domains in several parts for example.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mesh/record.hpp"
#include "solenoid/case.hpp"

namespace solenoid::test {

/// A whole number from the environment, how many cases to draw for example.
inline int setting(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoi(value);
}

struct RandomCase {
  std::uint64_t seed = 0;
  std::string file;  ///< the text of a complete case file
  // What has no key in it.
  Precision precision = Precision::mixed;
  std::uint64_t random_load = 0;
  int cycle_index = 0;
  double coarse_penalty = 0.0;
  bool all_levels = false;

  /// \throws InputError if validation refuses the case.
  [[nodiscard]] Case read() const {
    Case result = parse_case(file, fmt::format("seed {}", seed));
    SolverOptions& options = result.solver;
    options.precision = precision;
    options.random_load = random_load;
    if (cycle_index != 0) options.multigrid.cycle_index = cycle_index;
    if (coarse_penalty != 0.0) options.multigrid.coarse_penalty = coarse_penalty;
    options.multigrid.all_levels = options.multigrid.all_levels || all_levels;
    return result;
  }
};

/// Numbers from a seed, the same with every standard library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}

  double between(double lower, double upper) {
    return lower + (upper - lower) * static_cast<double>(bits_() >> 11) * 0x1p-53;
  }
  /// Both ends included.
  int between(int lower, int upper) {
    return lower + static_cast<int>(bits_() % static_cast<std::uint64_t>(upper - lower + 1));
  }
  /// Equally often in every decade, rounded to three digits.
  double decades(double lower, double upper) { return rounded(std::pow(10.0, between(lower, upper))); }
  bool chance(double probability) { return between(0.0, 1.0) < probability; }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[between(0, static_cast<int>(choices.size()) - 1)];
  }
  std::uint64_t word() { return bits_(); }

  static double rounded(double value) { return std::stod(fmt::format("{:.2e}", value)); }

 private:
  std::mt19937_64 bits_;
};

enum class Draws { constant, varying };

/// Draws the case of a seed with, but for what holes take, at most `most` unknowns and at least `fewest` where a
/// refinement gives so many.
class CaseDraw {
 public:
  CaseDraw(std::uint64_t seed, std::int64_t fewest, std::int64_t most, Draws draws)
      : varies_(draws == Draws::varying), dice_(seed * 0x9e3779b97f4a7c15U + most + (varies_ ? 1 : 0)) {
    draw_.seed = seed;
    equation(most);
    mesh(fewest, most);
    physics();
    sides();
    solver();
  }

  [[nodiscard]] const RandomCase& result() const { return draw_; }

 private:
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... values) {
    draw_.file += fmt::format(format, std::forward<T>(values)...) + '\n';
  }
  [[nodiscard]] bool poisson() const { return equation_ == EquationKind::poisson; }
  /// "[a, b]" or "[a, b, c]".
  template <class Values>
  [[nodiscard]] std::string list(const Values& values) const {
    return fmt::format("[{}]", fmt::join(values.begin(), values.begin() + dim_, ", "));
  }

  /// What the build has, with orders for which a patch is a small part of the mesh.
  void equation(std::int64_t most) {
    equation_ = dice_.chance(0.25) && !varies_ ? EquationKind::poisson : EquationKind::stokes;
    dim_ = dice_.between(2, 3);
    std::vector<int> orders;
    for (const int dim : {dim_, 5 - dim_}) {
      for (const int order : available_orders(dim, equation_)) {
        if (varies_ && order == 0) continue;  // neither has it
        if (std::int64_t{record_size(dim, order, equation_)} << dim <= most / 5) orders.push_back(order);
      }
      dim_ = dim;
      if (!orders.empty()) break;
    }
    if (!orders.empty()) order_ = dice_.one_of(orders);
  }

  void mesh(std::int64_t fewest, std::int64_t most) {
    for (int a = 0; a < dim_; ++a) cells_[a] = dice_.between(1, 4);
    const auto unknowns = [&](int refine) {
      return (std::int64_t{cells_[0]} * cells_[1] * cells_[2] << (dim_ * refine)) *
             record_size(dim_, order_, equation_);
    };
    while (unknowns(1) > most) *std::max_element(cells_.begin(), cells_.end()) /= 2;
    const double wanted = std::pow(10.0, dice_.between(std::log10(fewest), std::log10(most)));
    while (static_cast<double>(unknowns(refine_ + 1)) <= wanted ||
           (unknowns(refine_) < fewest && unknowns(refine_ + 1) <= most)) {
      ++refine_;
    }
    if (refine_ == 0 && !dice_.chance(0.1)) refine_ = 1;

    // Boxes up to eight times as long as wide.
    const double side = dice_.decades(-1.0, 1.0);
    const bool cubes = dice_.chance(0.4);
    for (int a = 0; a < dim_; ++a) {
      box_[a] = cubes ? side : Dice::rounded(side * std::pow(2.0, dice_.between(0.0, 3.0)));
      lower_[a] = dice_.chance(0.5) ? 0.0 : Dice::rounded(dice_.between(-2.0, 2.0));
      upper_[a] = lower_[a] + cells_[a] * box_[a];
    }
    line("[mesh]");
    if (varies_ && dice_.chance(0.5)) {
      edges();
    } else {
      line("lower = {}", list(lower_));
      line("upper = {}", list(upper_));
    }
    line("cells = {}", list(cells_));
    line("refine = {}", refine_);
    if (cells_[0] * cells_[1] * cells_[2] > 2 && dice_.chance(0.5)) holes();
    line("\n[element]\norder = {}", order_);
  }

  /// Of parallelepipeds: nearer to the axes than to the planes between them.
  void edges() {
    sheared_ = true;
    std::vector<std::string> all;
    for (int a = 0; a < dim_; ++a) {
      std::array<double, 3> edge{};
      for (int b = 0; b < dim_; ++b) {
        const double lean = dice_.between(-0.9, 0.9) / (dim_ - 1);
        edge[b] = Dice::rounded(cells_[a] * box_[a] * (a == b ? 1.0 : lean));
      }
      all.push_back(list(edge));
    }
    line("origin = {}", list(lower_));
    line("edges = [{}]", fmt::join(all, ", "));
  }

  /// Up to three boxes, wherever they are: the rest need not be connected.
  void holes() {
    std::vector<std::string> all;
    for (int count = dice_.between(1, 3); count > 0; --count) {
      std::array<int, 3> lower{};
      std::array<int, 3> upper{1, 1, 1};
      for (int a = 0; a < dim_; ++a) {
        lower[a] = dice_.between(0, cells_[a] - 1);
        upper[a] = std::min(cells_[a], lower[a] + (dice_.chance(0.7) ? 1 : 2));
      }
      all.push_back(fmt::format("{{lower = {}, upper = {}}}", list(lower), list(upper)));
    }
    holes_ = static_cast<int>(all.size());
    line("holes = [{}]", fmt::join(all, ", "));
  }

  void physics() {
    const double viscosity = dice_.decades(-3.0, 3.0);
    double shortest = box_[0];
    for (int a = 1; a < dim_; ++a) shortest = std::min(shortest, box_[a]);
    const double h = std::ldexp(shortest, -refine_);
    line("\n[physics]");
    line("equation = \"{}\"", poisson() ? "poisson" : "stokes");
    if (varies_) {
      coefficients(viscosity, h);
    } else {
      line("viscosity = {}", viscosity);
    }
    // From where the viscous terms do not notice it to where they are nothing but a perturbation.
    if (!varies_ && dice_.chance(0.6)) line("mass = {}", Dice::rounded(dice_.decades(-2.0, 6.0) * viscosity / (h * h)));
    if (dice_.chance(0.3)) {
      draw_.random_load = dice_.word() | 1;
    } else {
      line("force = {}", poisson() ? wave() : vector([&](int) { return wave(); }));
    }
  }

  /// Smooth, or with a jump along a coordinate plane, in either form, in cells or at points; and a porous zone.
  void coefficients(double viscosity, double h) {
    const auto beyond = [&] {
      const int a = dice_.between(0, dim_ - 1);
      return fmt::format("{} > {}", "xyz"[a], Dice::rounded(lower_[a] + dice_.between(0.2, 0.8) * cells_[a] * box_[a]));
    };
    const double contrast = dice_.decades(-2.0, 2.0);
    const std::string smooth =
        fmt::format("exp({}*sin({}*{}/{}+{}*{}/{}))", Dice::rounded(std::log(contrast)), dice_.between(1, 4), 'x',
                    cells_[0] * box_[0], dice_.between(1, 4), 'y', cells_[1] * box_[1]);
    line("viscosity = \"{}*({})\"", viscosity,
         dice_.chance(0.5) ? smooth : fmt::format("{} ? {} : 1", beyond(), contrast));
    line("form = \"{}\"", dice_.chance(0.5) ? "stress" : "gradient");
    if (dice_.chance(0.3)) line("viscosity_points = \"gauss\"");
    if (dice_.chance(0.5)) {
      line("mass = \"{} ? {} : 0\"", beyond(), Dice::rounded(dice_.decades(-2.0, 4.0) * viscosity / (h * h)));
    }
  }

  /// A function without mean over the bounding box, for what is periodic in all directions.
  std::string wave() {
    std::string product = fmt::format("{}", Dice::rounded(dice_.between(0.5, 2.0)));
    for (int a = 0; a < dim_; ++a) {
      product += fmt::format("*sin(2*pi*{}*{}/{}+{})", dice_.between(1, 2), "xyz"[a], cells_[a] * box_[a],
                             Dice::rounded(dice_.between(0.0, 6.0)));
    }
    return '"' + product + '"';
  }
  /// A polynomial in all coordinates but one.
  std::string polynomial_without(int direction) {
    std::string sum = fmt::format("{}", Dice::rounded(dice_.between(-1.0, 1.0)));
    for (int a = 0; a < dim_; ++a) {
      if (a == direction) continue;
      sum += fmt::format("+{}*{}^{}", Dice::rounded(dice_.between(0.1, 1.0)), "xyz"[a], dice_.between(1, 2));
    }
    return '"' + sum + '"';
  }
  template <class Component>
  std::string vector(const Component& component) {
    std::vector<std::string> components;
    for (int c = 0; c < dim_; ++c) components.push_back(component(c));
    return list(components);
  }

  enum class Condition { wall, moving, slip, outflow, traction };
  struct Drawn {
    std::string name;  ///< of the side, or "holes"
    Condition condition;
    std::string table;  ///< that of a part of the side, or of a single hole; empty for the key in [boundary]
  };

  static int kind(Condition condition) {
    using enum Condition;
    return condition == slip ? 1 : condition == outflow || condition == traction ? 2 : 0;
  }

  /// A part of a side: up to the end of a coarse box, or of a cell if the kind stays the same.
  Drawn part_of(const Drawn& side, Condition condition) {
    const int normal = side.name[0] - 'x';
    const int a = (normal + dice_.between(1, dim_ - 1)) % dim_;
    const int fine = kind(condition) == kind(side.condition) ? refine_ : 0;
    const int count = dice_.between(1, cells_[a] << fine);
    return {side.name, condition,
            fmt::format("[[side]]\non = \"{}\"\nwhere = \"{} < {}\"", side.name, "xyz"[a],
                        lower_[a] + count * std::ldexp(box_[a], -fine))};
  }

  /// Prescribed velocities balance: either all are those of one field whose components do not depend on their own
  /// coordinate, and there is no side that it does not go through; or nothing goes through; or there is an outflow
  /// side.
  void sides() {
    using enum Condition;
    std::vector<Drawn> drawn;
    const auto kinds = poisson() || dice_.chance(0.3)
                           ? std::vector{wall, moving}
                           : std::vector{wall, wall, wall, moving, moving, slip, slip, outflow, traction};
    line("\n[boundary]");
    for (int a = 0; a < dim_; ++a) {
      const std::string lower = fmt::format("{}min", "xyz"[a]);
      const std::string upper = fmt::format("{}max", "xyz"[a]);
      if (dice_.chance(0.2)) {
        line("{} = {{periodic = true}}", lower);
        continue;
      }
      drawn.push_back({lower, dice_.one_of(kinds), ""});
      drawn.push_back({upper, dice_.one_of(kinds), ""});
    }
    const int divisible = static_cast<int>(drawn.size());
    if (holes_ > 0) drawn.push_back({"holes", dice_.one_of(kinds), ""});
    const bool has_parts = divisible > 0 && !sheared_ && dice_.chance(0.5);  // they end at coordinate planes
    for (int parts = has_parts ? dice_.between(1, 2) : 0; parts > 0; --parts) {
      const Drawn side = drawn[dice_.between(0, divisible - 1)];
      drawn.push_back(part_of(side, dice_.one_of(kinds)));
    }
    if (holes_ > 0 && dice_.chance(0.5)) {
      drawn.push_back(
          {"holes", dice_.one_of(kinds), fmt::format("[[hole]]\nindex = {}", dice_.between(0, holes_ - 1))});
    }
    const auto has = [&](Condition condition) {
      return std::any_of(drawn.begin(), drawn.end(), [&](const Drawn& side) { return side.condition == condition; });
    };
    const bool open = has(outflow) || has(traction);
    const bool through = !open && !has(slip) && dice_.chance(0.5);
    const std::string field = vector([&](int c) { return polynomial_without(c); });
    for (auto& [name, condition, table] : drawn) {
      if (through) condition = moving;
      if (!open && !through && (name == "holes" || sheared_) && condition == moving) condition = wall;
      const int normal = open ? -1 : name[0] - 'x';
      std::string key;
      switch (condition) {
        case wall: key = poisson() ? "value = 0" : "velocity = " + vector([](int) { return "0"; }); break;
        case slip: key = "slip = true"; break;
        case outflow: key = "outflow = true"; break;
        case traction: key = "traction = " + vector([&](int) { return wave(); }); break;
        case moving:
          key = poisson() ? "value = " + wave()
                : through ? "velocity = " + field
                          : "velocity = " + vector([&](int c) { return c == normal ? "0" : wave(); });
      }
      if (table.empty()) {
        line("{} = {{{}}}", name, key);
      } else {
        line("\n{}\n{}", table, key);
      }
    }
  }

  void solver() {
    const auto word = [&](std::string_view key, const std::vector<std::string>& choices) {
      const std::string choice = dice_.one_of(choices);
      line("{} = \"{}\"", key, choice);
      return choice;
    };
    line("\n[solver]");
    if (!varies_ && dice_.chance(0.15)) line("preset = \"paper\"");
    const std::string method = varies_ ? word("method", {"gmres", "gmres", "vcycle"})
                                       : word("method", {"gmres", "gmres", "gmres", "fmg", "vcycle"});
    line("rtol = {:.0e}", std::pow(10.0, -dice_.between(3, 8)));
    line("max_iterations = {}", dice_.chance(0.1) ? 3 : 60);
    if (method == "gmres" && dice_.chance(0.2)) line("restart = {}", dice_.between(3, 15));
    if (method == "fmg") line("cycles = {}", dice_.between(1, 3));
    if (dice_.chance(0.5)) word("side", {"right", "left"});
    if (dice_.chance(0.5)) word("colour_order", {"diagonal", "lexicographic"});
    if (!varies_ && dice_.chance(0.5)) {
      word("patch", poisson() && order_ > 0 ? std::vector<std::string>{"symmetric", "galerkin", "fused"}
                                            : std::vector<std::string>{"symmetric", "galerkin"});
    }
    const std::string smoother = word("smoother", {"multiplicative", "multiplicative", "multiplicative", "additive"});
    if (smoother == "additive" && dice_.chance(0.5)) line("damping = {:.2f}", dice_.between(0.05, 0.3));
    if (!poisson() && dice_.chance(0.5)) {
      // What truncated ones leave is known where coefficients are constant (error_of_local_solves).
      std::vector<std::string> local{"direct"};
      if (!varies_) local.insert(local.end(), {"chebyshev", "cg"});
      constexpr int most_dense = 1000;  // beyond, inverses of whole patches take much memory
      if (record_size(dim_, order_, equation_) << dim_ <= most_dense) local.emplace_back("dense");
      word("local_solver", local);
    }

    draw_.precision = dice_.chance(0.5) ? Precision::mixed : Precision::full_double;
    if (dice_.chance(0.2)) draw_.cycle_index = dice_.between(1, 2);
    if (dice_.chance(0.1)) draw_.coarse_penalty = Dice::rounded(dice_.between(0.6, 1.0));
    draw_.all_levels = dice_.chance(0.2);
    line("# with --precision {}", draw_.precision == Precision::mixed ? "mixed" : "double");
    if (draw_.random_load != 0) line("# without a key: random_load = {}", draw_.random_load);
    if (draw_.cycle_index != 0) line("# without a key: cycle_index = {}", draw_.cycle_index);
    if (draw_.coarse_penalty != 0.0) line("# without a key: coarse_penalty = {}", draw_.coarse_penalty);
    if (draw_.all_levels) line("# without a key: all_levels = true");
  }

  bool varies_;
  bool sheared_ = false;
  Dice dice_;
  RandomCase draw_;
  EquationKind equation_ = EquationKind::stokes;
  int dim_ = 2;
  int order_ = 0;
  std::array<int, 3> cells_{1, 1, 1};
  int refine_ = 0;
  std::array<double, 3> box_{1, 1, 1};  ///< sides of a coarse box
  std::array<double, 3> lower_{};
  std::array<double, 3> upper_{1, 1, 1};
  int holes_ = 0;
};

inline RandomCase draw_case(std::uint64_t seed, std::int64_t fewest, std::int64_t most, Draws draws = Draws::constant) {
  return CaseDraw(seed, fewest, most, draws).result();
}

}  // namespace solenoid::test
