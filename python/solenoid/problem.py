"""Problems: a mesh, an element, an equation with its data, and conditions on the sides."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from . import _core
from ._core import InputError
from .fields import Scalar, Vector, scalar, vector
from .mesh import SIDES, Mesh
from .ranks import ranks_of

EQUATIONS = ("stokes", "poisson")


def _coefficient(mesh: Mesh, data: Any, label: str, parameters: Mapping[str, float]) -> _core.Field:
    """A scalar field, perhaps from an array of numbers for cells, or at points of cells."""
    if isinstance(data, np.ndarray) and data.ndim > 0:
        values = np.ascontiguousarray(data, dtype=np.float64)
        return _core.coefficient_field(mesh._parts(), values, label)
    return scalar(data, mesh.dim, label, parameters)


class _Sides:
    """Conditions on the sides while they are collected: each side has one."""

    def __init__(self, mesh: Mesh, parameters: Mapping[str, float]):
        if not isinstance(mesh, Mesh):
            raise InputError(f"mesh: expected a Mesh, as Mesh.box() makes it, got {mesh!r}")
        self.dim = mesh.dim
        self.parameters = parameters
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

    def region(self, entry: str, given: Any, poisson: bool) -> tuple[int, Any, tuple[str, list]]:
        """An entry of `sides`: number of the side, where, condition."""
        rest = _entry(entry, given, ("on", "where"))
        on, where = rest.pop("on"), rest.pop("where")
        if on not in self.names[:-1]:
            raise InputError(
                f"{entry}.on: expected the name of a side, one of {', '.join(self.names[:-1])}, got {on!r}"
            )
        return self.names.index(on), self.scalar(where, f"{entry}.where"), self.condition(entry, rest, poisson)

    def hole(self, entry: str, given: Any, poisson: bool) -> tuple[int, tuple[str, list]]:
        """An entry of `holes`: place of the hole in the mesh, condition."""
        rest = _entry(entry, given, ("index",))
        return _integer(f"{entry}.index", rest.pop("index")), self.condition(entry, rest, poisson)

    def condition(self, entry: str, given: dict[str, Any], poisson: bool) -> tuple[str, list]:
        """The one condition in an entry of `sides` or `holes`: kind and data."""
        known = ("value",) if poisson else ("velocity", "slip", "outflow", "traction")
        for key in given:
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(known)}"
                raise InputError(f"{entry}: unknown key {key!r}: {hint}")
        given = {key: data for key, data in given.items() if data is not False and data is not None}
        if set(given) == {"outflow", "traction"}:
            del given["outflow"]
        if len(given) != 1:
            raise InputError(
                f"{entry}: expected one condition of {', '.join(known)}, got {' and '.join(given) or 'none'}"
            )
        ((kind, data),) = given.items()
        label = f"{entry}.{kind}"
        if kind == "value":
            return "velocity", [self.scalar(data, label)]
        if kind in ("velocity", "traction"):
            return "velocity" if kind == "velocity" else "outflow", self.vector(data, label)
        return kind, []

    def coefficient(self, mesh: Mesh, data: Any, label: str) -> _core.Field:
        return _coefficient(mesh, data, label, self.parameters)

    def force(self, mesh: Mesh, data: Any, label: str, poisson: bool) -> list[_core.Field]:
        """The components of a force, perhaps from arrays: of numbers for cells, or of values at points."""
        if poisson:
            return [self.coefficient(mesh, data, label)]
        if isinstance(data, np.ndarray) and data.ndim == self.dim + 1:
            of_components, at_points = len(data) == self.dim, mesh._points_per_cell(data.shape) is not None
            if of_components and at_points:
                raise InputError(
                    f"{label}: an array of shape {data.shape} has components first or last: give list(array), or "
                    "mesh.field(array)"
                )
            if not of_components:
                return mesh.field(data, label=label)
        if isinstance(data, (list, tuple, np.ndarray)) and len(data) == self.dim:
            return [self.coefficient(mesh, component, f"{label}[{c}]") for c, component in enumerate(data)]
        return self.vector(data, label)

    def coefficients(self, mesh: Mesh, entry: str, given: Any, poisson: bool) -> tuple[_core.Field, Any, Any, Any]:
        """An entry of `coefficients`: where, viscosity, mass, force."""
        rest = _entry(entry, given, ("inside",))
        inside = self.scalar(rest.pop("inside"), f"{entry}.inside")
        known = ("viscosity", "mass", "force")
        for key in rest:
            if key not in known:
                raise InputError(f"{entry}: unknown key {key!r}: expected {', '.join(known[:-1])} or {known[-1]}")
        if not rest:
            raise InputError(f"{entry}: expected {', '.join(known[:-1])} or {known[-1]}")
        there = [self.coefficient(mesh, rest[key], f"{entry}.{key}") if key in rest else None for key in known[:-1]]
        force = self.force(mesh, rest["force"], f"{entry}.force", poisson) if "force" in rest else None
        return inside, there[0], there[1], force

    def scalar(self, data: Any, label: str) -> _core.Field:
        return scalar(data, self.dim, label, self.parameters)

    def vector(self, data: Any, label: str) -> list[_core.Field]:
        return vector(data, self.dim, label, self.parameters)

    def all(self) -> dict[str, Any]:
        sides = [self.conditions.get(name, ("velocity", [])) for name in self.names]
        return {"sides": sides[:-1], "holes_side": sides[-1]}


def _mapping(keyword: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{keyword}: expected a dictionary {{side: data}}, got {value!r}")
    return value


def _entry(entry: str, given: Any, required: Iterable[str]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise InputError(f"{entry}: expected a dictionary, got {given!r}")
    for key in required:
        if key not in given:
            raise InputError(f"{entry}: the key {key!r} is missing")
    return dict(given)


def _names(keyword: str, value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Iterable):
        return list(value)
    raise InputError(f"{keyword}: expected names of sides, got {value!r}")


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


class Problem:
    """A mesh, an element, and one of two equations with its data and conditions on the sides.

    The Stokes equations alpha u - nu Laplace u + grad p = f, div u = 0 are discretised by RT_k x Q_k, Poisson's
    equation alpha u - nu Laplace u = f for a scalar u by discontinuous Q_k (symmetric interior penalty).

    Sides are named xmin, xmax, ymin, ymax, zmin, zmax, and `holes` for the sides of all holes. On those without a
    condition u is zero: they are no-slip walls of a flow. Without an outflow side prescribed velocities must balance:
    zero net flux.

    A scalar field is a number, an expression in x, y, z and parameters in quotes such as "16*x^2*(1-x)^2"
    (docs/case-file.md), or a function of points (n, dim) that returns values (n,). A vector field is a list with one of these per component, or
    a function of points that returns values (n, dim). Functions are called with some hundred or thousand points at a
    time, from several threads. A Solution is a field too, on whatever mesh it lies: that of a flow its velocity, that
    of Poisson's equation a scalar field.

    Args:
        mesh: the domain.
        order: k; `solenoid.info()` lists those of this build. Or "mac", order 0 with a diagonal mass matrix: the
            marker-and-cell scheme.
        equation: "stokes" or "poisson".
        viscosity: nu > 0: a number, a scalar field, or an array [z, y, x], in 2D [y, x], of one number for each cell of
            the mesh or each coarse box, or of m times as many along each axis: at m Gauss points per direction in every
            cell. Each cell has the mean of one that varies, or see `viscosity_points`.
        mass: alpha >= 0, in the same way.
        coefficients: other coefficients in parts of the domain, as dictionaries such as {"inside": "x^2 + y^2 < 1",
            "viscosity": 10, "force": [0, -1]}: where the scalar field `inside` is not 0 `viscosity`, `mass` and `force`,
            or some of them, are others. Where two overlap, the later one holds.
        viscosity_cap: (least, most): a viscosity that varies counts as these where it is smaller or larger.
        viscosity_points: where a viscosity that varies is taken: "cell", the mean of each cell, or "gauss", at the Gauss
            points of cells and faces. Of one that is smooth inside of cells velocities are of order k + 1 then, with
            means of order 2.
        form: of the viscous term: "gradient", - div(nu grad u), or "stress", - div(2 nu eps(u)) with eps(u) the symmetric
            part of grad u. None: stress where the viscosity varies, otherwise gradient.
        convection: Stokes: with the term div(u (x) u), which makes them the Navier-Stokes equations: of a Flow alone.
        force: f, a vector field; with Poisson's equation a scalar field. A component may be an array as `viscosity` may.
            An array for all components has either these one after the other, [component, z, y, x], in 2D
            [component, y, x], or the shape of mesh.points(m): values at the points of cells.
        velocity: Stokes: {side: vector field}: u on these sides.
        value: Poisson: {side: scalar field}: u on these sides.
        slip: Stokes: names of sides with u.n = 0 and no shear stress.
        outflow: Stokes: names of sides with nu du/dn - p n = 0, or {side: vector field} with the traction on the right.
        periodic: directions that wrap, such as "x" or "xz".
        sides: other conditions on parts of sides, as dictionaries such as {"on": "xmin", "where": "y < 0.5",
            "velocity": [1, 0]}: on the faces of that side where the scalar field `where` is not 0. One of velocity,
            slip=True, outflow=True and traction, or value, says what holds there; of two that overlap the later one
            does. A part consists of whole faces of the finest cells, and of whole faces of coarse boxes if its
            condition is of another kind than that of the rest of the side.
        holes: other conditions on single holes, as dictionaries such as {"index": 0, "velocity": [1, 0]}: `index` is
            the place in the mesh's `holes`.
        parameters: numbers that expressions know by their names, such as {"t": 0.5, "omega": 2}. A Flow gives "t" the
            values of its time.

    Raises:
        InputError: where something is wrong or contradicts the rest; the message says what.
    """

    def __init__(
        self,
        mesh: Mesh,
        order: int | str = 2,
        *,
        equation: str = "stokes",
        viscosity: Scalar | np.ndarray = 1.0,
        mass: Scalar | np.ndarray = 0.0,
        coefficients: Iterable[Mapping[str, Any]] = (),
        viscosity_cap: tuple[float, float] | None = None,
        viscosity_points: str = "cell",
        form: str | None = None,
        convection: bool = False,
        force: Vector | Scalar | np.ndarray | None = None,
        velocity: Mapping[str, Vector] | None = None,
        value: Mapping[str, Scalar] | None = None,
        slip: Iterable[str] = (),
        outflow: Mapping[str, Vector] | Iterable[str] = (),
        periodic: str = "",
        sides: Iterable[Mapping[str, Any]] = (),
        holes: Iterable[Mapping[str, Any]] = (),
        parameters: Mapping[str, float] | None = None,
    ):
        if equation not in EQUATIONS:
            raise InputError(f"equation: expected {' or '.join(map(repr, EQUATIONS))}, got {equation!r}")
        poisson = equation == "poisson"
        others = {"velocity": velocity, "slip": slip, "outflow": outflow} if poisson else {"value": value}
        for keyword, given in others.items():
            if given:
                raise InputError(f"{keyword}: there is no such condition with the equation {equation!r}")
        values = parameters or {}
        if not isinstance(values, Mapping):
            raise InputError(f"parameters: expected a dictionary {{name: number}}, got {values!r}")
        self._parameters = {name: _number(f"parameters[{name!r}]", number) for name, number in values.items()}
        conditions = _Sides(mesh, self._parameters)
        conditions.add_periodic(periodic)
        for side, data in _mapping("value", value or {}).items():
            conditions.add("value", side, "velocity", [conditions.scalar(data, f"value {side}")])
        for side, data in _mapping("velocity", velocity or {}).items():
            conditions.add("velocity", side, "velocity", conditions.vector(data, f"velocity {side}"))
        for side in _names("slip", slip):
            conditions.add("slip", side, "slip", [])
        tractions = outflow if isinstance(outflow, Mapping) else dict.fromkeys(_names("outflow", outflow))
        for side, data in tractions.items():
            conditions.add("outflow", side, "outflow", [] if data is None else conditions.vector(data, f"outflow {side}"))
        if force is not None:
            force = conditions.force(mesh, force, "force", poisson)
        self._core = _core.make_problem(
            equation=equation,
            order=0 if order == "mac" else _integer("order", order),
            lumped=order == "mac",
            viscosity=conditions.coefficient(mesh, viscosity, "viscosity"),
            mass=conditions.coefficient(mesh, mass, "mass"),
            coefficients=[
                conditions.coefficients(mesh, f"coefficients[{i}]", given, poisson) for i, given in enumerate(coefficients)
            ],
            viscosity_cap=None if viscosity_cap is None else [_number("viscosity_cap", end) for end in viscosity_cap],
            viscosity_points=viscosity_points,
            form=form,
            convection=bool(convection),
            force=force or [],
            lower=list(mesh.origin),
            upper=list(mesh.upper),
            edges=None if mesh.edges is None else [list(edge) for edge in mesh.edges],
            cells=list(mesh.cells),
            refine=mesh.refine,
            holes=[(list(first), list(end)) for first, end in mesh.holes],
            image=mesh.voxels,
            regions=[conditions.region(f"side[{i}]", given, poisson) for i, given in enumerate(sides)],
            single_holes=[conditions.hole(f"hole[{i}]", given, poisson) for i, given in enumerate(holes)],
            **conditions.all(),
        )

    @classmethod
    def _of(cls, core: _core.Problem, parameters: Mapping[str, float] | None = None) -> Problem:
        """A problem that was read from a file, or of a flow at a time, whose expressions may know more parameters than
        they have."""
        problem = cls.__new__(cls)
        problem._core = core
        problem._parameters = dict(core.parameters if parameters is None else parameters)
        return problem

    def _coefficient(self, data: Any, label: str, parameters: Mapping[str, float] | None = None) -> _core.Field:
        """What `viscosity` or `mass` of this problem would be; `parameters` that it knows besides."""
        return _coefficient(self.mesh, data, label, {**self._parameters, **(parameters or {})})

    def replace(self, **changes: Any) -> Problem:
        """The same problem but for some arguments, also where it was read from a case file.

        Args:
            changes: arguments of Problem() by their names; and `refine`, that of the mesh. `parameters` that are not
                named keep their values; expressions that are there know no others. A new `velocity`, `value`,
                `slip`, `outflow` or `periodic` stands for all conditions of that kind; those of other kinds stay. New
                `sides` or `holes` stand for all conditions on parts of sides, or on single holes.

        Raises:
            InputError: as Problem(); and if a new mesh has another dimension.
        """
        if "refine" in changes:
            if "mesh" in changes:
                raise InputError("refine: is part of the new mesh: give one of mesh and refine")
            refine = _integer("refine", changes.pop("refine"))
            changes["mesh"] = dataclasses.replace(self.mesh, refine=refine)
        dim = getattr(changes.get("mesh"), "dim", self.dim)
        if dim != self.dim:
            raise InputError(f"mesh: has {dim} dimensions, and the fields of the problem are for {self.dim}")
        if "parameters" in changes:
            changes["parameters"] = {**self._parameters, **(changes["parameters"] or {})}
        return Problem(**{**self._arguments(), **changes})

    def _arguments(self) -> dict[str, Any]:
        """What Problem() makes this problem of."""
        poisson = self.equation == "poisson"
        force = self._core.force
        sides: dict[str, Any] = {"velocity": {}, "slip": [], "outflow": {}, "periodic": ""}
        for name, (kind, data) in self._core.conditions.items():
            still = all(field.is_zero and not field.parameters for field in data)
            if kind == "velocity" and not still:
                sides["velocity"][name] = data
            elif kind == "slip":
                sides["slip"].append(name)
            elif kind == "outflow":
                sides["outflow"][name] = None if still else data
            elif kind == "periodic" and name.endswith("min"):
                sides["periodic"] += name[0]

        def keys(condition: tuple[str, list]) -> dict[str, Any]:
            kind, data = condition
            if kind == "velocity":
                return {"value": data[0]} if poisson else {"velocity": data}
            return {"traction": data} if kind == "outflow" else {kind: True}

        regions = [{"on": SIDES[on], "where": where, **keys(what)} for on, where, what in self._core.regions]
        holes = [{"index": index, **keys(what)} for index, what in self._core.single_holes]
        if poisson:
            sides = {
                "value": {name: data[0] for name, data in sides["velocity"].items()},
                "periodic": sides["periodic"],
            }
        coefficients = []
        for inside, nu, alpha, there in self._core.coefficients:
            others = {"viscosity": nu, "mass": alpha, "force": there[0] if poisson and there else there}
            coefficients.append({"inside": inside, **{key: value for key, value in others.items() if value is not None}})
        return {
            "mesh": self.mesh,
            "order": self.order,
            "equation": self.equation,
            "viscosity": self.viscosity,
            "mass": self.mass,
            "coefficients": coefficients,
            "viscosity_cap": self._core.viscosity_cap,
            "viscosity_points": self._core.viscosity_points,
            "form": self._core.form_given,
            "convection": self.convection,
            "force": force[0] if poisson else force,
            "sides": regions,
            "holes": holes,
            "parameters": self._parameters,
            **sides,
        }

    @property
    def mesh(self) -> Mesh:
        core = self._core
        if core.image is not None:
            return Mesh._of(core.image, core.refine)
        if core.edges is not None:
            return Mesh.sheared(core.edges, core.cells, core.refine, core.lower, core.holes)
        return Mesh.box(core.cells, core.refine, core.lower, core.upper, core.holes)

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self._core.dim

    @property
    def equation(self) -> str:
        """The name of the equation, "stokes" or "poisson"."""
        return self._core.equation

    @property
    def order(self) -> int | str:
        """k of the element RT_k x Q_k, with Poisson's equation of Q_k; or "mac", order 0 with a diagonal mass matrix."""
        return "mac" if self._core.lumped else self._core.order

    @property
    def viscosity(self) -> float | Scalar:
        """nu: a number, or a field where it varies."""
        field = self._core.varying_viscosity
        return self._core.viscosity if field is None else field

    @property
    def mass(self) -> float | Scalar:
        """alpha, in the same way."""
        field = self._core.varying_mass
        return self._core.mass if field is None else field

    @property
    def form(self) -> str:
        """The form of the viscous term: "gradient" or "stress"."""
        return self._core.form

    @property
    def convection(self) -> bool:
        """Whether the flow carries itself: with div(u (x) u)."""
        return self._core.convection

    @property
    def parameters(self) -> dict[str, float]:
        """The numbers that expressions know by their names."""
        return dict(self._parameters)

    @property
    def sides(self) -> dict[str, str]:
        """The kind of condition of every side, by name, one of "velocity", "slip", "outflow" or "periodic"; with
        Poisson's equation "value" or "periodic". Parts of sides are called side[0], side[1], ... and single holes
        hole[0], ... in the order in which they were given."""
        return self._core.sides

    def estimate(self, *, communicator: Any = None, **options: Any) -> dict[str, int]:
        """What solve() would need, without doing it: `dofs`, `bytes_needed`, `bytes_available` and `largest_refine`,
        the largest `refine` of the mesh that fits into memory (-1 if none). Communicator and options as of solve(); of
        several ranks it is what each needs."""
        return _core.estimate(self._core, options, ranks_of(communicator))

    def __repr__(self) -> str:
        mesh = self.mesh
        k = self._core.order
        flow = "Navier-Stokes" if self.convection else "Stokes"
        element = f"{flow}: RT_{k} x Q_{k}{' (marker and cell)' if self._core.lumped else ''}" if self.equation == "stokes" else f"Poisson: Q_{k}"
        cells = " x ".join(str(count << mesh.refine) for count in mesh.cells)
        box = " x ".join(f"[{a:g}, {b:g}]" for a, b in zip(mesh.lower, mesh.upper))
        if mesh.edges is not None:
            box = "the edges " + ", ".join(f"({', '.join(f'{x:g}' for x in edge)})" for edge in mesh.edges)
        holes = f", {len(mesh.holes)} hole{'s' if len(mesh.holes) > 1 else ''}" if mesh.holes else ""
        if mesh.voxels is not None:
            holes = f", an image of porosity {mesh.voxels.porosity:.4g}"
        viscosity = f"{self._core.viscosity:g}" if not self._core.by_cell else f"by cell ({self.form} form)"
        mass = ", mass by cell" if self._core.varying_mass else f", mass={self._core.mass:g}" if self._core.mass else ""
        sides: dict[str, list[str]] = {}
        for name, kind in self.sides.items():
            sides.setdefault(kind, []).append(name)
        return f"{element}, {cells} cells on {box}{holes}, viscosity={viscosity}{mass}; " + "; ".join(
            f"{kind}: {' '.join(names)}" for kind, names in sides.items()
        )
