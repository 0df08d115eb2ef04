"""Solutions in files and as initial guesses."""

import os
import subprocess
import zlib

import numpy as np
import pytest
import solenoid as so

CPU = {"device": "cpu", "precision": "double", "threads": 1}
POINTS = np.random.default_rng(7).random((30, 3))


def flow(dim=2, refine=2, order=2, **data):
    """A channel with a hole, in and out."""
    mesh = so.Mesh.box((3, 2, 1)[:dim], refine, upper=(3, 2, 1)[:dim], holes=[((1, 0, 0)[:dim], (2, 1, 1)[:dim])])
    inflow = ["y*(2-y)", *[0] * (dim - 1)]
    return so.Problem(mesh, order, velocity={"xmin": inflow}, outflow=["xmax"], slip=["ymax"], **data)


@pytest.fixture(autouse=True)
def files(tmp_path):
    """Skips where the build has no HDF5."""
    try:
        so.load(tmp_path / "none.h5")
    except so.InputError as error:
        if "HDF5" in str(error):
            pytest.skip(str(error))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("equation", ["stokes", "poisson"])
def test_what_is_saved_is_loaded(tmp_path, dim, equation):
    if equation == "stokes":
        problem = flow(dim, refine=1)
    else:
        problem = so.Problem(so.Mesh.box((2,) * dim, 1), equation="poisson", force="x", periodic="y")
    saved = so.solve(problem, **CPU)
    file = tmp_path / "flow.h5"
    saved.save(file)
    assert os.listdir(tmp_path) == ["flow.h5"]
    loaded = so.load(file)
    assert np.array_equal(loaded.coefficients, saved.coefficients)
    assert repr(loaded.problem) == repr(problem)
    points = POINTS[:, :dim]
    if equation == "stokes":
        assert np.array_equal(loaded.velocity(points), saved.velocity(points))
        assert loaded.flux("x", 0.5) == saved.flux("x", 0.5)
    else:
        assert np.array_equal(loaded.value(points), saved.value(points))
    with pytest.raises(so.InputError, match="no report"):
        _ = loaded.report
    again = so.solve(problem, start=loaded, rtol=1.1e-8, **CPU)
    assert again.report.iterations == 0


def test_data_are_not_in_the_file(tmp_path):
    so.solve(flow(), **CPU).save(tmp_path / "flow.h5")
    with pytest.raises(so.InputError, match="no (force|boundary data): a solution file holds"):
        so.solve(so.load(tmp_path / "flow.h5").problem)


def test_start():
    fine = flow(refine=3)
    for start in (so.solve(flow(refine=2), **CPU), so.solve(flow(refine=3, viscosity=1.1), **CPU)):
        zero, guess = so.solve(fine, rtol=1e-6, **CPU), so.solve(fine, start=start, rtol=1e-6, **CPU)
        assert guess.converged and guess.report.iterations < zero.report.iterations
        assert zero.report.residual_history[0] == 1
    with pytest.raises(so.InputError, match="start: expected a Solution, got str"):
        so.solve(fine, start="flow.h5")
    with pytest.raises(so.InputError, match="start: full multigrid"):
        so.solve(fine, start=start, method="fmg")
    with pytest.raises(so.InputError, match="start: .* the same domain"):
        so.solve(so.Problem(so.Mesh.box((1, 1), 2)), start=start)


def test_wrong_files(tmp_path):
    file = tmp_path / "flow.h5"
    with pytest.raises(so.InputError, match="there is no such file"):
        so.load(file)
    so.solve(flow(), **CPU).save(file)
    whole = file.read_bytes()
    for wrong, message in (
        (whole[:-1], "cut off"),
        (b"text", "not a solution file"),
        (whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:], "changed"),
        (whole[:-2000] + bytes([whole[-2000] ^ 1]) + whole[-1999:], "coefficients were changed"),
    ):
        file.write_bytes(wrong)
        with pytest.raises(so.InputError, match=message):
            so.load(file)


def test_h5py_reads_it(tmp_path):
    """As docs/solution-file.md describes it, the checksum too."""
    h5py = pytest.importorskip("h5py")
    solution = so.solve(flow(refine=1), **CPU)
    solution.save(tmp_path / "flow.h5")
    with h5py.File(tmp_path / "flow.h5") as file:
        assert file["problem"].attrs["equation"] == b"stokes" and file["problem"].attrs["order"] == 2
        assert list(file["mesh"].attrs["cells"]) == [3, 2] and file["mesh"].attrs["refine"] == 1
        assert file["mesh/holes"][...].tolist() == [[[1, 0], [2, 1]]]
        assert file["boundary"].attrs["xmax"] == b"outflow"
        data = file["coefficients"]
        assert data.shape == (5, 7, 27) and data.dtype == "<f8" and data.chunks is None
        values = data[...]
        sums = (zlib.crc32(v.tobytes(), zlib.crc32(np.uint64(i))) for i, v in enumerate(values.reshape(-1, 27)))
        first = (tmp_path / "flow.h5").read_bytes()[:512].decode().split("\n")
        assert first[2] == f"coefficients {data.id.get_offset()} {values.nbytes} {sum(sums):016x}"
    # The mean of the pressure in a cell, and the flow through a face: coefficients of the first functions.
    cell = (3, 4)  # y, x
    width = 0.5
    gauss = np.polynomial.legendre.leggauss(4)
    points, weights = (gauss[0] + 1) / 2, gauss[1] / 2
    grid = np.stack(np.meshgrid(4 * width + width * points, 3 * width + width * points, indexing="ij"), axis=-1)
    mean = np.einsum("i,j,ij", weights, weights, solution.pressure(grid))
    assert values[cell][18] == pytest.approx(mean * width, abs=1e-12)
    face = np.stack([np.full(4, 4 * width), 3 * width + width * points], axis=-1)
    assert values[cell][0] == pytest.approx(weights @ solution.velocity(face)[:, 0] * width, abs=1e-12)
    # An upper side: at the place behind the last cell.
    side = np.stack([np.full(4, 6 * width), 3 * width + width * points], axis=-1)
    assert values[3, 6][0] == pytest.approx(weights @ solution.velocity(side)[:, 0] * width, abs=1e-12)
    assert not values[3, 6][3:].any()


def test_command_line(tmp_path, program, root):
    """What the program saves, Python loads, and the other way round; digit by digit."""
    case = root / "cases" / "l_shape.toml"
    options = ["--device", "cpu", "--threads", "1", "--quiet"]
    file, again = tmp_path / "a.h5", tmp_path / "b.h5"
    subprocess.run([program, "solve", case, "--save", file, *options], check=True)
    solution = so.solve(so.read_case(case), device="cpu", threads=1)
    assert np.array_equal(so.load(file).coefficients, solution.coefficients)
    solution.save(again)
    assert again.read_bytes() == file.read_bytes()
    result = tmp_path / "result.json"
    subprocess.run(
        [program, "solve", case, "--start-from", again, "--save", again, "--json", result, *options], check=True
    )
    assert so.load(again).problem.order == solution.problem.order

    def refused(*arguments):
        run = subprocess.run([program, "solve", case, *arguments], capture_output=True, text=True)
        assert run.returncode == 2
        return run.stderr

    assert "there is no such file" in refused("--start-from", tmp_path / "none.h5")
    assert "would replace" in refused("--save", case)
    assert "would replace" in refused("--start-from", file, "--json", file)
    assert "a device or a pipe" in refused("--save", "/dev/null")
