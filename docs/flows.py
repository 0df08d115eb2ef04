#!/usr/bin/env python3
"""The flows of cases/time and their figures.

docs/flows.py PROGRAM FOLDER   runs those that have not left their files in FOLDER, stores docs/results/cpu_flows.json
"""

import csv
import json
import math
import subprocess
import sys
from datetime import date
from pathlib import Path

from generated import DOCS

CASES = DOCS.parent / "cases/time"


def columns(file):
    with open(file, newline="") as table:
        rows = list(csv.DictReader(table))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def energy_kept(folder):
    result = json.loads((folder / "result.json").read_text())
    return {"energy_ratio": result["kinetic_energy"] / columns(folder / "history.csv")["kinetic_energy"][0]}


def largest_loss(folder):
    """Of energy for each unit of volume: the largest difference quotient, after the first steps."""
    history = columns(folder / "history.csv")
    time, energy = history["time"], history["kinetic_energy"]
    loss, at = max(((energy[i - 1] - energy[i + 1]) / (time[i + 1] - time[i - 1]), time[i])
                   for i in range(20, len(time) - 1))
    return {"loss": loss / (2 * math.pi) ** 3, "at": at}


def extrema(folder):
    u = columns(folder / "u.csv")["u_x"]
    v = columns(folder / "v.csv")["u_y"]
    return {"u_min": min(u), "v_max": max(v), "v_min": min(v)}


def street(folder):
    """In the last third: the Strouhal number, from the times at which the velocity across the flow at the probe grows
    through its mean; the drag's mean and the root of the lift's mean square, as coefficients."""
    history = columns(folder / "history.csv")
    first = next(i for i, t in enumerate(history["time"]) if t > history["time"][-1] * 2 / 3)
    late = {name: values[first:] for name, values in history.items()}
    time, u = late["time"], late["probe0_u_y"]

    def mean(values):
        return sum(value * length for value, length in zip(values, late["length"])) / sum(late["length"])

    middle = sum(u) / len(u)
    crossings = [time[i] + (middle - u[i]) / (u[i + 1] - u[i]) * (time[i + 1] - time[i])
                 for i in range(len(u) - 1) if u[i] < middle <= u[i + 1]]
    return {"strouhal": (len(crossings) - 1) / (crossings[-1] - crossings[0]), "periods": len(crossings) - 1,
            "drag": 2 * mean(late["holes[0]_force_x"]),
            "lift": 2 * math.sqrt(mean([lift**2 for lift in late["holes[0]_force_y"]]))}


def shear_turns(folder, wall):
    """Where the shear at a wall of the channel changes its sign, from lines at the distances 0, d, 2 d: the derivative of the
    parabolas through them. Not within a tenth of the height of the step of the ends of the wall."""
    lines = [columns(folder / f"{wall}_{i}.csv") for i in range(3)]
    x = lines[0]["x"]
    shear = [4 * b - 3 * a - c for a, b, c in zip(*(line["u_x"] for line in lines))]
    return [x[i] + (x[i + 1] - x[i]) * shear[i] / (shear[i] - shear[i + 1]) for i in range(len(x) - 1)
            if x[i] > 0.05 and x[i + 1] < x[-1] - 0.05 and (shear[i] < 0) != (shear[i + 1] < 0)]


def eddies(folder):
    """The last change at the lower wall is where the flow reattaches: smaller eddies may sit in the corner."""
    upper = shear_turns(folder, "upper")
    return {"reattachment": shear_turns(folder, "lower")[-1], "upper_eddy": [upper[0], upper[-1]]}


FLOWS = {
    "kovasznay": lambda folder: {},
    "shear_layer": energy_kept,
    "taylor_green_3d": largest_loss,
    "cavity": extrema,
    "square": street,
    "backward_step": eddies,
}


def main(program, work):
    flows = {}
    for name, figures in FLOWS.items():
        folder = Path(work) / name
        if not (folder / "result.json").exists():
            subprocess.run([program, "solve", CASES / f"{name}.toml", "--device", "cpu", "--output", folder], check=True)
        result = json.loads((folder / "result.json").read_text())
        flows[name] = {key: result[key] for key in ("dofs", "steps", "end_time", "iterations", "error", "divergence_max")}
        flows[name] |= figures(folder)
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True).stdout
    stored = {"command": "docs/flows.py PROGRAM FOLDER", "date": str(date.today()), "commit": commit.strip(),
              "flows": flows}
    (DOCS / "results/cpu_flows.json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
