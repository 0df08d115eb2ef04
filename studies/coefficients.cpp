// What a linear system is asked for beside solves costs, in V-cycles: other coefficients, loads, integrals, errors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "problem/names.hpp"
#include "solenoid/error.hpp"
#include "solenoid/linear_system.hpp"
#include "studies/manufactured.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"
#include "studies/timing.hpp"

namespace solenoid::studies {
namespace {

struct Options : StudyArguments {
  std::vector<double> sizes{1e6};
};

/// Some twenty operations a point for each component.
VectorField expressions(int dim) {
  VectorField field;
  for (int c = 0; c < dim; ++c) {
    const std::string x(1, "xyz"[c]);
    const std::string y(1, "xyz"[(c + 1) % dim]);
    const std::string z(1, "xyz"[(c + 2) % dim]);
    field[c] = ScalarField::expression(
        fmt::format("0.7*sin(3*{0} + {1})*cos(2*{1} - {2}) + {0}*{1}*(1 - {2})*exp(-{0}*{2}) + {1}*{1}/(1 + {0}*{0})",
                    x, y, z),
        dim);
  }
  return field;
}

class CoefficientsStudy {
 public:
  explicit CoefficientsStudy(const Options& options) : options_(options), run_(options, "coefficients", 0.0) {}

  int operator()() {
    check_orders(options_.dim, options_.orders);
    run_.json["dim"] = options_.dim;
    run_.json["rows"] = Json::array();
    run_.print(fmt::format(
        "Unit {} with walls, but for xmax; reaction 1, 2, ...; expressions of 20 operations; mixed precision\n"
        "                                                   V-cycles for: reaction            integrals,\n"
        "order    cells  xmax        unknowns  V-cycle, ms     new   known    load    flow  velocity error",
        options_.dim == 2 ? "square" : "cube"));
    for (const int order : options_.orders) {
      for (const double size : options_.sizes) {
        for (const SideKind side : {SideKind::velocity, SideKind::slip, SideKind::outflow}) {
          add(order, refine_about(options_.dim, order, size), side);
          if (StudyRun::interrupted()) return run_.finish(false);
        }
      }
    }
    return run_.finish(true);
  }

 private:
  void add(int order, int refine, SideKind side) {
    Problem problem = manufactured_problem(ManufacturedKind::trigonometric, options_.dim, order, refine);
    problem.boundary.sides[1].kind = side;
    problem.mass = 0.5;
    SolverOptions solver;
    solver.device = options_.device;
    solver.threads = options_.threads;
    run_.show(fmt::format("RT_{}, {}", order, cells_text(options_.dim, refine)));
    LinearSystem system(problem, solver);
    const auto r = system.make_vector();
    const auto z = system.make_vector();
    const auto cycle = [&] { system.precondition(r.get(), z.get()); };
    const auto done = [&] { system.synchronise(); };
    const auto cycle_and_wait = [&] { cycle(), done(); };

    constexpr double enough = 0.1;
    constexpr double most = 5.0;
    const double of_cycle = median_seconds(enough, done, cycle_and_wait, most);
    // With the first cycle after it, less a cycle: that may have to be recorded anew.
    double reaction = 1.0;
    const auto to_next = [&] {
      system.set_reaction(reaction += 1.0);
      cycle_and_wait();
    };
    const double of_new = median_seconds(enough, done, to_next, most) - of_cycle;
    bool first = false;
    const auto to_other = [&] {
      system.set_reaction(first ? 1.0 : 2.0);
      first = !first;
      cycle_and_wait();
    };
    to_other();
    const double of_known = median_seconds(enough, done, to_other, most) - of_cycle;

    const VectorField field = expressions(options_.dim);
    Exact exact;
    exact.velocity = field;
    const auto load = [&] { system.load(r.get(), field), done(); };
    const auto integrals = [&] { static_cast<void>(system.integrals(z.get())); };
    const auto errors = [&] { static_cast<void>(system.errors(z.get(), exact)); };
    const double of_load = median_seconds(enough, done, load, most);
    const double of_integrals = median_seconds(enough, done, integrals, most);
    const double of_errors = median_seconds(enough, done, errors, most);

    const std::string cells = cells_text(options_.dim, refine);
    run_.json["rows"].push_back({{"order", order},
                                 {"refine", refine},
                                 {"xmax", name_of(side)},
                                 {"dofs", system.dofs()},
                                 {"device", system.device()},
                                 {"seconds",
                                  {{"vcycle", of_cycle},
                                   {"new_reaction", of_new},
                                   {"known_reaction", of_known},
                                   {"load", of_load},
                                   {"integrals", of_integrals},
                                   {"velocity_error", of_errors}}}});
    run_.print(fmt::format("RT_{:<3} {:>7}  {:<8} {:>11}  {:11.3f}  {:6.2f}  {:6.2f}  {:6.2f}  {:6.2f}  {:14.2f}",
                           order, cells, name_of(side), system.dofs(), of_cycle * 1e3, of_new / of_cycle,
                           of_known / of_cycle, of_load / of_cycle, of_integrals / of_cycle, of_errors / of_cycle));
  }

  const Options& options_;
  StudyRun run_;
};

}  // namespace

Command add_coefficients(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  options->dim = 3;
  options->orders = {1, 2, 3, 4};
  options->add_to(line, "3", "1,2,3,4");
  line.add("--sizes", options->sizes, "numbers of unknowns, as 1e6,3e6; the nearest refinements are taken")
      .from(1, 1e12)
      .shows_default();
  return [options] { return CoefficientsStudy(*options)(); };
}

}  // namespace solenoid::studies
