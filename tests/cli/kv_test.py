#!/usr/bin/env python3
"""`spillway kv` and `spillway check` as a user meets them, on files.  kv_test.py SPILLWAY [unittest arguments]

Every wrong input ends with exit status 2, nothing on standard output, and one line on standard error; what the medium does, or a key
that is not there, with 1 and one line. Nothing is lost by either.
"""
import ctypes
import ctypes.util
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, ONE_LINE, become_nobody, take_paths, temporary_folder  # noqa: E402

SPILLWAY, = take_paths(1)
SUPERBLOCK_BYTES = 304
SUPERBLOCKS = (0, 512 << 10)
SEGMENTS = 1 << 20  # where they begin


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


class Words(Case):
    def test_help(self):
        text = spillway("kv", "--help").out.decode()
        self.assertIn("usage: spillway kv SUBCOMMAND DEVICE", text)
        names = [line.split()[2] for line in text.splitlines() if line.startswith("  spillway kv ")]
        self.assertLessEqual({"make", "get", "put", "delete", "list", "dump", "load", "compact", "stats", "check"}, set(names))
        for name in names:
            ended = spillway("kv", name, "--help")
            self.assertEqual((ended.status, ended.err), (0, ""))
            self.assertIn(f"usage: spillway kv {name} ", ended.out.decode())
            for line in ended.out.decode().splitlines():
                self.assertLess(len(line), 150)
        self.assertIn("spillway kv", spillway("--help").out.decode())
        self.assertIn("verify", spillway("check", "--help").out.decode())

    def test_wrong_words(self):
        self.refused(says="no subcommand")
        self.refused("fly", says=["'fly'", "--help"])
        for name in ("make", "get", "put", "delete", "list", "dump", "load", "compact", "stats", "check"):
            self.refused(name, says=f"usage: spillway kv {name}")
            self.refused(name, "--fly", self.device, says=["'--fly'", f"spillway kv {name} --help"])
        for name in ("get", "put", "delete", "dump", "load"):
            self.refused(name, self.device, says=f"usage: spillway kv {name}")
        self.refused("get", self.device, "a", "b", says="usage")
        self.refused("make", self.device, "b", says="usage")
        self.ends(2, "check", says="usage: spillway kv check DEVICE")
        self.refused("put", self.device, "k", "v", "--flags", says="--flags needs a NUMBER")
        self.refused("put", self.device, "k", "v", "--flags", "1", "--flags=2", says="--flags is given twice")
        self.refused("put", self.device, "k", "v", "--if-absent=1", says="--if-absent takes no argument")
        self.refused("put", self.device, "k", "v", "--if-absent", "--if-present", says="one of --if-absent")
        self.refused("put", self.device, "k", says="value once")
        self.refused("put", self.device, "k", "v", "--file", "f", says="value once")
        self.refused("load", self.device, "f", "--durability", "some", says=["'some'", "none, batch or sync"])
        self.assertEqual(os.listdir(self.folder), [])

    def test_wrong_numbers(self):
        for flags in ("-1", "4294967296", "1x", "", "0x10", " 1"):
            self.refused("put", self.device, "k", "v", f"--flags={flags}", says=["--flags", f"'{flags}'", "4294967295"])
        for seconds in ("0", "1.5", "99999999999"):
            self.refused("put", self.device, "k", "v", "--expires", seconds, says=["--expires", f"'{seconds}'"])
        for version in ("0", "x", "18446744073709551616"):
            self.refused("put", self.device, "k", "v", "--if-version", version, says=["--if-version", f"'{version}'"])
        for size in ("lots", "-1", "", "1.5G"):
            self.refused("make", self.device, f"--capacity={size}", says=["--capacity", "not a size"])
        self.refused("make", self.device, "--capacity", "16M", "--spare", "91", says=["--spare", "'91'", "90"])
        for grain in ("0", "256", "3K", "8K", "4G"):
            self.refused("make", self.device, "--capacity", "16M", "--grain", grain, says=["grain", "give 512"])
        for segment in ("0", "512K", "3M", "2G"):
            self.refused("make", self.device, "--capacity", "16M", "--segment", segment, says=["segment", "power of two"])
        self.assertEqual(os.listdir(self.folder), [])


