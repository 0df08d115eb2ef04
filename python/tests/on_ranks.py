"""What test_ranks.py starts with mpirun: on_ranks.py NAME FOLDER calls the function of that name on all ranks."""

import signal
import sys
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
import solenoid as so
from mpi4py import MPI

COMM = MPI.COMM_WORLD
FIRST = COMM.rank == 0
FOLDER = Path(sys.argv[2])
#: More cells than what is the same on all ranks. They are cut at y = 1/2.
MESH = so.Mesh.box(cells=(1, 1), refine=7)
FLOW = so.Problem(MESH, order=2, force=["sin(3*x)*y", "x*x"], velocity={"xmin": ["y*(1-y)", 0]}, outflow="xmax")
OPTIONS = {"device": "cpu", "threads": 1, "precision": "double", "rtol": 1e-10}
POINTS = np.random.default_rng(1).uniform(-0.1, 1.1, (5, 8, 2))  # some are outside


def solve(problem=FLOW, **options):
    return so.solve(problem, communicator=COMM, **OPTIONS | options)


def alone(problem=FLOW, **options):
    return so.solve(problem, **OPTIONS | options)


def assert_close(ours, theirs, of=None):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 * np.nanmax(np.abs(theirs if of is None else of)))


def assert_all_raise(error, message, call):
    with pytest.raises(error, match=message) as caught:
        call()
    messages = COMM.allgather(str(caught.value))
    assert all(message.partition("\n")[0] in messages[0] for message in messages), messages


def flow_is_that_of_one_rank():
    ours, theirs = solve(), alone()
    assert ours.converged and ours.report.iterations == theirs.report.iterations
    for name in "velocity", "pressure", "gradient":
        assert_close(getattr(ours, name)(POINTS), getattr(theirs, name)(POINTS))
    for position in 0.0, 0.3, 0.5, 1.0:
        for axis in "xy":
            assert_close(ours.flux(axis, position), theirs.flux(axis, position), of=theirs.max_speed())
    forces = ours.forces(about=(0.5, 0.5))
    assert list(forces) == list(theirs.forces())
    for name, force in theirs.forces(about=(0.5, 0.5)).items():
        for one, other in zip(forces[name], force):
            assert_close(one, other, of=1)
    for name in "mean_velocity", "kinetic_energy", "dissipation", "max_speed":
        assert_close(getattr(ours, name)(), getattr(theirs, name)())
    assert ours.divergence_max() < 1e-11
    assert_close(ours.error(["x*y", lambda p: p[:, 0]], "x"), theirs.error(["x*y", lambda p: p[:, 0]], "x"))


def poisson_is_that_of_one_rank():
    problem = so.Problem(MESH, order=2, equation="poisson", force="2*pi^2*sin(pi*x)*sin(pi*y)")
    ours, theirs = solve(problem), alone(problem)
    assert_close(ours.value(POINTS), theirs.value(POINTS))
    assert_close(ours.error("sin(pi*x)*sin(pi*y)"), theirs.error("sin(pi*x)*sin(pi*y)"), of=1)


def flow_in_time_is_that_of_one_rank():
    problem = FLOW.replace(convection=True, velocity={"xmin": ["y*(1-y)*cos(t)", 0]}, parameters={"t": 0})
    settings = {"initial": ["y*(1-y)", 0], "step": 0.01, **OPTIONS}
    ours, theirs = so.Flow(problem, communicator=COMM, **settings), so.Flow(problem, **settings)
    for one, other in zip(ours.march(until=0.005, every=0.0025), theirs.march(until=0.005, every=0.0025)):
        assert one.time == other.time
        assert_close(one.solution.velocity(POINTS), other.solution.velocity(POINTS))
        assert_close(one.solution.kinetic_energy(), other.solution.kinetic_energy())
    assert ours.steps == theirs.steps > 3
    report = ours.report
    assert report.ranks == 2 and report.iterations == theirs.report.iterations
    assert_all_raise(
        so.InputError,
        "rank 1 has another case",
        lambda: so.Flow(problem, communicator=COMM, **settings | {"step": 1 + COMM.rank}),
    )


