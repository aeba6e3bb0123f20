#!/usr/bin/env python3
"""Stores of other formats: those that were made by earlier versions are used, those of later ones refused and left as they are.
kv_formats_test.py SPILLWAY [unittest arguments]

kv_format_1.xz.hex, a packed store in hexadecimal, was made by version 0.1.0: `spillway kv make --capacity 16M`, then what KEPT has was loaded, and a key that was deleted again.
Whoever changes the format adds a file of the one that goes, made by the last program that wrote it.
"""
import ctypes
import lzma
import pathlib
import struct
import unittest

from kv_case import SUPERBLOCKS, Case, dump_of

KEPT = ((b"greeting", b"hello"), (b"flags", b"7", 7), (b"bytes", bytes(range(256))), (b"large", b"spillway" * 100_000), (b"until 2200", b"v", 0, 7_258_118_400_000))
CHECKED_BYTES = 296  # of a superblock: docs/formats/kv.md
VERSION, FEATURES_NEEDED, FEATURES_IGNORED = (12, "<I"), (16, "<Q"), (24, "<Q")


def checksum(data):
    xxhash = ctypes.CDLL("libxxhash.so.0")  # apt needs it: it is on every Debian
    xxhash.XXH3_64bits.restype = ctypes.c_uint64
    return xxhash.XXH3_64bits(data, ctypes.c_size_t(len(data)))


class Earlier(Case):
    def test_a_store_of_format_1_is_used(self):
        self.device.write_bytes(lzma.decompress(bytes.fromhex(pathlib.Path(__file__).with_name("kv_format_1.xz.hex").read_text())))
        self.clean()
        self.assertEqual(set(self.done("list", self.device).splitlines()), {record[0] for record in KEPT})
        for key, value, *_ in KEPT:
            self.assertEqual(self.get(key), value)
        dump = self.done("dump", self.device, "-")
        self.assertEqual(set(dump.splitlines()), set(dump_of(*KEPT).splitlines()))
        self.put("new", b"value")
        self.done("delete", self.device, "bytes")
        self.assertEqual(set(self.done("list", self.device).splitlines()), {b"new", *(record[0] for record in KEPT)} - {b"bytes"})
        self.clean()


class Later(Case):
    def setUp(self):
        super().setUp()
        self.make()
        self.put("key", b"value")

    def write(self, place, value):
        """Into both superblocks, as a program of that format would."""
        at, form = place
        block = bytearray(self.device.read_bytes()[:CHECKED_BYTES])
        struct.pack_into(form, block, at, value)
        for superblock in SUPERBLOCKS:
            self.edit(superblock, bytes(block) + struct.pack("<Q", checksum(bytes(block))))

    def check_that_all_refuse(self, *said, status=2):
        before = self.device.read_bytes()
        (self.folder / "dump").write_bytes(dump_of((b"new", b"value")))
        for words in (["get", self.device, "key"], ["put", self.device, "key", "other"], ["delete", self.device, "key"], ["list", self.device], ["stats", self.device],
                      ["dump", self.device, "-"], ["load", self.device, self.folder / "dump"], ["compact", self.device], ["check", self.device]):
            self.ends(status, "kv", *words, says=said)
        self.ends(status, "serve", "--storage", self.device, "--memcache", "0", says=said)
        self.assertTrue(self.device.read_bytes() == before, "the store is another one now")

    def test_a_newer_format(self):
        self.write(VERSION, 2)
        self.check_that_all_refuse("store", "newer format (version 2", "reads version 1")

    def test_a_feature_that_one_has_to_know(self):
        self.write(FEATURES_NEEDED, 1 << 5)
        self.check_that_all_refuse("newer format (version 1, features 0x20)")

    def test_a_format_that_never_was(self):
        self.write(VERSION, 0)
        self.check_that_all_refuse("cannot be right", status=1)

    def test_a_feature_that_one_may_ignore(self):
        self.write(FEATURES_IGNORED, 1 << 5)
        self.assertEqual(self.get("key"), b"value")
        self.clean()


if __name__ == "__main__":
    unittest.main(verbosity=2)