class Make(Case):
    def test_a_file_is_made_and_used(self):
        out = self.make("64M", "--grain", "4K", "--segment", "2M", "--spare", "20")
        self.assertRegex(out, rb"\Amade a store of 31 segments of 2.0 MiB; [^\n]*\n\Z")
        self.assertEqual(self.device.stat().st_size, 64 << 20)
        self.assertEqual(self.device.stat().st_mode & 0o777, 0o600)
        store = json.loads(self.done("stats", "--json", self.device))["store"]
        self.assertEqual((store["grain_bytes"], store["segment_bytes"], store["spare_percent"]), (4096, 2 << 20, 20))
        self.clean()

    def test_a_file_that_is_there_gives_the_size(self):
        self.refused("make", self.device, says=[str(self.device), "--capacity"])
        self.device.touch()
        self.refused("make", self.device, says="--capacity")
        os.truncate(self.device, 24 << 20)
        self.done("make", self.device)
        self.assertEqual(json.loads(self.done("stats", "--json", self.device))["store"]["capacity_bytes"], 24 << 20)
        os.unlink(self.device)
        self.device.touch()
        self.done("make", f"file:{self.device}", "--capacity=16M")
        self.assertEqual(self.device.stat().st_size, 16 << 20)

    def test_what_is_refused_leaves_everything_as_it_was(self):
        self.fails("make", self.device, "--capacity", "2M", says="too small")
        self.refused("make", self.device, "--capacity", "100", says="no room")
        self.assertFalse(self.device.exists())
        self.device.touch()
        self.fails("make", self.device, "--capacity", "2M", says="too small")
        self.assertEqual(self.device.stat().st_size, 0)
        os.truncate(self.device, 1 << 20)
        self.fails("make", self.device, "--capacity", "2M", says="too small")
        self.assertEqual(self.device.stat().st_size, 1 << 20)

    def test_content_is_refused_unless_given_up(self):
        self.device.write_bytes(b"mine")
        self.refused("make", self.device, "--capacity", "16M", says=["has content", "--overwrite"])
        self.assertEqual(self.device.read_bytes(), b"mine")
        with open(self.device, "r+b") as file:  # far behind what a store begins with
            file.truncate(0)
            file.truncate(16 << 20)
            file.seek(10 << 20)
            file.write(b"mine")
        self.refused("make", self.device, says="has content")
        self.done("make", self.device, "--overwrite")
        self.put("key", b"value")
        self.refused("make", self.device, "--capacity", "64M", says="has content")
        for superblock in SUPERBLOCKS:
            self.edit(superblock, bytes(4096))
            self.refused("make", f"aio:{self.device}", says="has content")
        self.done("make", self.device, "--overwrite", "--capacity", "64M")
        self.assertEqual(self.device.stat().st_size, 64 << 20)
        self.fails("get", self.device, "key", says="'key'")
        self.clean()

    def test_devices_of_several_files(self):
        parts = [self.folder / "a", self.folder / "b"]
        stripe = f"stripe:[{parts[0]},{parts[1]}]?unit=64K"
        self.refused("make", stripe, "--capacity", "16M", says=[str(parts[0]), "no such file"])
        for part in parts:
            with open(part, "wb") as file:
                file.truncate(8 << 20)
        self.done("make", stripe)
        self.device = stripe
        self.put("key", b"x" * 200_000)
        self.assertEqual(self.get("key"), b"x" * 200_000)
        self.clean()
        self.refused("make", stripe, says="has content")
        self.done("make", "memory:64M")

    def test_devices_that_are_none(self):
        self.refused("make", "/dev/no-such-device", "--capacity", "16M", says="/dev/no-such-device")
        self.refused("make", self.folder, says="directory")
        self.refused("make", "/dev/null", says="/dev/null")
        self.refused("make", self.folder / "no" / "file", "--capacity", "16M", says="no/file")
        self.refused("make", "nvme:/x", says="'nvme:'")


