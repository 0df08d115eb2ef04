#!/usr/bin/env python3
"""The turbulent channel, cases/time/channel.toml, out of its history and profile:

docs/channel.py FOLDER COMMIT   stores docs/results/cuda_channel.json: means over the time of the averages
docs/channel.py                 writes docs/images/time/channel.png from it
"""

import json
import math
import sys
from datetime import date
from pathlib import Path

from generated import DOCS, rows_of

STORED = DOCS / "results/cuda_channel.json"
VISCOSITY = 1 / 2800
# Moser, Kim and Mansour (1999), https://doi.org/10.1063/1.869966, chan180: largest entries of their profiles.
PUBLISHED = {"u_tau": 0.0643, "centre": 18.301,
             "largest": {"uu": {"y": 15.281, "value": 2.658}, "vv": {"y": 52.171, "value": 0.836},
                         "ww": {"y": 35.053, "value": 1.087}, "uv": {"y": 30.019, "value": 0.723}}}


def fluctuation(row, name):
    """The root of a mean square: next to walls, where it is next to nothing, its projection may be below zero."""
    return math.sqrt(max(0.0, row[name]))


def store(folder, commit):
    history = rows_of(folder / "history.csv")
    result = json.loads((folder / "result.json").read_text())
    profile = rows_of(next(folder.glob("*_profile.csv")))
    start = result["settings"]["average"]["start"]
    averaged = [row for row in history if row["time"] > start]
    gradient = sum(row["gradient_x"] * row["length"] for row in averaged) / sum(row["length"] for row in averaged)
    u_tau = math.sqrt(gradient)  # half of the distance is 1

    def both(name, y, odd):
        """Of both halves, the upper one mirrored."""
        other = next(row for row in profile if abs(row["y"] + y) < 1e-9)
        return 0.5 * (next(row for row in profile if row["y"] == y)[name] + (-1 if odd else 1) * other[name])

    rows = []
    for y in [row["y"] for row in profile if row["y"] < 0]:
        rows.append({"y": (1 + y) * u_tau / VISCOSITY, "u": both("u_x", y, False) / u_tau,
                     "uu": both("r_xx", y, False) / gradient, "vv": both("r_yy", y, False) / gradient,
                     "ww": both("r_zz", y, False) / gradient, "uv": both("r_xy", y, True) / gradient})
    STORED.write_text(json.dumps({
        "case": "cases/time/channel.toml",
        "commit": commit, "date": date.today().isoformat(), "device": result["device"], "dofs": result["dofs"],
        "steps": result["steps"], "cycles": result["iterations"], "seconds": result["time"],
        "averaged": [start, history[-1]["time"]], "divergence_max": max(row["divergence_max"] for row in history),
        "u_tau": u_tau, "re_tau": u_tau / VISCOSITY,
        "largest": {name: max(({"y": row["y"], "value": fluctuation(row, name)} for row in rows),
                              key=lambda row: row["value"]) for name in ("uu", "vv", "ww")}
        | {"uv": max(({"y": row["y"], "value": -row["uv"]} for row in rows), key=lambda row: row["value"])},
        "centre": rows[-1]["u"], "published": PUBLISHED,
        "rows": rows}, indent=1) + "\n")


def draw():
    import matplotlib.pyplot as plt
    stored = json.loads(STORED.read_text())
    rows = stored["rows"]
    y = [row["y"] for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.semilogx(y, [row["u"] for row in rows], ".", markersize=4, label="$U^+$")
    near = [0.1 * 1.1**i for i in range(52)]
    far = [20 * 1.1**i for i in range(24)]
    left.semilogx(near, near, color="tab:gray", linewidth=1, label="$y^+$")
    left.semilogx(far, [math.log(at) / 0.41 + 5.5 for at in far], "--", color="tab:gray", linewidth=1,
                  label=r"$\ln y^+ / 0.41 + 5.5$")
    left.set(xlabel="$y^+$", ylabel="mean velocity", xlim=(0.5, 200), ylim=(0, 20))
    left.legend(fontsize=9)
    for name, label in (("uu", "$u'$"), ("vv", "$v'$"), ("ww", "$w'$")):
        right.plot(y, [fluctuation(row, name) for row in rows], label=label, linewidth=1.5)
    right.plot(y, [-row["uv"] for row in rows], label="$-\\overline{u' v'}$", linewidth=1.5)
    right.set(xlabel="$y^+$", ylabel="fluctuations", xlim=(0, 180), ylim=(0, 3))
    right.legend(fontsize=9)
    figure.savefig(DOCS / "images/time/channel.png", dpi=110)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        store(Path(sys.argv[1]), sys.argv[2])
    elif len(sys.argv) == 1:
        draw()
    else:
        sys.exit(__doc__)
