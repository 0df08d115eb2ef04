"""What the tests share: they run with any build that has order 2."""

import os
import pathlib
import shutil
import sys

import numpy as np
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")

import solenoid as so

#: Of a linear system to compare with.
CPU = {"device": "cpu", "precision": "double"}
ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def root():
    """The checkout."""
    return ROOT


@pytest.fixture
def program():
    """The command line of the same build."""
    beside = os.path.join(os.path.dirname(sys.executable), "solenoid")
    found = os.environ.get("SOLENOID_PROGRAM") or (beside if os.path.exists(beside) else shutil.which("solenoid"))
    if found is None:
        pytest.skip("the program solenoid is not installed")
    return found


def lid(points):
    """The velocity of the regularised lid at points (n, dim)."""
    x = points[:, 0]
    u = np.zeros_like(points)
    u[:, 0] = 16 * x**2 * (1 - x) ** 2
    return u


def random_vector(problem, seed=1):
    """A vector of the problem's linear system."""
    return np.random.default_rng(seed).standard_normal(so.LinearSystem(problem, **CPU).size)


@pytest.fixture
def cavity():
    """A lid-driven cavity in 2D."""
    mesh = so.Mesh.box(cells=(1, 1), refine=3)
    return so.Problem(mesh, order=2, velocity={"ymax": ["16*x^2*(1-x)^2", 0]})


@pytest.fixture
def poisson():
    mesh = so.Mesh.box(cells=(1, 1), refine=3)
    return so.Problem(mesh, order=2, equation="poisson", force="2*pi^2*sin(pi*x)*sin(pi*y)")
