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


def _values(solution: Any, quantity: str, points: np.ndarray) -> np.ndarray:
    if quantity == "speed":
        return np.linalg.norm(solution.velocity(points), axis=-1)
    if quantity == "pressure":
        return solution.pressure(points)
    if quantity == "value":
        return solution.value(points)
    if quantity == "vorticity":
        gradient = solution.gradient(points)
        return gradient[..., 1, 0] - gradient[..., 0, 1]
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
        axis, position: in 3D the slice {axis = position}; in the middle of the domain by default.
        resolution: points along the longer side.
        streamlines: of the velocity in the plane; by default with the speed.
        colorbar: whether to draw one.
        arguments: passed on to matplotlib's imshow, `cmap` for example.

    Returns:
        The axes.

    Raises:
        InputError: for a quantity that the solution does not have, or a slice outside of the mesh.
        ImportError: without matplotlib (pip install matplotlib).
    """
    import matplotlib.pyplot as plt  # optional, and slow to import

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
        position = float(lower[normal] + upper[normal]) / 2 if position is None else position
        if not lower[normal] <= position <= upper[normal]:
            limits = f"{lower[normal]} to {upper[normal]}"
            raise InputError(f"position: the mesh goes from {limits} in {axis}, got {position}")
        points[..., normal] = position

    if ax is None:
        inches = np.clip(5.0 * size[up] / size[across] + 0.8, 2.2, 6.4)  # no blank above and below a long domain
        _, ax = plt.subplots(figsize=(6.4, inches), constrained_layout=True)
    extent = (lower[across], upper[across], lower[up], upper[up])
    image = ax.imshow(
        _values(solution, quantity, points), **{"origin": "lower", "extent": extent, "aspect": "equal", **arguments}
    )
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label=_LABELS[quantity])
    if quantity == "speed" if streamlines is None else streamlines:
        velocity = solution.velocity(points)
        if np.nanmax(np.abs(velocity[..., [across, up]])) > 0.0:
            style = {"color": "white", "linewidth": 0.6, "arrowsize": 0.6, "density": 1.2}
            ax.streamplot(*ticks, velocity[..., across], velocity[..., up], **style)
    ax.set(xlim=extent[:2], ylim=extent[2:], xlabel="xyz"[across], ylabel="xyz"[up])
    if dim == 3:
        ax.set_title(f"{axis} = {position:g}")
    return ax
