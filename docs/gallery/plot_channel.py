"""
Channel with an obstacle
========================

A constant force drives a flow through a periodic channel past a square. How much does the obstacle cost?
"""

# %%
# The domain is 2 x 1, cut into 8 x 4 coarse boxes of which one is removed: holes are given in coarse boxes, the upper end
# not included.
import matplotlib.pyplot as plt
import numpy as np

import solenoid as so


def channel(holes, refine=3):
    mesh = so.Mesh.box(cells=(8, 4), refine=refine, upper=(2, 1), holes=holes)
    return so.solve(so.Problem(mesh, order=2, force=[1, 0], periodic="x"))


solution = channel(holes=[((2, 1), (3, 2))])
print(solution)

# %%
solution.plot(resolution=240)
plt.show()

# %%
# The flow rate is the same through every cross-section, to rounding: the velocity is exactly divergence-free.
for position in (0.1, 0.5, 0.6, 1.0, 1.7):
    print(f"x = {position}: {solution.flux('x', position):.12f}")

# %%
# Without the obstacle it is the Poiseuille flow :math:`u = y (1 - y) / 2`, which the element holds exactly, with the flow
# rate 1/12.
free = channel(holes=[], refine=2)
print(f"without: {free.flux('x', 1.0):.12f}, 1/12 = {1 / 12:.12f}")
print(f"with the obstacle {100 * solution.flux('x', 1.0) * 12:.1f} % of that")

# %%
# Where the obstacle sits matters: on the wall it costs less than in the middle.
heights, rates = range(4), []
for row in heights:
    rates.append(channel(holes=[((2, row), (3, row + 1))], refine=2).flux("x", 1.0))
figure, ax = plt.subplots(constrained_layout=True)
ax.plot([(row + 0.5) / 4 for row in heights], np.array(rates) * 12, "o-")
ax.set(xlabel="height of the obstacle's centre", ylabel="flow rate, relative to the free channel", ylim=(0, 1))
ax.grid()
plt.show()

# %%
# In and out
# ----------
# The same channel with a parabola on the left and an open end on the right. Conditions are named after sides.
mesh = so.Mesh.box(cells=(8, 4), refine=3, upper=(2, 1), holes=[((2, 1), (3, 2))])
problem = so.Problem(mesh, order=2, velocity={"xmin": ["4*y*(1-y)", 0]}, outflow=["xmax"])
open_end = so.solve(problem)
open_end.plot("pressure", resolution=240)
plt.show()
print(f"in {open_end.flux('x', 0.0):.9f}, out {open_end.flux('x', 2.0):.9f}")
