#!/usr/bin/env python3
"""What programs that translate by software caches count at each level, and what they refuse.  satc_test.py BIN WORK [unittest arguments]"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, fresh, take_paths  # noqa: E402

BIN, WORK = take_paths(2)
SOURCES = pathlib.Path(__file__).resolve().parent


def setUpModule():
    fresh(WORK)
    for name, flags in (("satc", ["-fspill-translation=satc"]), ("table", [])):
        subprocess.run([BIN / "spillcc", "-O1", "-pthread", *flags, SOURCES / "program.c", "-o", WORK / name], check=True, env=CLEAN)


def run(name, words, *options, memory="16M"):
    stats = WORK / "stats.json"
    stats.unlink(missing_ok=True)
    ended = subprocess.run([BIN / "spillway", "run", "--memory", memory, "--storage", "memory:64M", "--spill-all", "--stats", stats, *options, "--", WORK / name,
                            *map(str, words)], env=CLEAN, capture_output=True, text=True, timeout=300)
    return ended, json.loads(stats.read_text()) if stats.exists() else None


class Satc(unittest.TestCase):
    # Each access is a load and a store: two translations, of which the second finds what the first has brought.
    ACCESSES, PAGES = 20000, 64

    def counted(self, *options, memory="16M"):
        ended, stats = run("satc", [self.ACCESSES, self.PAGES], "--satc-cycles", *options, memory=memory)
        self.assertEqual(ended.stdout, f"{self.ACCESSES}\n", ended.stderr)
        return stats["satc"], stats

    def test_a_program_of_the_table_has_no_such_counters(self):
        ended, stats = run("table", [1000, 10])
        self.assertEqual(ended.stdout, "1000\n")
        self.assertNotIn("satc", stats)
        self.assertIn("storage", stats)

    def test_all_pages_in_direct(self):
        satc, stats = self.counted("--satc-private", "128", "--satc-direct", "128")
        self.assertGreaterEqual(satc["direct_hits"], 2 * self.ACCESSES - self.PAGES)
        self.assertLess(satc["direct_misses"], 2 * self.PAGES)
        self.assertEqual(satc["direct_misses"], satc["private_hits"] + satc["private_misses"])
        self.assertEqual(satc["private_misses"], satc["shared_accesses"] + satc["bypasses"])
        self.assertGreater(satc["direct_cycles"], 0)
        self.assertEqual(stats["cache"]["evictions"], 0)

    def test_all_pages_in_private(self):
        satc, _ = self.counted("--satc-private", "128", "--satc-direct", "8")
        self.assertGreaterEqual(satc["direct_misses"], self.ACCESSES)
        self.assertGreaterEqual(satc["private_hits"], self.ACCESSES - 2 * self.PAGES)
        self.assertLess(satc["private_misses"], 2 * self.PAGES)

    def test_sets_of_lru_lose_what_a_loop_needs_next_and_others_less(self):
        misses = {policy: self.counted("--satc-private", "32", "--satc-direct", "8", "--satc-policy", policy)[0]["private_misses"]
                  for policy in ("lru", "random")}
        self.assertGreaterEqual(misses["lru"], self.ACCESSES)
        self.assertLess(misses["random"], 0.95 * misses["lru"])

    def test_levels_that_are_left_out(self):
        private, _ = self.counted("--satc-levels", "private", "--satc-private", "128")
        self.assertEqual((private["direct_hits"], private["direct_misses"]), (0, 0))
        self.assertGreaterEqual(private["private_hits"], 2 * self.ACCESSES - 2 * self.PAGES)
        direct, _ = self.counted("--satc-levels", "direct", "--satc-private", "128", "--satc-direct", "8")
        self.assertEqual((direct["private_hits"], direct["private_misses"]), (0, 0))
        self.assertGreaterEqual(direct["direct_hits"], self.ACCESSES)
        self.assertGreaterEqual(direct["shared_accesses"], self.ACCESSES)
        none, stats = self.counted("--satc-levels", "none")
        self.assertEqual((none["direct_hits"], none["direct_misses"], none["private_hits"], none["private_misses"]), (0, 0, 0, 0))
        self.assertGreaterEqual(none["shared_accesses"], 2 * self.ACCESSES)
        self.assertGreaterEqual(stats["cache"]["hits"], 2 * self.ACCESSES - 2 * self.PAGES)

    # Far fewer frames than pages: what is pinned does not leave, and leaves enough for the rest to come and go.
    def test_memory_for_a_part(self):
        for levels in ("both", "private", "direct", "none"):
            ended, stats = run("satc", [20000, 2000], "--satc-levels", levels, memory="2M")
            self.assertEqual(ended.stdout, "20000\n", ended.stderr)
            self.assertGreater(stats["cache"]["evictions"], 10000)

    def test_what_threads_had_goes_with_them(self):
        ended, stats = run("satc", [300, 64, "threads"], "--satc-private", "64", memory="3M")
        self.assertEqual(ended.stdout, f"{50 * 300}\n", ended.stderr)
        self.assertLess(stats["satc"]["bypasses"], 64)
        self.assertGreater(stats["satc"]["shared_accesses"], 50 * 64)

    # 31 MiB are pinned, about evenly in four partitions.
    def test_the_budget_may_fall_to_a_bit_more_than_twice_what_is_pinned(self):
        ended, _ = run("satc", [16000, 8000, "budget", 150, 40], "--satc-private", "16384", memory="160M")
        self.assertEqual(ended.stdout, "16000\nSuccess\nInvalid argument\n", ended.stderr)

    def test_fork_is_refused(self):
        ended, _ = run("satc", [100, 10, "fork"])
        self.assertEqual(ended.stdout, "100\nOperation not supported\n")
        ended, _ = run("table", [100, 10, "fork"])
        self.assertEqual(ended.stdout, "100\nforked\nforked\n")
        ended, _ = run("satc", [100, 10, "daemon"])
        self.assertEqual((ended.returncode, ended.stderr.count("\n")), (134, 1))
        self.assertIn("-fspill-translation=satc", ended.stderr)

    def test_wrong_options_are_refused(self):
        for option, value in (("--satc-levels", "three"), ("--satc-policy", "fifo"), ("--satc-private", "-1")):
            ended, _ = run("satc", [1, 1], option, value)
            self.assertEqual((ended.returncode, ended.stderr.count("\n")), (2, 1), ended.stderr)
            self.assertIn(option[2:].replace("-", "_"), ended.stderr.replace("-", "_"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
