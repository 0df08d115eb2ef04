"""The Python examples of README and documentation, as they stand there."""

import runpy
import subprocess
import sys

import pytest


def test_examples(root, program):
    pytest.importorskip("matplotlib")
    test = [sys.executable, root / "tests" / "docs_test.py", program, "--only", "python"]
    done = subprocess.run(test, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "README.md" in done.stdout and "python: run" in done.stdout


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
