#!/usr/bin/env python3
"""`spillway kv` and values that one record cannot hold: they stream.  kv_large_test.py SPILLWAY [unittest arguments]
"""
import filecmp
import os
import pathlib
import subprocess
import sys
import unittest

from kv_case import SPILLWAY, Case, spillway

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, sanitizer_of  # noqa: E402


class LargeValues(Case):
    def test_they_are_as_others(self):
        self.make("64M", "--segment", "1M")
        for size in (262144, 262145, 1_000_000, 5_000_001):
            value = os.urandom(size)
            version = self.put("key", value)
            self.assertTrue(self.get("key") == value, size)
            self.assertEqual(int(self.done("get", "--version", self.device, "key")), version)
        file = self.folder / "value"
        file.write_bytes(value)
        self.done("put", self.device, "of a file", "--file", file, "--flags", "7")
        self.assertTrue(self.get("of a file") == value)
        self.fails("put", self.device, "key", "-", "--if-absent", give=bytes(1_000_000), says="is there already")
        self.assertTrue(self.get("key") == value)
        self.clean()
        # One that has no room leaves nothing.
        self.fails("put", self.device, "more", "-", give=bytes(100 << 20), says="full")
        self.fails("get", self.device, "more", says="no key 'more'")
        self.clean()
        self.done("delete", self.device, "key", "of a file")
        for _ in range(10):
            self.put("key", os.urandom(20_000_000))
        self.assertEqual(len(self.get("key")), 20_000_000)
        self.clean()

    @unittest.skipIf(sanitizer_of(SPILLWAY), "a sanitizer's own memory is a multiple of the program's")
    def test_they_take_little_memory(self):
        self.make("400M")
        file, other = self.folder / "value", self.folder / "other"
        with open(file, "wb") as out:  # a process's peak is at least that of the one which starts it
            for _ in range(120):
                out.write(os.urandom(1 << 20))

        def peak_bytes(*words, out=None):
            running = subprocess.Popen([SPILLWAY, "kv", *words], env=CLEAN, stdout=out)
            _, status, usage = os.wait4(running.pid, 0)
            running.returncode = status
            self.assertEqual(status, 0)
            return usage.ru_maxrss << 10

        self.put("small", b"v")
        small = peak_bytes("get", "--version", self.device, "small", out=subprocess.DEVNULL)
        self.assertLess(peak_bytes("put", self.device, "key", "--file", file, out=subprocess.DEVNULL), small + (30 << 20))
        with open(other, "wb") as out:
            self.assertLess(peak_bytes("get", self.device, "key", out=out), small + (30 << 20))
        self.assertTrue(filecmp.cmp(file, other, shallow=False))
        self.assertLess(peak_bytes("dump", self.device, self.folder / "dump"), small + (30 << 20))
        self.assertLess(peak_bytes("load", self.device, self.folder / "dump", out=subprocess.DEVNULL), small + (60 << 20))
        with open(other, "wb") as out:
            self.assertEqual(spillway("kv", "get", self.device, "key", stdout=out).status, 0)
        self.assertTrue(filecmp.cmp(file, other, shallow=False))
        self.clean()

    def test_they_are_loaded_in_their_order(self):
        self.make("64M")
        large = [os.urandom(300_000 + i * 77_777) for i in range(9)]
        self.load((b"a", large[0]), (b"b", b"small"), (b"b", large[1], 7), (b"c", large[2]), (b"c", b"small"),
                  *((b"d", value) for value in large), (b"e", large[3], 0, 1))
        for key, value in (("a", large[0]), ("b", large[1]), ("c", b"small"), ("d", large[8])):
            self.assertTrue(self.get(key) == value, key)
        self.fails("get", self.device, "e")
        self.clean()

    def test_they_are_listed_too(self):
        self.make("64M")
        value = b"\x01large" * 500_000
        self.load((b"key", value), (b"other", b"v"))
        shown = {b"key\t" + value.replace(b"\x01", b"\\x01"), b"other\tv"}
        self.assertTrue(set(self.done("list", self.device, "--values").splitlines()) == shown)
        self.assertTrue(self.done("list", self.device, "--null", "--values", "--prefix", "k") == b"key\0" + value + b"\0")
        self.assertEqual(set(self.done("list", self.device).splitlines()), {b"key", b"other"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
