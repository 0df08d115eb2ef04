/// \file
/// The linear system on arrays of other libraries: those in the memory of the system's device are used where they lie.

#include "solenoid/linear_system.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.hpp"
#include "solenoid/error.hpp"

namespace solenoid::python {
namespace {

using In = nb::ndarray<const double, nb::ndim<1>, nb::c_contig>;
using Out = nb::ndarray<double, nb::ndim<1>, nb::c_contig>;

class System {
 public:
  System(const Problem& problem, const SolverOptions& options) : system_(problem, options) {}

  LinearSystem& system() { return system_; }

  void apply(const In& x, const Out& y) {
    run(x, y, [&](const double* from, double* to) { system_.apply(from, to); });
  }
  void precondition(const In& r, const Out& z) {
    run(r, z, [&](const double* from, double* to) { system_.precondition(from, to); });
  }
  void load(const Out& b) {
    check_size(b.size());
    double* const to = lives_here(b.device_type()) ? b.data() : staged(to_);
    released([&] { system_.load(to); });
    finish(to, b);
  }
  Solved solution(const In& x) {
    check_size(x.size());
    const double* const from = on_device(x);
    Solution solution = released([&] { return system_.solution(from); });
    return {case_of(solution.problem()), std::move(solution), {}};
  }

 private:
  template <class Work>
  void run(const In& x, const Out& y, const Work& work) {
    check_size(x.size());
    check_size(y.size());
    const double* const from = on_device(x);
    double* const to = lives_here(y.device_type()) ? y.data() : staged(to_);
    work(from, to);
    finish(to, y);
  }

  /// Whether an array lies in the memory of the system's device; if not, it lies in that of the host.
  [[nodiscard]] bool lives_here(int device) const {
    const bool gpu = device == nb::device::cuda::value || device == nb::device::cuda_managed::value;
    if (gpu && !system_.on_gpu()) {
      throw InputError(
          fmt::format("the array lies in the memory of a GPU, but the system is on {}: make it with "
                      "device=\"cuda\", or copy the array",
                      system_.device()));
    }
    return gpu || !system_.on_gpu();
  }

  const double* on_device(const In& x) {
    if (lives_here(x.device_type())) return x.data();
    system_.upload({x.data(), x.size()}, staged(from_));
    return from_.get();
  }

  /// Other streams and the host may use the result once this returns.
  void finish(double* result, const Out& y) {
    if (result == y.data()) {
      system_.synchronise();
    } else {
      system_.download(result, {y.data(), y.size()});
    }
  }

  void check_size(std::size_t size) const {
    if (static_cast<std::int64_t>(size) == system_.size()) return;
    throw InputError(fmt::format("expected a vector of {} numbers, got {}", system_.size(), size));
  }

  /// Memory of a GPU for arrays of the host.
  double* staged(std::shared_ptr<double>& vector) {
    if (vector == nullptr) vector = system_.make_vector();
    return vector.get();
  }

  LinearSystem system_;
  std::shared_ptr<double> from_;
  std::shared_ptr<double> to_;
};

}  // namespace

void bind_linear_system(nb::module_& m) {
  nb::class_<System>(m, "LinearSystem")
      .def("__init__",
           [](System* self, const Problem& problem, const nb::dict& options) {
             SolverOptions solver = options_of({}, options);
             solver.progress = [](const Progress&) {
               const nb::gil_scoped_acquire gil;
               if (PyErr_CheckSignals() != 0) throw nb::python_error();
             };
             released([&] { new (self) System(problem, solver); });
           })
      .def_prop_ro("size", [](System& s) { return s.system().size(); })
      .def_prop_ro("dofs", [](System& s) { return s.system().dofs(); })
      .def_prop_ro("device", [](System& s) { return s.system().device(); })
      .def_prop_ro("on_gpu", [](System& s) { return s.system().on_gpu(); })
      .def_prop_ro("memory_bytes", [](System& s) { return s.system().memory_bytes(); })
      .def_prop_ro("stream", [](System& s) { return reinterpret_cast<std::uintptr_t>(s.system().stream()); })
      .def("wait_for",
           [](System& s, std::uintptr_t stream) {
             s.system().wait_for(reinterpret_cast<void*>(stream));  // NOLINT(performance-no-int-to-ptr): a handle
           })
      .def("unknowns",
           [](System& s) {
             std::vector<std::int64_t> places = s.system().unknowns();
             const std::size_t count = places.size();
             return numpy_array(std::move(places), {count});
           })
      .def("apply", &System::apply, nb::arg("x").noconvert(), nb::arg("y").noconvert())
      .def("precondition", &System::precondition, nb::arg("r").noconvert(), nb::arg("z").noconvert())
      .def("load", &System::load, nb::arg("b").noconvert())
      .def("solution", &System::solution, nb::arg("x").noconvert());

  /// What objects of the CUDA array interface say about themselves, as an array that the functions above take.
  m.def(
      "gpu_array",
      [](std::uintptr_t address, std::size_t size, nb::handle owner) {
        return nb::ndarray<double, nb::ndim<1>, nb::device::cuda>(reinterpret_cast<void*>(address), {size}, owner);
      },
      nb::arg("address"), nb::arg("size"), nb::arg("owner"));
}

}  // namespace solenoid::python
