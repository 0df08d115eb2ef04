#!/usr/bin/env python3
"""The tables of keys in docs/case-file.md, made of the table that the program reads case files with.

docs/keys.py PROGRAM          checks that the tables are those of `PROGRAM info --keys`; exit status 1 if not
docs/keys.py PROGRAM --write  writes them
"""

import re
import sys

from generated import said_by, table, update


def row(key):
    default = key["default"]
    if default == "":
        default = "none"
    elif default != "required":
        default = f"`{default}`"
    kind = re.sub(r'(\{[^}]*\}|"[^"]*")', r"`\1`", key["type"])
    cells = (f"`{key['name']}`", kind, default, key["meaning"])
    return [cell.replace("|", "\\|") for cell in cells]


def main(program, *options):
    parts = {f"keys of {section['name']}": table(["key", "type", "default", "meaning"], map(row, section["keys"]))
             for section in said_by(program, "info", "--keys")}
    update("case-file.md", parts, "docs/keys.py PROGRAM", options)


if __name__ == "__main__":
    main(*sys.argv[1:])
