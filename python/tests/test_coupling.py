"""Arrays that go into flows between steps, and come out of them."""

import doctest
import runpy

import numpy as np
import pytest
import solenoid as so

OPTIONS = {"device": "cpu", "threads": 1, "precision": "double"}
#: Cells are no squares, and one is not there.
MESHES = {
    2: so.Mesh.box((3, 3), refine=2, upper=(3, 2), holes=[((1, 1), (2, 2))]),
    3: so.Mesh.box((3, 3, 2), refine=1, upper=(3, 2, 1), holes=[((1, 1, 0), (2, 2, 1))]),
}
FORCE = {2: ["x*y", "1-x^2"], 3: ["x*y+z^2", "1-x^2", "x*z"]}
INFLOW = {2: ["y*(2-y)", "0.1*y"], 3: ["y*(2-y)", "0.1*y", "0.2*z"]}


def channel(dim, **data):
    return so.Problem(MESHES[dim], viscosity=0.05, convection=True, outflow="xmax", **data)


def sampled(points, expressions):
    known = dict(zip("xyz", np.moveaxis(points, -1, 0)))
    return np.stack([eval(text.replace("^", "**"), {}, known) * np.ones(points.shape[:-1]) for text in expressions], -1)


def marched(flow, steps=4):
    for _ in range(steps):
        flow.step()
    return flow.solution()


def assert_same(one, other):
    assert one.error(other).velocity < 1e-12 * np.sqrt(2 * other.kinetic_energy())


@pytest.mark.parametrize("module", ["mesh", "solution"])
def test_the_examples_of_docstrings(module):
    assert doctest.testmod(getattr(so, module)).failed == 0


@pytest.mark.parametrize("dim", [2, 3])
def test_points(dim):
    mesh = MESHES[dim]
    cells = np.array(mesh.cells) << mesh.refine
    h = np.array(mesh.upper) / cells
    assert mesh.points().shape == (*cells, dim)
    assert mesh.points()[(2,) * dim] == pytest.approx(2.5 * h)
    points = mesh.points(3)
    assert points.shape == (*(3 * cells), dim)
    nodes = (np.polynomial.legendre.leggauss(3)[0] + 1) / 2
    assert points[(slice(6, 9), *(0,) * (dim - 1))][:, 0] == pytest.approx((2 + nodes) * h[0])
    for number, side in enumerate(["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"][: 2 * dim]):
        axis = number // 2
        on_side = mesh.points(2, side)
        assert on_side.shape == (*np.delete(2 * cells, axis), dim)
        assert np.all(on_side[..., axis] == (mesh.upper if number % 2 else mesh.lower)[axis])
        others = np.delete(np.arange(dim), axis)
        assert np.array_equal(on_side[..., others], mesh.points(2).take(0, axis=axis)[..., others])


@pytest.mark.parametrize("dim", [2, 3])
def test_arrays_are_data(dim):
    mesh = MESHES[dim]
    expected = marched(so.Flow(channel(dim, force=FORCE[dim], velocity={"xmin": INFLOW[dim]}), step=0.02, **OPTIONS))
    arrays = sampled(mesh.points(3), FORCE[dim]), sampled(mesh.points(3, "xmin"), INFLOW[dim])
    # Of the problem, and set before the first step: there is no other than that at its end.
    fields = {"force": mesh.field(arrays[0]), "velocity": {"xmin": mesh.field(arrays[1], "xmin")}}
    assert_same(marched(so.Flow(channel(dim, **fields), step=0.02, **OPTIONS)), expected)
    flow = so.Flow(channel(dim, velocity={"xmin": INFLOW[dim]}), step=0.02, **OPTIONS)
    flow.set_force(arrays[0])
    flow.set_boundary("xmin", arrays[1])
    assert_same(marched(flow), expected)
    # What is not an array is a field as elsewhere.
    flow = so.Flow(channel(dim, velocity={"xmin": INFLOW[dim]}), step=0.02, **OPTIONS)
    flow.set_force(lambda points: sampled(points, FORCE[dim]))
    flow.set_boundary("xmin", INFLOW[dim])
    assert_same(marched(flow), expected)


