#!/usr/bin/env python3
"""The program that `device` measures.  device_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import subprocess
import unittest

from bench_case import HANG_SECONDS, LIBEXEC, Case, assert_refused


class Load(Case):
    def load(self, *words):
        program = LIBEXEC / "device-load"
        return subprocess.run([str(word) for word in (program, *words)], capture_output=True, text=True, timeout=HANG_SECONDS, cwd=self.folder)

    def result(self, *words):
        ended = self.load(*words)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return json.loads(ended.stdout)

    def test_its_counts_add_up(self):
        for device in ("memory:4M", "file:data", "aio:data", "uring:data"):
            for block, bytes_ in (("4K", 4096), ("128K", 131072)):
                for depth in (1, 2, 32):
                    for mix in ("write", "read", "mixed"):
                        if not device.startswith("memory"):
                            (self.folder / "data").write_bytes(bytes(4 << 20))
                        with self.subTest(f"{device} {block} {depth} {mix}"):
                            result = self.result(device, "4M", block, depth, mix, 0.01)
                            self.assertEqual((result["depth"], result["block_bytes"]), (depth, bytes_))
                            self.assertGreaterEqual(result["ios"], depth)
                            self.assertEqual(result["reads"] + result["writes"], result["ios"])
                            self.assertEqual(result["ios"] * bytes_, result["bytes"])
                            self.assertTrue(result["reads"] == 0 or mix != "write")
                            self.assertTrue(result["writes"] == 0 or mix != "read")
                            times = result["latency_ns"]
                            self.assertTrue(0 < times["p50"] <= times["p99"] <= times["max"], times)
                            self.assertLessEqual(times["mean"], times["max"])
                            self.assertGreaterEqual(result["cpu_us"], 0)

    def test_without_time_each_is_done_once(self):
        self.assertEqual(self.result("memory:4M", "4M", "4K", 7, "read", 0)["ios"], 7)

    def test_a_mixed_load_reads_seven_times_in_ten(self):
        result = self.result("memory:4M", "4M", "4K", 4096, "mixed", 0)
        self.assertAlmostEqual(result["reads"] / result["ios"], 0.7, delta=0.05)

    def test_writes_are_random_data_all_over_the_span(self):
        data = self.folder / "data"
        data.write_bytes(bytes(1 << 20))
        self.result("file:data", "512K", "4K", 2048, "write", 0)
        pages = [data.read_bytes()[at:at + 4096] for at in range(0, 1 << 20, 4096)]
        self.assertGreater(sum(any(page) for page in pages[:128]), 120)
        self.assertFalse(any(map(any, pages[128:])))
        self.assertGreater(len(set(pages[:128])), 100)

    def test_what_fails_is_one_line_and_status_1(self):
        ended = self.load("fault:read_eio=@3:[memory:4M]", "4M", "4K", 4, "read", 0)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""), ended)
        self.assertRegex(ended.stderr, r"\Adevice-load: at [0-9]+: 0 bytes of 4096, input/output error\n\Z")

    def test_wrong_words_are_one_line_and_status_2(self):
        right = ["memory:4M", "4M", "4K", "4", "read", "0"]
        wrong = [right[:5], [*right, "0"]] + [[*right[:at], word, *right[at + 1:]] for at, word in (
            (0, "nothing:x"), (0, self.folder), (1, "x"), (1, "8M"), (1, "2K"), (2, "0"), (2, "4000"), (2, "8M"), (3, "0"), (3, "4097"),
            (3, "1.5"), (4, "reed"), (5, "-1"), (5, "soon"), (5, "1s"), (5, "nan"))]
        wrong.append(["uring:data?qd=8", *right[1:3], "9", *right[4:]])
        for words in wrong:
            with self.subTest(words):
                assert_refused(self, self.load(*words), by="device-load: ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
