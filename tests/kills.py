"""Shared by scripts that kill processes again and again: how many kills, the seed, the folder, and whether enough was done meanwhile.

SPILLWAY_TEST_KILLS=200 for that many kills; SPILLWAY_TEST_SEED=n to repeat the choices of a run with that seed.
"""
import contextlib
import fcntl
import os
import pathlib
import random
import sys
import tempfile

from support import Failure

FEW = 8  # with fewer kills, no amount of work is expected


def wait_for_release(*paths):
    """Returns when nobody has a lock on these files any more. The kernel may complete the I/O of a killed process after its end, on a busy disk more
    than a second later, which is longer than the next process would wait."""
    for path in paths:
        if path.exists():
            with open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)


class Kills:
    def __init__(self, usual):
        self.count = int(os.environ.get("SPILLWAY_TEST_KILLS", usual))
        self.seed = int(os.environ.get("SPILLWAY_TEST_SEED", random.SystemRandom().getrandbits(32)))
        self.random = random.Random(self.seed)

    def __str__(self):
        return f"{self.count} kills, seed {self.seed}"

    @contextlib.contextmanager
    def folder(self, name):
        """A folder that is gone afterwards. If what is done there fails, the seed is printed."""
        with tempfile.TemporaryDirectory(prefix=name, dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
            try:
                yield pathlib.Path(folder)
            except Exception:
                print(f"SPILLWAY_TEST_SEED={self.seed}", file=sys.stderr)
                raise

    def goes_on(self, killed, **done):
        """Is there to be another kill after `killed` of them? On a busy machine less is done before each: then there are more, at most ten times as many."""
        if killed < self.count:
            return True
        return FEW <= self.count and killed < 10 * self.count and any(count < least for count, least in done.values())

    def expect(self, **done):
        """Fails if too little was done. `done` has, for each thing, (how much was done, how much has to be)."""
        for what, (count, least) in done.items():
            if self.count >= FEW and count < least:
                raise Failure(f"{what}: {count}, and not {least}: too little was done for the test to find anything")
