#!/usr/bin/env python3
"""Scripts that kill processes fail if one hangs before it has checked what it found: a kill would hide that.  hangs_test.py [unittest arguments]"""
import pathlib
import random
import sys
import unittest
from unittest import mock

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("", "batch_crash", "kv_crash", "pagecache_crash")]
import batch_crash_test  # noqa: E402
import kv_crash_test  # noqa: E402
import pagecache_crash_test  # noqa: E402
from support import Failure, temporary_folder  # noqa: E402


class HangsTest(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
        self.program = self.folder / "hangs"
        self.program.write_text("#!/bin/sh\nexec sleep 1000\n")
        self.program.chmod(0o755)
        for script in (batch_crash_test, kv_crash_test, pagecache_crash_test):
            quick = mock.patch.object(script, "HANG_SECONDS", 1)
            quick.start()
            self.addCleanup(quick.stop)

    def test_table(self):
        with self.assertRaisesRegex(Failure, "did not say what it found"):
            batch_crash_test.life(self.program, self.folder, 0, 0.01, False)
        self.assertEqual(batch_crash_test.life(self.program, self.folder, 7, 0.01, True), (None, 7))

    def test_store(self):
        with self.assertRaisesRegex(Failure, "had not read all keys"):
            self.life_of_a_writer(0, False)
        with self.assertRaisesRegex(Failure, "ended with -9"):
            self.life_of_a_writer(0, True)
        self.life_of_a_writer(4, False)  # killed early

    def life_of_a_writer(self, number, is_last):
        kv_crash_test.life(self.program, self.folder / "store", None, kv_crash_test.Model(), number, random.Random(1), is_last)

    def test_pages(self):
        with self.assertRaisesRegex(Failure, "ended with -9"):
            pagecache_crash_test.life(self.program, self.folder / "file", 0, random.Random(1), False)


if __name__ == "__main__":
    unittest.main()