class Keys(Case):
    def setUp(self):
        super().setUp()
        self.make()

    def test_values_are_any_bytes(self):
        every = bytes(range(256)) * 10
        for value in (b"", b"\n", every, os.urandom(262144)):
            version = self.put("key", value)
            self.assertEqual(self.get("key"), value)
            self.assertEqual(int(self.done("get", "--version", self.device, "key")), version)
        file = self.folder / "value"
        file.write_bytes(every)
        self.done("put", self.device, "of a file", "--file", file)
        self.assertEqual(self.get("of a file"), every)
        self.done("put", self.device, "word", "value\n")
        self.assertEqual(self.get("word"), b"value\n")
        self.done("put", "--", self.device, "-key", "--value")
        self.assertEqual(self.get("-key"), b"--value")
        self.clean()

    def test_keys_are_any_bytes_of_a_word(self):
        for key in (b"\xff\xfe", b"a\nb", b"\\x", b"k" * 65536):
            self.done("put", self.device, key, "v")
            self.assertEqual(self.get(key), b"v")
        self.fails("get", self.device, "a\nb\\", says="'a\\x0ab\\x5c'")
        self.fails("get", self.device, "k" * 1000, says="'" + "k" * 60 + "...'")

    def test_conditions(self):
        self.fails("put", self.device, "key", "1", "--if-present", says="no key 'key'")
        self.fails("put", self.device, "key", "1", "--if-version", "1", says="no key 'key'")
        version = self.put("key", b"1", "--if-absent")
        self.fails("put", self.device, "key", "2", "--if-absent", says=[f"version {version}", "nothing was done"])
        self.fails("put", self.device, "key", "2", "--if-version", str(version + 1), says=f"version {version}")
        self.assertEqual(self.get("key"), b"1")
        self.assertGreater(self.put("key", b"2", "--if-version", str(version)), version)
        self.put("key", b"3", "--if-present")
        self.assertEqual(self.get("key"), b"3")

    def test_what_expires_goes(self):
        self.put("long", b"v", "--expires", "1000")
        self.put("short", b"v", "--expires", "1")
        self.assertEqual(self.get("long"), b"v")
        until = time.monotonic() + 30
        while spillway("kv", "get", self.device, "short").status == 0 and time.monotonic() < until:
            time.sleep(0.1)
        self.fails("get", self.device, "short", says="no key 'short'")

    def test_deleted_keys_are_gone(self):
        for key in ("a", "b", "c"):
            self.put(key, b"v")
        self.assertEqual(self.done("delete", self.device, "a"), b"")
        self.fails("get", self.device, "a", says="no key 'a'")
        ended = spillway("kv", "delete", self.device, "a", "b", "d", "c")
        self.assertEqual((ended.status, ended.err), (1, "spillway: there is no key 'a'\nspillway: there is no key 'd'\n"))
        for key in ("b", "c"):
            self.fails("get", self.device, key)
        self.clean()

    def test_what_is_no_key_or_value_is_refused(self):
        self.put("key", b"value")
        for words in (["get"], ["delete"], ["put"]):
            more = ["v"] if words == ["put"] else []
            self.refused(*words, self.device, "", *more, says=["key of 0 bytes", "65536"])
            self.refused(*words, self.device, "k" * 65537, *more, says=["65537", "65536"])
        self.refused("delete", self.device, "key", "", says="key of 0 bytes")
        self.refused("put", self.device, "key", "-", give=bytes(262145), says=["standard input", "262144"])
        big = self.folder / "big"
        big.write_bytes(bytes(262145))
        self.refused("put", self.device, "key", "--file", big, says=[str(big), "262144"])
        self.refused("put", self.device, "key", "--file", self.folder / "none", says="none': No such file")
        self.refused("put", self.device, "key", "--file", self.folder, says="directory")
        self.assertEqual(self.get("key"), b"value")
        self.clean()

    def test_output_that_cannot_be_written_is_an_error(self):
        self.put("key", b"x" * 100_000)
        with open("/dev/full", "w") as full:
            self.assertEqual(spillway("kv", "get", self.device, "key", stdout=full).status, 1)


