"""What scripts share whose processes are killed, again and again: how often, by which chance, where, and whether enough was done meanwhile.

SPILLWAY_TEST_KILLS=200 for as many kills; SPILLWAY_TEST_SEED=n for what a run with that seed did.
"""
import contextlib
import fcntl
import os
import pathlib
import random
import sys
import tempfile

from support import Failure

FEW = 8  # of fewer kills nothing is expected


def wait_for_release(*paths):
    """Returns when nobody has a lock of these files any more. What a process that was killed had under way, the kernel may end after the process, on a busy disk
    more than a second later: longer than the next one would wait."""
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
        """A folder that is gone afterwards. If what is done there fails, the seed is told."""
        with tempfile.TemporaryDirectory(prefix=name, dir=os.environ.get("TMPDIR", "/var/tmp")) as folder:
            try:
                yield pathlib.Path(folder)
            except Exception:
                print(f"SPILLWAY_TEST_SEED={self.seed}", file=sys.stderr)
                raise

    def goes_on(self, killed, **done):
        """After so many kills, is there another one? Less is done before each where the machine is busy: then there are more of them, ten times as many at most."""
        if killed < self.count:
            return True
        return FEW <= self.count and killed < 10 * self.count and any(count < least for count, least in done.values())

    def expect(self, **done):
        """done: what was done, as (how much, how much at least)."""
        for what, (count, least) in done.items():
            if self.count >= FEW and count < least:
                raise Failure(f"{what}: {count}, and not {least}: too little was done for the test to find anything")
