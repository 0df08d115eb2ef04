#pragma once
/// \file
/// The table of kernels of one instance.

#include <type_traits>

#include "engine/cuda/kernels/convection.hpp"
#include "engine/cuda/kernels/elements.hpp"
#include "engine/cuda/kernels/flow_integrals.hpp"
#include "engine/cuda/kernels/flow_moments.hpp"
#include "engine/cuda/kernels/load.cuh"
#include "engine/cuda/kernels/operator.cuh"
#include "engine/cuda/kernels/point_viscosity.hpp"
#include "engine/cuda/kernels/poisson_operator.cuh"
#include "engine/cuda/kernels/smoother/general.cuh"
#include "engine/cuda/kernels/smoother/parity.cuh"
#include "engine/cuda/kernels/smoother/poisson.cuh"
#include "engine/cuda/kernels/transfer.cuh"

namespace solenoid::cuda {

template <class T, EquationKind equation, int dim, int order>
KernelTable<T> make_table() {
  KernelTable<T> table{};
  if constexpr (equation == EquationKind::stokes) {
    table.apply = &Operator<T, dim, order>::apply;
    table.residual_at = &Operator<T, dim, order>::residual_at;
    // In files of their own.
    table.apply_varying = &apply_varying<T, dim, order>;
    table.apply_sheared = &apply_sheared<T, dim, order>;
    table.parity[0] = parity_kernel<T, dim, order, 0>();
    table.parity[1] = parity_kernel<T, dim, order, 1>();
    table.parity[2] = parity_kernel<T, dim, order, 2>();
    using General = GeneralSmoother<T, dim, order>;
    table.general = {General::two ? 2 : 1, General::many, &General::launch_smooth};
  } else {
    using Smoother = PoissonSmoother<T, dim, order>;
    table.apply = &PoissonOperator<T, dim, order>::launch_apply;
    table.poisson = {Smoother::patches, &Smoother::launch_smooth};
  }
  table.restrict_to = &Transfer<T, velocity_components(equation, dim), dim, order>::launch_restrict_to;
  table.prolong = &Transfer<T, velocity_components(equation, dim), dim, order>::launch_prolong;
  if constexpr (std::is_same_v<T, double>) {
    table.load = &LoadBlock<velocity_components(equation, dim), dim, order>::launch_load;
    if constexpr (equation == EquationKind::stokes) {  // in files of their own
      table.convect = &convect<dim, order>;
      table.convect_sheared = &convect_sheared<dim, order>;
      table.add_point_viscosity = &add_point_viscosity<dim, order>;
      table.add_sheared_point_viscosity = &add_sheared_point_viscosity<dim, order>;
      table.integrate_flow = &integrate_flow<dim, order>;
      table.add_flow_moments = &add_flow_moments<dim, order>;
    }
  }
  return table;
}

}  // namespace solenoid::cuda
