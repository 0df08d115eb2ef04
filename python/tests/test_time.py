"""Flows in time."""

import csv
import doctest
import pickle
import signal
import subprocess

import numpy as np
import pytest
import solenoid as so
import solenoid.flow

OPTIONS = {"device": "cpu", "threads": 1}
NU = 0.05
#: Vortices in a periodic square that carry themselves round and decay, solutions of the Navier-Stokes equations.
VORTICES = ["sin(x)*cos(y)*exp(-2*nu*t)", "-cos(x)*sin(y)*exp(-2*nu*t)"]
PRESSURE = "(cos(2*x)+cos(2*y))/4*exp(-4*nu*t)"
#: A lid that begins to move, as a case file and as a problem.
LID_CASE = """
[mesh]
cells = [1, 1]
refine = 3
[time]
end = 0.5
step = 0.05
scheme = "sbdf2"
[physics]
viscosity = 0.1
[boundary]
ymax = {velocity = ["16*x^2*(1-x)^2*sin(4*t)", 0]}
[exact]
velocity = ["t", 0]
[output]
history = "history.csv"
"""
LID = so.Problem(
    so.Mesh.box(cells=(1, 1), refine=3),
    viscosity=0.1,
    velocity={"ymax": ["16*x^2*(1-x)^2*sin(4*t)", 0]},
    parameters={"t": 0},
)


def swirl(points):
    """A velocity that does not go through the sides of the unit square."""
    x, y = np.pi * points.T
    return np.stack([np.sin(x) ** 2 * np.sin(2 * y), -np.sin(2 * x) * np.sin(y) ** 2], axis=-1)


@pytest.fixture
def vortices():
    mesh = so.Mesh.box(cells=(1, 1), refine=4, upper=(2 * np.pi, 2 * np.pi))
    return so.Problem(mesh, viscosity=NU, convection=True, periodic="xy", parameters={"nu": NU})


@pytest.fixture
def box(cavity):
    """At rest unless it is set in motion."""
    return cavity.replace(velocity={}, viscosity=0.01, convection=True)


@pytest.fixture
def case(tmp_path):
    file = tmp_path / "lid.toml"
    file.write_text(LID_CASE)
    return so.read_case(file)


def test_vortices_decay_as_the_equations_say(vortices):
    flow = so.Flow(vortices, initial=VORTICES, step=0.05, **OPTIONS)
    times = []
    for time, solution in flow.march(until=1, every=0.25):
        times.append(time)
        error = solution.error(VORTICES, PRESSURE)  # at that time
        assert error.velocity < 2e-3
        assert time == 0 or error.pressure < 2e-2
        assert solution.divergence_max() < 1e-11
        assert solution.problem.parameters == {"nu": NU, "t": time}
    assert times == [0, 0.25, 0.5, 0.75, 1]
    assert flow.problem is vortices
    without = so.Flow(vortices.replace(convection=False), initial=VORTICES, step=0.05, **OPTIONS)
    without.advance(0.25)
    assert without.solution(0.25).error(pressure=PRESSURE).pressure > 0.5  # convection makes all of it


def test_a_case_is_marched_as_the_program_does(case, program, tmp_path):
    run = [program, "solve", "lid.toml", "--output", ".", "--device", "cpu", "--threads", "1", "--quiet"]
    subprocess.run(run, cwd=tmp_path, check=True)
    with open(tmp_path / "history.csv") as file:
        history = list(csv.DictReader(file))[1:]  # but for the beginning
    flow = so.Flow(case, **OPTIONS)
    of_problem = so.Flow(LID, step=0.05, scheme="sbdf2", **OPTIONS)
    assert case.end == 0.5
    for line in history:
        report = flow.step()
        now = (report.number, report.time, report.length, report.cycles)
        assert now == (int(line["step"]), float(line["time"]), float(line["length"]), int(line["cycles"]))
        assert flow.solution().kinetic_energy() == float(line["kinetic_energy"])
        assert of_problem.step() == report
        assert np.array_equal(of_problem.solution().coefficients, flow.solution().coefficients)
    assert flow.time >= case.end
    end = flow.solution(case.end)
    assert end.error(**case.exact) == end.error(exact=[case.end, 0])


