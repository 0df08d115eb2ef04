// Time per unknown of the parts of a solve, beside what the machine can do at most.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/engine.hpp"
#include "solenoid/error.hpp"
#include "solver/hierarchy.hpp"
#include "studies/manufactured.hpp"
#include "studies/run.hpp"
#include "studies/study.hpp"
#include "studies/timed_solve.hpp"

namespace solenoid {

namespace studies {
/// Unit squares and cubes with the same cells but for what the names say.
enum class Domain {
  walls,      ///< no-slip on all sides
  periodic,   ///< no boundary at all
  holes,      ///< walls, and every second of 4 boxes per direction missing
  outflow,    ///< walls, and xmax open
  slip,       ///< walls, and slip on the last side
  stretched,  ///< walls, and cells four times as long in x
  viscosity,  ///< walls, and a viscosity by cell in the gradient form
  stress,     ///< the same in the stress form
  points,     ///< and at Gauss points
};
}  // namespace studies

template <>
struct Names<studies::Domain> {
  static constexpr std::array<std::pair<std::string_view, studies::Domain>, 9> all{
      {{"walls", studies::Domain::walls},
       {"periodic", studies::Domain::periodic},
       {"holes", studies::Domain::holes},
       {"outflow", studies::Domain::outflow},
       {"slip", studies::Domain::slip},
       {"stretched", studies::Domain::stretched},
       {"viscosity", studies::Domain::viscosity},
       {"stress", studies::Domain::stress},
       {"points", studies::Domain::points}}};
};

namespace studies {
namespace {

struct Options : StudyArguments {
  EquationKind equation = EquationKind::stokes;
  std::vector<double> sizes{3e6};
  std::vector<std::string> domains{"walls"};
  double rtol = 1e-6;
};

Problem problem_on(EquationKind equation, Domain domain, int dim, int order, int refine) {
  Problem problem = equation == EquationKind::poisson
                        ? manufactured_poisson(dim, order, refine)
                        : manufactured_problem(ManufacturedKind::gaussian, dim, order, refine);
  Mesh& mesh = problem.mesh;
  switch (domain) {
    case Domain::walls: break;
    case Domain::periodic:
      for (int side = 0; side < 2 * dim; ++side) problem.boundary.sides[side].kind = SideKind::periodic;
      break;
    case Domain::holes:
      mesh.refine -= 2;
      for (int a = 0; a < dim; ++a) mesh.cells[a] = 4;
      for (int i = 0; i < 1 << dim; ++i) {
        const std::array<int, 3> lower{1 + (i & 1) * 2, 1 + (i >> 1 & 1) * 2, dim == 3 ? 1 + (i >> 2 & 1) * 2 : 0};
        mesh.holes.push_back({lower, {lower[0] + 1, lower[1] + 1, lower[2] + 1}});
      }
      break;
    case Domain::outflow: problem.boundary.sides[1].kind = SideKind::outflow; break;
    case Domain::slip: problem.boundary.sides[2 * dim - 1].kind = SideKind::slip; break;
    case Domain::stretched: mesh.upper[0] = 4.0; break;
    case Domain::viscosity:
    case Domain::stress:
    case Domain::points:
      problem.varying_viscosity = ScalarField::expression("exp(3*x)*(2 + sin(5*y))", dim);
      problem.form = domain == Domain::viscosity ? ViscousForm::gradient : ViscousForm::stress;
      if (domain == Domain::points) problem.viscosity_points = ViscosityPlaces::gauss;
      break;
  }
  return problem;
}

/// The parts that are timed, in the order of the table.
enum Part { operator_fp64, operator_fp32, smoothing_step_fp32, vcycle_fp32, full_multigrid_mixed, solve_mixed, parts };
constexpr std::array<const char*, parts> part_names{"operator_fp64", "operator_fp32",        "smoothing_step_fp32",
                                                    "vcycle_fp32",   "full_multigrid_mixed", "solve_mixed"};

struct Row {
  int order = 0;
  int refine = 0;
  Domain domain = Domain::walls;
  int levels = 0;
  double dofs = 0.0;
  std::array<double, parts> seconds{};    ///< 0: not measured
  std::array<double, parts> sustained{};  ///< the same after a second of the same work
  double set_up = 0.0;                    ///< of a solve: levels, load, kernels
  int iterations = 0;
  std::vector<KernelUse> kernels{};

