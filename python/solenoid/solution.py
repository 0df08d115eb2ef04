"""Solutions: values at points, integrals, errors, pictures, files."""

from __future__ import annotations

import base64
import html
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._core import InputError
from .fields import Scalar, Vector, scalar, vector
from .places import Places
from .plotting import plot
from .problem import Problem
from .spectrum import spectrum


#: Of field().
TENSORS = ("strain_rate", "stress")


class Errors(NamedTuple):
    """L2 norms of errors; None for what was not asked for."""

    velocity: float | None
    pressure: float | None


def known_fields(problem: Problem, exact: Any, pressure: Any) -> dict[str, Any]:
    """What is known of a solution, by name: the fields of the arguments of Solution.error(), or None."""
    dim, known = problem.dim, problem.parameters
    if problem.equation == "poisson":
        if exact is None or pressure is not None:
            raise InputError("error: expected the exact u of Poisson's equation, and nothing else")
        return {"velocity": None, "pressure": None, "value": scalar(exact, dim, "exact", known)}
    return {
        "velocity": None if exact is None else vector(exact, dim, "exact velocity", known),
        "pressure": None if pressure is None else scalar(pressure, dim, "exact pressure", known),
        "value": None,
    }


class ImageFields(NamedTuple):
    """A flow through an image: the means over each voxel of velocity and pressure, indexed as the image is.

    They are those of a flow as permeability() drives it, with lengths in metres: for a mean pressure gradient G and a
    viscosity mu the velocity is G / mu times `velocity` and the pressure G times `pressure`, where a force drives the
    flow what there is besides the mean gradient.
    """

    #: (n_x, n_y, n_z, 3), (n_x, n_y, 2) in square metres; 0 in solid and where nothing flows. Its mean is a column of K.
    velocity: np.ndarray
    #: (n_x, n_y, n_z), (n_x, n_y) in metres; NaN there.
    pressure: np.ndarray


class Report(Mapping):
    """The fields of the result file (docs/case-file.md), as a mapping and as attributes; `dict(report)` has them all.
    Those that are measured on the solution, such as `divergence_max`, are so when one of them, or all fields, are first
    asked for; until then a report keeps the coefficients of its solution."""

    def __init__(self, known: dict[str, Any], measured: Callable[[], dict[str, Any]] | None = None):
        self._known = known
        self._measured = measured

    def measure(self) -> dict[str, Any]:
        """All fields, those that are measured too."""
        if self._measured is not None:
            self._known, self._measured = self._measured(), None
        return self._known

    def __getitem__(self, name: str) -> Any:
        return self._known[name] if name in self._known else self.measure()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.measure())

    def __len__(self) -> int:
        return len(self.measure())

    def __reduce__(self) -> tuple:
        return Report, (self.measure(),)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # no field, but what copies, pickles and notebooks look for
            raise AttributeError(name)
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(f"the report has no {name!r}; it has {', '.join(self)}") from None
        return Report(value) if isinstance(value, dict) else value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return json.dumps(self.measure(), indent=2)


