"""What solutions answer."""

import base64
import copy
import gc
import json
import pickle
import weakref

import numpy as np
import pytest
import solenoid as so


@pytest.fixture(scope="module")
def flow():
    """u = (y^2, 0, 0), p = 2 (1/2 - x) in the unit cube, which RT_2 has."""
    mesh = so.Mesh.box(cells=(1, 1, 1), refine=1)
    profile = ["y^2", 0, 0]
    velocity = {side: profile for side in ("xmin", "ymin", "ymax", "zmin", "zmax")}
    # nu du/dn - p n on x = 1, where p = 2 (1/2 - x)
    problem = so.Problem(mesh, order=2, force=[-4, 0, 0], velocity=velocity, outflow={"xmax": [1, 0, 0]})
    return so.solve(problem, rtol=1e-12)


def test_velocity(flow):
    points = np.random.default_rng(1).random((5, 4, 3))
    u = flow.velocity(points)
    assert u.shape == points.shape
    assert np.allclose(u[..., 0], points[..., 1] ** 2, atol=1e-9)
    assert np.allclose(u[..., 1:], 0, atol=1e-9)
    assert flow.velocity([0.5, 0.5, 0.5]).shape == (3,)
    assert np.isnan(flow.velocity([2, 2, 2])).all()


def test_pressure_and_gradient(flow):
    points = np.random.default_rng(2).random((7, 3))
    assert flow.pressure(points).shape == (7,)
    assert np.allclose(flow.pressure(points), 2 * (0.5 - points[:, 0]), atol=1e-8)
    gradient = flow.gradient(points)
    assert gradient.shape == (7, 3, 3)
    assert np.allclose(gradient[:, 0, 1], 2 * points[:, 1], atol=1e-8)
    assert abs(np.trace(gradient, axis1=1, axis2=2)).max() < 1e-9


def test_integrals(flow):
    assert flow.flux("x", 0.25) == pytest.approx(1 / 3)
    assert flow.flux(0, 0.75) == pytest.approx(1 / 3)
    assert flow.kinetic_energy() == pytest.approx(0.1)
    assert flow.dissipation() == pytest.approx(4 / 3)
    assert flow.max_speed() <= 1
    assert flow.divergence_max() < 1e-11


@pytest.fixture(scope="module")
def sample():
    """A flow through a sample with a hole, periodic in all directions."""
    mesh = so.Mesh.box(cells=(4, 4), refine=2, holes=[((1, 1), (2, 3))])
    return so.solve(so.Problem(mesh, order=2, viscosity=0.5, force=[3, 4], periodic="xy"), rtol=1e-11)


def test_forces(flow, sample):
    # Of the stress nu du/dn - p n of u = (y^2, 0, 0), p = 1 - 2 x, by hand.
    forces = flow.forces()
    assert list(forces) == ["xmin", "xmax", "ymin", "ymax", "zmin", "zmax"]
    assert np.allclose(forces["xmin"].force, [-1, 0, 0], atol=1e-8)
    assert np.allclose(forces["xmax"].force, [-1, 0, 0], atol=1e-8)
    assert np.allclose(forces["ymin"].force, [0, 0, 0], atol=1e-8)
    assert np.allclose(forces["ymax"].force, [-2, 0, 0], atol=1e-8)
    # On y = 1 it is (2, -p, 0), less on the body: the integrals of z p, -2 z and x p + 2 y with signs.
    assert np.allclose(forces["ymax"].torque, [0, -1, 2 - 1 / 6], atol=1e-8)
    assert np.allclose(flow.forces(about=[0.5, 1, 0.5])["ymax"].torque, [0, 0, -1 / 6], atol=1e-8)
    assert np.allclose(sum(force.force for force in forces.values()), [-4, 0, 0], atol=1e-8)

    hole = sample.forces(about=(0.375, 0.5))["holes[0]"]
    assert np.allclose(hole.force, np.array([3, 4]) * (1 - 2 / 16), atol=1e-8)
    assert isinstance(hole.torque, float)
    shifted = sample.forces()["holes[0]"]
    assert shifted.torque - hole.torque == pytest.approx(0.375 * hole.force[1] - 0.5 * hole.force[0])
    assert np.allclose(hole.sampled_pressure + hole.sampled_viscous, hole.force, rtol=0.1)
    with pytest.raises(so.InputError, match="about: expected a point of 2 coordinates"):
        sample.forces(about=[0, 0, 0])


