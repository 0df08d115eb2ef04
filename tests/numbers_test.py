#!/usr/bin/env python3
"""Compares the figures in README.md and docs/ with stored results.

numbers_test.py [PAGE]...

A block is what stands between two blank lines: a paragraph, a list, a table, or a fenced block. A comment before it says
where its figures come from; readers of the page do not see it, readers of its source do:

    <!-- figures: cuda_paper_3d_226M.json
    2.3, 0.115 = [time.setup, time.solve]
    119 = memory_bytes / dofs
    | GMRES = [report.dofs for report in reports]
    -->

names files of docs/results, or others of the repository: .hpp for its constants, .md for table_row(label), a row of a page
that is bound there. Every other line binds numbers as they are written to an expression of
the file's fields, in Python: one number or several; with `|` all numbers of the table rows, or lines of a `text` block,
that begin with these words: a list for one row, a list of lists for several. `name := expression` is for use in later
lines. Of several files each has its name: `cuda_capacity.rows`. A number agrees if the value rounds to it. Helpers:
row(rows, order=2, ...) is the one row with these fields, fields(...) an object with such, and log2.

    <!-- figures not stored: REASON -->      measured, but not kept; the text itself must say "not stored"
    <!-- figures exact: REASON -->           counted, chosen or quoted, not measured

take the place of a file; `figures of this section ...` and `figures of this page ...` reach to the next heading of the same
rank, and over the page.

What is a figure, and so must be bound or marked:
* a number with a decimal point or an exponent,
* a whole number before a unit (UNITS), also as "17 to 23 times", "2, 3 and 4 iterations",
* every number in a table's cell that begins with one, and in a block marked `text`,
and is none of these, which are of another nature: code, formulas, links, headings; part of a name (RT_2, 3D, H200,
step-104) or of a power (32^3); what comes after "=" (k = 2); a date; a version (after one of VERSIONED); a tolerance
("to 1e-6"); parts of pages that scripts make and other tests compare (docs/generated.py).
"""

import json
import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"

UNITS = (r"(?:[munµ]?s|min|minutes|h|seconds|milliseconds|microseconds|[kMGT]?B|bytes|[kMGT]?B/s|ns/DoF|B/DoF|flops|[GT]FLOP/s|MHz|W|%"
         r"|per cent|times|million|billion|thousand|M|iterations?|unknowns|cycles|registers|instructions|DoF)")
VERSIONED = r"(?:Debian|CMake|GCC|gcc|Clang|clang-format|CUDA|nvcc|capability|Python|deal\.II|version|solenoid|VTU|C\+\+)"
NUMBER = re.compile(r"(?:\d{1,3}(?: \d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d+)?")
COMMENT = re.compile(r"<!-- figures(?: of this (?P<reach>section|page))?(?P<kind>| not stored| exact): ?(?P<text>.*?) *-->",
                     re.DOTALL)
GENERATED = re.compile(r"<!-- ((\w+)(?: of \S+)?) -->\n.*?<!-- end of \2 -->", re.DOTALL)


class Wrong(Exception):
    pass


def row(rows, **fields):
    found = [r for r in rows if all(getattr(r, name, None) == value for name, value in fields.items())]
    if len(found) != 1:
        raise Wrong(f"{len(found)} rows with {fields}")
    return found[0]


def constants(path):
    """The numbers of `inline constexpr TYPE NAME{...};` in a C++ header."""
    text = re.sub(r"//.*", "", path.read_text())
    return {name: [float(number) for number in NUMBER.findall(values)]
            for name, values in re.findall(r"inline constexpr [\w:<>, ]+ (\w+)\{([^;]*)\};", text)}


def table_row(path, label):
    """The numbers of the row of another page's table that begins with the label; there they are bound themselves."""
    found = [line for line in path.read_text().splitlines() if line.startswith(f"| {label} |")]
    if len(found) != 1:
        raise Wrong(f"{len(found)} rows of {path.name} begin with {label!r}")
    return [float(number) for _, number in numbers(found[0][found[0].index("|", 1):])]


def fields_of(name):
    path = ROOT / name if (ROOT / name).is_file() else RESULTS / name
    if not path.is_file():
        raise Wrong(f"there is no {name} in docs/results")
    if path.suffix == ".hpp":
        return constants(path)
    if path.suffix == ".md":
        return {"table_row": lambda label: table_row(path, label)}
    return vars(json.loads(path.read_text(), object_hook=lambda fields: SimpleNamespace(**fields)))


