"""Solving: options, reports, the command line, interruption, progress."""

import io
import json
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import solenoid as so
from conftest import ROOT
from solenoid.progress import ProgressBar

CASE = """
[mesh]
cells = [2, 2]
refine = 3
holes = [{lower = [0, 0], upper = [1, 1]}]
[element]
order = 2
[physics]
force = ["sin(3*x)", "y"]
[boundary]
ymax = {velocity = ["16*x^2*(1-x)^2", 0]}
[solver]
rtol = 1e-6
[exact]
velocity = ["x", "y"]
[[probe]]
point = [0.75, 0.6]
"""

POISSON_CASE = """
[mesh]
cells = [2, 2]
refine = 3
[element]
order = 2
[physics]
equation = "poisson"
force = "x*y"
[boundary]
xmin = {value = "y*(1-y)"}
[solver]
rtol = 1e-6
[exact]
value = "x"
[[probe]]
point = [0.75, 0.6]
"""


def command_line(program, file, *arguments):
    """The result file of a solve."""
    json_file = file.with_suffix(".json")
    subprocess.run([program, "solve", file, "--json", json_file, "--quiet", *arguments], check=True)
    return json.loads(json_file.read_text())


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    if request.param == "cuda" and so.info()["no_cuda"]:
        pytest.skip(f"no GPU: {so.info()['no_cuda']}")
    return request.param


def without_times(result):
    return {name: value for name, value in result.items() if name not in ("time", "memory_bytes")}


@pytest.mark.parametrize("precision", ["mixed", "double"])
@pytest.mark.parametrize("case", [CASE, POISSON_CASE], ids=["stokes", "poisson"])
def test_same_digits_as_the_command_line(program, tmp_path, case, precision, device):
    file = tmp_path / "case.toml"
    file.write_text(case)
    theirs = command_line(program, file, "--precision", precision, "--threads", "2", "--device", device)
    solution = so.solve(so.read_case(file), precision=precision, threads=2, device=device)
    assert without_times(solution.report) == without_times(theirs)
    values = {name: value.tolist() for name, value in at_probe(solution).items()}
    assert values == {name: theirs["probes"][0][name] for name in values}


def at_probe(solution):
    point = [0.75, 0.6]
    if solution.problem.equation == "poisson":
        return {"value": solution.value(point)}
    return {"velocity": solution.velocity(point), "pressure": solution.pressure(point)}


def test_same_digits_for_the_same_problem_in_python(program, tmp_path, device):
    file = tmp_path / "hole.toml"
    file.write_text(CASE)
    theirs = command_line(program, file, "--threads", "2", "--device", device)
    mesh = so.Mesh.box(cells=(2, 2), refine=3, holes=[((0, 0), (1, 1))])
    problem = so.Problem(mesh, order=2, force=["sin(3*x)", "y"], velocity={"ymax": ["16*x^2*(1-x)^2", 0]})
    solution = so.solve(problem, rtol=1e-6, threads=2, device=device)
    assert solution.report.residual_history == theirs["residual_history"]
    assert solution.velocity([0.75, 0.6]).tolist() == theirs["probes"][0]["velocity"]
    assert solution.error(["x", "y"]).velocity == theirs["error"]["velocity_l2"]


def test_same_digits_for_the_same_poisson_problem_in_python(program, tmp_path, device):
    file = tmp_path / "poisson.toml"
    file.write_text(POISSON_CASE)
    theirs = command_line(program, file, "--threads", "2", "--device", device)
    problem = so.Problem(
        so.Mesh.box(cells=(2, 2), refine=3), equation="poisson", force="x*y", value={"xmin": "y*(1-y)"}
    )
    solution = so.solve(problem, rtol=1e-6, threads=2, device=device)
    assert solution.report.residual_history == theirs["residual_history"]
    assert solution.value([0.75, 0.6]) == theirs["probes"][0]["value"]
    assert solution.error("x") == theirs["error"]["value_l2"]


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "cases").glob("*.toml")))
def test_same_digits_for_shipped_cases(program, tmp_path, name, device):
    """With few cells, of order 2: other orders need not be part of the build."""
    text = (ROOT / "cases" / f"{name}.toml").read_text()
    file = tmp_path / f"{name}.toml"
    file.write_text(re.sub(r"^(order|refine) = .*", r"\1 = 2", text, flags=re.M))
    theirs = command_line(program, file, "--threads", "2", "--device", device)
    assert without_times(so.solve(so.read_case(file), threads=2, device=device).report) == without_times(theirs)


