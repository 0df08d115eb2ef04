"""Incompressible viscous flow with exactly divergence-free velocities.

Solves the Stokes equations

    alpha u - nu Laplace u + grad p = f,   div u = 0

on boxes and unions of boxes in 2D and 3D with Raviart-Thomas elements RT_k x Q_k and a multigrid method, on CPUs and
GPUs; flows that change in time, by the Navier-Stokes equations if wanted; and Poisson's equation on the same domains.

    >>> import solenoid as so
    >>> mesh = so.Mesh.box(cells=(1, 1), refine=4)
    >>> problem = so.Problem(mesh, order=2, velocity={"ymax": ["16*x^2*(1-x)^2", 0]})
    >>> solution = so.solve(problem, rtol=1e-8)
    >>> solution.velocity([0.5, 0.5]).shape
    (2,)

Quantities have no units of their own: they are in whatever units the mesh, the viscosity and the data are given in.
"""

from ._core import InputError, ResourceError
from ._core import version as __version__
from .build import info
from .deprecated import Poisson, Stokes
from .film import film
from .flow import Averages, Flow, FlowState, Profile, StepReport
from .linear import FlowIntegrals, LinearOperator, LinearReport, LinearSystem, Vector
from .mesh import Mesh
from .permeability import DARCY, DiscretePermeability, Permeability, permeability
from .places import Force
from .problem import Problem
from .solution import Errors, ImageFields, Solution, interpolate, load
from .solving import Case, ConvergenceWarning, read_case, solve
from .spectrum import Spectrum

__all__ = [
    "DARCY",
    "Averages",
    "Case",
    "ConvergenceWarning",
    "DiscretePermeability",
    "Errors",
    "Flow",
    "FlowIntegrals",
    "FlowState",
    "Force",
    "ImageFields",
    "InputError",
    "LinearOperator",
    "LinearReport",
    "LinearSystem",
    "Mesh",
    "Permeability",
    "Poisson",
    "Problem",
    "Profile",
    "ResourceError",
    "Solution",
    "Spectrum",
    "StepReport",
    "Stokes",
    "Vector",
    "__version__",
    "film",
    "info",
    "interpolate",
    "load",
    "permeability",
    "read_case",
    "solve",
]