class Devices(Case):
    """What is no store, or not usable: said in one line, by every subcommand, and left as it is."""

    def every(self, check, **keywords):
        before = self.device.read_bytes() if self.device.is_file() else None
        for words in (["get", self.device, "k"], ["put", self.device, "k", "v"], ["delete", self.device, "k"],
                      ["list", self.device], ["dump", self.device, "-"], ["load", self.device, "/dev/null"],
                      ["stats", self.device], ["compact", self.device], ["check", self.device]):
            check(*words, **keywords)
        if before is not None:
            self.assertTrue(before == self.device.read_bytes(), "as it was")

    def superblocks(self, change):
        for at in SUPERBLOCKS:
            block = bytearray(self.device.read_bytes()[at:at + SUPERBLOCK_BYTES])
            change(block)
            self.edit(at, block)

    def test_no_store(self):
        self.every(self.refused, says=[str(self.device), "no such file"])
        self.assertFalse(self.device.exists())
        self.device.touch()
        self.every(self.refused, says="holds nothing")
        self.device.write_bytes(b"mine" * 5000)
        self.every(self.refused, says="holds no store")
        self.device.write_bytes(bytes(2 << 20))
        self.every(self.refused, says="holds no store")
        self.refused("stats", self.folder, says="directory")
        self.refused("stats", "memory:64M", says="holds no store")
        self.refused("stats", "fly:x", says="'fly:'")

    def test_superblocks(self):
        self.make()
        self.put("key", b"value")
        whole = self.device.read_bytes()

        def wrong_magic(block):
            block[0] ^= 1

        def other_order(block):
            block[8:12] = block[11:7:-1]

        def damaged(block):
            block[100] ^= 1

        self.superblocks(wrong_magic)
        self.every(self.refused, says="holds no store")
        self.device.write_bytes(whole)
        self.superblocks(other_order)
        self.every(self.refused, says="byte order")
        self.device.write_bytes(whole)
        self.superblocks(damaged)
        self.every(self.fails, says="damaged superblock")
        self.device.write_bytes(whole)
        for at in SUPERBLOCKS:  # one is enough
            self.flip(at + 100)
            self.assertEqual(self.get("key"), b"value")
            self.flip(at + 100)
        self.clean()

    def test_a_newer_version(self):
        self.make()
        library = ctypes.CDLL(ctypes.util.find_library("xxhash"))
        library.XXH3_64bits.restype = ctypes.c_uint64
        library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

        def checked(block):
            block[-8:] = struct.pack("<Q", library.XXH3_64bits(bytes(block[:-8]), len(block) - 8))

        def same(block):
            before = bytes(block)
            checked(block)
            self.assertEqual(before, bytes(block))

        def newer(block):
            block[12:16] = struct.pack("<I", struct.unpack("<I", block[12:16])[0] + 1)
            checked(block)

        def more_features(block):
            block[16 + 7] = 0x80
            checked(block)

        self.superblocks(same)
        whole = self.device.read_bytes()
        self.superblocks(newer)
        self.every(self.refused, says="newer format")
        self.device.write_bytes(whole)
        self.superblocks(more_features)
        self.every(self.refused, says="newer format")

    def test_a_device_that_shrank(self):
        self.make()
        self.put("key", b"value")
        os.truncate(self.device, 10 << 20)
        self.every(self.fails, says=["smaller than the store", "as large as it was"])
        os.truncate(self.device, 16 << 20)
        self.assertEqual(self.get("key"), b"value")
        os.truncate(self.device, 20 << 20)  # larger is well
        self.assertEqual(self.get("key"), b"value")

    def test_a_medium_that_may_not_be_written(self):
        self.make()
        self.put("key", b"value")
        os.chmod(self.folder, 0o755)
        os.chmod(self.device, 0o444)
        program = self.folder / "spillway"
        shutil.copy(SPILLWAY, program)
        keywords = {"program": program, "preexec_fn": become_nobody} if os.getuid() == 0 else {}
        self.every(self.refused, says="permission denied", **keywords)
        self.refused("make", self.device, "--overwrite", says="permission denied", **keywords)
        os.chmod(self.device, 0o600)
        self.assertEqual(self.get("key"), b"value")

    def test_two_processes(self):
        self.make()
        self.put("key", b"value")
        for turn, ends_by_kill in enumerate((False, True, True)):
            with self.loading(b"other", b"of turn %d" % turn) as other:
                for words in (["get", self.device, "k"], ["put", self.device, "k", "v"], ["stats", self.device],
                              ["check", self.device], ["make", self.device, "--overwrite"],
                              ["make", self.device, "--overwrite", "--capacity", "64M"]):
                    self.fails(*words, says=["in use by another process", str(self.device)])
                if ends_by_kill:
                    other.kill()
                    other.wait()
                else:
                    self.assertEqual(other.communicate(b".1\n")[0], b"1 records were loaded\n")
            self.assertEqual(self.get("key"), b"value")
            self.assertEqual(self.get("other"), b"of turn %d" % turn)
        self.assertEqual(self.device.stat().st_size, 16 << 20)
        self.clean()

    def test_a_store_that_is_full(self):
        self.make("9M", "--segment", "1M")
        records = [(b"key%d" % i, b"%d" % i + bytes(100_000)) for i in range(200)]
        ended = spillway("kv", "load", self.device, "-", give=dump_of(*records))
        self.assertEqual((ended.status, ended.out), (1, b""), ended)
        self.assertRegex(ended.err, r"\Aspillway: [^\n]* is full; [^\n]*; \d+ records were loaded\n\Z")
        loaded = int(ended.err.split()[-4])
        self.assertGreater(loaded, 30)
        self.fails("put", self.device, "more", "-", give=bytes(200_000), says="full")
        there = [i for i, (key, value) in enumerate(records[:100])
                 if spillway("kv", "get", self.device, key).out == value]
        self.assertEqual(len(there), loaded)
        self.clean()

    def test_media_that_fail(self):
        self.make()
        self.put("key", b"value")
        self.fails("get", f"fault:read_eio=%1:[{self.device}]", "key", says="input/output error")
        for faults in ("write_eio=%1", "flush_eio=%1", "write_eio=@2"):
            ended = spillway("kv", "put", f"fault:{faults}:[{self.device}]", "other", "value")
            self.assertEqual((ended.status, ended.out), (1, b""), ended)
            self.assertRegex(ended.err, r"\A(spillway: [^\n]* input/output error\n){1,2}\Z")  # the store's own, and the call's
        self.assertEqual(self.get("key"), b"value")
        self.fails("make", f"fault:write_eio=@2:[{self.device}]", "--overwrite", says="input/output error")