def test_permeability(flow, sample):
    assert np.allclose(sample.mean_velocity(), [sample.flux("x", 0), sample.flux("y", 0)], rtol=1e-9)
    assert np.allclose(sample.permeability(), 0.5 / 5 * sample.mean_velocity())
    with pytest.raises(so.InputError, match="boundary.xmin: a permeability is that of a flow"):
        flow.permeability()


def test_error(flow):
    error = flow.error(["y^2", 0, 0], "1 - 2*x")
    assert error.velocity < 1e-9 and error.pressure < 1e-8
    assert flow.error(["y^2", 0, 0]).pressure is None
    by_function = flow.error(lambda p: np.stack([p[:, 1] ** 2 + 1, 0 * p[:, 0], 0 * p[:, 0]], axis=1))
    assert by_function.velocity == pytest.approx(1)


def test_coefficients(flow):
    values = flow.coefficients
    assert values.dtype == np.float64 and values.ndim == 1
    assert not values.flags.writeable and values.size == flow.report.dofs
    assert values is flow.coefficients


def test_poisson(poisson):
    solution = so.solve(poisson)
    exact = "sin(pi*x)*sin(pi*y)"
    assert solution.error(exact) < 1e-3
    assert solution.value([[0.5, 0.5]]) == pytest.approx([1], abs=1e-3)
    asks = [lambda: solution.velocity([0.5, 0.5]), lambda: solution.pressure([0.5, 0.5])]
    for ask in (*asks, solution.kinetic_energy, solution.forces, solution.mean_velocity):
        with pytest.raises(so.InputError, match="no velocity"):
            ask()


def test_wrong_questions(flow, cavity):
    with pytest.raises(so.InputError, match=r"shape \(..., 3\)"):
        flow.velocity([0.5, 0.5])
    with pytest.raises(so.InputError, match="axis: expected x, y, z"):
        flow.flux("u", 0.5)
    with pytest.raises(so.InputError, match="no `value`"):
        flow.value([0.5, 0.5, 0.5])


def test_files(flow, tmp_path):
    flow.to_vtu(tmp_path / "flow.vtu")
    flow.to_png(str(tmp_path / "flow.png"))
    assert b"VTKFile" in (tmp_path / "flow.vtu").read_bytes()[:100]
    assert (tmp_path / "flow.png").read_bytes()[1:4] == b"PNG"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["flow.png", "flow.vtu"]


def test_csv(sample, poisson, tmp_path):
    points = np.linspace([0, 0.5], [1, 0.5], 9)
    sample.to_csv(tmp_path / "line.csv", points)
    table = np.genfromtxt(tmp_path / "line.csv", delimiter=",", names=True)
    assert table.dtype.names == ("x", "y", "u_x", "u_y", "p")
    assert np.array_equal(np.stack([table["x"], table["y"]], axis=-1), points)
    assert np.array_equal(table["u_y"], sample.velocity(points)[:, 1], equal_nan=True)
    assert np.array_equal(table["p"], sample.pressure(points), equal_nan=True)
    assert np.isnan(table["p"]).sum() == 1
    so.solve(poisson).to_csv(tmp_path / "plane.csv", np.zeros((2, 3, 2)))
    lines = (tmp_path / "plane.csv").read_text().splitlines()
    assert lines[0] == "x,y,u" and len(lines) == 7


