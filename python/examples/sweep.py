"""A sweep over viscosities and refinements as a table: the flow through a periodic channel past an obstacle.

The channel is filled with a porous medium (the mass term), so that the flux is not just one over the viscosity: where
that is small the medium holds the flow back, where it is large the walls do.
"""

import itertools
from collections.abc import Iterable

import solenoid as so

channel = so.Problem(
    so.Mesh.box(cells=(8, 4), refine=1, upper=(2, 1), holes=[((2, 1), (3, 2))]),
    order=2,
    mass=100,
    force=[1, 0],
    periodic="x",
)


def sweep(problem: so.Problem, refine: Iterable[int], viscosity: Iterable[float]) -> list[dict[str, float]]:
    """A row for each refinement and viscosity, as pandas.DataFrame and csv.DictWriter take them."""
    rows = []
    for level, nu in itertools.product(refine, viscosity):
        solution = so.solve(problem.replace(refine=level, viscosity=nu), rtol=1e-8)
        rows.append(
            {
                "refine": level,
                "viscosity": nu,
                "unknowns": solution.report.dofs,
                "iterations": solution.report.iterations,
                "flux": solution.flux("x", 0.0),
                "max speed": solution.max_speed(),
            }
        )
    return rows


def print_table(rows: list[dict[str, float]]) -> None:
    print("".join(f"{name:>12}" for name in rows[0]))
    for row in rows:
        print("".join(f"{value:12.6g}" for value in row.values()))


if __name__ == "__main__":
    print_table(sweep(channel, refine=(1, 2, 3), viscosity=(0.1, 1, 10)))
