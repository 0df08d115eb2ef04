"""Parts of pages that are made of something else: between `<!-- NAME -->`, or `<!-- NAME of SOURCE -->`, and
`<!-- end of NAME -->`. The scripts beside this one write them (--write) or check that they are up to date."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PART = re.compile(r"<!-- ((\w+)(?: of \S+)?) -->\n.*?<!-- end of \2 -->", re.DOTALL)


def table(head, rows):
    """In Markdown; rows are lists of strings."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def said_by(program, *arguments):
    """The JSON that a program prints."""
    return json.loads(subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout)


def rows_of(file):
    """A table of numbers, {name of a column: number} for each row."""
    with open(file, newline="") as lines:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(lines)]


def parts_of(name):
    """What comes after `<!-- ` in a page, in order."""
    return [part[1] for part in PART.finditer((DOCS / name).read_text())]


def update(name, parts, command, options):
    """Writes the parts, {what comes after `<!-- `: text}, to a page, or exits with status 1 if they are not there.
    `command`: what writes them."""
    page = DOCS / name
    there = page.read_text()
    if sorted(parts_of(name)) != sorted(parts):
        sys.exit(f"docs/{name} has {sorted(parts_of(name))}, expected {sorted(parts)}")
    wanted = PART.sub(lambda part: f"<!-- {part[1]} -->\n{parts[part[1]]}\n<!-- end of {part[2]} -->", there)
    if "--write" in options:
        page.write_text(wanted)
    elif there != wanted:
        sys.exit(f"docs/{name} is out of date: run {command} --write")
