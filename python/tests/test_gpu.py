"""Arrays of cupy and torch in the memory of a GPU."""

import contextlib
import json
import re

import numpy as np
import pytest
import solenoid as so
from conftest import CPU, random_vector

pytestmark = [
    pytest.mark.skipif(bool(so.info()["no_cuda"]), reason=f"no GPU: {so.info()['no_cuda']}"),
    pytest.mark.filterwarnings("ignore:.*Profiler clears events"),
]

GPU = {"device": "cuda", "precision": "double"}


@pytest.fixture(params=["cupy", "torch"])
def xp(request):
    """A library of arrays."""
    return pytest.importorskip(request.param)


def on_gpu(xp, x):
    return xp.asarray(x) if xp.__name__ == "cupy" else xp.from_numpy(x).cuda()


def on_host(x):
    return x.get() if hasattr(x, "get") else x.cpu().numpy()


def address(x):
    return x.data.ptr if hasattr(x.data, "ptr") else x.data_ptr()


def new_stream(xp):
    """A stream that does not wait for the default one, while it is entered."""
    return xp.cuda.Stream(non_blocking=True) if xp.__name__ == "cupy" else xp.cuda.stream(xp.cuda.Stream())


def keep_busy(xp):
    """Queues work for some milliseconds or more in the library's current stream."""
    numbers = xp.zeros(1 << 25, dtype=xp.float64, **({} if xp.__name__ == "cupy" else {"device": "cuda"}))
    for _ in range(200):
        numbers += 1


@pytest.fixture
def watch(tmp_path):
    """A function that does `work` and returns what the GPU did for it, for any library in this process, as NVIDIA's
    profiling interface (CUPTI) recorded it: copies as (kind, bytes), and the number of kernels."""
    torch = pytest.importorskip("torch")

    def run(work):
        work()  # once before, for what is only done the first time
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            work()
            torch.cuda.synchronize()
        trace = tmp_path / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
        copies = [(event["name"], event["args"]["bytes"]) for event in events if event.get("cat") == "gpu_memcpy"]
        return copies, sum(event.get("cat") == "kernel" for event in events)

    return run


def operators(system):
    return {"A": system.operator(), "M": system.preconditioner()}


@pytest.fixture
def system(cavity):
    return so.LinearSystem(cavity, **GPU)


@pytest.mark.parametrize("precision", ["double", "mixed"])
@pytest.mark.parametrize("name", ["A", "M"])
def test_gpu_arrays_are_not_copied(cavity, xp, watch, name, precision):
    operator = operators(so.LinearSystem(cavity, device="cuda", precision=precision))[name]
    x = on_gpu(xp, random_vector(cavity))
    out = on_gpu(xp, np.full(operator.shape[0], np.nan))
    operator.matvec(x, out=out)  # makes the table of unknowns
    memory, place = operator._system.memory_bytes, address(out)
    copies, kernels = watch(lambda: operator.matvec(x, out=out))
    assert copies == [] and kernels > 0
    assert operator._system.memory_bytes == memory and address(out) == place
    result = operator @ x
    assert type(result) is type(x) and np.array_equal(on_host(result), on_host(out))


@pytest.mark.parametrize("name", ["A", "M"])
def test_host_arrays_are_copied_there_and_back(cavity, system, watch, name):
    """Which shows that test_gpu_arrays_are_not_copied would see copies."""
    operator = operators(system)[name]
    x = random_vector(cavity)
    copies, _ = watch(lambda: operator @ x)
    assert [(kind.split()[1], size) for kind, size in copies] == [("HtoD", x.nbytes), ("DtoH", x.nbytes)]
    expected = operator @ on_gpu(pytest.importorskip("torch"), x)
    assert np.array_equal(operator @ x, on_host(expected))


