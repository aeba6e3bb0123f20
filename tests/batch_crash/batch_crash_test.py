#!/usr/bin/env python3
"""A process that changes a table in a file with a log is killed, again and again.

  batch_crash_test.py BUILD        10 kills; tests/kills.py has variables for more, and others

A process that is started after a kill (table_changer.cc) first checks the whole table: it must be what the first so many steps make, no fewer than were
synced. Some processes are killed while they make the changes in the log again.
"""
import pathlib
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from kills import Kills, wait_for_release  # noqa: E402
from support import CLEAN, HANG_SECONDS, Failure, status_of  # noqa: E402


def life(changer, folder, synced, kill_seconds, is_early):
    """Starts the changer, and kills it so long after its start if is_early, otherwise after its check; None: it ends by itself. Returns how many steps it found, and how
    many are synced."""
    wait_for_release(folder / "table", folder / "log")
    command = [str(changer), str(folder / "table"), str(folder / "log"), str(synced)]
    with tempfile.TemporaryFile(dir=folder) as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, env=CLEAN)
        timer = threading.Timer(kill_seconds if is_early else HANG_SECONDS, process.kill)
        timer.start()
        found = None
        if kill_seconds is None:
            process.stdin.close()
        for line in process.stdout:
            words = line.split()
            if words[1:] == [b"found"]:
                found = int(words[0])
                if kill_seconds is not None and not is_early:
                    timer.cancel()
                    timer = threading.Timer(kill_seconds, process.kill)
                    timer.start()
            elif line.endswith(b"\n"):
                synced = int(words[0])
        status = process.wait()
        timer.cancel()
        said.seek(0)
        text = said.read().decode(errors="replace")
    if text or status != (0 if kill_seconds is None else -9):
        raise Failure(f"{' '.join(command)} ended with {status}: {text}")
    if found is None and not is_early:
        raise Failure(f"{' '.join(command)} did not say what it found for {HANG_SECONDS} seconds")
    return found, synced


def test(build):
    kills = Kills(10)
    changer = pathlib.Path(build) / "tests" / "table_changer"
    synced, starts, later, killed = 0, 0, 0, 0

    def done():
        return {"synced": (synced, 200 * kills.count), "starts": (starts, kills.count // 3), "later": (later, kills.count // 5)}

    with kills.folder("batch_crash") as folder:
        while kills.goes_on(killed, **done()):
            killed += 1
            is_early = kills.random.random() < 0.25
            before = synced
            found, synced = life(changer, folder, synced, kills.random.uniform(0.02, 0.1 if is_early else 0.2), is_early)
            starts += found is not None
            later += found is not None and found > before
        found, synced = life(changer, folder, synced, None, False)
    print(f"{kills}: {synced} steps synced, {starts} starts that found all, {later} of them steps that were not synced")
    kills.expect(**done())


if __name__ == "__main__":
    sys.exit(status_of("batch_crash_test", test, sys.argv[1]))