  [[nodiscard]] double ns(Part part) const { return seconds[part] / dofs * 1e9; }
};

class ThroughputStudy {
 public:
  explicit ThroughputStudy(const Options& options)
      : options_(options),
        run_(options, "throughput", 0.0),
        engine_(make_engine(options.device, options.threads, run_.ranks(), options.transport)) {}

  int operator()() {
    check_orders(options_.dim, options_.orders, options_.equation);
    for (const Domain domain : {Domain::outflow, Domain::slip, Domain::viscosity, Domain::stress, Domain::points}) {
      if (poisson() && asked_for(domain)) {
        throw InputError(
            fmt::format("--domains {}: Poisson's equation has no such sides or coefficients", name_of(domain)));
      }
    }
    measure_ceilings();
    run_.json["rtol"] = options_.rtol;
    run_.json["rows"] = Json::array();
    run_.print(fmt::format("\nns per unknown, {}D; mixed: cycles in fp32, the rest in fp64; solve: GMRES to {:.0e}\n",
                           options_.dim, options_.rtol));
    run_.print(
        "                                        operator      smoothing   V-cycle  full multigrid     solve"
        "                set-up     solve");
    run_.print(
        "order    cells  domain        unknowns     fp64     fp32      fp32      fp32           mixed     mixed  "
        "iterations        ms        ms");
    for (const int order : options_.orders) {
      std::vector<int> refinements;
      for (const double size : options_.sizes)
        refinements.push_back(refine_about(options_.dim, order, size, options_.equation));
      std::sort(refinements.begin(), refinements.end());
      refinements.erase(std::unique(refinements.begin(), refinements.end()), refinements.end());
      for (const int refine : refinements) {
        for (const auto& [name, domain] : Names<Domain>::all) {
          if (!asked_for(domain)) continue;
          add(order, refine, domain, refine == refinements.back());
          if (StudyRun::interrupted()) return run_.finish(false);
        }
      }
    }
    print_rates();
    print_sustained();
    print_domains();
    print_coefficients();
    print_kernels();
    return run_.finish(converged_);
  }

 private:
  [[nodiscard]] bool poisson() const { return options_.equation == EquationKind::poisson; }
  [[nodiscard]] bool asked_for(Domain domain) const {
    return std::find(options_.domains.begin(), options_.domains.end(), name_of(domain)) != options_.domains.end();
  }
  [[nodiscard]] std::string element(const Row& row) const { return element_name(options_.equation, row.order); }

  void measure_ceilings() {
    run_.print(fmt::format("device  {}", engine_->description()));
    run_.json["equation"] = name_of(options_.equation);
    run_.json["dim"] = options_.dim;
    run_.json["device"] = engine_->description();
    run_.json["threads"] = engine_->threads();
    if (run_.ranks() != nullptr) {
      run_.print(fmt::format("ranks   {}, messages: {}", run_.ranks()->size(), engine_->transport()));
      run_.json["transport"] = engine_->transport();
    }
    run_.show("what the machine can do at most");
    ceilings_ = engine_->measure_ceilings();
    const auto [memory, cache, shared, fma_float, fma_double] = ceilings_;
    run_.print(fmt::format("copy    {:.1f} GB/s, read and written", memory * 1e-9));
    if (cache > 0.0) run_.print(fmt::format("cache   {:.0f} GB/s read from the last level", cache * 1e-9));
    if (shared > 0.0) run_.print(fmt::format("shared  {:.0f} GB/s read from shared memory", shared * 1e-9));
    run_.print(fmt::format("FMA     {:.0f} GFLOP/s fp32, {:.0f} GFLOP/s fp64", fma_float * 1e-9, fma_double * 1e-9));
    Json& json = run_.json["ceilings"];
    json["copy_bytes_per_second"] = memory;
    if (cache > 0.0) json["cache_bytes_per_second"] = cache;
    if (shared > 0.0) json["shared_bytes_per_second"] = shared;
    json["fma_fp32_per_second"] = fma_float;
    json["fma_fp64_per_second"] = fma_double;
  }

