#!/usr/bin/env python3
"""The pictures of the tutorials: docs/pictures.py PROGRAM solves every case in cases/ with the program `solenoid` and
writes docs/images/cases/CASE.png, small enough for a page. Needs Pillow (docs/requirements.txt)."""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
WIDTH = 640


def small(image):
    """A page's width, in 256 colours of its own: dithered, since bands of one colour would look like contours."""
    image = image.resize((WIDTH, image.height * WIDTH // image.width), Image.Resampling.LANCZOS)
    chosen = image.quantize(256, Image.Quantize.MEDIANCUT, kmeans=3).getpalette()
    colours = [chosen[i : i + 3] for i in range(0, len(chosen), 3)]
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour in colours for value in ((255, 255, 255) if min(colour) > 247 else colour)])
    return image.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)


def main(program):
    target = DOCS / "images" / "cases"
    target.mkdir(parents=True, exist_ok=True)
    for case in sorted((DOCS.parent / "cases").glob("*.toml")):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, "solve", case, "--output", folder, "--quiet"], check=True)
            (picture,) = Path(folder).glob("*.png")
            file = target / f"{case.stem}.png"
            small(Image.open(picture).convert("RGB")).save(file, optimize=True)
            print(f"{file.relative_to(DOCS)}: {file.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main(sys.argv[1])
