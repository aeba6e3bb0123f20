#!/usr/bin/env python3
"""The programs of `kernels`: all sides compute the same, by several threads too; and how figures come of turns.  kernels_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import subprocess
import unittest

from bench_case import BENCH, CLEAN, HANG_SECONDS, SPILLWAY, Case, assert_refused, built_in

import kernels
import variants

SOURCES = [BENCH / "kernels" / name for name in ("kernels.cc", "main.cc", "pages_heap.cc")]
FLAGS = ["-std=c++20", "-pthread", "-O2"]


class Given:
    """What variants() asks of a benchmark's context."""

    def __init__(self, spillcc):
        self.spillcc = spillcc


class Kernels(Case):
    def answers(self, *command):
        ended = subprocess.run([str(word) for word in command], input="run\nrun\ncheck\n", capture_output=True, text=True, timeout=HANG_SECONDS, env=CLEAN)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), command)
        ready, *runs, contents = ended.stdout.splitlines()
        return ready.split()[1:], [run.split()[1] for run in runs], contents

    def test_all_sides_compute_the_same_by_one_thread_and_by_two(self):
        native = built_in(self.folder, "clang++-19", *FLAGS, *SOURCES, "-o", "native")
        ours = built_in(self.folder, SPILLWAY.with_name("spillc++"), *FLAGS, *SOURCES, "-o", "ours")
        run = [SPILLWAY, "run", "--memory", "16M", "--storage", "memory:64M", "--spill-all", "--min-alloc", "16K", "--stats", self.folder / "stats"]
        for name in subprocess.run([native, "list"], capture_output=True, text=True).stdout.split():
            for threads in (1, 2):
                with self.subTest(f"{name} {threads}"):
                    (data_bytes, accesses), runs, contents = self.answers(native, name, "heap", "tiny", threads)
                    self.assertEqual(self.answers(*run, "--", ours, name, "heap", "tiny", threads), ([data_bytes, accesses], runs, contents))
                    self.assertEqual(runs[0], runs[1])
                    self.assertGreater(int(accesses), 100)
                    self.assertGreaterEqual(json.loads((self.folder / "stats").read_text())["spill"]["allocated_bytes"], int(data_bytes))

    def test_wrong_words_are_one_line_and_status_2(self):
        native = built_in(self.folder, "clang++-19", *FLAGS, *SOURCES, "-o", "native")
        for words in ([], ["sort"], ["nothing", "heap", "tiny", "1"], ["sort", "heap", "tiny", "0"], ["sort", "heap", "tiny", "9"]):
            assert_refused(self, subprocess.run([native, *words], capture_output=True, text=True), by="")


class Figures(Case):
    def test_of_sets_and_sides(self):
        rows = [{"case": "O2/a", "ratio": 1.0, "tricache_ratio": 4.0, "two_bodies_ratio": 1.0}, {"case": "O2/b", "ratio": 4.0, "tricache_ratio": 1.0, "two_bodies_ratio": 1.0},
                {"case": "O2_2_threads/a", "ratio": 3.0}]
        self.assertEqual({key: round(value, 6) if isinstance(value, float) else value for key, value in kernels._summary(rows).items()},
                         {"geomean_ratio": 2, "worst_ratio": 4, "worst_kernel": "b", "two_bodies_geomean_ratio": 1, "two_bodies_worst_ratio": 1,
                          "two_bodies_worst_kernel": "a", "tricache_geomean_ratio": 2, "tricache_worst_ratio": 4, "tricache_worst_kernel": "a",
                          "geomean_ratio_O2_2_threads": 3, "worst_ratio_O2_2_threads": 3, "worst_kernel_O2_2_threads": "a"})

    def test_what_a_thread_reads_is_in_its_private_cache(self):
        """As much as the largest kernel has, and no more than may be pinned: three quarters of the frames."""
        self.assertGreaterEqual(kernels.SATC_PAGES * 4096, 1 << 30)
        self.assertLess(kernels.SATC_PAGES * 4096, 0.9 * 3 / 4 * (kernels.MEMORY_MIB << 20))

    def test_columns_of_other_sides(self):
        turns = {"native": [1.0, 2.0, 4.0], "ours": [2.0, 2.0, 2.0], "two_bodies": [1.0, 4.0, 12.0]}
        self.assertEqual(variants.more_ratios(turns, "native"), {"bodies": 1, "two_bodies_ratio": 2, "two_bodies_spread": 1})

    def test_two_bodies_are_a_side_where_the_compiler_makes_them(self):
        for words, sides in (("exit 1", {"ours": []}), ("exit 0", {"ours": ["-fspill-bodies=1"], "two_bodies": ["-fspill-bodies=2"]})):
            compiler = self.folder / "spillcc"
            compiler.write_text(f"#!/bin/sh\n{words}\n")
            compiler.chmod(0o755)
            self.assertEqual(variants.variants(Given(compiler)), sides)


if __name__ == "__main__":
    unittest.main(verbosity=2)
