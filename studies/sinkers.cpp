// Stiff, heavy bodies in a fluid: iterations and times by their number, contrast and shape.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "level/patch_scale.hpp"
#include "problem/names.hpp"
#include "solver/hierarchy.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"

namespace solenoid {

namespace studies {
enum class Shape { smooth, sharp, both };
}  // namespace studies

template <>
struct Names<studies::Shape> {
  static constexpr std::array<std::pair<std::string_view, studies::Shape>, 3> all{
      {{"smooth", studies::Shape::smooth}, {"sharp", studies::Shape::sharp}, {"both", studies::Shape::both}}};
};

namespace studies {
namespace {

struct Options : StudyArguments {
  std::vector<int> sinkers{1, 4, 8, 24};
  std::vector<double> contrasts{1e2, 1e4, 1e6, 1e8};
  std::vector<double> sizes{1e5};
  Shape shape = Shape::both;
  double diameter = 0.0;  ///< 0: one of two dimensions
  double rtol = 1e-8;
  int most = 200;  ///< iterations
};

/// The problem of May, Brown and Le Pourhiet (2015) and of Rudi, Stadler and Ghattas (2017): between walls, with
///
///     chi(x) = product over the sinkers of 1 - exp(-200 max(0, |x - c| - omega / 2)^2),
///     nu = nu_least + (nu_most - nu_least) (1 - chi),   f = (0, ..., 10 (chi - 1)),
///
/// nu_most / nu_least the contrast and their product 1. Those that are sharp have chi = 0 within omega / 2, 1
/// elsewhere.
struct Sinkers {
  std::vector<Point> centres;
  double diameter;
  bool sharp;

  /// 1 - chi
  [[nodiscard]] double inside(const Point& x) const {
    double chi = 1.0;
    for (const Point& centre : centres) {
      const double gap = std::hypot(x[0] - centre[0], x[1] - centre[1], x[2] - centre[2]) - 0.5 * diameter;
      if (gap <= 0.0) return 1.0;
      if (!sharp) chi *= 1.0 - std::exp(-200.0 * gap * gap);
    }
    return 1.0 - chi;
  }
};

/// So many centres, the same for fewer as the first of more, no two closer than a diameter and a tenth while there is
/// room for that.
std::vector<Point> centres_of(int count, int dim, double diameter) {
  std::mt19937_64 random(8);
  const auto uniform = [&] { return std::ldexp(static_cast<double>(random() >> 11), -53); };
  std::vector<Point> centres;
  int tries = 0;
  while (std::ssize(centres) < count) {
    Point at{};
    for (int a = 0; a < dim; ++a) at[a] = 0.6 * diameter + (1.0 - 1.2 * diameter) * uniform();
    const bool touches = std::any_of(centres.begin(), centres.end(), [&](const Point& other) {
      return std::hypot(at[0] - other[0], at[1] - other[1], at[2] - other[2]) < 1.1 * diameter;
    });
    constexpr int enough = 1000;
    if (touches && ++tries < enough) continue;
    centres.push_back(at);
  }
  return centres;
}

Problem problem_with(const Sinkers& sinkers, double contrast, int dim, int order, int refine) {
  Problem problem{.mesh = Mesh::unit(dim, refine), .order = order};
  const double most = std::sqrt(contrast);
  problem.varying_viscosity =
      ScalarField([=](const Point& x) { return 1.0 / most + (most - 1.0 / most) * sinkers.inside(x); });
  problem.force[dim - 1] = ScalarField([=](const Point& x) { return -10.0 * sinkers.inside(x); });
  return problem;
}

class SinkerStudy {
 public:
  explicit SinkerStudy(const Options& options)
      : options_(options),
        diameter_(options.diameter > 0.0 ? options.diameter
                  : options.dim == 2     ? 0.1
                                         : 0.2),
        run_(options, "sinkers", total()) {}