@pytest.mark.parametrize("precision", ["double", "mixed"])
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("equation", ["stokes", "poisson"])
def test_results_are_those_of_the_cpu(xp, equation, dim, precision):
    force = ["x", "x*y", "z"][:dim] if equation == "stokes" else "x"
    # On this mesh both have the same levels: on others a GPU solves a larger coarse level directly.
    problem = so.Problem(so.Mesh.box(cells=(1,) * dim, refine=2), equation=equation, force=force)
    x = random_vector(problem)
    theirs = so.LinearSystem(problem, **CPU)
    ours = so.LinearSystem(problem, device="cuda", precision=precision)
    for name, tolerance in (("A", 1e-12), ("M", 1e-9 if precision == "double" else 1e-3)):
        operator = operators(theirs)[name]
        result = operators(ours)[name] @ on_gpu(xp, x)
        assert type(result) is type(on_gpu(xp, x))
        expected = operator @ x
        assert np.abs(on_host(result) - expected).max() <= tolerance * np.abs(expected).max()
    assert np.allclose(on_host(ours.load(xp=xp)), theirs.load(), rtol=0, atol=1e-13)


def test_operator_with_holes(xp):
    mesh = so.Mesh.box(cells=(3, 2, 1), refine=2, holes=[((0, 0, 0), (1, 1, 1))])
    problem = so.Problem(mesh, order=2, mass=1.0, slip=["zmin"], outflow=["xmax"])
    x = random_vector(problem)
    expected = so.LinearSystem(problem, **CPU).operator() @ x
    result = so.LinearSystem(problem, **GPU).operator() @ on_gpu(xp, x)
    assert np.allclose(on_host(result), expected, atol=1e-12 * np.abs(expected).max())


def test_solutions_are_those_of_the_cpu(cavity, poisson):
    points = np.random.default_rng(5).random((50, 2))
    for precision in ("double", "mixed"):
        theirs, ours = (so.solve(cavity, rtol=1e-11, device=where, precision=precision) for where in ("cpu", "cuda"))
        assert "cuda" in ours.report.device
        assert np.allclose(ours.velocity(points), theirs.velocity(points), atol=1e-10)
        assert np.allclose(ours.coefficients, theirs.coefficients, atol=1e-8)
        theirs, ours = (so.solve(poisson, rtol=1e-11, device=where, precision=precision) for where in ("cpu", "cuda"))
        assert np.allclose(ours.value(points), theirs.value(points), atol=1e-10)


def test_gmres_of_cupy(cavity, system):
    """The coefficients that come out are an array on the GPU, which other libraries share."""
    cupy = pytest.importorskip("cupy")
    linalg = pytest.importorskip("cupyx.scipy.sparse.linalg")
    A, M = operators(system).values()
    x, status = linalg.gmres(A, system.load(xp=cupy), M=M, rtol=1e-11)
    assert status == 0 and isinstance(x, cupy.ndarray)
    points = np.random.default_rng(6).random((50, 2))
    expected = so.solve(cavity, rtol=1e-11, **GPU).velocity(points)
    assert np.allclose(system.solution(x).velocity(points), expected, atol=1e-8)
    torch = pytest.importorskip("torch")
    shared = torch.from_dlpack(x)
    assert address(shared) == address(x)
    assert np.array_equal(system.solution(shared).coefficients, system.solution(x).coefficients)


def test_richardson_iteration_stays_on_the_gpu(cavity, system, xp, watch):
    A, M = operators(system).values()
    b = system.load(xp=xp)
    x = xp.zeros_like(b)

    def iterate():
        x[:] = x + M @ (b - A @ x)

    for _ in range(25):
        iterate()
    copies, _ = watch(iterate)
    assert all("DtoD" in kind for kind, _ in copies)  # `x[:] =`
    expected = so.solve(cavity, rtol=1e-12).velocity([0.5, 0.5])
    assert np.allclose(system.solution(x).velocity([0.5, 0.5]), expected, atol=1e-9)


@pytest.mark.parametrize("own_stream", [False, True])
def test_work_that_is_queued_for_the_arrays_comes_first(cavity, system, xp, own_stream):
    """What fills the argument, and what reads where the result goes."""
    x = random_vector(cavity)
    for operator in operators(system).values():
        expected = on_host(operator @ on_gpu(xp, x))
        with new_stream(xp) if own_stream else contextlib.nullcontext():
            values, source, out = on_gpu(xp, x), on_gpu(xp, np.zeros_like(x)), on_gpu(xp, x)
            keep_busy(xp)
            source += values
            before = out + 0
            operator.matvec(source, out=out)
            after = out + 0
            assert np.array_equal(on_host(before), x)
            assert np.array_equal(on_host(after), expected)


