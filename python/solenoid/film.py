"""Pictures of a series as a film."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ._core import InputError

# What a film may be: the writers of Pillow, with what they need besides the pictures.
_FORMATS = {
    ".gif": {"format": "GIF", "disposal": 1, "optimize": True},
    ".png": {"format": "PNG"},
    ".webp": {"format": "WEBP", "quality": 80, "method": 4},
}


def film(
    pictures: str | os.PathLike | Iterable[str | os.PathLike],
    file: str | os.PathLike,
    *,
    rate: float = 12.0,
    width: int | None = None,
) -> None:
    """Makes a film of pictures, as `solenoid solve` with `every` and `picture`, or Solution.to_png(), write them: it
    begins again at its end. Written whole or not at all. Pictures that have their colours in common (`scale` in
    [output], or of to_png()) make a film that does not flicker.

        >>> film("street_*_vorticity.png", "street.gif")  # doctest: +SKIP

    Args:
        pictures: names of files, in their order; or a pattern such as "flow_*.png", by name.
        file: its ending says what it is: .gif, which all programs show; .webp, smaller, with all colours; .png (APNG).
        rate: pictures a second.
        width: of the film in pixels, if not that of the pictures.

    Raises:
        InputError: where there are no pictures, or not all of one size; and for other endings.
        ImportError: without Pillow (pip install pillow), which matplotlib brings.
    """
    from PIL import Image  # optional

    target = Path(file)
    settings = _FORMATS.get(target.suffix.lower())
    if settings is None:
        raise InputError(f"film: expected a name that ends in {', '.join(_FORMATS)}, got {str(file)!r}")
    if not 0 < rate <= 100:
        raise InputError(f"rate: expected pictures a second, a number > 0 and at most 100, got {rate!r}")
    is_pattern = isinstance(pictures, (str, os.PathLike))
    names = sorted(glob.glob(os.fspath(pictures))) if is_pattern else [os.fspath(name) for name in pictures]
    if not names:
        raise InputError(f"film: no pictures{f': no file is called {os.fspath(pictures)!r}' if is_pattern else ''}")
    if width is not None and width < 1:
        raise InputError(f"width: expected pixels, an integer >= 1, got {width!r}")

    size = None

    def frame(name: str) -> Image.Image:
        nonlocal size
        with Image.open(name) as picture:
            if size is not None and picture.size != size:
                raise InputError(
                    f"film: {name!r} has {picture.size[0]} x {picture.size[1]} pixels, the first picture has "
                    f"{size[0]} x {size[1]}: expected one size"
                )
            size = picture.size
            if width is None:
                return picture.convert("RGB")
            return picture.convert("RGB").resize((width, max(1, round(width * size[1] / size[0]))), Image.LANCZOS)

    class Others:
        """The other pictures, read one by one each time that a writer goes through them."""

        def __iter__(self) -> Iterator[Image.Image]:
            return (frame(name) for name in names[1:])

    first = frame(names[0])
    partial = target.with_name(target.name + ".partial")
    try:
        first.save(
            partial,
            save_all=True,
            append_images=Others(),
            duration=round(1000 / rate),
            loop=0,
            **settings,
        )
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
