"""What people see while work goes on."""

from __future__ import annotations

import sys
import time
from typing import Any


class ProgressBar:
    """A line on stderr that is updated, on a terminal or in a notebook; elsewhere one line per finished stage."""

    WIDTH = 24

    def __init__(self, stream: Any = None):
        self._stream = sys.stderr if stream is None else stream
        self._live = self._stream.isatty() or "ipykernel" in sys.modules
        self._stage = ""
        self._start = 0.0
        self._last = ""

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: Any) -> None:
        self._finish()

    def show(self, stage: str, fraction: float, text: str) -> None:
        """Says how much of a stage (0 to 1) is done, with a line of text."""
        if stage != self._stage:
            self._finish()
            self._stage, self._start = stage, time.monotonic()
        done = round(self.WIDTH * min(max(fraction, 0.0), 1.0))
        elapsed = time.monotonic() - self._start
        line = f"{stage:8}{'█' * done}{'░' * (self.WIDTH - done)} {elapsed:6.1f} s  {text}"
        if self._live:
            self._stream.write("\r" + line.ljust(len(self._last)))
            self._stream.flush()
        self._last = line

    def _finish(self) -> None:
        if self._stage:
            self._stream.write("\n" if self._live else self._last + "\n")
            self._stream.flush()
        self._stage = self._last = ""
