"""Compile times against a budget: `compile_budget.py BUILD COMPILER [--write]`.

cmake/compile_timer has left in BUILD/compile_times how much CPU time each object took. Sums over the lines of
compile_budget.json are divided by the time of compile_reference.cpp, so that they mean the same on every machine, and
must stay below the budget. That file was compiled with the build and is compiled now; the longer time counts. A line counts if all of its objects were compiled in this build, without
ccache. --write makes the lines that count anew, with a fifth to spare, or half for CUDA code, on a machine that does
nothing else. Exit status 77: nothing to be judged.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
BUDGET = HERE / "compile_budget.json"
SPARE = 1.2
SPARE_OF_CUDA = 1.5  # what nvcc takes beside GCC differs by a third from machine to machine
SMALL = 0.2  # on top: some lines are a few seconds

REFERENCE = r"CMakeFiles/compile_reference\.dir/"
#: Which line an object belongs to: the first pattern that is found in its name. None: no line of the budget.
LINES = [
    (r"engine/cpu/kernels/v3_points", "CPU kernels, at Gauss points"),
    (r"engine/cpu/kernels/v3_varying", "CPU kernels, coefficients by cell"),
    (r"engine/cpu/kernels/v3_sheared", "CPU kernels, sheared cells"),
    (r"engine/cpu/kernels/v3_\w+_k(\d)_", "CPU kernels, k = {}"),
    (r"engine/cpu/kernels/v4_", None),  # as v3, for as many orders as a build wants
    (r"engine/cpu/kernels/(?:native|baseline)_", None),  # for this machine alone
    (r"engine/cuda/kernels/(?:sheared_)?convection_", "CUDA kernels, convection"),
    (r"engine/cuda/kernels/(?:sheared_)?point_viscosity_", "CUDA kernels, viscosity at points"),
    (r"engine/cuda/kernels/varying_", "CUDA kernels, coefficients by cell"),
    (r"engine/cuda/kernels/sheared_", "CUDA kernels, sheared cells"),
    (r"engine/cuda/kernels/corrections_", "CUDA kernels, corrections"),
    (r"engine/cuda/kernels/flow_", "CUDA kernels, flows at points"),
    (r"engine/cuda/kernels/(\d)d_k(\d)\.", "CUDA kernels, {}D, k = {}"),
    (r"src/engine/cuda/(?:\w+/)?\w+\.cu", "CUDA vectors and dense matrices"),
    (r"paper_cuda", "kernels of the paper, CUDA"),
    (r"^tests/fuzz/", "fuzz targets"),
    (r"^tests/", "tests"),
    (r"^studies/", "studies"),
    (r"src/program/", "program"),
    (r"CMakeFiles/solenoid\.dir/", "library"),
    (REFERENCE, None),
]


def line_of(name: str) -> str | None:
    for pattern, line in LINES:
        if found := re.search(pattern, name):
            return line and line.format(*found.groups())
    return None


def objects_of(build: Path) -> dict[str, list[str]]:
    """The objects of each line. CUDA code counts where it is compiled for one architecture, as CI has it."""
    lines = defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["command"].count("--generate-code") > 1:
            continue
        name = re.search(r" -o (\S+)", entry["command"]).group(1)
        if line := line_of(name):
            lines[line].append(name)
    return lines


def seconds_of(times: Path) -> dict[str, float]:
    """The time that each object took, the last time."""
    entries = (entry.split() for entry in times.read_text().splitlines())
    return {name: float(user) + float(system) for _, name, user, system in entries}


def unit(compiler: str, seconds: dict[str, float]) -> float:
    """The time of the reference file: in the build (its objects' `seconds`), or now, as often at once as it compiles."""
    at_once = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times"

        def compile_reference(i: int) -> None:
            command = [compiler, "-std=c++20", "-O3", "-c", HERE / "compile_reference.cpp", "-o", f"{folder}/{i}.o"]
            subprocess.run([HERE.parent / "cmake" / "compile_timer", times, "reference", str(i), *command], check=True)

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(compile_reference, range(3 * at_once)))
        now = statistics.median(seconds_of(times).values())
    in_build = [time for name, time in seconds.items() if re.search(REFERENCE, name)]
    return max(now, statistics.median(in_build)) if in_build else now


def main() -> int:
    build, compiler = Path(sys.argv[1]), sys.argv[2]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    version = re.sub(r"\(.*\)", "", version).rpartition(" ")[2]
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else {"compiler": version, "lines": {}}
    if version != budget["compiler"]:
        print(f"skipped: the budget is that of GCC {budget['compiler']}, not of {version}")
        return 77
    times = build / "compile_times"
    seconds = seconds_of(times) if times.exists() else {}
    whole = {
        line: sum(seconds[name] for name in names)
        for line, names in sorted(objects_of(build).items())
        if all(name in seconds for name in names)
    }
    if not whole:
        print("skipped: nothing was compiled as a whole")
        return 77
    reference = unit(compiler, seconds)
    print(f"{reference:.2f} s of CPU time is 1\n{'':42}{'measured':>10}{'budget':>10}")
    over = []
    for line, total in whole.items():
        measured = total / reference
        if "--write" in sys.argv:
            spare = SPARE_OF_CUDA if "CUDA" in line else SPARE
            budget["lines"][line] = round(spare * measured + SMALL, 1)
        allowed = budget["lines"].get(line, 0.0)
        print(f"{line:42}{measured:10.1f}{allowed:10.1f}")
        if measured > allowed:
            over.append(f"{line}: {measured:.1f}, and the budget has {allowed:.1f}")
    if "--write" in sys.argv:
        BUDGET.write_text(json.dumps(budget, indent=2, sort_keys=True) + "\n")
    for entry in over:
        print(f"OVER THE BUDGET  {entry}: compile less, or write a new line with --write and say why")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