def test_places_are_those_of_the_solution():
    flow = so.Flow(LID, step=0.05, **OPTIONS)
    points = [[[0.3, 0.4], [0.9, 0.95]], [[0.5, 0.5], [2, 2]]]
    with pytest.raises(so.InputError, match="before its first step"):
        flow.forces()
    for _ in range(3):
        flow.step()
        whole = flow.solution()
        np.testing.assert_array_equal(flow.velocity(points), whole.velocity(points))
        np.testing.assert_array_equal(flow.pressure(points), whole.pressure(points))
        assert flow.flux("y", 0.3) == whole.flux("y", 0.3)
        expected = whole.forces(about=[0.5, 0])
        for name, force in flow.forces(about=[0.5, 0]).items():
            for got, value in zip(force, expected[name]):
                np.testing.assert_array_equal(got, value)
    with pytest.raises(so.InputError, match="axis"):
        flow.flux("z", 0.3)


def test_options_take_the_place_of_those_of_a_case(case):
    flow = so.Flow(case, step=0.1, scheme="sbdf1", initial=swirl, **OPTIONS)
    assert flow.solution().kinetic_energy() > 0.1
    assert flow.step().length == 0.1  # with the first order there is no need to begin slowly
    assert flow.report.settings.time.scheme == "sbdf1" and flow.report.settings.time.step == 0.1


def test_times_of_a_march():
    flow = so.Flow(LID, step=0.04, **OPTIONS)
    marched = [(time, solution.kinetic_energy()) for time, solution in flow.march(until=0.25, every=0.1)]
    assert [time for time, _ in marched] == [0, 0.1, 0.2]
    assert flow.time >= 0.25
    again = so.Flow(LID, step=0.04, **OPTIONS)
    for time, energy in marched:
        again.advance(time)
        assert again.time - 0.04 < time <= again.time
        assert again.solution(time).kinetic_energy() == energy
    begin = flow.time
    assert [time for time, _ in flow.march(until=0.5, every=0.1)] == [begin, 0.1 * 3, 0.4, 0.5]
    steps = flow.steps
    times = [state.time for state in flow.march(until=0.7)]
    assert len(times) == 1 + flow.steps - steps and times[-2] < 0.7 <= times[-1] == flow.time
    assert [time for time, _ in flow.march(until=0.1)] == [flow.time]


def test_a_flow_ends_when_it_is_steady(cavity):
    channel = cavity.replace(velocity={}, periodic="x", force=[1, 0], viscosity=0.5)
    flow = so.Flow(channel, step=0.1, steady=1e-6, **OPTIONS)
    assert flow.step().change == pytest.approx(1000)
    states = list(flow.march(until=100, every=1))
    assert flow.steady and flow.time < 10
    assert [time for time, _ in states[1:-1]] == list(range(1, len(states) - 1)) and states[-1].time == flow.time
    assert states[-1].solution.error(["y*(1-y)", 0]).velocity < 1e-6
    assert flow.report.steady and flow.report.change <= 1e-6
    assert [time for time, _ in flow.march(until=200, every=1)] == [flow.time]
    without = so.Flow(channel, step=0.1, **OPTIONS)
    assert without.step().change is None and not without.steady


def test_a_flow_goes_on_from_a_checkpoint(box, tmp_path):
    file = tmp_path / "flow.h5"
    options = {"cfl": 0.4, "step": 0.05, **OPTIONS}
    whole = so.Flow(box, initial=swirl, **options)
    for _ in range(7):
        whole.step()
    whole.save(file)
    rest = so.Flow(box, checkpoint=file, **options)
    assert (rest.time, rest.steps) == (whole.time, 7)
    for _ in range(5):
        assert rest.step() == whole.step()
        assert np.array_equal(rest.solution().coefficients, whole.solution().coefficients)
    assert rest.report.steps == 12 and len(rest.report.residual_history) == 5
    with pytest.raises(so.InputError, match="none.h5.*there is no such file"):
        so.Flow(box, checkpoint=tmp_path / "none.h5", **options)
    with pytest.raises(so.InputError, match="not a checkpoint file"):
        whole.solution().save(file)
        so.Flow(box, checkpoint=file, **options)


