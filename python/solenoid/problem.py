"""Problems: a mesh, an element, an equation with its data, and conditions on the sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from . import _core
from ._core import InputError
from .fields import Scalar, Vector, scalar, vector
from .linear import LinearOperator, LinearSystem
from .mesh import Mesh
from .solution import Solution

SIDES = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")


class _Sides:
    """Conditions on the sides while they are collected: each side has one."""

    def __init__(self, mesh: Mesh):
        if not isinstance(mesh, Mesh):
            raise InputError(f"mesh: expected a Mesh, as Mesh.box() makes it, got {mesh!r}")
        self.names = (*SIDES[: 2 * mesh.dim], "holes")
        self.conditions: dict[str, tuple[str, list]] = {}

    def add(self, keyword: str, name: str, kind: str, data: list) -> None:
        if name not in self.names:
            near = get_close_matches(str(name), self.names, n=1)
            hint = f": did you mean {near[0]!r}?" if near else f", expected one of {', '.join(self.names)}"
            raise InputError(f"{keyword}: unknown side {name!r}{hint}")
        if name in self.conditions:
            raise InputError(f"{keyword}: the side {name!r} has a condition already: {self.conditions[name][0]}")
        self.conditions[name] = (kind, data)

    def add_periodic(self, directions: str | Iterable[str]) -> None:
        for direction in directions:
            if direction not in ("x", "y", "z") or f"{direction}min" not in self.names:
                raise InputError(f'periodic: expected directions of the mesh such as "x" or "xz", got {directions!r}')
            for end in ("min", "max"):
                self.add("periodic", direction + end, "periodic", [])

    def all(self) -> dict[str, Any]:
        sides = [self.conditions.get(name, ("velocity", [])) for name in self.names]
        return {"sides": sides[:-1], "holes_side": sides[-1]}


def _mapping(keyword: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{keyword}: expected a dictionary {{side: data}}, got {value!r}")
    return value


def _names(keyword: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Iterable):
        return list(value)
    raise InputError(f"{keyword}: expected names of sides, got {value!r}")


class Problem:
    """What Stokes and Poisson have in common: what they are made of, and their linear system."""

    def __init__(self, core: _core.Problem):
        self._core = core
        self._system: tuple[dict[str, Any], LinearSystem] | None = None

    @property
    def mesh(self) -> Mesh:
        core = self._core
        return Mesh.box(core.cells, core.refine, core.lower, core.upper, core.holes)

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self._core.dim

    @property
    def order(self) -> int:
        """k of the element RT_k x Q_k, with Poisson's equation of Q_k."""
        return self._core.order

    @property
    def viscosity(self) -> float:
        """nu"""
        return self._core.viscosity

    @property
    def mass(self) -> float:
        """alpha"""
        return self._core.mass

    @property
    def sides(self) -> dict[str, str]:
        """The kind of condition of every side, by name: "velocity", "slip", "outflow" or "periodic"; with Poisson's
        equation "value" or "periodic"."""
        return self._core.sides

    def estimate(self, **options: Any) -> dict[str, int]:
        """What solve() would need, without doing it: `dofs`, `bytes_needed`, `bytes_available` and `largest_refine`,
        the largest `refine` of the mesh that fits into memory (-1 if none). Options as of solve()."""
        return _core.estimate(self._core, options)

    def system(self, **options: Any) -> LinearSystem:
        """The linear system A x = b with its preconditioner. That of the last call is kept for the next one with the
        same options: operator(), preconditioner(), load() and solution() share it.

        Args:
            options: those of solve() that are about device, threads, precision and the multigrid cycle.

        Raises:
            InputError: for wrong options, or if the order is not part of the build.
            ResourceError: if memory does not suffice.
        """
        if self._system is None or self._system[0] != options:
            self._system = (options, LinearSystem(self, **options))
        return self._system[1]

    def operator(self, **options: Any) -> LinearOperator:
        """A: symmetric; indefinite with the Stokes equations. See LinearSystem."""
        return self.system(**options).operator()

    def preconditioner(self, **options: Any) -> LinearOperator:
        """M, one multigrid cycle: an approximate inverse of A. See LinearSystem."""
        return self.system(**options).preconditioner()

    def load(self, out: Any = None, *, xp: Any = None, **options: Any) -> Any:
        """b, with prescribed boundary velocities lifted. See LinearSystem.load."""
        return self.system(**options).load(out, xp=xp)

    def solution(self, x: Any, **options: Any) -> Solution:
        """The solution with the coefficients x, for velocity(), plot() and all that. See LinearSystem.solution."""
        return self.system(**options).solution(x)

    def _describe(self) -> str:
        mesh = self.mesh
        cells = " x ".join(str(count << mesh.refine) for count in mesh.cells)
        box = " x ".join(f"[{a:g}, {b:g}]" for a, b in zip(mesh.lower, mesh.upper))
        holes = f", {len(mesh.holes)} hole{'s' if len(mesh.holes) > 1 else ''}" if mesh.holes else ""
        mass = f", mass={self.mass:g}" if self.mass else ""
        sides: dict[str, list[str]] = {}
        for name, kind in self.sides.items():
            sides.setdefault(kind, []).append(name)
        return f"{cells} cells on {box}{holes}, viscosity={self.viscosity:g}{mass}; " + "; ".join(
            f"{kind}: {' '.join(names)}" for kind, names in sides.items()
        )


