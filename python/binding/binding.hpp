#pragma once
/// \file
/// The parts of the extension module. What people see is the Python code around it, which has the documentation.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "problem/validate.hpp"
#include "solenoid/averages.hpp"
#include "solenoid/case.hpp"
#include "solenoid/image.hpp"
#include "solenoid/interrupt.hpp"
#include "solenoid/permeability.hpp"
#include "solenoid/solution.hpp"
#include "solenoid/solver.hpp"

namespace solenoid::python {

namespace nb = nanobind;

/// A solution, and what it is the solution of; with a report if it comes from solve().
struct Solved {
  Case what;
  Solution solution;
  std::optional<Report> report;
};

/// A case that is a problem and nothing else.
inline Case case_of(const Problem& problem) {
  Case result;
  result.problem = problem;
  result.solver.max_iterations = usual_max_iterations(problem);
  return result;
}

inline Solved without_report(Solution solution) { return {case_of(solution.problem()), std::move(solution), {}}; }

/// Processes that solve a problem together.
struct Ranks {
  std::shared_ptr<const Communicator> communicator;
};

/// An image as Python has it: meshes share it.
struct Image {
  std::shared_ptr<const VoxelImage> voxels;
};

/// The field with these components, as many as are given.
VectorField vector_field(const std::vector<ScalarField>& components);

void bind_ranks(nb::module_& m);
void bind_problem(nb::module_& m);
void bind_solution(nb::module_& m);
void bind_linear_system(nb::module_& m);
void bind_flow(nb::module_& m);
void bind_permeability(nb::module_& m);

/// The options of `base` with those of a dictionary in place, by the names of the case file and of the command line,
/// for several ranks or, with nullptr, this process alone. \throws InputError as the case file's reader does.
SolverOptions options_of(SolverOptions base, const nb::dict& options, const Ranks* ranks);
/// The table [permeability], of an image with so many dimensions.
PermeabilityOptions permeability_options_of(const nb::dict& options, int dim);
/// The same of the table [time], with steps by the default of `cfl` where neither names their lengths.
TimeOptions time_options_of(March base, const nb::dict& options, const Problem& problem);

/// Lets other threads run Python code (fields may be Python functions) while `work` is done. Python's signals are
/// looked at meanwhile, so that Ctrl-C ends it with KeyboardInterrupt, or with what a handler of the script raises. So
/// does what `work` puts into `raised`.
template <class F>
auto released(F&& work, std::exception_ptr& raised) {
  const Interruptible scope([&] {
    if (raised != nullptr) return true;
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) return false;
    raised = std::make_exception_ptr(nb::python_error());
    return true;
  });
  const nb::gil_scoped_release release;
  try {
    return work();
  } catch (const Interrupted&) {
    if (raised == nullptr) {  // by another rank: all end together
      const nb::gil_scoped_acquire gil;
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      raised = std::make_exception_ptr(nb::python_error());
    }
    std::rethrow_exception(raised);
  }
}
template <class F>
auto released(F&& work) {
  std::exception_ptr raised;
  return released(std::forward<F>(work), raised);
}

template <class T>
using NumpyArray = nb::ndarray<nb::numpy, T>;

/// A numpy array of `shape` that owns its values.
template <class T>
NumpyArray<T> numpy_array(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  auto* const owned = new std::vector<T>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return NumpyArray<T>(owned->data(), shape, owner);
}

/// (n, dim), C order.
using Points = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline std::vector<Point> points_of(const Points& array) {
  std::vector<Point> points(array.shape(0), Point{});
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t a = 0; a < array.shape(1); ++a) points[i].at(a) = array.data()[i * array.shape(1) + a];
  }
  return points;
}

/// The first `dim` entries of each row as an array (n, dim).
template <std::size_t count>
NumpyArray<double> rows(const std::vector<std::array<double, count>>& values, std::size_t dim) {
  std::vector<double> numbers;
  numbers.reserve(values.size() * dim);
  for (const auto& value : values) numbers.insert(numbers.end(), value.begin(), value.begin() + static_cast<int>(dim));
  return numpy_array(std::move(numbers), {values.size(), dim});
}

/// The first `dim` entries as an array (dim,).
inline NumpyArray<double> vector_of(const Point& value, std::size_t dim) {
  return numpy_array(std::vector<double>(value.begin(), value.begin() + static_cast<int>(dim)), {dim});
}

inline NumpyArray<double> gradients(const std::vector<Gradient>& values, std::size_t dim) {
  std::vector<double> numbers;
  numbers.reserve(values.size() * dim * dim);
  for (const Gradient& value : values) {
    for (std::size_t c = 0; c < dim; ++c) {
      numbers.insert(numbers.end(), value[c].begin(), value[c].begin() + static_cast<int>(dim));
    }
  }
  return numpy_array(std::move(numbers), {values.size(), dim, dim});
}

inline NumpyArray<double> scalars(std::vector<double> values) {
  const std::size_t count = values.size();
  return numpy_array(std::move(values), {count});
}

/// name -> (force, torque, sampled pressure, sampled viscous force); in 2D a torque is a number.
inline nb::dict forces_by_name(const std::vector<BoundaryForce>& forces, std::size_t dim) {
  nb::dict result;
  for (const BoundaryForce& force : forces) {
    const nb::object torque = dim == 2 ? nb::object(nb::float_(force.torque[2])) : nb::cast(vector_of(force.torque, 3));
    result[force.name.c_str()] =
        nb::make_tuple(vector_of(force.force, dim), torque, vector_of(force.sampled_pressure, dim),
                       vector_of(force.sampled_viscous, dim));
  }
  return result;
}

/// What Python's Places ask: flow(bound) is a Solution or a TimeStepper.
template <class Bound, class Flow>
void bind_places(nb::class_<Bound>& bound, const Flow& flow) {
  bound
      .def("velocity",
           [flow](const Bound& b, const Points& points) {
             return rows(released([&] { return flow(b).velocity(points_of(points)); }), points.shape(1));
           })
      .def("pressure",
           [flow](const Bound& b, const Points& points) {
             return scalars(released([&] { return flow(b).pressure(points_of(points)); }));
           })
      .def("flux", [flow](const Bound& b, int axis,
                          double position) { return released([&] { return flow(b).flux(axis, position); }); })
      .def("forces", [flow](const Bound& b, const std::vector<double>& about) {
        Point centre{};
        std::copy_n(about.begin(), std::min(about.size(), centre.size()), centre.begin());
        return forces_by_name(released([&] { return flow(b).forces(centre); }), about.size());
      });
}

}  // namespace solenoid::python
