"""Meshes, data, conditions on sides, and messages about what is wrong with them."""

import dataclasses

import numpy as np
import pytest
import solenoid as so
from conftest import lid


def test_mesh():
    mesh = so.Mesh.box(cells=(4, 2), refine=2, lower=(-1, 0), upper=(1, 1), holes=[((1, 0), (2, 1)), ((1, 0), (3, 1))])
    assert mesh.dim == 2
    assert mesh.n_cells == (8 - 2) * 16
    assert mesh == so.Mesh.box((4, 2), 2, (-1, 0), (1, 1), [{"lower": (1, 0), "upper": (2, 1)}, [(1, 0), (3, 1)]])
    assert so.Mesh.box(refine=1).n_cells == 8
    problem = so.Problem(mesh)
    assert problem.mesh == mesh
    assert so.solve(problem).report.cells == mesh.n_cells


def test_repr_says_what_it_is(cavity, poisson):
    assert "RT_2" in repr(cavity) and "8 x 8 cells" in repr(cavity) and "ymax" in repr(cavity)
    assert "Poisson" in repr(poisson)


def test_sides():
    mesh = so.Mesh.box(cells=(2, 1, 1), refine=1, holes=[((0, 0, 0), (1, 1, 1))])
    problem = so.Problem(
        mesh, velocity={"holes": [1, 0, 0]}, slip=["ymin", "ymax"], outflow={"xmax": [0, 0, 0]}, periodic="z"
    )
    assert problem.sides == {
        "xmin": "velocity",
        "xmax": "outflow",
        "ymin": "slip",
        "ymax": "slip",
        "zmin": "periodic",
        "zmax": "periodic",
        "holes": "velocity",
    }
    assert so.Problem(mesh, outflow="xmax").sides["xmax"] == "outflow"
    assert so.Problem(mesh, equation="poisson").sides["xmax"] == "value"


def test_parts_of_sides_and_single_holes():
    mesh = so.Mesh.box(cells=(4, 2), refine=2, upper=(2, 1), holes=[((1, 0), (2, 1)), ((3, 1), (4, 2))])
    inflow = {"on": "xmin", "where": "y > 0.5", "velocity": ["(1-y)*(y-0.5)", 0]}
    turning = {"index": 0, "velocity": lambda x: np.stack([0.25 - x[:, 1], x[:, 0] - 0.75], axis=-1)}
    problem = so.Problem(mesh, outflow="xmax", sides=[inflow], holes=[turning])
    assert problem.sides["side[0]"] == "velocity" and problem.sides["hole[0]"] == "velocity"
    assert "side[0]" in repr(problem)
    solution = so.solve(problem, rtol=1e-10)
    assert solution.flux("x", 2.0) == pytest.approx(0.5**3 / 6)
    inflow["where"] = lambda x: x[:, 1] > 0.5
    turning["velocity"] = ["0.25-y", "x-0.75"]
    assert same(problem, so.Problem(mesh, outflow="xmax", sides=[inflow], holes=[turning]))
    open_below = {"on": "xmax", "where": "y < 0.5", "outflow": True}
    pushed = {**open_below, "traction": [1, 0]}
    assert so.Problem(mesh, sides=[open_below, pushed]).sides["side[1]"] == "outflow"
    values = so.Problem(mesh, equation="poisson", sides=[{"on": "ymin", "where": "x < 0.5", "value": 1}])
    assert values.sides["side[0]"] == "value"


@pytest.mark.parametrize(
    "sides, message",
    [
        (
            [{"on": "xmn", "where": "1", "slip": True}],
            r"side\[0\].on: expected the name of a side, one of xmin, .*'xmn'",
        ),
        ([{"on": "xmin", "where": "y < 0.3", "velocity": [0, 0]}], r"side\[0\].where: ends within the face of a cell"),
        ([{"on": "xmin", "where": "y < 0.25", "slip": True}], r"side\[0\].where: ends within the face of a coarse box"),
        ([{"on": "xmin", "where": "y < 0.5"}], r"side\[0\]: expected one condition of velocity, .*, got none"),
        ([{"on": "xmin", "where": "y < 0.5", "slip": True, "outflow": True}], "got slip and outflow"),
        ([{"on": "xmin", "where": "y < 0.5", "slipp": True}], "unknown key 'slipp': did you mean 'slip'"),
        ([{"on": "xmin", "slip": True}], r"side\[0\]: the key 'where' is missing"),
        (["xmin"], r"side\[0\]: expected a dictionary, got 'xmin'"),
    ],
)
def test_wrong_parts_of_sides(sides, message):
    with pytest.raises(so.InputError, match=message):
        so.Problem(so.Mesh.box((2, 2), refine=2), sides=sides)