class Solution(Places):
    """u_h and p_h, or u_h of Poisson's equation. Made by solve(), load(), interpolate() and LinearSystem.solution().

    A solution is data of other problems, on whatever mesh: that of a flow where a vector field is asked for (force,
    velocity on sides, exact velocity), that of Poisson's equation where a scalar is, or a component.

    Points are arrays of shape (..., dim); results have the same leading shape. Outside the domain they are NaN. On a
    face between cells only the normal velocity is the same from both sides; other values are those of one of the cells.

    Of several ranks (`communicator` of solve()) each has its part. Values at points, integrals, errors and to_vtu() are
    asked by all of them, alike, and are those of all cells; the report is known to each. What else needs all cells
    raises an InputError: gathered() has them.
    """

    def __init__(self, core: _core.Solution, problem: Problem):
        self._core = core
        self._report: Report | None = None
        self._coefficients: np.ndarray | None = None
        #: The problem that this is the solution of.
        self.problem = problem

    @property
    def report(self) -> Report:
        """What happened, as the fields of the result file, such as `iterations`, `residual_history`, `time.solve`,
        `divergence_max`, with full multigrid `error_estimate.velocity_l2`. Raises InputError for a solution that does
        not come from solve()."""
        if not self._core.has_report:
            raise InputError("this solution does not come from solve(), so that there is no report of it")
        if self._report is None:
            core = self._core  # and not self, which has the report
            self._report = Report(json.loads(core.report_json()), lambda: json.loads(core.result_json()))
        return self._report

    @property
    def converged(self) -> bool:
        """Whether solve() reached the tolerance. True for a solution that does not come from there."""
        return not self._core.has_report or self._core.converged

    @property
    def coefficients(self) -> np.ndarray:
        """The unknowns: a read-only array of float64 in the layout of all vectors (LinearSystem says which), so that
        `system.solution(solution.coefficients)` is this solution again. Normal velocities that sides prescribe are
        data, not unknowns: of an interpolant they are the problem's there. Copied out when first asked for."""
        if self._coefficients is None:
            self._coefficients = self._core.unknowns()
            self._coefficients.flags.writeable = False
        return self._coefficients

    def gathered(self) -> Solution | None:
        """All cells, on the first of several ranks, and None on the others. With one rank the solution itself."""
        if not self._core.is_part:
            return self
        core = self._core.gathered()
        if core is None:
            return None
        whole = Solution(core, self.problem)
        whole._report = self.report if self._core.has_report else None
        return whole

    # Values at points ------------------------------------------------------------------------------------------------

    def pressure(self, points: Any) -> np.ndarray:
        """p at points (..., dim): an array (...)."""
        self._require_velocity()
        return super().pressure(points)

    def value(self, points: Any) -> np.ndarray:
        """u of Poisson's equation at points (..., dim): an array (...)."""
        if self.problem.equation != "poisson":
            raise InputError("a flow has no `value`: ask for its velocity() or pressure()")
        return self._at(points, self._core.value, ())

    def gradient(self, points: Any) -> np.ndarray:
        """du_c/dx_a at points (..., dim): an array (..., dim, dim) with the indices c, a last."""
        self._require_velocity()
        return self._at(points, self._core.gradient, (self.problem.dim,) * 2)

    def field(self, name: str, points: Any) -> np.ndarray:
        """What else a flow has at points (..., dim); derivatives in cells are of an order less than the velocity.

        Args:
            name: "vorticity", curl u: an array (..., 3), in 2D (...). Scalars, arrays (...): "q", the Q criterion
                (|W|^2 - |S|^2) / 2 with S and W the symmetric and the antisymmetric part of grad u; "dissipation",
                nu |grad u|^2, in the stress form 2 nu |S|^2; "strain_rate_invariant", the second one of S,
                sqrt(S:S / 2); "viscosity" and "mass", nu and alpha of the cell. Tensors, arrays (..., dim, dim):
                "strain_rate", S, and "stress", 2 nu S - p I.
        """
        self._require_velocity()
        values = self._at(points, lambda flat: self._core.flow_field(name, flat), (6,))
        dim = self.problem.dim
        if name in TENSORS:
            return values[..., [[0, 3, 5], [3, 1, 4], [5, 4, 2]]][..., :dim, :dim]
        if name != "vorticity":
            return values[..., 0]
        return values[..., :3] if dim == 3 else values[..., 2]

    def _require_velocity(self) -> None:
        if self.problem.equation == "poisson":
            raise InputError("the solution of Poisson's equation has no velocity and no pressure: ask for its value()")

    # Lattices --------------------------------------------------------------------------------------------------------

    def _counts(self, points: Any) -> np.ndarray:
        """Points of a lattice in each direction, given as one number or as one for each direction."""
        dim, counts = self.problem.dim, np.asarray(points)
        if counts.shape not in ((), (dim,)) or counts.dtype.kind not in "iu" or np.any(counts < 1):
            raise InputError(f"points: expected an integer >= 1, or {dim} of them, got {points!r}")
        return np.broadcast_to(counts, dim)

    def _axes(self, counts: np.ndarray) -> list[np.ndarray]:
        """Coordinates of the middles of so many equal intervals of the bounding box in each direction."""
        mesh = self.problem.mesh
        return [
            lower + (np.arange(count) + 0.5) * (upper - lower) / count
            for lower, upper, count in zip(mesh.lower, mesh.upper, counts)
        ]

    def _lattice(self, counts: np.ndarray) -> np.ndarray:
        """The points of these coordinates, (..., dim)."""
        return np.stack(np.meshgrid(*self._axes(counts), indexing="ij"), axis=-1)

    def velocity_at_points(self, m: int = 1) -> np.ndarray:
        """u at all of Mesh.points(m), with m = 1 in the middles of cells: an array of the same shape, NaN in holes.
        Faster than velocity() of these points."""
        return self._on_points(self._core.velocity_at(m), m)

    def pressure_at_points(self, m: int = 1) -> np.ndarray:
        """p there, or u of Poisson's equation: an array (n_x m, n_y m, n_z m), in 2D (n_x m, n_y m)."""
        return self._on_points(self._core.pressure_at(m), m)[..., 0]

    def gradient_at_points(self, m: int = 1) -> np.ndarray:
        """du_c/dx_a there: the same with the indices c, a last."""
        return self._on_points(self._core.gradient_at(m), m, square=True)

    def field_at_points(self, name: str, m: int = 1) -> np.ndarray:
        """What field() has there: scalars, a vorticity with its components last, tensors with two indices last. Arrays
        that count from cell to cell in x first, and the viscosity of a problem in z: `.T` of a scalar array is in that
        order.

            >>> from solenoid import Mesh, Problem, solve
            >>> flow = solve(Problem(Mesh.box((1, 1), refine=3), velocity={"ymax": ["16*x^2*(1-x)^2", 0]}))
            >>> rate = flow.field_at_points("strain_rate_invariant")
            >>> thinning = flow.problem.replace(viscosity=(rate.T + 0.01) ** -0.5)
            >>> rate.shape, solve(thinning).converged
            ((8, 8), True)
        """
        values = self._on_points(self._core.field_at(name, m), m, square=name in TENSORS)
        return values if name in TENSORS or values.shape[-1] > 1 else values[..., 0]

    def _on_points(self, values: np.ndarray, m: int, square: bool = False) -> np.ndarray:
        """Numbers at Mesh.points(m), with as many components as there are; or those of a square."""
        dim = self.problem.dim
        return values.reshape(*(m * np.array(self._core.extent)), *((dim, dim) if square else (-1,)))

    def normal_stress(self, side: str, m: int = 1) -> np.ndarray:
        """n . (2 nu eps(u) - p I) n on a side that is not periodic, at Mesh.points(m, side): an array of one dimension
        less than the mesh. It is positive where the side is pulled outwards. Less its mean, divided by what a height
        weighs, it is the topography that the flow holds up."""
        mesh = self.problem.mesh
        number = mesh._side(side)
        shape = [m * count for a, count in enumerate(self._core.extent) if a != number // 2]
        return self._core.normal_stress_at(number, m).reshape(shape)

    def face_fluxes(self) -> tuple[np.ndarray, ...]:
        """What flows through the faces of cells, a volume per unit of time, in 2D per unit of depth: for each direction
        an array (n_x + 1, n_y, n_z), (n_x, n_y + 1, n_z) or (n_x, n_y, n_z + 1) of the integrals of that component over
        the faces normal to it; on a sheared mesh of fluxes through the faces across that edge. Each face has one flux, in holes 0, and what flows out of a cell is 0 to rounding:

            >>> from solenoid import Mesh, Problem, solve
            >>> flow = solve(Problem(Mesh.box((1, 1), refine=3), velocity={"ymax": ["16*x^2*(1-x)^2", 0]}))
            >>> f, g = flow.face_fluxes()
            >>> f.shape, g.shape, bool(abs(np.diff(f, axis=0) + np.diff(g, axis=1)).max() < 1e-12)
            ((9, 8), (8, 9), True)
        """
        extent = np.array(self._core.extent)
        fluxes = self._core.face_fluxes()
        return tuple(flux.reshape(extent + np.eye(len(extent), dtype=int)[a]) for a, flux in enumerate(fluxes))

    def image_fields(self) -> ImageFields:
        """Of a flow through an image, such as permeability() gives to `visit`: an array entry for each voxel."""
        velocity, pressure = self._core.image_fields()
        shape = tuple(self.problem.mesh.voxels.extent)
        return ImageFields(velocity.reshape(*shape, len(shape)), pressure.reshape(shape))

    # Integrals -------------------------------------------------------------------------------------------------------

    def mean_velocity(self) -> np.ndarray:
        """The integral of u, divided by the volume of the bounding box: the superficial velocity of a porous sample."""
        return self._core.mean_velocity()

    def permeability(self) -> np.ndarray:
        """K f / |f| = nu mean_velocity() / |f| in squares of lengths, where K is the permeability tensor of the domain:
        with a force along an axis its column of that axis. Raises InputError unless a constant force, given as numbers,
        drives the flow in periodic directions, walls do not move and there is no mass term."""
        return self._core.permeability()

    def kinetic_energy(self) -> float:
        """1/2 integral |u|^2"""
        return self._core.kinetic_energy()

    def dissipation(self) -> float:
        """The power that viscosity takes, cell by cell: the integral of field("dissipation")."""
        return self._core.dissipation()

    def enstrophy(self) -> float:
        """1/2 integral |curl u|^2, cell by cell"""
        return self._core.enstrophy()

    spectrum = spectrum

    def divergence_max(self) -> float:
        """max |div u| over quadrature points, scaled by max |u| / h: rounding errors."""
        return self._core.divergence_max()

    def max_speed(self) -> float:
        """max |u| over quadrature points"""
        return self._core.max_speed()

    def error(self, exact: Any = None, pressure: Scalar | None = None) -> Errors | float:
        """L2 norms of errors against exact fields, given as data of problems are (functions, expressions, constants).

        Args:
            exact: the velocity, or u of Poisson's equation.
            pressure: the pressure. The mean of the difference is removed, unless there is an outflow side.

        Returns:
            Errors(velocity, pressure); with Poisson's equation a number.
        """
        fields = known_fields(self.problem, exact, pressure)
        measure = {
            "velocity": self._core.velocity_error,
            "pressure": self._core.pressure_error,
            "value": self._core.value_error,
        }
        errors = {name: None if field is None else measure[name](field) for name, field in fields.items()}
        return Errors(errors["velocity"], errors["pressure"]) if errors["value"] is None else errors["value"]

    # Pictures and files ----------------------------------------------------------------------------------------------

    plot = plot

    def save(self, file: str | os.PathLike) -> None:
        """Writes an HDF5 file (docs/solution-file.md), whole or not at all, from which load() makes the solution again:
        mesh, kinds of sides, equation, its coefficients and order, and all that values need; but neither force nor
        boundary data nor report. It does not depend on device, threads or precision."""
        self._core.save(os.fspath(file))

    def to_vtu(self, file: str | os.PathLike, subdivide: int = 0, fields: Iterable[str] = ()) -> None:
        """Writes a VTU file for ParaView: one Lagrange cell of degree k + 1 per cell, which holds the solution exactly,
        or subdivide^dim linear cells each for viewers without such cells; with those of the `fields` that field() has.
        Of several ranks each writes a piece, and the first one the file, whose name ends in .pvtu, that names them."""
        self._core.write_vtu(os.fspath(file), subdivide, list(fields))

    def to_vti(self, file: str | os.PathLike, size_limit: float = 1.0) -> None:
        """Writes image_fields() as VTK image data for ParaView: `velocity`, `pressure` and `pore`, 1 where the flow is
        solved for. Raises InputError if the file would have more than `size_limit` GB before it is compressed."""
        self._core.write_vti(os.fspath(file), 1e9 * float(size_limit))

    def to_csv(self, file: str | os.PathLike, points: Any) -> None:
        """Writes values at points (..., dim) as a table with a line of names: x, y, z, u_x, u_y, u_z, p, those that
        there are, with Poisson's equation x, y, z, u. Numbers have all their digits; values outside the domain are
        nan."""
        self._core.write_csv(self._points(points), os.fspath(file))

    def to_xarray(self, points: int | tuple[int, ...] | None = None) -> Any:
        """The solution on a regular lattice as a Dataset of xarray, which must be installed.

        Args:
            points: in each direction, or in all of them; that many equal intervals make up the bounding box, and points
                lie in their middle. By default those are the cells.

        Returns:
            A Dataset with the coordinates x, y, z: `velocity` with the dimension `component` last, and `pressure`; with
            Poisson's equation `value`. Values outside the domain are NaN.
        """
        import xarray  # optional

        self._core.require_whole("to_xarray")
        names = list("xyz"[: self.problem.dim])
        counts = self._counts(self._core.extent if points is None else points)
        axes = self._axes(counts)
        lattice = self._lattice(counts)
        coordinates = dict(zip(names, axes))
        if self.problem.equation == "poisson":
            return xarray.Dataset({"value": (names, self.value(lattice))}, coordinates)
        fields = {
            "velocity": ([*names, "component"], self.velocity(lattice)),
            "pressure": (names, self.pressure(lattice)),
        }
        return xarray.Dataset(fields, {**coordinates, "component": names})

    def to_png(
        self, file: str | os.PathLike, field: str | None = None, scale: tuple[float, float] | None = None
    ) -> None:
        """Writes the picture that the command line writes: speed and streamlines, in 3D of the middle slice in z.

        Args:
            field: one that field() has in place of the speed; in 3D of the vorticity the z component.
            scale: the values at the ends of the colours, for pictures that belong together, as those of a film();
                by default those of the picture.
        """
        self._core.write_picture(os.fspath(file), field, None if scale is None else [float(end) for end in scale])

    def to_pyvista(self, subdivide: int = 0) -> Any:
        """The solution as a grid of pyvista, which must be installed."""
        import pyvista  # optional

        self._core.require_whole("to_pyvista")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "solution.vtu")
            self.to_vtu(file, subdivide)
            return pyvista.read(file)

    def __repr__(self) -> str:
        core = self._core
        lines = [f"Solution of {self.problem!r}"]
        if core.has_report:
            history = core.residual_history
            outcome = "converged" if core.converged else f"NOT CONVERGED ({core.reason})"
            lines.append(
                f"{core.dofs} unknowns, {outcome} after {core.iterations} iterations, residual "
                f"{history[-1] if history else 0.0:.1e}, {core.time_solve:.3g} s on {core.device}"
            )
        return "\n  ".join(lines)

    def _repr_html_(self) -> str | None:
        """For notebooks: what print() says, above the picture of to_png()."""
        if self._core.is_part:
            return None
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "solution.png")
            self.to_png(file)
            with open(file, "rb") as picture:
                data = base64.b64encode(picture.read()).decode("ascii")
        shown = "u" if self.problem.equation == "poisson" else "speed and streamlines"
        return (
            f"<pre>{html.escape(repr(self))}</pre>"
            f'<img alt="{shown}" style="max-width: 640px; width: 100%" src="data:image/png;base64,{data}">'
        )


