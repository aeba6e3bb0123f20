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


class Colouring(Case):
    """The program of `colouring`: records are found wherever their pages are."""
    PROGRAM = LIBEXEC / "colouring-load"
    SMALL = ("buckets=2000", "cache=64", "colours=8", "taken=4")

    def test_updates_for_who_counts_them(self):
        for placement in ("plain", "coloured"):
            for bucket in (128, 512, 4096):
                ended = run_in(self.folder, self.PROGRAM, *self.SMALL, f"bucket={bucket}", f"placement={placement}", "updates=20000")
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                self.assertEqual(json.loads(ended.stdout), {"records": 2000 * bucket // 16})

    def test_all_placements_in_turns(self):
        ended = run_in(self.folder, self.PROGRAM, *self.SMALL, "near=2", "seconds=0.01", "turns=3")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        answer = json.loads(ended.stdout)
        if "unavailable" in answer:
            self.skipTest("the system does not tell physical addresses")
        self.assertEqual({name: len(times) for name, times in answer["placements"].items()}, {"plain": 3, "coloured": 3, "huge": 3})
        self.assertEqual(set(answer["lines"]), {"mixed", "near", "same"})
        self.assertLess(0, min(answer["lines"].values()))

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in (["bucket"], ["buckets=0"], ["bucket=100"], ["bucket=8192"], ["cell=96"], ["record=8"], ["cache=1"], ["taken=0"], ["taken=8", "colours=8"],
                      ["near=9", "colours=8", "taken=1"], ["placement=huge"], ["colours=1"], ["seconds=x"], ["turns=0"]):
            ended = run_in(self.folder, self.PROGRAM, *words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
            self.assertRegex(ended.stderr, r"\Acolouring-load: [^\n]{10,300}\n\Z", words)


if __name__ == "__main__":
    unittest.main(verbosity=2)