@pytest.mark.parametrize("own_stream", [False, True])
def test_arrays_with_the_cuda_array_interface_only(cavity, system, own_stream):
    cupy = pytest.importorskip("cupy")

    class Array:
        def __init__(self, array):
            self.array = array

        @property
        def __cuda_array_interface__(self):
            return self.array.__cuda_array_interface__

    A = operators(system)["A"]
    x = random_vector(cavity)
    expected = on_host(A @ cupy.asarray(x))
    with new_stream(cupy) if own_stream else contextlib.nullcontext():
        values, source, out = cupy.asarray(x), cupy.zeros(x.size), cupy.zeros((x.size, 1))
        keep_busy(cupy)
        source += values
        A.matvec(Array(source), out=Array(out))
        assert np.array_equal(out.get()[:, 0], expected)
    for wrong in (values.astype(np.float32), cupy.zeros(2 * x.size)[::2], values[:-1]):
        with pytest.raises(so.InputError, match="x: expected a contiguous array of"):
            A.matvec(Array(wrong), out=out)


def test_unaligned_arrays(cavity, system, xp):
    x = random_vector(cavity)
    for operator in operators(system).values():
        shifted = on_gpu(xp, np.append(0, x))[1:]
        assert np.array_equal(on_host(operator @ shifted), on_host(operator @ on_gpu(xp, x)))


def test_columns(cavity, system, xp):
    x = random_vector(cavity)
    for operator in operators(system).values():
        column = operator @ on_gpu(xp, x[:, None])
        assert tuple(column.shape) == (x.size, 1)
        assert np.array_equal(on_host(column)[:, 0], on_host(operator @ on_gpu(xp, x)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda xp, x: on_gpu(xp, x)[:-1], "expected a contiguous array of 1680 float64, got float64, shape (1679)"),
        (lambda xp, x: on_gpu(xp, x.astype(np.float32)), "got float32, shape (1680)"),
        (lambda xp, x: on_gpu(xp, np.stack([x, x], axis=1))[:, 0], "strides (2)"),
        (lambda xp, x: on_gpu(xp, np.stack([x, x])), "shape (2, 1680)"),
    ],
)
def test_wrong_arrays(cavity, system, xp, wrong, message):
    x = random_vector(cavity)
    for operator in operators(system).values():
        with pytest.raises(so.InputError, match=re.escape(message)):
            operator.matvec(wrong(xp, x), out=on_gpu(xp, x))
        with pytest.raises(so.InputError, match=re.escape(message)):
            operator.matvec(on_gpu(xp, x), out=wrong(xp, x))
    with pytest.raises(so.InputError, match=re.escape(message)):
        system.solution(wrong(xp, x))


def test_arrays_elsewhere(cavity, system, xp):
    x = on_gpu(xp, random_vector(cavity))
    with pytest.raises(so.InputError, match="x: the array lies in the memory of a GPU, but the system is on cpu"):
        so.LinearSystem(cavity, **CPU).operator() @ x

    class OnAnotherGpu:
        def __dlpack_device__(self):
            return (2, 1)

        def __dlpack__(self, stream=None):
            raise AssertionError

    with pytest.raises(so.InputError, match="x: the array lies on GPU 1, but the system on GPU 0"):
        system.operator().matvec(OnAnotherGpu(), out=x)


def test_solve(cavity, system, xp):
    """Arrays that are there are solved there, from a guess and in place, too."""
    b = system.load(xp=xp)
    x = system.solve(b, rtol=1e-11)
    assert type(x) is type(b) and system.report.converged
    expected = so.LinearSystem(cavity, **CPU).solve(on_host(b), rtol=1e-11)
    assert np.allclose(on_host(x), expected, atol=1e-9)
    kept, memory = x + 0, system._core.memory_bytes
    again = system.solve(b, x, rtol=1e-9)
    assert system.report.iterations == 0 and bool((x == kept).all())
    assert np.allclose(on_host(again), on_host(x), rtol=0, atol=1e-14)
    right = b + 0
    assert system.solve(right, rtol=1e-11, out=right) is right and bool((right == kept).all())
    assert system._core.memory_bytes == memory
    assert np.array_equal(system.solve(on_host(b), rtol=1e-11), on_host(x))


