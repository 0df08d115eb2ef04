"""Pictures of solutions with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core import InputError

_LABELS = {
    "speed": "|u|",
    "pressure": "p",
    "u": "$u_x$",
    "v": "$u_y$",
    "w": "$u_z$",
    "vorticity": "curl u",
    "value": "u",
}


_NEGLIGIBLE = 1e-5  # flow in the plane, as a part of the largest speed: what a solver leaves where there is none
_CONSTANT = 1e-12  # relative: where values differ less, rounding is all that differs


def _limits(values: np.ndarray, from_zero: bool) -> dict[str, float]:
    """The ends of the colours; rounding errors of a constant are not blown up."""
    known = values[~np.isnan(values)]
    if known.size == 0:
        return {}
    low, high = float(known.min()), float(known.max())
    if from_zero or high - low <= _CONSTANT * max(abs(low), abs(high)):
        low, high = min(low, 0.0), max(high, 0.0)
    return {"vmin": low, "vmax": high if low < high else low + 1.0}


def _middle(mesh: Any, axis: int) -> float:
    """Where a slice lies by default: not along faces of holes, but through the cells above."""
    lower, upper = mesh.lower[axis], mesh.upper[axis]
    count = mesh.cells[axis] * 2**mesh.refine
    beside = 0.5 / count if (mesh.holes or mesh.voxels) and count % 2 == 0 else 0.0
    return lower + (0.5 + beside) * (upper - lower)


def _label_ends(bar: Any) -> None:
    """Puts ticks at both ends of a colour bar, instead of those that their labels would touch."""
    low, high = bar.vmin, bar.vmax
    if not low < high:  # limits of the caller
        return
    inner = [tick for tick in bar.get_ticks() if 0.07 < (tick - low) / (high - low) < 0.93]
    ticks = [low, *inner, high]
    digits = 3 + max(0, int(np.log10(max(abs(low), abs(high)) / (high - low))))  # three of the range
    bar.set_ticks(ticks, labels=[f"{tick:.{digits}g}" for tick in ticks])


def _values(solution: Any, quantity: str, points: np.ndarray) -> np.ndarray:
    if quantity == "speed":
        return np.linalg.norm(solution.velocity(points), axis=-1)
    if quantity == "pressure":
        return solution.pressure(points)
    if quantity == "value":
        return solution.value(points)
    if quantity == "vorticity":
        return solution.field("vorticity", points)
    return solution.velocity(points)[..., "uvw".index(quantity)]


def plot(
    solution: Any,
    quantity: str | None = None,
    *,
    ax: Any = None,
    axis: str = "z",
    position: float | None = None,
    resolution: int = 300,
    streamlines: bool | None = None,
    colorbar: bool = True,
    **arguments: Any,
) -> Any:
    """Draws a quantity on the domain, in 3D on a slice.

    Args:
        solution: a Solution, which has this as a method.
        quantity: "speed" (default), "pressure", "u", "v", "w" (3D), "vorticity" (2D); with Poisson's equation "value".
        ax: axes to draw into; new ones if there are none.
        axis, position: in 3D the slice {axis = position}; by default in the middle of the domain, or, where there
            are holes, through the cells above it.
        resolution: points along the longer side.
        streamlines: of the velocity in the plane; by default with the speed.
        colorbar: whether to draw one.
        arguments: passed on to matplotlib's imshow, `cmap`, `vmin` and `vmax` for example.

    Returns:
        The axes.

    Raises:
        InputError: for a quantity that the solution does not have, or a slice outside of the mesh.
        ImportError: without matplotlib (pip install matplotlib).
    """
    import matplotlib.pyplot as plt  # optional, and slow to import

    solution._core.require_whole("plot")
    mesh, dim = solution.problem.mesh, solution.problem.dim
    poisson = solution.problem.equation == "poisson"
    known = ["value"] if poisson else ["speed", "pressure", *"uvw"[:dim], *(["vorticity"] if dim == 2 else [])]
    quantity = known[0] if quantity is None else quantity
    if quantity not in known:
        raise InputError(f"quantity: expected one of {', '.join(known)}, got {quantity!r}")
    if axis not in ("x", "y", "z"):
        raise InputError(f"axis: expected x, y or z, got {axis!r}")
    normal = "xyz".index(axis) if dim == 3 else 2
    across, up = (a for a in range(3) if a != normal)

    lower, upper = np.array(mesh.lower), np.array(mesh.upper)
    size = upper - lower
    step = max(size[across], size[up]) / resolution
    ticks = []
    for a in (across, up):
        count = max(2, round(size[a] / step))
        ticks.append(lower[a] + (np.arange(count) + 0.5) * size[a] / count)
    points = np.empty((len(ticks[1]), len(ticks[0]), dim))
    points[..., across], points[..., up] = np.meshgrid(*ticks)
    if dim == 3:
        position = _middle(mesh, normal) if position is None else position
        if not lower[normal] <= position <= upper[normal]:
            limits = f"{lower[normal]} to {upper[normal]}"
            raise InputError(f"position: the mesh goes from {limits} in {axis}, got {position}")
        points[..., normal] = position

    if ax is None:
        inches = np.clip(4.6 * size[up] / size[across] + 0.8, 2.2, 6.4)  # no blank above and below a long domain
        _, ax = plt.subplots(figsize=(6.4, inches), constrained_layout=True)
    extent = (lower[across], upper[across], lower[up], upper[up])
    values = _values(solution, quantity, points)
    limits = {} if "norm" in arguments else _limits(values, from_zero=quantity == "speed")
    image = ax.imshow(values, **{"origin": "lower", "extent": extent, "aspect": "equal", **limits, **arguments})
    if colorbar:
        bar = ax.figure.colorbar(image, ax=ax, label=_LABELS[quantity])
        if "norm" not in arguments:
            _label_ends(bar)
    title = [f"{axis} = {position:g}"] if dim == 3 else []
    if quantity == "speed" if streamlines is None else streamlines:
        velocity = solution.velocity(points)
        in_plane = np.linalg.norm(velocity[..., [across, up]], axis=-1)
        if np.nanmax(in_plane) > _NEGLIGIBLE * np.nanmax(np.linalg.norm(velocity, axis=-1)):
            density = tuple(np.maximum(1.2 * size[[across, up]] / max(size[across], size[up]), 0.2))
            style = {"color": "white", "linewidth": 0.6, "arrowsize": 0.6, "density": density}
            ax.streamplot(*ticks, velocity[..., across], velocity[..., up], **style)
            title.append("streamlines: in-plane velocity")
        else:
            title.append("no in-plane velocity")
    ax.set(xlim=extent[:2], ylim=extent[2:], xlabel="xyz"[across], ylabel="xyz"[up])
    if dim == 3:
        ax.set_title(", ".join(title), fontsize="medium")
    return ax
