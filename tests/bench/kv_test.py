#!/usr/bin/env python3
"""The programs of `kv`: what they count, and that they look at what they read.  kv_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import math
import shutil
import types
import unittest
import unittest.mock

from bench_case import BENCH, LIBEXEC, Case, assert_refused, built_in, run_in

import cases
import kv
import kv_contest
import kv_drives


class Kv(Case):
    PROGRAM = LIBEXEC / "kv-load"
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

    def test_workers_share_a_store(self):
        for place in ("memory:64M", "latency:us=20,channels=8:[memory:64M]"):
            for operation in ("get", "put", "update", "mixed"):
                with self.subTest(f"{place} {operation}"):
                    answer = self.answer(place, operation, make=1, keys=self.KEYS, capacity=64 << 20, depth=7, by="tasks", workers=3, seconds=0, most=3000)
                    self.check_counts(answer, operation)
                    self.assertEqual(answer["keys"], self.KEYS)

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

    def test_fio_beside_it(self):
        """Of two ways to run fio the faster one counts, with its own latencies, and the CPU time of the one that needs less."""
        turns = {False: {"rate": 100.0, "cpu_us": 3.0, "p50_us": 9.0}, True: {"rate": 200.0, "cpu_us": 4.0, "p50_us": 70.0}}
        contest = kv_contest.Contest(None, types.SimpleNamespace(pairs=2, case_seconds=100), None, None)
        contest.turn = lambda *case: {"per_second": 150.0, "gets": 1, "get_ns": {"p50": 5000, "p99": 1, "p999": 1, "max": 1},
                                      **{figure: 1.0 for figure in ("user_us", "system_us", "reads", "writes", "allocations")}}
        contest.fio = lambda operation, backend, record, depth, batched: turns[batched]
        row = contest.measure("disk/uring/get/4K/16", ("uring", "get", "4K", 16))
        self.assertEqual([row[key] for key in ("best_peer", "ratio", "pairs", "p50_us", "peer_p50_us", "peer_cpu_us")], ["batch", 0.75, 2, 5.0, 70.0, 3.0])
        alone = contest.measure("disk/threads/get/4K/16", ("threads", "get", "4K", 16))
        self.assertEqual((alone["best_peer"], alone["peer_p50_us"]), ("one", 9.0))

    def test_fio_reads_from_as_much_as_the_records_take(self):
        contest, sizes = kv_contest.Contest(None, types.SimpleNamespace(keys=100, data_bytes=1 << 20, window_seconds=1), None, "place"), []

        def run_program(words, what):
            sizes.extend(word for word in words if word.startswith("--size="))
            return {"jobs": [{"read": {"total_ios": 1, "iops": 1.0, "clat_ns": {"percentile": {"50.000000": 1000}}}}]}, 5.0

        with unittest.mock.patch.object(kv_contest, "run_program", run_program):
            for operation, record in (("get", "4K"), ("get", "4.5K"), ("put", "4K"), ("mixed", "4K")):
                contest.fio(operation, "uring", record, 16, False)
            contest.fio_sync(1)
        self.assertEqual(sizes, [f"--size={size}" for size in (100 * 4096, 100 * 4608, 1 << 20, 1 << 20, 1 << 20)])
        for record, (grain, value, words) in kv_contest.RECORDS.items():
            self.assertIn(f"--bs={kv_contest.RECORD_BYTES[record]}", words)
            self.assertEqual(-(-(40 + 32 + value) // grain) * grain, kv_contest.RECORD_BYTES[record])

    def test_gets_are_simulated_by_what_bounds_them(self):
        one_us = 1e6
        for (cores, drives, depth), rate in (((1, 1, 1), one_us / (kv_drives.DRIVE_US + 2)), ((1, 24, 1024), one_us / 2), ((4, 24, 1024), 4 * one_us / 2),
                                             ((20, 1, 256), kv_drives.DRIVE_CHANNELS * one_us / kv_drives.DRIVE_US), ((8, 24, 8), 8 * one_us / (kv_drives.DRIVE_US + 2))):
            self.assertAlmostEqual(kv_drives.simulate(cores, drives, depth, 2.0, 5000) / rate, 1, delta=0.02, msg=(cores, drives, depth))

    def test_modelled_drives_are_beside_their_simulation(self):
        context = types.SimpleNamespace(quick=True, cases=cases.Cases(["drives/1", "cores/20", "cores_uring/1/"]), kept={}, progress=lambda text: None, say=lambda text: None)
        on_disk = kv.Plan(types.SimpleNamespace(quick=True, pairs=0)).gets_on_disk()
        self.assertEqual(on_disk, {"uring": "disk/uring/get/4K/64"})
        drives = kv_drives.Drives(context, self.PROGRAM, 1, 0.05, 2, on_disk)
        self.assertEqual(drives.needs(), {"drives/1/4/256", "disk/uring/get/4K/64"})
        rows = {row["case"]: row for row in drives.rows({"disk/uring/get/4K/64": 4.0})}
        self.assertEqual(set(rows), {"drives/1/1/4", "drives/1/1/256", "drives/1/4/4", "drives/1/4/256", *(f"{cores}/{depth}" for cores in ("cores/20", "cores_uring/1") for depth in (1, 16, 64, 256, 1024))})
        # No more than a drive does, whatever else is at work.
        self.assertLess(rows["drives/1/1/256"]["ours"], 1.2 * kv_drives.DRIVE_CHANNELS * 1e6 / kv_drives.DRIVE_US)
        self.assertEqual({row["unit"] for name, row in rows.items() if name.startswith("cores")}, {kv_drives.SIMULATED_UNIT})
        # A core that pays for the kernel's part of a get.
        self.assertAlmostEqual(rows["cores_uring/1/1024"]["ours"] / (1e6 / 4.0), 1, delta=0.02)
        self.assertEqual(rows["cores_uring/1/1024"]["core_us"], 4.0)
        summary = kv_drives.summarise(rows.values())
        self.assertEqual(set(summary), {"drives_1_workers_over_simulated_least", "drives_1_workers_over_simulated_most", "cores_20_simulated_per_second", "cores_uring_1_simulated_per_second"})

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

    def test_rocksdb_is_the_one_without_assertions_if_it_is_there(self):
        commands, clang = [], [shutil.which(name) for name in ("clang-19", "clang++-19")]
        context = types.SimpleNamespace(folder=self.folder, keep=self.folder / "keep", native_cc=clang[0], native_cxx=clang[1], spillcc="", spillcxx="", progress=lambda text: None,
                                        build=lambda what, command: commands.append([str(word) for word in command]))
        self.assertEqual(kv.RocksDb(context, None).library, kv.DEBIANS_ROCKSDB)
        self.assertIn("-lrocksdb", commands[-1])
        library = kv.Library(context)
        folder = library.kept / "library-native"
        folder.mkdir(parents=True)
        (folder / "librocksdb.a").touch()
        (folder / "made_of").write_text(library.made_of("native"))
        with unittest.mock.patch.object(kv.Library, "source", lambda _: self.folder / "source"):
            self.assertEqual(kv.RocksDb(context, None).library, kv.OWN_ROCKSDB)
        self.assertLessEqual({str(folder / "librocksdb.a"), str(self.folder / "source/include"), "-DNDEBUG"}, set(commands[-1]))
        self.assertNotIn("-lrocksdb", commands[-1])
        (folder / "made_of").write_text("another compiler")
        self.assertEqual(kv.RocksDb(context, None).library, kv.DEBIANS_ROCKSDB)

    def test_wrong_words_are_one_line_and_status_2(self):
        right = ["memory:64M", "get", "make=1", "keys=5"]
        wrong = [[], right[:1], ["memory:64M", "get"], ["nothing:x", *right[1:]], ["memory:64M", "nothing", "keys=5"],
                 ["memory:64M", "overwrite"], ["memory:64M", "overwrite", "keys=5", "capacity=5"], ["memory:64M", "fill"]]
        wrong += [[*right, word] for word in ("nothing", "no=1", "depth=0", "depth=-1", "value=23", "seconds=nan", "seconds=0", "by=fork",
                                              "durability=some", "theta=1", "keys=5x", "make=2", "most=", "workers=0", "workers=2")]
        wrong += [[*right, "by=tasks", "depth=2", "workers=3"]]
        for words in wrong:
            with self.subTest(words):
                assert_refused(self, run_in(self.folder, self.PROGRAM, *words), by="kv-load: ")


if __name__ == "__main__":
    unittest.main(verbosity=2)
