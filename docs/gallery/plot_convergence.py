"""
Convergence study
=================

A problem whose solution is known, on finer and finer meshes: errors of velocity and pressure fall with
:math:`h^{k+1}`, and iterations do not grow.
"""

# %%
# The solution: a velocity that is the curl of :math:`\sin^2(\pi x) \sin^2(\pi y)`, so that it is zero on the sides, a
# pressure, and the force :math:`f = -\Delta u + \nabla p`. Functions get an array of points (n, 2) and return arrays.
import matplotlib.pyplot as plt
import numpy as np

import solenoid as so

pi = np.pi


def velocity(points):
    x, y = points.T
    return np.stack([pi * np.sin(pi * x)**2 * np.sin(2 * pi * y), -pi * np.sin(2 * pi * x) * np.sin(pi * y)**2], axis=-1)


def pressure(points):
    x, y = points.T
    return np.cos(pi * x) * np.sin(pi * y)


def force(points):
    x, y = points.T
    minus_laplace = np.stack([
        -2 * pi**3 * (2 * np.cos(2 * pi * x) - 1) * np.sin(2 * pi * y),
        2 * pi**3 * np.sin(2 * pi * x) * (2 * np.cos(2 * pi * y) - 1),
    ], axis=-1)
    gradient = np.stack([-pi * np.sin(pi * x) * np.sin(pi * y), pi * np.cos(pi * x) * np.cos(pi * y)], axis=-1)
    return minus_laplace + gradient


# %%
# Orders and refinements. The iterations are to 1e-10 of the residual.
orders = [k for k in (1, 2, 3, 4) if k in so.info()["orders"]["2D"]]
refinements = range(2, 6)
errors = {}
print(" k   cells      velocity  order      pressure  order  iterations")
for k in orders:
    for refine in refinements:
        problem = so.Problem(so.Mesh.box((1, 1), refine=refine), order=k, force=force)
        solution = so.solve(problem, rtol=1e-10)
        errors[k, refine] = np.array(solution.error(velocity, pressure))
        rate = np.log2(errors[k, refine - 1] / errors[k, refine]) if refine > refinements[0] else (np.nan, np.nan)
        u, p = errors[k, refine]
        print(f"{k:2} {2**refine:4}^2  {u:12.3e} {rate[0]:6.2f}  {p:12.3e} {rate[1]:6.2f}  {solution.report.iterations:10}")

# %%
h = np.array([0.5**refine for refine in refinements])
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, constrained_layout=True)
for i, name in enumerate(("velocity", "pressure")):
    for k in orders:
        values = np.array([errors[k, refine][i] for refine in refinements])
        (line,) = axes[i].loglog(h, values, "o-", label=f"k = {k}")
        axes[i].loglog(h, values[-1] * (h / h[-1])**(k + 1), "--", color=line.get_color(), linewidth=0.8)
    axes[i].set(xlabel="h", title=f"L2 error of the {name} (dashed: order k + 1)")
    axes[i].set_xticks(h, [f"1/{2**refine}" for refine in refinements])
    axes[i].set_xticks([], minor=True)
    axes[i].grid(which="both", alpha=0.3)
axes[0].legend()
plt.show()

# %%
# Pressure robustness
# -------------------
# A force that is a gradient changes the pressure and not the velocity. Add :math:`1000 \, \nabla (x^3 y)` to the force: the
# velocity stays what it was, up to the tolerance of the solver.
k = orders[-1]
mesh = so.Mesh.box((1, 1), refine=3)
plain = so.solve(so.Problem(mesh, order=k, force=force), rtol=1e-12, precision="double")


def with_gradient(points):
    x, y = points.T
    return force(points) + 1000 * np.stack([3 * x**2 * y, x**3], axis=-1)


pushed = so.solve(so.Problem(mesh, order=k, force=with_gradient), rtol=1e-12, precision="double")
points = np.random.default_rng(0).random((1000, 2))
print("change of the velocity:", np.abs(pushed.velocity(points) - plain.velocity(points)).max())
print("change of the pressure:", np.abs(pushed.pressure(points) - plain.pressure(points)).max())