def test_report(cavity):
    solution = so.solve(cavity, rtol=1e-9)
    report = solution.report
    assert solution.converged and report.converged
    assert report["iterations"] == report.iterations == len(report.residual_history) - 1
    assert report.residual_history[-1] <= 1e-9
    assert report.settings.solver.rtol == 1e-9
    assert report.time.solve > 0
    assert report.divergence_max < 1e-12
    assert "residual_history" in repr(report)
    with pytest.raises(AttributeError, match="it has converged"):
        _ = report.iteration
    assert "converged after" in repr(solution)


def test_case(tmp_path):
    file = tmp_path / "hole.toml"
    file.write_text(CASE)
    case = so.read_case(str(file))
    assert case.name == "hole"
    assert case.problem.order == 2 and case.problem.equation == "stokes"
    assert case.probes.tolist() == [[0.75, 0.6]]
    solution = so.solve(case, rtol=1e-3)  # instead of the file's
    assert solution.report.settings.solver.rtol == 1e-3
    assert solution.error(**case.exact).velocity == solution.report.error.velocity_l2
    file.write_text("[mesh]\ncells = [1, 1]\nrefin = 3\n")
    with pytest.raises(so.InputError, match="line 3: did you mean `refine`"):
        so.read_case(file)
    with pytest.raises(so.InputError, match="no such file"):
        so.read_case(tmp_path / "none.toml")


def test_full_multigrid_estimates_its_error(cavity):
    report = so.solve(cavity, method="fmg", cycles=2).report
    assert 0 < 2 * report.error_estimate.algebraic < report.error_estimate.velocity_l2
    assert "error_estimate" not in so.solve(cavity).report


@pytest.mark.parametrize(
    "options",
    [
        {"method": "fmg", "cycles": 2},
        {"method": "vcycle"},
        {"preset": "paper"},
        {"side": "left", "restart": 5},
        {"smoother": "additive", "damping": 0.2},
        {"colour_order": "lexicographic", "patch": "galerkin", "local_solver": "dense"},
        {"precision": "double", "threads": np.int64(1), "rtol": np.float32(1e-6)},
    ],
)
def test_options(cavity, options):
    solution = so.solve(cavity, **options)
    assert solution.converged
    assert np.allclose(solution.velocity([0.5, 0.5]), so.solve(cavity).velocity([0.5, 0.5]), atol=1e-3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rtoll": 1e-3}, "unknown key `rtoll` in [solver]: did you mean `rtol`?"),
        ({"rtol": 2.0}, "rtol: expected a number > 0 and < 1, got 2"),
        ({"method": "gmers"}, 'expected "gmres", "fmg" or "vcycle", got'),
        ({"device": "gpu"}, 'expected "auto", "cpu" or "cuda"'),
        ({"damping": 2}, "damping: expected a number from 0 to 1, got 2"),
        ({"threads": -1}, "expected an integer >= 0"),
        ({"threads": 100000}, "100000 are too many for this machine"),
        ({"max_iterations": None}, "neither a number nor a text"),
        ({"patch": "fused"}, "for Poisson's equation only"),
    ],
)
def test_wrong_options(cavity, options, message):
    with pytest.raises(so.InputError) as error:
        so.solve(cavity, **options)
    assert message in str(error.value)
    with pytest.raises(so.InputError):
        so.LinearSystem(cavity, **options)
    with pytest.raises(so.InputError):
        cavity.estimate(**options)


def test_cuda_that_is_not_there(cavity):
    if not so.info()["no_cuda"]:
        pytest.skip("there is a GPU")
    with pytest.raises(so.ResourceError, match="cuda"):
        so.solve(cavity, device="cuda")


