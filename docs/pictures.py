#!/usr/bin/env python3
"""Pictures of the documentation, small enough for a page. Needs Pillow (docs/requirements.txt).

docs/pictures.py PROGRAM          solves every case in cases/, and cases/permeability/rock.toml, with the program
                                  `solenoid`: docs/images/cases
docs/pictures.py PROGRAM FOLDER   marches the FLOWS of cases/time that have not left their files in FOLDER:
                                  docs/images/time
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).resolve().parent
WIDTH = 640
#: Flows of cases/time with settings for their pictures.
FLOWS = {"backward_step": [], "cavity": [], "kovasznay": [], "shear_layer": ["--set", "mesh.refine=6"], "square": [],
         "taylor_green_3d": []}


def small(image):
    """A page's width, in 256 colours of its own: dithered, since bands of one colour would look like contours."""
    image = image.resize((WIDTH, image.height * WIDTH // image.width), Image.Resampling.LANCZOS)
    chosen = image.quantize(256, Image.Quantize.MEDIANCUT, kmeans=3).getpalette()
    colours = [chosen[i : i + 3] for i in range(0, len(chosen), 3)]
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour in colours for value in ((255, 255, 255) if min(colour) > 247 else colour)])
    return image.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)


def keep(picture, folder):
    file = DOCS / "images" / folder / picture.name
    file.parent.mkdir(parents=True, exist_ok=True)
    small(Image.open(picture).convert("RGB")).save(file, optimize=True)
    print(f"{file.relative_to(DOCS)}: {file.stat().st_size // 1024} kB")


def of_cases(program):
    for case in sorted((DOCS.parent / "cases").glob("*.toml")):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, "solve", case, "--output", folder, "--quiet"], check=True)
            (picture,) = Path(folder).glob("*.png")
            keep(picture.rename(picture.with_stem(case.stem)), "cases")


def of_permeability(program):
    with tempfile.TemporaryDirectory() as folder:
        case = DOCS.parent / "cases/permeability/rock.toml"
        subprocess.run([program, "permeability", case, "--output", folder, "--quiet"], check=True)
        keep((Path(folder) / "speed_x.png").rename(Path(folder) / "rock.png"), "cases")


def of_flows(program, work):
    for name, settings in FLOWS.items():
        folder = Path(work) / name
        if not (folder / "result.json").exists():
            case = DOCS.parent / "cases/time" / f"{name}.toml"
            subprocess.run([program, "solve", case, "--output", folder, "--quiet", *settings], check=True)
        for picture in sorted(folder.glob("*.png")):
            keep(picture, "time")


if __name__ == "__main__":
    if len(sys.argv) == 2:
        of_cases(sys.argv[1])
        of_permeability(sys.argv[1])
    else:
        of_flows(*sys.argv[1:])
