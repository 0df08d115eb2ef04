#!/usr/bin/env python3
"""Runs the code blocks of README.md, CONTRIBUTING.md, packaging/ and docs/, and checks what the pages say about files.

docs_test.py PROGRAM [--compiler CXX] [--include FOLDER]... [--only LANGUAGE] [PAGE]...

sh     lines that call `solenoid` are run in a temporary folder with a copy of cases/, on small sizes (SMALLER); other
       commands must be known to OTHER_COMMANDS, which says what becomes of them
toml   `solenoid check`
cpp    compiled; the test `install` builds and runs them, with the README's lines of CMake
python run if this Python can import the package solenoid; blocks of a page share their variables
A block after <!-- not run: REASON --> is skipped, unless the reason is something missing that is there (NEEDS), and so
are those of other languages: text, json, cmake.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(?:<!-- not run: (?P<reason>[^\n]*) -->\n)?^```(?P<language>[^\n]*)\n(?P<text>.*?)^```$",
                   re.DOTALL | re.MULTILINE)
TIME_LIMIT = 300
LANGUAGES = ["sh", "toml", "cpp", "python"]

# Studies are run on few unknowns; cases are refined three times at most (Page.smaller). All by one thread: two that wait
# for each other are slow beside other tests. The first rule that fits a command is applied.
SMALLER = [
    (r"(solve (?:(?!--threads).)*)$", r"\1 --threads 1"),
    (r"(study convergence)( --dim \d)?.*", r"\1 --dim 2 --orders ORDER --refine 2,3 --threads 1"),
    (r"(study iterations --preset paper).*", r"\1 --dim 2 --orders ORDER --levels 4 --threads 1"),
    (r"(study iterations).*", r"\1 --dim 2 --orders ORDER --levels 3,4 --threads 1"),
    (r"(study throughput)( --domains [a-z,]+)?.*", r"\1\2 --dim 2 --orders ORDER --sizes 1e3 --threads 1"),
    (r"(study coefficients).*", r"\1 --dim 2 --orders ORDER --sizes 1e3 --threads 1"),
    (r"(study cells).*", r"\1 --dim 2 --orders ORDER --sizes 1e3 --threads 1"),
    (r"(study capacity).*", r"\1 --dim 2 --orders ORDER --size 1e4 --threads 1"),
    (r"(study \w+).*", r"\1 --help"),  # the others take minutes: their options only
]

# What may stand in a block beside `solenoid`: "run", or what is checked of it here, or what else tests it.
OTHER_COMMANDS = [
    (r"mkdir -p |python3 -c |sed ", "run"),
    (r"(?:cmake|cmake --build|ctest) --preset (\S+)", "preset"),
    (r"(?:\./)?((?:docs|tools|packaging|python|\.ci)/\S+|quickstart|test)\b", "file"),
    (r"cmake --install |g\+\+ .*pkg-config", "left to the test install"),
    (r"(?:pip|python3 -m venv|\.) ", "left to python/test and packaging/wheel"),
    (r"docker build -f (\S+)", "file"),
    (r"docker run ", "needs a container"),
    (r"build/\S+/tests/", "needs a build of its own"),
]

# What blocks that are marked as not run may need: whether it is there.
NEEDS = {
    "needs a GPU": lambda info: "\n             cuda, " in info,
    "needs mpi4py": lambda info: bool(importlib.util.find_spec("mpi4py")),
    "needs Pillow": lambda info: bool(importlib.util.find_spec("PIL")),
    "needs a GPU and cupy": lambda info: "\n             cuda, " in info and bool(importlib.util.find_spec("cupy")),
}


class Failure(Exception):
    pass


class Page:
    """The blocks of a page, run one after the other in a folder of their own."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.order = 2 if 2 in options.orders else options.orders[0]
        self.python_blocks = []
        shutil.copytree(ROOT / "cases", folder / "cases")

    def call(self, command, shell=False, **more):
        path = f"{Path(self.options.program).parent}:{os.environ['PATH']}"
        result = subprocess.run(
            command, shell=shell, cwd=self.folder, capture_output=True, text=True, timeout=TIME_LIMIT,
            executable="/bin/bash" if shell else None, env={**os.environ, "PATH": path, "MPLBACKEND": "Agg"}, **more)
        return result.returncode, result.stdout + result.stderr

    def run_block(self, language, text):
        return {"sh": self.shell, "toml": self.toml, "cpp": self.cpp, "python": self.python}[language](text)

    def shell(self, text):
        done = []
        for line in text.replace("\\\n", " ").splitlines():
            for command in re.split(r"\s+&&\s+", re.sub(r"\s+#\s.*", "", line).strip()):
                if command and not command.startswith(("#", "cd ")):
                    done.append(self.command(command))
        return ", ".join(f"{done.count(what)} {what}" for what in dict.fromkeys(done))

    def command(self, command):
        """Runs or checks a command and returns what was done."""
        call = re.fullmatch(r"(?:build/\w+/)?solenoid( .*)?", command)
        if call is None:
            found, kind = next(((found, kind) for pattern, kind in OTHER_COMMANDS
                                if (found := re.match(pattern, command))), (None, None))
            if found is None:
                raise Failure(f"unknown command: mark the block as not run, or add it to OTHER_COMMANDS: {command}")
            if kind == "preset" and found[1] not in presets():
                raise Failure(f"no preset {found[1]}")
            if kind == "file" and not (ROOT / found[1]).exists():
                raise Failure(f"{found[1]} does not exist")
            if kind != "run":
                return f"{kind} checked" if kind in ("preset", "file") else kind
        else:
            arguments = (call[1] or "").replace("CASE.toml", "cases/cavity_2d.toml")
            for pattern, smaller in SMALLER:
                arguments, count = re.subn(pattern, smaller, arguments)
                if count:
                    break
            command = "solenoid" + arguments.replace("ORDER", str(self.order))
        for case in self.folder.rglob("*.toml"):
            text = case.read_text()
            if (small := self.smaller(text)) != text:
                case.write_text(small)
        status, output = self.call(command, shell=True)
        if status != 0:
            raise Failure(f"{command}: exit status {status}\n{output}")
        return "run"

    def smaller(self, case):
        """A case at most three times refined, and of an order that the build has."""
        case = re.sub(r"^refine = ([4-9]|\d\d)", "refine = 3", case, flags=re.MULTILINE)
        return re.sub(r"^order = (\d+)", lambda order: order[0] if int(order[1]) in self.options.orders
                      else f"order = {self.order}", case, flags=re.MULTILINE)

    def toml(self, text):
        file = self.folder / "block.toml"
        if "[mesh]" not in text:
            text += "\n[mesh]\ncells = [1, 1]\n"
        file.write_text(self.smaller(text))
        status, output = self.call([self.options.program, "check", file.name])
        file.unlink()
        if status != 0:
            raise Failure(output)
        return "checked"

    def cpp(self, text):
        if not self.options.compiler:
            return "skipped: no compiler"
        status, output = self.call(
            [self.options.compiler, "-std=c++20", "-Wall", "-Werror", "-fsyntax-only", "-x", "c++", "-",
             *(f"-I{Path(folder).resolve()}" for folder in self.options.include)], input=text)
        if status != 0:
            raise Failure(output)
        return "compiled"

    def python(self, text):
        if not self.options.package:
            return "skipped: no package solenoid"
        self.python_blocks.append(text)
        status, output = self.call([sys.executable, "-W", "error::UserWarning", "-"], input="\n".join(self.python_blocks))
        if status != 0:
            raise Failure(output)
        return "run"


