#!/usr/bin/env python3
"""The tables of keys in docs/case-file.md, made of the table that the program reads case files with.

docs/keys.py PROGRAM          checks that the tables are those of `PROGRAM info --keys`; exit status 1 if not
docs/keys.py PROGRAM --write  writes them
"""

import json
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "case-file.md"
TABLE = re.compile(r"<!-- keys of (\S+) -->\n.*?<!-- end of keys -->", re.DOTALL)


def table(section):
    rows = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    for key in section["keys"]:
        default = key["default"]
        if default == "":
            default = "none"
        elif default != "required":
            default = f"`{default}`"
        kind = re.sub(r'(\{[^}]*\}|"[^"]*")', r"`\1`", key["type"])
        cells = (f"`{key['name']}`", kind, default, key["meaning"])
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)


def generated(program):
    text = subprocess.run([program, "info", "--keys"], check=True, capture_output=True, text=True).stdout
    sections = {section["name"]: section for section in json.loads(text)}
    page = PAGE.read_text()
    names = TABLE.findall(page)
    if sorted(names) != sorted(sections):
        sys.exit(f"{PAGE.name} has tables for {sorted(names)}, the program for {sorted(sections)}")
    return page, TABLE.sub(
        lambda m: f"<!-- keys of {m[1]} -->\n{table(sections[m[1]])}\n<!-- end of keys -->", page)


def main(program, *options):
    page, wanted = generated(program)
    if "--write" in options:
        PAGE.write_text(wanted)
    elif page != wanted:
        sys.exit(f"docs/{PAGE.name} is not what the program reads: run docs/keys.py PROGRAM --write")


if __name__ == "__main__":
    main(*sys.argv[1:])