  /// The refinement whose number of unknowns is nearest, by ratio.
  [[nodiscard]] SolverOptions solver(Method method) const {
    SolverOptions solver = run_.solver_options();
    solver.method = method;
    solver.rtol = options_.rtol;
    return solver;
  }
  [[nodiscard]] bool fits(const Problem& problem, Method method) const {
    const Estimate need = estimate(problem, solver(method));
    const int ranks = run_.ranks() == nullptr ? 1 : run_.ranks()->size();
    const double extra =
        method != Method::gmres ? 8.0 * static_cast<double>(need.dofs) / ranks : 0.0;  // of operands of the parts
    return static_cast<double>(need.bytes_needed) + extra <= static_cast<double>(need.bytes_available);
  }

  void add(int order, int refine, Domain domain, bool largest) {
    const int dim = options_.dim;
    if (domain == Domain::holes && refine < 3) return;
    Row row{.order = order, .refine = refine, .domain = domain};
    const Problem problem = problem_on(options_.equation, domain, dim, order, refine);
    const auto label = fmt::format("{}, {} cells, {}", element(row), cells_text(dim, refine), name_of(domain));
    const Method beside_kernels = has_coefficients_by_cell(problem) ? Method::vcycle : Method::fmg;
    if (!fits(problem, beside_kernels)) {
      run_.print(label + ": left out, it does not fit into the memory");
      return;
    }
    run_.show(label + ": set-up");
    std::optional<Hierarchy> levels;
    const Distribution distribution{run_.ranks(), SolverOptions{}.replicated_cells};
    row.set_up = seconds_of([&] { levels.emplace(problem, MultigridOptions{}, engine_->dense_limits(), distribution); },
                            run_.ranks().get());
    const Hierarchy& hierarchy = *levels;
    row.levels = hierarchy.size();
    row.dofs = static_cast<double>(hierarchy.finest().dofs());
    run_.show(label + ": kernels, full multigrid");
    measure(beside_kernels, hierarchy, problem, row, largest);
    if (domain == Domain::walls && fits(problem, Method::gmres)) {
      run_.show(label + ": solve");
      measure(Method::gmres, hierarchy, problem, row, largest);
    }
    print_row(row);
    rows_.push_back(std::move(row));
  }

  /// Times a method. Beside one that leaves room for that, the kernels.
  void measure(Method method, const Hierarchy& hierarchy, const Problem& problem, Row& row, bool largest) {
    const bool walls = row.domain == Domain::walls;  // others are for the cost of kernels
    const SolverOptions options = solver(method);
    {
      std::optional<TimedSolve<float>> ready;
      const double made_ready =
          seconds_of([&] { ready.emplace(*engine_, hierarchy, problem, options); }, run_.ranks().get());
      TimedSolve<float>& timed = *ready;
      if (walls) {
        if (method == Method::gmres) row.set_up += made_ready;
        row.seconds[method == Method::fmg ? full_multigrid_mixed : solve_mixed] = timed.solve_seconds();
        row.iterations = timed.convergence().iterations;
        converged_ = converged_ && timed.convergence().converged;
      }
      if (method != Method::gmres) {
        const auto time_kernels = [&](Pace pace, std::array<double, parts>& seconds) {
          seconds[operator_fp64] = timed.operator_double_seconds(pace);
          seconds[operator_fp32] = timed.operator_seconds(pace);
          seconds[smoothing_step_fp32] = timed.smoothing_step_seconds(pace);
          seconds[vcycle_fp32] = timed.cycle_seconds(pace);
        };
        time_kernels(Pace::rested, row.seconds);
        if (largest && walls) time_kernels(Pace::sustained, row.sustained);
      }
    }
    if (!largest || !walls) return;
    const auto kernels = engine_->profile([&] { TimedSolve<float>(*engine_, hierarchy, problem, options).run(); });
    for (const KernelUse& kernel : kernels) {
      const bool known = std::any_of(row.kernels.begin(), row.kernels.end(),
                                     [&](const KernelUse& other) { return other.name == kernel.name; });
      if (!known) row.kernels.push_back(kernel);
    }
  }

  // --- tables --------------------------------------------------------------------------------------------------------

  [[nodiscard]] std::string number(const Row& row, Part part, int width, int digits) const {
    return row.seconds[part] == 0.0 ? fmt::format("{:>{}}", "-", width)
                                    : fmt::format("{:{}.{}f}", row.ns(part), width, digits);
  }

