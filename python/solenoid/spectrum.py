"""How the kinetic energy of a flow is shared among the lengths of its waves."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ._core import InputError

if TYPE_CHECKING:
    from .solution import Solution


class Spectrum(NamedTuple):
    """The kinetic energy of samples by wavenumber. `energy / wavenumber[1]` is the density E(k), whose integral over k is
    the energy for each unit of volume."""

    #: |k| in the middle of each shell, s kappa for s = 0, 1, ...: an array.
    wavenumber: np.ndarray
    #: The energy in each shell, for each unit of volume: an array of the same shape.
    energy: np.ndarray


def spectrum(self: Solution, points: int | tuple[int, ...] | None = None) -> Spectrum:
    """The kinetic energy of a periodic flow by the lengths of its waves. With the velocities u_j at n equidistant points,
    the middles of as many equal intervals in each direction,

        u_k = 1/n sum_j u_j exp(-i k.x_j),   E_s = sum over (s - 1/2) kappa <= |k| < (s + 1/2) kappa of |u_k|^2 / 2,

    where k has the components 2 pi m / L for integers m in the direction of length L, and kappa = 2 pi / max L. The sum
    of all E_s is the mean of |u_j|^2 / 2 over the points; E_0 is that of the mean velocity. Beyond the smallest of all
    pi n_a / L_a shells are not whole: points see no shorter waves along that axis.

    Args:
        points: in each direction, or in all of them; by default order + 1 in a cell.

    Raises:
        InputError: if a side is not periodic, if there are holes, and for Poisson's equation.
    """
    self._require_velocity()
    problem, mesh = self.problem, self.problem.mesh
    if mesh.holes:
        raise InputError(f"spectrum: expected a box without holes, which waves do not have, got {len(mesh.holes)} of them")
    if mesh.edges is not None:
        raise InputError("spectrum: expected a box, and this mesh is sheared")
    if mesh.voxels is not None:
        raise InputError("spectrum: expected a box without holes, which waves do not have, got an image")
    for side, kind in problem.sides.items():
        if kind != "periodic":
            raise InputError(f"spectrum: expected periodic sides, as waves go on beyond them, but {side} is {kind!r}")
    counts = self._counts((problem.order + 1) * np.asarray(self._core.extent) if points is None else points)
    lengths = np.subtract(mesh.upper, mesh.lower)
    velocity = self.velocity(self._lattice(counts))
    # Where the points begin turns the phases of waves, which have no part in the energy.
    waves = np.fft.fftn(velocity, axes=range(problem.dim), norm="forward")
    energy = 0.5 * (np.abs(waves) ** 2).sum(axis=-1)
    # |k| / kappa, with integers alone where all lengths are the same: shells do not depend on rounding there.
    numbers = [np.fft.fftfreq(n, 1 / n) * (lengths.max() / length) for n, length in zip(counts, lengths)]
    distance = np.sqrt(sum(m**2 for m in np.meshgrid(*numbers, indexing="ij", sparse=True)))
    shells = np.floor(distance + 0.5).astype(int)
    sums = np.bincount(shells.ravel(), weights=energy.ravel())
    return Spectrum(2 * np.pi / lengths.max() * np.arange(len(sums)), sums)
