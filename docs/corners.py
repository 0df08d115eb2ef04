#!/usr/bin/env python3
"""The tables of docs/corners.md, made of what `solenoid study corners` stored in docs/results.

docs/corners.py          checks that the tables are those of the stored results; exit status 1 if not
docs/corners.py --write  writes them
"""

import json
import sys

from generated import DOCS, parts_of, table, update

PAGE = "corners.md"
FIGURES = {"smoothing_step": "smoothing step", "cycle": "cycle", "iteration": "iteration", "solve": "solve",
           "set_up": "set-up"}
LIMIT = 2.0
WORST = 20  # pairs that are listed


def unknowns(row):
    return f"{row['dofs']:,}".replace(",", " ")


def coarsest(row):
    return f"{row['coarsest']['dofs']} {row['coarsest']['solve']}"


def iterations(row):
    return str(row["iterations"]) + ("" if row["converged"] else ", not converged")


def changes(row):
    text = ", ".join(f"{what}: {value}" for what, value in row["changes"].items())
    return text + (" (slow on purpose)" if row["slow_on_purpose"] else "")


def ratio(row, figure):
    value = row["over_main_path"][figure]
    text = f"{value:.3g}"
    if figure not in row["above_bars"]:
        return text
    return f"**{text}**" + (" !" if row["bars_hold"] else "")


def worst(row):
    return max(row["over_main_path"][figure] for figure in FIGURES if figure != "solve")


def main_path(rows):
    body = [[str(row["order"]), row["changes"].get("precision", "mixed"), unknowns(row), coarsest(row),
             *(f"{1e9 * row['seconds'][figure] / row['dofs']:.3g}" for figure in FIGURES), iterations(row)]
            for row in sorted(rows, key=lambda row: (row["order"], len(row["changes"]), row["dofs"]))]
    return table(["k", "precision", "unknowns", "coarsest", *FIGURES.values(), "iterations"], body)


def ratios(rows):
    body = [[changes(row), str(row["order"]), unknowns(row), coarsest(row),
             *(ratio(row, figure) for figure in FIGURES), iterations(row)] for row in rows]
    return table(["changed", "k", "unknowns", "coarsest", *FIGURES.values(), "iterations"], body)


def section(name):
    study = json.loads((DOCS / "results" / name).read_text())
    measured = [row for row in study["rows"] if "left_out" not in row]
    left_out = [row for row in study["rows"] if "left_out" in row]
    main = [row for row in measured if set(row["changes"]) <= {"precision"}]
    singles = [row for row in measured if row not in main and len(row["changes"]) == 1]
    pairs = [row for row in measured if len(row["changes"]) > 1]
    largest = max(row["unknowns"] for row in singles)
    above = [row for row in measured if row["bars_hold"] and row["above_bars"]]
    slow = [row for row in pairs if row["above_bars"] and not row["slow_on_purpose"]]
    listed = sorted(slow, key=worst, reverse=True)[:WORST]
    parts = [
        f"{study['device']}, {study['threads']} threads, {study['date']}, commit {study['commit']}: "
        f"{len(main)} rows of the main path, {len(singles)} with one change, {len(pairs)} with two, "
        f"{len(left_out)} left out; {len(above)} above a bar.",
        "The main path, ns per unknown:",
        main_path(main),
        f"One change, about {largest:.0e} unknowns, over the main path:",
        ratios(sorted((row for row in singles if row["unknowns"] == largest), key=lambda row: row["order"])),
    ]
    if above:
        parts += ["Above a bar:", ratios(sorted(above, key=worst, reverse=True))]
    if pairs:
        parts += [f"Of the pairs, {sum(row['slow_on_purpose'] for row in pairs)} have something that is slow on purpose; "
                  f"{len(slow)} others take more than {LIMIT:g} times the main path somewhere"
                  + (f", {'all' if len(listed) == len(slow) else 'the worst'} of which are:" if slow else ".")]
        parts += [ratios(listed)] if slow else []
    return "\n\n".join(parts)


def main(*options):
    parts = {part: section(part.removeprefix("corners of ")) for part in parts_of(PAGE)}
    update(PAGE, parts, "docs/corners.py", options)


if __name__ == "__main__":
    main(*sys.argv[1:])
