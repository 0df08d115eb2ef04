#!/usr/bin/env python3
"""The Taylor-Green vortex at Re = 1600, cases/time/taylor_green_1600.toml, out of its history and a spectrum:

docs/taylor_green.py FOLDER SPECTRUM COMMIT   stores docs/results/cuda_taylor_green.json: the history of FOLDER at equal
                                              distances, and SPECTRUM, {"wavenumber": [...], "energy": [...]}
docs/taylor_green.py                          writes docs/images/time/taylor_green_1600.png from it
"""

import json
import math
import sys
from datetime import date
from pathlib import Path

from generated import DOCS, rows_of

STORED = DOCS / "results/cuda_taylor_green.json"
VISCOSITY = 1 / 1600
VOLUME = (2 * math.pi) ** 3
INTERVAL = 0.1  # of stored times


def store(folder, spectrum, commit):
    history = rows_of(folder / "history.csv")
    rows = []
    for before, now, after in zip(history, history[1:], history[2:]):
        loss = (before["kinetic_energy"] - after["kinetic_energy"]) / (after["time"] - before["time"])
        rows.append({"time": now["time"], "energy": now["kinetic_energy"] / VOLUME, "loss": loss / VOLUME,
                     "dissipation": now["dissipation"] / VOLUME,
                     "of_enstrophy": 2 * VISCOSITY * now["enstrophy"] / VOLUME})
    rows = rows[20:]  # after the first steps, which are short
    result = json.loads((folder / "result.json").read_text())
    kept = [next(row for row in rows if row["time"] >= i * INTERVAL) for i in range(1, int(rows[-1]["time"] / INTERVAL))]
    STORED.write_text(json.dumps({
        "case": "cases/time/taylor_green_1600.toml",
        "commit": commit, "date": date.today().isoformat(), "device": result["device"], "dofs": result["dofs"],
        "steps": result["steps"], "cycles": result["iterations"], "seconds": result["time"],
        "divergence_max": max(row["divergence_max"] for row in history),
        "largest": {name: max(rows, key=lambda row: row[name]) for name in ("loss", "dissipation", "of_enstrophy")},
        "rows": kept, "spectrum_at": 8.9, "spectrum": json.loads(spectrum.read_text())}, indent=1) + "\n")


def draw():
    import matplotlib.pyplot as plt
    stored = json.loads(STORED.read_text())
    rows = stored["rows"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    time = [row["time"] for row in rows]
    for name, label, style in (("loss", "$-dE/dt$", "-"), ("dissipation", r"$\nu \int |\nabla u|^2$", "--"),
                               ("of_enstrophy", r"$2 \nu Z$", ":")):
        left.plot(time, [row[name] for row in rows], style, label=label, linewidth=1.5)
    left.set(xlabel="time", ylabel="per unit of volume and time", ylim=(0, None), xlim=(0, time[-1]))
    energy = left.twinx()
    energy.plot(time, [row["energy"] for row in rows], color="tab:gray", linewidth=1)
    energy.set(ylim=(0, 0.14), ylabel="energy E per unit of volume (grey)")
    left.legend(loc=(0.04, 0.42), fontsize=9)
    wavenumber, spectrum = stored["spectrum"]["wavenumber"], stored["spectrum"]["energy"]
    shown = [(k, e) for k, e in zip(wavenumber, spectrum) if 2 <= k <= 128]
    right.loglog(*zip(*shown), linewidth=1.5, label=f"t = {stored['spectrum_at']}")
    guide = [k for k, _ in shown if 4 <= k <= 30]
    right.loglog(guide, [0.06 * k ** (-5 / 3) for k in guide], color="tab:gray", linewidth=1, label="$k^{-5/3}$")
    right.set(xlabel="wavenumber", ylabel="energy in the shell", ylim=(1e-7, 0.1))
    right.legend(fontsize=9)
    figure.savefig(DOCS / "images/time/taylor_green_1600.png", dpi=110)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        store(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    elif len(sys.argv) == 1:
        draw()
    else:
        sys.exit(__doc__)
