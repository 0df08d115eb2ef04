/// \file
/// The linear system on arrays of other libraries: those in the memory of the system's device are read and written
/// there.

#include "solenoid/linear_system.hpp"

#include <fmt/format.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>

#include "binding.hpp"
#include "build_info.hpp"
#include "output/result_json.hpp"
#include "solenoid/error.hpp"

namespace solenoid::python {
namespace {

/// Of any type and shape, so that it is said here what is wrong with them.
using In = nb::ndarray<nb::ro>;
using Out = nb::ndarray<>;

std::string described(const In& array) {
  constexpr std::array kinds = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  const std::size_t kind = array.dtype().code;
  const auto* const shape = array.shape_ptr();
  const auto* const strides = array.stride_ptr();
  return fmt::format("{}{}, shape ({}), strides ({})", kind < kinds.size() ? kinds.at(kind) : "type ",
                     array.dtype().bits, fmt::join(shape, shape + array.ndim(), ", "),
                     fmt::join(strides, strides + array.ndim(), ", "));
}

/// A vector as it is in the memory of the system's device; `system`: that it is of.
struct Vector {
  std::shared_ptr<double> data;
  const void* system = nullptr;
};

class System {
 public:
  System(const Problem& problem, const SolverOptions& options) : system_(problem, options) {}

  LinearSystem& system() { return system_; }

  /// Those that are given.
  void set_coefficients(const std::optional<ScalarField>& viscosity, const std::optional<ScalarField>& mass) {
    released([&] {
      if (viscosity && mass) return system_.set_coefficients(*viscosity, *mass);
      if (viscosity) system_.set_viscosity(*viscosity);
      if (mass) system_.set_reaction(*mass);
    });
  }
  void apply(const In& x, const Out& out) {
    run(x, out, [&](const double* from, double* to) { system_.apply(from, to); });
  }
  void precondition(const In& x, const Out& out) {
    run(x, out, [&](const double* from, double* to) { system_.precondition(from, to); });
  }
  void apply_mass(const In& x, const Out& out) {
    run(x, out, [&](const double* from, double* to) { system_.apply_mass(from, to); });
  }
  void load(const Out& out, const std::optional<std::vector<ScalarField>>& force) {
    double* const to = target(out);
    load_into(made(to_), force);
    system_.pack(to_.get(), to);
    finish(to, out);
  }
  LinearReport solve(const In& b, const std::optional<In>& x0, const Out& out, std::optional<double> rtol) {
    system_.unpack(source(b, "b"), made(from_));
    // On a GPU an array of the host is staged: copied on before the next one is.
    if (x0) system_.unpack(source(*x0, "x0"), made(to_));
    double* const to = target(out);
    LinearReport report = released([&] { return system_.solve(from_.get(), made(to_), x0.has_value(), rtol); });
    system_.pack(to_.get(), to);
    finish(to, out);
    return report;
  }
  Solved solution(const In& x) {
    system_.unpack(source(x), made(from_));
    return without_report(released([&] { return system_.solution(from_.get()); }));
  }

  // Vectors in place of arrays: nothing is converted.