class Load(Case):
    def setUp(self):
        super().setUp()
        self.make("64M")

    def test_what_is_loaded_is_there(self):
        values = {b"%d" % i: os.urandom(i % 3000) for i in range(3000)}
        for durability in ("none", "batch", "sync"):
            dump = dump_of(*((durability.encode() + key, value) for key, value in values.items()))
            file = self.folder / "dump"
            file.write_bytes(dump)
            self.assertEqual(self.done("load", self.device, file, "--durability", durability), b"3000 records were loaded\n")
        for key in (b"none0", b"none2999", b"batch17", b"sync1234"):
            self.assertEqual(self.get(key), values[key.lstrip(b"nonebatchsy")])
        self.assertEqual(json.loads(self.done("stats", "--json", self.device))["keys"]["count"], 9000)
        self.clean()

    def test_records_are_kept_as_they_are(self):
        self.load((b"a\n->\x00", bytes(range(256))), (b"flags", b"", 7), (b"old", b"v", 0, 1), (b"new", b"v", 0, 1 << 47))
        self.fails("get", self.device, "old")
        self.assertEqual(self.get("new"), b"v")
        self.assertEqual(self.get("flags"), b"")
        self.assertEqual(self.load(), b"0 records were loaded\n")

    def test_of_a_key_that_is_there_twice_the_last_one_counts(self):
        self.load(*((b"key%d" % (i % 3), b"%d" % i) for i in range(1000)))
        self.assertEqual([self.get(f"key{i}") for i in range(3)], [b"999", b"997", b"998"])

    def test_what_is_no_dump(self):
        self.put("key", b"value")
        whole = dump_of(*((b"key%d" % i, b"v") for i in range(100)))
        for text, offset, loaded, says in (
                (b"", 0, 0, "nothing is in it"),
                (b"nonsense", 0, 0, "not a dump"),
                (b"spillway-dump 2\n", 14, 0, "newer version"),
                (whole[:-1], len(whole) - 1, 100, "cut short"),
                (whole[:-5], len(whole) - 5, 100, "cut short"),
                (whole[:1000], 1000, None, "cut short"),
                (whole + b"\n", len(whole), 100, "after the last line"),
                (whole.replace(b"key50->v", b"key50->xx"), whole.index(b"key50->v") + 8, 50, "newline"),
                (whole.replace(b".100", b".101"), len(whole) - 1, 100, "101 records, but there are 100"),
                (dump_of((b"one", b"1"), (b"big", bytes(300_000))), None, 1, "300000 bytes; this store takes")):
            for name in ("-", self.folder / "dump"):
                (self.folder / "dump").write_bytes(text)
                shown = "standard input" if name == "-" else str(name)
                places = [f"byte {offset}:"] if offset is not None else []
                counts = [f"{loaded} records were loaded"] if loaded is not None else []
                self.refused("load", self.device, name, give=text if name == "-" else b"",
                             says=[shown, says, *places, *counts])
        self.assertEqual(self.get("key"), b"value")
        self.assertEqual(self.get("key49"), b"v")
        self.refused("load", self.device, self.folder / "none", says="none': No such file")
        self.refused("load", self.device, self.folder, says="directory")
        self.clean()

    def test_what_was_read_is_put_before_more_comes(self):
        with self.loading(b"key", b"the value of a slow writer") as load:
            load.kill()
        self.assertEqual(self.get("key"), b"the value of a slow writer")
        self.clean()

    def test_progress_is_shown_on_a_terminal_only(self):
        def load(stderr):
            with subprocess.Popen([SPILLWAY, "kv", "load", self.device, "-"], env=CLEAN, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=stderr) as running:
                dump = dump_of(*((b"%d" % i, bytes(1000)) for i in range(100)))
                for at in range(0, len(dump), 30_000):
                    running.stdin.write(dump[at:at + 30_000])
                    running.stdin.flush()
                    time.sleep(0.25)
                out = running.communicate()
            self.assertEqual(out[0], b"100 records were loaded\n")
            return out[1]

        ours, theirs = pty.openpty()
        try:
            load(theirs)
            shown = os.read(ours, 10_000)
        finally:
            os.close(ours)
            os.close(theirs)
        self.assertRegex(shown, rb"load: [0-9.]+ \w+, [0-9.]+ \w+ a second")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)
        self.assertEqual(load(subprocess.PIPE), b"")


