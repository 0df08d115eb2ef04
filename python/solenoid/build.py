"""What this build is and what it runs on."""

from __future__ import annotations

from typing import Any

from . import _core


class Info(dict):
    """A dictionary that prints as a table."""

    def __repr__(self) -> str:
        def text(value: Any) -> str:
            if isinstance(value, dict):
                return "; ".join(f"{name}: {text(entry)}" for name, entry in value.items())
            if isinstance(value, list):
                return ", ".join(map(str, value))
            return str(value) or "none"

        return "\n".join(f"{name.replace('_', ' '):<15}{text(value)}" for name, value in self.items())


def info() -> Info:
    """The build and the machine.

    Returns a dictionary: `version`, `commit`, `compiler`, `build_type`, `orders` and `poisson_orders` (lists of k under
    "2D" and "3D"), `cpu_targets`, `cuda_build` (architectures and orders, empty without CUDA), `devices` (what can
    solve), `no_cuda` (why no GPU can be used, empty if one can), `built_with` (libraries, their versions and licences).
    """
    return Info(_core.info())
