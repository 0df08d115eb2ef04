"""Solving problems and case files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._core import InputError
from .problem import Problem
from .progress import ProgressBar
from .ranks import ranks_of
from .solution import Solution


class ConvergenceWarning(UserWarning):
    """A solve ended before its residual was below the tolerance."""


def warn_unless_converged(report: Any) -> None:
    """Of what the caller's caller has solved; `report` has converged, reason, iterations and residual_history."""
    if report.converged:
        return
    residual = report.residual_history[-1] if report.residual_history else 1.0
    warnings.warn(
        f"not converged: {report.reason}; {report.iterations} iterations, relative residual {residual:.1e}",
        ConvergenceWarning,
        stacklevel=3,
    )


class Case:
    """A case file: a problem, how to solve it, a known solution, probes. Made by read_case().

    With a table [time] it is a flow in time, which is not solved but marched: Flow takes it.
    """

    def __init__(self, core: _core.Case):
        self._core = core
        #: The problem.
        self.problem = Problem._of(core.problem)

    @property
    def name(self) -> str:
        """The name of the file without folder and ending."""
        return self._core.name

    @property
    def probes(self) -> np.ndarray:
        """Points (n, dim) of the tables [[probe]]."""
        return np.array(self._core.probes, dtype=np.float64).reshape(-1, self.problem.dim)

    @property
    def end(self) -> float | None:
        """The time at which a flow in time ends; None of a steady problem."""
        return self._core.end

    @property
    def exact(self) -> dict[str, Any]:
        """The known fields of the table [exact], as Solution.error() takes them, `exact` and `pressure`, those there
        are."""
        core = self._core
        fields = {"exact": core.exact_velocity or core.exact_value, "pressure": core.exact_pressure}
        return {name: field for name, field in fields.items() if field is not None}

    def __repr__(self) -> str:
        return f"Case {self.name!r}: {self.problem!r}"


def read_case(file: str | os.PathLike) -> Case:
    """Reads a case file of the command line (docs/case-file.md). Raises InputError: file, line, key, what was
    expected."""
    return Case(_core.read_case(os.fspath(file)))


def case_of(problem: Problem | Case) -> tuple[_core.Case, Problem]:
    """What is computed, as the compiled part takes it, and its problem."""
    if isinstance(problem, Case):
        if problem._core.is_permeability:
            raise InputError(f"{problem.name}: the case has a table [permeability]: permeability() computes these")
        return problem._core, problem.problem
    if isinstance(problem, Problem):
        return _core.make_case(problem._core), problem
    raise InputError(f"expected a Problem or a Case, got {type(problem).__name__}")


def solve(
    problem: Problem | Case,
    *,
    start: Solution | None = None,
    communicator: Any = None,
    progress: bool | Callable[[str, float, str], None] = False,
    **options: Any,
) -> Solution:
    """Solves a problem, or a case as the command line does, digit by digit.

    Other Python threads run meanwhile. Ctrl-C raises KeyboardInterrupt within a second, in whatever takes long.

    Args:
        problem: a Problem, or a Case, whose options hold where none are given here.
        start: an initial guess, such as the solution of a problem close to this one, or what load() has read: of the
            same equation on the same domain. Mesh and order may differ, if the cells of one mesh cut those of the
            other: then it is interpolated. Not with method="fmg".
        communicator: one of mpi4py, such as MPI.COMM_WORLD, whose ranks solve the problem together (docs/ranks.md).
            All of them make this call, with the same arguments, and each gets its part of the solution.
        progress: True shows a bar on a terminal or in a notebook; a function is called with the stage ("set-up",
            "solve"), what is done of it (0 to 1) and a line of text. Of several ranks the first one shows a bar, all
            call a function.
        options: by the names and with the values of the case file's table [solver] and of the command line:
            method ("gmres", "fmg", "vcycle"), rtol (1e-8), max_iterations (50), restart (0), cycles (1),
            side ("right", "left"), preset ("default", "paper"), smoother ("multiplicative", "additive"), damping (0),
            colour_order ("diagonal", "lexicographic"), patch ("symmetric", "galerkin", "fused"),
            local_solver ("direct", "chebyshev", "cg", "dense");
            device ("auto", "cpu", "cuda"), precision ("mixed", "double"), threads (0: all cores; at most eight times
            what the machine runs at once), transport ("auto", "peer", "nccl", "staged": of messages between ranks with GPUs).

    Returns:
        The solution. If it did not converge there is a ConvergenceWarning, and its `converged` is False.

    Raises:
        InputError: wrong problem or options, data that are not finite, or a problem without a solution.
        ResourceError: device or memory do not suffice; or, with a communicator, the package was built without MPI, or
            with another one than mpi4py.
    """
    core, problem = case_of(problem)
    if core.end is not None:
        raise InputError(f"{core.name}: the case has a table [time]: expected a steady one; Flow() marches in time")
    if start is not None and not isinstance(start, Solution):
        raise InputError(f"start: expected a Solution, got {type(start).__name__}; load() reads one from a file")
    guess = None if start is None else start._core
    ranks = ranks_of(communicator)
    if progress is True and ranks is not None and ranks.rank > 0:
        progress = False
    if progress is True:
        with ProgressBar() as bar:
            solution = Solution(_core.solve(core, options, bar.show, guess, ranks), problem)
    else:
        solution = Solution(_core.solve(core, options, progress or None, guess, ranks), problem)
    if ranks is not None:
        solution.report.measure()  # while all are here: later one of them may ask for it alone
    warn_unless_converged(solution._core)
    return solution
