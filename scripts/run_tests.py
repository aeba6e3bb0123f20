#!/usr/bin/env python3
"""Runs the tests of a build and ends with one line that hides nothing.  run_tests.py BUILD [ctest arguments]

    170 passed, 0 failed, 2 skipped: corpus_redis (needs /usr/bin/tclsh8.6: apt-get install tcl8.6); Watch.Moves
    in watch_test (userfaultfd: operation not permitted)

A test is skipped as a whole (its exit status says so; the reason is the last line of what it printed), or some of its
cases are, by GoogleTest's or unittest's means: then the test counts as passed, and each such case as skipped.
Exit status: ctest's.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

GTEST_CASE = re.compile(r"^(?:.*: Skipped\n(?P<reason>(?:(?!\[).*\n)*?)\n*)?\[  SKIPPED \] (?P<case>\S+) \(", re.M)
# A reason is shown as Python writes a string: in double quotes where it has single ones.
UNITTEST_CASE = re.compile(r"^(?P<case>\w+) \([\w.]+\)(?:\n.*)?? \.\.\. skipped (?P<quote>['\"])(?P<reason>.*)(?P=quote)$", re.M)
UNITTEST_COUNT = re.compile(r"^(?:OK|FAILED) \((?:.*, )?skipped=(?P<count>\d+)", re.M)


def skipped_cases(output):
    """(case, reason) of each case that a test's output says was skipped."""
    named = {pattern: [(found["case"], " ".join((found["reason"] or "no reason given").split())) for found in pattern.finditer(output)]
             for pattern in (GTEST_CASE, UNITTEST_CASE)}
    counted = sum(int(found["count"]) for found in UNITTEST_COUNT.finditer(output))
    unnamed = [("a case", "unittest counts it and does not name it")] * (counted - len(named[UNITTEST_CASE]))
    return [*named[GTEST_CASE], *named[UNITTEST_CASE], *unnamed]


def summary(report):
    """The line, from ctest's report (JUnit)."""
    counts = collections.Counter()
    skipped = []
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name, output = case.get("name"), case.findtext("system-out") or ""
        if case.find("skipped") is not None and case.get("status") == "notrun" and "SKIP_" in case.find("skipped").get("message", ""):
            lines = output.strip().splitlines() or ["no reason given"]
            skipped.append(f"{name} ({lines[-1].strip()})")
            continue
        counts["passed" if case.get("status") == "run" else "failed"] += 1
        skipped += [f"{inner} in {name} ({reason})" for inner, reason in skipped_cases(output)]
    line = f"{counts['passed']} passed, {counts['failed']} failed, {len(skipped)} skipped"
    return line + (": " + "; ".join(skipped) if skipped else "")


def main(build, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        ended = subprocess.run(["ctest", "--no-tests=error", "--output-on-failure", "--test-output-size-passed", "1000000",
                                "--test-output-size-failed", "1000000", "--output-junit", report, *arguments], cwd=build)
        if not report.exists():
            print("no test was run")
            return ended.returncode or 1
        print(summary(report))
        return ended.returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