  void print_row(const Row& row) {
    const int dim = options_.dim;
    const bool solved = row.seconds[solve_mixed] > 0.0;
    run_.print(fmt::format("{:<6} {:>7}  {:<9}  {:>11.0f}  {}  {}  {}  {}  {}  {}  {:>10}  {:>8}  {:>8}", element(row),
                           cells_text(dim, row.refine), name_of(row.domain), row.dofs, number(row, operator_fp64, 7, 4),
                           number(row, operator_fp32, 7, 4), number(row, smoothing_step_fp32, 8, 4),
                           number(row, vcycle_fp32, 8, 4), number(row, full_multigrid_mixed, 14, 3),
                           number(row, solve_mixed, 8, 3), solved ? fmt::format("{}", row.iterations) : "-",
                           solved ? fmt::format("{:.2f}", 1e3 * row.set_up) : "-",
                           solved ? fmt::format("{:.2f}", 1e3 * row.seconds[solve_mixed]) : "-"));
    Json entry = {{"order", row.order}, {"refine", row.refine}, {"domain", name_of(row.domain)}, {"dofs", row.dofs}};
    if (solved) {
      entry["iterations"] = row.iterations;
      entry["seconds"]["set_up"] = row.set_up;
    }
    for (int part = 0; part < parts; ++part) {
      if (row.seconds[part] == 0.0) continue;
      entry["seconds"][part_names[part]] = row.seconds[part];
      entry["ns_per_dof"][part_names[part]] = row.ns(static_cast<Part>(part));
      entry["gdof_per_second"][part_names[part]] = 1.0 / row.ns(static_cast<Part>(part));
    }
    for (int part = 0; part < parts; ++part) {
      if (row.sustained[part] == 0.0) continue;
      entry["sustained_ns_per_dof"][part_names[part]] = row.sustained[part] / row.dofs * 1e9;
    }
    for (int part = operator_fp64; part <= vcycle_fp32; ++part) {
      entry["of_copy_bound"][part_names[part]] = of_copy_bound(row, static_cast<Part>(part));
    }
    entry["smoothing_step_in_operators"] = row.seconds[smoothing_step_fp32] / row.seconds[operator_fp64];
    for (const KernelUse& kernel : row.kernels) {
      entry["kernels"].push_back({{"name", kernel.name},
                                  {"launches", kernel.launches},
                                  {"ns_per_dof", kernel.seconds / row.dofs * 1e9},
                                  {"threads", kernel.threads},
                                  {"registers", kernel.registers},
                                  {"local_bytes", kernel.local_bytes},
                                  {"shared_bytes", kernel.shared_bytes},
                                  {"occupancy", kernel.occupancy}});
    }
    run_.json["rows"].push_back(std::move(entry));
  }

  /// The time that the fewest bytes take at the rate of a copy, over the time of the part; an operator reads and writes
  /// a vector.
  [[nodiscard]] double of_copy_bound(const Row& row, Part part) const {
    const double vectors = part == smoothing_step_fp32 ? smoothing_step_vectors(options_.dim)
                           : part == vcycle_fp32       ? vcycle_vectors(options_.dim)
                                                       : 2.0;
    const double bytes = part == operator_fp64 ? 8.0 : 4.0;
    return vectors * bytes * row.dofs / ceilings_.memory / row.seconds[part];
  }

  void print_rates() {
    run_.print("\n                         part of the copy bound                  smoothing       billion unknowns/s");
    run_.print(
        "order    cells  domain     fp64   fp32  smoothing  V-cycle   in operators   operator   full multigrid    "
        "solve");
    for (const Row& row : rows_) {
      const auto rate = [&](Part part, int width) {
        return row.seconds[part] == 0.0 ? fmt::format("{:>{}}", "-", width)
                                        : fmt::format("{:{}.3g}", 1.0 / row.ns(part), width);
      };
      run_.print(fmt::format("{:<6} {:>7}  {:<9}  {:.2f}   {:.2f}       {:.2f}     {:.2f}  {:12.1f}  {}  {}  {}",
                             element(row), cells_text(options_.dim, row.refine), name_of(row.domain),
                             of_copy_bound(row, operator_fp64), of_copy_bound(row, operator_fp32),
                             of_copy_bound(row, smoothing_step_fp32), of_copy_bound(row, vcycle_fp32),
                             row.seconds[smoothing_step_fp32] / row.seconds[operator_fp64], rate(operator_fp64, 9),
                             rate(full_multigrid_mixed, 15), rate(solve_mixed, 7)));
    }
  }

