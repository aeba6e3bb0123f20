#!/usr/bin/env python3
"""scripts/run_tests.py counts what passed, failed and was skipped in a small project of its own, and says why."""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import temporary_folder  # noqa: E402

RUN_TESTS = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "run_tests.py"

GTEST = """[ RUN      ] Watch.Moves
watch_test.cc:22: Skipped
userfaultfd: operation not permitted

[  SKIPPED ] Watch.Moves (0 ms)
[ RUN      ] Watch.Stays
[       OK ] Watch.Stays (0 ms)
[ RUN      ] Ring.Turns
ring_test.cc:5: Skipped

[  SKIPPED ] Ring.Turns (0 ms)
[  SKIPPED ] 2 tests, listed below:
[  SKIPPED ] Watch.Moves
"""
UNITTEST = """test_reads (__main__.Device.test_reads) ... ok
test_mounts (__main__.Device.test_mounts) ... skipped 'mounts need root'
test_cores (__main__.Device.test_cores)
What a core holds. ... skipped "core files go to '|cat'"

----------------------------------------------------------------------
Ran 3 tests in 0.010s

OK (skipped=2)
"""
QUIET_UNITTEST = """s.s
----------------------------------------------------------------------
Ran 3 tests in 0.010s

OK (skipped=2)
"""


class Summary(unittest.TestCase):
    def run_project(self, tests):
        """tests: name -> (what it prints, exit status)."""
        folder = temporary_folder(self)
        lines = []
        for name, (text, status) in tests.items():
            script = folder / name
            script.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
            script.chmod(0o755)
            lines += [f'add_test({name} "{script}")', f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77)"]
        (folder / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
        return subprocess.run([sys.executable, RUN_TESTS, folder], capture_output=True, text=True)

    def last_line(self, **tests):
        return self.run_project(tests).stdout.splitlines()[-1]

    def test_nothing_skipped(self):
        ended = self.run_project({"one": ("fine", 0), "two": ("fine", 0)})
        self.assertEqual(ended.stdout.splitlines()[-1], "2 passed, 0 failed, 0 skipped")
        self.assertEqual(ended.returncode, 0)

    def test_a_failure(self):
        ended = self.run_project({"one": ("bad", 1), "two": ("fine", 0)})
        self.assertEqual(ended.stdout.splitlines()[-1], "1 passed, 1 failed, 0 skipped")
        self.assertNotEqual(ended.returncode, 0)

    def test_a_whole_test(self):
        self.assertEqual(self.last_line(net=("looking\nno network", 77), one=("fine", 0)),
                         "1 passed, 0 failed, 1 skipped: net (no network)")

    def test_cases_of_googletest(self):
        self.assertEqual(self.last_line(watch_test=(GTEST, 0)),
                         "1 passed, 0 failed, 2 skipped: Watch.Moves in watch_test (userfaultfd: operation not permitted); "
                         "Ring.Turns in watch_test (no reason given)")

    def test_cases_of_unittest(self):
        self.assertEqual(self.last_line(refusals=(UNITTEST, 0)),
                         "1 passed, 0 failed, 2 skipped: test_mounts in refusals (mounts need root); test_cores in refusals (core files go to '|cat')")

    def test_cases_that_unittest_does_not_name(self):
        of_one = "a case in quiet (unittest counts it and does not name it)"
        self.assertEqual(self.last_line(quiet=(QUIET_UNITTEST, 0)), f"1 passed, 0 failed, 2 skipped: {of_one}; {of_one}")

    def test_no_tests(self):
        self.assertNotEqual(self.run_project({}).returncode, 0)

    def test_a_test_that_does_not_exist(self):
        folder = temporary_folder(self)
        (folder / "CTestTestfile.cmake").write_text('add_test(gone "/no/such/program")\n')
        ended = subprocess.run([sys.executable, RUN_TESTS, folder], capture_output=True, text=True)
        self.assertEqual(ended.stdout.splitlines()[-1], "0 passed, 1 failed, 0 skipped")


if __name__ == "__main__":
    unittest.main(verbosity=2)
