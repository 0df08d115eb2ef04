#!/usr/bin/env python3
"""The tables of docs/support.md, made of the table by which the program validates.

docs/support.py PROGRAM          checks that they are those of `PROGRAM info --support --json`; exit status 1 if not
docs/support.py PROGRAM --write  writes them
"""

import json
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "support.md"
TABLE = re.compile(r"<!-- (choices|refused) -->\n.*?<!-- end of \1 -->", re.DOTALL)


def words(values):
    return ", ".join(f"`{value}`" for value in values)


def choices(support):
    rows = ["| choice | values | meaning |", "| --- | --- | --- |"]
    rows += [f"| `{axis['name']}` | {words(axis['values'])} | {axis['meaning']} |" for axis in support["axes"]]
    return "\n".join(rows)


def refused(support):
    rows = ["| refused | with | the error says |", "| --- | --- | --- |"]
    for rule in support["refused"]:
        other = rule["with"]
        partner = f"`{other['axis']}`: {words(other['values'])}" if other else "everything"
        reason = rule["reason"].replace("{}", "...")
        rows.append(f"| `{rule['axis']}`: {words(rule['values'])} | {partner} | {reason} |")
    return "\n".join(rows)


def generated(program):
    command = [program, "info", "--support", "--json"]
    support = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    tables = {"choices": choices(support), "refused": refused(support)}
    page = PAGE.read_text()
    names = TABLE.findall(page)
    if sorted(names) != sorted(tables):
        sys.exit(f"{PAGE.name} has tables for {sorted(names)}, expected {sorted(tables)}")
    return page, TABLE.sub(lambda m: f"<!-- {m[1]} -->\n{tables[m[1]]}\n<!-- end of {m[1]} -->", page)


def main(program, *options):
    page, wanted = generated(program)
    if "--write" in options:
        PAGE.write_text(wanted)
    elif page != wanted:
        sys.exit(f"docs/{PAGE.name} is not what the program validates by: run docs/support.py PROGRAM --write")


if __name__ == "__main__":
    main(*sys.argv[1:])