def test_too_large():
    mesh = so.Mesh.box(cells=(1, 1, 1), refine=11)
    with pytest.raises(so.ResourceError, match="not enough memory"):
        so.solve(so.Problem(mesh, order=2), device="cpu")


def test_not_converged_warns(cavity):
    with pytest.warns(so.ConvergenceWarning, match="max_iterations reached; 1 iterations"):
        solution = so.solve(cavity, max_iterations=1, rtol=1e-12)
    assert not solution.converged and not solution.report.converged
    assert "NOT CONVERGED" in repr(solution)


def test_progress(cavity):
    seen = []
    so.solve(cavity, progress=lambda *now: seen.append(now))
    assert {stage for stage, _, _ in seen} == {"set-up", "solve"}
    assert all(0 <= fraction <= 1 for _, fraction, _ in seen)
    assert "residual" in seen[-1][2]


def test_progress_bar(cavity, capsys):
    so.solve(cavity, progress=True)
    assert "iteration" in capsys.readouterr().err

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    with ProgressBar(terminal) as bar:
        bar.show("solve", 0.5, "iteration 1")
        bar.show("solve", 1.0, "iteration 2")
    assert terminal.getvalue().count("\r") == 2 and terminal.getvalue().endswith("\n")


def test_a_progress_function_can_stop_a_solve(cavity):
    class Enough(Exception):
        pass

    def stop(stage, fraction, text):
        if stage == "solve":
            raise Enough

    with pytest.raises(Enough):
        so.solve(cavity, progress=stop)


def test_other_threads_run_meanwhile():
    mesh = so.Mesh.box(cells=(1, 1), refine=6)
    counts, done = [], threading.Event()

    def count():
        while not done.is_set():
            counts.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.monotonic()
    so.solve(so.Problem(mesh, velocity={"ymax": ["16*x^2*(1-x)^2", 0]}))
    end = time.monotonic()
    done.set()
    thread.join()
    assert sum(begin < t < end for t in counts) > 3


#: What is interrupted, and when: it prints a line when it is there.
INTERRUPTED = {
    "set-up": "so.solve(large, local_solver='dense', progress=say)",
    "solve": "so.solve(small, method='vcycle', rtol=1e-30, max_iterations=1000000, progress=say)",
    "set-up in Python functions": "so.solve(slow, progress=say)",
    "system": "say('system'); so.LinearSystem(large, local_solver='dense')",
}


@pytest.mark.parametrize("what", INTERRUPTED)
def test_ctrl_c_ends_whatever_takes_long(what):
    script = f"""
import signal, sys, time
import solenoid as so
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
small = so.Problem(so.Mesh.box(cells=(1, 1), refine=6), velocity={{"ymax": ["16*x^2*(1-x)^2", 0]}})
large = so.Problem(so.Mesh.box(cells=(2, 2, 2), refine=3), order=3, velocity={{"ymax": ["x*(1-x)*z*(1-z)", 0, 0]}})
def sleepy(points):
    time.sleep(0.1)
    return 0 * points
slow = so.Problem(so.Mesh.box(cells=(1, 1), refine=7), force=sleepy)
def say(stage, fraction=0, text=""):
    print(stage, flush=True)
try:
    {INTERRUPTED[what]}
except KeyboardInterrupt:
    so.solve(small)  # nothing is left of it
    sys.exit(42)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        while process.stdout.readline().strip() != what.split()[0]:
            assert process.poll() is None
        time.sleep(0.1)  # the shortest of them, a system of order 3 with dense local solvers, takes 2 s
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 42
        assert time.monotonic() - begin < 10  # with a solve, and on a machine with other things to do


def test_a_handler_that_does_not_raise_ends_nothing(cavity):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        assert so.solve(cavity.replace(refine=6)).converged
        assert seen
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_script_ends_silently():
    script = """
import solenoid as so
problem = so.Problem(so.Mesh.box((1, 1), refine=2), mass=1, force=lambda points: points)
solution, A = so.solve(problem), so.LinearSystem(problem).operator()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


def test_info():
    info = so.info()
    assert info["version"] == so.__version__
    assert 2 in info["orders"]["2D"]
    assert "cpu" in info["devices"][0]
    assert "version" in repr(info)
