#pragma once
/// \file
/// Problems with other coefficients, for who keeps what was set up for them.

#include "solenoid/problem.hpp"

namespace solenoid {

/// The problem with another viscosity, or another mass term, everywhere, in regions too. Its kernels and the form of
/// its viscous term stay what they are: a number is one of constant coefficients, where coefficients are by cell there
/// may be fields. \throws InvalidEntry for others, which take another set-up. Values are not looked at.
Problem with_viscosity(Problem problem, const ScalarField& viscosity);
Problem with_mass(Problem problem, const ScalarField& mass);

/// Whether viscosity or mass term depend on a parameter of expressions.
bool coefficients_depend_on(const Problem& problem, const std::string& parameter);

}  // namespace solenoid
