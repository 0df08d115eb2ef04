#!/usr/bin/env python3
"""The tables of docs/support.md, made of the table by which the program validates.

docs/support.py PROGRAM          checks that they are those of `PROGRAM info --support --json`; exit status 1 if not
docs/support.py PROGRAM --write  writes them
"""

import sys

from generated import said_by, table, update


def words(values):
    return ", ".join(f"`{value}`" for value in values)


def choice(axis):
    return [f"`{axis['name']}`", words(axis["values"]), axis["meaning"]]


def refusal(rule):
    other = rule["with"]
    partner = f"`{other['axis']}`: {words(other['values'])}" if other else "everything"
    return [f"`{rule['axis']}`: {words(rule['values'])}", partner, rule["reason"].replace("{}", "...")]


def main(program, *options):
    support = said_by(program, "info", "--support", "--json")
    parts = {"choices": table(["choice", "values", "meaning"], map(choice, support["axes"])),
             "refused": table(["refused", "with", "the error says"], map(refusal, support["refused"]))}
    update("support.md", parts, "docs/support.py PROGRAM", options)


if __name__ == "__main__":
    main(*sys.argv[1:])
