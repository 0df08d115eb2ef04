#include "studies/corners/setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "problem/names.hpp"
#include "solenoid/error.hpp"
#include "solver/discretisation.hpp"
#include "studies/manufactured.hpp"
#include "studies/run.hpp"

namespace solenoid::studies::corners {
namespace {

constexpr const char* precision_key = "precision";

constexpr IndexBox unit_box(int x, int y, int z) { return {{x, y, z}, {x + 1, y + 1, z + 1}}; }

/// Every name of a choice that is not the main path's. `set` says what the choice is of.
template <class Choice, class Set>
void add_names(std::vector<Change>& changes, const std::string& what, Choice main, Set set) {
  for (const auto& [name, value] : Names<Choice>::all) {
    if (value == main) continue;
    const Choice choice = value;
    changes.push_back({what, std::string(name), [set, choice](Setting& setting) { set(setting, choice); }});
  }
}

/// A choice that is a member of the solver's or the cycle's options.
template <class Options, class Choice>
void add_option(std::vector<Change>& changes, const std::string& what, Choice Options::*member) {
  const auto options = [](Setting& setting) -> Options& {
    if constexpr (std::is_same_v<Options, SolverOptions>) {
      return setting.solver;
    } else {
      return setting.solver.multigrid;
    }
  };
  Setting main;
  add_names(changes, what, options(main).*member,
            [=](Setting& setting, Choice value) { options(setting).*member = value; });
}

std::vector<Change> make_changes() {
  std::vector<Change> changes;
  const auto add = [&](const char* what, const std::string& value, std::function<void(Setting&)> apply) {
    changes.push_back({what, value, std::move(apply)});
  };
  const Setting main;
  // The preset comes first: single options override it. So do single sides.
  add_names(changes, "preset", Preset::standard, [](Setting& s, Preset value) { s.solver.apply(value); });
  add_names(changes, "equation", main.equation, [](Setting& s, EquationKind value) { s.equation = value; });
  add("dimension", "2", [](Setting& s) { s.dim = 2; });
  for (const double mass : {1e3, 1e6}) {
    add("mass", fmt::format("{:.0e}", mass), [mass](Setting& s) { s.mass = mass; });
  }
  add_names(changes, "form", main.form, [](Setting& s, ViscousForm form) { s.form = form; });
  add_names(changes, "sides", main.sides[0], [](Setting& s, SideKind kind) { s.sides.fill(kind); });
  add_names(changes, "xmax", main.sides[1], [](Setting& s, SideKind kind) {
    s.sides[1] = kind;
    if (kind == SideKind::periodic) s.sides[0] = kind;
  });
  add("domain", "3 x 3 x 3 boxes", [](Setting& s) { s.boxes = {3, 3, 3}; });
  add("domain", "4 x 2 x 2 boxes", [](Setting& s) { s.boxes = {4, 2, 2}; });
  add("domain", "5 x 1 x 1 boxes", [](Setting& s) { s.boxes = {5, 1, 1}; });
  add("domain", "L-shape", [](Setting& s) {
    s.boxes = {2, 2, 2};
    s.holes = {unit_box(1, 1, 1)};
  });
  for (const auto& [name, value] : Names<SideKind>::all) {
    const SideKind kind = value;
    add("domain", fmt::format("hole, {}", name), [kind](Setting& s) {
      s.boxes = {3, 3, 3};
      s.holes = {unit_box(1, 1, 1)};
      s.hole_side = kind;
    });
  }
  add("domain", "many holes", [](Setting& s) {
    s.boxes = {4, 4, 4};
    for (int i = 0; i < 8; ++i) s.holes.push_back(unit_box(1 + (i & 1) * 2, 1 + (i >> 1 & 1) * 2, 1 + (i >> 2) * 2));
  });
  add("aspect", "4", [](Setting& s) { s.stretch[0] = 4.0; });
  add("aspect", "16", [](Setting& s) { s.stretch[0] = 16.0; });
  add("aspect", "1/4", [](Setting& s) { s.stretch[0] = 0.25; });
  add_option(changes, "method", &SolverOptions::method);
  add_option(changes, precision_key, &SolverOptions::precision);
  add_option(changes, "side", &SolverOptions::side);
  add_option(changes, "smoother", &MultigridOptions::smoother);
  add_option(changes, "colour_order", &MultigridOptions::colour_order);
  add_option(changes, "patch", &MultigridOptions::patch);
  add_option(changes, "local_solver", &MultigridOptions::local_solver);
  add_names(changes, "viscosity_points", main.viscosity,
            [](Setting& s, ViscosityPlaces places) { s.viscosity = places; });
  return changes;
}

/// In [0, count): the same on every machine, which the library's distributions are not.
std::size_t below(std::mt19937_64& random, std::size_t count) { return random() % count; }

}  // namespace

Problem Setting::problem(int order, int refine) const {
  Problem problem = equation == EquationKind::poisson
                        ? manufactured_poisson(dim, order, refine)
                        : manufactured_problem(ManufacturedKind::gaussian, dim, order, refine);
  problem.mass = mass;
  if (form != ViscousForm::gradient) problem.form = form;
  if (viscosity == ViscosityPlaces::gauss) {
    problem.varying_viscosity = ScalarField::expression("exp(x)", dim);
    problem.viscosity_points = viscosity;
  }
  Mesh& mesh = problem.mesh;
  mesh.holes = holes;
  const int longest = *std::max_element(boxes.begin(), boxes.begin() + dim);
  for (int a = 0; a < dim; ++a) {
    mesh.cells[a] = boxes[a];
    mesh.upper[a] = stretch[a] * boxes[a] / longest;
  }
  if (dim == 2) {
    for (IndexBox& hole : mesh.holes) hole.lower[2] = 0, hole.upper[2] = 1;
  }
  for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].kind = sides[side];
  problem.boundary.holes.kind = hole_side;
  return problem;
}

