"""The permeability of images of porous media."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from . import _core
from ._core import InputError
from .mesh import Mesh
from .problem import Problem, _integer
from .progress import ProgressBar
from .solution import ImageFields, Solution
from .solving import ConvergenceWarning

#: Square metres of a darcy.
DARCY = 9.869233e-13


class DiscretePermeability:
    """A permeability as one discretisation has it.

    Attributes:
        order: k, or "mac".
        refine: how often each voxel is cut.
        tensor: (dim, dim) in square metres, NaN where it is not computed.
        asymmetry: |K - K^T| / |K| of a whole tensor as it was computed (`tensor` is the symmetric part), or None.
        flows: one for each direction that was solved for, with `direction`, `converged`, `reason`, `iterations`,
            `residual`, `flux_deviation` (how much what flows through planes across it differs, relative) and `time`.
        dofs, memory_bytes: of the largest system.
        time_setup: seconds.
    """

    def __init__(self, core: _core.DiscretePermeability):
        self.order: int | str = "mac" if core.lumped else core.order
        self.refine: int = core.refine
        self.tensor: np.ndarray = core.tensor
        self.asymmetry: float | None = core.asymmetry
        self.converged: bool = core.converged
        self.flows = core.flows
        self.dofs: int = core.dofs
        self.time_setup: float = core.time_setup
        self.memory_bytes: int = core.memory_bytes


class Permeability:
    """What permeability() has computed.

    Attributes:
        tensor: K (dim, dim) in square metres, by the element that was asked for; NaN where it is not computed.
        principal_values, principal_axes: of a whole tensor, descending; axes are rows. None otherwise.
        error: the estimate |K - K_finer| / |K_finer|, or None.
        porosity: share of pores, of closed ones too.
        pores: for each direction `direction`, `percolates`, `components`, `porosity` (of what percolates) and
            `throats` (the share of that in runs of one or two voxels).
        value, mac, finer: DiscretePermeability of the element, of the marker-and-cell scheme, and of what the error is
            estimated with; None where it was not computed.
        fields: if asked for, ImageFields by direction, "x", "y" or "z": velocity and pressure of each voxel. Where no
            pore percolates there are none.
        converged: whether all flows have.
        device: where; empty if nothing percolates.
    """

    def __init__(self, core: _core.Permeability, fields: dict[str, ImageFields]):
        self.fields = fields
        self.value = DiscretePermeability(core.value)
        self.mac = None if core.mac is None else DiscretePermeability(core.mac)
        self.finer = None if core.finer is None else DiscretePermeability(core.finer)
        self.tensor: np.ndarray = self.value.tensor
        self.principal_values = None if core.principal_values is None else np.array(core.principal_values)
        self.principal_axes: np.ndarray | None = core.principal_axes
        self.error: float | None = core.error
        self.porosity: float = core.porosity
        self.pores = core.pores
        self.converged: bool = core.converged
        self.device: str = core.device

    @property
    def darcy(self) -> np.ndarray:
        """`tensor` in darcys."""
        return self.tensor / DARCY

    def __repr__(self) -> str:
        diagonal = ", ".join(f"{value:.4g}" for value in np.diag(self.tensor))
        return f"Permeability: diagonal ({diagonal}) m^2, porosity {self.porosity:.4g}"


def permeability(
    image: Any,
    *,
    voxel: float | Sequence[float] = 1.0,
    order: int | str = 2,
    directions: str | Iterable[str] | None = None,
    sides: str = "wall",
    drive: str = "force",
    error: str = "none",
    mac: bool = True,
    refine: int = 0,
    fields: bool = False,
    visit: Callable[[str, Solution], None] | None = None,
    progress: bool | Callable[[str, float, str], None] = False,
    **options: Any,
) -> Permeability:
    """The permeability K of Darcy's law, of a segmented image.

        >>> import numpy as np
        >>> solid = np.zeros((6, 4, 4), dtype=bool)  # a square duct, 4 voxels wide
        >>> result = permeability(solid, voxel=1e-6, directions="x", mac=False)
        >>> float(round(result.tensor[0, 0] / 16e-12, 3))
        0.035

    Args:
        image: an array [x, y, z], or [x, y], that is true, or not 0, in solid, as Mesh.image() takes it.
        voxel: its size in metres, or one for each direction.
        order: k of the element RT_k x Q_k, or "mac", the marker-and-cell scheme: fast, and several voxels across pores
            are needed.
        directions: of flows, such as "xz"; by default all.
        sides: across the flow: "wall", or "periodic", which gives the whole tensor if a force drives the flow.
        drive: "force", periodic along the flow, or "pressure", between open ends.
        error: "none", or an estimate of the discretisation's error by a higher "order" or by "refinement".
        mac: beside orders >= 1 the permeability by the marker-and-cell scheme, if the build has order 0.
        refine: cuts each voxel into 2^(refine dim) cells.
        fields: whether the result has velocity and pressure of each voxel, by `order`: 4 (dim + 1) bytes a voxel and
            direction.
        visit: called with "x", "y" or "z" and the flow along it, by `order`; its lengths are voxels, its driving force
            (or mean gradient of the pressure) is 1, as is its viscosity.
        progress, options: as of solve().

    Raises:
        InputError, ResourceError: as solve().
    """
    mesh = Mesh.image(image, voxel=voxel)
    names = "xyz"[: mesh.dim]
    wanted = list(names if directions is None else directions)
    for name in wanted:
        if name not in names:
            raise InputError(f"directions: expected some of {', '.join(names)}, got {directions!r}")
    asked = {"directions": wanted, "sides": sides, "drive": drive, "error": error, "mac": bool(mac)}
    show = None
    kept: dict[str, ImageFields] = {}
    if fields or visit is not None:

        def show(direction: str, core: _core.Solution) -> None:
            flow = Solution(core, Problem._of(core.problem))
            if fields:
                kept[direction] = flow.image_fields()
            if visit is not None:
                visit(direction, flow)

    lumped = order == "mac"

    def compute(tell: Callable[[str, float, str], None] | None) -> Permeability:
        return Permeability(
            _core.permeability(
                mesh.voxels,
                0 if lumped else _integer("order", order),
                lumped,
                _integer("refine", refine),
                asked,
                options,
                show,
                tell,
            ),
            kept,
        )

    if progress is True:
        with ProgressBar() as bar:
            result = compute(bar.show)
    else:
        result = compute(progress or None)
    for value in (result.value, result.mac, result.finer):
        for flow in value.flows if value is not None else ():
            if not flow.converged:
                warnings.warn(
                    f"not converged: flow along {flow.direction}, {flow.reason}; {flow.iterations} iterations, relative "
                    f"residual {flow.residual:.1e}",
                    ConvergenceWarning,
                    stacklevel=2,
                )
    return result
