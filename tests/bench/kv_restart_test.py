#!/usr/bin/env python3
"""The program of `kv-restart`: a store is made, killed, opened and closed.  kv_restart_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import signal
import unittest

from bench_case import HANG_SECONDS, LIBEXEC, SPILLWAY, Case, assert_refused, run_in

import kv_restart
import lockstep


class KvRestart(Case):
    PROGRAM = LIBEXEC / "kv-restart-load"
    KEYS = 100_000

    def setUp(self):
        super().setUp()
        self.place = self.folder / "store"
        with open(self.place, "xb") as file:
            file.truncate(96 << 20)

    def words(self, operation, **settings):
        settings = {"keys": self.KEYS, **settings}
        return [self.PROGRAM, f"uring:{self.place}", operation, *(f"{name}={value}" for name, value in settings.items())]

    def answer(self, operation, **settings):
        ended = run_in(self.folder, *self.words(operation, **settings))
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return json.loads(ended.stdout)

    def write_until_killed(self, **settings):
        with lockstep.Programs() as programs:
            program = programs.start(self.words("write", **settings))
            answer = json.loads(program.read(HANG_SECONDS))
            self.assertIsNone(program.process.poll())
            program.kill()
            self.assertEqual(program.process.returncode, -signal.SIGKILL)
        self.assertEqual(answer["entries"], self.KEYS)

    def check_open(self, **expected):
        """The second start finds what the first one found: nothing has been written. Neither reads values."""
        first, second = self.answer("open"), self.answer("open")
        for figure in ("entries", "records", "checkpoint", "replayed_records", "scanned_segments"):
            self.assertEqual(first[figure], second[figure], figure)
        self.assertEqual(first["entries"], self.KEYS)
        for figure, value in expected.items():
            self.assertEqual(first[figure], value, figure)
        self.assertGreater(first["peak_bytes"], first["index_bytes"])
        self.assertGreater(first["index_bytes"], 8 * self.KEYS)
        # Headers and footers, summaries, checkpoints, segments that were open and what is read of them twice.
        most = (1 << 20) + first["segments"] * 1024 + 32 * first["records"] + 9 * self.KEYS + first["scanned_segments"] * (2 << 20)
        self.assertLess(first["read_bytes"], most)
        return first

    def test_starts(self):
        self.write_until_killed(make=1, capacity=96 << 20, updates=1000, checkpoints=0)
        log = self.check_open(checkpoint=0)
        self.assertGreaterEqual(log["replayed_records"], self.KEYS + 1000)
        self.assertGreater(log["scanned_segments"], 0)
        self.assertGreater(self.answer("end")["close_write_bytes"], 8 * self.KEYS)
        clean = self.check_open(replayed_records=0, scanned_segments=0)
        self.assertGreater(clean["checkpoint"], 0)
        self.write_until_killed(updates=5000)
        killed = self.check_open(checkpoint=clean["checkpoint"])
        self.assertGreaterEqual(killed["replayed_records"], 5000)
        self.assertLess(killed["replayed_records"], killed["records"])

    def test_a_key_that_is_not_there_ends_it(self):
        self.write_until_killed(make=1, capacity=96 << 20)
        ended = run_in(self.folder, *self.words("open", keys=2 * self.KEYS))
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertRegex(ended.stderr, r"\Akv-restart-load: key [0-9]+ is not there\n\Z")

    def test_plain_reads_are_of_all_bytes(self):
        self.assertGreater(kv_restart.read_plainly(self.place, (9 << 20) + 512), 0)
        with self.assertRaises(lockstep.Failure):
            kv_restart.read_plainly(self.place, 97 << 20)
        self.assertGreater(kv_restart.write_plainly(self.place, (9 << 20) + 512), 0)
        self.assertEqual(self.place.stat().st_size, 96 << 20)

    def test_the_dump_that_is_loaded_has_a_record_for_each_key(self):
        dump = self.folder / "dump"
        kv_restart.write_dump(dump, 2500)
        for words in (["make", self.place, "--overwrite"], ["load", self.place, dump]):
            self.assertEqual(run_in(self.folder, SPILLWAY, "kv", *words).returncode, 0)
        listed = run_in(self.folder, SPILLWAY, "kv", "list", self.place)
        self.assertEqual(len(set(listed.stdout.splitlines())), 2500)

    def test_wrong_words_are_one_line_and_status_2(self):
        right = ["memory:64M", "open", "keys=5"]
        for words in ([], right[:1], right[:2], ["nothing:x", *right[1:]], ["memory:64M", "get", "keys=5"], [*right, "nothing"], [*right, "no=1"],
                      [*right, "depth=0"], [*right, "value=23"], [*right, "make=2"], [*right, "updates=5x"]):
            with self.subTest(words):
                assert_refused(self, run_in(self.folder, self.PROGRAM, *words), by="kv-restart-load: ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
