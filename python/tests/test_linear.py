"""The linear system: operator, preconditioner, vectors of other libraries."""

import copy
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import solenoid as so
from conftest import CPU, random_vector


def parts_of(system):
    return system.operator(), system.preconditioner(), system.load()


@pytest.fixture
def system(cavity):
    return so.LinearSystem(cavity, **CPU)


@pytest.fixture
def parts(system):
    return parts_of(system)


def test_operator(cavity, parts):
    A, M, b = parts
    assert A.shape == (b.size, b.size) and A.dtype == np.float64
    x, y = random_vector(cavity), random_vector(cavity, 2)
    assert x @ (A @ y) == pytest.approx((A @ x) @ y, rel=1e-10)  # symmetric
    assert np.allclose(A @ (2 * x + y), 2 * (A @ x) + A @ y)
    assert np.allclose(M @ (2 * x + y), 2 * (M @ x) + M @ y)
    columns = np.stack([x, y], axis=1)
    assert np.array_equal((A @ columns)[:, 1], A @ y)
    assert np.array_equal(A.matvec(x[:, None])[:, 0], A @ x)
    assert "A: " in repr(A)
    assert np.array_equal(A.T @ x, A @ x)
    assert not hasattr(M, "T")  # not symmetric


def test_layout(cavity, system):
    """Cells in x first, in each the coefficients without the prescribed hats on lower faces."""
    assert system.size == system.dofs == so.solve(cavity).report.dofs
    assert system.size == 64 * 27 - 2 * 8 * 3
    field = np.array([0, 0.5])  # a constant velocity in y: hats, and no bubbles
    linear = so.Problem(cavity.mesh, order=2, velocity=dict.fromkeys(["xmin", "xmax", "ymin", "ymax"], list(field)))
    x = so.solve(linear, rtol=1e-13).coefficients
    records = np.zeros((8, 8, 27))  # y, x, value
    start = 0
    for j in range(8):
        for i in range(8):
            unknown = np.ones(27, bool)
            unknown[0:3] = i > 0  # hats of u_x: modes in y
            unknown[9:12] = j > 0  # hats of u_y: modes in x
            end = start + unknown.sum()
            records[j, i, unknown] = x[start:end]
            start = end
    assert start == x.size
    expected = np.zeros((8, 8, 27))
    expected[1:, :, 9] = 0.5 / 8  # times sqrt(h) of both directions
    assert np.allclose(records[..., :18], expected[..., :18], atol=1e-10)


def test_eigenvalues_are_those_of_the_unknowns(system):
    """No zero but that of the constant pressure: a vector has no padding."""
    A = system.operator()
    matrix = A @ np.eye(system.size)
    assert np.allclose(matrix, matrix.T, atol=1e-10)
    zeros = np.abs(np.linalg.eigvalsh(matrix)) < 1e-9
    assert zeros.sum() == 1
    linalg = pytest.importorskip("scipy.sparse.linalg")
    # One: of two that are equal, as of a square, Lanczos may find the second or not.
    start = np.random.default_rng(1).standard_normal(system.size)
    largest = linalg.eigsh(A, k=1, which="LA", return_eigenvectors=False, v0=start)
    assert largest == pytest.approx(np.linalg.eigvalsh(matrix)[-1:], rel=1e-8)


def test_vectors_are_coefficients(cavity, system):
    solution = so.solve(cavity, rtol=1e-12, **CPU)
    x = solution.coefficients
    A, _, b = parts_of(system)
    assert np.linalg.norm(b - A @ x) < 1e-10 * np.linalg.norm(b)
    points = np.random.default_rng(4).random((20, 2))
    assert np.allclose(system.solution(x).velocity(points), solution.velocity(points), atol=1e-14)