def test_vectors(cavity, system, watch):
    A, M = operators(system).values()
    x, y = random_vector(cavity), random_vector(cavity, 2)
    v, w = system.vector(x), system.vector(y)
    assert np.array_equal(np.asarray(v), x)
    for operator in (A, M, system.mass_matrix()):
        assert np.array_equal(np.asarray(operator @ v), operator @ x)
    assert np.allclose(2 * v - w / 4, 2 * x - y / 4, atol=1e-14)
    assert v.dot(w) == pytest.approx(x @ y, rel=1e-12) and v.norm() == pytest.approx(np.linalg.norm(x), rel=1e-13)
    b = system.vector(system.load())
    c = system.vector(np.ones(system.size))
    assert system.load(out=c) is c and np.array_equal(np.asarray(c), np.asarray(b))
    u = system.solve(b, rtol=1e-10)
    assert np.array_equal(np.asarray(u), system.solve(system.load(), rtol=1e-10))

    def iterate():
        A.matvec(v, out=w)
        w.add(-0.5, b)

    copies, kernels = watch(iterate)
    assert copies == [] and kernels > 0


def test_time_steps_with_other_coefficients(cavity, xp):
    """Implicit Euler steps, whose length changes twice, there and on the processor."""

    def steps(system, x, load):
        mass = system.mass_matrix()
        for dt in (0.5, 0.5, 0.1, 0.5):
            system.mass = 1 / dt
            x = system.solve(load() + (mass @ x) / dt, x, rtol=1e-11)
        return x

    problem = cavity.replace(mass=1.0)
    theirs = so.LinearSystem(problem, **CPU)
    ours = so.LinearSystem(problem, **GPU)
    x = random_vector(problem) * 0
    expected = steps(theirs, x, theirs.load)
    assert np.abs(expected).max() > 0.1
    assert np.allclose(on_host(steps(ours, on_gpu(xp, x), lambda: ours.load(xp=xp))), expected, atol=1e-9)
    # What was made for a value that is used again is what a system has that was made for it.
    fresh = so.LinearSystem(problem.replace(mass=2.0), **GPU)
    r = on_gpu(xp, random_vector(problem))
    assert bool((fresh.preconditioner() @ r == ours.preconditioner() @ r).all())


def test_loads_of_other_forces(cavity, system, xp):
    """Expressions, which the GPU evaluates, functions, and solutions on other meshes."""
    theirs = so.LinearSystem(cavity, **CPU)
    coarse = so.solve(cavity.replace(refine=2, force=["y", 0]), **CPU)
    for force in (["sin(3*x)*y", "x^2"], ["sin(3*x)*y", lambda p: p[:, 0] ** 2], [1, 2], coarse):
        assert np.allclose(on_host(system.load(force, xp=xp)), theirs.load(force), atol=1e-14)
    assert np.allclose(on_host(system.load(xp=xp)), theirs.load(), atol=1e-14)
    with pytest.raises(so.InputError, match="force.0.: the value is nan"):
        system.load(["log(x-0.5)", 0], xp=xp)


