#!/usr/bin/env python3
"""The program of `batch-stored`: what it counts is in the table in the end, which it looks at itself.  batch_stored_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import subprocess
import unittest

from bench_case import HANG_SECONDS, LIBEXEC, Case, assert_refused, run_in
from support import CLEAN


class BatchStored(Case):
    PROGRAM = LIBEXEC / "batch-stored-load"
    RECORDS, MEMORY = 204_800, 1 << 20

    def place(self, name, size_bytes):
        path = self.folder / name
        with open(path, "wb") as file:
            file.truncate(size_bytes)
        return path

    def answers(self, side, *words):
        path = self.place("table", 16 << 20)
        command = [self.PROGRAM, side, path, f"records={self.RECORDS}", f"memory={self.MEMORY}", *words]
        ended = subprocess.run([str(word) for word in command], input="run 0.1\nrun 0.1\n", env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), words)
        first, *answers = [json.loads(line) for line in ended.stdout.splitlines()]
        self.assertGreaterEqual(first["store_bytes"], 16 * self.RECORDS)
        self.assertEqual(len(answers), 2)
        for answer in answers:
            self.assertGreater(answer["updates"], 0)
            self.assertGreater(answer["seconds"], 0.09)
        return answers

    def test_updates_that_wait_and_those_in_place(self):
        staged = self.answers("staged", f"cache={self.MEMORY // 4}", "slot=8", "makers=2")
        logged = self.answers("staged", f"cache={self.MEMORY // 4}", f"log={self.place('log', 16 << 20)}", "threads=2", "slot=16", "makers=1")
        in_place = self.answers("in_place", "threads=3")
        # Each update in place reads a page, as a rule; those that wait share what they read.
        for answer in in_place:
            self.assertGreater(answer["read_bytes"], 1024 * answer["updates"])
        for answer in staged + logged:
            self.assertLess(answer["read_bytes"], 1024 * answer["updates"])
        for answer in logged:
            self.assertGreater(answer["write_bytes"], 17 * answer["updates"])

    def test_wrong_words_are_one_line_and_status_2(self):
        place = self.place("table", 1 << 20)
        right = ["staged", place, "records=1024", "memory=10000000"]
        for words in ([], ["staged"], ["other", *right[1:]], right[:3], [*right, "records=x"], [*right, "other=1"], [*right, "threads=0"],
                      [*right, "cache=10000000"], [*right, "records=1000"], ["staged", self.folder / "none", *right[2:]]):
            assert_refused(self, run_in(self.folder, self.PROGRAM, *words), by="batch-stored-load: ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
