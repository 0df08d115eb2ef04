#!/usr/bin/env python3
"""What flows in time cost with elements of order 1 to 4, for the same error.

docs/orders.py PROGRAM   marches cases/time/vortices.toml and beltrami.toml on finer and finer meshes, on one thread, and
                         stores docs/results/cpu_orders.json: each run, and the least processor time for each unit of
                         simulated time in which an order has an error, between the runs interpolated
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from generated import DOCS

CASES = DOCS.parent / "cases/time"
ORDERS = (1, 2, 3, 4)
STEPS = (0.5, 0.25)  # cfl
#: Dimension, refinements of the coarsest mesh, seconds after which there is no finer one.
FLOWS = {"vortices": (2, 2, 12), "beltrami": (3, 1, 20)}
ERRORS = (1e-2, 1e-3, 1e-4, 1e-5)


def run(program, flow, order, refine, cfl):
    """The error is that of the velocity at the end, relative to the velocity."""
    settings = {"element.order": order, "mesh.refine": refine, "time.cfl": cfl}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        command = [program, "solve", CASES / f"{flow}.toml", "--device", "cpu", "--threads", "1", "--quiet", "--json", file]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"failed: {' '.join(map(str, command))}")
        result = json.loads(file.read_text())
    seconds = usage.ru_utime + usage.ru_stime
    return {"flow": flow, "order": order, "cells": 2**refine, "cfl": cfl, "dofs": result["dofs"],
            "steps": result["steps"], "cycles": result["iterations"],
            "error": result["error"]["velocity_l2"] / math.sqrt(2 * result["kinetic_energy"]),
            "seconds": seconds, "seconds_per_time": seconds / result["end_time"]}


def runs(program):
    for flow, (dim, refine, most) in FLOWS.items():
        for order in ORDERS:
            for cfl in STEPS:
                row = {"seconds": 0.0, "error": 1.0}
                finer = refine
                # The next mesh takes 2^(dim + 1) times as long.
                while row["seconds"] * 2**(dim + 1) < 3 * most and row["error"] > ERRORS[-1]:
                    row = run(program, flow, order, finer, cfl)
                    finer += 1
                    print(row, flush=True)
                    yield row


def cost(rows, error):
    """The least of all lengths of steps, between neighbouring meshes by powers; that of the coarsest mesh where it has no
    larger error. None if no run is so accurate."""
    least = []
    for cfl in STEPS:
        line = [row for row in rows if row["cfl"] == cfl]
        if line[0]["error"] <= error:
            least.append(line[0]["seconds_per_time"])
        for coarse, fine in zip(line, line[1:]):
            if not coarse["error"] > error >= fine["error"]:
                continue
            share = math.log(coarse["error"] / error) / math.log(coarse["error"] / fine["error"])
            ratio = fine["seconds_per_time"] / coarse["seconds_per_time"]
            least.append(coarse["seconds_per_time"] * ratio**share)
    return min(least, default=None)


def costs(rows):
    return [{"flow": flow, "error": error,
             "seconds_per_time": [cost([row for row in rows if (row["flow"], row["order"]) == (flow, order)], error)
                                  for order in ORDERS]}
            for flow in FLOWS for error in ERRORS]


def main(program):
    rows = list(runs(program))
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True).stdout
    stored = {"command": "docs/orders.py PROGRAM", "date": str(date.today()), "commit": commit.strip(),
              "orders": ORDERS, "costs": costs(rows), "rows": rows}
    (DOCS / "results/cpu_orders.json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