def interpolate(
    problem: Problem, velocity: Vector | None = None, pressure: Scalar | None = None, *, value: Scalar | None = None
) -> Solution:
    """The interpolant of fields on mesh and element of a problem: a Solution whose `coefficients` are a vector.

    Normal velocities have their moments on faces, the rest those in cells, so that the divergence of the interpolant is
    the projection of that of `velocity`, and what is in the space is reproduced. Pressures, and u of Poisson's equation,
    are projected. The problem's boundary data play no part.

    Args:
        problem: whose mesh, order and equation count.
        velocity: a vector field, as data of problems are given.
        pressure: a scalar field, zero by default.
        value: u of Poisson's equation, in place of the others.

    Raises:
        InputError: where a field is not finite, or for fields that the equation does not have.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"interpolate: expected a Problem, got {type(problem).__name__}")
    dim, known = problem.dim, problem.parameters
    poisson = problem.equation == "poisson"
    if (value is not None) != poisson or (velocity is None) != poisson or (poisson and pressure is not None):
        expected = "`value` and nothing else" if poisson else "`velocity`, and `pressure` if wanted,"
        raise InputError(f"interpolate: expected {expected} with the equation {problem.equation!r}")
    if value is not None:
        return Solution(_core.interpolate(problem._core, [], scalar(value, dim, "value", known)), problem)
    fields = (
        vector(velocity, dim, "velocity", known),
        scalar(0.0 if pressure is None else pressure, dim, "pressure", known),
    )
    return Solution(_core.interpolate(problem._core, *fields), problem)


def load(file: str | os.PathLike) -> Solution:
    """The solution that Solution.save() or `solenoid solve --save` has written.

    Its problem has mesh, kinds of sides, equation, coefficients and order; force and boundary data are not in the file,
    so that solving it again is an InputError. To go on from the solution, pass it to solve() as `start`, with a problem
    that has them.

    Raises:
        InputError: if the file cannot be read, is none of these, or was cut off or changed.
        ResourceError: if memory does not suffice.

    >>> solution = load("flow.h5")  # doctest: +SKIP
    """
    core = _core.load(os.fspath(file))
    return Solution(core, Problem._of(core.problem))