def _core_problem(
    equation: str, mesh: Mesh, sides: _Sides, order: Any, viscosity: Any, mass: Any, force: list
) -> _core.Problem:
    return _core.make_problem(
        equation=equation,
        order=_integer("order", order),
        viscosity=_number("viscosity", viscosity),
        mass=_number("mass", mass),
        force=force,
        lower=list(mesh.lower),
        upper=list(mesh.upper),
        cells=list(mesh.cells),
        refine=mesh.refine,
        holes=[(list(first), list(end)) for first, end in mesh.holes],
        **sides.all(),
    )


def _number(keyword: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{keyword}: expected a number, got {value!r}") from None


def _integer(keyword: str, value: Any) -> int:
    try:
        if int(value) == value:
            return int(value)
    except (TypeError, ValueError):
        pass
    raise InputError(f"{keyword}: expected an integer, got {value!r}")


class Stokes(Problem):
    """The Stokes equations alpha u - nu Laplace u + grad p = f, div u = 0, discretised by RT_k x Q_k.

    Sides are named xmin, xmax, ymin, ymax, zmin, zmax, and `holes` for the sides of all holes. Those without a
    condition are no-slip walls. Without an outflow side prescribed velocities must balance: zero net flux.

    A vector field is a function of points (n, dim) that returns values (n, dim), or a list with one entry per
    component: a number, an expression in x, y, z in quotes such as "16*x^2*(1-x)^2" (docs/case-file.md), or a function
    of points that returns values (n,). Functions are called with some hundred or thousand points at a time, from
    several threads.

    Args:
        mesh: the domain.
        order: k; `solenoid.info()` lists those of this build.
        viscosity: nu > 0.
        mass: alpha >= 0.
        force: f, a vector field.
        velocity: {side: vector field}: u on these sides.
        slip: names of sides with u.n = 0 and no shear stress.
        outflow: names of sides with nu du/dn - p n = 0, or {side: vector field} with the traction on the right.
        periodic: directions that wrap, such as "x" or "xz".

    Raises:
        InputError: where something is wrong or contradicts the rest; the message says what.
    """

    def __init__(
        self,
        mesh: Mesh,
        order: int = 2,
        *,
        viscosity: float = 1.0,
        mass: float = 0.0,
        force: Vector | None = None,
        velocity: Mapping[str, Vector] | None = None,
        slip: Iterable[str] = (),
        outflow: Mapping[str, Vector] | Iterable[str] = (),
        periodic: str = "",
    ):
        sides = _Sides(mesh)
        dim = mesh.dim
        sides.add_periodic(periodic)
        for side, data in _mapping("velocity", velocity or {}).items():
            sides.add("velocity", side, "velocity", vector(data, dim, f"velocity {side}"))
        for side in _names("slip", slip):
            sides.add("slip", side, "slip", [])
        tractions = outflow if isinstance(outflow, Mapping) else dict.fromkeys(_names("outflow", outflow))
        for side, data in tractions.items():
            sides.add("outflow", side, "outflow", [] if data is None else vector(data, dim, f"outflow {side}"))
        super().__init__(
            _core_problem(
                "stokes",
                mesh,
                sides,
                order,
                viscosity,
                mass,
                [] if force is None else vector(force, dim, "force"),
            )
        )

    def __repr__(self) -> str:
        return f"Stokes: RT_{self.order} x Q_{self.order}, {self._describe()}"


class Poisson(Problem):
    """Poisson's equation alpha u - nu Laplace u = f for a scalar u, discretised by discontinuous Q_k (symmetric
    interior penalty).

    A scalar field is a number, an expression in x, y, z in quotes, or a function of points (n, dim) that returns
    values (n,).

    Args:
        mesh: the domain.
        order: k; `solenoid.info()` lists those of this build.
        viscosity: nu > 0.
        mass: alpha >= 0.
        force: f, a scalar field.
        value: {side: scalar field}: u on these sides (xmin, ..., zmax, holes); 0 on those that are not named.
        periodic: directions that wrap, such as "x" or "xz".

    Raises:
        InputError: where something is wrong or contradicts the rest; the message says what.
    """

    def __init__(
        self,
        mesh: Mesh,
        order: int = 2,
        *,
        viscosity: float = 1.0,
        mass: float = 0.0,
        force: Scalar = 0.0,
        value: Mapping[str, Scalar] | None = None,
        periodic: str = "",
    ):
        sides = _Sides(mesh)
        sides.add_periodic(periodic)
        for side, data in _mapping("value", value or {}).items():
            sides.add("value", side, "velocity", [scalar(data, mesh.dim, f"value {side}")])
        super().__init__(
            _core_problem("poisson", mesh, sides, order, viscosity, mass, [scalar(force, mesh.dim, "force")])
        )

    def __repr__(self) -> str:
        return f"Poisson: Q_{self.order}, {self._describe()}"


def problem_of(core: _core.Problem) -> Problem:
    """A problem that was read from a case file."""
    problem = Stokes.__new__(Stokes) if core.equation == "stokes" else Poisson.__new__(Poisson)
    Problem.__init__(problem, core)
    return problem