def test_images():
    solid = np.zeros((4, 3, 2), dtype=np.uint8)
    solid[1, 2, 0] = 255
    mesh = so.Mesh.image(solid, refine=1, voxel=(2e-6, 2e-6, 3e-6))
    assert mesh.cells == (4, 3, 2) and mesh.lower == (0, 0, 0) and mesh.upper == (4, 3, 3)
    assert mesh.n_cells == 23 * 8
    assert mesh.voxels.voxel == [2e-6, 2e-6, 3e-6] and mesh.voxels.porosity == 23 / 24
    assert mesh == so.Mesh.image(solid != 0, refine=1, voxel=(2e-6, 2e-6, 3e-6))
    assert mesh != so.Mesh.image(0 * solid, refine=1, voxel=(2e-6, 2e-6, 3e-6))
    problem = so.Problem(mesh, periodic="xyz", slip="holes")
    assert problem.mesh == mesh and problem.sides["holes"] == "slip"
    assert problem.replace(refine=0).mesh == so.Mesh.image(solid, voxel=(2e-6, 2e-6, 3e-6))
    assert "an image of porosity 0.9583" in repr(problem)
    listed = so.Mesh.box((4, 3, 2), 1, upper=(4, 3, 3), holes=[((1, 2, 0), (2, 3, 1))])
    assert problem.estimate()["dofs"] == problem.replace(mesh=listed).estimate()["dofs"]


@pytest.mark.parametrize(
    "make, part",
    [
        (lambda: so.Mesh.image(np.zeros(3)), "2 or 3 axes, got 1"),
        (lambda: so.Mesh.image(np.zeros((0, 3))), "at least one voxel"),
        (lambda: so.Mesh.image(np.zeros((3, 3)), voxel=0), "must be positive"),
        (lambda: so.Mesh.image(np.zeros((3, 3)), voxel=(1, 1, 1)), "voxel: expected 2 numbers"),
        (lambda: so.Problem(so.Mesh.image(np.ones((3, 3)))), "no voxel is a pore"),
    ],
)
def test_wrong_images(make, part):
    with pytest.raises(so.InputError, match=part):
        make()


def test_wrong_single_holes():
    mesh = so.Mesh.box((3, 3), refine=1, holes=[((1, 1), (2, 2))])
    with pytest.raises(so.InputError, match=r"hole\[0\].index: there is no hole 1"):
        so.Problem(mesh, holes=[{"index": 1, "slip": True}])
    with pytest.raises(so.InputError, match=r"hole\[1\].index: hole 0 has a condition already"):
        so.Problem(mesh, holes=[{"index": 0, "slip": True}, {"index": 0, "outflow": True}])


def test_equation(cavity, poisson):
    assert (cavity.equation, poisson.equation) == ("stokes", "poisson")
    problem = so.Problem(poisson.mesh, equation="poisson", value={"xmin": "y"}, periodic="y")
    assert problem.sides["xmin"] == "value" and problem.sides["ymax"] == "periodic"


def same(a, b, tolerance=1e-13):
    x, y = (so.solve(problem, rtol=1e-10, threads=1).coefficients for problem in (a, b))
    return np.abs(x - y).max() <= tolerance * np.abs(x).max()


def test_functions_expressions_and_constants_are_the_same():
    mesh = so.Mesh.box(cells=(1, 1), refine=3)

    def problem(**data):
        return so.Problem(mesh, mass=1.0, **data)

    expressions = problem(force=["x*y", "1"], velocity={"ymax": ["16*x^2*(1-x)^2", "0"]})
    functions = problem(force=lambda p: np.stack([p[:, 0] * p[:, 1], np.ones(len(p))], axis=1), velocity={"ymax": lid})
    mixed = problem(force=["x*y", 1], velocity={"ymax": [lambda p: lid(p)[:, 0], np.float64(0)]})
    assert same(expressions, functions)
    assert same(expressions, mixed)
    assert same(problem(force=[1, 0.5]), problem(force=lambda p: [1, 0.5]))


