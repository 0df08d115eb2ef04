"""Flow past a square: behind it vortices leave its corners in turn, a street of them.

    u_t + div(u (x) u) - nu Laplace u + grad p = 0,   div u = 0

The square has the side 1, the flow before it the speed 1, so that the Reynolds number is 1 / nu. How often vortices
leave is the Strouhal number, the frequency of the velocity across the flow at a point behind the square.
"""

import numpy as np
import solenoid as so

REYNOLDS = 100
PROBE = (6.0, 0.5)  # the square is [3, 4] x [-1/2, 1/2]


def street(refine: int = 1, **options) -> so.Flow:
    """At first with a push across the flow behind the square, without which it would long stay symmetric."""
    mesh = so.Mesh.box(cells=(12, 7), refine=refine, lower=(0, -3.5), upper=(12, 3.5), holes=[((3, 3), (4, 4))])
    problem = so.Problem(
        mesh,
        order=2,
        viscosity=1 / REYNOLDS,
        convection=True,
        velocity={"xmin": [1, 0]},
        slip=["ymin", "ymax"],
        outflow="xmax",
    )
    # With so much viscosity steps may be longer than without any.
    return so.Flow(problem, initial=[1, "exp(-(x-5)^2-y^2)"], cfl=1.0, **options)


def frequency(times: np.ndarray, values: np.ndarray) -> float:
    """From the times at which an oscillation crosses zero upwards; nan if there are not two of them."""
    up = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    at = times[up] - values[up] * (times[up + 1] - times[up]) / (values[up + 1] - values[up])
    return (len(at) - 1) / (at[-1] - at[0]) if len(at) > 1 else float("nan")


def main() -> None:
    flow = street(device="cpu", threads=1)  # so few unknowns are work for one thread
    states = [(time, solution.velocity(PROBE)[1]) for time, solution in flow.march(until=30, every=0.2)]
    times, across = np.array(states).T
    late = times > 12  # vortices leave regularly
    print(f"{flow.steps} steps, largest velocity across the flow {np.abs(across[late]).max():.2f}")
    print(f"Strouhal number {frequency(times[late], across[late]):.3f}")


if __name__ == "__main__":
    main()