def test_a_flow_rate_is_held(cavity):
    channel = cavity.replace(velocity={}, periodic="x", viscosity=0.5)
    flow = so.Flow(channel, step=0.1, steady=1e-8, flow_rate=(0.25, 0), **OPTIONS)
    for _, solution in flow.march(until=100, every=0.3):
        assert solution.flux("x", 0.4) == pytest.approx(0.25, abs=1e-12)
    assert flow.steady
    assert flow.step().gradient == pytest.approx((12 * 0.5 * 0.25, 0))
    with pytest.raises(so.InputError, match="flow_rate: direction y is not periodic"):
        so.Flow(channel, step=0.1, flow_rate=[0.25, 1], **OPTIONS)
    with pytest.raises(so.InputError, match="flow_rate"):
        so.Flow(channel, step=0.1, flow_rate=[0.25], **OPTIONS)


def test_steps_say_what_they_did(box):
    flow = so.Flow(box, initial=swirl, cfl=0.4, **OPTIONS)
    assert (flow.time, flow.steps) == (0, 0)
    reports = [flow.step() for _ in range(30)]
    assert [report.number for report in reports] == list(range(1, 31))
    assert np.cumsum([report.length for report in reports]) == pytest.approx([report.time for report in reports])
    assert 0.2 < reports[-1].cfl < 0.42 and reports[-1].cycles >= 1 and reports[-1].residual < 0.01
    assert (flow.time, flow.steps) == (reports[-1].time, 30)
    report = flow.report
    assert (report.steps, report.end_time) == (30, flow.time)
    assert report.iterations == sum(step.cycles for step in reports)
    assert report.residual_history == [step.residual for step in reports]
    assert report.time.solve > 0 and report.time.setup > 0 and report.settings.physics.convection
    assert "after 30 steps" in repr(flow) and "Navier-Stokes" in repr(flow)


def test_what_a_flow_begins_with(box):
    expressions = ["sin(pi*x)^2*sin(2*pi*y)*exp(-t)", "-sin(2*pi*x)*sin(pi*y)^2*(1+t)"]
    by_function = so.Flow(box, initial=swirl, **OPTIONS).solution()
    for initial in expressions, [lambda p: swirl(p)[:, 0], expressions[1]], by_function:
        started = so.Flow(box, initial=initial, **OPTIONS).solution()
        assert started.error(by_function).velocity < 1e-12
    gradient = so.Flow(box, initial=["x", "-y"], **OPTIONS).solution()
    assert gradient.max_speed() < 1e-10  # (x, -y) is a gradient
    assert so.Flow(box, step=1, **OPTIONS).solution().max_speed() == 0


def test_functions_are_forces_too(box):
    flows = [
        so.Flow(box.replace(force=force), step=0.02, **OPTIONS) for force in (swirl, ["sin(pi*x)^2*sin(2*pi*y)", 1])
    ]
    for flow in flows:
        flow.advance(0.1)
    a, b = (flow.solution(0.1).velocity([0.3, 0.4]) for flow in flows)
    assert np.linalg.norm(a) > 1e-3 and np.linalg.norm(b) > 1e-3
    assert flows[0].solution(0.1).problem.parameters == {"t": 0.1}


def test_convection_of_problems(box, cavity, poisson):
    assert box.convection and not cavity.convection
    assert box.replace(viscosity=1).convection and not box.replace(convection=False).convection
    assert "Navier-Stokes: RT_2" in repr(box) and "Navier" not in repr(cavity)
    for refused in so.solve, so.LinearSystem:
        with pytest.raises(so.InputError, match="convection: a steady flow with convection is .*march in time"):
            refused(box)
    with pytest.raises(so.InputError, match="convection: the solution of Poisson's equation has no velocity"):
        poisson.replace(convection=True)


def test_refusals(box, cavity, poisson, case):
    for call, message in [
        (
            lambda: so.solve(case),
            r"lid: the case has a table \[time\]: expected a steady one; Flow\(\) marches in time",
        ),
        (lambda: so.Flow("lid.toml"), "expected a Problem or a Case, got str"),
        (lambda: so.Flow(poisson, step=0.1), "equation: only flows change in time"),
        (lambda: so.Flow(cavity), "cfl: nothing limits the steps of a flow without convection: give `step`"),
        (lambda: so.Flow(box, scheme="sbdf4"), "step: expected a length of steps, or `cfl`"),
        (lambda: so.Flow(box, step=0), r"step: expected a number > 0, got 0"),
        (lambda: so.Flow(box, cfl=-1.0), r"cfl: expected a number > 0, got -1"),
        (lambda: so.Flow(box, scheme="sbdf5"), "scheme: expected .*got .sbdf5"),
        (lambda: so.Flow(box, initial=[1]), "initial: expected 2 components"),
        (lambda: so.Flow(box, initial=["s", 0]), r"initial\[0\]"),
        (lambda: so.Flow(box, colour=1), "unknown key `colour`"),
        (lambda: so.Flow(box, **OPTIONS).step(), "the flow is at rest and nothing moves it, .* give the longest one, too"),
        (lambda: so.Flow(box, step=1, **OPTIONS).solution(0.5), "there is no flow at t = 0.5"),
        (lambda: so.Flow(box, step=1, **OPTIONS).march(until=1, every=0), "every: expected a time > 0, got 0"),
        (lambda: so.Flow(box, step=1, **OPTIONS).advance(np.nan), "time: expected a finite time, got nan"),
        (lambda: so.Flow(box, step=1, **OPTIONS).march(until=np.inf), "until: expected a finite time, got inf"),
    ]:
        with pytest.raises(so.InputError, match=message):
            call()


