"""Domains: boxes without holes or with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ._core import InputError, validate_mesh

Box = tuple[tuple[int, ...], tuple[int, ...]]
Hole = Sequence[Sequence[int]] | Mapping[str, Sequence[int]]


def _numbers(name: str, values, kind, dim: int) -> tuple:
    try:
        result = tuple(kind(value) for value in values)
        exact = all(number == value for number, value in zip(result, values))
    except (TypeError, ValueError):
        result, exact = (), False
    if len(result) != dim or not exact:
        what = "integers" if kind is int else "numbers"
        raise InputError(f"mesh: {name}: expected {dim} {what}, got {values!r}")
    return result


@dataclass(frozen=True)
class Mesh:
    """A box cut into equal coarse boxes, some of them removed, all refined uniformly. Made by `Mesh.box`.

    Attributes:
        cells: coarse boxes per direction; its length is the dimension, 2 or 3.
        refine: how often every coarse box is cut into 2^dim.
        lower, upper: corners of the bounding box.
        holes: removed boxes as (lower, upper), in coarse boxes counted from 0; `upper` is the first after the hole.
    """

    cells: tuple[int, ...]
    refine: int
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    holes: tuple[Box, ...] = ()

    def __post_init__(self) -> None:
        validate_mesh(self.lower, self.upper, self.cells, self.refine, self.holes)

    @classmethod
    def box(
        cls,
        cells: Sequence[int] = (1, 1, 1),
        refine: int = 0,
        lower: Sequence[float] | None = None,
        upper: Sequence[float] | None = None,
        holes: Sequence[Hole] = (),
    ) -> Mesh:
        """The box from `lower` to `upper` (default: the unit square or cube).

        Args:
            cells: coarse boxes per direction, 2 or 3 integers >= 1.
            refine: uniform refinements, 0 to 20: a direction has cells * 2^refine cells.
            lower, upper: corners, one number per direction.
            holes: boxes that are removed from the domain, each (lower, upper) or {"lower": ..., "upper": ...} in coarse
                boxes. They may overlap, and cut the domain into parts.

        Raises:
            InputError: where shapes do not fit or numbers are out of range. What depends on the rest of a problem is
                checked when that is made.

        >>> Mesh.box(cells=(4, 2), refine=3, upper=(2, 1), holes=[((1, 0), (2, 1))]).n_cells
        448
        """
        dim = len(cells) if hasattr(cells, "__len__") else 0
        if dim not in (2, 3):
            raise InputError(f"mesh: cells: expected 2 or 3 integers, got {cells!r}")
        boxes = []
        for i, hole in enumerate(holes):
            try:
                first, end = (hole["lower"], hole["upper"]) if isinstance(hole, Mapping) else hole
            except (KeyError, TypeError, ValueError):
                raise InputError(f"mesh: holes[{i}]: expected (lower, upper), got {hole!r}") from None
            boxes.append((_numbers(f"holes[{i}]", first, int, dim), _numbers(f"holes[{i}]", end, int, dim)))
        return cls(
            cells=_numbers("cells", cells, int, dim),
            refine=_numbers("refine", (refine,), int, 1)[0],
            lower=_numbers("lower", (0,) * dim if lower is None else lower, float, dim),
            upper=_numbers("upper", (1,) * dim if upper is None else upper, float, dim),
            holes=tuple(boxes),
        )

    @property
    def dim(self) -> int:
        """2 or 3."""
        return len(self.cells)

    @property
    def n_cells(self) -> int:
        """Cells after refinement, without those in holes."""
        removed = set()
        for first, end in self.holes:
            boxes: list[tuple[int, ...]] = [()]
            for a in range(self.dim):
                boxes = [(*box, i) for box in boxes for i in range(first[a], end[a])]
            removed.update(boxes)
        coarse = 1
        for count in self.cells:
            coarse *= count
        return (coarse - len(removed)) << (self.dim * self.refine)
