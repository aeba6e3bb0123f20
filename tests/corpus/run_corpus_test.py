#!/usr/bin/env python3
"""That run_corpus.py notices what it is there for: made-up programs that go wrong when they are spilled."""
import collections
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from programs import Corpus, Program  # noqa: E402
from run_corpus import Comparison, Row, exit_status, record  # noqa: E402
from support import SKIPPED, temporary_folder  # noqa: E402

SPILLWAY = """\
#!/usr/bin/env python3
# Stands for `spillway run`: --stats FILE with a pid in it, then the program; EVICTIONS says how much it evicted.
import json, os, subprocess, sys
at = sys.argv.index("--")
stats = sys.argv[sys.argv.index("--stats") + 1].replace("%p", str(os.getpid()))
status = subprocess.run(sys.argv[at + 1:], env={**os.environ, "SPILLED": "1"}).returncode
if "EVICTIONS":
    sites = [{"count": 2, "module": "/lib/libm.so.6", "offset": "0x12", "symbol": ""},
             {"count": 1, "module": "/lib/libz.so", "offset": "0x34", "symbol": "inflate"}]
    json.dump({"cache": {"evictions": int("EVICTIONS")}, "spill": {"faults": 3, "fault_sites": sites},
               "storage": {"write_bytes": 4096}}, open(stats, "w"))
sys.exit(status)
"""


class CorpusTest(unittest.TestCase):
    def setUp(self):
        self.work = temporary_folder(self)
        (self.work / "bin").mkdir()

    def run_spilled(self, test, evictions=2560, timeout=600, **settings):
        """One run of a program whose native peak is a megabyte. `timeout` is of this run, not of the native one."""
        script = self.work / "bin" / "spillway"
        script.write_text(SPILLWAY.replace("EVICTIONS", str(evictions)))
        script.chmod(0o755)
        corpus = Corpus(self.work / "bin", self.work)
        built = self.work / "built"
        built.mkdir(exist_ok=True)
        corpus.build = lambda program, variant: built
        settings = {"results": r"^ok (?P<count>\d+) \w+$", **settings}
        program = Program("made-up", "fast", ["made-up"], ["made-up"], "", test, **settings)
        native = corpus.run(program, built, self.work / "native.log", [], {})
        program.timeout = timeout
        return Comparison(corpus, program, "memory:1G").run_spilled("O2", "4K", native, 1 << 20)

    def test_equal_findings_pass(self):
        row = self.run_spilled("echo ok 7 abc; echo took $RANDOM s; echo ok 2 def")
        self.assertEqual((row.outcome, row.native_tests, row.spilled_tests, row.frames), ("passed", 9, 9, 256))
        self.assertEqual((row.faults, row.written_bytes), (3, 4096))
        self.assertEqual(row.hottest_site, "libm.so.6+0x12 (66 %)")

    def test_order_does_not_count(self):
        row = self.run_spilled("if [ -n \"${SPILLED-}\" ]; then echo ok 1 a; echo ok 1 b; else echo ok 1 b; echo ok 1 a; fi")
        self.assertEqual(row.outcome, "passed")

    def test_too_few_evictions(self):
        self.assertEqual(self.run_spilled("echo ok 7 abc", evictions=2559).outcome, "few")

    def test_fewer_frames_need_fewer_evictions(self):
        row = self.run_spilled("echo ok 7 abc", evictions=160, frames={"4096": 16})
        self.assertEqual((row.outcome, row.budget_bytes), ("passed", 65536))

    def test_other_bytes(self):
        row = self.run_spilled("echo ok 1 sum${SPILLED-}")
        self.assertEqual((row.outcome, row.spilled_tests), ("failed", 0))

    def test_test_missing(self):
        row = self.run_spilled("echo ok 1 a; [ -n \"${SPILLED-}\" ] || echo ok 2 b")
        self.assertEqual((row.outcome, row.native_tests, row.spilled_tests), ("failed", 3, 1))

    def test_one_more(self):
        self.assertEqual(self.run_spilled("echo ok 1 a; [ -z \"${SPILLED-}\" ] || echo ok 1 b").outcome, "failed")

    def test_status(self):
        self.assertEqual(self.run_spilled("echo ok 1 a; exit ${SPILLED-0}").outcome, "failed")

    def test_endless(self):
        row = self.run_spilled("echo ok 1 a; [ -z \"${SPILLED-}\" ] || sleep 100", timeout=1)
        self.assertEqual(row.outcome, "failed")
        self.assertIn("still running", row.detail)

    def test_no_statistics(self):
        row = self.run_spilled("echo ok 1 a", evictions="")
        self.assertEqual(row.outcome, "failed")
        self.assertIn("statistics", row.detail)

    def test_what_is_skipped_is_no_pass(self):
        self.assertEqual(exit_status(collections.Counter(passed=3), False), 0)
        self.assertEqual(exit_status(collections.Counter(passed=3, skipped=1), False), SKIPPED)
        self.assertEqual(exit_status(collections.Counter(skipped=1, failed=1), False), 1)
        self.assertEqual(exit_status(collections.Counter(passed=3, few=1), False), 1)
        self.assertEqual(exit_status(collections.Counter(passed=3, few=1), True), 0)
        self.assertEqual(exit_status(collections.Counter(), False), 1)

    def test_needs(self):
        program = Program("made-up", "fast", ["made-up"], [], "", "", "", needs={"/nonexistent": "nothing-dev"})
        rows = list(Comparison(Corpus(self.work, self.work), program, "").run_all(["O2"], ["4K"]))
        self.assertEqual([row.outcome for row in rows], ["skipped"])
        self.assertIn("nothing-dev", rows[0].detail)

    def test_one_table_of_all_runs(self):
        """Programs are tests of their own, and write into one table."""
        for program, mode, outcome, quick in (("redis", "4K", "passed", False), ("lz4", "64K", "failed", False),
                                              ("lz4", "4K", "passed", True), ("lz4", "64K", "passed", False), ("lz4", "4K", "few", False)):
            record(self.work, Row(program, "O2", mode, outcome, quick=quick))
        found = [[cell.strip() for cell in line.split("|")[1:5]] for line in (self.work / "table.md").read_text().splitlines()[2:]]
        self.assertEqual(found, [["lz4", "O2", "4K", "few"], ["lz4", "O2", "64K", "passed"], ["redis", "O2", "4K", "passed"],
                                 ["lz4", "O2", "4K, quick", "passed"]])


if __name__ == "__main__":
    unittest.main(verbosity=2)
