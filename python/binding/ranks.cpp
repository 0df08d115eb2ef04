/// \file
/// Ranks, given as communicators of MPI that Python code has made.

#include <nanobind/stl/string.h>

#include "base/mpi/mpi_library.hpp"
#include "binding.hpp"

namespace solenoid::python {

void bind_ranks(nb::module_& m) {
  nb::class_<MpiLibrary>(m, "MpiLibrary")
      .def_ro("version", &MpiLibrary::version)
      .def_ro("communicator_bytes", &MpiLibrary::communicator_bytes)
      .def_ro("running", &MpiLibrary::running);
  m.def("mpi_library", &mpi_library);

  nb::class_<Ranks>(m, "Ranks").def_prop_ro("rank", [](const Ranks& ranks) { return ranks.communicator->rank(); });
  m.def(
      "ranks",
      [](std::uintptr_t address) {
        const nb::gil_scoped_release release;
        return Ranks{mpi_communicator(reinterpret_cast<const void*>(address))};  // NOLINT(performance-no-int-to-ptr)
      },
      nb::arg("address"));
}

}  // namespace solenoid::python
