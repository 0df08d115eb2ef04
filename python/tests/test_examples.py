"""The Python examples of README and documentation, as they stand there."""

import subprocess
import sys

import pytest


def test_examples(root, program):
    pytest.importorskip("matplotlib")
    test = [sys.executable, root / "tests" / "docs_test.py", program, "--only", "python"]
    done = subprocess.run(test, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "README.md" in done.stdout and "python: run" in done.stdout