@pytest.mark.parametrize("precision", ["double", "mixed"])
def test_richardson_iteration_gives_the_solution(cavity, precision):
    system = so.LinearSystem(cavity, device="cpu", precision=precision)
    A, M, b = parts_of(system)
    x = np.zeros_like(b)
    for _ in range(25):
        x += M @ (b - A @ x)
    points = np.random.default_rng(3).random((20, 2))
    expected = so.solve(cavity, rtol=1e-12).velocity(points)
    solution = system.solution(x)
    assert np.allclose(solution.velocity(points), expected, atol=1e-9)
    assert solution.divergence_max() < 1e-9
    with pytest.raises(so.InputError, match="no report"):
        _ = solution.report


def test_solve(cavity, system, parts):
    A, _, b = parts
    with pytest.raises(so.InputError, match="nothing has been solved"):
        _ = system.report
    x = system.solve(b, rtol=1e-11)
    assert system.report.converged and system.report.iterations + 1 == len(system.report.residual_history)
    assert np.linalg.norm(b - A @ x) <= 1.1e-11 * np.linalg.norm(b)
    assert np.allclose(x, so.solve(cavity, rtol=1e-11, **CPU).coefficients, atol=1e-10)
    # From a guess, which stays as it is, and in place.
    guess = x.copy()
    assert np.allclose(system.solve(b, guess, rtol=1e-9), x, rtol=0, atol=1e-14) and system.report.iterations == 0
    assert np.array_equal(guess, x)
    y = 0.9 * x
    assert system.solve(b, y, out=y) is y and np.allclose(y, x, atol=1e-7)
    assert system.report.iterations < so.solve(cavity, **CPU).report.iterations
    right = b.copy()
    assert np.array_equal(system.solve(right, rtol=1e-11, out=right), x)


def test_vectors(cavity, system, parts):
    """Vectors of the device behave as arrays do."""
    A, M, b = parts
    x, y = random_vector(cavity), random_vector(cavity, 2)
    v, w = system.vector(x), system.vector(y)
    assert len(v) == system.size and np.array_equal(np.asarray(v), x) and not np.asarray(system.vector()).any()
    for operator in (A, M, system.mass_matrix()):
        assert np.array_equal(np.asarray(operator @ v), operator @ x)
        assert operator.matvec(v, out=w) is w and np.array_equal(w.array(), operator @ x)
    w.set(y)
    assert np.allclose(2 * v - w / 4 + x - 3 * y + (-v), 2 * x - y / 4 + x - 3 * y - x, atol=1e-14)
    assert np.allclose(y - v, y - x, atol=1e-15)
    twin = copy.copy(v)
    twin *= 2
    assert np.array_equal(v, x) and v.dot(y) == v.dot(w)
    assert v.dot(w) == pytest.approx(x @ y, rel=1e-12) and v.norm() == pytest.approx(np.linalg.norm(x), rel=1e-13)
    same = w
    w += v
    w -= y
    w *= 3
    w /= 2
    assert w is same and np.allclose(w, 1.5 * x, atol=1e-14)
    assert np.array_equal(v, x)
    u = system.solve(system.vector(b), rtol=1e-10)
    assert isinstance(u, so.Vector) and np.array_equal(np.asarray(u), system.solve(b, rtol=1e-10))
    assert system.solve(system.vector(b), u, out=u) is u and system.report.iterations == 0
    guess = 0.5 * u
    assert system.solve(system.vector(b), guess) is not guess and np.allclose(guess, 0.5 * np.asarray(u))
    assert np.array_equal(system.solution(u).coefficients, system.solution(np.asarray(u)).coefficients)
    other = so.LinearSystem(cavity, **CPU)
    for call, message in [
        (lambda: A.matvec(v, out=v), "in place"),
        (lambda: A @ other.vector(), "another linear system"),
        (lambda: system.solve(v, w, out=v), "another Vector than b"),
        (lambda: system.solve(v, out=x), "another Vector than b"),
        (lambda: A.matvec(v, out=x), "out: expected a Vector"),
        (lambda: v.set(x[:-1]), "values: expected"),
    ]:
        with pytest.raises(so.InputError, match=message):
            call()


