#!/usr/bin/env python3
"""The case files in the tutorials, and what the program says of them.

docs/cases.py                 checks that the tutorials have the files of cases/; exit status 1 if not
docs/cases.py --write         writes them
docs/cases.py --run PROGRAM   solves all cases, in mixed precision on the cpu, and stores docs/results/cpu_cases.json and
                              cpu_permeability.json
"""

import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

from generated import DOCS, parts_of, update

CASES = DOCS.parent / "cases"


def block(file):
    return f"```toml\n{(CASES / file).read_text().strip()}\n```"


def without_times(result):
    """Those are of a machine that does other things too; studies measure times."""
    if isinstance(result, list):
        return [without_times(entry) for entry in result]
    if not isinstance(result, dict):
        return result
    return {key: without_times(entry) for key, entry in result.items() if key not in ("time", "time_setup")}


def result_of(program, command, case):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        subprocess.run([program, command, case, "--device", "cpu", "--quiet", "--json", file], check=True)
        return without_times(json.loads(file.read_text()))


def store(program, command, cases, name):
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], check=True, capture_output=True, text=True).stdout
    content = {"command": "docs/cases.py --run PROGRAM", "date": str(date.today()), "commit": commit.strip(),
               "cases": {case.stem: result_of(program, command, case) for case in sorted(cases)}}
    (DOCS / "results" / name).write_text(json.dumps(content, indent=1) + "\n")


def run(program):
    store(program, "solve", CASES.glob("*.toml"), "cpu_cases.json")
    store(program, "permeability", (CASES / "permeability").glob("*.toml"), "cpu_permeability.json")


def main(*options):
    if options[:1] == ("--run",):
        run(options[1])
        return
    for page in sorted((DOCS / "tutorials").glob("*.md")):
        name = f"tutorials/{page.name}"
        parts = {part: block(part.removeprefix("case of ")) for part in parts_of(name)}
        update(name, parts, "docs/cases.py", options)


if __name__ == "__main__":
    main(*sys.argv[1:])
