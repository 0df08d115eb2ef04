"""
GPU against CPU
===============

The same problem on both engines: how far results differ, and how long they take. Where there is no GPU, the part for it
is left out.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import solenoid as so

info = so.info()
devices = ["cpu"] if info["no_cuda"] else ["cpu", "cuda"]
print(info["devices"], info["no_cuda"])

# %%
# A cube with a moving lid, order 2. The report has the seconds of set-up and solve; the latter is what is repeated in a time
# stepper.
solutions, times = {}, {}
for device in devices:
    for refine in (2, 3, 4):
        mesh = so.Mesh.box((1, 1, 1), refine=refine)
        problem = so.Stokes(mesh, order=2, velocity={"ymax": ["256*x^2*(1-x)^2*z^2*(1-z)^2", 0, 0]})
        solution = so.solve(problem, device=device, rtol=1e-10, precision="double")
        report = solution.report
        solutions[device], times[device, refine] = solution, report.time.solve
        print(f"{device:5} {report.dofs:8} unknowns, {report.iterations} iterations, {report.time.solve * 1e3:8.2f} ms, "
              f"{report.time.solve / report.dofs * 1e9:8.1f} ns per unknown")

# %%
# Both engines do the same operations on the same numbers, in another order: results agree to the tolerance.
points = np.random.default_rng(0).random((1000, 3))
for device in devices[1:]:
    difference = solutions[device].velocity(points) - solutions["cpu"].velocity(points)
    print("largest difference of velocities:", np.abs(difference).max())

# %%
figure, ax = plt.subplots(constrained_layout=True)
for device in devices:
    sizes = [108 * 8**refine for refine in (2, 3, 4)]
    ax.loglog(sizes, [times[device, refine] for refine in (2, 3, 4)], "o-", label=device)
ax.set(xlabel="unknowns, about", ylabel="seconds of a solve to 1e-10, double precision")
ax.grid(which="both", alpha=0.3)
ax.legend()
plt.show()

# %%
# Small problems are latency on a GPU, large ones bandwidth: see :doc:`/performance` for sizes up to billions of unknowns.
