"""What the kv_*_test.py share: `spillway kv` on a store in a file of a temporary folder. The first argument of the script is the program.

Every wrong input ends with exit status 2, nothing on standard output, and one line on standard error; what the medium does, or a key
that is not there, with 1 and one line. Nothing is lost by either.
"""
import pathlib
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, ONE_LINE, take_paths, temporary_folder  # noqa: E402

SPILLWAY, = take_paths(1)
SUPERBLOCK_BYTES = 304
SUPERBLOCKS = (0, 512 << 10)


class Ended:
    def __init__(self, ended):
        self.status, self.out, self.err = ended.returncode, ended.stdout, ended.stderr.decode(errors="replace")

    def __repr__(self):
        return f"exit status {self.status}\n{self.out[:2000]}\n{self.err}"


def spillway(*arguments, give=b"", program=SPILLWAY, **keywords):
    keywords.setdefault("stdout", subprocess.PIPE)
    return Ended(subprocess.run([program, *arguments], input=give, stderr=subprocess.PIPE, env=CLEAN,
                                timeout=HANG_SECONDS, **keywords))


def dump_of(*records):
    """A dump of (key, value, flags, expiry), the last two as one likes."""
    lines = [b"spillway-dump 1\n"]
    for key, value, *more in records:
        flags, expires_ms = [*more, 0, 0][:2]
        lines.append(b"+%d,%d,%d,%d:%b->%b\n" % (len(key), len(value), flags, expires_ms, key, value))
    return b"".join(lines) + b".%d\n" % len(records)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
        self.device = self.folder / "store"

    def done(self, *arguments, **keywords):
        ended = spillway("kv", *arguments, **keywords)
        self.assertEqual((ended.status, ended.err), (0, ""), ended)
        return ended.out

    def ends(self, status, *arguments, says=(), **keywords):
        """With one line."""
        ended = spillway(*arguments, **keywords)
        self.assertEqual((ended.status, ended.out), (status, b""), ended)
        self.assertRegex(ended.err, ONE_LINE)
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, ended.err)

    def refused(self, *arguments, **keywords):
        self.ends(2, "kv", *arguments, **keywords)

    def fails(self, *arguments, **keywords):
        self.ends(1, "kv", *arguments, **keywords)

    def make(self, capacity="16M", *arguments):
        return self.done("make", self.device, "--capacity", capacity, *arguments)

    def put(self, key, value, *arguments):
        return int(self.done("put", *arguments, "--", self.device, key, "-", give=value))

    def get(self, key):
        return self.done("get", "--", self.device, key)

    def load(self, *records):
        return self.done("load", self.device, "-", give=dump_of(*records))

    def clean(self):
        ended = spillway("check", self.device)
        self.assertEqual((ended.status, ended.err), (0, ""), ended)
        self.assertRegex(ended.out, rb"\A[^\n]*: clean\n\Z")

    def loading(self, key, value):
        """A process that loads and has put this, and waits for more: dump_of() from the second record on."""
        process = subprocess.Popen([SPILLWAY, "kv", "load", self.device, "-"], env=CLEAN, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        process.stdin.write(dump_of((key, value))[:-3])
        process.stdin.flush()
        until = time.monotonic() + 60
        while value not in self.device.read_bytes() and time.monotonic() < until:
            time.sleep(0.05)
        return process

    def edit(self, offset, data):
        with open(self.device, "r+b") as file:
            file.seek(offset)
            file.write(data)

    def flip(self, offset):
        self.edit(offset, bytes([self.device.read_bytes()[offset] ^ 0x10]))
