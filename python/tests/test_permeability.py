"""Permeabilities of images."""

import numpy as np
import pytest
import solenoid as so

OPTIONS = {"device": "cpu", "mac": False}


@pytest.fixture
def grains():
    """Solid boxes at random places of a periodic box."""
    rng = np.random.default_rng(1)
    solid = np.zeros((8, 8, 8), dtype=bool)
    for at in rng.integers(0, 8, (9, 3)):
        solid[np.ix_(*((at[a] + np.arange(3)) % 8 for a in range(3)))] = True
    return solid


def test_channel():
    """K = w^2 / 12 between plates, in square metres."""
    result = so.permeability(np.zeros((4, 3), dtype=bool), voxel=2e-6, directions="x", **OPTIONS)
    assert result.tensor[0, 0] == pytest.approx(9 / 12 * 4e-12, rel=1e-7)
    assert np.isnan(result.tensor[1, 1])
    assert result.darcy[0, 0] == pytest.approx(result.tensor[0, 0] / so.DARCY)
    assert result.converged and result.principal_values is None and result.error is None
    assert result.mac is None and result.value.order == 2 and result.porosity == 1
    (flow,) = result.value.flows
    assert flow.direction == "x" and flow.converged and flow.flux_deviation < 1e-8
    (pores,) = result.pores
    assert pores.percolates and pores.components == 1
    assert "porosity 1" in repr(result)


def test_tensor(grains):
    seen = []
    result = so.permeability(
        grains, sides="periodic", visit=lambda direction, flow: seen.append((direction, flow)), rtol=1e-9, **OPTIONS
    )
    assert result.value.asymmetry < 1e-7
    assert np.array_equal(result.tensor, result.tensor.T)
    axes = result.principal_axes
    assert np.allclose(axes @ result.tensor @ axes.T, np.diag(result.principal_values), atol=1e-9)
    assert [direction for direction, _ in seen] == ["x", "y", "z"]
    means = np.stack([flow.mean_velocity() for _, flow in seen], axis=1)
    assert np.allclose(means, result.tensor, atol=1e-7)


def test_pressure_and_error():
    solid = np.ones((4, 5, 5), dtype=bool)
    solid[:, 1:4, 1:4] = False
    force = so.permeability(solid, directions="x", error="refinement", **OPTIONS)
    pressure = so.permeability(solid, directions=["x"], drive="pressure", **OPTIONS)
    assert pressure.tensor[0, 0] == pytest.approx(force.tensor[0, 0], rel=1e-6)
    assert 0 < force.error < 0.01 and force.finer.refine == 1


def test_nothing_flows():
    solid = np.zeros((4, 4), dtype=bool)
    solid[2] = True
    result = so.permeability(solid, directions="x", **OPTIONS)
    assert result.tensor[0, 0] == 0 and not result.pores[0].percolates and result.device == ""


def test_wrong_input(tmp_path, grains):
    solid = np.zeros((4, 4), dtype=bool)
    with pytest.raises(so.InputError, match="directions"):
        so.permeability(solid, directions="z")
    with pytest.raises(so.InputError, match='sides.*"wall" or "periodic"'):
        so.permeability(solid, sides="open")
    with pytest.raises(so.InputError, match="2 or 3 axes"):
        so.permeability([1, 0])
    with pytest.raises(so.InputError, match="order"):
        so.permeability(solid, order="MAC")
    with pytest.warns(so.ConvergenceWarning, match="along x"):
        so.permeability(grains, directions="x", max_iterations=1, **OPTIONS)
    file = tmp_path / "duct.toml"
    file.write_text('[mesh]\nimage = {generate = "duct", shape = [4, 4, 4]}\n[permeability]\n')
    with pytest.raises(so.InputError, match="permeability()"):
        so.solve(so.read_case(file))
