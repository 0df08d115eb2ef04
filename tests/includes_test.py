#!/usr/bin/env python3
"""Data flows one way: a folder of src/ includes files of folders above it in the list below, and of no other.

tests/includes_test.py            exit status 1 if an #include goes up, leaves the list, or leads nowhere, or if the
                                  table of folders in docs/architecture.md does not say what a folder uses
tests/includes_test.py --write    writes that column of the table
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/architecture.md"

# From what knows least to what knows most.
FOLDERS = [
    "base",
    "image",
    "problem",
    "element",
    "mesh",
    "level",
    "solution",
    "engine",
    "solver",
    "time",
    "permeability",
    "case",
    "output",
    "program",
]

# Public headers belong to the folder that implements them.
PUBLIC = {
    "communicator": "base",
    "error": "base",
    "interrupt": "base",
    "version": "base",
    "image": "image",
    "choices": "problem",
    "kernel_choices": "problem",
    "mesh": "problem",
    "cellwise": "problem",
    "field": "problem",
    "problem": "problem",
    "options": "problem",
    "arrays": "solution",
    "integrals": "solution",
    "averages": "solution",
    "checkpoint": "solution",
    "solution": "solution",
    "solver": "solver",
    "linear_system": "solver",
    "time_stepper": "time",
    "permeability": "permeability",
    "case": "case",
    "output": "output",
}

# Written by CMake.
GENERATED = {"solenoid/version.hpp", "build_info.hpp"}

INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
ROW = re.compile(r"^\| `src/(\w+)/` \|(.*)\|([^|]*)\|$", re.MULTILINE)


def folder_of(path):
    """The folder of a file, given relative to src/ or include/."""
    first, _, rest = path.partition("/")
    return PUBLIC.get(rest.split(".")[0]) if first == "solenoid" else first


def sources():
    """Every file that includes others, its path as others include it."""
    for base in (ROOT / "src", ROOT / "include"):
        for file in sorted(base.rglob("*")):
            if file.is_file():
                yield file, file.relative_to(base).as_posix()


def arrows():
    """What is wrong with single lines, and the folders that each folder uses, with a line that shows it."""
    wrong = []
    uses = defaultdict(dict)
    known = {name for _, name in sources()} | GENERATED
    for file, name in sources():
        folder = folder_of(name)
        if folder not in FOLDERS:
            wrong.append(f"{file.relative_to(ROOT)}: its folder is not in the list of {Path(__file__).name}")
            continue
        text = file.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            target = match[1]
            here = f"{file.relative_to(ROOT)}:{text.count(chr(10), 0, match.start(1)) + 1} includes {target}"
            if target in GENERATED:
                continue
            if target not in known:
                quoted = text[match.start(1) - 1] == '"'
                if quoted:
                    wrong.append(f"{here}: there is no such file in src/ or include/")
                continue
            other = folder_of(target)
            if other == folder:
                continue
            uses[folder].setdefault(other, here)
            if other not in FOLDERS or FOLDERS.index(other) > FOLDERS.index(folder):
                wrong.append(f"{here}: {folder} must not know {other}, which uses it or may")
    return wrong, uses


def table(page, uses):
    """The page with the column of used folders as it is, and the folders that it has rows for."""
    rows = []

    def row(match):
        folder, middle, _ = match.groups()
        rows.append(folder)
        used = ", ".join(other for other in FOLDERS if other in uses[folder]) or "-"
        return f"| `src/{folder}/` |{middle}| {used} |"

    return ROW.sub(row, page), rows


def main(*options):
    wrong, uses = arrows()
    page = PAGE.read_text(encoding="utf-8")
    wanted, rows = table(page, uses)
    if rows != FOLDERS:
        wrong.append(f"docs/{PAGE.name}: its table has rows for {', '.join(rows)}, expected {', '.join(FOLDERS)}")
    if "--write" in options:
        PAGE.write_text(wanted, encoding="utf-8")
    elif page != wanted:
        wrong.append(f"docs/{PAGE.name}: its table does not say what folders use: run tests/{Path(__file__).name} --write")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
