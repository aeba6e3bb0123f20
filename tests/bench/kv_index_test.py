#!/usr/bin/env python3
"""The programs of `kv-index`, each case for a moment, and the benchmark without its peer.  kv_index_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import types
import unittest

from bench_case import LIBEXEC, Case, assert_refused, run_in

import kv_index


class KvIndex(Case):
    OURS = LIBEXEC / "kv-index-load"

    def check_cases(self, program):
        for case in kv_index.CASES:
            for threads in (1, 3):
                ended = run_in(self.folder, program, case, 100_001, threads)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""), (program, case))
                answer = json.loads(ended.stdout)
                self.assertEqual(answer["operations"], 100_001, (program, case))
                self.assertGreater(answer["cpu_ns"], 0)
                self.assertGreater(answer["bytes"], 8 * 100_001)

    def test_ours_does_what_it_is_asked(self):
        self.check_cases(self.OURS)

    def test_inserts_that_grow_are_beside_both_kinds_of_map(self):
        contest = kv_index.Contest.__new__(kv_index.Contest)
        contest.context, contest.programs = types.SimpleNamespace(progress=lambda text: None), {"ours": None, "peer": None}
        ns = {("ours", "insert"): 300, ("peer", "insert"): 600, ("peer", "insert_sized"): 200, ("ours", "lookup"): 100, ("peer", "lookup"): 200}
        contest.run = lambda name, case, keys, threads: {"cpu_ns": ns[name, case] * keys, "bytes": 10 * keys}
        summary = {}
        for case in ("insert", "lookup"):
            row = kv_index._throughput(contest, case, 10_000_000, 2, 3, summary)[0]
            self.assertEqual((row["pairs"], round(row["ratio"], 6), "sized_ratio" in row), (3, 2, case == "insert"))
        self.assertAlmostEqual(summary["insert/10M/2_sized_ratio"], 2 / 3)

    def test_latency_and_memory(self):
        growing, sized = (json.loads(run_in(self.folder, self.OURS, case, 200_000, 1).stdout) for case in ("latency", "latency_sized"))
        for answer in (growing, sized):
            self.assertLess(0, answer["p50_ns"])
            self.assertLessEqual(answer["p50_ns"], answer["p99_ns"])
            self.assertLessEqual(answer["p99_ns"], answer["p99_99_ns"])
            self.assertLessEqual(answer["p99_99_ns"], answer["most_ns"])
        memory = json.loads(run_in(self.folder, self.OURS, "memory", 1_000_000, 1).stdout)
        self.assertLess(8, memory["least"])
        self.assertLess(memory["least"], 8.6)
        self.assertLess(memory["mean"], 12)

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in ([], ["insert"], ["insert", "5"], ["insert", "0", "1"], ["insert", "5", "0"], ["nothing", "5", "1"],
                      ["lookup", "5x", "1"], ["insert", "-5", "1"], ["memory", "", "1"]):
            assert_refused(self, run_in(self.folder, self.OURS, *words), by="")


if __name__ == "__main__":
    unittest.main(verbosity=2)