def presets():
    return {preset["name"] for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}


def pages():
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "packaging").glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return sorted(page for page in found if "auto_gallery" not in page.parts)


def check_page(path, options):
    """Runs the blocks of a page and returns how many failed."""
    failures = 0
    text = path.read_text()
    page = Page(options, Path(tempfile.mkdtemp(dir=options.work)))
    for match in BLOCK.finditer(text):
        language = match["language"]
        if language not in ([options.only] if options.only else LANGUAGES):
            continue
        line = text.count("\n", 0, match.start("language")) + 1
        reason = match["reason"]
        try:
            run = not reason or (reason in NEEDS and NEEDS[reason](options.info))
            result = page.run_block(language, match["text"]) if run else f"not run: {reason}"
        except (Failure, subprocess.TimeoutExpired) as failure:
            failures += 1
            result = f"FAILED\n{failure}"
        print(f"{path.relative_to(ROOT)}:{line}: {language}: {result}", flush=True)
    return failures


def check_links():
    """Links between pages and to files of the sources lead somewhere, directives of Sphinx are hidden from other readers,
    every case has a tutorial with a picture."""
    failures = []
    for path in pages():
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (path.parent / target).exists():
                failures.append(f"{path.relative_to(ROOT)}: the link {target} leads nowhere")
        if re.search(r"^ *```+\{", re.sub(r"<!-- html\n.*?\n-->", "", path.read_text(), flags=re.DOTALL), re.MULTILINE):
            failures.append(f"{path.relative_to(ROOT)}: a directive of Sphinx outside of <!-- html ... -->")
    for case in (ROOT / "cases").glob("*.toml"):
        for file in (ROOT / "docs/tutorials" / f"{case.stem}.md", ROOT / "docs/images/cases" / f"{case.stem}.png"):
            if not file.exists():
                failures.append(f"cases/{case.name} has no {file.relative_to(ROOT)}")
    return failures


