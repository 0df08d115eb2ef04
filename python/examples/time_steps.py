"""Unsteady Stokes flow by implicit Euler steps that share one linear system: vortices that viscosity slows down.

    u_t - nu Laplace u + grad p = 0,   div u = 0

in a periodic square. With a mass term alpha = 1 / dt the steady problem is one step, whose right-hand side is the mass
matrix times the last velocity. The set-up is done once; every step begins from the last one.
"""

import numpy as np
import solenoid as so

NU = 0.05
VORTICES = ["sin(2*pi*x)*cos(2*pi*y)", "-cos(2*pi*x)*sin(2*pi*y)"]  # decay as exp(-RATE t)
RATE = 8 * np.pi**2 * NU


def decay(steps: int = 20, dt: float = 0.02, refine: int = 3, **options) -> list[so.Solution]:
    """The flow at the times 0, dt, ..., steps dt. Options are those of the solver."""
    mesh = so.Mesh.box(cells=(1, 1), refine=refine)
    problem = so.Problem(mesh, order=2, viscosity=NU, mass=1 / dt, periodic="xy")
    system = so.LinearSystem(problem, **options)
    mass = system.mass_matrix()
    b = system.vector(system.load())  # of forces and sides: here it is zero

    x = system.vector(so.interpolate(problem, velocity=VORTICES).coefficients)
    flows = [system.solution(x)]
    for _ in range(steps):
        x = system.solve(b + (mass @ x) / dt, x)
        flows.append(system.solution(x))
    return flows


def main() -> None:
    dt = 0.02
    for step, flow in enumerate(decay(dt=dt)):
        exact = 0.25 * np.exp(-2 * RATE * step * dt)
        print(f"t = {step * dt:4.2f}   kinetic energy {flow.kinetic_energy():.5f}, of the exact flow {exact:.5f}")


if __name__ == "__main__":
    main()
