"""The discrete problem as linear algebra, for Krylov methods, eigensolvers and time steppers of your own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import _core
from ._core import InputError
from .fields import Scalar, scalar, vector
from .fields import Vector as VectorField
from .problem import Problem
from .ranks import ranks_of
from .solution import Errors, Solution, known_fields
from .solving import warn_unless_converged

_CUDA = (2, 13)  # device types of DLPack: memory of a GPU, managed memory


def _empty_like(x: Any) -> Any:
    """An array of the same library, shape and device."""
    library = sys.modules.get(type(x).__module__.partition(".")[0])
    make = getattr(library, "empty_like", None)
    if make is None:
        raise InputError(f"an array of type {type(x).__name__} cannot be made here: pass `out`")
    return make(x)


class LinearReport(NamedTuple):
    """How LinearSystem.solve() went."""

    converged: bool
    reason: str
    iterations: int
    #: Norms relative to that of b (with side="left" of M times them), the initial one first.
    residual_history: list[float]


class FlowIntegrals(NamedTuple):
    """A velocity u as a whole: integrals over the domain, and maxima over quadrature points. Derivatives are taken in
    cells."""

    #: Integral of u: (dim,).
    velocity: np.ndarray
    #: Integral of |u|^2: twice the kinetic energy.
    velocity_square: float
    #: Integral of |grad u|^2: times the viscosity the dissipation.
    gradient_square: float
    #: Integral of |curl u|^2: twice the enstrophy.
    vorticity_square: float
    #: max |u|
    max_speed: float
    #: max |div u|
    max_divergence: float


class Vector:
    """A vector of a LinearSystem as it is in the memory of its device. Made by `LinearSystem.vector()`.

    Operators and `solve` take it in place of an array and give one back; nothing is converted then, which is what loops
    of many short solves want. Sums, differences and multiples are computed on the device; those in place (`x += y`,
    `x.add(a, y)`, `x *= a`) allocate nothing. `numpy.asarray(x)` is a copy as an array.
    """

    __array_ufunc__ = None  # numpy leaves sums with arrays to this class

    def __init__(self, system: LinearSystem):
        self.system = system
        self._core = system._core.make_vector()
        self.shape = (system.size,)

    def __len__(self) -> int:
        return self.shape[0]

    def set(self, values: Any) -> Vector:
        """Makes it an array of N numbers, or another vector; returns itself."""
        if isinstance(values, Vector):
            self.system._core.copy(values._core, self._core)
        else:
            self.system._core.set(self._core, self.system._readable(values, "values"))
        return self

    def array(self, out: Any = None, *, xp: Any = None) -> Any:
        """Its N numbers as an array: `out`, or a new one of the library `xp`, numpy by default."""
        out = self.system._empty(xp) if out is None else out
        self.system._core.get(self._core, self.system._writable(out, "out"))
        return out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a Vector cannot be an array without a copy")
        return self.array().astype(dtype or np.float64, copy=False)

    def copy(self) -> Vector:
        """Another vector with the same numbers."""
        return Vector(self.system).set(self)

    def add(self, factor: float, other: Any) -> Vector:
        """Adds factor * other, a vector or an array; returns itself."""
        other = other if isinstance(other, Vector) else self.system.vector(other)
        self.system._core.axpy(float(factor), other._core, self._core)
        return self

    __copy__ = copy

    def dot(self, other: Any) -> float:
        """The sum of the products of their numbers, over all ranks."""
        other = other if isinstance(other, Vector) else self.system.vector(other)
        return self.system._core.dot(self._core, other._core)

    def norm(self) -> float:
        """The Euclidean norm."""
        return self.dot(self) ** 0.5

    def __iadd__(self, other: Any) -> Vector:
        return self.add(1.0, other)

    def __isub__(self, other: Any) -> Vector:
        return self.add(-1.0, other)

    def __imul__(self, factor: float) -> Vector:
        self.system._core.scale(float(factor), self._core)
        return self

    def __itruediv__(self, divisor: float) -> Vector:
        self *= 1.0 / divisor
        return self

    def __add__(self, other: Any) -> Vector:
        return self.copy().add(1.0, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Vector:
        return self.copy().add(-1.0, other)

    def __rsub__(self, other: Any) -> Vector:
        return (-self).add(1.0, other)

    def __mul__(self, factor: float) -> Vector:
        result = self.copy()
        result *= factor
        return result

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Vector:
        return self * (1.0 / divisor)

    def __neg__(self) -> Vector:
        return self * -1.0

    def __repr__(self) -> str:
        return f"Vector of {len(self)} numbers on {self.system.device}"


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
            x: an array of shape (N,) or (N, 1), or a Vector.
            out: where the result goes, contiguous and of float64; it may be x itself, unless that is a Vector. Of a
                Vector it is one.

        Returns:
            `out`, or a new array.

        Raises:
            InputError: if shape, type, strides or device do not fit; the message says which.
        """
        if isinstance(x, Vector):
            out = Vector(self._system) if out is None else out
            if not isinstance(out, Vector):
                raise InputError(f"out: expected a Vector, as x is one, got {type(out).__name__}")
            self._apply(x._core, out._core)
            return out
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
        communicator: as of solve(). A vector has then the N unknowns of this rank's cells, in the same order among them.
            All ranks call load(), solve(), solution(), integrals(), error(), the operators and Vector.dot() and norm()
            in the same order; sums of a rank's arrays are its own.
        options: those of solve(); its method cannot be "fmg", which needs more than a vector b.

    Raises:
        InputError: for wrong options, if the order is not part of the build, or if several ranks do not share the mesh,
            of which each has all if it has few cells.
        ResourceError: if memory does not suffice.
    """

    def __init__(self, problem: Problem, *, communicator: Any = None, **options: Any):
        self.problem = problem
        self._core = _core.LinearSystem(problem._core, options, ranks_of(communicator))
        self._report: LinearReport | None = None

    @property
    def size(self) -> int:
        """N, the numbers in a vector: one for each unknown, of several ranks for those of this one."""
        return self._core.size

    @property
    def dofs(self) -> int:
        """The unknowns, of all ranks, as the report of a solution has them."""
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

    def set_coefficients(
        self, *, viscosity: Scalar | np.ndarray | None = None, mass: Scalar | np.ndarray | None = None
    ) -> None:
        """Another viscosity, another mass term, or both, from now on: of `problem`, of A, M and load(), and of operators
        that were taken from the system before. Vectors stay what they are.

        Only what depends on these numbers is made again. It is kept for the last 8 pairs of values, so that one that was
        there before takes less time than a product with M.

        Where coefficients of the problem vary by cell, what Problem() takes: arrays of numbers for cells or points,
        expressions, functions of points, numbers. They hold in parts of the domain with `coefficients` of their own too,
        and take less than a product with M, and the inverse of the coarsest level; `viscosity_cap` and the form of the
        viscous term stay.

        Raises:
            InputError: for values that no problem can have; for a mass term that comes or goes where no side holds
                constants, as in a periodic domain: the unknowns are others then; and for a field that varies if the
                problem has constant coefficients, or a viscosity that is a number and no `form`: set up the system with
                an array of one and the same number, or with the form that is meant. Nothing is changed.
            ResourceError: if memory does not suffice. Nothing is changed.
        """
        field = self.problem._coefficient
        self._core.set_coefficients(
            viscosity=None if viscosity is None else field(viscosity, "viscosity"),
            mass=None if mass is None else field(mass, "mass"),
        )
        self.problem = Problem._of(self._core.problem, self.problem.parameters)

    def set_viscosity(self, viscosity: Scalar | np.ndarray) -> None:
        """set_coefficients(viscosity=viscosity)"""
        self.set_coefficients(viscosity=viscosity)

    def set_reaction(self, mass: Scalar | np.ndarray) -> None:
        """set_coefficients(mass=mass)"""
        self.set_coefficients(mass=mass)

    def set_parameters(self, **values: float) -> None:
        """Other values of some of the problem's `parameters`, from now on: of `problem`, load() and solution(). Loads of
        expressions are computed on the system's device, without parsing anything again.

        Raises:
            InputError: for a name that the problem does not have, and where a part of a side would be another one.
                Nothing is changed.
        """
        for name in values:
            if name not in self.problem.parameters:
                known = ", ".join(map(repr, self.problem.parameters)) or "none"
                raise InputError(f"the problem has no parameter {name!r}; it has {known}")
        problem = self.problem.replace(parameters=values)
        used = self.problem._core.parameters
        self._core.set_parameters({name: float(value) for name, value in values.items() if name in used})
        self.problem = problem

    @property
    def mass(self) -> float | Scalar:
        """alpha, the factor of the mass term. To be set, as by set_coefficients(mass=...): 1/dt for another time step."""
        return self.problem.mass

    @mass.setter
    def mass(self, mass: Scalar | np.ndarray) -> None:
        self.set_coefficients(mass=mass)

    @property
    def viscosity(self) -> float | Scalar:
        """nu. To be set, as by set_coefficients(viscosity=...)."""
        return self.problem.viscosity

    @viscosity.setter
    def viscosity(self, viscosity: Scalar | np.ndarray) -> None:
        self.set_coefficients(viscosity=viscosity)

    def operator(self) -> LinearOperator:
        """A"""
        return LinearOperator(self, "A", self._core.apply, symmetric=True)

    def preconditioner(self) -> LinearOperator:
        """M"""
        return LinearOperator(self, "M", self._core.precondition, symmetric=False)

    def vector(self, values: Any = None) -> Vector:
        """A Vector of the numbers of an array, or of zeros."""
        return Vector(self) if values is None else Vector(self).set(values)

    def mass_matrix(self) -> LinearOperator:
        """dA/dalpha: of a vector x with the velocity u, or Poisson's u, the integrals (u, v) for all test functions v,
        and zeros for the pressure; symmetric. Velocities that sides prescribe are no part of x: load(u) has them. The
        first product allocates memory, for the mesh once more and a vector.

        With `system` of the problem with mass=1/dt, an implicit Euler step is

            x = system.solve(b + (system.mass_matrix() @ x) / dt, x)

        where b = system.load(), if walls move along themselves only. For another step set `system.mass`.
        """
        return LinearOperator(self, "mass matrix", self._core.apply_mass, symmetric=True)

    def load(self, force: VectorField | Scalar | None = None, out: Any = None, *, xp: Any = None) -> Any:
        """b, the load vector of force, boundary data and tractions.

        Args:
            force: another force than the problem's, as Problem() takes it; a Solution is one too.
            out: where it goes, an array of N numbers or a Vector.
            xp: the library of a new array: numpy (default), cupy, torch.

        Raises:
            InputError: where a field is not finite, or if the problem has no solution.
        """
        fields = None
        if force is not None:
            dim = self.problem.dim
            poisson = self.problem.equation == "poisson"
            known = self.problem.parameters
            fields = [scalar(force, dim, "force", known)] if poisson else vector(force, dim, "force", known)
        if isinstance(out, Vector):
            self._core.load(out._core, fields)
            return out
        out = self._empty(xp) if out is None else out
        self._core.load(self._writable(out, "out"), fields)
        return out

    def solve(self, b: Any, x0: Any = None, *, rtol: float | None = None, out: Any = None) -> Any:
        """Solves A x = b by the method of the options. `report` says how that went.

        Args:
            b: an array of N numbers, of any library, on host or device (LinearOperator says which), or a Vector; the
                others are vectors, too, then. Constants that A maps to zero are removed from it.
            x0: what to begin from, such as the last time step; zero by default.
            rtol: of the residual, relative to b; by default that of the options.
            out: where x goes; it may be x0 itself and, of arrays, b.

        Returns:
            `out`, or a new array like b. If the solve did not converge there is a ConvergenceWarning.

        Raises:
            InputError: if shape, type, strides or device of an array do not fit.
            ResourceError: if memory does not suffice for the vectors of the method.
        """
        if isinstance(b, Vector):
            out = Vector(self) if out is None else out
            if not isinstance(out, Vector) or out is b:
                raise InputError("out: expected another Vector than b")
            if x0 is not None and x0 is not out:
                out.set(x0)
            done = self._core.solve(b._core, out._core, x0 is not None, rtol)
        else:
            given = self._readable(b, "b")
            guess = None if x0 is None else self._readable(x0, "x0")
            if out is None:
                out = np.empty(np.shape(b)) if isinstance(given, np.ndarray) else _empty_like(b)
            done = self._core.solve(given, guess, self._writable(out, "out"), rtol)
        self._report = LinearReport(done.converged, done.reason, done.iterations, done.residual_history)
        warn_unless_converged(self._report)
        return out

    @property
    def report(self) -> LinearReport:
        """How the last solve() went."""
        if self._report is None:
            raise InputError("nothing has been solved yet: there is no report")
        return self._report

    def solution(self, x: Any) -> Solution:
        """The solution whose coefficients, without prescribed boundary velocities, are x, an array or a Vector: what
        solves A x = b."""
        return Solution(self._core.solution(x._core if isinstance(x, Vector) else self._readable(x, "x")), self.problem)

    def integrals(self, x: Any) -> FlowIntegrals:
        """Of the velocity of solution(x), without making it: on a GPU nothing but these numbers leaves it.

        Args:
            x: an array or a Vector, as solution() takes it.
        """
        if self.problem.equation == "poisson":
            raise InputError("Poisson's equation has no velocity to integrate")
        return FlowIntegrals(*self._core.integrals(self._as_vector(x)._core))

    def error(self, x: Any, exact: Any = None, pressure: Scalar | None = None) -> Errors | float:
        """solution(x).error(exact, pressure) without making that solution: on a GPU it is measured there, but against
        functions of the caller."""
        fields = known_fields(self.problem, exact, pressure)
        velocity, of_pressure, value = self._core.errors(self._as_vector(x)._core, **fields)
        return Errors(velocity, of_pressure) if value is None else value

    def _as_vector(self, x: Any) -> Vector:
        return x if isinstance(x, Vector) else self.vector(x)

    def __repr__(self) -> str:
        return f"LinearSystem: {self.dofs} unknowns on {self.device}"

    def _empty(self, xp: Any) -> Any:
        """An array of N numbers of a library, on the system's device if it has it."""
        xp = np if xp is None else xp
        place = {"device": "cuda"} if self.on_gpu and xp.__name__ == "torch" else {}
        return xp.empty(self.size, dtype=xp.float64, **place)

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
