#!/usr/bin/env python3
"""The program under mpirun: exit codes and messages of errors, a rank that dies, VTU pieces, studies, bound ranks.

program_test.py MPIEXEC PROGRAM    exit status 1 if something is not as it should be
"""

import array
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

MPIEXEC, PROGRAM = sys.argv[1:]
ENVIRONMENT = os.environ | {
    "OMPI_MCA_plm": "isolated",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
# With refine = 4 more cells than what is the same on all ranks, 4096.
FLOW = """[mesh]
cells = [5, 5]
refine = REFINE
[time]
end = 0.06
step = 0.02
[physics]
viscosity = 0.1
convection = true
[boundary]
ymax = {velocity = ["1 + t", 0]}
[output]
vtu = true
every = 0.03
checkpoint = 0.02
history = "history.csv"
"""

CASE = """[mesh]
cells = [5, 4]
refine = 4
[element]
order = ORDER
[physics]
force = ["sin(3*x)*y", "x*x"]
[boundary]
xmax = {outflow = true}
[output]
vtu = true
"""
# Voxels are the same on all ranks; with refine = 1 the cells are shared.
SPHERES = """[mesh]
image = {generate = "grains", shape = [10, 8, 8], porosity = 0.6, radius = 2, voxel = 1e-6}
refine = REFINE
[element]
order = ORDER
[permeability]
sides = "SIDES"
mac = false
[output]
vti = true
picture = "speed.png"
"""
wrong = []


def command(ranks, *arguments, launcher=()):
    return [MPIEXEC, "-n", str(ranks), "--oversubscribe", *launcher, PROGRAM, *map(str, arguments)]


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)


def expect(good, what, result=None):
    if not good:
        wrong.append(what + ("" if result is None else f": exit {result.returncode}\n{result.stdout}{result.stderr}"))


def children_of(parent):
    """Processes that another one started, in the order of their numbers."""
    children = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(fields[1]) == parent:
            children.append(int(stat.parent.name))
    return sorted(children)


def arrays(file):
    """The arrays of a VTU file by name, in the order in which it declares them."""
    data = file.read_bytes()
    head, _, rest = data.partition(b'<AppendedData encoding="raw">')
    start = rest.index(b"_") + 1
    result = {}
    for kind, name, offset in re.findall(rb'type="(\w+)" Name="(\w+)"[^>]*?offset="\s*(\d+)\s*"', head):
        at = start + int(offset)
        blocks, _, _ = struct.unpack_from("<3Q", rest, at)
        sizes = struct.unpack_from(f"<{blocks}Q", rest, at + 24)
        at += 24 + 8 * blocks
        raw = b""
        for size in sizes:
            raw += zlib.decompress(rest[at:at + size])
            at += size
        if kind == b"Float64":
            result[name.decode()] = array.array("d", raw)
    return result


