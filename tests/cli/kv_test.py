#!/usr/bin/env python3
"""`spillway kv` as a user meets it: words, devices, single keys.  kv_test.py SPILLWAY [unittest arguments]

kv_case.py says how what is wrong ends.
"""
import ctypes
import ctypes.util
import json
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import sys
import time
import unittest

from kv_case import ONE_LINE, SPILLWAY, SUPERBLOCKS, SUPERBLOCK_BYTES, Case, dump_of, spillway

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import become_nobody  # noqa: E402


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
        self.ends(2, "check", says="usage: spillway check DEVICE")
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
    def test_a_cache(self):
        self.assertRegex(self.make("16M", "--cache"), rb"\Amade a cache of 15 segments")
        self.done("put", self.device, "key", "value")
        self.assertEqual(self.done("get", self.device, "key"), b"value")
        self.assertEqual(json.loads(self.done("stats", "--json", self.device))["collected"]["dropped_records"], 0)
        self.refused("check", self.device, says="is a cache")

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
        self.refused("make", self.device, "--capacity", "100", says="too little")
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
        self.device.write_bytes(bytes(16 << 20))  # zeros are nothing, also where they were written
        self.done("make", self.device)
        self.done("make", self.device, "--overwrite", "--capacity", "64M")
        self.assertEqual(self.device.stat().st_size, 64 << 20)
        self.fails("get", self.device, "key", says="'key'")
        self.clean()

    def test_content_at_both_ends_of_a_block_device(self):
        """btrfs begins at 64 KiB; copies of partition tables and what makes a device one of a RAID lie at the end."""
        with open(self.device, "wb") as file:
            file.truncate(16 << 20)
        try:
            loop = subprocess.run(["losetup", "--find", "--show", self.device], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, check=True).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("needs a loop device")
        self.addCleanup(subprocess.run, ["losetup", "--detach", loop], check=True)
        for at in (0, 64 << 10, (1 << 20) - 4, 15 << 20, (16 << 20) - 4):
            for data, check in ((b"mine", self.refused), (bytes(4), self.done)):
                with open(loop, "r+b") as file:
                    file.seek(at)
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                check("make", loop, **({"says": [loop, "has content"]} if data == b"mine" else {}))
                with open(loop, "r+b") as file:
                    file.seek(at)
                    if data == b"mine":
                        self.assertEqual(file.read(4), data)
                    else:
                        file.seek(0)
                        file.write(bytes(16 << 20))
                        file.flush()
                        os.fsync(file.fileno())

    def test_devices_of_several_files(self):
        parts = [self.folder / "a", self.folder / "b"]
        stripe = f"stripe:[{parts[0]},{parts[1]}]?unit=64K"
        self.refused("make", stripe, says="has no size yet")
        self.fails("make", stripe, "--capacity", "1M", says="too small")
        self.assertEqual(list(self.folder.iterdir()), [])
        self.done("make", stripe, "--capacity", "20M")
        self.assertEqual([part.stat().st_size for part in parts], [10 << 20] * 2)
        for part in parts:
            with open(part, "wb") as file:
                file.truncate(8 << 20)
        self.done("make", stripe)
        self.device = stripe
        self.put("key", b"x" * 200_000)
        self.assertEqual(self.get("key"), b"x" * 200_000)
        self.clean()
        self.refused("make", stripe, says="has content")
        for other in (stripe.replace("64K", "128K"), str(parts[0])):
            for words in (["put", other, "key", "value"], ["list", other], ["check", other]):
                self.refused(*words, says=["it was made on a stripe of 2 devices in units of 64K", "is opened on"])
        self.done("make", "memory:64M")

    def test_makes_at_the_same_time(self):
        for is_there in (False, True) * 5:
            if is_there:
                self.device.touch()
            processes = [subprocess.Popen([SPILLWAY, "kv", "make", self.device, "--capacity", "16M"], stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True) for _ in range(3)]
            errors = [process.communicate()[1] for process in processes]
            self.assertEqual(sorted(process.returncode for process in processes), [0, 2, 2], errors)
            for process, error in zip(processes, errors):
                self.assertIn("has content" if process.returncode else "", error)
            self.clean()
            self.device.unlink()

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

    def test_flags_and_the_time_of_expiry_are_kept(self):
        begin = time.time()
        self.done("put", self.device, "key", "value", "--flags", "4294967295", "--expires", "1000")
        dump = self.done("dump", self.device, "-")
        record = re.search(rb"\n\+3,5,4294967295,(\d+):key->value\n", dump)
        self.assertIsNotNone(record, dump)
        self.assertGreaterEqual(int(record[1]), int((begin + 1000) * 1000))
        self.assertLessEqual(int(record[1]), (time.time() + 1000) * 1000)

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
        big = self.folder / "big"
        big.touch()
        os.truncate(big, (4 << 30) + 1)
        self.refused("put", self.device, "key", "--file", big, says=[str(big), "4294967296"])
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

    def every(self, check, without=(), **keywords):
        before = self.device.read_bytes() if self.device.is_file() else None
        for words in (["get", self.device, "k"], ["put", self.device, "k", "v"], ["delete", self.device, "k"],
                      ["list", self.device], ["dump", self.device, "-"], ["load", self.device, "/dev/null"],
                      ["stats", self.device], ["compact", self.device], ["check", self.device]):
            if words[0] not in without:
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
        self.every(self.refused, says="holds no store")
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
            for words, says in ((("get", self.device, "key"), "is written anew when"),
                                (("put", self.device, "key", "value"), "was written anew from the other one")):
                ended = spillway("kv", *words)
                self.assertEqual(ended.status, 0, ended)
                self.assertRegex(ended.err, ONE_LINE)
                self.assertIn(f"superblock at byte {at} was damaged, and {says}", ended.err)
            self.clean()
            self.assertEqual(self.get("key"), b"value")

    def test_a_damaged_record_is_left_out(self):
        self.make("64M")  # every put leaves a segment: in 16 MiB the collector may come upon the damage, and say so
        for number in range(20):
            self.put(f"key{number}", b"value%d" % number)
        self.flip(self.device.read_bytes().index(b"value7") + 1)
        ended = spillway("kv", "list", self.device)
        self.assertEqual((ended.status, len(ended.out.splitlines())), (1, 19), ended)
        self.assertRegex(ended.err, r"\Aspillway: [^\n]*has a damaged record at byte \d+\nspillway: kv list: [^\n]*left out: 1; [^\n]*\n\Z")
        ended = spillway("kv", "dump", self.device, self.folder / "dump")
        self.assertEqual((ended.status, len(ended.err.splitlines())), (1, 2), ended)
        other = self.folder / "other"
        self.done("make", other, "--capacity", "16M")
        self.assertEqual(self.done("load", other, self.folder / "dump"), b"19 records were loaded\n")
        self.fails("get", self.device, "key7", says="damaged record")
        self.put("key7", b"again")
        self.assertEqual(len(self.done("list", self.device).splitlines()), 20)

    def test_a_value_with_a_damaged_piece_is_left_out(self):
        self.make()
        large = b"".join(b"%015d\n" % number for number in range(100_000))
        self.put("large", large)
        for number in range(70):
            self.put(f"key{number}", b"value%d" % number)
        self.put("whole", large[::-1])
        self.flip(self.device.read_bytes().index(b"%015d\n" % 90_000))
        said = r"\Aspillway: [^\n]*damaged record[^\n]*, in the value of 'large'; delete that key[^\n]*\nspillway: kv %s: [^\n]*left out: 1; [^\n]*\n\Z"
        ended = spillway("kv", "list", self.device, "--values")
        self.assertEqual((ended.status, len(ended.out.replace(rb"\n", b"").splitlines())), (1, 72), ended.err)
        self.assertRegex(ended.err, said % "list")
        ended = spillway("kv", "dump", self.device, self.folder / "dump")
        self.assertEqual(ended.status, 1)
        self.assertRegex(ended.err, said % "dump")
        other = self.folder / "other"
        for segment in ("1M", "4M"):  # there it goes into one record
            self.done("make", other, "--overwrite", "--capacity", "64M", "--segment", segment)
            self.assertEqual(self.done("load", other, self.folder / "dump"), b"71 records were loaded\n")
            self.assertEqual(self.done("get", other, "whole"), large[::-1])
            self.assertEqual(spillway("kv", "get", other, "large").status, 1)

    def test_a_void_record_is_not_loaded(self):
        self.make()
        dump = b"spillway-dump 1\n" + b"".join(
            b"+5,1000000,0,0:large->" + byte * 1_000_000 + end for byte, end in ((b"1", b"\n"), (b"2", b"!\n"), (b"3", b"!\n")))
        ended = spillway("kv", "load", self.device, "-", give=dump + b"+5,1,0,0:small->1\n+5,1,0,0:small->2!\n.2\n")
        self.assertEqual((ended.status, ended.out), (0, b"2 records were loaded\n"), ended)
        self.assertEqual(self.get("large"), b"1" * 1_000_000)
        self.assertEqual(self.get("small"), b"1")

    def test_what_was_lost_is_said_by_list_and_dump(self):
        self.make()
        self.put("key", b"value")
        os.truncate(self.device, 10 << 20)
        os.truncate(self.device, 16 << 20)
        for words in (["list", self.device], ["dump", self.device, "-"]):
            ended = spillway("kv", *words)
            self.assertEqual(ended.status, 1, ended)
            self.assertRegex(ended.err, r"damaged at both ends: [^\n]*\nspillway: kv [^\n]*what was lost is left out\n\Z")

    def test_a_compaction_that_cannot_go_on(self):
        self.make()
        for turn in range(2):
            self.load(*((b"key%d" % number, b"%d" % turn * 40_000) for number in range(100)))
        self.fails("compact", f"fault:write_enospc=@1+:[{self.device}]", says="cannot be collected: no space left on device; make room where its file is")
        self.done("compact", self.device)
        self.clean()

    def test_the_limit_of_files_is_for_what_writes(self):
        self.make()
        self.put("key", b"value")
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))}
        self.every(self.refused, without=["check", "get", "list", "stats", "dump"], says="raise ulimit -f", **limit)
        self.assertEqual(self.done("get", self.device, "key", **limit), b"value")
        self.assertEqual(self.done("list", self.device, **limit), b"key\n")
        self.assertEqual(spillway("check", self.device, **limit).status, 0)

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

    def test_a_link_to_nothing_is_no_file(self):
        os.symlink(self.folder / "nothing", self.device)
        self.refused("make", self.device, "--capacity", "16M", says=["is a link to a file that is not there", "remove the link"])
        self.assertFalse((self.folder / "nothing").exists())

    def test_a_file_system_that_is_full(self):
        self.make()
        for words in (["put", "key", "value"], ["delete", "key"]):
            self.put("key", b"old")
            self.fails(words[0], f"fault:write_enospc=@1+:[{self.device}]", *words[1:], says=["no space left", "make room"])

    def test_a_device_that_shrank(self):
        self.make()
        self.put("key", b"value")
        os.truncate(self.device, 10 << 20)
        self.every(self.fails, says=["smaller than the store", "as large as it was"])
        os.truncate(self.device, 16 << 20)
        for _ in range(3):
            ended = spillway("kv", "get", self.device, "key")
            self.assertEqual((ended.status, ended.out), (0, b"value"), ended)
            said = r"\Aspillway: [^\n]* 6 segments are damaged at both ends: [^\n]* dump what is there [^\n]*\n\Z"
            self.assertRegex(ended.err, said)
            ended = spillway("kv", "put", self.device, "key", "-", give=b"value")
            self.assertEqual(ended.status, 0, ended)
            self.assertRegex(ended.err, said)
        self.assertEqual(spillway("check", self.device).status, 1)
        os.truncate(self.device, 20 << 20)  # larger is well
        self.assertEqual(spillway("kv", "get", self.device, "key").out, b"value")

    def test_a_medium_that_may_not_be_written(self):
        self.make()
        self.put("key", b"value")
        os.chmod(self.folder, 0o755)
        os.chmod(self.device, 0o444)
        program = self.folder / "spillway"
        shutil.copy(SPILLWAY, program)
        keywords = {"program": program, "preexec_fn": become_nobody} if os.getuid() == 0 else {}
        self.every(self.refused, without=["check", "get", "list", "stats", "dump"], says="permission denied", **keywords)
        self.assertEqual(spillway("kv", "get", self.device, "key", **keywords).out, b"value")
        self.assertEqual(spillway("kv", "list", self.device, "--values", **keywords).out, b"key\tvalue\n")
        self.assertEqual(spillway("kv", "dump", self.device, "-", **keywords).out, dump_of((b"key", b"value")))
        self.assertRegex(spillway("kv", "stats", self.device, **keywords).out.decode(), r"(?m)^  entries +1$")
        ended = spillway("check", self.device, **keywords)
        self.assertEqual((ended.status, ended.err), (0, ""), ended)
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
                    self.fails(*words, says=["in use, here or in another process", str(self.device)])
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
        self.assertGreater(loaded, 15)  # of 8 segments those of the collector and the stream are not filled
        self.fails("put", self.device, "more", "-", give=bytes(200_000), says="full")
        there = [i for i, (key, value) in enumerate(records[:100])
                 if spillway("kv", "get", self.device, key).out == value]
        self.assertEqual(len(there), loaded)
        self.clean()

    def test_media_that_fail(self):
        self.make()
        self.put("key", b"value")
        self.fails("get", f"fault:read_eio=%1:[{self.device}]", "key", says="input/output error")
        for faults in ("write_eio=%1", "flush_eio=%1", "write_eio=@2+"):
            ended = spillway("kv", "put", f"fault:{faults}:[{self.device}]", "other", "value")
            self.assertEqual((ended.status, ended.out), (1, b""), ended)
            self.assertRegex(ended.err, r"\Aspillway: [^\n]* input/output error\n\Z")
        self.assertEqual(self.get("key"), b"value")
        self.fails("make", f"fault:write_eio=@2:[{self.device}]", "--overwrite", says="input/output error")


if __name__ == "__main__":
    unittest.main(verbosity=2)
