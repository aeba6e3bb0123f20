"""What the tests of benchmarks share: `spillway bench`, and what a benchmark has beside it. The first argument of the script is the program.

The modules of the driver can be imported after this one.
"""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, assert_refused, built_in, run_in, take_paths, temporary_folder  # noqa: E402, F401

[SPILLWAY] = take_paths(1)
BENCH = SPILLWAY.parent.parent / "share/spillway/bench"
LIBEXEC = SPILLWAY.parent.parent / "libexec/spillway"
sys.path.insert(0, str(BENCH.parent / "scripts"))
sys.path.insert(0, str(BENCH / "driver"))


def bench(*arguments, **keywords):
    return subprocess.run([str(SPILLWAY), "bench", *map(str, arguments)], capture_output=True, text=True, timeout=1000, **keywords)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
