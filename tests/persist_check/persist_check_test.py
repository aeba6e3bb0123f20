#!/usr/bin/env python3
"""Programs with persistent memory, correct and with one mistake each, through `spillway persist check`. Arguments: the build, a folder to work in.

They are compiled by spillcc -fspill-persist=record, which tells of each store, and by -fspill-persist, where stores have to be found. Correct programs have no
bugs and waste nothing, at all crash points; each mistake is found, with the source lines that it is about.
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import HANG_SECONDS, temporary_folder  # noqa: E402
from checked import POOL, SOURCES, WORK, compile_all, recovery, spillway  # noqa: E402

IS_LONG = "SPILLWAY_TEST_LONG" in os.environ  # else each check ends with the first bug, and images are fewer


def setUpModule():
    compile_all("table", "log")


def lines_of(program, pattern):
    """The lines of the program's source that match."""
    return {number for number, line in enumerate((SOURCES / f"{program}.c").read_text().splitlines(), 1) if re.search(pattern, line)}


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = temporary_folder(self)

    def check(self, program, bug, *options, kind="told", recover=True, name="case"):
        """The report, and what was printed."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "memory").unlink(missing_ok=True)
        recover = ["--recover", recovery(program, bug)] if recover else []
        ended = spillway("check", "--out", folder / "out", *recover, *options, "--", WORK / f"{program}.{kind}", "run", folder / "memory", bug)
        self.assertEqual(ended.stderr, "", ended)
        report = json.loads((folder / "out" / "report.json").read_text())
        self.assertEqual(ended.returncode, int(report["has_bugs"]), ended)
        return report, ended.stdout


class Correct(Case):
    def test_has_no_findings(self):
        for kind, images in (("told", 100 if IS_LONG else 16), ("untold", 100)):
            checks = {program: POOL.submit(self.check, program, 0, "--images", images, kind=kind, name=f"{program}.{kind}")
                      for program in ("table", "log")}
            for program, job in checks.items():
                report, text = job.result()
                self.assertEqual((report["bugs"], report["findings"], report["is_ended"]), ([], [], True), text)
                self.assertGreater(report["recovery"]["images"], 350 if kind == "told" else 50)
                self.assertIn(": no bugs\n", text)
                self.assertEqual(sorted(path.name for path in (self.folder / f"{program}.{kind}" / "out").iterdir()),
                                 ["log", "log.1", "report.json"])


FLUSH_OR_FENCE = r"PERSIST_F"
RECORD, SLOT, WORDS = r"STORE\(&record->", r"STORE\(&slot->", r"STORE\(&to\["

# What is said of a mistake without a recovery, as kinds; and the lines of the source that the first image it does not come back from is about: what is `behind` in it, what
# is `ahead`, whether a store was torn.
Mistake = collections.namedtuple("Mistake", "name program bug kinds behind ahead is_torn", defaults=(False,))
MISTAKES = [
    Mistake("a record is not flushed", "table", 1, {"missing flush", "redundant fence"}, RECORD, SLOT),
    Mistake("no fence before it is published", "table", 2, set(), RECORD, SLOT),
    Mistake("published first", "table", 3, set(), None, SLOT),
    Mistake("what publishes is not flushed", "table", 4, {"missing flush", "redundant fence"}, SLOT, None),
    Mistake("what publishes is not fenced", "table", 5, {"missing fence"}, SLOT, None),
    Mistake("another range is flushed", "table", 6, {"missing flush", "flush of nothing", "redundant flush"}, RECORD, SLOT),
    Mistake("half of the range is flushed", "table", 7, {"missing flush"}, RECORD, SLOT),
    Mistake("flushed before it is stored", "table", 8, {"missing flush", "flush of nothing"}, RECORD, SLOT),
    Mistake("a store of 16 bytes is torn", "table", 9, set(), "_mm_store_si128", None, True),
    Mistake("two lines are changed in place", "table", 10, set(), None, RECORD),
    Mistake("a recovery believes a count", "table", 11, set(), None, SLOT),
    Mistake("a tag before what it is of", "table", 12, set(), None, SLOT),
    Mistake("it counts as made before it is", "table", 13, set(), None, "STORE.*magic"),
    Mistake("no checksum", "log", 1, set(), None, WORDS),
    Mistake("a length before the record", "log", 2, set(), None, WORDS),
    Mistake("no fence between record and length", "log", 3, set(), WORDS, "STORE.*tail|STORE.*to"),
    Mistake("a checksum that leaves the content out", "log", 4, set(), None, WORDS),
    Mistake("the last line is not flushed", "log", 5, {"missing flush"}, WORDS, None),
    Mistake("an append is not fenced", "log", 6, {"missing fence"}, WORDS, None),
    Mistake("stores past the caches are not fenced", "log", 7, {"missing fence"}, "_mm_stream", None),
    Mistake("old records count as new ones", "log", 8, set(), None, "STORE.*generation"),
    Mistake("a new beginning is not durable", "log", 9, set(), "STORE.*generation", WORDS),
]
# Of stores that nobody told of, the flush or fence is named where each was found. The order of stores to one line is not known, nor what is torn.
IN_ONE_LINE = {("table", 9), ("table", 12)}
# Those past the caches look like others.
UNTOLD_KINDS = {("log", 7): {"missing flush"}}


class Mistakes(Case):
    def check_all(self, kind, assert_found):
        """Side by side; assert_found(mistake, report, text, folder) for each."""
        options = ["--images", 100] if IS_LONG else ["--images", 12, "--bugs", 1]
        jobs = [(mistake, POOL.submit(self.check, mistake.program, mistake.bug, *options, kind=kind, name=f"{mistake.program}{mistake.bug}"))
                for mistake in MISTAKES]
        for mistake, job in jobs:
            with self.subTest(mistake.name):
                assert_found(mistake, *job.result(), self.folder / f"{mistake.program}{mistake.bug}" / "out")

    def assert_about(self, program, lines, part, pattern, text):
        """The lines of an image name these lines of the source."""
        allowed = lines_of(program, pattern) if pattern else set()
        self.assertEqual(bool(lines), pattern is not None, text)
        for line in lines:
            path, number = line[part]["place"].rsplit(":", 1)
            self.assertEqual(pathlib.Path(path).name, f"{program}.c", text)
            self.assertIn(int(number), allowed, text)

    def test_each_is_found(self):
        def assert_found(mistake, report, text, out):
            self.assertEqual({finding["kind"] for finding in report["findings"]}, mistake.kinds, text)
            self.assertTrue(report["bugs"], text)
            first = report["bugs"][0]
            self.assert_about(mistake.program, first["behind"], "lacks", mistake.behind, text)
            self.assert_about(mistake.program, first["ahead"], "holds", mistake.ahead, text)
            self.assertEqual(any(line["is_torn"] for line in first["behind"]), mistake.is_torn, text)
            # The image that is kept fails again; that it was kept before the recovery changed it.
            again = subprocess.run(first["command"], shell=True, cwd=self.folder, capture_output=True, timeout=HANG_SECONDS)
            self.assertEqual(f"exit status {again.returncode}", first["outcome"], text)
            self.assertEqual((out / "bug-1.txt").read_bytes(), again.stdout)
        self.check_all("told", assert_found)

    def test_each_is_found_of_stores_that_nobody_told(self):
        def assert_found(mistake, report, text, _):
            key = (mistake.program, mistake.bug)
            if key in IN_ONE_LINE:
                self.assertEqual((report["bugs"], report["findings"]), ([], []), text)
                return
            self.assertTrue(report["bugs"], text)
            first = report["bugs"][0]
            if key not in UNTOLD_KINDS:  # there, nothing but the recovery's failure is known at that point
                self.assert_about(mistake.program, first["behind"], "lacks", mistake.behind and FLUSH_OR_FENCE, text)
                self.assert_about(mistake.program, first["ahead"], "holds", mistake.ahead and FLUSH_OR_FENCE, text)
            found = [finding for finding in report["findings"] if finding["is_bug"]]
            self.assertLessEqual({finding["kind"] for finding in found}, UNTOLD_KINDS.get(key, mistake.kinds), text)
            self.assertEqual(bool(found), any(kind.startswith("missing") for kind in mistake.kinds), text)
            self.assertLessEqual({finding["is_found"] for finding in found if finding["kind"] == "missing flush"}, {True}, text)
        self.check_all("untold", assert_found)


class Reports(Case):
    def test_a_seed_repeats_them(self):
        def report(*options):
            return self.check("log", 3, "--crash-points", 24, "--images", 8, *options)[0]["recovery"]
        self.assertEqual(report("--seed", 5), report("--seed", 5))

    def test_a_log_is_looked_at_again(self):
        options = ["--images", 6, "--crash-points", 40]
        first, _ = self.check("table", 5, *options)
        again = spillway("check", "--log", self.folder / "case" / "out" / "log", "--out", self.folder / "other", "--recover",
                         recovery("table", 5), *options)
        self.assertEqual(again.returncode, 1, again)
        second = json.loads((self.folder / "other" / "report.json").read_text())
        self.assertEqual((first["findings"], first["recovery"]), (second["findings"], second["recovery"]))
        self.assertTrue((self.folder / "other" / "bug-1.image").is_file())

    def test_ends_with_as_many_bugs_as_asked_for(self):
        report, text = self.check("log", 3, "--images", 8, "--bugs", 1)
        self.assertEqual(len(report["bugs"]), 1)
        self.assertIn("stopped", text)

    def test_without_recovery(self):
        report, text = self.check("table", 1, recover=False)
        self.assertNotIn("recovery", report)
        self.assertRegex(text, r"(?m)^BUG missing flush at table\.c:\d+ \(write_record\): .*; 4 times, first at .*/memory\+0x1000$")
        self.assertRegex(text, r"(?m)^waste redundant fence at table\.c:\d+ \(write_record\): ")

    def test_a_recovery_that_hangs(self):
        ended = spillway("check", "--out", self.folder / "out", "--recover", "sleep 100; : {}", "--timeout", 1, "--crash-points", 1, "--images", 2,
                         "--", WORK / "table.told", "run", self.folder / "memory", 0)
        self.assertEqual(ended.returncode, 1, ended)
        self.assertIn("BUG no recovery (no end within 1000 ms)", ended.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
