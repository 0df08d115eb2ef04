"""Flows in time."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._core import InputError
from .fields import Scalar, Vector, vector
from .gpu_array import gpu_address, is_on_gpu
from .places import Places
from .problem import Problem
from .ranks import ranks_of
from .solution import Report, Solution
from .solving import Case, case_of


def _require_finite(name: str, time: float) -> None:
    if not math.isfinite(time):
        raise InputError(f"{name}: expected a finite time, got {time!r}")


class StepReport(NamedTuple):
    """What a step of a Flow did."""

    #: From 1.
    number: int
    #: That was reached.
    time: float
    #: dt
    length: float
    #: Of the flow that was reached: dt omega_k R, as the option `cfl` of Flow has it.
    cfl: float
    #: Of multigrid.
    cycles: int
    #: What the cycles left of the residual: relative to that of the guess.
    residual: float
    #: |u - u_before| / (dt |u|) in L2, where the option `steady` asks for it.
    change: float | None
    #: What holds the option `flow_rate` of Flow: the pressure falls by so much per unit of length in each direction,
    #: beside the pressure that solutions have; the force that drives the flow. Zeros without.
    gradient: tuple[float, ...]


class FlowState(NamedTuple):
    """A flow at a time."""

    time: float
    solution: Solution


class Profile(NamedTuple):
    """Averages along directions: arrays with a row for each place, where places are Gauss points of cells."""

    #: Coordinates across: (n, 1) or (n, 2), with averages along all directions (n, 0).
    at: np.ndarray
    #: U, the mean of the row: (n, dim).
    velocity: np.ndarray
    #: (n,)
    pressure: np.ndarray
    #: The mean of (u_c - U_c) (u_d - U_d): (n, dim, dim).
    stress: np.ndarray
    #: The mean of nu |grad u|^2: (n,).
    dissipation: np.ndarray


class Averages:
    """What a Flow has averaged: with <.> the mean over the time from `start` on, `length` long,

        U = <u>,  P = <p>,  R_cd = <(u_c - U_c) (u_d - U_d)>,  <nu |grad u|^2>,

    the last one the dissipation, which is 2 nu eps(u) : eps(u) in the stress form.

    Each step counts with the flow at its middle and with its length, or one whenever so much time has passed as
    `average_every` of the Flow says. R and the dissipation are projected to Q_k, cell by cell. Of several ranks each has
    its part, and all ask for the same, as of a Solution.
    """

    def __init__(self, core: _core.Averages, problem: Problem):
        self._core = core
        self._problem = problem
        #: The Solution with U and P; it has no forces.
        self.flow = Solution(core.flow, problem)

    @property
    def start(self) -> float:
        """When the averages began."""
        return self._core.start

    @property
    def length(self) -> float:
        """Over how much time they are."""
        return self._core.length

    def stress(self, points: Any) -> np.ndarray:
        """R at points (..., dim): an array (..., dim, dim). Outside the domain it is NaN."""
        return self.flow._at(points, self._core.stress, (self._problem.dim,) * 2)

    def dissipation(self, points: Any) -> np.ndarray:
        """The mean of nu |grad u|^2 at points (..., dim): an array (...)."""
        return self.flow._at(points, self._core.dissipation, ())

    def profile(self, along: str) -> Profile:
        """Averages along periodic directions as well, such as "x" or "xz". The stress of a row is that about the mean
        of the row. Holes do not count."""
        return Profile(*self._core.profile(self._directions(along)))

    def to_csv(self, file: str | os.PathLike, along: str) -> None:
        """Writes profile() as a table with a line of names: coordinates across, u_x, ..., p, r_xx, r_xy, ...,
        dissipation. Of several ranks the first writes."""
        self._core.write_csv(self._directions(along), os.fspath(file))

    def to_vtu(self, file: str | os.PathLike, subdivide: int = 0) -> None:
        """Writes a VTU file as Solution.to_vtu() does, with velocity and pressure of the mean flow, `reynolds_stress`
        as ParaView has symmetric tensors (xx, yy, zz, xy, yz, xz) and `dissipation`."""
        self._core.write_vtu(os.fspath(file), subdivide)

    def gathered(self) -> Averages | None:
        """All cells, on the first of several ranks, and None on the others."""
        core = self._core.gathered()
        return None if core is None else Averages(core, self._problem)

    def _directions(self, along: str) -> list[bool]:
        names = "xyz"[: self._problem.dim]
        if not isinstance(along, str) or not along or not set(along) <= set(names):
            raise InputError(f"along: expected some of {', '.join(names)}, such as {names[:2]!r}, got {along!r}")
        return [name in along for name in "xyz"]

    def __repr__(self) -> str:
        return f"Averages from t = {self.start:g} over {self.length:g} of {self._problem!r}"


class Flow(Places):
    """A flow in time, step by step:

        du/dt + alpha u + div(u (x) u) - nu Laplace u + grad p = f,   div u = 0,

    or without the convective term where the problem has no `convection`. Coefficients may vary by cell, as Problem() takes
    them, with the viscous term in either form.

    What is linear is implicit, convection is extrapolated. A step is one multigrid solve, from the extrapolated flow:
    cycles until a hundredth of the guess's residual is left, one at least. Velocities are divergence-free to rounding
    at every step. The first steps are short and become longer; time begins at 0.

    velocity(), pressure(), flux() and forces() are of the flow now: as its solution() has them, but the flow is not copied
    to the host.

    Expressions of the problem (force, velocities, tractions, coefficients that vary) may depend on the time: its `parameters` have "t" then,
    which is given the value of each step. Functions of points know no time.

        >>> import solenoid as so
        >>> mesh = so.Mesh.box(cells=(1, 1), refine=3)
        >>> lid = {"ymax": ["sin(t)*16*x^2*(1-x)^2", 0]}
        >>> flow = so.Flow(so.Problem(mesh, velocity=lid, parameters={"t": 0}), step=0.05)
        >>> for time, solution in flow.march(until=0.3, every=0.1):
        ...     print(f"{time:.1f} {solution.kinetic_energy():.1e}")
        0.0 0.0e+00
        0.1 1.6e-04
        0.2 6.8e-04
        0.3 1.6e-03

    Not to be used by several threads at a time. While a step is made other Python threads run; Ctrl-C ends it with
    KeyboardInterrupt within a second, and the flow is what it was before the step.

    Args:
        problem: a Problem of the Stokes equations; or a Case with a table [time], whose options and initial velocity
            hold where none are given here.
        initial: the velocity at time 0, a vector field as the problem's force is: numbers, expressions, which know the
            problem's parameters and "t", a function, a Solution. It is made divergence-free. At rest by default.
        step: length of steps; with `cfl` the longest one.
        cfl: lengths of steps from the flow: C of dt = C / (omega_k R), where R is the largest sum_a |u_a| / h_a and
            omega_k what the element of order k makes of it (docs/time.md). With convection, and where there is no
            `step`, 0.5 with "sbdf3"; without viscosity about 0.6 is the most that is stable.
        steady: the flow is steady once a step changes its velocity by less than this, relative, in L2, per unit of time
            (StepReport.change): 1e-8, for example. advance() and march() end then.
        flow_rate: what flows through a section of the domain normal to each direction, per unit of time, dim numbers: for
            each periodic direction the integral of the velocity over the domain, divided by its length; 0 for others. A
            pressure gradient holds it at every step, StepReport.gradient, and the initial velocity is given it.
        average: the time from which on averages() are taken; by default that of a case, otherwise none.
        average_every: the time between flows that they take, one each, which counts for the time since the one before, or
            since the start; by default that of a case, otherwise 0: each step counts.
        scheme: "sbdf1", "sbdf2", "sbdf3" (the default), "sbdf4": of this order; "bdf2/ext3"; or the Runge-Kutta schemes
            "ars233" and "ars443", of order 3 with 3 and 4 solves a step.
        checkpoint: a file that save(), or the program, has written: the flow goes on from there. With the same problem,
            options, threads and ranks as before it has the same bits as if it had never stopped. `initial` plays no part.
        communicator: as of solve(): all its ranks make the same calls, and each has its part of the flow.
        options: those of solve(); method and rtol play no part.

    Raises:
        InputError: for wrong options, Poisson's equation, or where nothing limits the lengths of steps: a flow without
            convection needs `step`.
        ResourceError: as solve().
    """

    def __init__(
        self,
        problem: Problem | Case,
        *,
        initial: Vector | None = None,
        step: float | None = None,
        cfl: float | None = None,
        steady: float | None = None,
        flow_rate: Sequence[float] | None = None,
        scheme: str | None = None,
        average: float | None = None,
        average_every: float | None = None,
        checkpoint: str | os.PathLike | None = None,
        communicator: Any = None,
        **options: Any,
    ):
        core, self.problem = case_of(problem)
        fields = None
        if initial is not None:
            fields = vector(initial, self.problem.dim, "initial", {**self.problem.parameters, "t": 0.0})
        given = {"step": step, "cfl": cfl, "steady": steady, "scheme": scheme}
        if flow_rate is not None:
            given["flow_rate"] = [float(rate) for rate in flow_rate]
        time = {name: value for name, value in given.items() if value is not None}
        averages = [None if each is None else float(each) for each in (average, average_every)]
        self._warned = False
        file = "" if checkpoint is None else os.fspath(checkpoint)
        self._core = _core.Flow(core, time, fields, *averages, options, ranks_of(communicator), file)

    @property
    def time(self) -> float:
        """That the last step reached, or 0."""
        return self._core.time

    @property
    def steps(self) -> int:
        """How many there were."""
        return self._core.steps

    @property
    def steady(self) -> bool:
        """Whether the last step has changed the velocity by less than the option `steady`; False without it."""
        return self._core.steady

    @property
    def report(self) -> Report:
        """The fields of the result file that are known so far: `steps`, `end_time`, `iterations` (cycles of all steps since
        this Flow began), `residual_history` (what each of them left), `time.setup`, `time.solve`, `dofs`, `device` and
        others. Of several ranks all ask for it."""
        return Report(json.loads(self._core.report_json()))

    @property
    def next_step(self) -> float:
        """How long the next step is to be."""
        return self._core.next_step

    def set_force(self, force: Vector | np.ndarray) -> None:
        """Another force from now on, as the problem's is, or an array with a value at each of `problem.mesh.points(m)`,
        which has been computed from a temperature, for example.

        The step to come takes the force at its end, time + next_step: given for then, "sbdf" schemes keep their order;
        given for the time now, and with "ars" schemes, the flow follows it to first order. Solutions have the data that
        there are when they are asked for: ask for forces() before new data are set. save() does not keep them: a flow
        that goes on from there asks for them again. Of several ranks all set the same.

        Raises:
            InputError: for an array of another shape. Values that are not finite are an error of step().
        """
        self._core.set_force(self._data(force, None, "force"))

    def set_boundary(self, side: str, data: Vector | np.ndarray) -> None:
        """Other velocities on a side from now on, or another traction on an outflow side: as those of the problem, or
        an array with a value at each of `problem.mesh.points(m, side)`. Parts of the side (`sides` of Problem) keep
        theirs. All else is as for set_force(). What flows in must flow out where there is no outflow side: that is an
        error of step().

        Args:
            side: "xmin", ...
        """
        number = self.problem.mesh._side(side)
        self._core.set_boundary(number, self._data(data, side, side))

    def set_reaction(self, mass: Scalar | np.ndarray) -> None:
        """Another alpha, >= 0, from now on: a number; or, where coefficients of the problem vary by cell, what `mass` of
        Problem() may be. As LinearSystem.set_reaction(), and as set_force() in time."""
        self._core.set_reaction(self._coefficient(mass, "mass"))

    def set_viscosity(self, viscosity: Scalar | np.ndarray) -> None:
        """Another viscosity from now on, in the same way: of a temperature, for example, or of the flow's own strain
        rate, `solution().field_at_points("strain_rate_invariant")`. The problem wants a viscosity that varies from the
        start, be it an array of one and the same number.

        Raises:
            InputError: as LinearSystem.set_viscosity(). Nothing is changed.
        """
        self._core.set_viscosity(self._coefficient(viscosity, "viscosity"))

    def _coefficient(self, data: Scalar | np.ndarray, label: str) -> _core.Field:
        return self.problem._coefficient(data, label, {"t": self.time})

    def _data(self, data: Vector | np.ndarray, side: str | None, label: str) -> list[_core.Field]:
        """Fields, or an array on a mesh."""
        if is_on_gpu(data) or (hasattr(data, "shape") and len(data.shape) > 1):
            return self.problem.mesh.field(data, side, label=label)
        return vector(data, self.problem.dim, label, {**self.problem.parameters, "t": self.time})

    def velocity_at_points(self, m: int = 1, out: Any = None) -> Any:
        """As Solution.velocity_at_points(), of the flow now: in the middles of cells, or at `problem.mesh.points(m)`. On a
        GPU they are made there, and only they are copied to the host.

        Args:
            out: an array of this shape in the memory of the GPU that the flow is on (by the CUDA array interface), which gets
                them in place of a new one on the host. Nothing is copied then, but on sheared meshes and between ranks.
        """
        mesh = self.problem.mesh
        shape = (*(m * count for count in mesh._extent()), mesh.dim)
        if out is None:
            return self._core.velocity_at(m).reshape(shape)
        self._core.velocity_to(m, self._address(out, shape, "out"))
        return out

    def face_fluxes(self, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """As Solution.face_fluxes(), of the flow now: single-valued, divergence-free to rounding in each cell.

        Args:
            out: arrays of these shapes, one for each direction, as that of velocity_at_points().
        """
        extent = self.problem.mesh._extent()
        shapes = [tuple(count + (a == b) for b, count in enumerate(extent)) for a in range(len(extent))]
        if out is None:
            return tuple(flux.reshape(shape) for flux, shape in zip(self._core.face_fluxes(), shapes))
        if len(out) != len(shapes):
            raise InputError(f"out: expected {len(shapes)} arrays, got {len(out)}")
        self._core.face_fluxes_to([self._address(o, s, f"out[{a}]") for a, (o, s) in enumerate(zip(out, shapes))])
        return tuple(out)

    def _address(self, array: Any, shape: tuple[int, ...], name: str) -> int:
        address = gpu_address(array, shape, name, writable=True)
        if not self._core.on_gpu:
            raise InputError(f"{name}: the array lies in the memory of a GPU, but the flow is on processors")
        return address

    def step(self) -> StepReport:
        """One step. A step that would be too long without viscosity is warned of, once: RuntimeWarning.

        Raises:
            InputError: where data are not finite; and if `cfl` alone limits the step of a flow that is at rest and that
                nothing moves.
            RuntimeError: if the solve does not converge, the flow is not finite, or its energy comes from nowhere, as with
                a step that is too long for convection. The flow is what it was before.
        """
        done = self._core.step()
        self._warn()
        report = StepReport(*(getattr(done, name) for name in StepReport._fields))
        return report._replace(gradient=tuple(report.gradient[: self.problem.dim]))

    def advance(self, time: float) -> None:
        """Steps until a time is reached or passed, or the flow is `steady`."""
        _require_finite("time", time)
        self._core.advance(float(time))
        self._warn()

    def save(self, file: str | os.PathLike) -> None:
        """Writes a checkpoint, an HDF5 file (docs/solution-file.md), whole or not at all: what Flow(..., checkpoint=file)
        goes on from. The problem is to be given again then. Of several ranks the first one writes."""
        self._core.save(os.fspath(file))

    def _warn(self) -> None:
        cfl, stable = self._core.largest_cfl, self._core.stable_cfl
        if self._warned or not 0 < stable < cfl:
            return
        self._warned = True
        message = f"a step had C = {cfl:.2g}, above {stable:.2g}, up to which the scheme is stable without viscosity"
        warnings.warn(f"{message}; viscosity lifts that", RuntimeWarning, stacklevel=3)

    def solution(self, time: float | None = None) -> Solution:
        """The flow now, or at a time between the last steps, interpolated with the order of the scheme. Its problem has
        the time as the parameter "t", so that error() takes exact fields in t. Before the first step its pressure is 0.

        Raises:
            InputError: for a time that the last few steps, as many as the order of the scheme, do not reach back to, or
                have not come to.
        """
        time = self.time if time is None else float(time)
        core = self._core.solution(time)
        return Solution(core, Problem._of(core.problem, {**self.problem.parameters, "t": time}))

    def averages(self) -> Averages | None:
        """Averages up to now, or None as long as the time `average` has not come."""
        core = self._core.averages()
        return None if core is None else Averages(core, self.problem)

    def march(self, until: float, every: float | None = None) -> Iterator[FlowState]:
        """Advances to a time, and shows the flow on the way: as it is at first, then at those multiples of `every` that
        follow, up to `until`; or, without `every`, after each step. Steps do not depend on it: at times between them
        the flow is interpolated. A flow that is steady before is shown as it is then, and that is all.

        Yields:
            `time` and `solution`, also as a pair: `for time, solution in flow.march(until=1, every=0.1)`.
        """
        _require_finite("until", until)
        if every is not None and not 0 < every < math.inf:
            raise InputError(f"every: expected a time > 0, got {every!r}")
        return self._states(until, every)

    def _states(self, until: float, every: float | None) -> Iterator[FlowState]:
        yield FlowState(self.time, self.solution())
        if self.steady:
            return
        rounding = 1e-12
        if every is None:
            while self.time < until * (1 - rounding) and not self.steady:
                self.step()
                yield FlowState(self.time, self.solution())
            return
        number = math.floor(self.time / every * (1 + rounding)) + 1
        while number * every <= until * (1 + rounding):
            self.advance(number * every)
            if self.time < number * every * (1 - rounding):  # steady
                yield FlowState(self.time, self.solution())
                return
            yield FlowState(number * every, self.solution(number * every))
            number += 1
        self.advance(until)

    def __repr__(self) -> str:
        return f"Flow of {self.problem!r}\n  at t = {self.time:g} after {self.steps} steps, {self._core.dofs} unknowns"
