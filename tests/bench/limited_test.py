#!/usr/bin/env python3
"""The programs of `sort`, `indirect`, `micro`, `rocksdb`, `selfdriving` and `switch`, native and spilled, and how figures come of turns.  limited_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

from bench_case import BENCH, CLEAN, HANG_SECONDS, SPILLWAY, Case, assert_refused, built_in, run_in

import devices
import indirect
import kv
import limited
import lockstep
import memory_group
import micro
import random_access
import redis_load
import rocksdb
import selfdriving
import sort
import switch
from devices import Cleanup, forget
from memory_group import MemoryGroup, Unavailable

MIB = 1 << 20


class Programs(Case):
    def built(self, flags, *sources):
        native = built_in(self.folder, "clang++-19", *flags, *sources, "-o", "native")
        ours = built_in(self.folder, SPILLWAY.with_name("spillc++"), *flags, *sources, "-o", "ours")
        return native, ours

    def spilled(self, *words, memory="6M", options=()):
        return [SPILLWAY, "run", "--memory", memory, "--storage", "memory:64M", *options, "--stats", self.folder / "stats", "--", *words]

    def answers(self, command, *questions):
        ended = subprocess.run([str(word) for word in command], input="".join(question + "\n" for question in questions), capture_output=True, text=True,
                               timeout=HANG_SECONDS, env=CLEAN)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), command)
        lines = ended.stdout.splitlines()
        self.assertEqual((lines[0], len(lines)), ("started", len(questions) + 1))
        return lines[1:]

    def check_evicted(self):
        self.assertGreater(json.loads((self.folder / "stats").read_text())["cache"]["evictions"], 1000)

    def check_usage(self, program, *wrong):
        for words in wrong:
            assert_refused(self, run_in(self.folder, program, *words), by="")

    def test_all_sorts_sort_all_records(self):
        native, ours = self.built(sort.Workload.flags, *sort.Workload.sources)
        records = 120_000
        for way, threads in (("std", 1), ("gnu", 2), ("shuffle", 1), ("shuffle", 2)):
            with self.subTest(f"{way} {threads}"):
                words, questions = [way, records, threads], ["fill", "sort", "check", "fill", "check", "sort", "check"]
                natively, spilled = (self.answers(command, *questions) for command in ([native, *words], self.spilled(ours, *words)))
                self.check_evicted()
                for answer in (natively, spilled):
                    self.assertEqual(answer[0], f"ready {100 * records * (1 if way == 'std' else 2)}")
                    self.assertEqual([answer[2], answer[6]], [natively[2], natively[6]])
                    self.assertEqual((answer[2].split()[0], answer[6].split()[0]), ("right", "right"))
                    # New records each time; before they are sorted nobody says that they are.
                    self.assertNotEqual(answer[2], answer[6])
                    if way != "shuffle":
                        self.assertEqual(answer[4].split(), ["wrong", answer[6].split()[1]])
        self.check_usage(native, [], ["std", 0, 1], ["other", 5, 1], ["gnu", 5, 0])

    def test_sums_by_indices_are_right_wherever_the_arrays_lie(self):
        native, ours = self.built(indirect.FLAGS, indirect.SOURCE)
        words = [16 * MIB, MIB]
        place = self.folder / "data"
        self.assertEqual(run_in(self.folder, native, "fill", place, *words).returncode, 0)
        self.assertEqual(place.stat().st_size, 20 * MIB)
        for command in ([native, "heap", *words], [native, "map", place, *words], self.spilled(ours, "heap", *words)):
            ready, *runs = self.answers(command, "load", "run 0.01", "run 0.3")
            self.assertEqual(ready, f"ready {20 * MIB}")
            for run in runs:
                self.assertGreaterEqual(int(run.split()[0]), 1 << 15)
        self.check_evicted()
        with open(place, "r+b") as file:
            file.write(bytes(4096))
        ended = subprocess.run([native, "map", place, *map(str, words)], input="load\nrun 3\n", capture_output=True, text=True, timeout=HANG_SECONDS)
        self.assertEqual((ended.returncode, ended.stderr), (1, "indirect: a sum is wrong\n"))
        self.check_usage(native, [], ["heap", 16 * MIB], ["heap", 5, MIB], ["map", place, 16 * MIB, 5], ["other", place, *words])

    def test_reads_of_pages_stay_within_what_they_are_told(self):
        flags = [*random_access.FLAGS, f"-I{SPILLWAY.parent.parent / 'include'}", f"-I{BENCH.resolve().parent / 'include'}"]
        native, ours = self.built(flags, random_access.SOURCE)
        questions = ["fill", f"within {2 * MIB}", "run 2 pages 0.05", "run 2 read 0.05", "run 1 rmw 0.05", "check"]
        for command in ([native, "heap", 16 * MIB], self.spilled(ours, "heap", 16 * MIB, memory="8M")):
            answers = self.answers(command, *questions)
            self.assertEqual((answers[1], answers[-1]), ("ready", "right"))
            self.assertTrue(all(int(answer.split()[0]) > 0 for answer in answers[2:5]))
        self.check_evicted()
        for question in ("within 5", f"within {64 * MIB}", "run 1 other 0.1"):
            ended = subprocess.run([native, "heap", str(16 * MIB)], input=f"fill\n{question}\n", capture_output=True, text=True, timeout=HANG_SECONDS)
            self.assertEqual(ended.returncode, 2, question)

    def test_ways_to_use_memory_find_the_same_wherever_it_is(self):
        native, ours = self.built(selfdriving.Pattern.flags, *selfdriving.Pattern.sources)
        for way in ("loop", "zipf", "scan", "tree"):
            with self.subTest(way):
                found = []
                for command in ([native, way, 8], self.spilled(ours, way, 8, options=["--spill-all", "--policy", "auto"])):
                    ready, *runs = self.answers(command, "load", "run", "run")
                    self.assertEqual(ready, f"ready {8 * MIB}")
                    found.append([run.split()[2] for run in runs])
                self.assertEqual(*found)
                self.check_evicted()
        self.check_usage(native, [], ["loop"], ["loop", 0], ["other", 5])

    def test_a_loop_goes_on_where_memory_gets_short(self):
        native, ours = self.built(switch.FLAGS, switch.SOURCE)
        for command in ([native, 4 * MIB, 16 * MIB, 0.1], self.spilled(ours, 4 * MIB, 16 * MIB, 0.1, memory="8M", options=["--spill-all"])):
            ended = run_in(self.folder, *command)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            found = json.loads(ended.stdout)
            # Of a thread that makes progress between any two looks there is no pause.
            self.assertGreaterEqual(found.pop("pause_seconds"), 0, ended.stdout)
            self.assertTrue(set(found) == {"before", "after", "fill_seconds"} and all(value > 0 for value in found.values()), ended.stdout)
        self.check_evicted()
        self.check_usage(native, [], [5, 5, 5], [3 * MIB, MIB, 1], [MIB, MIB, 0])

    def test_mixgraph_finds_the_same_in_tables_of_both_kinds(self):
        """With Debian's librocksdb: compiling RocksDB takes too long here."""
        if not kv.ROCKSDB_HEADER.exists():
            self.skipTest("RocksDB is not there")
        sources = [rocksdb.SOURCES / "mixgraph.cc", rocksdb.SOURCES / "random_maps.cc"]
        program = built_in(self.folder, "clang++-19", *rocksdb.LOAD_FLAGS, "-DNDEBUG", *sources, "-Wl,--wrap=mmap", "-lrocksdb", "-o", "mixgraph")
        found = []
        for table in ("plain", "block"):
            self.assertEqual(run_in(self.folder, program, "make", table, f"data-{table}", 20_000).returncode, 0)
            ready, *runs = self.answers([program, "run", table, self.folder / f"data-{table}", 20_000, MIB, 2], "open", "run 4000", "run 4000")
            self.assertGreater(int(ready.split()[1]), 20_000 * 64)
            found.append([run.split()[2] for run in runs])
        self.assertEqual(*found)
        self.assertNotEqual(*found[0])
        self.check_usage(program, [], ["make", "plain", "x"], ["make", "other", "x", 20_000], ["make", "plain", "x", 5], ["run", "plain", "data-plain", 20_000, 0, 0])