class List(Case):
    def setUp(self):
        super().setUp()
        self.make("64M")

    def listed(self, *arguments):
        return self.done("list", self.device, *arguments)

    def test_keys_are_printed_once_each(self):
        self.assertEqual(self.listed(), b"")
        self.load(*((b"key%d" % i, bytes(i)) for i in range(1000)))
        self.load(*((b"key%d" % i, b"new") for i in range(0, 1000, 2)))
        self.done("delete", self.device, *(f"key{i}" for i in range(0, 1000, 10)))
        left = {b"key%d" % i for i in range(1000) if i % 10 != 0}
        lines = self.listed().splitlines()
        self.assertEqual(len(lines), len(left))
        self.assertEqual(set(lines), left)
        self.assertEqual(set(self.listed("--prefix", "key99").splitlines()),
                         {key for key in left if key.startswith(b"key99")})
        some = self.listed("--count", "7").splitlines()
        self.assertEqual(len(set(some)), 7)
        self.assertLess(set(some), left)
        self.refused("list", self.device, "--count", "0", says=["--count", "'0'"])
        self.refused("list", self.device, "--count", "many", says=["--count", "'many'"])

    def test_lines_stay_lines(self):
        keys = [b"a\nb", b"tab\t", b"back\\slash", "\u00fc".encode(), b"\xff\x7f", b"\x00"]
        self.load(*((key, b"value of\t" + key) for key in keys))
        shown = {b"a\\x0ab", b"tab\\x09", b"back\\x5cslash", "\u00fc".encode(), b"\xff\\x7f", b"\\x00"}
        self.assertEqual(set(self.listed().splitlines()), shown)
        lines = [line.split(b"\t") for line in self.listed("--values").splitlines()]
        self.assertEqual({line[0] for line in lines}, shown)
        for key, value in lines:
            self.assertEqual(value, b"value of\\x09" + key)
        for line in lines:  # what is shown can be read back
            self.assertIn(re.sub(rb"\\x(..)", lambda match: bytes.fromhex(match[1].decode()), line[0]), keys)
        raw = self.listed("--null")
        self.assertTrue(raw.endswith(b"\0"))
        for key in keys:
            self.assertIn(key + b"\0", raw)
        self.assertIn(b"back\\slash\0value of\tback\\slash\0", self.listed("--null", "--values"))

    def test_what_has_expired_is_not_listed(self):
        self.load((b"old", b"v", 0, 1), (b"new", b"v", 0, 1 << 47))
        self.assertEqual(self.listed(), b"new\n")

    def test_output_that_cannot_be_written_is_an_error(self):
        self.load(*((b"key%d" % i, b"") for i in range(10_000)))
        for words in (["list", self.device], ["dump", self.device, "-"]):
            with open("/dev/full", "w") as full:
                ended = spillway("kv", *words, stdout=full)
            self.assertEqual(ended.status, 1)
            self.assertIn("standard output", ended.err)


