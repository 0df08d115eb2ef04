"""What a flow has at points, through planes and on the boundary."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._core import InputError
from .problem import Problem


class Force(NamedTuple):
    """What the flow does to a side of the bounding box or to a hole.

    The stress sigma is that of the equation: 2 nu eps(u) - p I in the stress form, nu grad u - p I in the gradient
    form. The force is the integral of - sigma n, with n out of the fluid. On walls that do not move, and on holes that
    move as a whole without turning, both have the same force and torque, if the viscosity is the same along the wall.
    """

    #: From the rows of the discrete equation: all forces together are the integral of f - alpha u, to the residual.
    force: np.ndarray
    #: The integral of - (x - about) x sigma n; in 2D a number.
    torque: np.ndarray | float
    #: The integral of p n with the pressure at points of the surface: less accurate than `force`.
    sampled_pressure: np.ndarray
    #: The integral of - (sigma + p I) n with the gradient at points of the surface: less accurate than `force`.
    sampled_viscous: np.ndarray


class Places:
    """Of a Solution, and of a Flow as it is now."""

    problem: Problem
    _core: Any

    def velocity(self, points: Any) -> np.ndarray:
        """u at points (..., dim): an array (..., dim)."""
        return self._at(points, self._core.velocity, (self.problem.dim,))

    def pressure(self, points: Any) -> np.ndarray:
        """p at points (..., dim): an array (...)."""
        return self._at(points, self._core.pressure, ())

    def flux(self, axis: int | str, position: float) -> float:
        """Integral of u.e_axis over the part of the plane {x_axis = position} inside the domain; axis: 0, 1, 2 or "x",
        "y", "z". On a sheared mesh: the flux, towards the end of that edge, through the plane parallel to the other
        edges that lies `position` along it, from where it begins."""
        number = "xyz".find(axis) if isinstance(axis, str) and axis else axis
        if number not in range(self.problem.dim):
            raise InputError(f"axis: expected {', '.join('xyz'[: self.problem.dim])} or its number, got {axis!r}")
        return self._core.flux(int(number), float(position))

    def forces(self, about: Any = None) -> dict[str, Force]:
        """Force and torque on every side of the bounding box that is not periodic ("xmin", ...) and on every hole
        ("holes[0]", ...; where two overlap, that of the later one), by name.

        Without an outflow side the pressure, and with it the force on a side, is that with mean zero; on a hole inside
        of the domain a constant pressure has no force. On an outflow side the force is the integral of its traction.

        Args:
            about: the point (dim,) that torques are about; the origin by default.
        """
        dim = self.problem.dim
        point = np.zeros(dim) if about is None else np.asarray(about, dtype=np.float64)
        if point.shape != (dim,):
            raise InputError(f"about: expected a point of {dim} coordinates, got an array of shape {point.shape}")
        return {name: Force(*values) for name, values in self._core.forces(point.tolist()).items()}

    def _points(self, points: Any) -> np.ndarray:
        """Points (..., dim) as an array (n, dim)."""
        array = np.ascontiguousarray(points, dtype=np.float64)
        dim = self.problem.dim
        if array.ndim == 0 or array.shape[-1] != dim:
            raise InputError(f"points: expected an array of shape (..., {dim}), got {array.shape}")
        return array.reshape(-1, dim)

    def _at(self, points: Any, evaluate: Any, shape: tuple[int, ...]) -> np.ndarray:
        return evaluate(self._points(points)).reshape(np.shape(points)[:-1] + shape)