@pytest.mark.parametrize("dim", [2, 3])
def test_data_that_change_with_the_time(dim):
    """At the end of each step, as expressions have it, whose flow that of arrays is."""
    mesh = MESHES[dim]
    timed = [f"t*({text})" for text in FORCE[dim]]
    inflow = [f"(1+sin(t))*({text})" for text in INFLOW[dim]]
    velocity = {"xmin": INFLOW[dim]}
    of_time = channel(dim, force=timed, velocity={"xmin": inflow}, parameters={"t": 0})
    expected = marched(so.Flow(of_time, step=0.02, **OPTIONS), 7)
    flow = so.Flow(channel(dim, velocity=velocity), step=0.02, **OPTIONS)
    for _ in range(7):
        t = flow.time + flow.next_step
        flow.set_force(t * sampled(mesh.points(3), FORCE[dim]))
        flow.set_boundary("xmin", (1 + np.sin(t)) * sampled(mesh.points(3, "xmin"), INFLOW[dim]))
        assert flow.step().time == t
    assert_same(flow.solution(), expected)


def test_a_reaction():
    expected = marched(so.Flow(channel(2, mass=2, velocity={"xmin": INFLOW[2]}), step=0.02, **OPTIONS), 12)
    flow = so.Flow(channel(2, velocity={"xmin": INFLOW[2]}), step=0.02, **OPTIONS)
    flow.set_reaction(2)
    assert_same(marched(flow, 12), expected)
    assert flow.solution().problem.mass == 2


@pytest.mark.parametrize("dim", [2, 3])
def test_velocities_and_fluxes(dim):
    mesh = MESHES[dim]
    flow = so.Flow(channel(dim, force=FORCE[dim], velocity={"xmin": INFLOW[dim]}), step=0.02, **OPTIONS)
    solution = marched(flow)
    for m in 1, 2:
        expected = solution.velocity(mesh.points(m))
        assert np.isnan(expected).any()
        np.testing.assert_allclose(flow.velocity_at_points(m), expected, rtol=0, atol=1e-13)
    fluxes = flow.face_fluxes()
    cells = np.array(mesh.cells) << mesh.refine
    h = np.array(mesh.upper) / cells
    out = 0
    for axis, flux in enumerate(fluxes):
        assert flux.shape == tuple(cells + (np.arange(dim) == axis))
        out = out + np.diff(flux, axis=axis)
        across = tuple(np.delete(np.arange(dim), axis))
        planes = [solution.flux(axis, i * h[axis]) for i in range(cells[axis] + 1)]
        assert flux.sum(axis=across) == pytest.approx(planes, abs=1e-13)
    assert np.abs(out).max() < 1e-15 and np.abs(fluxes[0]).max() > 1e-3
    steady = so.solve(so.Problem(mesh, force=FORCE[dim]), **OPTIONS)
    # Here conjugate gradients take part on the coarsest level, so that the divergence falls with the residual.
    assert np.abs(sum(np.diff(flux, axis=a) for a, flux in enumerate(steady.face_fluxes()))).max() < 1e-13
    # At times between steps, too.
    assert flow.solution(flow.time - 0.001).face_fluxes()[0] == pytest.approx(fluxes[0], abs=0.01)


def test_checkpoints_ask_for_what_was_set(tmp_path):
    problem = channel(2, velocity={"xmin": INFLOW[2]})
    force = sampled(MESHES[2].points(), FORCE[2])
    flow = so.Flow(problem, step=0.02, **OPTIONS)
    flow.set_force(force)
    marched(flow)
    flow.save(tmp_path / "flow.h5")
    again = so.Flow(problem, step=0.02, checkpoint=tmp_path / "flow.h5", **OPTIONS)
    with pytest.raises(so.InputError, match="force had been set between steps: set it again"):
        again.step()
    again.set_force(force)
    assert np.array_equal(marched(again).coefficients, marched(flow).coefficients)