class Dump(Case):
    def test_what_is_dumped_is_what_is_loaded(self):
        self.make("64M")
        records = {b"key%d" % i: (os.urandom(i), i, 0 if i % 2 else 1 << 47) for i in range(2000)}
        records[bytes(range(256))] = (b"\n.1\n", 0, 0)
        self.load(*((key, *rest) for key, rest in records.items()))
        self.put("removed", b"v")
        self.done("delete", self.device, "removed")
        file = self.folder / "dump"
        self.assertEqual(self.done("dump", self.device, file), b"")
        dump = file.read_bytes()
        self.assertTrue(dump.startswith(b"spillway-dump 1\n") and dump.endswith(b"\n.2001\n"))
        self.assertEqual(len(dump), len(dump_of(*((key, *rest) for key, rest in records.items()))))
        for key, (value, flags, expires_ms) in records.items():
            self.assertIn(b"\n+%d,%d,%d,%d:%b->%b\n" % (len(key), len(value), flags, expires_ms, key, value), dump)
        other = self.folder / "other"
        self.done("make", other, "--capacity", "64M")
        self.assertEqual(self.done("load", other, "-", give=dump), b"2001 records were loaded\n")
        again = self.done("dump", other, "-")
        self.assertEqual(len(again), len(dump))
        self.assertEqual(sorted(again.splitlines()), sorted(dump.splitlines()))

    def test_nothing_is_written_over(self):
        self.make()
        self.put("key", b"value")
        self.refused("dump", self.device, self.device, says=["is there already", str(self.device)])
        self.refused("dump", self.device, self.folder, says="is there already")
        self.refused("dump", self.device, self.folder / "no" / "dump", says="No such file")
        self.refused("dump", self.folder / "none", self.folder / "dump", says="no such file")
        self.assertFalse((self.folder / "dump").exists())
        self.assertEqual(self.get("key"), b"value")
        # One that cannot be whole is not left.
        ended = spillway("kv", "dump", f"fault:read_eio=@9+:[{self.device}]", self.folder / "dump")
        self.assertEqual(ended.status, 1, ended)
        self.assertFalse((self.folder / "dump").exists())


