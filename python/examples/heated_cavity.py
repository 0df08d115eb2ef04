"""Natural convection in a square whose left side is hot and whose right side is cold, by two programs: solenoid has the
flow, and numpy a temperature by finite volumes, which moves it and is carried by it.

    u_t + div(u (x) u) - Pr Laplace u + grad p = Ra Pr T e_y,   div u = 0
    T_t + div(u T) - Laplace T = 0

in units of the side, of the difference of temperatures and of the time in which heat diffuses across (de Vahl Davis,
1983). Cells of both are the same. The flow's face fluxes have no divergence to rounding, so that heat is conserved, and
a constant temperature stays constant.
"""

import numpy as np
import solenoid as so

PRANDTL = 0.71
#: Mean Nusselt numbers of the benchmark.
BENCHMARK = {1e4: 2.243, 1e5: 4.519, 1e6: 8.800}


class HeatedCavity:
    """A flow and a temperature, from rest and conduction on."""

    def __init__(self, rayleigh: float, refine: int, **options):
        self.rayleigh = rayleigh
        mesh = so.Mesh.box(cells=(1, 1), refine=refine)
        problem = so.Problem(mesh, order=2, viscosity=PRANDTL, convection=True)
        self.temperature = 1 - mesh.points()[..., 0]
        # Explicit diffusion, too, limits a step; so do flows that begin from rest.
        self.flow = so.Flow(problem, cfl=0.5, step=0.2 / 4**refine, **options)
        self.earlier = None  # the last change of the temperature per unit of time, and the length of its step
        self.heat = self.heat_through_faces()

    def heat_through_faces(self) -> tuple[np.ndarray, np.ndarray]:
        """Through the faces normal to x and to y: carried by the flow and by diffusion."""
        t = self.temperature
        along_x, along_y = self.flow.face_fluxes()
        # With cells as wide as they are high, a face divided by the distance of the cells beside it is 1.
        along_x[1:-1] *= (t[1:] + t[:-1]) / 2
        along_x[1:-1] -= t[1:] - t[:-1]
        along_x[0] = 2 * (1 - t[0])
        along_x[-1] = 2 * t[-1]
        along_y[:, 1:-1] *= (t[:, 1:] + t[:, :-1]) / 2
        along_y[:, 1:-1] -= t[:, 1:] - t[:, :-1]
        along_y[:, [0, -1]] = 0
        return along_x, along_y

    def step(self) -> None:
        """The temperature first, by an Adams-Bashforth scheme of second order: what it is at the end of the step moves
        the flow there."""
        dt = self.flow.next_step
        along_x, along_y = self.heat
        rate = -(np.diff(along_x, axis=0) + np.diff(along_y, axis=1)) * self.temperature.size  # per volume of a cell
        change = rate
        if self.earlier is not None:
            before, length = self.earlier
            change = rate + dt / (2 * length) * (rate - before)
        self.temperature = self.temperature + dt * change
        self.earlier = rate, dt
        buoyancy = self.rayleigh * PRANDTL * self.temperature
        self.flow.set_force(np.stack([np.zeros_like(buoyancy), buoyancy], axis=-1))
        self.flow.step()
        self.heat = self.heat_through_faces()

    def nusselt(self) -> np.ndarray:
        """Heat through vertical planes over that by conduction alone: the same for all once it is steady."""
        return self.heat[0].sum(axis=1)

    def largest_velocities(self) -> tuple[float, float]:
        """Across on the vertical middle line, and up on the horizontal one."""
        solution = self.flow.solution()
        along, middle = np.linspace(0, 1, 401), np.full(401, 0.5)
        across = solution.velocity(np.stack([middle, along], axis=-1))[:, 0]
        up = solution.velocity(np.stack([along, middle], axis=-1))[:, 1]
        return across.max(), up.max()

    def march(self, tolerance: float) -> float:
        """Until the Nusselt numbers of all planes are as near to each other; their mean."""
        while self.flow.steps < 100 or np.ptp(self.nusselt()) > tolerance * self.nusselt().mean():
            self.step()
        return self.nusselt().mean()


def main(rayleigh: float = 1e4, refine: int = 4) -> None:
    cavity = HeatedCavity(rayleigh, refine, device="cpu", threads=1)  # so few unknowns are work for one thread
    nusselt = cavity.march(tolerance=1e-3)
    across, up = cavity.largest_velocities()
    print(f"{cavity.flow.steps} steps to t = {cavity.flow.time:.3f}, largest velocities {across:.2f} and {up:.2f}")
    print(f"Nusselt number {nusselt:.3f}, benchmark {BENCHMARK[rayleigh]}")


if __name__ == "__main__":
    main()
