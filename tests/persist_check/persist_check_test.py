"""Programs with persistent memory, correct and with one mistake each, through `spillway persist check`. Arguments: the programs
spillway, table and log (./programs).

Correct programs have no bugs and waste nothing, at all crash points; each mistake is found, with the source lines that it is about.
"""
import json
import pathlib
import re
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, ONE_LINE, take_paths, temporary_folder  # noqa: E402

SPILLWAY, TABLE, LOG = take_paths(3)
SOURCES = {TABLE: "table.c", LOG: "log.c"}


def spillway(*arguments, **more):
    return subprocess.run([SPILLWAY, "persist", *map(str, arguments)], capture_output=True, text=True, timeout=HANG_SECONDS,
                          env=CLEAN | more)


def function_lines(program, pattern):
    """The lines of the program's source that match."""
    source = pathlib.Path(__file__).parent / "programs" / SOURCES[program]
    return {number for number, line in enumerate(source.read_text().splitlines(), 1) if re.search(pattern, line)}


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = temporary_folder(self)
        self.out = self.folder / "out"

    def check(self, program, bug, *options, recover=True, **more):
        """The report, and what was printed."""
        recovery = ["--recover", f"{program} verify {{}} {{marker}} {bug}"] if recover else []
        ended = spillway("check", "--out", self.out, *recovery, *options, "--", program, "run", self.folder / "memory", bug, **more)
        self.assertEqual(ended.stderr, "", ended)
        report = json.loads((self.out / "report.json").read_text())
        self.assertEqual(ended.returncode, int(report["has_bugs"]), ended)
        return report, ended.stdout


class Correct(Case):
    def test_has_no_findings(self):
        for program in SOURCES:
            report, text = self.check(program, 0, "--images", 60)
            self.assertEqual((report["bugs"], report["findings"], report["is_ended"]), ([], [], True), text)
            self.assertGreater(report["recovery"]["images"], 500)
            self.assertIn(": no bugs\n", text)
            (self.folder / "memory").unlink()
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), ["log", "log.1", "report.json"])

    def test_has_none_of_stores_that_nobody_told(self):
        for program in SOURCES:
            report, text = self.check(program, 0, RECORD_UNTOLD="1")
            self.assertEqual((report["bugs"], report["findings"]), ([], []), text)
            self.assertGreater(report["recovery"]["images"], 50)
            (self.folder / "memory").unlink()


class Mistakes(Case):
    """(program, bug): what is said without a recovery, as kinds; and lines of the source that the first image it does not come back from is
    about: `behind`, `ahead`, and whether a store was torn."""

    def find(self, program, bug, kinds=(), behind=None, ahead=None, is_torn=False, **more):
        report, text = self.check(program, bug, "--images", 12, **more)
        self.assertEqual({finding["kind"] for finding in report["findings"]}, set(kinds), text)
        self.assertTrue(report["bugs"], text)
        first = report["bugs"][0]
        for name, part, pattern in (("behind", "lacks", behind), ("ahead", "holds", ahead)):
            lines = function_lines(program, pattern) if pattern else set()
            places = [line[part]["place"] for line in first[name]]
            self.assertEqual(bool(places), bool(pattern), text)
            for place in places:
                path, line = place.rsplit(":", 1)
                self.assertEqual(pathlib.Path(path).name, SOURCES[program], text)
                self.assertIn(int(line), lines, text)
        self.assertEqual(any(line["is_torn"] for line in first["behind"]), is_torn, text)
        # The image that is kept fails again; that it was kept before the recovery changed it.
        again = subprocess.run(first["command"], shell=True, cwd=self.folder, capture_output=True, timeout=HANG_SECONDS)
        self.assertEqual(f"exit status {again.returncode}", first["outcome"], text)
        self.assertEqual((self.out / "bug-1.txt").read_bytes(), again.stdout)
        return report

    RECORD = r"STORE\(&record->"
    SLOT = r"STORE\(&slot->"
    WORDS = r"STORE\(&to\["

    def test_a_record_is_not_flushed(self):
        self.find(TABLE, 1, {"missing flush", "redundant fence"}, self.RECORD, self.SLOT)

    def test_no_fence_before_it_is_published(self):
        self.find(TABLE, 2, (), self.RECORD, self.SLOT)

    def test_published_first(self):
        self.find(TABLE, 3, (), None, self.SLOT)

    def test_what_publishes_is_not_flushed(self):
        self.find(TABLE, 4, {"missing flush", "redundant fence"}, self.SLOT)

    def test_what_publishes_is_not_fenced(self):
        self.find(TABLE, 5, {"missing fence"}, self.SLOT)

    def test_another_range_is_flushed(self):
        self.find(TABLE, 6, {"missing flush", "flush of nothing", "redundant flush"}, self.RECORD, self.SLOT)

    def test_half_of_the_range_is_flushed(self):
        self.find(TABLE, 7, {"missing flush"}, self.RECORD, self.SLOT)

    def test_flushed_before_it_is_stored(self):
        self.find(TABLE, 8, {"missing flush", "flush of nothing"}, self.RECORD, self.SLOT)

    def test_a_store_of_16_bytes_is_torn(self):
        self.find(TABLE, 9, (), "_mm_store_si128", None, is_torn=True)

    def test_two_lines_are_changed_in_place(self):
        self.find(TABLE, 10, (), None, self.RECORD)

    def test_a_recovery_believes_a_count(self):
        self.find(TABLE, 11, (), None, self.SLOT)

    def test_a_tag_before_what_it_is_of(self):
        self.find(TABLE, 12, (), None, self.SLOT)

    def test_it_counts_as_made_before_it_is(self):
        self.find(TABLE, 13, (), None, "STORE.*magic")

    def test_no_checksum(self):
        self.find(LOG, 1, (), None, self.WORDS)

    def test_a_length_before_the_record(self):
        self.find(LOG, 2, (), None, self.WORDS)

    def test_no_fence_between_record_and_length(self):
        self.find(LOG, 3, (), self.WORDS, "STORE.*tail|STORE.*to")

    def test_a_checksum_that_leaves_the_content_out(self):
        self.find(LOG, 4, (), None, self.WORDS)

    def test_the_last_line_is_not_flushed(self):
        self.find(LOG, 5, {"missing flush"}, self.WORDS)

    def test_an_append_is_not_fenced(self):
        self.find(LOG, 6, {"missing fence"}, self.WORDS)

    def test_stores_past_the_caches_are_not_fenced(self):
        self.find(LOG, 7, {"missing fence"}, "_mm_stream")

    def test_old_records_count_as_new_ones(self):
        self.find(LOG, 8, (), None, "STORE.*generation")

    def test_a_new_beginning_is_not_durable(self):
        self.find(LOG, 9, (), "STORE.*generation", self.WORDS)

    def test_of_stores_that_nobody_told(self):
        """Then it is the flush or fence that is named."""
        self.find(TABLE, 2, (), "PERSIST_FLUSH", "PERSIST_FLUSH", RECORD_UNTOLD="1")
        report, _ = self.check(TABLE, 1, recover=False, RECORD_UNTOLD="1")
        self.assertEqual({finding["is_found"] for finding in report["findings"] if finding["is_bug"]}, {True})


