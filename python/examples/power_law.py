"""The flow of a power-law fluid between two plates, against its exact solution. The shear stress of such a fluid is
K g^n at a shear rate g, so that its viscosity is

    nu = K g^(n - 1),   g = 2 sqrt(eps : eps / 2),

less where it is sheared more (n < 1), or more (n > 1). A pressure gradient G drives it from left to right:

    u = n / (n + 1) (G / K)^(1 / n) (H^(1 + 1/n) - |y - H|^(1 + 1/n)),   2 H the distance of the plates.

Picard iterations: a solve from the last flow, then the viscosity of its shear rate, on the same levels.
"""

from collections.abc import Iterator

import numpy as np
import solenoid as so

CONSISTENCY, GRADIENT, HALF = 1.0, 1.0, 0.5
#: The viscosity of a fluid that is not sheared would be infinite, or zero.
CAP = (1e-4, 1e4)


class Channel:
    """The flow of a fluid with index n, iterate by iterate."""

    def __init__(self, n: float, refine: int, **options):
        self.n = n
        mesh = so.Mesh.box(cells=(1, 8), refine=refine, upper=(0.25 * HALF, 2 * HALF))
        columns, rows = mesh.points().shape[:2]
        self.viscosity = np.full((rows, columns), CONSISTENCY)
        problem = so.Problem(mesh, viscosity=self.viscosity, viscosity_cap=CAP, force=[GRADIENT, 0], periodic="x")
        self.system = so.LinearSystem(problem, **options)
        self.x = self.system.vector()

    def iterate(self, tolerance: float, most: int = 50) -> Iterator[tuple[float, so.Solution]]:
        """How much each iterate has changed the viscosity, and its flow, until that is a part `tolerance` at most."""
        for _ in range(most):
            self.x = self.system.solve(self.system.load(), self.x, rtol=0.1 * tolerance)
            flow = self.system.solution(self.x)
            rate = 2 * flow.field_at_points("strain_rate_invariant").T
            wanted = np.clip(CONSISTENCY * rate ** (self.n - 1), *CAP)
            change = np.abs(wanted / self.viscosity - 1).max()
            yield change, flow
            if change <= tolerance:
                return
            # The stress hardly changes. Under the same stress this hits at once, where without the power 1 / n a fluid
            # of n >= 2 would never come to rest.
            self.viscosity = self.viscosity * (wanted / self.viscosity) ** (1 / self.n)
            self.system.set_viscosity(self.viscosity)

    def exact(self, points: np.ndarray) -> np.ndarray:
        power = 1 + 1 / self.n
        velocity = np.zeros_like(points)
        across = np.abs(points[:, 1] - HALF)
        velocity[:, 0] = (GRADIENT / CONSISTENCY) ** (1 / self.n) / power * (HALF**power - across**power)
        return velocity


def main(indices: tuple[float, ...] = (0.5, 1, 2), refine: int = 3) -> None:
    for n in indices:
        channel = Channel(n, refine, device="cpu", threads=1)  # so few unknowns are work for one thread
        iterates = list(channel.iterate(tolerance=1e-6))
        flow = iterates[-1][1]
        size = (2 * flow.kinetic_energy()) ** 0.5
        error = flow.error(channel.exact).velocity / size
        print(f"n = {n:g}: {len(iterates)} iterates, largest velocity {flow.max_speed():.5f}, error {error:.1e}")


if __name__ == "__main__":
    main()
