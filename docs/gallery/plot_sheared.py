"""
Posts in a slanted lattice
==========================

Devices that sort particles by size have rows of posts, each row a bit further along than the one before. One cell of that
lattice is a parallelogram, and the flow repeats itself from cell to cell.
"""

# %%
# `Mesh.sheared` takes the edges of the domain. The post is a hole of the same shape, and both directions are periodic.
import matplotlib.pyplot as plt
import numpy as np

import solenoid as so


def cell(shift, refine=3):
    mesh = so.Mesh.sheared([(1, 0), (shift, 1)], cells=(4, 4), refine=refine, holes=[((1, 1), (3, 3))])
    return so.solve(so.Problem(mesh, order=2, force=[1, 0], periodic="xy"))


solution = cell(0.3)
print(solution)

# %%
solution.plot(resolution=240)
plt.show()

# %%
# A force along the rows drives the flow across them too, once the posts are slanted: by how much, relative to what goes
# along?
shifts = np.linspace(0, 0.6, 7)
drift = []
for shift in shifts:
    u, v = cell(shift, refine=2).mean_velocity()
    drift.append(v / u)
figure, ax = plt.subplots(constrained_layout=True)
ax.plot(shifts, drift, "o-")
ax.set(xlabel="shift of a row", ylabel="mean velocity, across over along")
ax.grid()
plt.show()

# %%
# The velocity is exactly divergence-free, whatever the angle.
print(f"{solution.divergence_max():.1e}")
