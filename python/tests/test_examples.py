"""The Python examples of README and documentation, as they stand there."""

import runpy
import subprocess
import sys

import numpy as np
import pytest


def test_examples(root, program):
    pytest.importorskip("matplotlib")
    test = [sys.executable, root / "tests" / "docs_test.py", program, "--only", "python"]
    done = subprocess.run(test, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "README.md" in done.stdout and "python: run" in done.stdout


def test_time_steps(root, capsys):
    names = runpy.run_path(str(root / "python" / "examples" / "time_steps.py"))
    steps, dt = 5, 0.02
    flows = names["decay"](steps, dt, refine=4, device="cpu", rtol=1e-11)
    energies = np.array([flow.kinetic_energy() for flow in flows])
    factor = 1 / (1 + names["RATE"] * dt) ** 2  # of an implicit Euler step
    assert energies == pytest.approx(0.25 * factor ** np.arange(steps + 1), rel=1e-5)
    assert flows[-1].error(names["VORTICES"]).velocity > 0.1
    assert max(flow.divergence_max() for flow in flows) < 1e-9
    names["main"]()
    assert len(capsys.readouterr().out.splitlines()) == 21


def test_vortex_street(root, capsys):
    names = runpy.run_path(str(root / "python" / "examples" / "vortex_street.py"))
    times = np.linspace(0, 10, 101)
    assert names["frequency"](times, np.sin(2 * np.pi * 0.3 * times)) == pytest.approx(0.3, rel=1e-2)
    assert np.isnan(names["frequency"](times, times))
    names["main"]()
    strouhal = float(capsys.readouterr().out.split()[-1])
    assert strouhal == pytest.approx(0.17, abs=0.005)  # that of meshes twice as fine


def test_sweep(root, capsys):
    example = root / "python" / "examples" / "sweep.py"
    names = runpy.run_path(str(example))
    rows = names["sweep"](names["channel"], refine=(1, 2), viscosity=(1, 4))
    assert [(row["refine"], row["viscosity"]) for row in rows] == [(1, 1), (1, 4), (2, 1), (2, 4)]
    assert rows[2]["unknowns"] > 3 * rows[0]["unknowns"]
    assert rows[2]["flux"] == pytest.approx(rows[0]["flux"], rel=0.05)
    # A viscosity four times as large divides the flux by less, as the medium holds back too.
    assert rows[3]["flux"] < rows[2]["flux"] < 4 * rows[3]["flux"]
    names["print_table"](rows)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5 and len({len(line) for line in lines}) == 1 and "viscosity" in lines[0]


def test_power_law(root, capsys):
    """Cells have one viscosity each: errors are of second order, but for the kink of the shear rate in the middle."""
    names = runpy.run_path(str(root / "python" / "examples" / "power_law.py"))
    for n in (0.5, 2):
        errors = []
        for refine in (1, 2):
            channel = names["Channel"](n, refine, device="cpu")
            *_, (change, flow) = channel.iterate(tolerance=1e-6)
            assert change <= 1e-6
            errors.append(flow.error(channel.exact).velocity / (2 * flow.kinetic_energy()) ** 0.5)
        assert errors[1] < 0.35 * errors[0] < 0.01
    names["main"]()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[1].startswith("n = 1: 1 iterates")


def test_viscous_heating(root, capsys):
    names = runpy.run_path(str(root / "python" / "examples" / "viscous_heating.py"))
    film = names["HeatedFilm"](3, 2, device="cpu")
    *_, (flow, temperature) = film.iterate(tolerance=1e-6)
    hottest, stress = film.exact()
    assert film.middle(temperature) == pytest.approx(hottest, rel=1e-3)
    assert flow.forces()["ymin"].force[0] / 0.25 == pytest.approx(stress, rel=2e-3)
    # All work of the plate is heat.
    assert flow.dissipation() == pytest.approx(0.25 * 3 * stress, rel=2e-3)
    assert flow.field("viscosity", [0.1, 0.49]) == pytest.approx(np.exp(-hottest), rel=1e-2)
    names["main"]()
    assert len(capsys.readouterr().out.splitlines()) == 3