def linear_system_is_that_of_one_rank():
    options = OPTIONS | {"rtol": 1e-9}
    problem = FLOW.replace(mass=1)
    ours, theirs = so.LinearSystem(problem, communicator=COMM, **options), so.LinearSystem(problem, **options)
    assert ours.dofs == theirs.dofs == COMM.allreduce(ours.size)
    assert ours.size == ours.operator().shape[0] < ours.dofs

    def same(mine, alone):
        """The solutions of which these are the unknowns, so that they are compared in space."""
        whole = ours.solution(mine).gathered()
        if FIRST:
            assert_close(whole.coefficients, theirs.solution(alone).coefficients)

    b, of_one = ours.load(), theirs.load()
    same(b, of_one)
    for name in "operator", "preconditioner", "mass_matrix":
        same(getattr(ours, name)() @ b, getattr(theirs, name)() @ of_one)
    for mass in 1, 30:
        ours.mass = theirs.mass = mass
        x, of_x = ours.solve(b), theirs.solve(of_one)
        same(x, of_x)
        assert ours.report.iterations == theirs.report.iterations
        assert_close(COMM.allreduce(x @ b), of_x @ of_one)
    x, of_x = ours.vector(x), theirs.vector(of_x)
    assert_close(x.norm(), of_x.norm())
    assert_close((x + 2 * ours.load(out=ours.vector())).dot(x), (of_x + 2 * theirs.load()).dot(of_x))
    assert_close(ours.integrals(x).velocity_square, theirs.integrals(of_x).velocity_square)
    assert_close(ours.error(x, ["y", 0])[0], theirs.error(of_x, ["y", 0])[0])
    assert_all_raise(
        so.InputError,
        "rank 1 has another case",
        lambda: so.LinearSystem(problem.replace(mass=1 + COMM.rank), communicator=COMM, **options),
    )
    assert_all_raise(
        so.InputError,
        "this mesh of 256 cells is not shared",
        lambda: so.LinearSystem(so.Problem(so.Mesh.box(cells=(1, 1), refine=4)), communicator=COMM, **options),
    )


def interrupts_of_one_rank_end_a_march():
    flow = so.Flow(FLOW, communicator=COMM, step=0.01, **OPTIONS)
    if COMM.rank == 1:
        Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        flow.advance(1e9)
    assert len(set(COMM.allgather(flow.steps))) == 1
    flow.step()


def one_rank_may_ask_for_the_report():
    solution = solve()
    if FIRST:
        report = solution.report
        assert report.ranks == 2 and report.transport == "cpu"
        assert sum(report.rank_cells) == 128 * 128
        assert report.divergence_max < 1e-11
        assert "divergence_max" in repr(report) and "converged after" in repr(solution)


def gathered_has_all_cells():
    theirs = alone()
    solution = solve()
    whole = solution.gathered()
    file = FOLDER / "flow.h5"
    if FIRST:
        assert whole.gathered() is whole
        assert whole.report.rank_cells == solution.report.rank_cells
        assert_close(whole.coefficients, theirs.coefficients)
        assert_close(whole.velocity(POINTS), theirs.velocity(POINTS))
        so.Problem(MESH, force=whole)
        assert whole.to_xarray(4).velocity.shape == (4, 4, 2)
        whole.plot(resolution=20)
        whole.to_csv(FOLDER / "flow.csv", POINTS)
        whole.to_png(FOLDER / "flow.png")
        whole.save(file)
    else:
        assert whole is None
    COMM.barrier()
    loaded = so.load(file)
    assert_close(loaded.coefficients, theirs.coefficients)
    assert solve(start=loaded).report.iterations == 0