def test_what_is_wrong_is_named():
    class OnGpu:
        shape = (12, 12, 2)

        def __array__(self, *_, **__):
            raise TypeError("use .get() to construct a NumPy array explicitly")

    mesh = MESHES[2]
    flow = so.Flow(channel(2), step=0.02, **OPTIONS)
    for call, message in [
        (lambda: flow.set_force(np.zeros((12, 13, 2))), r"force: expected an array of shape \(12, 12, 2\), or with m"),
        (lambda: flow.set_force(np.zeros((24, 12, 2))), r"force: expected an array of shape .*, got \(24, 12, 2\)"),
        (lambda: flow.set_force(np.zeros((12, 12))), "force: expected an array of shape"),
        (lambda: flow.set_force(OnGpu()), r"force: expected an array of numbers in the memory of the host.*\.get\(\)"),
        (lambda: flow.set_force(1), "force: expected 2 components"),
        (lambda: flow.set_boundary("xmin", np.zeros((12, 12, 2))), r"xmin: expected an array of shape \(12, 2\)"),
        (lambda: flow.set_boundary("zmin", [0, 0]), "side: expected one of xmin, xmax, ymin, ymax, got 'zmin'"),
        (lambda: flow.set_reaction(-1), "mass: must be zero or positive"),
        (lambda: flow.set_reaction(np.ones((12, 12))), "mass: expected a number"),
        (lambda: mesh.points(17), "points: expected 1 to 16"),
        (lambda: mesh.field([["a"]]), "values: expected an array of numbers"),
    ]:
        with pytest.raises(so.InputError, match=message):
            call()
    force = np.full((12, 12, 2), np.nan)
    flow.set_force(force)
    with pytest.raises(so.InputError, match=r"force\[0\]: the value is nan at the point"):
        flow.step()
    force[:] = 1
    force[4:8, 4:8] = np.nan  # the hole
    flow.set_force(force)
    assert flow.step().number == 1


@pytest.mark.parametrize("rayleigh, within", [(1e4, 0.01)])
def test_heated_cavity(root, capsys, rayleigh, within):
    names = runpy.run_path(str(root / "python" / "examples" / "heated_cavity.py"))
    names["main"](rayleigh, refine=4)
    nusselt = float(capsys.readouterr().out.split("Nusselt number")[1].split(",")[0])
    assert nusselt == pytest.approx(names["BENCHMARK"][rayleigh], rel=within)


def test_viscosity_that_is_set():
    """As an expression in the time that has the same values at the ends of steps."""
    mesh = so.Mesh.box((1, 1), refine=3)
    start = np.full((8, 8), 0.1)
    lid = {"velocity": {"ymax": ["x*(1-x)", 0]}, "convection": True}
    by_call = so.Flow(so.Problem(mesh, viscosity=start, mass=np.ones((8, 8)), **lid), step=0.05, **OPTIONS)
    varying = so.Problem(mesh, viscosity="0.1 + t*x", mass="1 + t", parameters={"t": 0}, **lid)
    by_expression = so.Flow(varying, step=0.05, **OPTIONS)
    for _ in range(4):
        end = by_call.time + by_call.next_step
        by_call.set_viscosity(0.1 + end * mesh.points()[..., 0].T)
        by_call.set_reaction(f"1 + {end!r}")
        by_call.step()
        by_expression.step()
    one, other = by_call.solution(), by_expression.solution()
    assert np.allclose(one.coefficients, other.coefficients, atol=1e-7)
    assert one.field("viscosity", [0.5625, 0.1]) == pytest.approx(0.1 + by_call.time * 0.5625)
    assert one.dissipation() == pytest.approx(other.dissipation(), rel=1e-6)
    before = by_call.solution().coefficients
    for wrong in (np.ones((7, 8)), -start, np.nan):
        with pytest.raises(so.InputError, match="viscosity"):
            by_call.set_viscosity(wrong)
    assert np.array_equal(by_call.solution().coefficients, before)
    with pytest.raises(so.InputError, match="expected a number"):
        so.Flow(so.Problem(mesh, **lid), step=0.1, **OPTIONS).set_viscosity(start)