class Redis(Case):
    def test_servers_with_memory_for_a_quarter_are_filled_and_asked_beside_swap(self):
        server = shutil.which("redis-server")
        if not server or not shutil.which("redis-benchmark") or os.geteuid() != 0:
            self.skipTest("needs redis, and root for swap")
        context = types.SimpleNamespace(folder=self.folder, storage=self.folder, spillway=SPILLWAY, progress=lambda text: None, say=lambda text: None)
        measured = types.SimpleNamespace(context=context, ours={"ours": [], "two_bodies": []}, pairs=1, notes=[], stats=lambda side: self.folder / f"stats-{side}.json")
        # Debian's server was not compiled by spillcc: only its large blocks spill.
        with Cleanup() as cleanup, unittest.mock.patch.multiple("redis_load", VALUE_BYTES=70_000, CLIENTS=2, PIPELINED=1):
            rows = redis_load.limited(measured, dict.fromkeys(("native", "ours", "two_bodies"), server), "disk", cleanup, 600)
        self.assertEqual([row["case"] for row in rows], ["disk/redis/get", "disk/redis/set"])
        self.assertTrue(all(row["ratio"] > 0 and row["best_peer"] == "swap" for row in rows), rows)


class Figures(Case):
    def test_a_limited_row_is_over_the_better_peer(self):
        row = limited.limited_row("c", {"ours": [2.0, 1.0, 2.0], "mmap": [4.0, 2.0, 4.0], "swap": [8.0, 1.0, 8.0], "native": [1.0, 1.0, 1.0], "two_bodies": [4.0, 2.0, 4.0]},
                                  ["ours", "two_bodies"])
        self.assertEqual((row["best_peer"], row["ratio"], row["swap_ratio"], row["native_ratio"], row["bodies"]), ("mmap", 2, 4, 0.5, 1))
        self.assertEqual((row["two_bodies_ratio"], row["spread"], row["ours"], row["peer"], row["pairs"]), (1, 0, 2, 4, 3))
        # There may be no second side of ours.
        row = limited.limited_row("c", {"ours": [1.0], "native": [1.0]}, ["ours", "two_bodies"])
        self.assertEqual((row["best_peer"], row["ratio"], row["pairs"], "two_bodies_ratio" in row), ("native", 1, 1, False))

    def test_nothing_stays_in_the_page_cache_of_a_file_that_is_to_be_read_within_a_limit(self):
        with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
            file.write(bytes(1 << 20))
            file.flush()
            read = lambda: os.preadv(file.fileno(), [bytearray(4096)], 0, os.RWF_NOWAIT)
            self.assertEqual(read(), 4096)
            forget(file.name)
            with self.assertRaises(BlockingIOError):
                read()

    def test_a_contest_begins_with_nothing_mapped_in_the_page_cache(self):
        forgotten = []
        with unittest.mock.patch.object(limited, "forget", forgotten.append), Cleanup() as cleanup:
            limited.Contest(None, cleanup, types.SimpleNamespace(mapped="mapped"), limited.MIB)
        self.assertEqual(forgotten, ["mapped"])

    def test_a_peer_that_is_late_is_ended_and_left_out(self):
        with Cleanup() as cleanup:
            contest = limited.Contest(None, cleanup, None, limited.MIB, peer_seconds=0.1)
            late = contest.start("mmap", ["sleep", "30"], limited=False)
            contest.start("ours", ["sh", "-c", "read question && echo done"], limited=False)
            self.assertIsNone(contest.ask("mmap", "question\n"))
            self.assertIsNotNone(late.process.poll())
            self.assertEqual((contest.ask("mmap", "question\n"), contest.ask("ours", "question\n")), (None, "done"))
            self.assertEqual((contest.late, list(contest.running), contest.notes), ({"mmap"}, ["ours"], []))
            self.assertEqual(contest.left_out(), ["the mmap program was not done with a turn after 0.1 s"])
            contest.start("mmap", ["cat"], limited=False)
            self.assertEqual((contest.late, list(contest.running), contest.left_out()), (set(), ["ours", "mmap"], []))
            contest.finish()

    def starved(self, cleanup):
        """A group that does not kill, and a program that needs four times its limit."""
        try:
            group = cleanup.acquire(lambda: MemoryGroup.create(16 * MIB, "waits"), MemoryGroup.remove)
        except Unavailable as reason:
            self.skipTest(str(reason))
        group.forbid_swap()
        if not group.forbid_kills():
            self.skipTest("control groups of version 2 kill")
        return group, cleanup.enter_context(lockstep.Programs()).start([sys.executable, "-c", "print(len(b'1' * (64 << 20)), flush=True)"], group)

    def test_who_may_not_be_killed_waits_for_memory(self):
        with Cleanup() as cleanup:
            group, program = self.starved(cleanup)
            with self.assertRaises(lockstep.Late):
                program.read(1)
            self.assertEqual((group.kills(), program.process.poll()), (0, None))
            group.limit_bytes = 128 * MIB
            self.assertEqual(program.read(HANG_SECONDS), str(64 * MIB))

    def test_who_waits_for_memory_in_vain_is_killed(self):
        with unittest.mock.patch.object(memory_group, "RETRIES_MOST", 20), Cleanup() as cleanup:
            group, program = self.starved(cleanup)
            with self.assertRaisesRegex(lockstep.Failure, "signal 9"):
                program.read(HANG_SECONDS)
            self.assertEqual(group.kills(), 1)

    def chosen(self, *took, waited=None):
        """What a peer does whose turns in three ways take so long: 0: it is late, None: it was killed. waited: where to put how long each was waited for."""
        done = []
        with Cleanup() as cleanup:
            contest, left = limited.Contest(None, cleanup, None, limited.MIB), list(took)

            def turn():
                if waited is not None:
                    waited.append(contest.peer_seconds)
                seconds = left.pop(0)
                if seconds == 0:
                    contest.late.add("mmap")
                return seconds or None

            def begin_anew():
                contest.late.discard("mmap")
                done.append("anew")

            best = contest.choose("mmap", {way: functools.partial(done.append, way) for way in ("a", "b", "c")}, turn, begin_anew)
            self.assertEqual(contest.peer_seconds, limited.ANSWER_SECONDS)
        return best, done

    def test_a_peer_works_in_the_way_in_which_it_was_fastest(self):
        self.assertEqual(self.chosen(3, 1, 2), ("b", ["a", "b", "c", "b"]))
        self.assertEqual(self.chosen(0, 2, 1), ("c", ["a", "anew", "b", "c", "c"]))
        self.assertEqual(self.chosen(2, 3, 0), ("a", ["a", "b", "c", "anew", "a"]))
        self.assertEqual(self.chosen(0, 0, 0), ("", ["a", "anew", "b", "anew", "c"]))
        self.assertEqual(self.chosen(2, None, None), ("a", ["a", "b", "c", "a"]))

    def test_another_way_is_not_waited_for_longer_than_the_best_one_took(self):
        most, little = limited.ANSWER_SECONDS, limited.BEGIN_SECONDS
        for took, expected in (((40, 30, 50), [most, 40, 30]), ((1, 2, 3), [most, little, little]), ((0, 40, 0), [most, most, 40])):
            waited = []
            self.chosen(*took, waited=waited)
            self.assertEqual(waited, expected, took)
        # Who cannot begin anew is waited for.
        with Cleanup() as cleanup:
            contest, waited, turns = limited.Contest(None, cleanup, None, limited.MIB), [], [2, 1]
            self.assertEqual(contest.choose("swap", {1: int, 8: int}, lambda: waited.append(contest.peer_seconds) or turns.pop(0)), 8)
        self.assertEqual(waited, [most, most])

    def test_pages_come_in_from_swap_as_it_was_chosen_for_who_is_asked(self):
        cluster = self.folder / "page-cluster"
        with Cleanup() as cleanup, unittest.mock.patch.object(devices, "CLUSTER", cluster):
            contest = limited.Contest(None, cleanup, None, limited.MIB)
            for side in ("ours", "mmap", "swap"):
                contest.start(side, ["cat"], swap=side != "ours", limited=False)
            contest.ways_to_swap()[8]()
            for side, told in (("mmap", "0"), ("ours", "0"), ("swap", "3"), ("ours", "3"), ("mmap", "0")):
                contest.ask(side, "question\n")
                self.assertEqual(cluster.read_text(), told, side)
            contest.finish()

    def test_turns_that_a_late_peer_was_done_with_count_as_they_were(self):
        self.assertEqual(limited.reckoned([30.0, 20.0], 4, 60), [30.0, 20.0, 60, 60])
        self.assertEqual(limited.reckoned([], 2, 60), [60, 60])
        row = limited.limited_row("c", {"ours": [10.0] * 5, "swap": limited.reckoned([20.0, 20.0, 20.0], 5, 60)}, ["ours"])
        self.assertEqual((row["best_peer"], row["swap_ratio"]), ("swap", 2))

    def test_nothing_else_that_is_late_is_left_out(self):
        with Cleanup() as cleanup, unittest.mock.patch.object(limited, "ANSWER_SECONDS", 0.1), self.assertRaisesRegex(limited.Failure, "gave no answer"):
            contest = limited.Contest(None, cleanup, None, limited.MIB)
            contest.start("ours", ["sleep", "100"], limited=False)
            contest.ask("ours", "slow\n")

    def test_tasks_are_beside_peers_with_few_threads_and_with_many(self):
        def row_of(rates):
            contest = random_access.Contest.__new__(random_access.Contest)
            contest.plan = types.SimpleNamespace(pairs=3, case_seconds=100, warm_seconds=0.1, window_seconds=1)
            contest.device, contest.notes, contest.running = "disk", [], dict.fromkeys(("ours", "mmap", "swap"))

            def window(*side):
                if rates[side[:3]] is None:
                    raise limited.Failure("random ended early by signal 9")
                return rates[side[:3]]

            contest.window = window
            with unittest.mock.patch.object(random_access.shutil, "which", lambda _: None):
                return contest.measure("read", random_access.TASKS), contest.notes

        rates = {("ours", 64, "tasks"): 60.0, ("mmap", 2, "read"): 20.0, ("mmap", 16, "read"): 40.0, ("swap", 2, "read"): 30.0, ("swap", 16, "read"): 15.0}
        row, notes = row_of(rates)
        self.assertEqual((row["best_peer"], row["ratio"], notes), ("swap", 2, []))
        self.assertEqual([row[f"{side}_ratio"] for side in ("mmap", "mmap_16", "swap", "swap_16")], [3, 1.5, 2, 4])
        row, notes = row_of(rates | {("swap", 16, "read"): None})
        self.assertEqual((row["best_peer"], row["ratio"], row["mmap_16_ratio"], len(notes)), ("mmap", 3, 1.5, 1))
        self.assertFalse({"swap_ratio", "swap_16_ratio"} & set(row))

    def test_a_resident_row_is_over_native_code(self):
        row = limited.resident_row("c", {"ours": [3.0, 3.0], "native": [2.0, 2.0], "two_bodies": [2.0, 2.0]})
        self.assertEqual((row["ratio"], row["two_bodies_ratio"], row["bodies"], row["unit"]), (1.5, 1, 1, "s"))

    def test_what_was_not_spilled_or_not_resident_is_a_failure(self):
        path = self.folder / "stats"
        for allocated, evictions, resident, right in ((100, 0, True, True), (99, 0, True, False), (100, 1, True, False), (100, 0, False, False), (100, 1, False, True)):
            path.write_text(json.dumps({"spill": {"allocated_bytes": allocated}, "cache": {"evictions": evictions}}))
            if right:
                limited.check_stats("c", path, 100, resident)
            else:
                with self.assertRaises(limited.Failure):
                    limited.check_stats("c", path, 100, resident)

    def test_results_that_differ_are_a_failure(self):
        limited.check_same("c", {"a": 1, "b": 1})
        with self.assertRaisesRegex(limited.Failure, "results differ: a 1, b 2"):
            limited.check_same("c", {"a": 1, "b": 2})

    def test_reads_beside_those_of_fio(self):
        self.assertEqual(limited.fio_columns([2.0, 3.0, 4.0], [4.0, 4.0, 4.0]), {"reads_per_second": 3, "fio_ratio": 0.75, "fio_spread": 2 / 3})
        self.assertEqual(limited.fio_columns([2.0], []), {"reads_per_second": 2})

    def test_summaries(self):
        self.assertEqual(sort._summary([{"case": "resident/std/1", "ratio": 2.0}, {"case": "disk/gnu/8/2", "ratio": 3.0, "best_peer": "swap", "swap_ratio": 3.0, "native_ratio": 0.5}]),
                         {"resident_geomean_ratio": 2, "resident_worst_ratio": 2, "gnu_8_disk_swap": 3, "gnu_8_disk_native": 0.5})
        self.assertEqual(indirect._summary([{"case": "resident", "ratio": 2.0, "two_bodies_ratio": 1.0}, {"case": "zram", "ratio": 3.0, "mmap_ratio": 3.0, "fio_ratio": 0.9}]),
                         {"resident_ratio": 2, "resident_two_bodies_ratio": 1, "zram_fio_ratio": 0.9, "zram_mmap_ratio": 3})
        self.assertEqual(micro._summary([{"case": "disk/8B/100/1", "native_ratio": 0.5, "mmap_ratio": 1.0}, {"case": "disk/8B/50/2", "native_ratio": 0.5, "mmap_ratio": 4.0},
                                         {"case": "memory/8B/2", "native_ratio": 0.75, "satc_ratio": 0.25}]),
                         {"8B_resident_native_ratio": 0.5, "8B_resident_native_worst": 0.5, "8B_50_disk_2": 4, "8B_memory_2": 0.75, "8B_memory_2_satc": 0.25})


if __name__ == "__main__":
    unittest.main(verbosity=2)
