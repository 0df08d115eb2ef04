#!/usr/bin/env python3
"""Permeabilities of the same images by solenoid and by lattice Boltzmann, on one thread: errors and times.

    pip install lbmpy
    OMP_NUM_THREADS=1 studies/peers/permeability.py build/release/solenoid --json docs/results/cpu_peer_permeability.json

The peer is lbmpy's D3Q19 with two relaxation times ("magic" parameter 3/16, so that K does not depend on the viscosity)
and bounce-back, in C++ that it generates and compiles for this machine. It marches to a steady state: `seconds` are
those after which its K stays within 1 % of the last one, as if it knew that beforehand; neither generating and
compiling the code nor setting up the lattice count. Its lattice is that of the voxels, or with each voxel `cut` into
cut^3 nodes. Those of solenoid have the set-up and the solve to a relative
residual of 1e-6. All seconds are processor time, so that other work on the machine matters less.
The reference is k = 2 refined once, or, where that is too large, not refined; errors are relative to it.
"""

import argparse
import datetime
import json
import pathlib
import resource
import subprocess
import tempfile
import time

import lbmpy
import numpy as np
from lbmpy.boundaries import NoSlip
from lbmpy.lbstep import LatticeBoltzmannStep

#: Largest images whose reference is refined, and largest lattices of the peer.
REFINED = 48
LARGEST = 96


def blobs(n, porosity, feature=4.0):
    """Noise smoothed by a Gaussian, solid above a threshold: periodic."""
    wave = 2 * np.pi * np.fft.fftfreq(n)
    squares = wave[:, None, None] ** 2 + wave[:, None] ** 2 + wave**2
    noise = np.fft.fftn(np.random.default_rng(1).standard_normal((n, n, n)))
    smooth = np.fft.ifftn(noise * np.exp(-squares * feature**2 / 2)).real
    return smooth > np.quantile(smooth, porosity)


def spheres(n, porosity, radius=6.0):
    """Solid spheres at random places that may overlap: periodic."""
    rng = np.random.default_rng(1)
    solid = np.zeros((n, n, n), dtype=bool)
    while solid.mean() < 1 - porosity:
        squares = [((np.arange(n) + 0.5 - at + n / 2) % n - n / 2) ** 2 for at in n * rng.random(3)]
        solid |= squares[0][:, None, None] + squares[1][:, None] + squares[2] <= radius**2
    return solid


def ours(program, solid, order, error="none"):
    """The result file of the flow along x, and the processor time of set-up and solve."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        np.save(folder / "image.npy", solid.astype(np.uint8))
        (folder / "case.toml").write_text(
            '[mesh]\nimage = {file = "image.npy", axes = "xyz", pore = [0]}\n'
            f"[element]\norder = {json.dumps(order)}\n[solver]\nrtol = 1e-6\n"
            f'[permeability]\ndirections = ["x"]\nsides = "periodic"\nmac = false\nerror = "{error}"\n'
        )
        command = [program, "permeability", "case.toml", "--device", "cpu", "--threads", "1", "--quiet", "--json", "-"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = json.loads(done.stdout)
    return result, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Lattice:
    """The flow along x by lattice Boltzmann, from rest."""

    def __init__(self, solid, viscosity):
        self.solid, self.viscosity, self.force = solid, viscosity, 1e-5
        config = lbmpy.LBMConfig(
            stencil=lbmpy.Stencil.D3Q19,
            method=lbmpy.Method.TRT,
            relaxation_rate=1 / (3 * viscosity + 0.5),
            force=(self.force, 0, 0),
            compressible=False,
            zero_centered=True,
        )
        self.step = LatticeBoltzmannStep(
            domain_size=solid.shape, periodicity=(True,) * 3, lbm_config=config, optimization={"openmp": 1}
        )

        def mask(*middles):
            return solid[tuple(np.floor(middle).astype(int) % n for middle, n in zip(middles, solid.shape))]

        self.step.boundary_handling.set_boundary(NoSlip(), mask_callback=mask)
        self.step.run(1)  # compiles

    def permeability(self):
        # lbmpy has the velocity behind the collision, where the force has been added once more; K would depend on the
        # viscosity with it.
        velocity = np.asarray(self.step.velocity[:, :, :])[..., 0] - self.force
        return float(np.where(self.solid, 0.0, velocity).mean() * self.viscosity / self.force)

    def march(self, steps=20, settled=1e-4):
        """(steps, seconds, K) until K changes by less than `settled` in a tenth of all steps."""
        history = [(0, 0.0, 0.0)]
        while True:
            start = time.process_time()
            self.step.run(steps)
            seconds = time.process_time() - start
            history.append((history[-1][0] + steps, history[-1][1] + seconds, self.permeability()))
            before = history[int(0.9 * len(history))][2]
            if len(history) > 20 and abs(history[-1][2] - before) < settled * abs(before):
                return history


def peer(solid, cut):
    """With viscosity 1/6, the quickest of 1/24, 1/12, 1/6 and 1/3 in most cases."""
    fine = solid.repeat(cut, 0).repeat(cut, 1).repeat(cut, 2)
    history = Lattice(fine, 1 / 6).march()
    last = history[-1][2]
    late = max(i for i, (_, _, k) in enumerate(history) if abs(k - last) > 0.01 * abs(last))
    steps, seconds, _ = history[late + 1]
    return {"permeability": last / cut**2, "steps": steps, "seconds": seconds}


def compare(program, name, solid, report):
    n = solid.shape[0]
    refined = n <= REFINED
    result, _ = ours(program, solid, 2, "refinement" if refined else "none")
    reference = result["finer" if refined else "element"]["permeability"][0][0]
    methods = []
    for order in ("mac", 1, 2):
        # The least of some runs: what else the machine does makes them longer.
        runs = [ours(program, solid, order) for _ in range(2)]
        flow = runs[0][0]["element"]["flows"][0]
        methods.append({
            "method": "MAC" if order == "mac" else f"RT_{order}",
            "permeability": runs[0][0]["permeability"][0][0],
            "seconds": min(seconds for _, seconds in runs),
            "iterations": flow["iterations"],
        })
    for cut in range(1, LARGEST // n + 1):
        methods.append({"method": "peer", "cut": cut, **peer(solid, cut)})
    for method in methods:
        method["error"] = method["permeability"] / reference - 1
    for method in methods:
        if method["method"] == "peer":
            # Of ours that are at least as accurate the one that costs least.
            good = [one for one in methods if "iterations" in one and abs(one["error"]) <= abs(method["error"])]
            method["ratio"] = method["seconds"] / min(one["seconds"] for one in good)
        ratio = f"  {method['ratio']:.1f} times" if "ratio" in method else ""
        print(f"{name:8} {n:4} {method['method']:5}{method.get('cut', ''):2} error {100 * method['error']:7.2f} %"
              f" {method['seconds']:9.2f} s{ratio}", flush=True)
    report["rows"].append({"image": name, "voxels": n, "porosity": float(1 - solid.mean()), "reference": reference,
                           "refined": refined, "methods": methods})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    report = {
        "command": "studies/peers/permeability.py PROGRAM",
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "peer": f"lbmpy {lbmpy.__version__}",
        "rows": [],
    }
    for n in arguments.sizes:
        for name, solid in (("blobs", blobs(n, 0.3)), ("spheres", spheres(n, 0.4))):
            compare(arguments.program.resolve(), name, solid, report)
            if arguments.json:
                arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