def cells(files, nodes):
    """Coordinates, velocities and pressures of cells, sorted by where they are."""
    found = []
    for file in files:
        of_file = arrays(file)
        points, velocity, pressure = (of_file[name] for name in ("Points", "velocity", "pressure"))
        for i in range(0, len(pressure), nodes):
            found.append((list(points[3 * i:3 * (i + nodes)]), list(velocity[3 * i:3 * (i + nodes)]),
                          list(pressure[i:i + nodes])))
    return sorted(found, key=lambda cell: [round(x, 9) for x in cell[0]])


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    orders = run(PROGRAM, "info", "--support").stdout
    order = 2 if "2" in re.search(r"stokes 2D on cpu: (.*)", orders)[1].split(", ") else 1
    case = folder / "flow.toml"
    case.write_text(CASE.replace("ORDER", str(order)))
    solve = ["solve", case, "--device", "cpu", "--threads", "1"]

    serial = run(PROGRAM, *map(str, solve), "--quiet", "--output", str(folder / "one"), "--precision", "double")
    expect(serial.returncode == 0, "one process", serial)
    shared = run(*command(3, *solve, "--output", folder / "three", "--precision", "double"))
    expect(shared.returncode == 0, "three ranks", shared)
    expect(len(re.findall(r"^unknowns", shared.stdout, re.MULTILINE)) == 1, "one table", shared)
    index = (folder / "three/flow.pvtu").read_text()
    pieces = re.findall(r'<Piece Source="([^"]+)"/>', index)
    expect(pieces == [f"flow_{rank}.vtu" for rank in range(3)], f"pieces {pieces}")
    nodes = (order + 2) ** 2
    one = cells([folder / "one/flow.vtu"], nodes)
    three = cells([folder / "three" / piece for piece in pieces], nodes)
    expect(len(one) == 80 * 64 and len(three) == len(one), f"{len(one)} and {len(three)} cells")
    largest = max(abs(value) for cell in one for value in cell[1] + cell[2])
    difference = max(abs(a - b) for x, y in zip(one, three) for p, q in zip(x, y) for a, b in zip(p, q))
    expect(difference < 1e-6 * largest, f"VTU files differ by {difference} of {largest}")

    # Solutions that are saved are those of any number of ranks.
    saved = [folder / "of_three.h5", folder / "of_one.h5"]
    steps = [(3, "--save", saved[0]), (1, "--start-from", saved[0], "--save", saved[1]), (2, "--start-from", saved[1])]
    for ranks, *options in steps:
        result = run(*command(ranks, *solve, "--precision", "double", "--json", folder / "result.json", *options))
        report = json.loads((folder / "result.json").read_text()) if result.returncode == 0 else {}
        started = "--start-from" in options
        expect(report.get("iterations", -1) == 0 if started else report.get("iterations", 0) > 0,
               f"{ranks} ranks, {options}: {report.get('iterations')} iterations", result)

    # A small flow in time, which every rank has all of, and a larger one: both go on to the same bits.
    for refine in 2, 4:
        if order != 2:
            break
        flow = folder / f"time_{refine}.toml"
        flow.write_text(FLOW.replace("REFINE", str(refine)))
        whole, rest = folder / f"whole_{refine}", folder / f"rest_{refine}"
        options = ["--threads", "1", "--save"]
        result = run(*command(2, "solve", flow, "--output", whole, *options, whole / "flow.h5"))
        expect(result.returncode == 0, "a flow in time", result)
        pieces = re.findall(r'<Piece Source="([^"]+)"/>', (whole / f"time_{refine}_0001.pvtu").read_text())
        expect(all((whole / piece).exists() for piece in pieces) and pieces, f"pieces {pieces}")
        checkpoint = min(whole.glob("*_checkpoint_*.h5"))
        result = run(*command(2, "restart", checkpoint, "--output", rest, "--save", rest / "flow.h5"))
        expect(result.returncode == 0, "a restart", result)
        expect((whole / "flow.h5").read_bytes() == (rest / "flow.h5").read_bytes(), "other bits after a restart")

    # Permeabilities: ranks have flows of their own, or share the cells of what is refined.
    spheres = folder / "spheres.toml"
    orders_3d = re.search(r"stokes 3D on cpu: (.*)", orders)[1].split(", ")
    for element, refine, sides in (('"mac"', 0, "periodic"), (2, 0, "wall"), (1, 1, "periodic")):
        if (0 if element == '"mac"' else element) not in map(int, orders_3d):
            continue
        what = f"permeability, order {element}, refine {refine}, {sides}"
        text = SPHERES.replace("ORDER", str(element)).replace("REFINE", str(refine)).replace("SIDES", sides)
        spheres.write_text(text)
        results = []
        for ranks in (1, 2, 3):
            out = folder / f"of_{ranks}"
            result = run(*command(ranks, "permeability", spheres, "--output", out, "--threads", 1, "--device", "cpu"))
            expect(result.returncode == 0 and result.stdout.count("porosity") == 1, f"{what}: {ranks} ranks", result)
            results.append(json.loads((out / "result.json").read_text()))
            for direction in "xyz":
                for file in (f"spheres_{direction}.vti", f"speed_{direction}.png"):
                    expect((out / file).exists() and file in result.stdout, f"{what}: {file}", result)
            shutil.rmtree(out)
        one, *others = results
        largest = max(abs(value) for row in one["permeability"] for value in row if value is not None)
        for other in others:
            rows = zip(one["permeability"], other["permeability"])
            pairs = [pair for row in rows for pair in zip(*row)]
            expect(all((a is None) == (b is None) for a, b in pairs), f"{what}: entries {pairs}")
            difference = max(abs(a - b) for a, b in pairs if a is not None)
            expect(difference < 1e-6 * largest, f"{what}: tensors differ by {difference} of {largest}")
            expect(one["element"]["dofs"] == other["element"]["dofs"], f"{what}: unknowns")
            flows = [[flow["direction"] for flow in result["element"]["flows"]] for result in (one, other)]
            expect(flows[0] == flows[1] == list("xyz"), f"{what}: flows {flows}")

    def once(result, code, message, what):
        text = result.stdout + result.stderr
        expect(result.returncode == code and text.count(message) == 1, what, result)

    once(run(*command(2, *solve, "--set", "mesh.no_such_key=1")), 2, "unknown key", "an unknown key")
    once(run(*command(2, *solve, "--set", 'physics.force=["log(0.9-y)", 0]')), 2, "must be finite",
         "a force that is not finite on one rank")
    result = run(*command(2, *solve, "--quiet", "--set", "solver.max_iterations=1"))
    expect(result.returncode == 1, "not converged", result)
    different = command(1, *solve) + [":", "-n", "1", PROGRAM, *map(str, solve), "--set", "physics.viscosity=2"]
    once(run(*different), 2, "rank 1 has another case", "ranks with different options")

    # Studies of several ranks find what those of one find.
    def study(ranks, name, *options):
        file = folder / f"{name}_{ranks}.json"
        words = ["study", name, "--dim", 2, "--orders", order, *solve[2:], "--json", file, *options]
        result = run(*command(ranks, *words)) if ranks > 1 else run(PROGRAM, *map(str, words))
        expect(result.returncode == 0, f"study {name}, {ranks} ranks", result)
        found = json.loads(file.read_text()) if result.returncode == 0 else {}
        if ranks > 1:
            expect((found.get("ranks"), found.get("transport")) == (ranks, "cpu"), f"ranks of the study {name}", result)
        else:
            expect("ranks" not in found, f"no ranks in the study {name}", result)
        return found

    def same(name, keys, *options):
        rows = [study(ranks, name, *options).get("rows", []) for ranks in (1, 2)]
        one, two = ([[row[key] for key in keys] for row in some] for some in rows)
        expect(len(one) > 0 and one == two, f"study {name}: {keys} are {one} and {two}")
        return rows

    one, two = same("iterations", ("dofs", "load", "iterations"), "--levels", "3,8")
    differences = [abs(a["fractional_iterations"] - b["fractional_iterations"]) for a, b in zip(one, two)]
    expect(max(differences, default=1.0) < 0.01, f"fractional iterations differ by {differences}")
    same("throughput", ("dofs", "iterations"), "--sizes", 16384 * 3 * (order + 1) ** 2)
    one, two = same("capacity", ("dofs", "boxes", "refine"), "--size", 6e5)
    for a, b in list(zip(one, two))[-1:]:
        expect(b["bytes_used"] < 0.8 * a["bytes_used"] and b["bytes_per_dof"] > a["bytes_per_dof"],
               f"memory of each rank, and of all together: {a} and {b}")
    once(run(*command(2, "study", "convergence")), 2, "for several ranks", "a study that is for one process")

    # Ranks that are bound to fewer cores than they could use are told so, once; others are not.
    def warns(expected, what, *options, launcher):
        result = run(*command(2, *solve[:4], *options, launcher=launcher))
        told = result.stderr.count("ranks are bound to too few cores")
        expect(result.returncode == 0 and told == (1 if expected else 0), f"{what}: told {told} times", result)
        return result.stdout + result.stderr

    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1 and shutil.which("taskset"):
        pinned, pinned_to_other = (["--bind-to", "none", "taskset", "-c", str(core)] for core in cores[:2])
        text = warns(True, "two ranks on a core", "--threads", 1, launcher=pinned)
        for name in (f"rank 0 to core {cores[0]} of", f"rank 1 to core {cores[0]} of", "pe=1", "--bind-to none"):
            expect(name in text, f"'{name}' is in: {text}")
        text = warns(True, "a thread too many", "--threads", 2, launcher=pinned_to_other)
        expect("could use 2 of its own" in text and "pe=2" in text, f"2 threads each: {text}")
        warns(False, "quiet", "--threads", 2, "--quiet", launcher=pinned)
        for threads in (1, len(cores)):
            warns(False, f"not bound, {threads} threads", "--threads", threads, launcher=["--bind-to", "none"])
        text = warns(False, "not bound", launcher=["--bind-to", "none"])
        expect(f"cpu, {len(cores) // 2} thread" in text, f"two ranks share {len(cores)} cores: {text}")
        alone = run("taskset", "-c", str(cores[0]), PROGRAM, *map(str, solve[:4]))
        expect("cpu, 1 thread," in alone.stdout, "a process on a core", alone)
        words = [MPIEXEC, "--oversubscribe", "--bind-to", "none"]
        for core in cores[:2]:
            words += ["-n", "1", "taskset", "-c", core, PROGRAM, *solve[:4], "--threads", 1, ":"]
        result = run(*map(str, words[:-1]))
        expect(result.returncode == 0 and "bound" not in result.stderr, "a core for each", result)

    long = command(2, *solve, "--quiet", "--set", "mesh.refine=7", "--set", "solver.rtol=1e-15")
    process = subprocess.Popen(long, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
    deadline = time.monotonic() + 20
    children = []
    while len(children) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
        children = children_of(process.pid)
    time.sleep(1.0)
    os.kill(children[-1], signal.SIGKILL)
    died = time.monotonic()
    output, _ = process.communicate(timeout=30)
    expect(process.returncode != 0 and time.monotonic() - died < 10, "a rank that dies ends all")
    expect("rank 1" in output, f"a line names the rank that died:\n{output}")

if wrong:
    sys.exit("\n\n".join(wrong))
