#!/usr/bin/env python3
"""What each policy makes of a program's touches, and what is said of wrong ones.  policies_test.py BIN WORK PATTERN.c [unittest arguments]

16,384 pages (64 MiB), 400,000 touches: a loop with seven eighths of it in memory, skewed touches with a quarter, a scan beside a hot eighth
with three eighths. Prints a table of misses: that of docs/ARCHITECTURE.md, "Which pages leave".
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, assert_refused, fresh, take_paths  # noqa: E402

BIN, WORK, SOURCE = take_paths(3)
POLICIES = ("clock", "lru", "2q", "random", "s3fifo", "nrlfu")
PAGES, TOUCHES = 16384, 400_000
PATTERNS = {"loop": 57, "skewed": 17, "scan": 25}  # megabytes


def setUpModule():
    fresh(WORK)
    subprocess.run([BIN / "spillcc", "-O2", SOURCE, "-o", WORK / "pattern"], check=True, env=CLEAN)


def run(policy, kind, *options):
    stats = WORK / "stats.json"
    ended = subprocess.run([BIN / "spillway", "run", "--memory", f"{PATTERNS[kind]}M", "--storage", "memory:256M", "--spill-all", "--policy", policy,
                            "--stats", stats, *options, "--", WORK / "pattern", kind, str(PAGES), str(TOUCHES)],
                           check=True, env=CLEAN, capture_output=True, text=True, timeout=300)
    statistics = json.loads(stats.read_text())
    cache, chosen = statistics["cache"], statistics["chosen"]
    assert policy == "auto" or (chosen["policy"], chosen["policy_why"]) == (policy, "asked")
    return cache["misses"] - PAGES, ended.stdout


class Policies(unittest.TestCase):
    def test_misses(self):
        misses = {}
        for kind, megabytes in PATTERNS.items():
            sums = set()
            for policy in POLICIES:
                misses[kind, policy], said = run(policy, kind)
                sums.add(said)
            self.assertEqual(len(sums), 1, "all read the same")
        print("| policy | " + " | ".join(PATTERNS) + " |")
        for policy in POLICIES:
            print(f"| `{policy}` | " + " | ".join(f"{misses[kind, policy]:,}" for kind in PATTERNS) + " |")
        for policy in ("2q", "s3fifo", "nrlfu"):
            self.assertLess(misses["scan", policy], 0.9 * misses["scan", "lru"], policy)
            self.assertLess(misses["skewed", policy], misses["skewed", "random"], policy)
        self.assertLess(misses["loop", "random"], 0.7 * misses["loop", "clock"])

    def test_chaos(self):
        for seed, policy in enumerate(POLICIES, 1):
            self.assertEqual(run(policy, "skewed", "--chaos", str(seed), "--read-ahead", "4")[1], run(policy, "skewed")[1])

    def test_wrong_names(self):
        for wrong in ("wrong", "", "Clock", "clock ", "lru,2q"):
            ended = subprocess.run([BIN / "spillway", "run", f"--policy={wrong}", "--", "true"], env=CLEAN, capture_output=True, text=True)
            assert_refused(self, ended, f"policy: '{wrong}' is not known; give auto, clock, lru, 2q, random, s3fifo or nrlfu")
            ended = subprocess.run([WORK / "pattern", "loop", "16", "16"], env={**CLEAN, "SPILLWAY_POLICY": wrong}, capture_output=True, text=True)
            assert_refused(self, ended)


if __name__ == "__main__":
    unittest.main(verbosity=2)
