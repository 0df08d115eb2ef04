"""Shear heats a fluid, and heat makes it thin. Between a plate at rest and one that slides with the velocity U, both of
them cold, with a viscosity exp(-T),

    - div(2 exp(-T) eps(u)) + grad p = 0,   div u = 0
    - Laplace T = 2 exp(-T) eps(u) : eps(u)

has the solution

    T = 2 log(cosh a / cosh(a (2 y - 1))),   sinh a = U / 8^(1/2)

(Gavis and Laurence, 1968). The flow and the temperature, which is that of Poisson's equation, take turns: each is solved
with what the other one has left, the flow with another viscosity on the same levels. A film that is hotter is thinner and
makes less heat, so that the temperature goes half the way each time, and would swing without.
"""

from collections.abc import Iterator

import numpy as np
import solenoid as so


class HeatedFilm:
    """A flow and its temperature, on the same mesh."""

    def __init__(self, speed: float, refine: int, **options):
        self.speed = speed
        mesh = so.Mesh.box(cells=(1, 4), refine=refine, upper=(0.25, 1))
        columns, rows = mesh.points().shape[:2]
        cold = np.ones((rows, columns))
        fluid = so.Problem(mesh, viscosity=cold, velocity={"ymax": [speed, 0]}, periodic="x")
        heat = so.Problem(mesh, equation="poisson", periodic="x")
        self.fluid, self.heat = so.LinearSystem(fluid, **options), so.LinearSystem(heat, **options)
        self.x, self.temperature = self.fluid.vector(), self.heat.vector()

    def iterate(self, tolerance: float, most: int = 50) -> Iterator[tuple[so.Solution, so.Solution]]:
        """Flows and temperatures, until the largest temperature changes by no more than `tolerance`."""
        hottest = 0.0
        for _ in range(most):
            self.x = self.fluid.solve(self.fluid.load(), self.x, rtol=1e-8)
            flow = self.fluid.solution(self.x)
            source = self.heat.load(lambda points: flow.field("dissipation", points))
            wanted = self.heat.solve(source, self.temperature.copy(), rtol=1e-8)
            self.temperature.add(1, wanted)
            self.temperature *= 0.5
            temperature = self.heat.solution(self.temperature)
            yield flow, temperature
            before, hottest = hottest, self.middle(temperature)
            if abs(hottest - before) <= tolerance:
                return
            self.fluid.set_viscosity(lambda points: np.exp(-temperature.value(points)))

    def middle(self, temperature: so.Solution) -> float:
        """Where it is hottest, between cells: the mean of both."""
        return float(temperature.value(np.array([[0.1, 0.5 - 1e-9], [0.1, 0.5 + 1e-9]])).mean())

    def exact(self) -> tuple[float, float]:
        """The temperature in the middle, and the shear stress."""
        a = np.arcsinh(self.speed / 8**0.5)
        return 2 * np.log(np.cosh(a)), 8**0.5 * a / np.cosh(a)


def main(speeds: tuple[float, ...] = (1, 3, 5), refine: int = 3) -> None:
    for speed in speeds:
        film = HeatedFilm(speed, refine, device="cpu", threads=1)  # so few unknowns are work for one thread
        iterates = list(film.iterate(tolerance=1e-6))
        flow, temperature = iterates[-1]
        hottest, stress = film.exact()
        drag = flow.forces()["ymin"].force[0] / 0.25
        print(
            f"U = {speed:g}: {len(iterates)} iterates, temperature {film.middle(temperature):.5f}, exact {hottest:.5f}, "
            f"stress {abs(drag):.5f}, exact {stress:.5f}"
        )


if __name__ == "__main__":
    main()
