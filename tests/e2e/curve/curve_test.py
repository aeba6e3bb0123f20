#!/usr/bin/env python3
"""The curve that one run foretells, and the misses of runs with more memory.  curve_test.py BIN WORK [unittest arguments]

16,384 pages (64 MiB) in 16 MiB; the curve may be wrong by 8 % of the misses that it starts from.
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, fresh, take_paths  # noqa: E402

BIN, WORK = take_paths(2)
SOURCES = pathlib.Path(__file__).resolve().parent
PAGES, TOUCHES, TOLERANCE = 16384, 150_000, 0.08


def setUpModule():
    fresh(WORK)
    subprocess.run([BIN / "spillcc", "-O2", SOURCES / "pattern.c", "-o", WORK / "pattern"], check=True, env=CLEAN)


def run(kind, megabytes):
    stats = WORK / "stats.json"
    ended = subprocess.run([BIN / "spillway", "run", "--memory", f"{megabytes}M", "--storage", "memory:256M", "--spill-all",
                            "--verbose", "--stats", stats, "--", WORK / "pattern", kind, str(PAGES), str(TOUCHES)],
                           check=True, env=CLEAN, capture_output=True, text=True, timeout=300)
    return json.loads(stats.read_text())["cache"], ended.stderr


def foretold(curve, megabytes):
    """Between two points in a straight line."""
    at = megabytes << 20
    for low, high in zip(curve, curve[1:]):
        if low["memory_bytes"] <= at <= high["memory_bytes"]:
            share = (at - low["memory_bytes"]) / (high["memory_bytes"] - low["memory_bytes"])
            return low["misses"] + share * (high["misses"] - low["misses"])
    raise AssertionError(f"{megabytes}M is not on {curve}")


class Curve(unittest.TestCase):
    def check(self, kind):
        cache, said = run(kind, 16)
        curve = cache["miss_curve"]
        self.assertEqual(curve[0], {"memory_bytes": 16 << 20, "misses": cache["misses"]})
        self.assertEqual(curve, sorted(curve, key=lambda point: (point["memory_bytes"], -point["misses"])))
        self.assertRegex(said, r"spillway: with \d+M of memory there would be about \d+ misses(, with \d+M \d+)?; \d+ were\n")
        for megabytes in (24, 32, 48, 80):
            measured = run(kind, megabytes)[0]["misses"]
            print(f"{kind}: 16M {cache['misses']} misses; {megabytes}M {measured}, foretold {foretold(curve, megabytes):.0f}")
            self.assertLess(abs(foretold(curve, megabytes) - measured), TOLERANCE * cache["misses"])

    def test_loop(self):
        self.check("loop")

    def test_uniform(self):
        self.check("uniform")

    def test_skewed(self):
        self.check("skewed")

    def test_memory_that_suffices(self):
        cache, said = run("loop", 80)
        self.assertEqual((cache["evictions"], [point["misses"] for point in cache["miss_curve"]]),
                         (0, [cache["misses"]] * len(cache["miss_curve"])))
        self.assertNotIn("there would be", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
