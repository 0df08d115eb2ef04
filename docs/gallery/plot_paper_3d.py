"""
The paper's problem in 3D
=========================

The test problem of *Multigrid methods for the Stokes problem on GPU systems*, from its case file: errors, iterations, and
the paper's settings beside the default ones.
"""

# %%
# A case file of the program can be read and solved; the numbers are those of ``solenoid solve``, digit by digit.
from pathlib import Path

import matplotlib.pyplot as plt

import solenoid as so

case = so.read_case(Path("../../cases/paper_3d.toml"))
solution = so.solve(case)
print(solution)
print(solution.error(**case.exact))

# %%
# The speed in the middle slice, and the pressure in the one across.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
solution.plot(ax=axes[0], resolution=150)
solution.plot("pressure", ax=axes[1], axis="y", resolution=150)
plt.show()

# %%
# Default and paper
# -----------------
# ``preset="paper"`` sets the paper's order of colours, its local problems and left preconditioning. The default reports
# the true residual; the paper's the preconditioned one.
figure, ax = plt.subplots(constrained_layout=True)
for preset in ("default", "paper"):
    report = so.solve(case, preset=preset, precision="double", rtol=1e-10).report
    ax.semilogy(report.residual_history, "o-", label=preset)
    print(f"{preset:8} {report.iterations} iterations ({report.fractional_iterations:.2f})")
ax.set(xlabel="iteration", ylabel="relative residual")
ax.grid(alpha=0.3)
ax.legend()
plt.show()

# %%
# Iterations do not grow
# ----------------------
# The same force on coarser meshes: take what the case has, change the mesh.
text = Path("../../cases/paper_3d.toml").read_text()
for refine in (2, 3, 4):
    Path("paper_3d_small.toml").write_text(text.replace("refine = 4", f"refine = {refine}"))
    small = so.read_case("paper_3d_small.toml")
    report = so.solve(small).report
    print(f"{2**refine:3}^3 cells, {report.dofs:7} unknowns: {report.fractional_iterations:.2f} iterations, "
          f"velocity error {report.error.velocity_l2:.2e}")
Path("paper_3d_small.toml").unlink()