def parts_are_refused():
    part = solve()
    for call in [
        lambda: part.save(FOLDER / "part.h5"),
        lambda: part.coefficients,
        lambda: part.plot(),
        lambda: part.to_xarray(),
        lambda: part.to_csv(FOLDER / "part.csv", POINTS),
        lambda: part.to_png(FOLDER / "part.png"),
        lambda: so.Problem(MESH, force=part),
        lambda: solve(start=part),
    ]:
        assert_all_raise(
            so.InputError, r"the part of one of several ranks: take the one that gathered\(\) returns", call
        )
    assert list(FOLDER.iterdir()) == []
    assert part._repr_html_() is None


def vtu_has_pieces():
    solution = solve()
    solution.to_vtu(FOLDER / "flow.pvtu")
    names = {"flow.pvtu", "flow_0.vtu", "flow_1.vtu"}
    assert {file.name for file in FOLDER.iterdir()} == names
    assert all(name in (FOLDER / "flow.pvtu").read_text() for name in names - {"flow.pvtu"})
    assert_all_raise(so.InputError, "expected the ending .pvtu", lambda: solution.to_vtu(FOLDER / "flow.vtu"))


def undefined_above(points):
    return np.where(points[:, 1] > 0.9, np.nan, 1.0)


def fails_above(points):
    if points[:, 1].max() > 0.9:
        raise LookupError("nothing is known there")
    return np.ones(len(points))


def errors_of_one_rank_are_those_of_all():
    for force in ["log(0.9-y)", undefined_above]:
        assert_all_raise(so.InputError, "must be finite", lambda: solve(FLOW.replace(force=[force, 0])))  # noqa: B023
    failing = FLOW.replace(force=[fails_above, 0])
    assert_all_raise((LookupError, RuntimeError), "nothing is known there", lambda: solve(failing))
    assert_all_raise(so.InputError, "unknown key `colour`", lambda: solve(colour=1))
    other = FLOW.replace(viscosity=1.0 + COMM.rank)
    assert_all_raise(so.InputError, "rank 1 has another case", lambda: solve(other))

    solution = solve()
    assert_all_raise(so.InputError, "must be finite", lambda: solution.error([undefined_above, 0]))
    assert_all_raise(so.InputError, "must be finite", lambda: solution.error(pressure=undefined_above))
    assert_all_raise((LookupError, RuntimeError), "nothing is known", lambda: solution.error([fails_above, 0]))
    assert_close(solution.flux("x", 0.5), alone().flux("x", 0.5))


def interrupts_of_one_rank_end_all():
    forever = {"restart": 5, "rtol": 1e-300, "max_iterations": 1_000_000}

    def interrupt(stage, fraction, text):
        if COMM.rank == 1 and text.startswith("iteration 1,"):
            Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()

    def fail(stage, fraction, text):
        if COMM.rank == 1:
            raise LookupError("nobody looks")

    with pytest.raises(KeyboardInterrupt):
        solve(progress=interrupt, **forever)
    with pytest.raises(KeyboardInterrupt if FIRST else LookupError):
        solve(progress=fail, **forever)
    with pytest.raises(KeyboardInterrupt if FIRST else LookupError):
        solve(progress=fail, method="fmg")
    assert solve(progress=True).converged


def communicators_are_checked():
    for communicator in "world", 1, MPI.Intracomm(), MPI.COMM_NULL, MPI.Info():
        with pytest.raises(so.InputError, match="communicator: expected one of mpi4py, such as MPI.COMM_WORLD, got"):
            so.solve(FLOW, communicator=communicator)
    needs = FLOW.estimate(communicator=COMM, **OPTIONS)
    assert needs["bytes_needed"] < FLOW.estimate(**OPTIONS)["bytes_needed"]

    # One rank is no ranks: this communicator's parts, and MPI's own.
    for communicator in COMM.Split(COMM.rank), MPI.COMM_SELF:
        assert so.LinearSystem(FLOW, communicator=communicator, device="cpu").size == alone().coefficients.size
        ours = so.solve(FLOW, communicator=communicator, **OPTIONS)
        assert ours.gathered() is ours and ours.report.ranks == 1
        assert np.array_equal(ours.coefficients, alone().coefficients)


globals()[sys.argv[1]]()