  Vector make_vector() { return {system_.make_vector(), this}; }
  void set(const Vector& x, const In& values) {
    const double* const from = source(values, "values");
    system_.unpack(from, mine(x));
    if (from == values.data()) system_.synchronise();  // the array may change once this returns
  }
  void get(const Vector& x, const Out& out) {
    double* const to = target(out);
    system_.pack(mine(x), to);
    finish(to, out);
  }
  void load_to(const Vector& out, const std::optional<std::vector<ScalarField>>& force) { load_into(mine(out), force); }
  void apply_to(const Vector& x, const Vector& out) { system_.apply(mine(x), mine(out)); }
  void precondition_to(const Vector& x, const Vector& out) { system_.precondition(mine(x), mine(out)); }
  void apply_mass_to(const Vector& x, const Vector& out) { system_.apply_mass(mine(x), mine(out)); }
  LinearReport solve_to(const Vector& b, const Vector& x, bool from_x, std::optional<double> rtol) {
    double* const solution = mine(x);
    return released([&] { return system_.solve(mine(b), solution, from_x, rtol); });
  }
  Solved solution_of(const Vector& x) {
    return without_report(released([&] { return system_.solution(mine(x)); }));
  }
  /// Integral of u, of |u|^2, of |grad u|^2, of |curl u|^2, largest |u| and |div u|.
  nb::tuple integrals(const Vector& x) {
    const FlowIntegrals all = released([&] { return system_.integrals(mine(x)); });
    const auto dim = static_cast<std::size_t>(system_.problem().mesh.dim);
    std::vector<double> velocity(all.velocity.begin(), all.velocity.begin() + system_.problem().mesh.dim);
    return nb::make_tuple(numpy_array(std::move(velocity), {dim}), all.velocity_square, all.gradient_square,
                          all.vorticity_square, all.max_speed, all.max_divergence);
  }
  /// Of velocity, pressure and Poisson's u, those that are given.
  std::array<std::optional<double>, 3> errors(const Vector& x, const std::optional<std::vector<ScalarField>>& velocity,
                                              const std::optional<ScalarField>& pressure,
                                              const std::optional<ScalarField>& value) {
    Exact exact;
    if (velocity) exact.velocity = vector_field(*velocity);
    exact.pressure = pressure;
    exact.value = value;
    const Errors errors = released([&] { return system_.errors(mine(x), exact); });
    return {errors.velocity, errors.pressure, errors.value};
  }
  void copy(const Vector& x, const Vector& y) { system_.copy(mine(x), mine(y)); }
  void axpy(double a, const Vector& x, const Vector& y) { system_.axpy(a, mine(x), mine(y)); }
  void scale(double a, const Vector& x) { system_.scale(a, mine(x)); }
  double dot(const Vector& x, const Vector& y) { return system_.dot(mine(x), mine(y)); }

  /// \throws InputError if an array on this GPU (they are numbered) is not one for this system.
  void expect_gpu(int number, const char* name) const {
    if (!system_.on_gpu()) {
      throw InputError(
          fmt::format("{}: the array lies in the memory of a GPU, but the system is on {}: make it with "
                      "device=\"cuda\", or copy the array",
                      name, system_.device()));
    }
    if (number != 0) {
      throw InputError(fmt::format(
          "{}: the array lies on GPU {}, but the system on GPU 0, which CUDA_VISIBLE_DEVICES chooses", name, number));
    }
  }

 private:
  template <class Work>
  void run(const In& x, const Out& out, const Work& work) {
    system_.unpack(source(x), made(from_));
    double* const to = target(out);
    work(from_.get(), made(to_));
    system_.pack(to_.get(), to);
    finish(to, out);
  }

  /// Values of an array in the memory of the system's device.
  const double* source(const In& x, const char* name = "x") {
    const auto* const values = static_cast<const double*>(x.data());
    if (lives_here(x, name)) return values;
    system_.upload({values, x.size()}, made(staged_));
    return staged_.get();
  }
  /// Where in the memory of the system's device a result goes.
  double* target(const Out& out) {
    return lives_here(In(out), "out") ? static_cast<double*>(out.data()) : made(staged_);
  }
  /// Other streams and the host may use the result once this returns.
  void finish(double* result, const Out& out) {
    auto* const values = static_cast<double*>(out.data());
    if (result == values) {
      system_.synchronise();
    } else {
      system_.download(result, {values, out.size()});
    }
  }

  /// Whether an array lies in the memory of the system's device; if not, it lies in that of the host. \throws
  /// InputError if it is not a vector, or lies elsewhere.
  [[nodiscard]] bool lives_here(const In& array, const char* name) const {
    const auto size = static_cast<std::size_t>(system_.dofs());
    const bool column = array.ndim() == 1 || (array.ndim() == 2 && array.shape(1) == 1);
    if (!column || array.shape(0) != size || array.stride(0) != 1 || array.dtype() != nb::dtype<double>()) {
      throw InputError(
          fmt::format("{}: expected a contiguous array of {} float64, got {}", name, size, described(array)));
    }
    switch (array.device_type()) {
      case nb::device::cuda::value:
      case nb::device::cuda_managed::value: expect_gpu(array.device_id(), name); return true;
      case nb::device::cpu::value:
      case nb::device::cuda_host::value: return !system_.on_gpu();
      default:
        throw InputError(fmt::format("{}: the array lies neither in the memory of the host nor of a CUDA GPU", name));
    }
  }

  void load_into(double* b, const std::optional<std::vector<ScalarField>>& force) {
    released([&] {
      if (force) {
        system_.load(b, vector_field(*force));
      } else {
        system_.load(b);
      }
    });
  }

  double* mine(const Vector& x) const {
    if (x.system != this) throw InputError("a vector of another linear system");
    return x.data.get();
  }

  double* made(std::shared_ptr<double>& vector) {
    if (vector == nullptr) vector = system_.make_vector();
    return vector.get();
  }

