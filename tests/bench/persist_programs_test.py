#!/usr/bin/env python3
"""The programs of `persist-programs`, and the benchmark with few operations.  persist_programs_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import os
import unittest

from bench_case import LIBEXEC, Case, assert_refused, bench, run_in

import persist_programs
from lockstep import Failure


class Context:
    spillway = LIBEXEC.parent.parent / "bin/spillway"
    cases, quick, pairs = [], True, 1

    def progress(self, _):
        pass

    def say(self, _):
        pass


@unittest.skipUnless((LIBEXEC / "persist-maps").exists() and os.access("/dev/shm", os.W_OK), "libpmemobj or /dev/shm is not there")
class PersistPrograms(Case):
    def test_each_case_is_counted(self):
        contest = persist_programs.Contest(Context(), self.folder, 600)
        rows = {case: contest.measure(case, 1) for case in persist_programs.CASES}
        for case, row in rows.items():
            # A change of a map is one fence at least, and what is asked for is what the operations need, not what the pool does.
            self.assertLess(0.5, row["fences"], case)
            self.assertLess(0.5, row["asked"], case)
            self.assertLess(row["asked"], 50, case)
            self.assertLessEqual(row["executed"], row["asked"], case)
            self.assertTrue(0 < row["dirtiness"] < 1 and 0 <= row["clean"] < 1, row)
            self.assertAlmostEqual(row["flushing_costs_percent"], 100 * (1 - row["unflushed_ratio"]))
        self.assertLess(rows["kv/together"]["asked"], rows["kv/separate"]["asked"])
        self.assertLess(rows["kv/separate"]["dirtiness"], rows["kv/together"]["dirtiness"])

    def test_flushes_are_left_out_where_they_are_to_be(self):
        """By what the program is told; that libpmem does so is its own matter."""
        contest = persist_programs.Contest(Context(), self.folder, 10)
        said = []
        contest.words = lambda case, pool, operations: ["sh", "-c", 'echo "{\\"seconds\\": 1, \\"flushes\\": \\"${PMEM_NO_FLUSH:-all}\\"}"']
        for side in (persist_programs.PLAIN, persist_programs.UNFLUSHED):
            contest.contents.clear()
            contest.run("ctree", side)
            said.append(contest.contents["ctree"]["flushes"])
        self.assertEqual(said, ["all", "1"])

    def test_another_content_ends_it(self):
        contest = persist_programs.Contest(Context(), self.folder, 100)
        contest.contents["ctree"] = {}
        with self.assertRaisesRegex(Failure, "another content"):
            contest.measure("ctree", 1)

    def test_wrong_words_are_one_line_and_status_2(self):
        for program, cases in (("persist-maps", ([], ["p", "ctree", "1", "1"], ["p", "heap", "1", "1", "1"], ["p", "ctree", "1x", "1", "1"], ["p", "ctree", "1", "0", "1"],
                                                 ["p", "ctree", "1", "1", "1", "more"])),
                               ("persist-kv", ([], ["p", "apart", "1", "1", "1"], ["p", "separate", "0", "1", "1"], ["p", "separate", "1", "x", "1"]))):
            for words in cases:
                assert_refused(self, run_in(self.folder, LIBEXEC / program, *words), by="")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_benchmark_writes_what_it_found(self):
        ended = bench("persist-programs", "--quick", "--pairs", 1, "--only", "kv/separate", "--only", "kv/together", "--out", self.folder)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads((self.folder / "persist-programs.json").read_text())
        self.assertEqual([row["case"] for row in result["rows"]], ["kv/separate", "kv/together"])
        self.assertLess(result["summary"]["dirtiness_separate"], result["summary"]["dirtiness_together"])
        self.assertLess(result["summary"]["lines_together_over_separate"], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