def test_solve_allocates_no_arrays():
    problem = so.Problem(so.Mesh.box(cells=(1, 1), refine=5), force=["y", 0])
    system = so.LinearSystem(problem, **CPU)
    b = system.load()
    out = system.solve(b)
    tracemalloc.start()
    system.solve(b, out, out=out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < b.nbytes / 10


def test_solve_that_does_not_converge_warns(cavity):
    system = so.LinearSystem(cavity, device="cpu", max_iterations=1)
    with pytest.warns(so.ConvergenceWarning, match="max_iterations reached; 1 iterations"):
        system.solve(system.load())
    assert not system.report.converged


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, b: s.solve(b[:-1]), r"b: expected a contiguous array of 1680 float64, got float64, shape \(1679\)"),
        (lambda s, b: s.solve(b, b[:-1]), r"x0: expected a contiguous array"),
        (lambda s, b: s.solve(b, rtol=-1.0), "rtol"),
        (lambda s, b: s.load("sin(x)"), "force: expected 2 components"),
        (lambda s, b: s.load(["log(x-0.5)", 0]), r"force\[0\]: the value is nan"),
        (lambda s, b: so.LinearSystem(s.problem, method="fmg"), "method: full multigrid"),
    ],
)
def test_wrong_solves(system, parts, call, message):
    with pytest.raises(so.InputError, match=message):
        call(system, parts[2])


def test_mass_matrix(cavity, system):
    mass = system.mass_matrix()
    x, y = random_vector(cavity), random_vector(cavity, 2)
    assert x @ (mass @ y) == pytest.approx((mass @ x) @ y, rel=1e-12)
    heavier = so.LinearSystem(cavity.replace(mass=3), **CPU).operator()
    assert np.allclose(heavier @ x, system.operator() @ x + 3 * (mass @ x), atol=1e-12)
    # Of a velocity that is zero on the sides it has the energy.
    field = ["sin(pi*x)^2*sin(2*pi*y)", "-sin(2*pi*x)*sin(pi*y)^2"]
    flow = so.interpolate(cavity, velocity=field, pressure="x")
    u = flow.coefficients
    assert 0.5 * u @ (mass @ u) == pytest.approx(flow.kinetic_energy(), rel=1e-12)


def test_other_coefficients(cavity):
    """Operators know of them, and only those of now count."""
    system = so.LinearSystem(cavity, **CPU)
    A, M = system.operator(), system.preconditioner()
    x = random_vector(cavity)
    before = A @ x, M @ x, system.load(), system.solve(system.load())
    other = so.LinearSystem(cavity.replace(mass=3, viscosity=0.5), **CPU)
    system.mass = 3
    system.viscosity = 0.5
    assert (system.mass, system.viscosity) == (3, 0.5)
    assert (system.problem.mass, system.solution(x).problem.viscosity) == (3, 0.5)
    b = other.load()
    assert np.array_equal(system.load(), b)
    assert np.array_equal(A @ x, other.operator() @ x)
    assert np.array_equal(M @ x, other.preconditioner() @ x)
    assert np.array_equal(system.solve(b), other.solve(b))
    system.set_coefficients(mass=cavity.mass, viscosity=cavity.viscosity)
    after = A @ x, M @ x, system.load(), system.solve(system.load())
    assert all(np.array_equal(old, new) for old, new in zip(before, after))


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("mass", -1, "mass: must be zero or positive"),
        ("viscosity", 0, "viscosity: must be positive"),
        ("mass", "heavy", "mass"),
    ],
)
def test_wrong_coefficients(cavity, name, value, message):
    system = so.LinearSystem(cavity, **CPU)
    with pytest.raises((so.InputError, TypeError), match=message):
        setattr(system, name, value)
    assert getattr(system, name) == getattr(cavity, name)
    periodic = so.LinearSystem(so.Problem(cavity.mesh, order=cavity.order, periodic="xy"), **CPU)
    with pytest.raises(so.InputError, match="set up a new solver"):
        periodic.mass = 1