def test_poisson_functions_and_expressions_are_the_same(poisson):
    def f(p):
        return 2 * np.pi**2 * np.sin(np.pi * p[:, 0]) * np.sin(np.pi * p[:, 1])

    assert same(poisson, so.Problem(poisson.mesh, order=2, equation="poisson", force=f), 1e-12)


def test_a_function_sees_points_of_the_mesh():
    seen = []

    def f(points):
        seen.append(points.copy())
        return np.zeros_like(points)

    mesh = so.Mesh.box(cells=(1, 1, 1), refine=1, lower=(0, 0, 1), upper=(1, 1, 2))
    so.solve(so.Problem(mesh, force=f))
    points = np.concatenate(seen)
    assert points.shape[1] == 3 and points.dtype == np.float64
    assert points[:, 2].min() > 1 and points[:, 2].max() < 2


def test_estimate(cavity):
    need = cavity.estimate()
    assert need["dofs"] == so.solve(cavity).report.dofs
    assert 0 < need["bytes_needed"] < need["bytes_available"]


MESH = so.Mesh.box(cells=(1, 1), refine=2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: so.Mesh.box(cells=(1,)), "2 or 3 integers"),
        (lambda: so.Mesh.box(cells=(1, 1), lower=(0, 0, 0)), "lower: expected 2 numbers"),
        (lambda: so.Mesh.box(cells=(1, 1), holes=[3]), "holes[0]"),
        (lambda: so.Mesh.box(cells=(1.5, 1)), "cells: expected 2 integers"),
        (lambda: so.Mesh.box(cells=(0, 1)), "mesh.cells: every entry must be at least 1"),
        (lambda: so.Mesh.box((3, 3), refine=-1), "mesh.refine: must be from 0 to 20, got -1"),
        (lambda: so.Mesh.box((3, 3), holes=[((0, 0), (9, 9))]), "mesh.holes[0]: [0, 0] to [9, 9] reaches outside"),
        (lambda: dataclasses.replace(MESH, refine=21), "mesh.refine: must be from 0 to 20, got 21"),
        (lambda: so.Problem("mesh"), "expected a Mesh"),
        (lambda: so.Problem(MESH, equation="navier"), "equation: expected 'stokes' or 'poisson', got 'navier'"),
        (lambda: so.Problem(MESH, value={"xmin": 1}), "value: there is no such condition with the equation 'stokes'"),
        (lambda: so.Problem(MESH, equation="poisson", slip="xmin"), "slip: there is no such condition"),
        (lambda: so.Problem(MESH, order=99), "is not part of this build"),
        (lambda: so.Problem(MESH, order="two"), "order: expected an integer"),
        (lambda: so.Problem(MESH, viscosity=-1), "must be positive"),
        (lambda: so.Problem(MESH, velocity={"ymx": [1, 0]}), "did you mean 'ymax'"),
        (lambda: so.Problem(MESH, velocity={"zmax": [1, 0]}), "unknown side 'zmax'"),
        (lambda: so.Problem(MESH, velocity={"ymax": [1, 0, 0]}), "velocity ymax: expected 2 components"),
        (lambda: so.Problem(MESH, velocity={"ymax": ["16*x^2*(1-x^2", 0]}), "Missing parenthesis"),
        (lambda: so.Problem(MESH, velocity={"ymax": [np.nan, 0]}), "expected a finite number"),
        (lambda: so.Problem(MESH, velocity={"ymax": [1, 0]}, slip=["ymax"]), "has a condition already"),
        (lambda: so.Problem(MESH, periodic="z"), "periodic: expected directions"),
        (lambda: so.Problem(MESH, force="x"), "force: expected 2 components"),
        (lambda: so.Problem(MESH, equation="poisson", force=["x", "y"]), "force: expected a number, an expression"),
        (lambda: so.Problem(so.Mesh.box((2, 1), 1, holes=[((0, 0), (2, 1))])), "leave nothing of the domain"),
    ],
)
def test_wrong_input(make, message):
    with pytest.raises(so.InputError) as error:
        make()
    assert message in str(error.value)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"force": lambda p: p[:, 0]}, "must return an array of shape"),
        ({"force": ["1/x", "log10(x-2)"]}, "must be finite everywhere"),
        ({"velocity": {"ymax": [0, 1]}}, "do not balance"),
        ({"force": [1, 0], "periodic": "xy"}, "its mean pushes a flow"),
    ],
)
def test_data_that_do_not_work(data, message):
    with pytest.raises(so.InputError) as error:
        so.solve(so.Problem(MESH, **data))
    assert message in str(error.value)


