"""Names of version 0.1: they do what those do that have taken their place, and say so."""

import numpy as np
import pytest
import solenoid as so
from conftest import CPU, random_vector


def test_problems(cavity, poisson):
    with pytest.warns(DeprecationWarning, match="use Problem"):
        old = so.Stokes(cavity.mesh, 2, velocity={"ymax": ["16*x^2*(1-x)^2", 0]})
    assert repr(old) == repr(cavity)
    with pytest.warns(DeprecationWarning, match='equation="poisson"'):
        old = so.Poisson(poisson.mesh, order=2, force="2*pi^2*sin(pi*x)*sin(pi*y)")
    assert repr(old) == repr(poisson)


def test_linear_system(cavity):
    system = so.LinearSystem(cavity, **CPU)
    x = random_vector(cavity)
    with pytest.warns(DeprecationWarning, match="use LinearSystem"):
        old = cavity.system(**CPU)
    with pytest.warns(DeprecationWarning):
        assert cavity.system(**CPU) is old and old.size == system.size
    with pytest.warns(DeprecationWarning):
        assert np.array_equal(cavity.operator(**CPU) @ x, system.operator() @ x)
    with pytest.warns(DeprecationWarning):
        assert np.array_equal(cavity.preconditioner(**CPU) @ x, system.preconditioner() @ x)
    with pytest.warns(DeprecationWarning):
        assert np.array_equal(cavity.load(**CPU), system.load())
    with pytest.warns(DeprecationWarning):
        assert np.array_equal(cavity.solution(x, **CPU).coefficients, system.solution(x).coefficients)
