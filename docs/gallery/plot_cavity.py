"""
Lid-driven cavity
=================

A square box of fluid whose lid moves to the right: the first thing to compute, and how to look at the result.
"""

# %%
# A mesh, a problem, a solution
# -----------------------------
# One coarse box, refined five times: 32 x 32 cells. Sides of which nothing is said are no-slip walls. The lid's velocity
# is an expression; a function of points would do as well.
import matplotlib.pyplot as plt
import numpy as np

import solenoid as so

mesh = so.Mesh.box(cells=(1, 1), refine=5)
problem = so.Problem(mesh, order=2, velocity={"ymax": ["16*x^2*(1-x)^2", 0]})
solution = so.solve(problem, rtol=1e-10)
print(solution)

# %%
# Pictures
# --------
# By default the speed with streamlines; also the pressure, a component, or the vorticity.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
solution.plot(ax=axes[0], resolution=200)
solution.plot("vorticity", ax=axes[1], resolution=200, cmap="coolwarm", vmin=-8, vmax=8)
plt.show()

# %%
# Values
# ------
# Points are arrays of shape (..., 2); values have the same shape. Here is the horizontal velocity on the vertical line
# through the middle, and how much it changes on a finer mesh.
y = np.linspace(0, 1, 201)
line = np.stack([np.full_like(y, 0.5), y], axis=-1)
figure, ax = plt.subplots(constrained_layout=True)
ax.plot(solution.velocity(line)[:, 0], y)
ax.set(xlabel="horizontal velocity at x = 1/2", ylabel="y")
ax.grid()
plt.show()

# %%
finer = so.Problem(so.Mesh.box((1, 1), refine=6), order=2, velocity={"ymax": ["16*x^2*(1-x)^2", 0]})
finer = so.solve(finer, rtol=1e-10)
print("change of the velocity on the line when h is halved:", np.abs(finer.velocity(line) - solution.velocity(line)).max())

# %%
# What is exact
# -------------
# The velocity is divergence-free in every point. So nothing flows through the middle in sum:
print("largest divergence:", solution.divergence_max())
print("flux through x = 1/2:", solution.flux("x", 0.5))

# %%
# The energy that the lid puts in is what viscosity dissipates: :math:`\int_{lid} \nu \, \partial_y u_x \, u_x`, by the
# trapezoidal rule, against :math:`\nu \int |\nabla u|^2`. (Traces of the gradient converge a little more slowly.)
x = np.linspace(0, 1, 2001)
lid = np.stack([x, np.ones_like(x)], axis=-1)
power = np.trapezoid(solution.gradient(lid)[:, 0, 1] * solution.velocity(lid)[:, 0], x)
print(f"power of the lid {power:.5f}, dissipation {solution.dissipation():.5f}")
