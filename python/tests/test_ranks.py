"""Several ranks: each function of on_ranks.py under mpirun, and communicators that are refused without it."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import solenoid as so
from conftest import ROOT

SCRIPT = ROOT / "python/tests/on_ranks.py"
LIBRARY = so._core.mpi_library()
#: OpenMPI wants to be asked before it runs for root, does without ssh, or shares cores.
ENVIRONMENT = {
    "OMPI_MCA_plm": "isolated",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def missing():
    """What is not there for several ranks."""
    if not LIBRARY.version:
        return "the package was built without MPI"
    if find_spec("mpi4py") is None:
        return "mpi4py is not installed"
    return "" if shutil.which("mpirun") else "mpirun is not installed"


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize(
    "name",
    [
        "flow_is_that_of_one_rank",
        "poisson_is_that_of_one_rank",
        "flow_in_time_is_that_of_one_rank",
        "linear_system_is_that_of_one_rank",
        "interrupts_of_one_rank_end_a_march",
        "one_rank_may_ask_for_the_report",
        "gathered_has_all_cells",
        "parts_are_refused",
        "vtu_has_pieces",
        "errors_of_one_rank_are_those_of_all",
        "interrupts_of_one_rank_end_all",
        "communicators_are_checked",
    ],
)
def test_two_ranks(tmp_path, name):
    share = ["--oversubscribe"] if "Open MPI" in LIBRARY.version else []
    command = ["mpirun", "-n", "2", *share, sys.executable, "-m", "mpi4py", SCRIPT, name, tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=180)
    assert result.returncode == 0, result.stdout + result.stderr


def test_mpi_is_not_started(tmp_path):
    script = """
import solenoid as so
so.solve(so.Problem(so.Mesh.box((1, 1), refine=2), force=["y", 0]), device="cpu")
assert not so._core.mpi_library().running
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


class Communicator:
    """Of two ranks, as mpi4py has them."""

    def Get_size(self):
        return 2


@pytest.fixture
def mpi(monkeypatch):
    """In place of mpi4py's module, of the same MPI as the package's; its MPI is running."""
    mpi = SimpleNamespace(
        Comm=Communicator,
        Intracomm=Communicator,
        Is_initialized=lambda: True,
        Is_finalized=lambda: False,
        Get_library_version=lambda: "Some MPI 1.0\nin detail\0",
        _sizeof=lambda handle: LIBRARY.communicator_bytes,
    )
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", mpi)
    return mpi


def test_communicator_of_something_else(cavity, monkeypatch):
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    with pytest.raises(
        so.InputError, match="communicator: expected one of mpi4py, such as MPI.COMM_WORLD, got 'world'"
    ):
        so.solve(cavity, communicator="world")


def test_communicator_of_mpi_that_is_not_running(cavity, mpi):
    mpi.Is_initialized = lambda: False
    with pytest.raises(so.InputError, match="expected MPI to be running"):
        so.solve(cavity, communicator=Communicator())


def test_communicator_without_mpi(cavity, mpi, monkeypatch):
    monkeypatch.setattr(so._core, "mpi_library", lambda: SimpleNamespace(version=""))
    with pytest.raises(so.ResourceError, match="built without MPI: install MPI .*SOLENOID_MPI=ON"):
        so.solve(cavity, communicator=Communicator())


@pytest.mark.skipif(not LIBRARY.version, reason="the package was built without MPI")
@pytest.mark.parametrize("handle", ["same", "other"])
def test_communicator_of_another_mpi(cavity, mpi, handle):
    """The package's own is not running: the one of mpi4py is another, even where it looks like that."""
    if handle == "other":
        mpi._sizeof = lambda handle: LIBRARY.communicator_bytes + 4
    ours = re.escape(LIBRARY.version.partition("\n")[0])
    with pytest.raises(so.ResourceError, match=f"mpi4py runs Some MPI 1.0, the package solenoid was built with {ours}"):
        so.solve(cavity, communicator=Communicator())
