"""Permeabilities of images."""

import subprocess
import xml.etree.ElementTree as ElementTree
import zlib

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


def lopsided():
    """A crooked channel and a closed pore in an image with no two sides alike."""
    solid = np.ones((6, 5, 4), dtype=bool)
    solid[:, 1:4, 1:3] = False
    solid[2, 3, :] = True
    solid[0, 4, 3] = False
    return solid


@pytest.mark.parametrize("order", ["mac", 2])
def test_fields(order):
    solid = lopsided()
    result = so.permeability(solid, voxel=2e-6, directions="x", order=order, fields=True, rtol=1e-10, **OPTIONS)
    assert list(result.fields) == ["x"]
    velocity, pressure = result.fields["x"]
    assert velocity.shape == (6, 5, 4, 3) and pressure.shape == (6, 5, 4)
    closed = solid.copy()
    closed[0, 4, 3] = True
    assert np.all(velocity[closed] == 0) and np.array_equal(np.isnan(pressure), closed)
    # The mean is K, and so is that of each layer across the flow.
    assert np.allclose(velocity[..., 0].mean(axis=(1, 2)), result.tensor[0, 0], rtol=1e-5)
    # In front of the obstacle the pressure is higher than behind it.
    assert pressure[1, 3, 1] > pressure[3, 3, 1]
    assert so.permeability(solid, directions="x", order=order, **OPTIONS).fields == {}


def read_vti(file):
    """Arrays of a VTI file by name, [x, y, z, component], and its spacing."""
    text = file.read_bytes()
    head, data = text.split(b'<AppendedData encoding="raw">\n_', 1)
    image = ElementTree.fromstring(head + b"</VTKFile>").find("ImageData")
    extent = [int(end) for end in image.get("WholeExtent").split()[1::2]]
    types = {"Float32": np.float32, "UInt8": np.uint8}
    arrays = {}
    for array in image.iter("DataArray"):
        at = int(array.get("offset"))
        (blocks,) = np.frombuffer(data, np.uint64, 1, at)
        sizes = np.frombuffer(data, np.uint64, int(blocks), at + 24).astype(int)
        at += 24 + 8 * int(blocks)
        parts = []
        for size in sizes:
            parts.append(zlib.decompress(data[at : at + size]))
            at += size
        values = np.frombuffer(b"".join(parts), types[array.get("type")])
        arrays[array.get("Name")] = values.reshape(*extent[::-1], -1).transpose(2, 1, 0, 3)
    return arrays, [float(width) for width in image.get("Spacing").split()]


def test_files_of_fields(tmp_path, program):
    """The program's VTI and HDF5 files have the axes of the image, in the order that its file has them."""
    h5py = pytest.importorskip("h5py")
    solid = lopsided()
    result = so.permeability(solid, voxel=2e-6, directions="x", order=2, fields=True, rtol=1e-10, **OPTIONS)
    velocity, pressure = result.fields["x"]
    np.save(tmp_path / "zyx.npy", solid.transpose(2, 1, 0).astype(np.uint8))
    np.save(tmp_path / "yxz.npy", solid.transpose(1, 0, 2).astype(np.uint8))
    solid.transpose(0, 2, 1).astype(np.uint8).tofile(tmp_path / "yzx.raw")  # y is the fastest
    for name, of_file, order in (
        ("zyx.npy", "", "zyx"),
        ("yxz.npy", ', axes = "yxz"', "yxz"),
        ("yzx.raw", ', shape = [6, 5, 4], axes = "yzx"', "xzy"),
    ):
        (tmp_path / "case.toml").write_text(
            f'[mesh]\nimage = {{file = "{name}", pore = [0], voxel = 2e-6{of_file}}}\n[permeability]\n'
            'directions = ["x"]\nmac = false\n[solver]\nrtol = 1e-10\n[output]\nvti = true\narrays = "flow.h5"\n'
        )
        command = [program, "permeability", tmp_path / "case.toml", "--output", tmp_path / "out", "--device", "cpu"]
        subprocess.run(command, check=True, capture_output=True)
        arrays, spacing = read_vti(tmp_path / "out" / "case_x.vti")
        assert spacing == [2e-6] * 3
        assert np.allclose(arrays["velocity"], velocity, rtol=1e-5, atol=1e-6 * velocity.max())
        assert np.array_equal(arrays["pore"][..., 0] == 0, np.isnan(pressure))
        with h5py.File(tmp_path / "out" / "flow_x.h5") as file:
            assert file.attrs["axes"] == order.encode() and np.all(file.attrs["voxel"] == 2e-6)
            u, p = file["velocity"][:], file["pressure"][:]
        axes = [order.index(axis) for axis in "xyz"]
        assert np.allclose(u.transpose(*axes, 3), velocity, rtol=1e-5, atol=1e-6 * velocity.max())
        assert np.allclose(p.transpose(axes), pressure, rtol=1e-4, atol=1e-10, equal_nan=True)
    command = [program, "check", tmp_path / "case.toml", "--set", "output.size_limit=1e-6"]
    refused = subprocess.run(command, capture_output=True)
    assert refused.returncode == 2 and b"size_limit" in refused.stderr


def test_vti(tmp_path):
    flows = []
    so.permeability(lopsided(), directions="x", order=2, visit=lambda direction, flow: flows.append(flow), **OPTIONS)
    flows[0].to_vti(tmp_path / "flow.vti")
    assert np.array_equal(read_vti(tmp_path / "flow.vti")[0]["velocity"], flows[0].image_fields().velocity)
    with pytest.raises(so.InputError, match="is the limit"):
        flows[0].to_vti(tmp_path / "flow.vti", size_limit=1e-6)


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