  /// What a device keeps up, where heat and power limit its clock.
  void print_sustained() {
    for (const Row& row : rows_) {
      if (row.sustained[operator_fp64] == 0.0) continue;
      const auto ns = [&](Part part) { return row.sustained[part] / row.dofs * 1e9; };
      run_.print(fmt::format(
          "{}, {} cells, after a second of the same work: operator {:.4f} fp64, {:.4f} fp32, smoothing step {:.4f}, "
          "V-cycle {:.4f} ns per unknown",
          element(row), cells_text(options_.dim, row.refine), ns(operator_fp64), ns(operator_fp32),
          ns(smoothing_step_fp32), ns(vcycle_fp32)));
    }
  }

  /// What boundaries and long cells cost.
  void print_domains() {
    for (const Row& interior : rows_) {
      if (interior.domain != Domain::periodic) continue;
      for (const Row& row : rows_) {
        if (row.order != interior.order || row.refine != interior.refine || row.domain == Domain::periodic) continue;
        const double ratio = row.ns(smoothing_step_fp32) / interior.ns(smoothing_step_fp32);
        run_.print(fmt::format("{}, {} cells: a smoothing step takes {:.2f} times as long as without boundary: {}",
                               element(row), cells_text(options_.dim, row.refine), ratio, name_of(row.domain)));
      }
    }
  }

  /// What coefficients by cell cost.
  void print_coefficients() {
    for (const Row& constant : rows_) {
      if (constant.domain != Domain::walls) continue;
      for (const Row& row : rows_) {
        if (row.order != constant.order || row.refine != constant.refine) continue;
        if (row.domain != Domain::viscosity && row.domain != Domain::stress) continue;
        const auto ratio = [&](Part part) { return row.ns(part) / constant.ns(part); };
        run_.print(fmt::format(
            "{}, {} cells, {}: operator {:.2f} (fp64), {:.2f} (fp32), smoothing step {:.2f}, V-cycle {:.2f} times as "
            "long as with constant coefficients",
            element(row), cells_text(options_.dim, row.refine), name_of(row.domain), ratio(operator_fp64),
            ratio(operator_fp32), ratio(smoothing_step_fp32), ratio(vcycle_fp32)));
      }
    }
  }

  void print_kernels() {
    for (const Row& row : rows_) {
      if (row.kernels.empty()) continue;
      run_.print(fmt::format("\nKernels of {} on {} cells{}\n", element(row), cells_text(options_.dim, row.refine),
                             run_.ranks() == nullptr ? "" : ", on the first rank"));
      run_.print(fmt::format("{:<34} {:>6}  {:>8}  {:>7}  {:>9}  {:>6}  {:>7}  {:>9}", "", "starts", "ns/DoF",
                             "threads", "registers", "spills", "shared", "occupancy"));
      for (const KernelUse& k : row.kernels) {
        run_.print(fmt::format("{:<34} {:>6}  {:8.5f}  {:>7}  {:>9}  {:>6}  {:>7}  {:9.2f}", k.name, k.launches,
                               k.seconds / row.dofs * 1e9, k.threads, k.registers, k.local_bytes, k.shared_bytes,
                               k.occupancy));
      }
    }
  }

  const Options& options_;
  StudyRun run_;
  std::unique_ptr<Engine> engine_;
  Ceilings ceilings_;
  std::vector<Row> rows_;
  bool converged_ = true;
};

}  // namespace

Command add_throughput(const CommandOptions& line) {
  const auto options = std::make_shared<Options>();
  options->dim = 3;
  options->orders = {1, 2, 3};
  options->add_to(line, "3", "1..3");
  options->add_transport_to(line);
  add_choice(line, "--equation", options->equation, "what is solved");
  line.add("--sizes", options->sizes, "numbers of unknowns, as 1e6,3e6; the nearest refinements are taken")
      .from(1, 1e12)
      .shows_default();
  line.add("--rtol", options->rtol, "relative tolerance of the GMRES solve").from(1e-14, 0.5).shows_default();
  std::vector<std::string> names;
  for (const auto& [name, domain] : Names<Domain>::all) names.emplace_back(name);
  line.add("--domains", options->domains,
           "unit cubes with walls or without (periodic), with holes, an open end (outflow), a side with slip, "
           "cells of aspect ratio 4 (stretched), or walls and a viscosity by cell in the gradient form or the stress "
           "form, or in that at Gauss points")
      .one_of(names)
      .shows_default();
  return [options] { return ThroughputStudy(*options)(); };
}

}  // namespace studies
}  // namespace solenoid
