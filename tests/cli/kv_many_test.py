#!/usr/bin/env python3
"""`spillway kv` for all keys of a store: load, list, dump, compact, stats, check.  kv_many_test.py SPILLWAY [unittest arguments]
"""
import errno
import fcntl
import json
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from kv_case import SPILLWAY, SUPERBLOCKS, Case, dump_of, spillway

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, filtering, sanitizer_of, shown_on_a_terminal  # noqa: E402


def without_folders():
    """For preexec_fn: no folder can be opened to be read or synced."""
    load, equal, any_bit, give = 0x20, 0x15, 0x45, 0x06  # classic BPF: load a word, compare, return
    openat, flags, allow, fail = 257, 32, 0x7FFF0000, 0x00050000
    return filtering((load, 0, 0, 0), (equal, 0, 3, openat), (load, 0, 0, flags), (any_bit, 0, 1, os.O_DIRECTORY),
                     (give, 0, 0, fail | errno.EIO), (give, 0, 0, allow))


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
        self.assertEqual(json.loads(self.done("stats", "--json", self.device))["index"]["entries"], 9000)
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

    def test_of_a_key_with_values_of_all_sizes_the_last_one_counts(self):
        small, long, large = b"small", bytes(200_000), bytes(range(250)) * 2000
        for count in (1, 3, 63, 64, 65, 300):  # together with others that are put at once, or not
            others = [(b"other%d" % i, b"v") for i in range(count)]
            for values in ((small, large, long), (large, long, small), (long, small, large)):
                self.load(*(record for value in values for record in ((b"key", value), *others)))
                self.assertEqual(self.get("key"), values[-1], count)
        self.clean()

    def test_what_is_no_dump(self):
        self.put("key", b"value")
        whole = dump_of(*((b"key%d" % i, b"v") for i in range(100)))
        large = dump_of((b"one", b"1"), (b"large", bytes(2_000_000)))
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
                (large[:-1000], len(large) - 1000, 1, "cut short"),
                (b"spillway-dump 1\n+3,4294967297,0,0:big->", 28, 0, "bytes of a value is more than 4294967296")):
            for name in ("-", self.folder / "dump"):
                (self.folder / "dump").write_bytes(text)
                shown = "standard input" if name == "-" else str(name)
                places = [f"byte {offset}:"] if offset is not None else []
                counts = [f"{loaded} records were loaded"] if loaded is not None else []
                self.refused("load", self.device, name, give=text if name == "-" else b"",
                             says=[shown, says, *places, *counts])
        self.assertEqual(self.get("key"), b"value")
        self.assertEqual(self.get("key49"), b"v")
        self.fails("get", self.device, "large", says="no key 'large'")
        self.refused("load", self.device, self.folder / "none", says="none': No such file")
        self.refused("load", self.device, self.folder, says="directory")
        self.clean()

    def interrupted(self, signal_number, device, *options):
        """The exit status and the line of a load of 100 records, to which the signal comes when it has read them."""
        records = [(b"%04d" % i, bytes(100)) for i in range(100)]
        load = subprocess.Popen([SPILLWAY, "kv", "load", device, "-", *options], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN)
        self.addCleanup(load.kill)
        load.stdin.write(dump_of(*records)[:-len(b".100\n")])
        load.stdin.flush()
        unread = bytearray(b"\1\0\0\0")
        while any(unread) and load.poll() is None:  # then it has been read, and waits for more once it has been put
            fcntl.ioctl(load.stdin, termios.FIONREAD, unread)
        load.send_signal(signal_number)
        said = load.communicate(timeout=HANG_SECONDS)[1]
        return load.returncode, said

    def test_one_that_is_interrupted_says_how_far_it_came(self):
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            ended = self.interrupted(signal_number, self.device)
            self.assertEqual(ended, (1, b"spillway: kv load: interrupted; 100 records were loaded\n"))
            self.assertEqual(len(self.done("list", self.device).splitlines()), 100)

    def test_one_that_is_interrupted_says_that_its_records_may_be_lost(self):
        # Three flushes: of the start, of the first segments' headers, of one more header when the first record is put.
        device = f"fault:flush_eio=@4+:[{self.device}]"
        status, said = self.interrupted(signal.SIGTERM, device, "--durability", "none")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, rb"^spillway: kv load: interrupted; store: [^\n]+ may lack the last writes: input/output error; "
                               rb"100 records were loaded\n$")

    def test_what_was_read_is_put_before_more_comes(self):
        with self.loading(b"key", b"the value of a slow writer") as load:
            load.kill()
        self.assertEqual(self.get("key"), b"the value of a slow writer")
        self.clean()

    def test_progress_is_shown_on_a_terminal_only(self):
        def load(stderr, kind="xterm"):
            with subprocess.Popen([SPILLWAY, "kv", "load", self.device, "-"], env={**CLEAN, "TERM": kind}, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=stderr) as running:
                dump = dump_of(*((b"%d" % i, bytes(1000)) for i in range(100)))
                for at in range(0, len(dump), 30_000):
                    running.stdin.write(dump[at:at + 30_000])
                    running.stdin.flush()
                    time.sleep(0.25)
                out = running.communicate()
            self.assertEqual(out[0], b"100 records were loaded\n")
            return out[1]

        shown = shown_on_a_terminal(load)
        self.assertRegex(shown, rb"load: [0-9.]+ \w+, [0-9.]+ \w+ a second")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)

        def load_in_a_narrow_one(terminal):
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
            load(terminal)

        lines = shown_on_a_terminal(load_in_a_narrow_one).split(b"\r\x1b[K")
        self.assertRegex(lines[1], rb"\Aload: [0-9.]+ \w+")
        self.assertLess(max(map(len, lines)), 20, "the next line would not take its place")
        self.assertEqual(load(subprocess.PIPE), b"")
        self.assertEqual(shown_on_a_terminal(lambda terminal: load(terminal, "dumb")), b"")


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
        for i in range(3):
            records[b"large%d" % i] = (os.urandom(1_500_000 + i), i, 0)
        self.load(*((key, *rest) for key, rest in records.items()))
        self.put("removed", b"v")
        self.done("delete", self.device, "removed")
        file = self.folder / "dump"
        self.assertEqual(self.done("dump", self.device, file), b"")
        dump = file.read_bytes()
        self.assertTrue(dump.startswith(b"spillway-dump 1\n") and dump.endswith(b"\n.2004\n"))
        self.assertEqual(len(dump), len(dump_of(*((key, *rest) for key, rest in records.items()))))
        for key, (value, flags, expires_ms) in records.items():
            self.assertIn(b"\n+%d,%d,%d,%d:%b->%b\n" % (len(key), len(value), flags, expires_ms, key, value), dump)
        other = self.folder / "other"
        self.done("make", other, "--capacity", "64M")
        self.assertEqual(self.done("load", other, "-", give=dump), b"2004 records were loaded\n")
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

    def test_one_whose_name_may_be_lost_is_not_left(self):
        self.make()
        output = self.folder / "dump"
        self.fails("dump", self.device, output, says=["cannot write", str(output), "Input/output error"], preexec_fn=without_folders())
        self.assertFalse(output.exists())

    def test_one_that_may_become_no_larger_is_not_left(self):
        self.make()
        self.load(*((b"key%d" % i, bytes(10_000)) for i in range(200)))
        output = self.folder / "dump"
        limit = (1 << 20, resource.RLIM_INFINITY)
        self.fails("dump", self.device, output, says=["cannot write", str(output), "File too large"],
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
        self.assertFalse(output.exists())

    def test_an_interrupted_dump_leaves_no_file(self):
        self.make()
        self.load(*[(b"key%d" % i, bytes(10_000)) for i in range(200)])
        output = self.folder / "dump"
        device = f"latency:us=20000,sleep=1:[{self.device}]"
        for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            dump = subprocess.Popen([SPILLWAY, "kv", "dump", device, output], env=CLEAN, stderr=subprocess.PIPE)
            until = time.monotonic() + 60
            while not output.exists() and time.monotonic() < until:
                time.sleep(0.01)
            self.assertTrue(output.exists())
            dump.send_signal(signal_number)
            dump.communicate(timeout=HANG_SECONDS)
            self.assertEqual(dump.returncode, -signal_number)
            self.assertFalse(output.exists())
        self.done("dump", self.device, output)
        self.assertTrue(output.exists())


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
        # Of what it does itself as much as it has come to.
        self.assertEqual(set(stats) - {"io_for_keeper", "io_for_collection"},
                         {"store", "segments", "room", "index", "collected", "recovery"})
        self.assertEqual(stats["index"]["entries"], 998)
        self.assertGreaterEqual(stats["room"]["live_bytes"], 998 * 1536)
        self.assertLess(stats["room"]["live_bytes"], 1100 * 1536)
        self.assertEqual(stats["segments"]["all"], 63)
        self.assertEqual(sum(stats["segments"].values()), 2 * 63)
        self.assertEqual(stats["room"]["tombstone_bytes"], 2 * (512 + 32))
        self.assertEqual(stats["room"]["full"], stats["room"]["live_bytes"] / stats["room"]["limit_bytes"])
        self.assertGreater(stats["room"]["limit_bytes"], 50 << 20)
        text = self.done("stats", self.device).decode()
        for section, facts in stats.items():
            self.assertIn(f"\n{section.replace('_', ' ')}\n", "\n" + text)
            for name in facts:
                self.assertRegex(text, rf"(?m)^  {name.removesuffix('_bytes').replace('_', ' ')} +\S")

    def test_of_a_load(self):
        self.make("64M")
        file = self.folder / "dump"
        file.write_bytes(dump_of(*((b"%04d" % i, bytes(1000)) for i in range(1000))))
        text = self.done("load", self.device, file, "--stats", "--durability", "sync").decode()
        self.assertRegex(text, r"^1000 records were loaded\nstore\n")
        facts = {section: dict(re.findall(r"(?m)^  (.+?) {2,}(\S.*)$", body))
                 for section, body in re.findall(r"(?m)^(\S.*)\n((?:  .*\n)+)", text)}
        # 64 records at a time, with one write; a segment that ends parts them.
        self.assertIn(int(facts["put many latency"]["count"]), range(16, 25))
        self.assertEqual(facts["use"]["put"], "980.5 KiB")
        self.assertNotIn("get latency", facts)
        changes = facts["io for changes"]
        self.assertIn(int(changes["writes"]), range(16, 41))
        self.assertEqual(changes["written"], "1.5 MiB")
        self.assertEqual(facts["sync flush latency"]["count"], changes["flushes"])
        for name in ("p50", "p99", "p999", "max"):
            self.assertRegex(facts["put many latency"][name], r"^[1-9]\d*\.\d us$")
        # Records of whole grains, and headers of segments.
        self.assertGreater(float(facts["use"]["write amplification"]), 1.5)
        self.assertNotIn("\n", self.done("load", self.device, file).decode().strip())


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
                         (footer + 40, "the footer, or second header, is damaged"), (100, "damaged superblock"),
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

    def make_with_a_checkpoint(self):
        """Where it is: an index of many keys."""
        self.make("64M", "--segment", "1M")
        self.load(*((b"%d" % i, b"") for i in range(100_000)))
        return self.device.read_bytes().index(b"spkv ckp")

    @unittest.skipIf(sanitizer_of(SPILLWAY), "a sanitizer needs terabytes of addresses")
    def test_want_of_memory(self):
        self.make_with_a_checkpoint()
        for kib in (60_000, 30_000):
            self.ends(1, "check", self.device, says=["was not checked", "memory"],
                      preexec_fn=lambda most=kib << 10: resource.setrlimit(resource.RLIMIT_AS, (most, most)))
        self.clean()

    def test_a_damaged_checkpoint(self):
        at = self.make_with_a_checkpoint()
        self.edit(at + 50_000, os.urandom(4096))
        ended = spillway("check", self.device)
        self.assertEqual((ended.status, ended.err), (1, ""), ended)
        lines = ended.out.decode().splitlines()
        self.assertEqual(len(lines), 2, ended)
        self.assertIn("no data is lost", lines[0])
        self.assertIn(" 1 checkpoints", lines[1])
        self.put("0", b"again")  # a start does without it, and makes another one
        self.assertEqual(self.get("1"), b"")

    def test_a_store_that_was_not_closed(self):
        self.make("16M", "--segment", "1M")
        with self.loading(b"key", b"a value") as load:
            load.kill()
        self.clean()
        self.assertIn(b" without a summary), 1 records", spillway("check", self.device).out)


if __name__ == "__main__":
    unittest.main(verbosity=2)
