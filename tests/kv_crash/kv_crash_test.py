#!/usr/bin/env python3
"""A process that changes a store in a file is killed, again and again: what it was promised is there, whatever the durability.

  kv_crash_test.py BUILD [encrypted]   10 kills; tests/kills.py has variables for more, and others

The writer (kv_writer.cc) reports each change before it begins and after it was acknowledged. A writer that is started after a kill first
reads all keys: each must have the value that was acknowledged last, or that of a change that had begun, never an older one, a torn one or
one that was removed. A killed process loses nothing at any durability, so the durability changes from one start to the next, as does the
way to the file. Some writers are killed while they start.
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from kills import Kills, wait_for_release  # noqa: E402
from support import CLEAN, HANG_SECONDS, Failure, status_of  # noqa: E402

REPORT = struct.Struct("=cBHIII")
THREADS = 4
SCHEMES = ["uring", "aio", "file"]
DURABILITIES = ["sync", "batch", "none"]


class Model:
    """Which values each key may have."""

    def __init__(self):
        self.possible = {}  # by key: numbers of values, 0 for none
        self.expiring = set()  # (key, number)
        self.counter = 0
        self.counts = {"acknowledged": 0, "victims": 0, "checkpoints": 0, "reports": 0, "ready": 0}
        self.life = (0, 0)

    def done(self, least):
        """What was done, in the form that Kills expects."""
        return {"victims": (self.counts["victims"], least), "checkpoints": (self.counts["checkpoints"], least), "counter": (self.counter, least)}

    def lines(self):
        keys = [" ".join(map(str, (key, *sorted(numbers)))) for key, numbers in self.possible.items()]
        return "\n".join([*keys, f"counter {self.counter} {self.counter + THREADS}", "", ""])

    def now(self, key, number):
        self.possible[key] = {number, 0} if (key, number) in self.expiring else {number}

    def take(self, output):
        """All reports of one life, in the order in which they were written."""
        self.life = (0, 0)
        for what, expires, _, key, number, other in REPORT.iter_unpack(output[:len(output) // REPORT.size * REPORT.size]):
            self.counts["reports"] += 1
            if what == b"b":
                if expires:
                    self.expiring.add((key, number))
                self.possible[key] = self.possible.get(key, {0}) | {number} | ({0} if expires else set())
            elif what in b"as":
                self.counts["acknowledged"] += what == b"a"
                self.now(key, number)
            elif what == b"n":
                self.counter = max(self.counter, number)
            elif what == b"c":
                self.life = (max(self.life[0], number), max(self.life[1], other))
            elif what == b"r":
                self.counts["ready"] += 1
        self.counts["victims"] += self.life[0]
        self.counts["checkpoints"] += self.life[1]


def device_of(path, scheme, key):
    return f"{scheme}:{path}" if key is None else f"encrypt:key={key}:[{scheme}:{path}]"


def life(writer, path, key, model, number, generator, is_last):
    """Starts the writer, lets it go on for a while, and kills it."""
    wait_for_release(path)
    dies_early = number % 5 == 4 and not is_last
    arguments = [str(writer), device_of(path, SCHEMES[number % 3], key), DURABILITIES[number // 3 % 3], str(generator.getrandbits(32))]
    with tempfile.TemporaryFile(dir=path.parent) as said:
        read_end, write_end = os.pipe()
        process = subprocess.Popen(arguments, stdin=read_end, stdout=subprocess.PIPE, stderr=said, env=CLEAN)
        os.close(read_end)
        output = bytearray()
        reader_fd = process.stdout.fileno()
        ends_at = time.monotonic() + (generator.uniform(0, 0.1) if dies_early else HANG_SECONDS)
        to_write = model.lines().encode()
        os.set_blocking(write_end, False)
        os.set_blocking(reader_fd, False)
        is_ready = False
        while time.monotonic() < ends_at:
            if to_write:
                try:
                    to_write = to_write[os.write(write_end, to_write):]
                except BlockingIOError:
                    pass
                except BrokenPipeError:
                    break
            got = read_some(reader_fd)
            output += got or b""
            if got == b"":
                break
            if not is_ready and b"r" in output[::REPORT.size]:
                is_ready = True
                if not dies_early:
                    ends_at = time.monotonic() + generator.uniform(0.02, 0.6)
            time.sleep(0.001)
        if not is_last or not is_ready:
            process.kill()
        os.close(write_end)
        os.set_blocking(reader_fd, True)
        output += process.stdout.read()
        process.stdout.close()
        status = process.wait(HANG_SECONDS)
        said.seek(0)
        text = said.read().decode(errors="replace")
    model.take(bytes(output))
    if status != (0 if is_last else -9):
        raise Failure(f"start {number}: {' '.join(arguments)} ended with {status}: {text}")
    if not is_ready and not dies_early:
        raise Failure(f"start {number}: {' '.join(arguments)} had not read all keys after {HANG_SECONDS} seconds")


def read_some(descriptor):
    """What can be read now; None: nothing."""
    try:
        return os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return None


def make_key(path):
    path.touch(mode=0o600)
    path.write_bytes(os.urandom(64))
    return path


def test(build, is_encrypted):
    kills = Kills(10)
    model = Model()
    with kills.folder("kv_crash") as folder:
        path = folder / "store"
        key = make_key(folder / "key") if is_encrypted else None
        writer = pathlib.Path(build) / "tests" / "kv_writer"
        made = subprocess.run([str(writer), "make", str(path), device_of(path, "file", key)], env=CLEAN, stderr=subprocess.PIPE, check=False, text=True)
        if made.returncode != 0:
            raise Failure(made.stderr)
        killed = 0
        while kills.goes_on(killed, **model.done(kills.count)):
            life(writer, path, key, model, killed, kills.random, False)
            killed += 1
        life(writer, path, key, model, killed, kills.random, True)
    counts = model.counts
    print(f"{kills}: {counts['acknowledged']} changes acknowledged of {len(model.possible)} keys, counted to {model.counter}; "
          f"{counts['victims']} segments collected, {counts['checkpoints']} checkpoints, {counts['ready']} starts read all keys")
    kills.expect(**model.done(kills.count))


if __name__ == "__main__":
    sys.exit(status_of("kv_crash_test", test, sys.argv[1], sys.argv[2:] == ["encrypted"]))
