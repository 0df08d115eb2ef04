"""Cells that are parallelograms or parallelepipeds."""

import math

import numpy as np
import pytest

import solenoid as so

EDGES = [(1.2, 0.3), (-0.4, 0.9)]


def linear_flow():
    """u = (0.3 + 0.7 x - 0.4 y, 0.4 + 1.1 x - 0.7 y), p = 0.9 x - 1.3 y, which is in the spaces."""
    mesh = so.Mesh.sheared(EDGES, refine=2, origin=(0.2, -0.1))
    velocity = ["0.3 + 0.7*x - 0.4*y", "0.4 + 1.1*x - 0.7*y"]
    sides = {side: velocity for side in ("xmin", "xmax", "ymin", "ymax")}
    return so.Problem(mesh, order=2, force=[0.9, -1.3], velocity=sides)


def test_mesh():
    mesh = so.Mesh.sheared(EDGES, cells=(2, 1), refine=1, origin=(1, 2), holes=[((1, 0), (2, 1))])
    assert (mesh.dim, mesh.n_cells, mesh.origin) == (2, 4, (1.0, 2.0))
    assert mesh.edges == ((1.2, 0.3), (-0.4, 0.9))
    # The bounding box.
    assert np.allclose(mesh.lower, (0.6, 2.0)) and np.allclose(mesh.upper, (2.2, 3.2))
    box = so.Mesh.box((1, 1), refine=1, lower=(-1, 0))
    assert box.edges is None and box.origin == box.lower == (-1.0, 0.0)


def test_problem_keeps_its_mesh():
    problem = linear_flow()
    assert problem.mesh == so.Mesh.sheared(EDGES, refine=2, origin=(0.2, -0.1))
    assert problem.replace(viscosity=2.0).mesh == problem.mesh
    assert "edges (1.2, 0.3), (-0.4, 0.9)" in repr(problem)


def test_flow_is_that_in_space():
    solution = so.solve(linear_flow(), device="cpu", rtol=1e-12)
    points = np.array([(0.2, -0.1), (0.7, 0.5), (1.0, 0.6)]) + (0.0, 1e-9)
    x, y = points.T
    velocity = np.stack([0.3 + 0.7 * x - 0.4 * y, 0.4 + 1.1 * x - 0.7 * y], axis=-1)
    assert np.allclose(solution.velocity(points), velocity, atol=1e-8)
    assert np.allclose(solution.gradient(points), [[0.7, -0.4], [1.1, -0.7]], atol=1e-6)
    assert solution.divergence_max() < 1e-9
    assert np.isnan(solution.velocity([(0.0, 0.0)])).all()  # outside, though in the bounding box


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(1, 0), (2, 0)], "determinant"),
        ([(0, 1), (1, 0)], "right-handed"),
        ([(1, 0), (1, 0.02)], "smallest angle"),
        ([(1, 0, 0), (0, 1, 0)], "expected 2 numbers"),
        ([(1, 0)], "expected 2 or 3 vectors"),
        ([(1, 0), (math.inf, 1)], "finite"),
    ],
)
def test_edges_that_are_refused(edges, message):
    with pytest.raises(so.InputError, match=message):
        so.Mesh.sheared(edges)


def test_solution_is_saved_and_shown(tmp_path):
    solution = so.solve(linear_flow(), device="cpu")
    solution.save(tmp_path / "flow.h5")
    loaded = so.load(tmp_path / "flow.h5")
    assert loaded.problem.mesh == solution.problem.mesh
    assert np.array_equal(loaded.velocity([(0.7, 0.5)]), solution.velocity([(0.7, 0.5)]))
    assert so.solve(linear_flow(), start=loaded, device="cpu").report.iterations <= 1


def test_results_are_those_in_space():
    solution = so.solve(linear_flow(), device="cpu", rtol=1e-12)
    mesh = solution.problem.mesh
    points = mesh.points(2)
    assert points.shape == (8, 8, 2)
    assert np.allclose(solution.velocity_at_points(2), solution.velocity(points), atol=1e-9)
    # The pressure has mean zero, and the velocity no Laplacian: walls bear the force on the fluid.
    total = sum(np.array(force.force) for force in solution.forces().values())
    area = 1.2 * 0.9 + 0.3 * 0.4
    assert np.allclose(total, area * np.array([0.9, -1.3]), atol=1e-8)
    # What flows in flows out, through every plane.
    f, g = solution.face_fluxes()
    assert abs(np.diff(f, axis=0) + np.diff(g, axis=1)).max() < 1e-10
    assert np.isclose(solution.flux("x", 0.5 * math.hypot(1.2, 0.3)), f[2].sum())


def test_what_is_not_there():
    solution = so.solve(linear_flow(), device="cpu")
    with pytest.raises(so.InputError, match="sheared"):
        solution.spectrum()
    with pytest.raises(so.InputError, match="Stokes"):
        so.Problem(so.Mesh.sheared(EDGES), equation="poisson")
