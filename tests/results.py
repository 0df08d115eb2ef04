"""What a run of ctest showed: `results.py BUILD` reads BUILD/ctest.xml and BUILD/test_results.

ctest knows programs, each of which has many tests and has left their results in BUILD/test_results/PROGRAM.xml. Prints
the name of every test that failed; the last line is "PASSED FAILED SKIPPED", in which a test of ctest that is no program
of GoogleTest, or that ended without results, counts as one.
"""

import sys
import xml.etree.ElementTree as xml
from collections import Counter
from pathlib import Path


def outcome(case):
    """Of a testcase in the format of JUnit, by ctest or GoogleTest."""
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    left_out = case.find("skipped") is not None or case.get("status") in ("notrun", "disabled")
    return "skipped" if left_out else "passed"


def results(build):
    """(name, outcome) of all tests."""
    for test in xml.parse(build / "ctest.xml").iter("testcase"):
        program = test.get("name")
        file = build / "test_results" / f"{program}.xml"
        cases = []
        if file.exists():
            cases = [
                (f"{program} --gtest_filter={case.get('classname')}.{case.get('name')}", outcome(case))
                for case in xml.parse(file).iter("testcase")
            ]
        yield from cases
        # A program may end with an error that is none of its tests'.
        if not cases or outcome(test) == "failed" and not any(end == "failed" for _, end in cases):
            yield program, outcome(test)


def main():
    counts = Counter()
    for name, end in results(Path(sys.argv[1])):
        counts[end] += 1
        if end == "failed":
            print(f"failed: {name}")
    print(counts["passed"], counts["failed"], counts["skipped"])


main()