def test_arrays_of_flows(xp, watch):
    mesh = so.Mesh.box(cells=(3, 2, 2), refine=2, holes=[((1, 1, 0), (2, 2, 1))])
    problem = so.Problem(mesh, order=2, viscosity=0.01, convection=True)
    flow, expected = (so.Flow(problem, step=0.01, **GPU) for _ in range(2))
    force = np.sin(np.arange(mesh.points(2).size)).reshape(mesh.points(2).shape)
    there = on_gpu(xp, force)
    velocity = on_gpu(xp, np.zeros(mesh.points(3).shape))
    fluxes = [on_gpu(xp, np.zeros(f.shape)) for f in flow.face_fluxes()]
    # The first steps are short, and each has tables of its own that the host makes.
    lengths = []
    for _ in range(30):
        flow.set_force(there)
        expected.set_force(force)
        lengths.append(flow.step().length)
        expected.step()
    assert lengths[-3] == lengths[-1] == 0.01
    assert flow.velocity_at_points(3, out=velocity) is velocity
    flow.face_fluxes(out=fluxes)
    np.testing.assert_array_equal(on_host(velocity), expected.velocity_at_points(3))
    for got, wanted in zip(fluxes, expected.face_fluxes()):
        np.testing.assert_array_equal(on_host(got), wanted)
    np.testing.assert_allclose(on_host(velocity), flow.solution().velocity_at_points(3), rtol=0, atol=1e-12)

    def couple():
        flow.set_force(there)
        flow.step()
        flow.velocity_at_points(3, out=velocity)
        flow.face_fluxes(out=fluxes)

    copies, _ = watch(couple)
    assert max((size for _, size in copies), default=0) < min(flux.nbytes for flux in flow.face_fluxes()) / 2


def test_arrays_of_flows_wait_for_other_streams(xp):
    """For what is still to be written to a force, and for what still reads an array that velocities go to."""
    mesh = so.Mesh.box(cells=(2, 2, 2), refine=3)
    problem = so.Problem(mesh, order=1, viscosity=0.01)
    flow, expected = (so.Flow(problem, step=0.01, **GPU) for _ in range(2))
    force = on_gpu(xp, np.zeros(mesh.points(1).shape))
    kept = on_gpu(xp, np.zeros(mesh.points(1).shape))
    velocity = on_gpu(xp, np.full(mesh.points(1).shape, 3.0))
    wanted = np.sin(np.arange(mesh.points(1).size)).reshape(mesh.points(1).shape)
    source = on_gpu(xp, wanted)
    with new_stream(xp):
        keep_busy(xp)
        force[:] = source
    flow.set_force(force)
    flow.step()
    expected.set_force(wanted)
    expected.step()
    with new_stream(xp):
        keep_busy(xp)
        kept[:] = velocity
    flow.velocity_at_points(out=velocity)
    np.testing.assert_array_equal(on_host(velocity), expected.velocity_at_points())
    np.testing.assert_array_equal(on_host(kept), 3.0)


def test_arrays_of_flows_on_sheared_cells(xp):
    mesh = so.Mesh.sheared([(1, 0), (0.5, 0.8)], refine=3)
    flow = so.Flow(so.Problem(mesh, viscosity=0.01, order=2), step=0.01, **GPU)
    flow.set_force(on_gpu(xp, np.sin(np.arange(mesh.points(2).size)).reshape(mesh.points(2).shape)))
    flow.step()
    velocity = on_gpu(xp, np.zeros(mesh.points().shape))
    flow.velocity_at_points(out=velocity)
    np.testing.assert_array_equal(on_host(velocity), flow.solution().velocity_at_points())
    assert abs(on_host(velocity)).max() > 0


def test_arrays_of_flows_have_to_fit(xp):
    mesh = so.Mesh.box(cells=(1, 1), refine=2)
    flow = so.Flow(so.Problem(mesh, viscosity=0.01), step=0.01, **GPU)
    values = on_gpu(xp, np.zeros((4, 4, 2)))
    single = values.astype("float32") if hasattr(values, "astype") else values.float()
    for wrong in (values[:3], values.swapaxes(0, 1), single):
        with pytest.raises(so.InputError, match="expected a contiguous array of float64"):
            flow.velocity_at_points(out=wrong)
    with pytest.raises(so.InputError, match="expected an array in the memory of a GPU"):
        flow.velocity_at_points(out=np.zeros((4, 4, 2)))
    with pytest.raises(so.InputError, match="expected an array of shape"):
        flow.set_force(values[:3])
    with pytest.raises(so.InputError, match="on processors"):
        so.Flow(so.Problem(mesh, viscosity=0.01), step=0.01, **CPU).velocity_at_points(out=values)
