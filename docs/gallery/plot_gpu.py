"""
GPU against CPU
===============

The same problem on both engines: how far results differ, and how long they take. Where there is no GPU, the part for it
is left out; at the end is what this page gave on one NVIDIA H200 and 16 cores of its host.
"""

# %%
import re
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import solenoid as so

info = so.info()
devices = ["cpu"] if info["no_cuda"] else ["cpu", "cuda"]
print(*info["devices"], info["no_cuda"], sep="\n")

# %%
# A cube with a moving lid, order 2. The report has the seconds of set-up and solve; the latter is what is repeated in a time
# stepper, and here the best of three.
points = np.random.default_rng(0).random((1000, 3))
velocities, times = {}, {}
for device in devices:
    for refine in (2, 3, 4) if len(devices) == 1 else (2, 3, 4, 5):
        mesh = so.Mesh.box((1, 1, 1), refine=refine)
        problem = so.Problem(mesh, order=2, velocity={"ymax": ["256*x^2*(1-x)^2*z^2*(1-z)^2", 0, 0]})
        solutions = [so.solve(problem, device=device, rtol=1e-10, precision="double") for _ in range(3)]
        report = min((solution.report for solution in solutions), key=lambda report: report.time.solve)
        velocities[device] = solutions[0].velocity(points)
        times.setdefault(device, []).append((report.dofs, report.time.solve))
        print(f"{device:5} {report.dofs:8} unknowns, {report.iterations} iterations, {report.time.solve * 1e3:8.2f} ms, "
              f"{report.time.solve / report.dofs * 1e9:8.1f} ns per unknown")

# %%
# Both engines do the same operations on the same numbers, in another order: results agree to the tolerance.
for device in devices[1:]:
    print("largest difference of velocities:", np.abs(velocities[device] - velocities["cpu"]).max())

# %%
# Operator and preconditioner use arrays where they are. Arrays of numpy have to be copied to a GPU and back, which takes
# longer than the work.
if "cuda" in devices:
    import cupy

    problem = so.Problem(so.Mesh.box((1, 1, 1), refine=6), order=2)
    system = so.LinearSystem(problem, device="cuda", precision="double")
    x = np.random.default_rng(1).random(system.size)
    for name, operator in (("A", system.operator()), ("M", system.preconditioner())):
        for array in (cupy.asarray(x), x):
            out = operator @ array
            seconds = []
            for _ in range(5):
                begin = time.perf_counter()
                operator.matvec(array, out=out)
                seconds.append(time.perf_counter() - begin)
            library = type(array).__module__.partition(".")[0]
            print(f"{name} @ array of {library:5}: {min(seconds) * 1e3:6.2f} ms for {system.dofs} unknowns")

# %%
# Filled marks are this machine, empty ones those of an H200 and its host.
figure, ax = plt.subplots(constrained_layout=True)
colours = {"cpu": "C0", "cuda": "C1"}
for device in devices:
    ax.loglog(*zip(*times[device]), "o-", color=colours[device], label=f"{device}, here")
stored = Path("../results/gpu_against_cpu.txt")  # what this page printed there
for device in colours if stored.exists() else ():
    found = re.findall(rf"^{device} +(\d+) unknowns.* ([\d.]+) ms,", stored.read_text(), re.MULTILINE)
    if found:
        dofs, milliseconds = np.array(found, float).T
        label = {"cpu": "16 cores", "cuda": "H200"}[device]
        ax.loglog(dofs, milliseconds / 1e3, "o--", color=colours[device], mfc="none", label=label)
ax.set(xlabel="unknowns", ylabel="seconds of a solve to 1e-10, double precision")
ax.grid(which="both", alpha=0.3)
ax.legend()
plt.show()

# %%
# What this page printed on an H200:
#
# .. literalinclude:: /results/gpu_against_cpu.txt
#    :language: text
#
# Small problems are latency on a GPU, large ones bandwidth: see :doc:`/performance` for sizes up to billions of unknowns.