def check_result_keys(program, work):
    """docs/case-file.md names all fields of the result file."""
    page = (ROOT / "docs/case-file.md").read_text()
    page = page[page.index("## Result file"):]
    failures = []
    for case in ("paper_2d", "poisson_2d"):
        text = re.sub(r"refine = .*", "refine = 2", (ROOT / "cases" / f"{case}.toml").read_text())
        (work / "case.toml").write_text(text)
        status = subprocess.run([program, "solve", "case.toml", "--quiet", "--json", "result.json"], cwd=work,
                                capture_output=True).returncode
        if status != 0:
            continue  # the order is not part of the build
        result = json.loads((work / "result.json").read_text())
        fields = [f"{name}.{entry}" for name in ("error", "time") for entry in result[name]]
        fields += [name for name in result if name not in ("error", "time")]
        failures += [f"docs/case-file.md says nothing of `{field}` in result files" for field in fields
                     if f"`{field}`" not in page]
    return failures


def check_dependencies(info):
    """packaging/dependencies.md has what `solenoid info` says is built in, with the same licence."""
    page = (ROOT / "packaging/dependencies.md").read_text()
    failures = []
    for name, licence in re.findall(r"^(?:built with)? +(\S.*?) [\d.]+ \((.*)\)$", info, re.MULTILINE):
        if not re.search(rf"^\| {re.escape(name)} \|.*\| {re.escape(licence)} \|$", page, re.MULTILINE):
            failures.append(f"packaging/dependencies.md has no line for {name} with the licence {licence}")
    return failures


def check_length():
    """The README stays short."""
    most = 130
    lines = len((ROOT / "README.md").read_text().splitlines())
    return [f"README.md: {lines} lines, at most {most} are wanted"] if lines > most else []


def orders(info):
    """Those of the build in 2D and in 3D."""
    lists = re.findall(r"^(?:orders|Poisson) \dD +(.*)$", info, re.MULTILINE)
    return sorted(set.intersection(*({int(order) for order in text.split(", ")} for text in lists)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--compiler")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--only", choices=LANGUAGES, help="blocks of this language")
    parser.add_argument("pages", nargs="*", type=Path)
    options = parser.parse_intermixed_args()
    options.program = str(Path(options.program).resolve())
    options.package = importlib.util.find_spec("solenoid") is not None
    options.info = subprocess.run([options.program, "info"], check=True, capture_output=True, text=True).stdout
    options.orders = orders(options.info)
    with tempfile.TemporaryDirectory() as work:
        options.work = work
        failures = sum(check_page(page.resolve(), options) for page in options.pages or pages())
        problems = check_length() + check_links()
        problems += check_result_keys(options.program, Path(work)) + check_dependencies(options.info)
    for problem in problems:
        print(problem)
    if failures or problems:
        sys.exit(f"{failures} blocks failed, {len(problems)} other problems")


if __name__ == "__main__":
    main()