def test_other_coefficients_by_cell(cavity):
    """Arrays, expressions with parameters, functions and numbers, as a new system has them; what is refused changes
    nothing."""
    rng = np.random.default_rng(1)
    cells = tuple(reversed(cavity.mesh.points().shape[:-1]))
    nu, alpha = np.exp(rng.uniform(-1, 1, cells)), rng.uniform(0, 9, cells)
    problem = cavity.replace(viscosity=nu, parameters={"c": 2})
    system = so.LinearSystem(problem, **CPU)
    A, M, b = system.operator(), system.preconditioner(), system.load()

    def same_as(**coefficients):
        other = so.LinearSystem(problem.replace(**coefficients), **CPU)
        assert np.array_equal(A @ b, other.operator() @ b)
        assert np.array_equal(M @ b, other.preconditioner() @ b)
        assert np.array_equal(system.load(), other.load())

    system.set_reaction(alpha)
    same_as(mass=alpha)
    system.set_viscosity("exp(c*x)")
    same_as(mass=alpha, viscosity="exp(c*x)")
    assert system.problem.viscosity is not None and system.solution(b).problem.form == "stress"
    system.set_parameters(c=3)
    same_as(mass=alpha, viscosity="exp(3*x)")
    system.set_coefficients(viscosity=lambda p: 1 + p[:, 0], mass=4)
    same_as(mass=4, viscosity=lambda p: 1 + p[:, 0])
    system.viscosity, system.mass = nu, 0
    same_as()
    for wrong, message in [(nu[:-1], "array"), (-nu, "positive"), (np.nan, "finite"), ("log(x-1)", "viscosity")]:
        with pytest.raises(so.InputError, match=message):
            system.set_viscosity(wrong)
    same_as()
    with pytest.raises(so.InputError, match="expected a number"):
        so.LinearSystem(cavity, **CPU).set_viscosity(nu)
    with pytest.raises(so.InputError, match="different problems"):
        so.LinearSystem(cavity.replace(mass=alpha), **CPU).set_viscosity(nu)
    named = so.LinearSystem(cavity.replace(mass=alpha, form="gradient"), **CPU)
    named.set_viscosity(nu)
    assert named.problem.form == "gradient"


def test_loads_of_other_forces(cavity, system):
    """Among them the solution of another problem, on another mesh."""
    force = ["sin(3*x)*y", lambda p: p[:, 0] ** 2]
    expected = so.LinearSystem(cavity.replace(force=force), **CPU).load()
    assert np.allclose(system.load(force), expected, atol=1e-14)
    assert np.allclose(system.load(), so.LinearSystem(cavity, **CPU).load())
    coarse = so.solve(cavity.replace(refine=2, force=["y", 0]), **CPU)
    as_function = system.load(lambda p: coarse.velocity(p))
    assert np.allclose(system.load(coarse), as_function, atol=1e-14)
    # A velocity times the mass matrix is the load of that velocity as a force.
    u = so.interpolate(cavity, velocity=["sin(pi*x)^2*sin(2*pi*y)", "-sin(2*pi*x)*sin(pi*y)^2"])
    boundary = system.load([0, 0])
    assert np.allclose(system.load(u) - boundary, system.mass_matrix() @ u.coefficients, atol=1e-13)


def test_gmres_of_scipy(cavity, system, parts):
    linalg = pytest.importorskip("scipy.sparse.linalg")
    A, M, b = parts
    residuals = []
    x, status = linalg.gmres(A, b, M=M, rtol=1e-8, callback=residuals.append, callback_type="pr_norm")
    assert status == 0
    assert len(residuals) <= 10
    assert np.allclose(system.solution(x).velocity([0.5, 0.5]), so.solve(cavity).velocity([0.5, 0.5]), atol=1e-7)
    assert linalg.aslinearoperator(A).rmatvec(b).shape == b.shape


def krylov_example(root):
    """What the example says that each library did, and the velocities that it printed."""
    example = root / "python" / "examples" / "krylov.py"
    out = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True).stdout
    iterations = dict(re.findall(r"(\w+): (\d+) iterations, converged", out))
    velocities = [np.array(text.split(), float) for text in re.findall(r"\[(.*?)\]", out)]
    return iterations, velocities