  LinearSystem system_;
  // Arrays hold the unknowns one after the other; these are vectors of the system.
  std::shared_ptr<double> from_;
  std::shared_ptr<double> to_;
  std::shared_ptr<double> staged_;  // on a GPU what an array of the host holds
};

}  // namespace

void bind_linear_system(nb::module_& m) {
  nb::class_<LinearReport>(m, "LinearReport")
      .def_ro("converged", &LinearReport::converged)
      .def_ro("reason", &LinearReport::reason)
      .def_ro("iterations", &LinearReport::iterations)
      .def_ro("residual_history", &LinearReport::residual_history);

  nb::class_<Vector>(m, "Vector");
  nb::class_<System>(m, "LinearSystem")
      .def(
          "__init__",
          [](System* self, const Problem& problem, const nb::dict& options, const Ranks* ranks) {
            Case run = case_of(problem);
            run.solver = options_of(run.solver, options, ranks);
            released([&] {
              if (ranks != nullptr) check_same(*ranks->communicator, run, build_info::commit);
              new (self) System(problem, run.solver);
            });
          },
          nb::arg("problem"), nb::arg("options"), nb::arg("ranks").none())
      .def_prop_ro("size", [](System& s) { return s.system().dofs(); })
      .def_prop_ro("dofs", [](System& s) { return s.system().dofs_of_all(); })
      .def_prop_ro("device", [](System& s) { return s.system().device(); })
      .def_prop_ro("on_gpu", [](System& s) { return s.system().on_gpu(); })
      .def_prop_ro("memory_bytes", [](System& s) { return s.system().memory_bytes(); })
      .def_prop_ro("stream", [](System& s) { return reinterpret_cast<std::uintptr_t>(s.system().stream()); })
      .def("wait_for",
           [](System& s, std::uintptr_t stream) {
             s.system().wait_for(reinterpret_cast<void*>(stream));  // NOLINT(performance-no-int-to-ptr): a handle
           })
      .def("expect_gpu", &System::expect_gpu)
      .def_prop_ro("problem", [](System& s) { return s.system().problem(); })
      .def("set_coefficients", &System::set_coefficients, nb::arg("viscosity").none(), nb::arg("mass").none())
      .def("set_parameters", [](System& s, const Parameters& values) { s.system().set_parameters(values); })
      .def("apply", &System::apply, nb::arg("x").noconvert(), nb::arg("out").noconvert())
      .def("precondition", &System::precondition, nb::arg("x").noconvert(), nb::arg("out").noconvert())
      .def("apply_mass", &System::apply_mass, nb::arg("x").noconvert(), nb::arg("out").noconvert())
      .def("load", &System::load, nb::arg("out").noconvert(), nb::arg("force").none())
      .def("solve", &System::solve, nb::arg("b").noconvert(), nb::arg("x0").noconvert().none(),
           nb::arg("out").noconvert(), nb::arg("rtol").none())
      .def("solution", &System::solution, nb::arg("x").noconvert())
      .def("make_vector", &System::make_vector)
      .def("set", &System::set, nb::arg("x"), nb::arg("values").noconvert())
      .def("get", &System::get, nb::arg("x"), nb::arg("out").noconvert())
      .def("load", &System::load_to, nb::arg("out"), nb::arg("force").none())
      .def("apply", &System::apply_to)
      .def("precondition", &System::precondition_to)
      .def("apply_mass", &System::apply_mass_to)
      .def("solve", &System::solve_to, nb::arg("b"), nb::arg("x"), nb::arg("from_x"), nb::arg("rtol").none())
      .def("solution", &System::solution_of)
      .def("integrals", &System::integrals)
      .def("errors", &System::errors, nb::arg("x"), nb::arg("velocity").none(), nb::arg("pressure").none(),
           nb::arg("value").none())
      .def("copy", &System::copy)
      .def("axpy", &System::axpy)
      .def("scale", &System::scale)
      .def("dot", &System::dot);

  /// What objects of the CUDA array interface say about themselves, as an array that the functions above take.
  m.def(
      "gpu_array",
      [](std::uintptr_t address, const std::vector<std::size_t>& shape, nb::handle owner) {
        return nb::ndarray<double, nb::device::cuda>(reinterpret_cast<void*>(address), shape.size(), shape.data(),
                                                     owner);
      },
      nb::arg("address"), nb::arg("shape"), nb::arg("owner"));
}

}  // namespace solenoid::python
