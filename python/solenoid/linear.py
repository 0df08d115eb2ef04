"""The discrete problem as linear algebra, for Krylov methods, eigensolvers and time steppers of your own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core
from ._core import InputError
from .problem import Problem
from .solution import Solution

_CUDA = (2, 13)  # device types of DLPack: memory of a GPU, managed memory


def _empty_like(x: Any) -> Any:
    """An array of the same library, shape and device."""
    library = sys.modules.get(type(x).__module__.partition(".")[0])
    make = getattr(library, "empty_like", None)
    if make is None:
        raise InputError(f"an array of type {type(x).__name__} cannot be made here: pass `out`")
    return make(x)


class LinearOperator:
    """A linear operator on vectors of a LinearSystem, in the form that scipy and cupyx expect: `shape`, `dtype`,
    `matvec` and `@`. A, which is symmetric, has `rmatvec` and `T` too.

    Vectors are arrays of shape (N,) or (N, 1) of float64, of numpy, cupy, torch or any library that speaks DLPack or
    the CUDA array interface. Contiguous ones in the memory of the system's device are read and written where they are;
    the result is of the library of the argument. Arrays of the host are copied to a GPU and from there. Of numpy, x may
    be of any type and strides and is converted; all other misfits are errors.

    On a GPU an operator's work comes after what the library of each array has queued in its current stream so far, and
    is done when the call returns: results may be used in all streams.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, system: LinearSystem, name: str, apply: Callable[[Any, Any], None], symmetric: bool):
        self._system = system
        self._name = name
        self._apply = apply
        self.shape = (system.size, system.size)
        if symmetric:
            self.rmatvec = self.matvec
            self.T = self

    def matvec(self, x: Any, out: Any = None) -> Any:
        """The operator applied to x.

        Args:
            x: an array of shape (N,) or (N, 1).
            out: where the result goes, contiguous and of float64; it may be x itself.

        Returns:
            `out`, or a new array.

        Raises:
            InputError: if shape, type, strides or device do not fit; the message says which.
        """
        given = self._system._readable(x, "x")
        if out is None:
            out = np.empty(np.shape(x)) if isinstance(given, np.ndarray) else _empty_like(x)
        self._apply(given, self._system._writable(out, "out"))
        return out

    def __matmul__(self, x: Any) -> Any:
        """The operator applied to a vector, or to every column of an array (N, m) of numpy."""
        if isinstance(x, np.ndarray) and x.ndim == 2 and x.shape[1] != 1:
            return np.stack([self.matvec(column) for column in x.T], axis=1)
        return self.matvec(x)

    def __call__(self, x: Any) -> Any:
        return self.matvec(x)

    def __repr__(self) -> str:
        return f"{self._name}: {self.shape[0]} x {self.shape[1]} on {self._system.device}"


class LinearSystem:
    """The linear system A x = b of a problem, and the preconditioner M of solve() for it.

    With the Stokes equations A is symmetric and indefinite, (A x)_u = A_u u - B^T p, (A x)_p = -B u with B = div; with
    Poisson's equation it is positive (semi)definite. M is one multigrid cycle: linear, not symmetric, computed in the
    option `precision` ("mixed": rounded to single precision).

    A vector is an array of the N = `size` unknowns, and of nothing else: A has no rows of zeros. They are sorted by
    cell, in x first, then y, then z; those of a cell are its (dim + 1) (k + 1)^dim coefficients, velocity components
    before pressure (Poisson: (k + 1)^dim), without the normal velocities that a side prescribes on its lower faces.
    Normal velocities on upper faces of outflow sides come where a cell behind the face would. docs/method.md
    ("Vectors") says which function each number is the coefficient of. The layout is that of `Solution.coefficients`,
    and depends on nothing but mesh, order and kinds of sides.

    Constants in the kernel of A (the pressure's without an outflow side, for example) are removed from b, from results
    of M and from solutions.

    Not to be used by several threads at a time.

    Args:
        problem: the problem.
        options: those of solve() that are about device, threads, precision and the multigrid cycle.

    Raises:
        InputError: for wrong options, or if the order is not part of the build.
        ResourceError: if memory does not suffice.
    """

    def __init__(self, problem: Problem, **options: Any):
        self.problem = problem
        self._core = _core.LinearSystem(problem._core, options)

    @property
    def size(self) -> int:
        """N, the numbers in a vector: one for each unknown."""
        return self._core.dofs

    @property
    def dofs(self) -> int:
        """The same, as the report of a solution calls it."""
        return self._core.dofs

    @property
    def device(self) -> str:
        """What it runs on, such as "cpu, 2 threads, AVX2"."""
        return self._core.device

    @property
    def on_gpu(self) -> bool:
        """Whether vectors live in the memory of a GPU."""
        return self._core.on_gpu

    @property
    def memory_bytes(self) -> int:
        """What the system has allocated on its device."""
        return self._core.memory_bytes

    def operator(self) -> LinearOperator:
        """A"""
        return LinearOperator(self, "A", self._core.apply, symmetric=True)

    def preconditioner(self) -> LinearOperator:
        """M"""
        return LinearOperator(self, "M", self._core.precondition, symmetric=False)

    def load(self, out: Any = None, *, xp: Any = None) -> Any:
        """b, the load vector of force, boundary data and tractions.

        Args:
            out: where it goes, an array of N numbers.
            xp: the library of a new array: numpy (default), cupy, torch.

        Raises:
            InputError: where a field is not finite, or if the problem has no solution.
        """
        if out is None:
            xp = np if xp is None else xp
            place = {"device": "cuda"} if self.on_gpu and xp.__name__ == "torch" else {}
            out = xp.empty(self.size, dtype=xp.float64, **place)
        self._core.load(self._writable(out, "out"))
        return out

    def solution(self, x: Any) -> Solution:
        """The solution whose coefficients, without prescribed boundary velocities, are x: what solves A x = b."""
        return Solution(self._core.solution(self._readable(x, "x")), self.problem)

    def __repr__(self) -> str:
        return f"LinearSystem: {self.dofs} unknowns on {self.device}"

    # Arrays of all libraries as the compiled part takes them: numpy's, or capsules of DLPack's that share memory.

    def _readable(self, x: Any, name: str) -> Any:
        if (hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray)) or hasattr(x, "__cuda_array_interface__"):
            return self._foreign(x, name)
        return np.ascontiguousarray(x, dtype=np.float64)

    def _writable(self, out: Any, name: str) -> Any:
        if not isinstance(out, np.ndarray):
            return self._foreign(out, name)
        if not out.flags.writeable:
            raise InputError(f"{name}: the array is read-only")
        return out

    def _foreign(self, array: Any, name: str) -> Any:
        """With work of the array's library so far before what comes next in the system's stream."""
        if hasattr(array, "__dlpack__"):
            device, number = array.__dlpack_device__()
            if device not in _CUDA:
                return array
            self._core.expect_gpu(number, name)
            return array.__dlpack__(stream=self._core.stream)
        if not hasattr(array, "__cuda_array_interface__"):
            raise InputError(f"{name}: expected an array, got {type(array).__name__}")
        self._core.expect_gpu(0, name)
        interface = array.__cuda_array_interface__
        if interface["typestr"] != "<f8" or interface.get("strides") not in (None, (8,), (8, 8)):
            given = f"{interface['typestr']} with strides {interface.get('strides')}"
            raise InputError(f"{name}: expected a contiguous array of float64, got {given}")
        legacy_default_stream = 1
        self._core.wait_for(interface.get("stream") or legacy_default_stream)
        return _core.gpu_array(interface["data"][0], list(interface["shape"]), array)
