"""Domains: boxes without holes or with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._core import (
    Field,
    Image,
    InputError,
    array_field,
    array_points,
    device_array_field,
    make_image,
    validate_mesh,
)
from .gpu_array import gpu_address, gpu_shape, is_on_gpu

Box = tuple[tuple[int, ...], tuple[int, ...]]
#: Of the bounding box, by number.
SIDES = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")

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


def _boxes(holes: Sequence[Hole], dim: int) -> tuple[Box, ...]:
    boxes = []
    for i, hole in enumerate(holes):
        try:
            first, end = (hole["lower"], hole["upper"]) if isinstance(hole, Mapping) else hole
        except (KeyError, TypeError, ValueError):
            raise InputError(f"mesh: holes[{i}]: expected (lower, upper), got {hole!r}") from None
        boxes.append((_numbers(f"holes[{i}]", first, int, dim), _numbers(f"holes[{i}]", end, int, dim)))
    return tuple(boxes)


@dataclass(frozen=True)
class Mesh:
    """A box cut into equal coarse boxes, some of them removed, all refined uniformly. Made by `Mesh.box`, `Mesh.image`
    or, with parallelepipeds for boxes, `Mesh.sheared`.

    Attributes:
        cells: coarse boxes per direction; its length is the dimension, 2 or 3.
        refine: how often every coarse box is cut into 2^dim.
        lower, upper: corners of the bounding box.
        holes: removed boxes as (lower, upper), in coarse boxes counted from 0; `upper` is the first after the hole.
        voxels: an image of which every voxel is a coarse box, solid ones holes: `extent`, `voxel` (its size in
            metres), `porosity`, `pores` (how many); or None.
        edges: of a sheared mesh, a vector for each direction; or None.
        origin: where they begin; otherwise the same as `lower`.
    """

    cells: tuple[int, ...]
    refine: int
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    holes: tuple[Box, ...] = ()
    voxels: Image | None = None
    edges: tuple[tuple[float, ...], ...] | None = None
    origin: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.origin is None:
            object.__setattr__(self, "origin", self.lower)
        validate_mesh(*self._parts())

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
        return cls(
            cells=_numbers("cells", cells, int, dim),
            refine=_numbers("refine", (refine,), int, 1)[0],
            lower=_numbers("lower", (0,) * dim if lower is None else lower, float, dim),
            upper=_numbers("upper", (1,) * dim if upper is None else upper, float, dim),
            holes=_boxes(holes, dim),
        )

    @classmethod
    def sheared(
        cls,
        edges: Sequence[Sequence[float]],
        cells: Sequence[int] | None = None,
        refine: int = 0,
        origin: Sequence[float] | None = None,
        holes: Sequence[Hole] = (),
    ) -> Mesh:
        """A parallelogram or parallelepiped: its cells are translates of one, "xmin" is the side where the first edge
        begins, "xmax" that where it ends, and so on.

        Args:
            edges: of the domain, a vector for each direction; right-handed. Where they are far from right angles more
                iterations are needed, and pressures are less accurate.
            cells: coarse boxes along each edge (default: one).
            refine, holes: as of box().
            origin: where the edges begin (default: zero).

        >>> mesh = Mesh.sheared([(1, 0), (0.5, 0.9)], refine=3)
        >>> mesh.n_cells, mesh.upper
        (64, (1.5, 0.9))
        """
        dim = len(edges) if hasattr(edges, "__len__") else 0
        if dim not in (2, 3):
            raise InputError(f"mesh: edges: expected 2 or 3 vectors, got {edges!r}")
        vectors = tuple(_numbers(f"edges[{a}]", edge, float, dim) for a, edge in enumerate(edges))
        start = _numbers("origin", (0,) * dim if origin is None else origin, float, dim)
        reach = [[vector[i] for vector in vectors] for i in range(dim)]
        return cls(
            cells=_numbers("cells", (1,) * dim if cells is None else cells, int, dim),
            refine=_numbers("refine", (refine,), int, 1)[0],
            lower=tuple(x + sum(min(0.0, step) for step in steps) for x, steps in zip(start, reach)),
            upper=tuple(x + sum(max(0.0, step) for step in steps) for x, steps in zip(start, reach)),
            holes=_boxes(holes, dim),
            edges=vectors,
            origin=start,
        )

    @classmethod
    def image(cls, solid: Any, refine: int = 0, voxel: float | Sequence[float] = 1.0) -> Mesh:
        """A coarse box for each voxel of a segmented image that is not solid. Boxes are 1 wide in x; in other
        directions they are as wide as voxels are relative to that.

        Args:
            solid: an array [x, y, z], or [x, y], that is true, or not 0, in solid; one in the order of files of images,
                [z, y, x], is `.T` of it.
            refine: as of box().
            voxel: its size in metres, or one for each direction. It is kept with the image, to scale results.

        >>> import numpy as np
        >>> solid = np.zeros((4, 3), dtype=bool)
        >>> solid[1, 1] = True
        >>> Mesh.image(solid, refine=1).n_cells
        44
        """
        try:
            array = np.ascontiguousarray(np.asarray(solid) != 0)
        except (TypeError, ValueError) as error:
            raise InputError(f"mesh: image: expected an array, got {type(solid).__name__}: {error}") from None
        if array.ndim not in (2, 3):
            raise InputError(f"mesh: image: expected an array with 2 or 3 axes, got {array.ndim}")
        sizes = (voxel,) * array.ndim if isinstance(voxel, (int, float)) else voxel
        sizes = _numbers("voxel", sizes, float, array.ndim)
        image = make_image(array, sizes)
        return cls._of(image, _numbers("refine", (refine,), int, 1)[0])

    @classmethod
    def _of(cls, image: Image, refine: int) -> Mesh:
        upper = tuple(count * (size / image.voxel[0]) for count, size in zip(image.extent, image.voxel))
        return cls(tuple(image.extent), refine, (0.0,) * len(upper), upper, voxels=image)

    @property
    def dim(self) -> int:
        """2 or 3."""
        return len(self.cells)

    @property
    def n_cells(self) -> int:
        """Cells after refinement, without those in holes."""
        if self.voxels is not None:
            return self.voxels.pores << (self.dim * self.refine)
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

    # Arrays ----------------------------------------------------------------------------------------------------------

    def points(self, m: int = 1, side: str | None = None) -> np.ndarray:
        """Where values of arrays are: at m Gauss points per direction in each cell, with m = 1 in their middles.

        Args:
            m: 1 to 16.
            side: "xmin", ...: on the faces of this side of the bounding box.

        Returns:
            An array (n_x m, n_y m, n_z m, dim), where n are the cells, with holes; in 2D (n_x m, n_y m, dim). On a side
            the axis normal to it is not there. Along an axis, or an edge, points go from cell to cell.
        """
        number = self._side(side)
        points = array_points(self._parts(), m, number)
        return points.reshape(*(m * count for count in self._extent(number)), self.dim)

    def field(self, values: Any, side: str | None = None, *, label: str = "values") -> list[Field]:
        """A vector field from an array with a value at each of points(m, side), for whichever m its shape fits: in each
        cell, or on each face, the polynomial through them; constant with m = 1. What stands in holes plays no part. It
        is data as functions and expressions are: a force, an initial velocity, what holds on a side.

            >>> mesh = Mesh.box(cells=(1, 1), refine=2)
            >>> mesh.points().shape, mesh.points(3, "xmin").shape
            ((4, 4, 2), (12, 2))
            >>> x, y = np.moveaxis(mesh.points(2), -1, 0)
            >>> force = mesh.field(np.stack([y, -x], axis=-1))

        Args:
            values: of the shape of points(m, side). Those in the memory of the host are copied; those of a GPU (by the CUDA array
                interface) are kept as they are, and must not change as long as the field is in use.
            side: "xmin", ...: values on the faces of this side.
            label: names the field in messages.
        """
        number = self._side(side)
        if is_on_gpu(values):
            shape = gpu_shape(values)
            m = self._points_of(shape, number, label)
            address = gpu_address(values, shape, label)
            return device_array_field(self._parts(), m, number, address, values, label)
        try:
            array = np.ascontiguousarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{label}: expected an array of numbers in the memory of the host, got {type(values).__name__}: {error}"
            ) from None
        return array_field(self._parts(), self._points_of(array.shape, number, label), number, array, label)

    def _points_of(self, shape: tuple[int, ...], side: int, label: str) -> int:
        """m for which points(m, side) have this shape."""
        m = self._points_per_cell(shape, side)
        if m is None:
            raise InputError(
                f"{label}: expected an array of shape {(*self._extent(side), self.dim)}, or with m times as many points along each "
                f"axis but the last, got {shape}"
            )
        return m

    def _extent(self, side: int = -1) -> tuple[int, ...]:
        """Cells per direction, or faces on a side."""
        return tuple(count << self.refine for a, count in enumerate(self.cells) if side < 0 or a != side // 2)

    def _points_per_cell(self, shape: tuple[int, ...], side: int = -1) -> int | None:
        """m for which points(m, side) have this shape; None: for none."""
        extent = self._extent(side)
        m = shape[0] // extent[0] if len(shape) > 0 else 0
        return m if m >= 1 and shape == (*(count * m for count in extent), self.dim) else None

    def _parts(self) -> tuple:
        return self.origin, self.upper, self.cells, self.refine, self.holes, self.voxels, self.edges

    def _side(self, side: str | None) -> int:
        """Its number; -1: in cells."""
        if side is None:
            return -1
        names = SIDES[: 2 * self.dim]
        if side not in names:
            raise InputError(f"side: expected one of {', '.join(names)}, got {side!r}")
        return names.index(side)
