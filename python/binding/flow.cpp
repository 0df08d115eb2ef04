/// \file
/// Flows in time.

#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/agreement.hpp"
#include "binding.hpp"
#include "build_info.hpp"
#include "mesh/grid.hpp"
#include "output/result_json.hpp"
#include "solenoid/output.hpp"
#include "solenoid/time_stepper.hpp"
#include "solution/joined.hpp"

namespace solenoid::python {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A flow, and what its steps so far have done.
class Flow {
 public:
  /// `file`: a checkpoint to go on from, or empty.
  Flow(Case what, const std::string& file, Clock::time_point start = Clock::now())
      : what_(std::move(what)), stepper_(begin(what_, file)) {
    done_.time_setup = seconds_since(start);
  }

  [[nodiscard]] const TimeStepper& stepper() const { return stepper_; }

  void set_force(const std::vector<ScalarField>& force) {
    released([&] { stepper_.set_force(vector_field(force)); });
  }
  void set_boundary(int side, const std::vector<ScalarField>& data) {
    released([&] { stepper_.set_boundary(side, vector_field(data)); });
  }
  void set_reaction(const ScalarField& mass) {
    released([&] { stepper_.set_reaction(mass); });
  }
  void set_viscosity(const ScalarField& viscosity) {
    released([&] { stepper_.set_viscosity(viscosity); });
  }

  StepReport step() {
    StepReport report;
    together([&] { report = make_step(); });
    return report;
  }
  /// All steps in one call, between which no rank looks at Python's signals alone.
  void advance(double time) {
    // A time that rounding alone keeps from being reached is reached.
    together([&] {
      while (stepper_.time() < time - 1e-12 * std::abs(time) && !stepper_.steady()) make_step();
    });
  }

  /// A checkpoint, by the first rank.
  void save(const std::string& file) const {
    const auto checkpoint = stepper_.checkpoint();
    in_agreement(what_.solver.communicator.get(), [&] {
      if (checkpoint) checkpoint->save(file);
    });
  }

  /// Of the steps so far; and up to what the scheme is stable without viscosity, or 0 where that says nothing.
  [[nodiscard]] double largest_cfl() const { return largest_cfl_; }
  [[nodiscard]] double stable() const {
    const Problem& problem = what_.problem;
    return problem.convection ? stable_cfl(what_.time->options.scheme, problem.order) : 0.0;
  }

  /// The fields of the result file that are known of a flow on its way.
  [[nodiscard]] std::string report_json() const {
    Report report = stepper_.report();
    report.converged = true;
    report.reason = "all steps have converged";
    report.iterations = done_.iterations;
    report.residual_history = done_.residual_history;
    report.time_setup = done_.time_setup;
    report.time_solve = done_.time_solve;
    Case so_far = what_;
    so_far.time->end = report.end_time;
    return result_json(so_far, report, nullptr);
  }

 private:
  static TimeStepper begin(const Case& what, const std::string& file) {
    const TimeOptions& time = what.time->options;
    if (file.empty()) return {what.problem, time, what.solver};
    std::optional<Checkpoint> checkpoint;
    in_agreement(what.solver.communicator.get(), [&] { checkpoint = load_checkpoint(file); });
    return {what.problem, time, what.solver, *checkpoint};
  }

  template <class F>
  void together(const F& work) {
    const Communicator* const ranks = what_.solver.communicator.get();
    std::exception_ptr raised;
    const auto work_and_agree = [&] {
      work();
      // One rank may have seen a signal after the last time that the work asked all of them.
      if (ranks != nullptr && ranks->any(raised != nullptr)) throw Interrupted("interrupted");
    };
    released(work_and_agree, raised);
  }

  StepReport make_step() {
    const auto start = Clock::now();
    const StepReport report = stepper_.step();
    done_.time_solve += seconds_since(start);
    done_.iterations += report.cycles;
    largest_cfl_ = std::max(largest_cfl_, report.cfl);
    done_.residual_history.push_back(report.residual);
    return report;
  }

  Case what_;
  double largest_cfl_ = 0.0;
  TimeStepper stepper_;
  Report done_;
};

/// A case with options in place of its own; `initial`: a velocity, or none for that of the case.
Case march_of(Case what, const nb::dict& time, const std::optional<std::vector<ScalarField>>& initial,
              const std::optional<double>& average, const std::optional<double>& average_every, const nb::dict& options,
              const Ranks* ranks) {
  March march = what.time.value_or(March());
  march.options = time_options_of(march, time, what.problem);
  if (initial) march.options.initial = vector_field(*initial);
  if (average) march.options.average_start = average;
  if (average_every) march.options.average_every = *average_every;
  what.time = march;
  what.solver = options_of(what.solver, options, ranks);
  return what;
}

std::size_t dim_of(const Averages& a) { return static_cast<std::size_t>(a.flow.grid().dim()); }

/// Arrays with a row for each place: coordinates across, U, P, R, dissipation.
nb::tuple profile_of(const Averages& a, const std::array<bool, 3>& along) {
  const Profile profile = released([&] { return a.profile(along); });
  std::vector<double> at;
  std::vector<Point> velocity;
  std::vector<double> pressure;
  std::vector<Gradient> stress;
  std::vector<double> dissipation;
  for (const Profile::Row& row : profile.rows) {
    for (const int axis : profile.across) at.push_back(row.at[axis]);
    velocity.push_back(row.velocity);
    pressure.push_back(row.pressure);
    stress.push_back(row.stress);
    dissipation.push_back(row.dissipation);
  }
  return nb::make_tuple(numpy_array(std::move(at), {profile.rows.size(), profile.across.size()}),
                        rows(velocity, dim_of(a)), scalars(std::move(pressure)), gradients(stress, dim_of(a)),
                        scalars(std::move(dissipation)));
}

/// The first rank writes.
void write_profile(const Averages& a, const std::array<bool, 3>& along, const std::filesystem::path& file) {
  released([&] {
    const Profile profile = a.profile(along);
    const Communicator* const ranks = a.flow.grid().communicator();
    in_agreement(ranks, [&] {
      if (ranks == nullptr || ranks->rank() == 0) write_csv(profile, a.flow.grid().dim(), file);
    });
  });
}

}  // namespace

