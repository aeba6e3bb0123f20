#!/usr/bin/env python3
"""spillway bench: its words, its figures and its programs; quick_test.py runs whole benchmarks.  bench_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import gzip
import json
import lzma
import math
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import HANG_SECONDS, ONE_LINE, built_in, run_in, take_paths, temporary_folder  # noqa: E402

[SPILLWAY] = take_paths(1)
BENCH = SPILLWAY.parent.parent / "share/spillway/bench"
sys.path.insert(0, str(BENCH.parent / "scripts"))
sys.path.insert(0, str(BENCH / "driver"))

import devices  # noqa: E402
import kv  # noqa: E402
import kv_index  # noqa: E402
import kv_restart  # noqa: E402
import lockstep  # noqa: E402
import pagecache  # noqa: E402
import plot  # noqa: E402
import report  # noqa: E402
import tasks  # noqa: E402

BARS = {"title": "t", "subtitle": "s <&>", "cases": ["a", "b"], "series": {"x": [0.5, 20.0], "y": [None, 1.0]}}


def bench(*arguments, **keywords):
    return subprocess.run([str(SPILLWAY), "bench", *map(str, arguments)], capture_output=True, text=True, timeout=1000, **keywords)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)


class Words(Case):
    def test_help_names_every_benchmark(self):
        ended = bench("--help")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for name in ("batch", "delegation", "device", "fibers", "hitrate", "kernels", "kv", "kv-index", "kv-restart", "pagecache", "random", "speedtest1", "tasks", "--out", "--quick"):
            self.assertIn(name, ended.stdout)

    def test_wrong_input_is_one_line_and_status_2(self):
        (self.folder / "file").touch()
        for arguments in ([], ["nothing"], ["kernels", "--fast"], ["kernels", "--pairs", "many"], ["kernels", "--pairs", "-1"],
                          ["batch", "--only", "nothing"], ["tasks", "--only", "nothing"], ["hitrate", "--only", "nothing"], ["hitrate", "--traces", self.folder / "none"],
                          ["kv-index", "--only", "nothing"], ["kv-restart", "--only", "nothing"], ["kv", "--only", "nothing"],
                          ["pagecache", "--only", "nothing"], ["kernels", "--storage", self.folder / "none"], ["kernels", "--out", self.folder / "file" / "x"]):
            ended = bench(*arguments, cwd=self.folder)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), (arguments, ended))
            self.assertRegex(ended.stderr, ONE_LINE, arguments)


    def test_a_missing_fio_is_one_line_and_status_2(self):
        for program in ("python3", "clang-19", "clang++-19"):
            (self.folder / program).symlink_to(shutil.which(program))
        ended = bench("device", cwd=self.folder, env={"PATH": str(self.folder)})
        self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended)
        self.assertRegex(ended.stderr, ONE_LINE)
        self.assertIn("fio", ended.stderr)


class Load(Case):
    """The program that `device` measures."""

    def load(self, *words):
        program = SPILLWAY.parent.parent / "libexec/spillway/device-load"
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
                ended = self.load(*words)
                self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended)
                self.assertRegex(ended.stderr, r"\Adevice-load: [^\n]{10,300}\n\Z")


class Figures(Case):
    def test_statistics(self):
        self.assertEqual(lockstep.median([3, 1, 2]), 2)
        self.assertAlmostEqual(lockstep.spread([1.0, 2.0, 4.0]), 1.5)
        self.assertAlmostEqual(lockstep.geometric_mean([1.0, 4.0, 16.0]), 4.0)

    def test_plot_is_svg_with_a_bar_for_each_value(self):
        root = xml.etree.ElementTree.fromstring(plot.bars(**BARS))
        words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        for word in ("t", "s <&>", "a", "b", "x", "y", "0.5", "20"):
            self.assertIn(word, words)
        bars = [element for element in root.iter("{http://www.w3.org/2000/svg}rect") if element.get("height") == str(plot.BAR_HEIGHT - 1)]
        self.assertEqual(len(bars), 3)
        # A bar is as long as its value is far from 1, whichever side it is on.
        half, twenty, one = (float(bar.get("width")) for bar in bars)
        self.assertAlmostEqual(twenty / half, 4.32, delta=0.05)
        self.assertEqual(one, 1)

    def test_lines_are_svg_with_a_point_for_each_value_below_the_bars(self):
        drawn = plot.lines("t", {"a": 0.5, "b": 1.0}, {"a": [1.0, 2.0, 4.0], "b": [0.0, 3.0]})
        root = xml.etree.ElementTree.fromstring(plot.above(plot.bars(**BARS), drawn))
        below = root.findall("{http://www.w3.org/2000/svg}svg")
        self.assertEqual(below[1].get("y"), below[0].get("height"))
        first, second = ([tuple(map(float, point.split(","))) for point in line.get("points").split()]
                         for line in root.iter("{http://www.w3.org/2000/svg}polyline"))
        self.assertEqual([len(first), len(second)], [3, 2])
        # Heights from 0, and seconds, are to scale.
        floor = second[0][1]
        self.assertAlmostEqual((floor - first[2][1]) / (floor - first[0][1]), 4, delta=0.05)
        self.assertAlmostEqual((second[1][0] - second[0][0]) / (first[1][0] - first[0][0]), 2, delta=0.01)

    def test_report_writes_three_complete_files(self):
        row = {"case": "a", "ours": 2.0, "peer": 1.0, "ratio": 2.0, "spread": 0.25, "unit": "ms", "extra": 7.0}
        result = {"name": "n", "machine": report.machine(), "parameters": {"p": 1}, "rows": [row], "summary": {"figure": 2.0},
                  "notes": ["nothing else"]}
        report.write(self.folder, result, "What it is.", BARS)
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"n.json", "n.md", "n.svg"})
        self.assertEqual(json.loads((self.folder / "n.json").read_text())["rows"], [row])
        table = (self.folder / "n.md").read_text()
        for line in ("| case | ours | peer | ratio | spread | unit | extra |", "| a | 2 | 1 | 2 | 0.25 | ms | 7 |",
                     "| figure | 2 |", "Note: nothing else."):
            self.assertIn(line, table)


class Cleaning(Case):
    def test_a_signal_neither_parts_taking_from_noting_nor_stops_the_release(self):
        done = []

        def on_signal(number, frame):
            raise KeyboardInterrupt

        old = signal.signal(signal.SIGTERM, on_signal)
        self.addCleanup(signal.signal, signal.SIGTERM, old)
        with self.assertRaises(KeyboardInterrupt), devices.Cleanup() as cleanup:
            def take():
                os.kill(os.getpid(), signal.SIGTERM)
                done.append("taken")
                return "it"
            cleanup.acquire(take, lambda it: (os.kill(os.getpid(), signal.SIGTERM), done.append("released " + it)))
            done.append("not reached")
        self.assertEqual(done, ["taken", "released it"])

    def test_programs_are_gone_after_a_failure(self):
        with self.assertRaisesRegex(lockstep.Failure, "gave no answer"), lockstep.Programs() as programs:
            program = programs.start(["sleep", "100"])
            program.ask("hello\n", 0.1)
        self.assertEqual(program.process.returncode, -signal.SIGKILL)

    def test_a_program_that_ends_early_says_why(self):
        with lockstep.Programs() as programs:
            program = programs.start(["sh", "-c", "echo the reason >&2; exit 3"])
            with self.assertRaisesRegex(lockstep.Failure, "ended early with status 3: the reason"):
                program.read(10)


class Tasks(Case):
    """The programs of `tasks`, each case for a moment, and the benchmark without what it may do without."""
    OURS = SPILLWAY.parent.parent / "libexec/spillway/tasks-load"

    def check_cases(self, program):
        for case in tasks.COUNTS:
            if case == "notify_remote" and len(os.sched_getaffinity(0)) < 2:
                continue
            for count in (2, 300):
                ended = run_in(self.folder, program, case, count)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""), (program, case))
                answer = json.loads(ended.stdout)
                self.assertEqual(answer["operations"], count, (program, case))
                figures = ("spawn_ns", "end_ns", "bytes") if case == "alive" else ("cpu_ns", "wall_ns")
                for figure in figures if count == 300 else ():
                    self.assertGreater(answer[figure], 0, (program, case))

    def test_ours_does_what_it_is_asked(self):
        self.check_cases(self.OURS)

    def test_threads_do_what_they_are_asked(self):
        self.check_cases(built_in(self.folder, "clang++-19", *tasks.FLAGS, BENCH / "tasks/pthreads.cc", "-o", "pthreads"))

    def test_a_task_takes_a_page_and_little_more(self):
        count = 20000
        answer = json.loads(run_in(self.folder, self.OURS, "alive", count).stdout)
        self.assertLess(answer["bytes"], 6144 * count)
        self.assertGreater(answer["bytes"], 4096 * count)

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in ([], ["switch"], ["switch", "2", "2"], ["nothing", "2"], ["switch", "3"], ["switch", "0"], ["switch", "-2"],
                      ["switch", "2x"], ["switch", ""], ["switch", "2000000000002"]):
            ended = run_in(self.folder, self.OURS, *words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
            self.assertRegex(ended.stderr, r"\A[^\n]{10,300}\n\Z", words)

    def test_what_is_missing_is_named_and_left_out(self):
        (self.folder / "path").mkdir()
        for program in ("clang-19", "python3", "ld"):
            (self.folder / "path" / program).symlink_to(shutil.which(program))
        compiler = self.folder / "path/clang++-19"
        compiler.write_text(f'#!/bin/sh\ncase "$*" in *boost*) echo libboost_fiber.so;; *) exec {shutil.which("clang++-19")} "$@";; esac\n')
        compiler.chmod(0o755)
        ended = bench("tasks", "--quick", "--pairs", 1, "--only", "switch", "--out", self.folder, "--storage", self.folder,
                      env={**os.environ, "PATH": str(self.folder / "path")})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads((self.folder / "tasks.json").read_text())
        self.assertEqual([row["case"] for row in result["rows"]], ["switch"])
        self.assertEqual(result["rows"][0]["peer"], result["rows"][0]["pthreads"])
        self.assertEqual(set(result["summary"]), {"switch_ns", "switch_pthreads_ratio"})
        notes = " ".join(result["notes"])
        for package in ("libboost-fiber1.74-dev", "valgrind"):
            self.assertIn(package, notes)
            self.assertIn(package, ended.stdout)


class HitRate(Case):
    """The program that `hitrate` runs, and the traces that it finds in a folder."""
    PROGRAM = SPILLWAY.parent.parent / "libexec/spillway/hitrate"
    POLICIES = 24

    def setUp(self):
        super().setUp()
        self.traces = self.folder / "traces"
        self.traces.mkdir()

    def bench(self, *arguments):
        return bench("hitrate", "--quick", "--out", self.folder, "--storage", self.folder, "--traces", self.traces, *arguments)

    def test_a_trace_over_all_policies(self):
        (self.folder / "t").write_text("\n".join(str(i % 50) for i in range(1000)))
        ended = run_in(self.folder, self.PROGRAM, "lirs:t", 0, "32,100%", "all")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        answer = json.loads(ended.stdout)
        self.assertEqual((answer["accesses"], answer["pages"], len(answer["results"])), (1000, 50, 2 * self.POLICIES))
        hits = {(result["policy"], result["size"]): result["hits"] for result in answer["results"]}
        self.assertEqual((hits["lru", 32], hits["lru", 50]), (0, 950))
        self.assertEqual(max(hits[policy, 32] for policy, size in hits if size == 32), hits["opt", 32])

    def test_only_what_was_asked_for(self):
        answer = json.loads(run_in(self.folder, self.PROGRAM, "loop/10", 500, "32", "lru/8,2q").stdout)
        self.assertEqual((answer["accesses"], answer["pages"]), (500, 101))
        self.assertEqual([(result["policy"], result["size"]) for result in answer["results"]], [("lru/8", 32), ("2q", 32)])

    def test_wrong_words_are_one_line_and_status_2(self):
        (self.folder / "bad").write_text("1\n2\nthree\n")
        for words, said in (([], "sizes"), (["loop", "0", "64"], "sizes"), (["nothing", "0", "64", "lru"], "zipfleaf"), (["loop/0", "0", "64", "lru"], "NAME/N"),
                            (["loop", "x", "64", "lru"], "'x'"), (["loop", "0", "31", "lru"], "'31'"), (["loop", "0", "67108865", "lru"], "67108864"), (["loop", "0", "0%", "lru"], "'0%'"),
                            (["loop", "0", "101%", "lru"], "101%"), (["loop", "0", "nan%", "lru"], "nan%"), (["loop", "0", "64,", "lru"], "''"),
                            (["loop", "0", "64", "lfu"], "lru, clock"), (["loop", "0", "64", "clock/8"], "nrlfu, alfu, gclock"),
                            (["loop", "0", "64", "lru/12"], "8, 16 or 32"), (["tar:bad", "0", "64", "lru"], "oracle"),
                            (["lirs:bad", "0", "64", "lru"], "bad, line 3: 'three'"), (["u64:bad", "0", "64", "lru"], "bad, offset 8"),
                            (["lirs:none", "0", "64", "lru"], "none: No such file")):
            ended = run_in(self.folder, self.PROGRAM, *words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
            self.assertRegex(ended.stderr, r"\Ahitrate: [^\n]{10,300}\n\Z", words)
            self.assertIn(said, ended.stderr)

    def test_files_of_each_format_are_found(self):
        """All hold the same pages in the same order."""
        pages = [number * number % 97 for number in range(2000)]
        lines = "".join(f"{page}\n" for page in pages).encode()
        (self.traces / "README.md").write_text("What they are.")
        (self.traces / "plain.trace").write_bytes(lines)
        (self.traces / "gz.txt.gz").write_bytes(gzip.compress(lines))
        (self.traces / "xz.lirs.xz").write_bytes(lzma.compress(lines))
        (self.traces / "arc.lis").write_text("".join(f"{page} 1 0 {number}\n" for number, page in enumerate(pages)))
        (self.traces / "csv.csv").write_text("time,id\n" + "".join(f"0,{page}\n" for page in pages))
        (self.traces / "spc.spc").write_text("".join(f"0,{page * 8},4096,r,0\n" for page in pages))
        (self.traces / "oracle.oracleGeneral.bin").write_bytes(b"".join(struct.pack("<IQIq", 0, page, 1, -1) for page in pages))
        (self.traces / "web12.trace").write_bytes(struct.pack(f"<{len(pages)}I", *pages))
        (self.traces / "scarab-recs.trace").write_bytes(struct.pack(f"<{len(pages)}Q", *pages))
        (self.traces / "half.u32").write_bytes(struct.pack(f"<{len(pages)}I", *pages))
        (self.traces / "half.u64").write_bytes(struct.pack(f"<{len(pages)}Q", *pages))
        (self.traces / "what.trace").write_bytes(struct.pack(f"<{len(pages)}I", *pages))
        names = ["arc", "csv", "gz", "half.u32", "half.u64", "oracle", "plain", "scarab-recs", "spc", "web12", "xz"]
        ended = self.bench(*(word for name in [*names, "what"] for word in ("--only", name)))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        result = json.loads((self.folder / "hitrate.json").read_text())
        self.assertEqual([row["case"] for row in result["rows"]], [f"{name}/32" for name in names])
        self.assertEqual(len({json.dumps({**row, "case": ""}) for row in result["rows"]}), 1)
        self.assertEqual(len(result["notes"]), 1)
        self.assertIn("what.trace", result["notes"][0])

    def test_a_wrong_file_is_one_line_and_status_2(self):
        for name, content in (("bad.lis", b"1 1 0\n"), ("bad.trace.gz", b"no gzip"), ("bad.xz", b""), ("bad.u64.gz", gzip.compress(b"1"))):
            path = self.traces / name
            path.write_bytes(content)
            ended = self.bench("--only", "bad")
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), (name, ended))
            self.assertRegex(ended.stderr, ONE_LINE)
            self.assertIn(str(path), ended.stderr)
            path.unlink()


class Batch(Case):
    """The program of `batch`: every engine updates the records that there are."""
    PROGRAM = SPILLWAY.parent.parent / "libexec/spillway/batch-load"

    def test_all_engines_in_turns(self):
        for words in (["key=4", "record=8", "bucket=512"], ["key=8", "record=32", "bucket=128", "threads=2", "active=50"], ["key=12", "record=20"]):
            ended = run_in(self.folder, self.PROGRAM, "buckets=1000", "seconds=0.01", "turns=3", "staging=1024", *words)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), words)
            answer = json.loads(ended.stdout)
            self.assertEqual(set(answer["engines"]), {"linear", "direct", "prefetch", "tagged", "cache_buckets", "decoupled", "partitioned", "auto"})
            self.assertIn(answer["chosen"], {"direct", "prefetch", "tagged", "cache_buckets", "partitioned"})
            self.assertLessEqual({answer["chosen"], "direct", "prefetch", "tagged"}, set(answer["modelled"]))
            self.assertLess(0, answer["choosing_seconds"])
            for times in answer["engines"].values():
                self.assertEqual(len(times), 3)
                self.assertLess(0, min(times))

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in (["record"], ["records=5"], ["record=x"], ["seconds=-1"], ["key=3"], ["record=8", "key=8"], ["record=65"], ["bucket=100"], ["buckets=0"],
                      ["threads=0"], ["turns=0"], ["engine=x"]):
            ended = run_in(self.folder, self.PROGRAM, *words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
            self.assertRegex(ended.stderr, r"\Abatch-load: [^\n]{10,300}\n\Z", words)


class KvIndex(Case):
    """The programs of `kv-index`, each case for a moment, and the benchmark without its peer."""
    OURS = SPILLWAY.parent.parent / "libexec/spillway/kv-index-load"

    def check_cases(self, program):
        for case in kv_index.CASES:
            for threads in (1, 3):
                ended = run_in(self.folder, program, case, 100_001, threads)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""), (program, case))
                answer = json.loads(ended.stdout)
                self.assertEqual(answer["operations"], 100_001, (program, case))
                self.assertGreater(answer["cpu_ns"], 0)
                self.assertGreater(answer["bytes"], 8 * 100_001)

    def test_ours_does_what_it_is_asked(self):
        self.check_cases(self.OURS)

    def test_latency_and_memory(self):
        growing, sized = (json.loads(run_in(self.folder, self.OURS, case, 200_000, 1).stdout) for case in ("latency", "latency_sized"))
        for answer in (growing, sized):
            self.assertLess(0, answer["p50_ns"])
            self.assertLessEqual(answer["p50_ns"], answer["p99_ns"])
            self.assertLessEqual(answer["p99_ns"], answer["p99_99_ns"])
            self.assertLessEqual(answer["p99_99_ns"], answer["most_ns"])
        memory = json.loads(run_in(self.folder, self.OURS, "memory", 1_000_000, 1).stdout)
        self.assertLess(8, memory["least"])
        self.assertLess(memory["least"], 8.6)
        self.assertLess(memory["mean"], 12)

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in ([], ["insert"], ["insert", "5"], ["insert", "0", "1"], ["insert", "5", "0"], ["nothing", "5", "1"],
                      ["lookup", "5x", "1"], ["insert", "-5", "1"], ["memory", "", "1"]):
            ended = run_in(self.folder, self.OURS, *words)
            self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
            self.assertRegex(ended.stderr, r"\A[^\n]{10,300}\n\Z", words)


class Kv(Case):
    """The programs of `kv`: what they count, and that they look at what they read."""
    PROGRAM = SPILLWAY.parent.parent / "libexec/spillway/kv-load"
    KEYS = 500

    def load(self, place, operation, program=None, **settings):
        words = [program or self.PROGRAM, place, operation, *(f"{name}={value}" for name, value in settings.items())]
        return run_in(self.folder, *words)

    def answer(self, *words, **settings):
        ended = self.load(*words, **settings)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), (words, settings))
        return json.loads(ended.stdout)

    def check_counts(self, answer, operation):
        self.assertEqual(answer["operations"], 3000)
        self.assertEqual(answer["gets"] + answer["puts"], answer["operations"])
        self.assertEqual(answer["found"], answer["gets"])
        share = {"get": 1, "mixed": 0.7}.get(operation, 0)
        self.assertAlmostEqual(answer["gets"] / answer["operations"], share, delta=0.05 if operation == "mixed" else 0)
        for times, count in ((answer["get_ns"], answer["gets"]), (answer["put_ns"], answer["puts"])):
            self.assertEqual(0 < times["p50"] <= times["p99"] <= times["p999"] <= times["max"], count > 0, times)
        self.assertGreater(answer["per_second"], 0)

    def test_its_counts_add_up(self):
        for place, by in (("memory:64M", "tasks"), ("memory:64M", "threads"), ("uring:data", "tasks"), ("aio:data", "tasks"), ("file:data", "threads")):
            for operation in ("get", "put", "update", "mixed"):
                for durability in ("none", "batch", "sync"):
                    with self.subTest(f"{place} {by} {operation} {durability}"):
                        answer = self.answer(place, operation, make=1, keys=self.KEYS, capacity=64 << 20, depth=7, by=by, seconds=0, most=3000,
                                             durability=durability)
                        self.check_counts(answer, operation)
                        # The default's record is one I/O of 4 KiB; whoever changes a key looks at it first.
                        self.assertEqual((answer["record_bytes"], answer["keys"]), (4096, self.KEYS))
                        self.assertAlmostEqual(answer["reads"], 0 if operation == "put" else 1, delta=0.005)
                        # Those of several tasks are one where they lie behind each other, and are waited for.
                        most_at_a_time = 1 if by == "threads" or place.startswith("memory:") else 7
                        self.assertLess(answer["writes"], answer["puts"] / 3000 + 0.05)
                        self.assertGreater(answer["writes"], answer["puts"] / 3000 / most_at_a_time - 0.05)
                        self.assertEqual(answer["allocations"], 0)
                        if answer["reads"] == 1:
                            self.assertEqual(answer["read_bytes"], 4096)

    def test_a_store_is_there_for_the_next_run(self):
        self.answer("file:data", "fill", keys=self.KEYS, capacity=16 << 20, depth=3)
        self.check_counts(self.answer("file:data", "get", keys=self.KEYS, seconds=0, most=3000), "get")
        half = self.answer("file:data", "get", keys=2 * self.KEYS, seconds=0, most=3000)
        self.assertAlmostEqual(half["found"] / half["gets"], 0.5, delta=0.06)

    def test_a_value_that_is_another_ends_it(self):
        self.answer("file:data", "fill", keys=self.KEYS, capacity=16 << 20, value=1000)
        ended = self.load("file:data", "get", keys=self.KEYS, value=1001)
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertRegex(ended.stderr, r"\Akv-load: key [0-9]+ has a value that is not its own\n\Z")

    def test_a_full_store_ends_puts(self):
        ended = self.load("memory:16M", "put", make=1, capacity=16 << 20, seconds=0, most=5000)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (1, "", "kv-load: the store is full\n"))

    def test_overwrite_finds_what_a_store_takes(self):
        for theta in (0, 0.99):
            answer = self.answer("memory:32M", "overwrite", capacity=32 << 20, depth=8, by="tasks", rounds=0.05, theta=theta)
            self.assertEqual(answer["keys"], answer["full_keys"] * 9 // 10)
            self.assertLessEqual(answer["full_keys"], answer["slots"])
            self.assertGreater(answer["full_keys"], answer["slots"] // 2)
            self.assertEqual(answer["operations"], (32 << 20) // 20 // 4096)
            # Puts of one key that wait for each other share a write.
            self.assertGreater(answer["amplification"], 1 if theta == 0 else 0.9)
            self.assertGreater(answer["write_bytes"], 0)

    def test_what_collection_must_write(self):
        for used in (0.3, 0.6, 0.9):
            alive = 1 - 1 / kv.fifo_amplification(100_000, int(100_000 * used), 0)
            self.assertAlmostEqual(alive, math.exp(-(1 - alive) / used), delta=1e-6)
        self.assertGreater(kv.fifo_amplification(10_000, 8_000, 0.99), kv.fifo_amplification(10_000, 8_000, 0.5))

    def test_rocksdb_does_the_same(self):
        if not kv.ROCKSDB_HEADER.exists():
            self.skipTest("RocksDB is not there")
        program = built_in(self.folder, "clang++-19", *kv.FLAGS, f"-I{kv.SRC}", BENCH / "kv/rocksdb_load.cc", "-o", "rocksdb-load", "-lrocksdb")
        for operation in ("get", "put", "update", "mixed"):
            answer = self.answer("database", operation, program, make=1, keys=self.KEYS, depth=7, seconds=0, most=3000)
            self.check_counts(answer, operation)
            self.assertGreater(answer["allocations"], 1)
        self.check_counts(self.answer("database", "get", program, keys=self.KEYS, seconds=0, most=3000), "get")

    def test_wrong_words_are_one_line_and_status_2(self):
        right = ["memory:64M", "get", "make=1", "keys=5"]
        wrong = [[], right[:1], ["memory:64M", "get"], ["nothing:x", *right[1:]], ["memory:64M", "nothing", "keys=5"],
                 ["memory:64M", "overwrite"], ["memory:64M", "overwrite", "keys=5", "capacity=5"], ["memory:64M", "fill"]]
        wrong += [[*right, word] for word in ("nothing", "no=1", "depth=0", "depth=-1", "value=23", "seconds=nan", "seconds=0", "by=fork",
                                              "durability=some", "theta=1", "keys=5x", "make=2", "most=")]
        for words in wrong:
            with self.subTest(words):
                ended = run_in(self.folder, self.PROGRAM, *words)
                self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
                self.assertRegex(ended.stderr, r"\Akv-load: [^\n]{10,300}\n\Z", words)


class KvRestart(Case):
    """The program of `kv-restart`: a store is made, killed, opened and closed."""
    PROGRAM = SPILLWAY.parent.parent / "libexec/spillway/kv-restart-load"
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
                ended = run_in(self.folder, self.PROGRAM, *words)
                self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
                self.assertRegex(ended.stderr, r"\Akv-restart-load: [^\n]{10,300}\n\Z", words)



class PageCache(Case):
    """The program of `pagecache`: what each side counts, and that it looks at what it reads; and what is made of answers."""
    PROGRAM = SPILLWAY.parent.parent / "libexec/spillway/pagecache-load"
    BYTES = 1 << 20
    PAGES = BYTES // 4096
    MEMORY = BYTES // 8

    def setUp(self):
        super().setUp()
        self.place = self.folder / "data"
        self.place.write_bytes(bytes(self.BYTES))

    def fill(self, *settings):
        self.assertEqual(run_in(self.folder, self.PROGRAM, "fill", self.place, self.BYTES, *settings).returncode, 0)

    def answers(self, side, *lines, **settings):
        place = f"file:{self.place}" if side in ("cache", "direct") else self.place
        with lockstep.Programs() as programs:
            program = programs.start([self.PROGRAM, side, place, self.BYTES, *(f"{name}={value}" for name, value in settings.items())])
            self.assertEqual(program.read(HANG_SECONDS), "ready")
            answers = [json.loads(program.ask(line + "\n", HANG_SECONDS)) for line in lines]
            program.finish()
        return answers

    def test_each_block_begins_with_its_number_and_no_two_are_alike(self):
        self.fill()
        data = self.place.read_bytes()
        blocks = [data[at:at + 128] for at in range(0, self.BYTES, 128)]
        self.assertEqual([int.from_bytes(block[:8], "little") for block in blocks], list(range(len(blocks))))
        self.assertEqual(len({block[8:] for block in blocks}), len(blocks))

    def test_all_sides_do_what_they_are_asked(self):
        self.fill()
        for side in ("cache", "direct", *pagecache.HOT_PEERS, "pread_random"):
            with self.subTest(side):
                counted, timed = self.answers(side, "count 1000", "run read threads 2 0 0.01", **({"theta": 0.99} if side != "direct" else {}))
                self.assertEqual(counted["requests"], 1000)
                self.assertGreater(timed["requests"], 0)
                self.assertGreater(timed["seconds"], 0.01)
                self.assertEqual((counted["writes"], timed["writes"]), (0, 0))

    def test_what_fits_is_read_once(self):
        self.fill()
        for side in ("cache", "locked"):
            touched, hits = self.answers(side, "touch threads 1", "count 5000", memory=4 * self.BYTES)
            self.assertEqual(touched["requests"], self.PAGES)
            self.assertEqual(hits["reads"], 0, side)
        self.assertEqual(touched["reads"], 1)
        [touched] = self.answers("cache", "touch tasks 16", memory=4 * self.BYTES)
        self.assertAlmostEqual(touched["reads"] * touched["requests"], self.PAGES, delta=0.01)

    def test_both_sides_of_a_mix_do_the_same_to_the_device(self):
        """Once changed pages are evicted: of 100 requests ours reads those pages that are not there, and writes each changed one."""
        self.fill()
        for kind, reads in (("read", 1), ("mixed", 0.7), ("update", 1)):
            for by, depth in (("tasks", 1), ("tasks", 16), ("threads", 2)):
                for side in ("cache", "direct"):
                    with self.subTest(f"{kind} {by} {depth} {side}"):
                        [answer] = self.answers(side, f"run {kind} {by} {depth} 0.02 0.1", memory=self.MEMORY)
                        resident = self.MEMORY / self.BYTES if side == "cache" else 0
                        self.assertAlmostEqual(answer["reads"], reads * (1 - resident), delta=0.2)
                        self.assertAlmostEqual(answer["writes"], 0 if kind == "read" else 0.3 * (1 - resident), delta=0.2)
        data = self.place.read_bytes()
        self.assertEqual([int.from_bytes(data[at:at + 8], "little") for at in range(0, self.BYTES, 128)], list(range(self.BYTES // 128)))

    def test_what_a_queue_sends(self):
        """All that is not there; then, of what is, what other nodes have."""
        self.fill()
        for nodes in (1, 4):
            with self.subTest(nodes):
                touched, timed = self.answers("cache", "touch queue 256", "run read queue 256 0 0.05", memory=8 * self.BYTES, nodes=nodes)
                self.assertEqual((touched["requests"], touched["sent"]), (self.PAGES, 1))
                self.assertGreater(touched["messages"], 2 / 256)
                self.assertLessEqual(touched["messages"], 2)
                self.assertEqual(timed["reads"], 0)
                self.assertEqual(timed["sent"] > 0, nodes > 1)
                self.assertEqual(timed["messages"] > 0, nodes > 1)

    def test_another_blocks_bytes_end_it(self):
        self.fill()
        with open(self.place, "r+b") as file:
            for at in range(0, self.BYTES, 128):
                file.seek(at)
                file.write((1 << 40).to_bytes(8, "little"))
        for side in ("cache", "direct", "pread", "pread_random", "mmap", "locked"):
            with self.assertRaisesRegex(lockstep.Failure, r"pagecache-load: block [0-9]+ has the bytes of block 1099511627776\Z"):
                self.answers(side, "run read threads 1 0 10")

    def test_a_tree_is_searched_and_updated(self):
        for value in (8, 800):
            self.fill(f"value={value}")
            for side, hows in (("cache", ("tasks 1", "tasks 64", "threads 2")), ("pread", ("threads 2",)), ("pread_random", ("threads 1",))):
                with self.subTest(f"{side} {value}"):
                    lines = [f"run {kind} {how} 0 0.05" for how in hows for kind in ("read", "update", "read")]
                    *timed, counted = self.answers(side, *lines, "count 1000", value=value, memory=self.MEMORY, theta=0.99)
                    self.assertTrue(all(answer["requests"] > 0 for answer in timed))
                    self.assertEqual(counted["requests"], 1000)
            [answer] = self.answers("cache", "run read queue 64 0 0.05", value=value, memory=self.MEMORY, nodes=1)
            # No more than a leaf and the nodes above it.
            self.assertTrue(0.5 < answer["reads"] < 3, answer)
        counted, timed = self.answers("cache", "count 20000", "run update threads 1 0.1 0.2", value=800, memory=self.MEMORY)
        # Next to all leaves are read, and inner nodes stay. Five of a hundred lookups write.
        self.assertAlmostEqual(counted["reads"], 1 - self.MEMORY / self.BYTES, delta=0.1)
        self.assertAlmostEqual(timed["writes"], 0.05, delta=0.03)

    def test_another_keys_value_ends_it(self):
        leaves, values_begin = self.PAGES - 1, 8 + 5 * 8
        for begin, words in ((values_begin, "block [0-9]+ has the bytes of block 0"), (0, "page [0-9]+ is no node of level 0")):
            self.fill("value=800")
            with open(self.place, "r+b") as file:
                for page in range(leaves):
                    file.seek(page * 4096 + begin)
                    file.write(bytes(4096 - begin))
            for side in ("cache", "pread", "pread_random"):
                with self.assertRaisesRegex(lockstep.Failure, rf"pagecache-load: {words}\Z"):
                    self.answers(side, "run read threads 1 0 10", value=800)
            with self.assertRaisesRegex(lockstep.Failure, rf"pagecache-load: {words}\Z"):
                self.answers("cache", "run read queue 8 0 10", value=800, nodes=1)

    def test_zipfs_law(self):
        """An eighth of the pages, those that are asked for most, is asked for more often than not."""
        self.fill()
        alike, by_rank = (self.answers("cache", "count 30000", "count 30000", memory=self.MEMORY, theta=theta)[1] for theta in (0, 0.99))
        self.assertAlmostEqual(alike["reads"], 7 / 8, delta=0.03)
        self.assertLess(by_rank["reads"], 0.5)

    def test_wrong_words_are_one_line_and_status_2(self):
        right = ["cache", "memory:1M", "1048576"]
        wrong = [[], right[:2], ["nothing", *right[1:]], ["cache", "nothing:x", right[2]], [*right[:2], "1000"], [*right[:2], "0"], [*right[:2], "2097152"],
                 ["pread", self.folder / "none", right[2]], ["locked", self.place, right[2], "memory=0"], ["direct", "memory:1M", "2097152"]]
        wrong += [[*right, word] for word in ("memory", "memory=x", "memory=1", "theta=1", "nodes=65", "depth=1", "value=7", "value=4088")]
        wrong += [["locked", self.place, right[2], "value=8"]]
        for words in wrong:
            with self.subTest(words):
                ended = run_in(self.folder, self.PROGRAM, *words)
                self.assertEqual((ended.returncode, ended.stdout), (2, ""), words)
                self.assertRegex(ended.stderr, r"\Apagecache-load: [^\n]{10,300}\n\Z", words)
        with self.assertRaisesRegex(lockstep.Failure, "of a tree values are read, or changed"):
            self.answers("cache", "run mixed tasks 1 0 1", value=8)
        for line in ("nothing", "count 0", "touch tasks 0", "run read tasks 1 0", "run read tasks 1 0 0", "run read tasks 1 nan 1", "run write tasks 1 0 1",
                     "run read forks 1 0 1", "run read queue 1 0 1", "run read threads 1025 0 1"):
            with self.subTest(line), self.assertRaisesRegex(lockstep.Failure, "ended early with status 2: pagecache-load: "):
                self.answers("cache", line)

    def test_rows_and_figures(self):
        def answers(*rates):
            return [{"requests": 2 * rate, "seconds": 2.0, "cpu_us": 1.0, "reads": 0.5, "writes": 0.25} for rate in rates]
        row = pagecache.make_row("cold/disk/read/tasks/1", answers(90, 100, 110), answers(100, 100, 100))
        self.assertEqual((row["ours"], row["peer"], row["ratio"], row["reads"], row["peer_writes"]), (100, 100, 1, 0.5, 0.25))
        self.assertAlmostEqual(row["spread"], 0.2)
        other = pagecache.make_row("cold/disk/read/tasks/64", answers(4), answers(1))
        zipf = pagecache.make_row("zipf/disk/1", answers(6), answers(2), best_peer="pread")
        nodes = pagecache.make_row("nodes/hot/4", answers(3), answers(6), messages=0.05)
        self.assertEqual(pagecache.summarise([row, other, zipf, nodes]),
                         {"zipf_disk_1_ratio": 3, "nodes_hot_4_ratio": 0.5, "nodes_hot_4_messages": 0.05, "cold_disk_read_ratio": 2, "cold_disk_read_worst": 1})


if __name__ == "__main__":
    unittest.main(verbosity=2)
