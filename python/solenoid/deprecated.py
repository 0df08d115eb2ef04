"""Names of version 0.1 that are gone in the next one. Until then they work, and say what has taken their place."""

from __future__ import annotations

import warnings
from typing import Any

from .linear import LinearOperator, LinearSystem
from .mesh import Mesh
from .problem import Problem
from .solution import Solution


def _warn(name: str, instead: str) -> None:
    warnings.warn(f"{name} is deprecated: use {instead}", DeprecationWarning, stacklevel=3)


def Stokes(mesh: Mesh, order: int = 2, **data: Any) -> Problem:
    """Deprecated: Problem(mesh, order, ...)."""
    _warn("Stokes", "Problem(...)")
    return Problem(mesh, order, **data)


def Poisson(mesh: Mesh, order: int = 2, **data: Any) -> Problem:
    """Deprecated: Problem(mesh, order, equation="poisson", ...)."""
    _warn("Poisson", 'Problem(..., equation="poisson")')
    return Problem(mesh, order, equation="poisson", **data)


def _system_of(problem: Problem, options: dict[str, Any]) -> LinearSystem:
    """That of the last call, if it had the same options."""
    last = getattr(problem, "_system", None)
    if last is None or last[0] != options:
        last = problem._system = (options, LinearSystem(problem, **options))
    return last[1]


def _system(self: Problem, **options: Any) -> LinearSystem:
    _warn("Problem.system", "LinearSystem(problem, ...)")
    return _system_of(self, options)


def _operator(self: Problem, **options: Any) -> LinearOperator:
    _warn("Problem.operator", "LinearSystem(problem, ...).operator()")
    return _system_of(self, options).operator()


def _preconditioner(self: Problem, **options: Any) -> LinearOperator:
    _warn("Problem.preconditioner", "LinearSystem(problem, ...).preconditioner()")
    return _system_of(self, options).preconditioner()


def _load(self: Problem, out: Any = None, *, xp: Any = None, **options: Any) -> Any:
    _warn("Problem.load", "LinearSystem(problem, ...).load()")
    return _system_of(self, options).load(out=out, xp=xp)


def _solution(self: Problem, x: Any, **options: Any) -> Solution:
    _warn("Problem.solution", "LinearSystem(problem, ...).solution(x)")
    return _system_of(self, options).solution(x)


# Here, so that problems need not know what is made of them.
Problem.system = _system
Problem.operator = _operator
Problem.preconditioner = _preconditioner
Problem.load = _load
Problem.solution = _solution
