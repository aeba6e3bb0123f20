#!/usr/bin/env python3
"""A program over libpmemobj, correct and with mistakes, through `spillway persist check -- spillway persist run`. Arguments: the build, a folder to work in.

The pool's own recovery runs on each image. Stores of the program are told where spillcc compiled it; libpmemobj's are found.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, built_in, fresh, temporary_folder  # noqa: E402
from checked import COMPILERS, POOL, SOURCES, SPILLWAY, WORK, spillway  # noqa: E402

IS_LONG = "SPILLWAY_TEST_LONG" in os.environ
# It leaves what it needs only while a pool is open where it is.
IGNORED = ["--ignore", "libpmemobj", "--ignore", "unknown code"]


def setUpModule():
    fresh(WORK)
    for kind, compiler in {"told": COMPILERS["told"], "plain": ["clang-19"]}.items():
        built_in(WORK, *compiler, "-O0", "-g", "-Wall", "-Wextra", "-Werror", SOURCES / "accounts.c", "-lpmemobj", "-o", f"accounts.{kind}")
    # Or else a copy of the pool does not open where its medium cannot say whether it was shut down.
    subprocess.run([WORK / "accounts.plain", "make", WORK / "pool"], env=CLEAN | {"PMEMOBJ_CONF": "sds.at_create=0"}, check=True)


class Pmemobj(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)

    def check(self, bug, *options, kind="told"):
        folder = self.folder / f"{bug}.{kind}"
        folder.mkdir()
        shutil.copy(WORK / "pool", folder / "pool")
        ended = spillway("check", "--out", folder / "out", "--recover", f"{WORK}/accounts.plain verify {{}} {{marker}}", *IGNORED, *options, "--",
                         SPILLWAY, "persist", "run", WORK / f"accounts.{kind}", "run", folder / "pool", bug, PMEM_IS_PMEM_FORCE="1")
        self.assertEqual(ended.stderr, "")
        report = json.loads((folder / "out" / "report.json").read_text())
        self.assertEqual(ended.returncode, int(report["has_bugs"]), ended)
        return report, ended.stdout

    def test_each_image_opens_and_holds_what_was_committed(self):
        options = ["--images", 10] if IS_LONG else ["--images", 4, "--crash-points", 16]
        jobs = [POOL.submit(self.check, 0, *options, kind=kind) for kind in ("told", "plain")]
        for job in jobs:
            report, text = job.result()
            self.assertEqual((report["bugs"], report["findings"], report["is_ended"]), ([], [], True), text)
            self.assertGreater(report["recovery"]["images"], 400 if IS_LONG else 40)

    def test_mistakes_are_found(self):
        """Stores that a transaction does not know of, and one that is a transaction of its own."""
        bugs = {1: "balances[to] += amount", 2: None, 3: "balances[to] += amount"}
        options = ["--images", 6] if IS_LONG else ["--images", 6, "--bugs", 1]
        jobs = {(bug, kind): POOL.submit(self.check, bug, *options, kind=kind) for bug in bugs for kind in ("told", "plain")
                if IS_LONG or kind == "told" or bug == 1}
        for (bug, kind), job in jobs.items():
            with self.subTest(bug=bug, kind=kind):
                report, text = job.result()
                self.assertTrue(report["bugs"], text)
                again = subprocess.run(report["bugs"][0]["command"], shell=True, capture_output=True, text=True, timeout=HANG_SECONDS)
                self.assertEqual(again.returncode, 1, text)
                self.assertRegex(again.stdout, "a wrong balance of account|not as after transfer|other notes than transfers")
                places = [finding["site"]["place"] for finding in report["findings"] if finding["kind"] == "missing flush"]
                if kind == "plain" or bugs[bug] is None:
                    self.assertEqual(places, [], text)
                    continue
                self.assertEqual(len(places), 1, text)
                path, line = places[0].rsplit(":", 1)
                self.assertIn(bugs[bug], pathlib.Path(path).read_text().splitlines()[int(line) - 1], text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