  int operator()() {
    check_orders(options_.dim, options_.orders);
    run_.json["dim"] = options_.dim;
    run_.json["rtol"] = options_.rtol;
    run_.json["diameter"] = diameter_;
    run_.json["rows"] = Json::array();
    run_.print(fmt::format(
        "Sinkers of diameter {:g} between walls, stress form, GMRES to {:.0e}, at most {} iterations\n"
        "order    cells    unknowns  shape   sinkers  contrast  in a patch  iterations  solve, s  ns/unknown  residual",
        diameter_, options_.rtol, options_.most));
    for (const int order : options_.orders) {
      for (const double size : options_.sizes) {
        for (const Shape shape : {Shape::smooth, Shape::sharp}) {
          if (options_.shape != Shape::both && options_.shape != shape) continue;
          for (const int count : options_.sinkers) {
            for (const double contrast : options_.contrasts) {
              if (StudyRun::interrupted()) return run_.finish(false);
              add(order, refine_about(options_.dim, order, size), shape, count, contrast);
            }
          }
        }
      }
    }
    return run_.finish(true);
  }

 private:
  [[nodiscard]] double total() const {
    double sum = 0.0;
    for (const int order : options_.orders) {
      for (const double size : options_.sizes) {
        sum += unknowns_about(options_.dim, order, refine_about(options_.dim, order, size));
      }
    }
    return sum * static_cast<double>(options_.sinkers.size() * options_.contrasts.size()) *
           (options_.shape == Shape::both ? 2.0 : 1.0);
  }

  void add(int order, int refine, Shape shape, int count, double contrast) {
    const Sinkers sinkers{centres_of(count, options_.dim, diameter_), diameter_, shape == Shape::sharp};
    const Problem problem = problem_with(sinkers, contrast, options_.dim, order, refine);
    SolverOptions options = run_.solver_options();
    options.rtol = options_.rtol;
    options.max_iterations = options_.most;
    const auto cells = cells_text(options_.dim, refine);
    const auto result = run_.solve(
        fmt::format("RT_{}, {} cells, {} sinkers, contrast {:.0e}", order, cells, count, contrast), problem, options);
    if (!result) return;
    const Report& report = result->report;
    const Level level(equation_of(problem), result->solution.equation_coefficients(),
                      Grid(problem.mesh, problem.boundary), {.no_slip_ends = true});
    const Contrast found = contrast_of(level);
    const double per_unknown = 1e9 * report.time_solve / static_cast<double>(report.dofs);
    run_.print(fmt::format(
        "RT_{:<3} {:>7}  {:>10}  {:<6}  {:>7}  {:>8.0e}  {:>10.2g}  {:>10}  {:>8.3f}  {:>10.0f}  {:.1e}{}", order,
        cells, report.dofs, name_of(shape), count, contrast, found.in_patches, report.iterations, report.time_solve,
        per_unknown, report.residual_history.back(), report.converged ? "" : "  " + report.reason));
    run_.json["rows"].push_back({{"order", order},
                                 {"refine", refine},
                                 {"dofs", report.dofs},
                                 {"shape", name_of(shape)},
                                 {"sinkers", count},
                                 {"contrast", contrast},
                                 {"contrast_in_patches", found.in_patches},
                                 {"converged", report.converged},
                                 {"iterations", report.iterations},
                                 {"residual", report.residual_history.back()},
                                 {"device", report.device},
                                 {"seconds", report.time_solve},
                                 {"ns_per_unknown", per_unknown}});
  }

  const Options& options_;
  double diameter_;
  StudyRun run_;
};

}  // namespace

Command add_sinkers(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  options->dim = 2;
  options->orders = {1, 2};
  options->add_to(line, "2", "1,2");
  add_list(line, "--sinkers", options->sinkers, 1, 10000, "how many there are; default: 1,4,8,24");
  line.add("--contrasts", options->contrasts, "of viscosities, as 1e2,1e4").from(1.0, 1e16).shows_default();
  line.add("--sizes", options->sizes, "numbers of unknowns, as 1e5,1e6; the nearest refinements are taken")
      .from(1, 1e12)
      .shows_default();
  add_choice(line, "--shape", options->shape, "smooth or sharp");
  line.add("--diameter", options->diameter, "of a sinker; default: 0.1 in 2D, 0.2 in 3D").from(0.0, 0.5);
  line.add("--rtol", options->rtol, "relative to the right-hand side").from(1e-14, 0.1).shows_default();
  line.add("--max-iterations", options->most, "of GMRES, which does not restart").from(1, 100000).shows_default();
  return [options] { return SinkerStudy(*options)(); };
}

}  // namespace studies
}  // namespace solenoid