def test_a_step_that_fails_leaves_the_flow(box):
    flow = so.Flow(box.replace(viscosity=1e-6), initial=swirl, step=0.3, scheme="sbdf3", **OPTIONS)
    times, before = [0], flow.solution()
    with pytest.raises(RuntimeError, match=r"step \d+ to t = .*energy has grown"), pytest.warns(RuntimeWarning) as warned:
        for _ in range(1000):
            before = flow.solution()
            times.append(flow.step().time)
    assert len(warned) == 1 and "above 0.6, up to which the scheme is stable" in str(warned[0].message)
    assert (flow.time, flow.steps) == (times[-1], len(times) - 1)
    assert np.array_equal(flow.solution().coefficients, before.coefficients)


def test_an_interrupted_step_leaves_the_flow(box):
    class Enough(Exception):
        pass

    def end(*_):
        raise Enough

    large = box.replace(refine=6)
    flow, other = (so.Flow(large, initial=swirl, cfl=0.4, **OPTIONS) for _ in range(2))
    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(Enough):
            flow.advance(1e9)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for _ in range(flow.steps):
        done = other.step()
    assert (flow.time, flow.steps) == (done.time, done.number)
    assert flow.step() == other.step()
    assert np.array_equal(flow.solution().coefficients, other.solution().coefficients)


def test_what_is_kept(box):
    flow = so.Flow(box, initial=swirl, cfl=0.4, **OPTIONS)
    flow.step()
    assert pickle.loads(pickle.dumps(flow.report)).steps == 1
    first = flow.solution()
    coefficients = first.coefficients.copy()
    flow.step()
    assert np.array_equal(first.coefficients, coefficients)


def test_the_example_of_the_docstring():
    assert doctest.testmod(solenoid.flow) == (0, 5)


def test_averages(tmp_path):
    """Of a flow that is periodic along x: those of its steps, and as profiles and files."""
    mesh = so.Mesh.box((2, 2), refine=1, upper=(1, 1))
    box = so.Problem(mesh, viscosity=0.05, convection=True, force=[0.2, 0], periodic="x")
    flow = so.Flow(box, initial=["y*(1-y)", "0.1*sin(2*pi*x)"], step=0.05, average=0.1, **OPTIONS)
    assert flow.averages() is None
    points = np.array([[0.3, 0.4], [0.7, 0.2], [2.0, 0.0]])
    weights, velocities, before = [], [], 0.0
    while flow.time < 0.5:
        flow.step()
        begin, before = max(before, 0.1), flow.time
        if before > begin:
            weights.append(before - begin)
            velocities.append(flow.solution((before + begin) / 2).velocity(points))
    averages = flow.averages()
    assert averages.start == 0.1 and averages.length == pytest.approx(flow.time - 0.1)
    mean = np.average(velocities, axis=0, weights=weights)
    assert averages.flow.velocity(points)[:2] == pytest.approx(mean[:2], abs=1e-13)
    stress = averages.stress(points)
    assert stress.shape == (3, 2, 2) and np.isnan(stress[2]).all()
    differences = np.array(velocities) - mean
    expected = np.average(np.einsum("tpc,tpd->tpcd", differences, differences), axis=0, weights=weights)
    assert stress[:2] == pytest.approx(expected[:2], abs=0.1 * np.nanmax(expected))
    assert (averages.dissipation(points)[:2] > 0).all()

    seldom = so.Flow(box, initial=["y*(1-y)", "0.1*sin(2*pi*x)"], step=0.05, average=0.1, average_every=0.3, **OPTIONS)
    seldom.advance(0.5)
    assert seldom.averages().start == 0.1 and 0.3 <= seldom.averages().length < averages.length - 0.04
    with pytest.raises(so.InputError, match="start"):
        so.Flow(box, step=0.05, average_every=0.3, **OPTIONS)

    profile = averages.profile("x")
    assert profile.at.shape == (12, 1) and profile.velocity.shape == (12, 2) and profile.stress.shape == (12, 2, 2)
    assert (np.diff(profile.at[:, 0]) > 0).all()
    x = np.linspace(0, 1, 200, endpoint=False)
    row = np.stack([x, np.full_like(x, profile.at[4, 0])], axis=-1)
    assert averages.flow.velocity(row).mean(axis=0) == pytest.approx(profile.velocity[4], abs=1e-3)
    averages.to_csv(tmp_path / "profile.csv", "x")
    table = np.genfromtxt(tmp_path / "profile.csv", delimiter=",", names=True)
    assert table["u_x"] == pytest.approx(profile.velocity[:, 0])
    assert table["r_xy"] == pytest.approx(profile.stress[:, 0, 1])
    averages.to_vtu(tmp_path / "average.vtu")
    assert b"reynolds_stress" in (tmp_path / "average.vtu").read_bytes()
    assert averages.gathered().length == averages.length
    for along, message in [("y", "y is none"), ("z", "along: expected"), ("", "along: expected")]:
        with pytest.raises(so.InputError, match=message):
            averages.profile(along)
    with pytest.raises(so.InputError, match="average.start"):
        so.Flow(box, step=0.1, average=-1, **OPTIONS)


