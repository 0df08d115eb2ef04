"""Ranks: processes that solve a problem together, as mpi4py has them."""

from __future__ import annotations

import sys
from typing import Any

from . import _core
from ._core import InputError, ResourceError


def ranks_of(communicator: Any) -> _core.Ranks | None:
    """Those of a communicator of mpi4py, or None if there is one rank alone. All of them call this.

    Raises:
        InputError: if it is something else, or MPI is not running.
        ResourceError: if this build is without MPI, or mpi4py runs another one.
    """
    if communicator is None:
        return None
    mpi = sys.modules.get("mpi4py.MPI")  # who has a communicator has imported it; to import it would start MPI
    if mpi is None or not isinstance(communicator, mpi.Intracomm) or not communicator:
        raise InputError(f"communicator: expected one of mpi4py, such as MPI.COMM_WORLD, got {communicator!r}")
    if not mpi.Is_initialized() or mpi.Is_finalized():
        raise InputError("communicator: expected MPI to be running: call solve() between MPI.Init() and MPI.Finalize()")
    if communicator.Get_size() == 1:
        return None
    library = _core.mpi_library()
    if not library.version:
        raise ResourceError(
            "communicator: the package solenoid was built without MPI: install MPI (Debian: libopenmpi-dev), then the "
            "package with --config-settings cmake.define.SOLENOID_MPI=ON"
        )
    # Two libraries in one process know nothing of each other's communicators.
    if mpi._sizeof(mpi.Comm) != library.communicator_bytes or not library.running:
        raise ResourceError(
            f"communicator: mpi4py runs {_line(mpi.Get_library_version())}, the package solenoid was built with "
            f"{_line(library.version)}: expected the same MPI: install one of them anew, with that of the other"
        )
    return _core.ranks(mpi._addressof(communicator))


def _line(version: str) -> str:
    """What a library of MPI says of itself may be a page."""
    return version.rstrip("\0").partition("\n")[0]
