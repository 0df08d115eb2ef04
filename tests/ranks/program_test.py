#!/usr/bin/env python3
"""The program under mpirun: exit codes and messages of errors, a rank that dies, VTU pieces.

program_test.py MPIEXEC PROGRAM    exit status 1 if something is not as it should be
"""

import array
import json
import os
import re
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
# 16384 cells: more than what is the same on all ranks.
CASE = """[mesh]
cells = [1, 1]
refine = 7
[element]
order = ORDER
[physics]
force = ["sin(3*x)*y", "x*x"]
[boundary]
xmax = {outflow = true}
[output]
vtu = true
"""
wrong = []


def command(ranks, *arguments):
    return [MPIEXEC, "-n", str(ranks), "--oversubscribe", PROGRAM, *map(str, arguments)]


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
    order = int(re.search(r"stokes 2D on cpu: .*?([12])", orders)[1])
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
    expect(len(one) == 128 * 128 and len(three) == len(one), f"{len(one)} and {len(three)} cells")
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

    long = command(2, *solve, "--quiet", "--set", "mesh.refine=9", "--set", "solver.rtol=1e-15")
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
