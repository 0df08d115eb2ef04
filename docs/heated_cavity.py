#!/usr/bin/env python3
"""The side-heated square cavity of python/examples/heated_cavity.py, with the Python package and matplotlib:

docs/heated_cavity.py   marches to steady flows, stores docs/results/cpu_heated_cavity.json and writes
                        docs/images/time/heated_cavity.png
"""

import json
import runpy
import subprocess
from datetime import date

import matplotlib.pyplot as plt
import numpy as np
from generated import DOCS

#: Rayleigh number: refinements.
FLOWS = {1e4: 4, 1e5: 5, 1e6: 6}


def draw(cavity, file):
    """Temperature, and the stream function, which is the flux through faces up to a corner of the cells."""
    n = len(cavity.temperature)
    centres = (np.arange(n) + 0.5) / n
    corners = np.linspace(0, 1, n + 1)
    stream = np.zeros((n + 1, n + 1))
    stream[:, 1:] = np.cumsum(cavity.flow.face_fluxes()[0], axis=1)
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
    image = left.pcolormesh(corners, corners, cavity.temperature.T, cmap="coolwarm", vmin=0, vmax=1, rasterized=True)
    left.contour(centres, centres, cavity.temperature.T, levels=np.arange(0.05, 1, 0.1), colors="black", linewidths=0.6)
    figure.colorbar(image, ax=left, shrink=0.8)
    left.set_title("temperature", fontsize=10)
    right.contour(corners, corners, stream.T, levels=13, colors="tab:blue", linewidths=0.8, linestyles="solid")
    right.set_title("streamlines", fontsize=10)
    for axes in left, right:
        axes.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), xticks=[0, 1], yticks=[0, 1])
    figure.savefig(file, dpi=100)


def main():
    example = runpy.run_path(str(DOCS.parent / "python/examples/heated_cavity.py"))
    flows = []
    for rayleigh, refine in FLOWS.items():
        cavity = example["HeatedCavity"](rayleigh, refine, device="cpu", threads=1)
        nusselt = cavity.march(tolerance=1e-3)
        across, up = cavity.largest_velocities()
        along_x, along_y = cavity.flow.face_fluxes()
        flows.append({
            "rayleigh": rayleigh,
            "cells": len(cavity.temperature),
            "steps": cavity.flow.steps,
            "end_time": cavity.flow.time,
            "nusselt": nusselt,
            "nusselt_benchmark": example["BENCHMARK"][rayleigh],
            "largest_across": across,
            "largest_up": up,
            "largest_flux": max(abs(along_x).max(), abs(along_y).max()),
            "largest_divergence": abs(np.diff(along_x, axis=0) + np.diff(along_y, axis=1)).max(),
        })
        print(f"Ra = {rayleigh:g}: Nusselt number {nusselt:.4f} after {cavity.flow.steps} steps", flush=True)
    draw(cavity, DOCS / "images/time/heated_cavity.png")
    head = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout
    stored = {"command": "docs/heated_cavity.py", "date": str(date.today()), "commit": commit.strip(), "flows": flows}
    (DOCS / "results/cpu_heated_cavity.json").write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
