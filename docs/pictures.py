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


def main(program):
    target = DOCS / "images" / "cases"
    target.mkdir(parents=True, exist_ok=True)
    for case in sorted((DOCS.parent / "cases").glob("*.toml")):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, "solve", case, "--output", folder, "--quiet"], check=True)
            (picture,) = Path(folder).glob("*.png")
            image = Image.open(picture).convert("RGB")
            image = image.resize((WIDTH, image.height * WIDTH // image.width), Image.Resampling.LANCZOS)
            file = target / f"{case.stem}.png"
            image.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(file, optimize=True)
            print(f"{file.relative_to(DOCS)}: {file.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main(sys.argv[1])