def test_xarray(flow, sample, poisson):
    pytest.importorskip("xarray")
    cells = sample.to_xarray()
    assert dict(cells.sizes) == {"x": 16, "y": 16, "component": 2}
    point = cells.sel(x=0.8, y=0.1, method="nearest")
    assert np.allclose(point.velocity, sample.velocity([point.x, point.y]))
    assert float(cells.pressure.isnull().mean()) == 2 / 16
    lattice = flow.to_xarray(points=(2, 3, 4))
    assert lattice.velocity.dims == ("x", "y", "z", "component") and lattice.pressure.shape == (2, 3, 4)
    assert float(abs(lattice.velocity.sel(component="x") - lattice.y**2).max()) < 1e-8
    assert float(abs(lattice.pressure - (1 - 2 * lattice.x)).max()) < 1e-8
    assert so.solve(poisson).to_xarray(points=5)["value"].shape == (5, 5)
    for wrong in (0, 2.5, (1, 2, 3)):
        with pytest.raises(so.InputError, match="points: expected an integer"):
            sample.to_xarray(points=wrong)


@pytest.mark.parametrize("lengths", [(1, 1), (1, 2), (1, 1, 2)])
def test_spectrum(lengths, flow, sample, poisson):
    """Of a mean flow and two waves, whose energies are known; and of anything, by the sum over all waves."""
    dim = len(lengths)
    mesh = so.Mesh.box((1,) * dim, 4 if dim == 2 else 3, upper=[2 * np.pi * length for length in lengths])
    problem = so.Problem(mesh, order=2, mass=1, periodic="xyz"[:dim])
    waves = so.interpolate(problem, ["0.5+cos(y)-0.4*sin(x+2*y)", "0.2*sin(x+2*y)", 0][:dim])
    wavenumber, energy = waves.spectrum()
    expected = np.zeros_like(energy)
    finer = max(lengths)  # shells to a wavenumber
    for k, of_wave in ((0, 0.125), (1, 0.25), (np.sqrt(5), 0.05)):
        expected[round(k * finer)] = of_wave
    assert wavenumber == pytest.approx(np.arange(len(energy)) / finer)
    assert energy == pytest.approx(expected, abs=2e-4 if dim == 2 else 2e-3)
    assert energy.sum() == pytest.approx(waves.kinetic_energy() / np.prod(mesh.upper), rel=1e-3)
    # Each wave by its sum over the samples, where they lie, and other numbers of points.
    counts = (6, 5, 4)[:dim]
    x = np.stack(np.meshgrid(*[(np.arange(n) + 0.5) * b / n for n, b in zip(counts, mesh.upper)], indexing="ij"), -1)
    u = waves.velocity(x).reshape(-1, dim)
    sums = np.zeros(20)
    for m in np.ndindex(*counts):
        k = [(m_a if m_a < n - n // 2 else m_a - n) / length for m_a, n, length in zip(m, counts, lengths)]
        mode = (u * np.exp(-1j * (x.reshape(-1, dim) @ k))[:, None]).mean(axis=0)
        sums[int(np.linalg.norm(k) * finer + 0.5)] += 0.5 * (abs(mode) ** 2).sum()
    found = waves.spectrum(counts).energy
    assert found == pytest.approx(sums[: len(found)], abs=1e-14) and sums[len(found) :].sum() == 0
    for what, message in (
        (lambda: waves.spectrum(0), "points: expected an integer >= 1"),
        (flow.spectrum, "spectrum: expected periodic sides.* but xmin is 'velocity'"),
        (sample.spectrum, "spectrum: expected a box without holes"),
        (so.solve(poisson).spectrum, "Poisson's equation has no velocity"),
    ):
        with pytest.raises(so.InputError, match=message):
            what()


def test_in_notebooks(sample, flow, poisson):
    for solution in (sample, flow, so.solve(poisson)):
        page = solution._repr_html_()
        assert "16 x 16 cells" in page or solution is not sample
        picture = base64.b64decode(page.split("base64,")[1].split('"')[0])
        assert picture.startswith(b"\x89PNG")


def test_plot(flow, cavity, poisson, tmp_path):
    plt = pytest.importorskip("matplotlib.pyplot")
    solution = so.solve(cavity)
    for quantity in ("speed", "pressure", "u", "v", "vorticity"):
        solution.plot(quantity, resolution=40)
    assert so.solve(poisson).plot(resolution=40).get_xlabel() == "x"
    figure, axes = plt.subplots()
    assert flow.plot("w", axis="x", position=0.25, ax=axes, resolution=30, cmap="magma") is axes
    assert axes.get_title() == "x = 0.25" and axes.get_xlabel() == "y"
    assert flow.plot(resolution=30).get_title() == "z = 0.5, streamlines: in-plane velocity"
    assert flow.plot(axis="x", resolution=30).get_title() == "x = 0.5, no in-plane velocity"
    figure.savefig(tmp_path / "flow.png")
    with pytest.raises(so.InputError, match="quantity: expected one of"):
        solution.plot("w")
    with pytest.raises(so.InputError, match="position"):
        flow.plot(position=2.0)
    plt.close("all")


def test_colour_bars_have_labels_at_their_ends(cavity):
    plt = pytest.importorskip("matplotlib.pyplot")
    solution = so.solve(cavity)
    for quantity, arguments in (("speed", {}), ("pressure", {}), ("u", {"vmin": -2, "vmax": 3})):
        axes = solution.plot(quantity, resolution=40, **arguments)
        image = axes.images[0]
        ticks = image.colorbar.get_ticks()
        assert (ticks[0], ticks[-1]) == pytest.approx(image.get_clim())
        labels = [float(label.get_text()) for label in image.colorbar.ax.get_yticklabels()]
        np.testing.assert_allclose(labels, ticks, atol=0.01 * (ticks[-1] - ticks[0]))
    assert solution.plot("speed", resolution=40).images[0].get_clim()[0] == 0.0
    plt.close("all")


def test_slices_do_not_lie_along_faces_of_holes():
    plt = pytest.importorskip("matplotlib.pyplot")
    mesh = so.Mesh.box(cells=(2, 2, 2), refine=1, holes=[((0, 0, 0), (1, 1, 1))])
    flow = so.solve(so.Problem(mesh, order=2, force=[1, 0, 0], periodic="x"))
    assert flow.plot(resolution=20).get_title().startswith("z = 0.625,")
    plt.close("all")


def test_a_constant_is_one_colour(poisson):
    plt = pytest.importorskip("matplotlib.pyplot")
    sides = ("xmin", "xmax", "ymin", "ymax")
    three = so.Problem(poisson.mesh, order=2, equation="poisson", value=dict.fromkeys(sides, 3.0))
    limits = so.solve(three, rtol=1e-14).plot(resolution=30).images[0].get_clim()
    assert limits == pytest.approx((0.0, 3.0))
    plt.close("all")


def test_pyvista(cavity):
    pytest.importorskip("pyvista")
    assert so.solve(cavity).to_pyvista().n_cells == cavity.mesh.n_cells


@pytest.mark.parametrize("dim", [2, 3])
def test_meshio(dim, tmp_path):
    meshio = pytest.importorskip("meshio")
    mesh = so.Mesh.box(cells=(2,) * dim, refine=1, holes=[((0,) * dim, (1,) * dim)])
    solution = so.solve(so.Problem(mesh, order=2, force=["y", "x^2", "x*y"][:dim]))
    solution.to_vtu(tmp_path / "flow.vtu", subdivide=2)
    read = meshio.read(tmp_path / "flow.vtu")
    assert [block.type for block in read.cells] == ["quad" if dim == 2 else "hexahedron"]
    assert len(read.cells[0].data) == mesh.n_cells * 2**dim
    # Points on faces have the values of several cells: look from inside at the lowest corner of each finer cell.
    corners = read.points[read.cells[0].data]
    middle = corners.mean(axis=1)[:, :dim]
    lowest = corners.min(axis=1)[:, :dim]
    inside = lowest + 1e-9 * (middle - lowest)
    first = read.cells[0].data[:, 0]
    assert np.allclose(read.point_data["velocity"][first, :dim], solution.velocity(inside), atol=1e-7)
    assert np.allclose(read.point_data["pressure"][first], solution.pressure(inside), atol=1e-6)


def test_reading_a_report_measures_nothing_but_what_is_asked(cavity, monkeypatch):
    solution = so.solve(cavity)
    calls = []
    core = type(solution._core)
    measured = core.result_json
    monkeypatch.setattr(core, "result_json", lambda s: calls.append(1) or measured(s))
    report = solution.report
    assert report.converged and report.iterations > 1 and report["dofs"] == 1680 and report.time.solve > 0
    assert not calls
    assert report.divergence_max < 1e-9 and report.error.velocity_l2 is None
    assert set(report) >= {"iterations", "error", "settings"} and len(report) == len(dict(report))
    assert "divergence_max" in report and "speed" not in report
    assert len(calls) == 1


def test_reports_are_copied_pickled_and_written(cavity):
    report = so.solve(cavity).report
    for same in (copy.copy(report), copy.deepcopy(report), pickle.loads(pickle.dumps(report))):
        assert dict(same) == dict(report) and same.time.solve == report.time.solve
    assert json.loads(json.dumps(dict(report)))["iterations"] == report.iterations


def test_a_report_that_was_read_does_not_keep_its_solution(cavity):
    solution = so.solve(cavity)
    assert solution.report.iterations > 1
    gone = weakref.ref(solution)
    gc.disable()
    try:
        del solution
        assert gone() is None
    finally:
        gc.enable()


def test_solutions_are_data_of_other_problems(cavity, poisson):
    """As boundary values, as a force, as an exact solution; on other meshes."""
    flow = so.solve(cavity, rtol=1e-11)
    # The flow in the lower half, from its velocity on the boundary, is the same flow.
    half = so.Mesh.box(cells=(2, 1), refine=3, upper=(1, 0.5))
    sides = dict.fromkeys(["xmin", "xmax", "ymin", "ymax"], flow)
    lower = so.solve(so.Problem(half, order=2, velocity=sides), rtol=1e-11)
    assert lower.error(flow).velocity < 0.01 * flow.max_speed()
    finer = so.solve(cavity.replace(refine=4))
    assert finer.error(flow).velocity == pytest.approx(flow.error(finer).velocity, rel=0.05)
    assert 0 < finer.error(flow).velocity < 1e-2
    # Heat drives a flow.
    heat = so.solve(poisson)
    buoyant = so.solve(so.Problem(cavity.mesh, force=[0, heat]))
    expected = so.solve(so.Problem(cavity.mesh, force=[0, lambda p: heat.value(p)]))
    assert np.allclose(buoyant.coefficients, expected.coefficients, atol=1e-8)
    assert buoyant.max_speed() > 0


def test_wrong_solutions_as_data(cavity, poisson):
    flow, heat = so.solve(cavity), so.solve(poisson)
    box = so.Mesh.box(cells=(1, 1, 1), refine=1)
    for call, message in [
        (lambda: so.Problem(cavity.mesh, force=heat), "force: expected 2 components, got a solution of Poisson"),
        (lambda: so.Problem(cavity.mesh, equation="poisson", force=flow), "force: expected a scalar field, got the"),
        (lambda: so.Problem(box, force=flow), "force: got a solution in 2D, expected one in 3D"),
        (lambda: so.solve(so.Problem(so.Mesh.box((1, 1), 2, upper=(2, 1)), force=flow)), r"force\[0\]: the value is nan"),
    ]:
        with pytest.raises(so.InputError, match=message):
            call()


def test_interpolate(cavity, poisson):
    field = ["sin(pi*x)^2*sin(2*pi*y)", lambda p: -np.sin(2 * np.pi * p[:, 0]) * np.sin(np.pi * p[:, 1]) ** 2]
    flow = so.interpolate(cavity, velocity=field, pressure="x*y")
    assert flow.error(field, "x*y").velocity < 2e-3 and flow.error(field, "x*y").pressure < 1e-12
    assert flow.divergence_max() < 1e-6  # to quadrature
    assert flow.coefficients.shape == so.solve(cavity).coefficients.shape
    again = so.interpolate(cavity, velocity=flow)
    assert np.allclose(again.velocity([0.3, 0.7]), flow.velocity([0.3, 0.7]), atol=1e-13)
    heat = so.interpolate(poisson, value="x^2*y^2")
    assert heat.error("x^2*y^2") < 1e-13
    for call, message in [
        (lambda: so.interpolate(cavity, value="x"), "expected `velocity`, and `pressure` if wanted, with the equation 'stokes'"),
        (lambda: so.interpolate(poisson, velocity=[1, 1]), "expected `value`"),
        (lambda: so.interpolate(poisson), "expected `value`"),
        (lambda: so.interpolate(poisson, value=1, pressure=1), "expected `value` and nothing else"),
        (lambda: so.interpolate("cavity", velocity=[1, 1]), "expected a Problem, got str"),
        (lambda: so.interpolate(cavity, velocity=["1/x", 0]), r"velocity\[0\]"),
    ]:
        with pytest.raises(so.InputError, match=message):
            call()


def test_fields_and_arrays_of_flows_with_coefficients_by_cell(tmp_path):
    """Arrays at points of cells are what points have; a stress is 2 nu S - p I; files keep coefficients."""
    mesh = so.Mesh.box(cells=(3, 2), refine=1, upper=(3, 2), holes=[((1, 0), (2, 1))])
    nu = np.arange(1.0, 25.0).reshape(4, 6)  # [y, x]
    problem = so.Problem(
        mesh, viscosity=nu, mass=0.5, force=["y", "-x"], slip=["ymax"], coefficients=[{"inside": "x > 2", "mass": 3}]
    )
    flow = so.solve(problem, rtol=1e-11)
    points = mesh.points(2)
    gradient, pressure = flow.gradient_at_points(2), flow.pressure_at_points(2)
    assert np.array_equal(np.isnan(pressure), np.isnan(flow.pressure(points))) and np.isnan(pressure).any()
    np.testing.assert_allclose(gradient, flow.gradient(points), atol=1e-12)
    np.testing.assert_allclose(pressure, flow.pressure(points), atol=1e-12)
    strain = (gradient + np.swapaxes(gradient, -1, -2)) / 2
    viscosity = flow.field_at_points("viscosity")
    inside = ~np.isnan(viscosity)
    assert np.array_equal(viscosity.T[inside.T], nu[inside.T])
    viscosity = viscosity.repeat(2, axis=0).repeat(2, axis=1)
    expected = {
        "strain_rate": strain,
        "strain_rate_invariant": np.sqrt((strain**2).sum(axis=(-1, -2)) / 2),
        "stress": 2 * viscosity[..., None, None] * strain - pressure[..., None, None] * np.eye(2),
        "dissipation": 2 * viscosity * (strain**2).sum(axis=(-1, -2)),
        "mass": np.where(np.isnan(pressure), np.nan, np.where(points[..., 0] > 2, 3, 0.5)),
        "vorticity": gradient[..., 1, 0] - gradient[..., 0, 1],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(flow.field_at_points(name, 2), values, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(flow.field(name, points), values, atol=1e-12, err_msg=name)
    with pytest.raises(so.InputError, match="strain_rate_invariant"):
        flow.field_at_points("strain")
    stress = flow.normal_stress("ymax", 3)
    below = mesh.points(3, "ymax") - [0, 1e-9]
    np.testing.assert_allclose(stress, flow.field("stress", below)[:, 1, 1], atol=1e-6)
    assert flow.normal_stress("xmin").shape == (4,)
    # What drives the flow is what sides hold, and what the reaction takes.
    driving = np.zeros(2)
    for name, alpha in (("left", 0.5), ("right", 3.0)):
        where = points[..., 0] < 2 if name == "left" else points[..., 0] > 2
        u = flow.velocity_at_points(2)[where & ~np.isnan(pressure)]
        x = points[where & ~np.isnan(pressure)]
        driving += 0.0625 * (np.stack([x[:, 1], -x[:, 0]], axis=-1) - alpha * u).sum(axis=0)
    assert sum(force.force for force in flow.forces().values()) == pytest.approx(driving, abs=1e-7)
    flow.save(tmp_path / "flow.h5")
    loaded = so.load(tmp_path / "flow.h5")
    assert loaded.problem.form == "stress" and loaded.dissipation() == flow.dissipation()
    assert so.solve(problem, start=loaded, rtol=1e-8).report.iterations == 0