def test_film(tmp_path):
    image = pytest.importorskip("PIL.Image")
    flow = so.Flow(LID, step=0.05, **OPTIONS)
    for number, (_, solution) in enumerate(flow.march(until=0.3, every=0.1)):
        solution.to_png(tmp_path / f"lid_{number}.png", field="vorticity", scale=(-5, 5))
    for name in ["lid.gif", "lid.webp", "film.png"]:
        so.film(tmp_path / "lid_*.png", tmp_path / name, rate=10, width=300)
        with image.open(tmp_path / name) as film:
            assert film.n_frames == 4 and film.size[0] == 300
            film.seek(1)
            film.load()
            assert film.info["duration"] == 100
    so.film([tmp_path / "lid_3.png", tmp_path / "lid_1.png"], tmp_path / "back.png")
    with image.open(tmp_path / "back.png") as film, image.open(tmp_path / "lid_1.png") as last:
        film.seek(1)
        assert film.convert("RGB").tobytes() == last.convert("RGB").tobytes()
    flow.solution().to_png(tmp_path / "lid_4.png")
    with image.open(tmp_path / "lid_4.png") as picture:
        picture.resize((100, 100)).save(tmp_path / "lid_5.png")
    for arguments, message in [
        (("none_*.png", tmp_path / "a.gif"), "no pictures"),
        ((tmp_path / "lid_*.png", tmp_path / "a.avi"), "ends in .gif"),
        ((tmp_path / "lid_*.png", tmp_path / "a.gif"), "expected one size"),
    ]:
        with pytest.raises(so.InputError, match=message):
            so.film(*arguments)
    assert not list(tmp_path.glob("a.*"))


def test_fields_of_flows():
    """Of a rotation, and of a flow in 3D whose gradient is known."""
    mesh = so.Mesh.box((1, 1), refine=1)
    turn = so.interpolate(so.Problem(mesh, viscosity=0.5), ["-y", "x"])
    points = np.array([[[0.2, 0.3], [0.6, 0.7]]])
    assert turn.field("vorticity", points) == pytest.approx(np.full((1, 2), 2.0))
    assert turn.field("q", points) == pytest.approx(np.full((1, 2), 1.0))
    assert turn.field("dissipation", points) == pytest.approx(np.full((1, 2), 1.0))
    assert turn.enstrophy() == pytest.approx(2.0)
    box = so.Mesh.box((1, 1, 1), refine=1)
    shear = so.interpolate(so.Problem(box), ["z", "2*x", "3*y"])
    assert shear.field("vorticity", [0.2, 0.3, 0.4]) == pytest.approx([3, 1, 2])
    with pytest.raises(so.InputError, match="field: expected one of vorticity, q, dissipation"):
        turn.field("curl", points)