int Setting::refine_for(int order, double unknowns) const {
  double count = 1.0;
  for (int a = 0; a < dim; ++a) count *= boxes[a];
  const double levels = std::log2(unknowns / (count * unknowns_about(dim, order, 0, equation))) / dim;
  return std::max(1, static_cast<int>(std::lround(levels)));
}

const std::vector<Change>& all_changes() {
  static const std::vector<Change> changes = make_changes();
  return changes;
}

Setting setting_of(const Changes& changes) {
  Setting setting;
  for (const std::size_t i : changes) all_changes()[i].apply(setting);
  return setting;
}

bool slow_on_purpose(const Change& change) {
  return change.what == "preset" || change.what == "smoother" || change.what == "local_solver" ||
         (change.what == "patch" && change.value == name_of(PatchProblem::galerkin));
}

bool valid(const Setting& setting, int order) {
  try {
    const Problem problem = setting.problem(order, 1);
    validate(problem);
    validate(problem, setting.solver);
    const Discretisation refuses_free_rotations(problem, setting.solver, {});
    return true;
  } catch (const InputError&) {
    return false;
  }
}

bool on_main_path(const Changes& changes) {
  return std::all_of(changes.begin(), changes.end(),
                     [](std::size_t i) { return all_changes()[i].what == precision_key; });
}

std::vector<Case> main_path(const std::vector<int>& orders, const std::vector<double>& sizes) {
  const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
  std::vector<Changes> precisions{{}};
  for (std::size_t i = 0; i < all_changes().size(); ++i) {
    if (on_main_path({i})) precisions.push_back({i});
  }
  std::vector<Case> cases;
  for (const int order : orders) {
    for (const Changes& precision : precisions) {
      const Setting setting = setting_of(precision);
      const int finest = setting.refine_for(order, *largest);
      for (int refine = std::max(1, setting.refine_for(order, *smallest) - 1); refine <= finest; ++refine) {
        cases.push_back({precision, order, unknowns_about(setting.dim, order, refine)});
      }
    }
  }
  return cases;
}

std::vector<Case> single_changes(const std::vector<int>& orders, const std::vector<double>& sizes,
                                 const Supported& supported) {
  std::vector<Case> cases;
  for (const double size : sizes) {
    for (const int order : orders) {
      for (std::size_t i = 0; i < all_changes().size(); ++i) {
        if (!on_main_path({i}) && supported(setting_of({i}), order)) cases.push_back({{i}, order, size});
      }
    }
  }
  return cases;
}

std::vector<Case> drawn_pairs(int count, std::uint64_t seed, const std::vector<int>& orders,
                              const std::vector<double>& sizes, const Supported& supported) {
  const auto& changes = all_changes();
  std::mt19937_64 random(seed);
  std::vector<Case> cases;
  for (int attempts = 100 * count; attempts > 0 && static_cast<int>(cases.size()) < count; --attempts) {
    const std::size_t first = below(random, changes.size());
    const std::size_t second = below(random, changes.size());
    const int order = orders[below(random, orders.size())];
    const double size = sizes[below(random, sizes.size())];
    const Case drawn{{std::min(first, second), std::max(first, second)}, order, size};
    if (changes[first].what == changes[second].what) continue;
    if (std::find(cases.begin(), cases.end(), drawn) != cases.end()) continue;
    if (supported(setting_of(drawn.changes), order)) cases.push_back(drawn);
  }
  return cases;
}

}  // namespace solenoid::studies::corners