def test_krylov_example(root):
    pytest.importorskip("scipy.sparse.linalg")
    iterations, (theirs, ours, *_) = krylov_example(root)
    assert int(iterations["scipy"]) <= 10
    assert theirs == pytest.approx(ours, abs=1e-8)


def test_krylov_example_with_petsc(root):
    pytest.importorskip("scipy.sparse.linalg")
    pytest.importorskip("petsc4py")
    iterations, (_, ours, theirs) = krylov_example(root)
    assert iterations["PETSc"] == iterations["scipy"]
    assert theirs == pytest.approx(ours, abs=1e-8)


def test_arrays_are_used_where_they_are():
    """A result goes into `out`, and no array of the size of a vector is made on the way."""
    problem = so.Problem(so.Mesh.box(cells=(1, 1), refine=5))
    system = so.LinearSystem(problem, **CPU)
    A, M = system.operator(), system.preconditioner()
    x = random_vector(problem)
    out = np.full_like(x, np.nan)
    address = out.ctypes.data
    for operator in (A, M):
        assert operator.matvec(x, out=out) is out
        assert np.array_equal(out, operator @ x)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for operator in (A, M):
        operator.matvec(x, out=out)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert peak < x.nbytes / 10
    assert out.ctypes.data == address
    assert system.load(out=out) is out


def test_results_may_be_in_place(cavity, parts):
    for operator in parts[:2]:
        x = random_vector(cavity)
        expected = operator @ x
        assert operator.matvec(x, out=x) is x and np.array_equal(x, expected)


def test_unaligned_arrays(cavity, parts):
    A, M, _ = parts
    x = random_vector(cavity)
    shifted = np.empty(x.size + 1)[1:]
    shifted[:] = x
    out = np.empty(x.size + 1)[1:]
    for operator in (A, M):
        assert np.array_equal(operator.matvec(shifted, out=out), operator @ x)


def test_other_arrays_are_converted(cavity, parts):
    A, _, _ = parts
    x = random_vector(cavity)
    strided = np.zeros(2 * x.size)[::2]
    strided[:] = x
    assert np.array_equal(A @ strided, A @ x)
    assert np.array_equal(A @ x.tolist(), A @ x)
    read_only = x.copy()
    read_only.flags.writeable = False
    assert np.array_equal(A @ read_only, A @ x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda A, x: A @ x[:-1], r"x: expected a contiguous array of 1680 float64, got float64, shape \(1679\)"),
        (lambda A, x: A.matvec(np.stack([x, x])), r"x: .* got float64, shape \(2, 1680\)"),
        (lambda A, x: A.matvec(x, out=x[:-1]), r"out: .* got float64, shape \(1679\)"),
        (lambda A, x: A.matvec(x, out=x.astype(np.float32)), "out: .* got float32"),
        (lambda A, x: A.matvec(x, out=np.stack([x, x], axis=1)[:, 0]), r"out: .* strides \(2\)"),
        (lambda A, x: A.matvec(x, out=np.broadcast_to(0.0, x.shape)), "out: the array is read-only"),
        (lambda A, x: A.matvec(x, out=[0.0]), "out: expected an array"),
    ],
)
def test_wrong_arrays(cavity, parts, call, message):
    with pytest.raises(so.InputError, match=message):
        call(parts[0], random_vector(cavity))


def test_poisson_is_positive(poisson):
    system = so.LinearSystem(poisson, **CPU)
    A, M, b = parts_of(system)
    x = random_vector(poisson)
    assert x @ (A @ x) > 0
    for _ in range(20):
        x += M @ (b - A @ x)
    assert system.solution(x).error("sin(pi*x)*sin(pi*y)") < 1e-3