class Reports(Case):
    def test_a_seed_repeats_them(self):
        def reports(*options):
            (self.folder / "memory").unlink(missing_ok=True)
            return self.check(LOG, 3, "--crash-points", 60, "--images", 10, *options)[0]["recovery"]
        self.assertEqual(reports("--seed", 5), reports("--seed", 5))

    def test_a_log_is_looked_at_again(self):
        first, _ = self.check(TABLE, 5)
        again = spillway("check", "--log", self.out / "log", "--out", self.folder / "other", "--recover", f"{TABLE} verify {{}} {{marker}} 5")
        self.assertEqual(again.returncode, 1)
        second = json.loads((self.folder / "other" / "report.json").read_text())
        self.assertEqual((first["findings"], first["recovery"]), (second["findings"], second["recovery"]))
        self.assertTrue((self.folder / "other" / "bug-1.image").is_file())

    def test_without_recovery(self):
        report, text = self.check(TABLE, 1, recover=False)
        self.assertNotIn("recovery", report)
        self.assertRegex(text, r"(?m)^BUG missing flush at table\.c:\d+ \(write_record\): .*; 4 times, first at .*/memory\+0x1000$")
        self.assertRegex(text, r"(?m)^waste redundant fence at table\.c:\d+ \(write_record\): ")

    def test_a_program_that_is_killed(self):
        ended = spillway("check", "--out", self.out, "--recover", f"{TABLE} verify {{}} {{marker}}", "--", "sh", "-c",
                         f"{TABLE} run {self.folder}/memory 0; kill -9 $$")
        self.assertEqual(ended.returncode, 0, ended)
        self.assertIn(f"'sh' ended with signal {int(signal.SIGKILL)}", ended.stderr)

    def test_a_recovery_that_hangs(self):
        ended = spillway("check", "--out", self.out, "--recover", "sleep 100", "--timeout", 1, "--crash-points", 1, "--images", 2, "--",
                         TABLE, "run", self.folder / "memory", 0)
        self.assertEqual(ended.returncode, 1, ended)
        self.assertIn("BUG no recovery (no end within 1000 ms)", ended.stdout)

    def test_wrong_input(self):
        (self.folder / "no log").write_text("text" * 100)
        for arguments, says in [
                ((), "no subcommand"), (("nothing",), "nothing"), (("check",), "either"), (("check", "--nothing"), "--nothing"),
                (("check", "--images", "1", "--", "true"), "--images"), (("check", "--seed"), "--seed"),
                (("check", "--out", self.out, "--log", "x", "--", "true"), "either"),
                (("check", "--out", self.out, "--", "true"), "recorded nothing"),
                (("check", "--out", self.out, "--", "/nowhere/program"), "/nowhere/program")]:
            ended = spillway(*arguments)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended)
            self.assertRegex(ended.stderr, ONE_LINE)
            self.assertIn(says, ended.stderr)
        for log, says in ((self.folder / "no log", "no log of"), (self.folder / "nowhere", "cannot read")):
            ended = spillway("check", "--out", self.out, "--log", log)
            self.assertEqual((ended.returncode, ended.stdout), (1, ""), ended)
            self.assertIn(says, ended.stderr)

    def test_help(self):
        for arguments in (("--help",), ("check", "--help")):
            ended = spillway(*arguments)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertIn("usage: spillway persist", ended.stdout)


if __name__ == "__main__":
    unittest.main()
