"""Arrays in the memory of a GPU: of any library that has the CUDA array interface (CuPy, PyTorch, Numba, JAX)."""

from __future__ import annotations

from typing import Any

from ._core import InputError


def is_on_gpu(array: Any) -> bool:
    return hasattr(array, "__cuda_array_interface__")


def gpu_shape(array: Any) -> tuple[int, ...]:
    return tuple(array.__cuda_array_interface__["shape"])


def gpu_address(array: Any, shape: tuple[int, ...], name: str, writable: bool = False) -> int:
    """Where a contiguous array of float64 with this shape begins. Raises InputError for any other."""
    if not is_on_gpu(array):
        raise InputError(f"{name}: expected an array in the memory of a GPU, got {type(array).__name__}")
    interface = array.__cuda_array_interface__
    address, read_only = interface["data"]
    strides = interface.get("strides")
    if interface["typestr"] != "<f8" or tuple(interface["shape"]) != tuple(shape) or not _in_order(strides, shape):
        given = f"{interface['typestr']}, shape {tuple(interface['shape'])}, strides {strides}"
        raise InputError(f"{name}: expected a contiguous array of float64, shape {tuple(shape)}, got {given}")
    if writable and read_only:
        raise InputError(f"{name}: the array is read-only")
    return address


def _in_order(strides: tuple[int, ...] | None, shape: tuple[int, ...]) -> bool:
    """Whether these are the strides of C's order, in bytes."""
    step = 8
    for stride, count in reversed(list(zip(strides or (), shape))):
        if count > 1 and stride != step:
            return False
        step *= count
    return True
