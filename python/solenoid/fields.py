"""Fields as people give them: constants, expressions, functions on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _core
from ._core import InputError

if TYPE_CHECKING:
    from .solution import Solution

#: A number, an expression in x, y, z and parameters ("sin(pi*x)*y"), a function of points (n, dim) that returns (n,) values, or a
#: solution of Poisson's equation.
Scalar = Union[float, str, Callable[[np.ndarray], np.ndarray], "Solution"]
#: A function of points (n, dim) that returns (n, dim) values, the Solution of a flow, or one scalar per component.
Vector = Union[Callable[[np.ndarray], np.ndarray], "Solution", Sequence[Scalar]]


def _checked(function: Callable, components: int, label: str, vector: bool) -> Callable:
    """`function` with its result as an array (n, components) in double precision and C order."""

    def evaluate(points: np.ndarray) -> np.ndarray:
        shape = (len(points), components) if vector else (len(points),)
        result = np.asarray(function(points), dtype=np.float64)
        if result.shape != shape and result.shape != shape[1:]:  # the same for all points
            raise InputError(
                f"{label}: a function of points of shape {points.shape} must return an array of shape {shape}, "
                f"not {result.shape}"
            )
        result = np.broadcast_to(result, shape).reshape(len(points), components)
        return np.ascontiguousarray(result)

    return evaluate


def _solution(value: Any, dim: int, label: str) -> _core.Solution | None:
    """The compiled part of a Solution, if it is one."""
    core = getattr(value, "_core", None)
    if not isinstance(core, _core.Solution):
        return None
    if core.problem.dim != dim:
        raise InputError(f"{label}: got a solution in {core.problem.dim}D, expected one in {dim}D")
    return core


def scalar(
    value: Scalar | _core.Field, dim: int, label: str, parameters: Mapping[str, float] = MappingProxyType({})
) -> _core.Field:
    """The field that `value` stands for; `label` names it in messages, `parameters` are those of expressions. Raises
    InputError if it stands for none."""
    if isinstance(value, _core.Field):
        return value.at(dict(parameters))
    solution = _solution(value, dim, label)
    if solution is not None:
        if solution.problem.equation != "poisson":
            raise InputError(f"{label}: expected a scalar field, got the solution of a flow, which has several components")
        return solution.value_field().labelled(label)
    if isinstance(value, str):
        return _core.expression(value, dim, label, dict(parameters))
    if callable(value):
        return _core.function(_checked(value, 1, label, vector=False), dim, 1, [label])[0]
    if isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim == 0):
        if not np.isfinite(value):
            raise InputError(f"{label}: expected a finite number, got {value}")
        return _core.constant(float(value), label)
    raise InputError(f"{label}: expected a number, an expression or a function of points, got {value!r}")


def vector(
    value: Vector, dim: int, label: str, parameters: Mapping[str, float] = MappingProxyType({})
) -> list[_core.Field]:
    """The components of the field that `value` stands for, as `scalar`."""
    labels = [f"{label}[{c}]" for c in range(dim)]
    solution = _solution(value, dim, label)
    if solution is not None:
        if solution.problem.equation != "stokes":
            raise InputError(f"{label}: expected {dim} components, got a solution of Poisson's equation, which has one")
        return [field.labelled(name) for field, name in zip(solution.velocity_field(), labels)]
    if callable(value):
        return _core.function(_checked(value, dim, label, vector=True), dim, dim, labels)
    if isinstance(value, (str, Real)) or not hasattr(value, "__len__") or len(value) != dim:
        raise InputError(
            f"{label}: expected {dim} components (numbers, expressions or functions of points) or one function of "
            f"points, got {value!r}"
        )
    return [scalar(component, dim, name, parameters) for component, name in zip(value, labels)]