void bind_flow(nb::module_& m) {
  nb::class_<Averages>(m, "Averages")
      .def_ro("start", &Averages::start)
      .def_ro("length", &Averages::length)
      .def_prop_ro("flow", [](const Averages& a) { return without_report(a.flow); })
      .def("stress",
           [](const Averages& a, const Points& points) {
             return gradients(released([&] { return a.stress(points_of(points)); }), dim_of(a));
           })
      .def("dissipation",
           [](const Averages& a, const Points& points) {
             return scalars(released([&] { return a.dissipation.value(points_of(points)); }));
           })
      .def("profile", &profile_of)
      .def("write_csv", &write_profile)
      .def("write_vtu", [](const Averages& a, const std::filesystem::path& file,
                           int subdivide) { released([&] { write_vtu(a, file, subdivide); }); })
      .def("gathered", [](const Averages& a) { return released([&] { return a.gathered(); }); });

  nb::class_<StepReport>(m, "StepReport")
      .def_ro("number", &StepReport::number)
      .def_ro("time", &StepReport::time)
      .def_ro("length", &StepReport::length)
      .def_ro("cfl", &StepReport::cfl)
      .def_ro("cycles", &StepReport::cycles)
      .def_ro("residual", &StepReport::residual)
      .def_ro("change", &StepReport::change)
      .def_ro("gradient", &StepReport::gradient);

  nb::class_<Flow> flow(m, "Flow");
  bind_places(flow, [](const Flow& f) -> const TimeStepper& { return f.stepper(); });
  flow.def(
          "__init__",
          [](Flow* self, const Case& what, const nb::dict& time, const std::optional<std::vector<ScalarField>>& initial,
             const std::optional<double>& average, const std::optional<double>& average_every, const nb::dict& options,
             const Ranks* ranks, const std::string& file) {
            Case run = march_of(what, time, initial, average, average_every, options, ranks);
            released([&] {
              if (ranks != nullptr) check_same(*ranks->communicator, run, build_info::commit);
              new (self) Flow(std::move(run), file);
            });
          },
          nb::arg("case"), nb::arg("time"), nb::arg("initial").none(), nb::arg("average").none(),
          nb::arg("average_every").none(), nb::arg("options"), nb::arg("ranks").none(), nb::arg("checkpoint"))
      .def("save", [](const Flow& f, const std::string& file) { released([&] { f.save(file); }); })
      .def("set_force", &Flow::set_force)
      .def("set_boundary", &Flow::set_boundary)
      .def("set_reaction", &Flow::set_reaction)
      .def("set_viscosity", &Flow::set_viscosity)
      .def_prop_ro("next_step", [](const Flow& f) { return f.stepper().next_step(); })
      .def_prop_ro("on_gpu", [](const Flow& f) { return f.stepper().on_gpu(); })
      .def("velocity_at",
           [](const Flow& f, int points) { return scalars(released([&] { return f.stepper().velocity_at(points); })); })
      .def("face_fluxes",
           [](const Flow& f) {
             nb::list arrays;
             for (auto& fluxes : released([&] { return f.stepper().face_fluxes(); })) {
               if (!fluxes.empty()) arrays.append(scalars(std::move(fluxes)));
             }
             return arrays;
           })
      // To arrays that begin at these addresses in the memory of the device.
      .def("velocity_to",
           [](const Flow& f, int points, std::uintptr_t address) {
             released([&] { f.stepper().velocity_at(points, reinterpret_cast<double*>(address)); });
           })
      .def("face_fluxes_to",
           [](const Flow& f, const std::vector<std::uintptr_t>& addresses) {
             std::array<double*, 3> fluxes{};
             for (std::size_t a = 0; a < addresses.size(); ++a) fluxes[a] = reinterpret_cast<double*>(addresses[a]);
             released([&] { f.stepper().face_fluxes(fluxes); });
           })
      .def("step", &Flow::step)
      .def("advance", &Flow::advance)
      .def_prop_ro("time", [](const Flow& f) { return f.stepper().time(); })
      .def_prop_ro("steps", [](const Flow& f) { return f.stepper().steps(); })
      .def_prop_ro("steady", [](const Flow& f) { return f.stepper().steady(); })
      .def_prop_ro("largest_cfl", &Flow::largest_cfl)
      .def_prop_ro("stable_cfl", &Flow::stable)
      .def_prop_ro("dofs", [](const Flow& f) { return f.stepper().dofs(); })
      .def("solution", [](const Flow& f,
                          double time) { return without_report(released([&] { return f.stepper().solution(time); })); })
      .def("averages", [](const Flow& f) { return released([&] { return f.stepper().averages(); }); })
      .def("report_json", [](const Flow& f) { return released([&] { return f.report_json(); }); });
}

}  // namespace solenoid::python