def test_errors_of_functions_come_through():
    class Mine(Exception):
        pass

    def f(points):
        raise Mine("oh")

    with pytest.raises(Mine, match="oh"):
        so.solve(so.Problem(MESH, force=f))


def test_replace(cavity):
    finer = cavity.replace(viscosity=0.5, refine=4)
    assert (finer.viscosity, finer.mesh.refine, finer.order, finer.sides) == (0.5, 4, 2, cavity.sides)
    assert (cavity.viscosity, cavity.mesh.refine) == (1.0, 3)
    mesh = dataclasses.replace(cavity.mesh, refine=4)
    lid_alone = {"ymax": ["16*x^2*(1-x)^2", 0]}
    assert same(finer, so.Problem(mesh, viscosity=0.5, velocity=lid_alone), 0.0)
    assert same(cavity.replace(mesh=mesh), so.Problem(mesh, velocity=lid_alone), 0.0)
    moved = cavity.replace(velocity={"ymin": lid}, slip="ymax", mass=3, force=["y", 0])
    assert same(moved, so.Problem(cavity.mesh, mass=3, force=["y", 0], velocity={"ymin": lid}, slip="ymax"), 0.0)


def test_replace_keeps_everything_else():
    """All conditions and data come back as they were, functions too."""
    mesh = so.Mesh.box(cells=(4, 3, 2), refine=1, holes=[((1, 1, 0), (2, 2, 1))])
    arguments = {
        "mass": 2.0,
        "force": lambda points: points**2,
        "velocity": {
            "holes": ["0.1*y", 0, 0],
            "zmin": lambda points: np.stack([points[:, 1], 0 * points[:, 0], 0 * points[:, 0]], 1),
        },
        "slip": ["zmax"],
        "outflow": {"xmax": ["y", 0, 0]},
        "periodic": "y",
        "sides": [
            {"on": "xmax", "where": lambda points: points[:, 2] < 0.5, "slip": True},
            {"on": "xmin", "where": "z > 0.5", "velocity": ["z-0.5", 0, 0]},
            {"on": "zmax", "where": "x > 0.5", "traction": [0, 0, "x"]},
        ],
        "holes": [{"index": 0, "velocity": [0, "x", 0]}],
    }
    problem = so.Problem(mesh, **arguments)
    assert "side[0]" not in problem.replace(sides=[]).sides
    assert not same(problem.replace(holes=[]), problem)
    assert same(problem.replace(), problem, 0.0)
    assert same(problem.replace(viscosity=2).replace(viscosity=1), problem, 0.0)
    assert same(problem.replace(mass=0.5), so.Problem(mesh, **{**arguments, "mass": 0.5}), 0.0)
    assert problem.replace(refine=2).sides == problem.sides


def test_replace_of_poisson_and_of_cases(poisson, tmp_path):
    given = so.Problem(poisson.mesh, equation="poisson", force="x", value={"xmin": "y", "xmax": 2}, periodic="y")
    assert same(given.replace(), given, 0.0)
    divided = given.replace(sides=[{"on": "xmin", "where": "y < 0.5", "value": 3}])
    assert same(divided.replace(), divided, 0.0) and not same(divided, given)
    other = given.replace(value={"xmin": 1})
    assert same(other, so.Problem(poisson.mesh, equation="poisson", force="x", value={"xmin": 1}, periodic="y"), 0.0)
    file = tmp_path / "channel.toml"
    file.write_text(
        "[mesh]\ncells = [2, 1]\nrefine = 2\n[physics]\nviscosity = 0.1\n"
        '[boundary]\nxmin = {velocity = ["y*(1-y)", 0]}\nxmax = {outflow = true}\n'
    )
    case = so.read_case(file).problem
    assert same(case.replace(), case, 0.0)
    new = so.Problem(so.Mesh.box((2, 1), 3), viscosity=0.1, velocity={"xmin": ["y*(1-y)", 0]}, outflow="xmax")
    assert same(case.replace(refine=3), new, 0.0)