def agrees(written, value):
    """Whether the value rounds to the number as it is written."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    mantissa, _, exponent = written.replace(" ", "").partition("e")
    digits = len(mantissa.partition(".")[2])
    power = 10.0 ** int(exponent or 0)
    return abs(value - float(mantissa) * power) <= 0.5000001 * 10.0**-digits * power


def blanked(text, pattern, flags=0):
    """The text with what fits the pattern replaced by blanks, so that places stay."""
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", "\0", match[0]), text, flags=flags)


def numbers(line):
    """(place, number) of those in a line that are no part of a name, power, date or version."""
    for match in NUMBER.finditer(line):
        before, after = line[:match.start()], line[match.end():]
        if re.search(r"[\w.^/#\0:]$|\w-$|[\d)]\^?-$", before) or re.match(r"[\w^/]|\.\w|-\d|\0", after):
            continue
        if re.search(rf"= ?-?$|\b{VERSIONED} $", before) or (re.search(r"\bto (?:exactly )?$", before) and match[0].startswith("1e-")):
            continue
        sign = "-" if before.endswith("-") else ""
        yield match.start() - len(sign), sign + match[0]


class Block:
    """A part of a page between blank lines, with the comment that comes before it."""

    def __init__(self, line, text, mark):
        self.line, self.text, self.mark = line, text, mark
        self.lines = self.visible().split("\n")
        self.figures = {(i, place): number for i, content in enumerate(self.lines)
                        for place, number in self.figures_of(i, content)}
        self.found = {(i, place): number for i, content in enumerate(self.lines) for place, number in numbers(content)}

    def fence(self):
        match = re.match(r"```(\S*)", self.text)
        return match and match[1]

    def visible(self):
        """What is read as text: code, formulas, links and comments are blanks."""
        if self.fence() is not None:
            return re.sub(r"^.*\n|\n```$", "\n", self.text) if self.fence() == "text" else ""
        text = blanked(self.text, r"<!--.*?-->", re.DOTALL)
        text = blanked(text, r"\$\$.*?\$\$|\$[^$\n]+\$|``.*?``|`[^`]*`", re.DOTALL)
        return blanked(text, r"(?<=\])\([^)]*\)|https?://\S+|!\[[^\]]*\]|^ *#.*|^    \S.*", re.MULTILINE)

    def is_table(self):
        return self.text.startswith("|")

    def figures_of(self, index, content):
        found = list(numbers(content))
        if self.fence() == "text":
            return found
        if self.is_table():
            if index < 2:
                return []
            cells, place, figures = content.split("|"), 0, []
            for number, cell in enumerate(cells):
                inside = [(at, text) for at, text in found if place <= at < place + len(cell)]
                if re.match(r" *\**-?\d", cell) and number > 1:
                    figures += inside
                else:
                    figures += self.in_prose(content, inside)
                place += len(cell) + 1
            return figures
        return self.in_prose(content + " " + (self.lines[index + 1] if index + 1 < len(self.lines) else ""), found)

    @staticmethod
    def in_prose(content, found):
        """Those with a decimal point, an exponent or a unit, or in a row with one that has a unit."""
        figures, next_one = [], None
        for place, number in reversed(found):
            after = content[place + len(number):]
            united = re.match(rf" ?{UNITS}(?![\w-])", after)
            if next_one is not None and not united:
                between = content[place + len(number):next_one]
                united = re.fullmatch(r",? ?(?:to|and|or|of|of the|instead of)? ", between)
            if united or re.search(r"[.e]", number):
                figures.append((place, number))
                next_one = place if united else None
            else:
                next_one = None
        return figures[::-1]


def blocks_of(text):
    """The blocks of a page, and its marks of sections and the page: [(first line, last line, mark)]."""
    text = GENERATED.sub(lambda match: "\n" * match[0].count("\n"), text)
    lines = text.split("\n")
    blocks, reaches, mark, start, i = [], [], None, None, 0

    def close(end):
        nonlocal start, mark
        if start is not None:
            blocks.append(Block(start + 1, "\n".join(lines[start:end]), mark))
            start, mark = None, None

    while i < len(lines):
        line = lines[i]
        if line.startswith("```"):
            close(i)
            end = next((j for j in range(i + 1, len(lines)) if lines[j].startswith("```")), len(lines) - 1)
            blocks.append(Block(i + 1, "\n".join(lines[i:end + 1]), mark))
            mark, i = None, end + 1
            continue
        if line.startswith("<!-- "):
            close(i)
            end = next(j for j in range(i, len(lines)) if "-->" in lines[j])
            found = COMMENT.fullmatch("\n".join(lines[i:end + 1]).strip())
            if found and found["reach"]:
                reaches.append((*reach(lines, i, found["reach"]), found))
            elif found:
                mark = found
            i = end + 1
            continue
        if not line.strip() or line.startswith("#"):
            close(i)
        elif start is None:
            start = i
        i += 1
    close(len(lines))
    return blocks, reaches


def reach(lines, place, kind):
    """First and last line, from 1, of the section or page in which a mark stands."""
    if kind == "page":
        return 1, len(lines)
    rank = next((len(re.match("#+", line)[0]) for line in reversed(lines[:place]) if re.match("#+ ", line)), 1)
    end = next((i for i in range(place, len(lines)) if re.match(r"#{1,%d} " % rank, lines[i])), len(lines))
    return place + 1, end


def check_bound(block):
    """Compares a block with its files; returns the places of numbers that are bound, and what is wrong."""
    head, _, body = block.mark["text"].partition("\n")
    files = [name.strip() for name in head.split(",")]
    names = {function.__name__: function for function in (row, abs, len, max, min, range, sum, vars, zip)}
    names |= {"fields": SimpleNamespace, "log2": math.log2}
    for name in files:
        fields = fields_of(name)
        if len(files) == 1:
            names.update(fields)
        names[re.sub(r"\W", "_", Path(name).stem)] = SimpleNamespace(**fields)

    def value_of(expression):
        try:
            return eval(expression, {"__builtins__": {}, **names})  # it stands in a page of ours
        except Wrong:
            raise
        except Exception as error:
            raise Wrong(f"{expression.strip()}: {type(error).__name__}: {error}") from error

    bound, wrong = set(), []
    for line in filter(None, (line.strip() for line in body.split("\n"))):
        try:
            if match := re.fullmatch(r"(\w+) := (.*)", line):
                names[match[1]] = value_of(match[2])
                continue
            written, equals, expression = line.partition(" = ")
            if not equals:
                raise Wrong(f"not a binding: {line}")
            value = value_of(expression)
            if written.startswith("|"):
                bound |= check_rows(block, written[1:].strip(), value)
            else:
                bound |= check_words(block, [number.strip() for number in written.split(",")], value)
        except Wrong as problem:
            wrong.append(str(problem))
    return bound, wrong


def check_words(block, words, value):
    values = value if isinstance(value, list) else [value]
    if len(words) != len(values):
        raise Wrong(f"{', '.join(words)}: {len(words)} numbers, but {len(values)} values")
    bound = set()
    for word, stored in zip(words, values):
        places = {place for place, number in block.found.items() if number == word}
        if not places:
            raise Wrong(f"{word} is bound, but not there")
        if not agrees(word, stored):
            raise Wrong(f"{word} is {stored} in the stored result")
        bound |= places
    return bound


def check_rows(block, label, value):
    wanted = value if value and isinstance(value[0], list) else [value]
    rows = [i for i, line in enumerate(block.lines)
            if re.sub(r"[\s|*`\0]+", " ", line).strip().startswith(label) and (not block.is_table() or i > 1)]
    if len(rows) != len(wanted):
        raise Wrong(f"{len(rows)} rows begin with {label!r}, but {len(wanted)} are stored")
    bound = set()
    for i, values in zip(rows, wanted):
        places = [place for place in sorted(block.found) if place[0] == i]
        if block.is_table():
            first = block.lines[i].index("|", 1)
            places = [place for place in places if place[1] > first]
        values = [stored for stored in values if stored is not None]
        written = [block.found[place] for place in places]
        if len(written) != len(values) or not all(agrees(word, stored) for word, stored in zip(written, values)):
            raise Wrong(f"the row {label!r} has {', '.join(written)}, stored is "
                        f"{', '.join(f'{stored:.5g}' for stored in values)}")
        bound.update(places)
    return bound


def check_page(path):
    failures = []
    blocks, reaches = blocks_of(path.read_text())
    lines = path.read_text().split("\n")
    for first, last, mark in reaches:
        if mark["kind"] == " not stored" and "not stored" not in " ".join(re.sub(r"<!--.*?-->", "", line)
                                                                          for line in lines[first - 1:last]):
            failures.append((first, "marked as not stored, but the text does not say so"))
    for block in blocks:
        bound = set()
        mark = block.mark
        try:
            if mark and not mark["kind"]:
                bound, wrong = check_bound(block)
                failures += [(block.line, problem) for problem in wrong]
            elif mark and not mark["text"]:
                raise Wrong(f"figures{mark['kind']}: why?")
            elif mark and mark["kind"] == " not stored" and "not stored" not in " ".join(block.text.split()):
                raise Wrong("marked as not stored, but the text does not say so")
        except Wrong as problem:
            failures.append((block.line, str(problem)))
        if (mark and mark["kind"]) or any(first <= block.line <= last for first, last, _ in reaches):
            continue
        for (index, place), number in sorted(block.figures.items()):
            if (index, place) not in bound:
                context = block.lines[index][max(0, place - 30):place + len(number) + 30].replace("\0", "·")
                failures.append((block.line + index, f"{number} is not bound to a stored result: {context}"))
    return failures


def pages():
    return [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if "auto_gallery" not in page.parts)]


def main(*names):
    failures = 0
    for path in [Path(name).resolve() for name in names] or pages():
        for line, text in check_page(path):
            failures += 1
            print(f"{path.relative_to(ROOT)}:{line}: {text}")
    if failures:
        sys.exit(f"{failures} figures are wrong or of unknown origin; tests/numbers_test.py says what to do")


if __name__ == "__main__":
    main(*sys.argv[1:])