def test_integrals_and_errors_without_a_solution(cavity, poisson):
    system = so.LinearSystem(cavity, **CPU)
    x = random_vector(cavity)
    solution = system.solution(x)
    for of in (x, system.vector(x)):
        integrals = system.integrals(of)
        assert np.isclose(integrals.velocity_square, 2 * solution.kinetic_energy())
        assert np.isclose(integrals.gradient_square * cavity.viscosity, solution.dissipation())
        assert np.allclose(integrals.velocity, solution.mean_velocity()) and integrals.max_speed == solution.max_speed()
        assert integrals.max_divergence > 0
        exact = {"exact": ["sin(x)", "y"], "pressure": lambda points: points.prod(axis=1)}
        assert np.allclose(system.error(of, **exact), solution.error(**exact))
        assert system.error(of, pressure=1).velocity is None
    system = so.LinearSystem(poisson, **CPU)
    assert np.isclose(system.error(np.zeros(system.size), 2), 2)
    with pytest.raises(so.InputError, match="no velocity to integrate"):
        system.integrals(np.zeros(system.size))
    with pytest.raises(so.InputError, match="expected the exact u"):
        system.error(np.zeros(system.size), 2, pressure=1)


def test_torch_on_the_cpu(cavity, parts):
    torch = pytest.importorskip("torch")
    A, _, _ = parts
    x = random_vector(cavity)
    y = A @ torch.from_numpy(x)
    assert isinstance(y, torch.Tensor)
    assert np.array_equal(y.numpy(), A @ x)
    out = torch.empty_like(y)
    assert A.matvec(torch.from_numpy(x), out=out) is out and torch.equal(out, y)
    with pytest.raises(so.InputError, match="x: .* got float32"):
        A @ torch.from_numpy(x).float()


def test_gpu_arrays_need_a_system_on_the_gpu(cavity, parts):
    class OnGpu:
        shape = parts[2].shape
        dtype = np.dtype(np.float64)
        __cuda_array_interface__ = {"data": (0, False), "typestr": "<f8", "shape": shape, "version": 3}

    with pytest.raises(so.InputError, match="lies in the memory of a GPU"):
        parts[0].matvec(OnGpu())


def test_parameters():
    """As of a problem that has other values from the start."""

    def problem(t):
        return so.Problem(
            so.Mesh.box(cells=(2, 1), refine=1),
            order=2,
            force=["t*y + a", "x"],
            velocity={"xmin": ["t*y*(1-y)", 0], "ymax": ["a*x", 0]},
            outflow=["xmax"],
            sides=[{"on": "ymin", "where": "x < a", "velocity": ["t", 0]}],
            parameters={"t": t, "a": 0.5, "unused": 1},
        )

    system = so.LinearSystem(problem(0.0))
    assert system.problem.parameters == {"t": 0.0, "a": 0.5, "unused": 1.0}
    for t in (0.5, 0.0):
        fresh = so.LinearSystem(problem(t))
        system.set_parameters(t=t, unused=3)
        assert system.problem.parameters["t"] == t
        assert np.array_equal(system.load(), fresh.load())
        assert np.array_equal(system.load(["sin(t)*x", "a"]), fresh.load(["sin(t)*x", "a"]))
        zeros = np.zeros(system.size)
        assert np.array_equal(system.solution(zeros).coefficients, fresh.solution(zeros).coefficients)
        again = so.solve(problem(1.0).replace(parameters={"t": t})), so.solve(problem(t))
        assert np.array_equal(again[0].coefficients, again[1].coefficients)
        assert again[0].error(["t*y", "a*x"]).velocity == again[1].error(["t*y", "a*x"]).velocity
    b = system.vector(np.ones(system.size))
    assert system.load(out=b) is b and np.array_equal(np.asarray(b), system.load())
    system.load(["x", "t"], out=b)
    assert np.array_equal(np.asarray(b), system.load(["x", "t"]))
    with pytest.raises(so.InputError, match="another linear system"):
        fresh.load(out=b)
    with pytest.raises(so.InputError, match="no parameter 'T'; it has 't', 'a', 'unused'"):
        system.set_parameters(T=1)
    with pytest.raises(so.InputError, match="depends on `a`"):
        system.set_parameters(a=0.25)
    assert system.problem.parameters["a"] == 0.5
    with pytest.raises(so.InputError, match="unknown name `s`"):
        system.load(["s", 0])
    with pytest.raises(so.InputError, match=r"parameters\['t'\]: expected a number"):
        problem("now")