def test_replace_says_what_is_wrong(cavity):
    with pytest.raises(so.InputError, match="mesh: has 3 dimensions"):
        cavity.replace(mesh=so.Mesh.box(refine=1))
    with pytest.raises(so.InputError, match="refine"):
        cavity.replace(mesh=cavity.mesh, refine=2)
    with pytest.raises(so.InputError, match="refine: expected an integer"):
        cavity.replace(refine=2.5)
    with pytest.raises(so.InputError, match="viscosity"):
        cavity.replace(viscosity=-1)
    with pytest.raises(so.InputError, match="slip: the side 'ymax' has a condition already: velocity"):
        cavity.replace(slip="ymax")
    with pytest.raises(TypeError, match="viscsity"):
        cavity.replace(viscsity=1)


def test_forces_of_regions_and_arrays():
    """One force given in many ways: that of a region that begins on a face of cells."""
    mesh = so.Mesh.box(cells=(2, 1), refine=2, upper=(2, 1))
    field = ["0", "x < 1 ? 2 : 5"]
    expected = so.Problem(mesh, force=field)
    cells = np.zeros((4, 8))  # [y, x]
    cells[:, :4], cells[:, 4:] = 2, 5
    points = np.zeros((8 * 3, 4 * 3, 2))  # [x, y, component]
    points[:12, :, 1], points[12:, :, 1] = 2, 5
    there = {"inside": "x < 1", "force": [0, 2]}
    for problem in (
        so.Problem(mesh, force=[0, 5], coefficients=[there]),
        so.Problem(mesh, force=[0, 5], coefficients=[there]).replace(order=2),
        so.Problem(mesh, coefficients=[{"inside": lambda x: x[:, 0] > 0, "force": [0, cells]}]),
        so.Problem(mesh, force=[0, cells]),
        so.Problem(mesh, force=[0, cells[:1, ::4]]),
        so.Problem(mesh, force=np.stack([0 * cells, cells])),
        so.Problem(mesh, force=points),
        so.Problem(mesh, force=mesh.field(points)),
    ):
        assert same(problem, expected)
    assert np.abs(so.solve(expected).velocity([0.5, 0.5])).max() > 1e-3
    value = so.Problem(mesh, equation="poisson", force=cells)
    assert same(value, so.Problem(mesh, equation="poisson", force=field[1]))
    value = so.Problem(mesh, equation="poisson", force=5, coefficients=[{"inside": "x < 1", "force": 2}])
    assert same(value.replace(order=2), so.Problem(mesh, equation="poisson", force=field[1]))


@pytest.mark.parametrize(
    ("force", "message"),
    [
        (np.zeros((8, 4, 3)), "force: expected an array of shape"),
        ([0, np.zeros((8, 4))], r"force\[1\]: the array has 4 x 8 numbers"),
        ([0, np.zeros(4)], r"force\[1\]: the array has 1 indices"),
        ([0, 0, 0], "force: expected 2 components"),
    ],
)
def test_wrong_arrays_of_forces_are_named(force, message):
    with pytest.raises(so.InputError, match=message):
        so.Problem(so.Mesh.box(cells=(2, 1), refine=2, upper=(2, 1)), force=force)


def test_arrays_of_forces_that_could_be_two_things():
    with pytest.raises(so.InputError, match="has components first or last"):
        so.Problem(so.Mesh.box(cells=(2, 2)), force=np.zeros((2, 2, 2)))
    with pytest.raises(so.InputError, match=r"coefficients\[0\]: unknown key 'forces'"):
        so.Problem(so.Mesh.box(cells=(2, 2)), coefficients=[{"inside": 1, "forces": [0, 1]}])
