#!/usr/bin/env python3
"""The programs of `batch`: every engine updates the records that there are.  batch_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import unittest

from bench_case import LIBEXEC, Case, run_in

PEER, OURS = "linear", "cache_buckets"


class Batch(Case):
    PROGRAM = LIBEXEC / "batch-load"

    def test_all_engines_in_turns(self):
        for words in (["key=4", "record=8", "bucket=512"], ["key=8", "record=32", "bucket=128", "threads=2", "active=50"], ["key=12", "record=20"]):
            ended = run_in(self.folder, self.PROGRAM, "buckets=1000", "seconds=0.01", "turns=3", "staging=1024", *words)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), words)
            answer = json.loads(ended.stdout)
            self.assertEqual(set(answer["engines"]), {"linear", "direct", "prefetch", "tagged", "cache_buckets", "decoupled", "partitioned", "auto"})
            self.assertIn(answer["chosen"], {"direct", "prefetch", "tagged", "cache_buckets", "partitioned"})
            self.assertLessEqual({answer["chosen"], "direct", "prefetch", "tagged"}, set(answer["modelled"]))
            self.assertLess(0, answer["choosing_seconds"])
            for times in answer["engines"].values():
                self.assertEqual(len(times), 3)
                self.assertLess(0, min(times))

    def test_engines_that_are_asked_for(self):
        ended = run_in(self.folder, self.PROGRAM, "buckets=1000", "seconds=0.01", "turns=2", "cache=64", "cell=256", "engine=linear", "engine=cache_buckets")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        answer = json.loads(ended.stdout)
        self.assertEqual({engine: len(times) for engine, times in answer["engines"].items()}, {PEER: 2, OURS: 2})
        self.assertNotIn("chosen", answer)
        self.assertTrue(0.1 < answer["ns_per_cycle"] < 2, answer)

    def test_base_costs(self):
        for words in (["key=4", "record=8"], ["record=32", "threads=2", "cell=64"]):
            ended = run_in(self.folder, self.PROGRAM, "base=1", "buckets=1000", "seconds=0.01", "turns=2", "cache=64", *words)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), words)
            answer = json.loads(ended.stdout)
            self.assertEqual({engine: len(times) for engine, times in answer["engines"].items()}, {PEER: 2, OURS: 2})
            self.assertLess(0, min(min(times) for times in answer["engines"].values()))
            self.assertNotIn("records", answer)

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in (["record"], ["records=5"], ["record=x"], ["seconds=-1"], ["key=3"], ["record=8", "key=8"], ["record=65"], ["bucket=100"], ["cell=0"], ["cell=100"], ["buckets=0"],
                      ["threads=0"], ["turns=0"], ["engine=x"], ["base=2"],
                      ["updates=5"], ["updates=5", "engine=linear", "engine=direct"], ["updates=5", "engine=auto"]):
            ended = run_in(self.folder, self.PROGRAM, *words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
            self.assertRegex(ended.stderr, r"\Abatch-load: [^\n]{10,300}\n\Z", words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