class Compact(Case):
    def test_room_of_what_is_dead_comes_back(self):
        self.make("64M", "--segment", "1M")
        free = []
        for turn in range(3):
            self.load(*((b"key%d" % i, b"%d " % turn + bytes(4000)) for i in range(3000)))
        self.done("delete", self.device, *(f"key{i}" for i in range(100, 3000)))
        free.append(json.loads(self.done("stats", self.device, "--json"))["segments"]["free"])
        out = self.done("compact", self.device)
        self.assertRegex(out, rb"\A[0-9.]+ MiB are free, [^\n]*; before [0-9.]+ MiB\n\Z")
        free.append(json.loads(self.done("stats", self.device, "--json"))["segments"]["free"])
        self.assertGreater(free[1], free[0] + 20)
        for i in (0, 50, 99):
            self.assertEqual(self.get(f"key{i}"), b"2 " + bytes(4000))
        self.fails("get", self.device, "key100", says="no key 'key100'")
        self.clean()


class Stats(Case):
    def test_counts(self):
        self.make("64M")
        self.load(*((b"%d" % i, bytes(1000)) for i in range(1000)))
        self.done("delete", self.device, "0", "1")
        stats = json.loads(self.done("stats", self.device, "--json"))
        self.assertEqual(set(stats), {"store", "keys", "segments", "room", "index", "recovery"})
        self.assertEqual(stats["keys"]["count"], 998)
        self.assertGreaterEqual(stats["room"]["live_bytes"], 998 * 1536)
        self.assertLess(stats["room"]["live_bytes"], 1100 * 1536)
        self.assertEqual(stats["segments"]["all"], 63)
        text = self.done("stats", self.device).decode()
        for section, facts in stats.items():
            self.assertIn(f"\n{section}\n", "\n" + text)
            for name in facts:
                self.assertRegex(text, rf"(?m)^  {name.removesuffix('_bytes').replace('_', ' ')} +\S")


class Check(Case):
    def test_every_flipped_byte_is_found(self):
        self.make("16M", "--segment", "1M")
        self.load(*((b"the key %d" % i, b"the value %d" % i + bytes(500)) for i in range(3000)))
        self.clean()
        content = self.device.read_bytes()
        footer = content.index(b"spkv end")
        segment = footer >> 20 << 20
        entry_count, = struct.unpack("<I", content[footer + 32:footer + 36])
        end = segment + (1 << 20)
        summary = end - (entry_count * 32 + end - footer + 511) // 512 * 512
        record = content.index(b"the key", segment)
        for at, says in ((record + 4, "the record is damaged"), (content.index(b"the value", segment) + 4, "the record is damaged"),
                         (segment + 20, "the header is damaged"), (summary + 1, "the summary is damaged"),
                         (footer + 40, "the footer is damaged"), (100, "damaged superblock"),
                         (SUPERBLOCKS[1] + 100, "damaged superblock")):
            self.flip(at)
            before = self.device.read_bytes()
            for words in (["check"], ["kv", "check"]):
                ended = spillway(*words, self.device)
                self.assertEqual((ended.status, ended.err), (1, ""), ended)
                lines = ended.out.decode().splitlines()
                self.assertEqual(len(lines), 2, ended)
                self.assertIn(says, lines[0])
                self.assertIn("damaged: ", lines[1])
            self.assertTrue(before == self.device.read_bytes(), "nothing was written")
            self.flip(at)
        self.clean()

    def test_a_store_that_was_not_closed(self):
        self.make("16M", "--segment", "1M")
        with self.loading(b"key", b"a value") as load:
            load.kill()
        self.clean()
        self.assertIn(b" without a summary), 1 records", spillway("check", self.device).out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
