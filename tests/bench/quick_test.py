#!/usr/bin/env python3
"""Whole benchmarks, with less data and one pair: what they write, and that they leave nothing behind.  quick_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from bench_case import HANG_SECONDS, LIBEXEC, SPILLWAY, Case, assert_refused, bench

import kept
import kernels
import kv
import kv_index
import kv_restart

KERNELS = 19


def persist_programs_are_there():
    return (LIBEXEC / "persist-maps").exists()


def left_behind():
    """What a benchmark might forget: groups, devices, swap, files."""
    groups = subprocess.run("find /sys/fs/cgroup -name 'spillway-bench*' -type d", shell=True, capture_output=True, text=True).stdout
    cluster = pathlib.Path("/proc/sys/vm/page-cluster")
    return {
        "groups": groups.split(),
        "zram": sorted(path.name for path in pathlib.Path("/sys/block").glob("zram*")),
        "swap": pathlib.Path("/proc/swaps").read_text().splitlines()[1:],
        "page-cluster": cluster.read_text() if cluster.exists() else "",
    }


class Quick(Case):
    def results(self, name, *arguments):
        storage = self.folder / "storage"
        storage.mkdir()
        before = left_behind()
        ended = bench(name, "--quick", "--pairs", 1, "--out", self.folder / "out", "--storage", storage, *arguments)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(left_behind(), before)
        self.assertEqual(list(storage.iterdir()), [])
        left = {path.name for path in (self.folder / "out").iterdir()}
        if "--only" in arguments:
            left.discard(name + kept.SUFFIX)  # for a run of all cases
        self.assertEqual(left, {name + suffix for suffix in (".json", ".md", ".svg")})
        result = json.loads((self.folder / "out" / f"{name}.json").read_text())
        self.assertEqual(result["name"], name)
        self.assertLessEqual({"cpu", "cores", "memory_bytes", "load_before", "load_after"}, set(result["machine"]))
        for row in result["rows"]:
            self.assertLessEqual({"case", "ours", "peer", "ratio", "spread", "unit"}, set(row))
            self.assertGreater(row["ratio"], 0)
        return result

    def test_a_case_that_is_none_is_one_line_and_status_2(self):
        """Of those that compile their programs before they know; the others are in driver_test.py."""
        for name in ("kernels", "graph"):
            assert_refused(self, bench(name, "--only", "nothing", cwd=self.folder))

    def test_kernels(self):
        result = self.results("kernels")
        one, two = ([row for row in result["rows"] if row["case"].startswith(name)] for name in ("O2/", "O2_2_threads/"))
        self.assertEqual((len(one), len(two)), (KERNELS, len(kernels.QUICK_OF_THREADS)))
        self.assertTrue(all(row["tricache_ratio"] > 0 for row in one))
        self.assertTrue(all(row["bodies"] == 1 for row in one + two))
        self.assertLessEqual({"geomean_ratio", "worst_ratio", "tricache_geomean_ratio", "geomean_ratio_O2_2_threads"}, set(result["summary"]))

    def test_instructions(self):
        if not shutil.which("valgrind"):
            self.skipTest("valgrind is not there")
        result = self.results("instructions", "--only", "chase_l2", "--only", "sequential_l2")
        chase, sequential = sorted(result["rows"], key=lambda row: row["case"])
        # Counts, not times: each step of a chase is translated, a page of a scan once.
        self.assertTrue(4 < chase["per_access"] < 20, chase)
        self.assertTrue(0 < sequential["per_access"] < 1, sequential)

    def test_random(self):
        result = self.results("random", "--only", "disk/read/1", "--only", "disk/read/64", "--only", "disk/rmw/4")
        if any("nothing measured" in note for note in result["notes"]):
            self.skipTest("; ".join(result["notes"]))
        self.assertEqual([row["case"] for row in result["rows"]], ["disk/read/1", "disk/read/64", "disk/rmw/4"])
        self.assertLessEqual({"read_disk_1", "read_disk_64", "rmw_disk_4", "worst_disk"}, set(result["summary"]))
        self.assertEqual("fio_ratio" in result["rows"][1], shutil.which("fio") is not None)

    def out_of_core(self, name, *cases):
        """Of a benchmark whose cases begin with resident and devices: its result, and those of its cases that this machine has."""
        result = self.results(name, *(word for case in cases for word in ("--only", case)))
        left_out = [device for device in ("disk", "zram") if any("nothing measured out of core" in note or f"nothing on {device}" in note for note in result["notes"])]
        self.assertEqual([row["case"] for row in result["rows"]], [case for case in cases if case.split("/")[0] not in left_out])
        self.assertTrue(all(row["bodies"] == 1 for row in result["rows"]))
        return result

    def test_graph(self):
        result = self.out_of_core("graph", "resident/kron/pr/1", "resident/kron/sssp/2", "disk/kron/pr/25/2")
        self.assertLessEqual({"resident_geomean_ratio", "resident_worst_ratio"}, set(result["summary"]))
        for row in result["rows"][2:]:
            self.assertIn(row["advice"], ("sequential", "random"))
            self.assertIn(row["swapped_in"], (1, 8))
            self.assertLessEqual({"mmap_disk_25", "swap_disk_25", "native_disk_25"}, set(result["summary"]))

    def test_sort(self):
        result = self.out_of_core("sort", "resident/gnu/2", "zram/shuffle/4/2")
        self.assertIn("resident_geomean_ratio", result["summary"])
        self.assertEqual("shuffle_4_zram_swap" in result["summary"], len(result["rows"]) == 2)

    def test_cases_are_not_measured_twice(self):
        """What several cases of one set of programs, and each alone, leave for the next run."""
        for name, first, second in (("sort", "resident/gnu/2", "resident/std/1"), ("batch", "8/128", "16/128"), ("persist", "model/log/4", "governor"), ("pagecache", "hot/array", "nodes/hot/2")):
            with self.subTest(name):
                def measured(*words):
                    ended = bench(name, "--quick", "--pairs", 1, "--out", self.folder, "--storage", self.folder, *words)
                    self.assertEqual(ended.returncode, 0, ended.stderr)
                    return json.loads((self.folder / f"{name}.json").read_text())

                rows = measured("--only", first)["rows"]
                both = measured("--only", first, "--only", second, "--resume")
                self.assertEqual([row for row in both["rows"] if row["case"] in [each["case"] for each in rows]], rows)
                self.assertGreater(len(both["rows"]), len(rows))
                again = measured("--only", first, "--only", second, "--resume")
                self.assertEqual([again[part] for part in ("rows", "summary")], [both[part] for part in ("rows", "summary")])

    def test_indirect(self):
        result = self.out_of_core("indirect", "resident", "disk")
        self.assertIn("resident_ratio", result["summary"])
        self.assertEqual("disk_mmap_ratio" in result["summary"], len(result["rows"]) == 2)

    def test_selfdriving(self):
        result = self.results("selfdriving", "--only", "loop", "--only", "tree")
        self.assertEqual([row["case"] for row in result["rows"]], ["loop", "tree"])
        for row in result["rows"]:
            self.assertIn(row["chosen"], ("clock", "2q", "s3fifo", "random", "nrlfu"))
            self.assertEqual(row["ratio"], row[row["best"]])
        self.assertLessEqual({"geomean_ratio", "worst_ratio", "geomean_first_ratio", "worst_reads_ratio", "loop_ratio", "tree_ratio"}, set(result["summary"]))

    def test_micro(self):
        result = self.out_of_core("micro", "memory/8B/2", "memory/4K/2", "zram/8B/100/2", "zram/4K/100/2", "zram/8B/50/2", "zram/4K/50/2")
        self.assertTrue(all(row["satc_ratio"] > 0 for row in result["rows"][:2]))
        for row in result["rows"][2:]:
            self.assertEqual(row["misses"] > 0, "/50/" in row["case"], row)
        if result["rows"][2:]:
            self.assertLessEqual({"8B_resident_native_ratio", "4K_50_zram_2"}, set(result["summary"]))

    def test_demo(self):
        result = self.results("demo")
        [row] = result["rows"]
        self.assertGreater(row["misses"], row["budget_bytes"] // 4096)
        self.assertGreater(result["summary"]["data_over_budget"], 4)
        self.assertLessEqual({"spilled_seconds", "native_seconds"}, set(result["summary"]))

    def test_switch(self):
        result = self.results("switch")
        self.assertEqual([row["case"] for row in result["rows"]][:3], ["before/ours", "after/ours", "pause/ours"])
        self.assertLessEqual({"before_ratio", "after_ratio", "pause_ms_most"}, set(result["summary"]))

    def test_fibers(self):
        result = self.results("fibers", "--only", "modelled/1", "--only", "disk/4096")
        self.assertEqual([row["case"] for row in result["rows"]], ["modelled/1", "disk/4096"])
        self.assertTrue(all(row["cpu_ratio"] > 0 for row in result["rows"]))
        self.assertLessEqual({"modelled_geomean_ratio", "disk_worst_ratio", "modelled_cpu_ratio"}, set(result["summary"]))

    def test_delegation(self):
        result = self.results("delegation", "--only", "misses/modelled/1/2", "--only", "hits/1", "--only", "instructions/hit", "--only", "entries")
        self.assertEqual([row["case"] for row in result["rows"]][:2], ["misses/modelled/1/2", "hits/1"])
        self.assertTrue(12 < result["summary"]["entry_bytes_resident"] < 13)
        self.assertTrue(4.2 < result["summary"]["entry_bytes_stored"] < 4.5)
        if not result["notes"]:
            self.assertLess(result["summary"]["instructions_hit_alone"], 1000)
            self.assertGreater(result["summary"]["instructions_hit"], result["summary"]["instructions_hit_alone"])

    def test_hitrate(self):
        result = self.results("hitrate")
        self.assertEqual([row["case"] for row in result["rows"]],
                         ["zipfleaf/1929", "zipf/496", "zipf/1806", "zipfscan/2336", "zipfshift/1217", "loop/202", "sizes/482", "sizes/964", "sizes/1929", "sizes/3858"])
        self.assertLessEqual({"mean_nrlfu/16", "mean_alfu/16", "mean_opt", "worst_loss_16_lru", "zipfleaf_nrlfu/8"}, set(result["summary"]))
        for row in result["rows"]:
            self.assertLessEqual(max(row[policy] for policy in ("lru", "2q", "nrlfu/8", "s3fifo/16") if policy in row), row["opt"])

    def test_tasks(self):
        result = self.results("tasks")
        cases = [row["case"] for row in result["rows"]]
        self.assertLessEqual({"switch", "spawn", "notify_local", "mutex", "mutex_local", "alive/memory", "alive/spawn", "alive/end"},
                             set(cases))
        self.assertLessEqual({"switch_ns", "switch_pthreads_ratio", "bytes_per_task", "tasks_alive"}, set(result["summary"]))
        if not result["notes"]:
            self.assertLessEqual({"switch_instructions", "notify_remote_ratio", "bytes_per_task_ratio"}, set(result["summary"]))
            self.assertLess(result["summary"]["switch_instructions"], 1000)

    def test_batch(self):
        result = self.results("batch", "--only", "16/512/20k/1", "--only", "8/128")
        self.assertLessEqual({f"{case}/{engine}" for case in ("16/512/20k/1", "16/512/20k/1/clustered", "8/128/20k/1") for engine in ("direct", "prefetch", "tagged", "cache_buckets", "decoupled", "partitioned", "auto")},
                             {row["case"] for row in result["rows"]})
        self.assertLessEqual({"direct_times_as_fast", "tagged_times_as_fast", "partitioned_times_as_fast", "auto_as_good_share", "auto_over_direct_worst"},
                             set(result["summary"]))
        for choice in result["choices"]:
            self.assertLess(0, choice["over_best"])
            self.assertLessEqual(choice["over_best"], 1)

    def test_batch_stored(self):
        result = self.results("batch-stored")
        self.assertEqual([row["case"] for row in result["rows"]], ["plain/1", "plain/32", "log/1", "log/32"])
        for row in result["rows"]:
            self.assertLess(row["read"], row["peer_read"])
            self.assertGreater(row["ours"], 0)

    def test_figures_of_batch(self):
        if not shutil.which("valgrind"):
            self.skipTest("valgrind is not there")
        result = self.results("batch", "--only", "figure4.3", "--only", "figure4.7/128", "--only", "table4.5/16/1", "--only", "colouring/misses/512")
        self.assertLessEqual({"figure4.3/16/1", "figure4.7/128/20k", "figure4.7/128/80k", "table4.5/16/1", "colouring/misses/512/4"}, {row["case"] for row in result["rows"]})
        self.assertLessEqual({"base_cost_more_cycles", "figure4.7_misses_over_model", "colouring_misses_ratio"}, set(result["summary"]))
        # A count, not a time: pages of other colours take no places of cache-buckets.
        self.assertLess(result["summary"]["colouring_misses_ratio"], 1)

    def test_kv_index(self):
        if not kv_index.PEER_HEADER.exists():
            self.skipTest("libcuckoo is not there")
        result = self.results("kv-index")
        self.assertLessEqual({"insert/1M/1_per_us", "lookup/1M/2_per_us", "latency_p99_99_ns", "latency_p99_99_sized_ns", "bytes_per_key_least",
                              "bytes_per_key_mean", "insert/1M/1_ratio", "lookup_one/1M/2_ratio"}, set(result["summary"]))

    def test_kv(self):
        if not shutil.which("fio"):
            self.skipTest("fio is not there")
        result = self.results("kv", "--only", "disk/uring/get", "--only", "ram/aio/put", "--only", "sync", "--only", "rocksdb/get", "--only", "tail",
                              "--only", "model")
        cases = [row["case"] for row in result["rows"]]
        self.assertEqual(cases[:6], ["disk/uring/get/4K/1", "disk/uring/get/4K/64", "sync/uring/64", "sync/uring/64/beside", "sync/threads/64",
                                     "sync/threads/64/beside"])
        tails = [row for row in result["rows"] if "tail/" in row["case"]]
        self.assertEqual([row["case"] for row in tails],
                         ["tail/uniform/32", "tail/zipfian/32", "model/tail/uniform", "model/tail/zipfian"])
        for row in tails:
            self.assertGreater(row["ours"], row["p50_us"])
            self.assertGreater(row["peer"], 0)
        self.assertLessEqual({"get_ratio_disk_uring", "ios_per_get", "allocations_per_get", "sync_uring_64_ratio"}, set(result["summary"]))
        self.assertEqual("rocksdb_get_64_ratio" in result["summary"], kv.ROCKSDB_HEADER.exists())
        if not any("nothing on ram" in note for note in result["notes"]):
            self.assertLessEqual({"put_user_us_aio", "put_cpu_us_aio", "put_ratio_ram_aio"}, set(result["summary"]))
        self.assertLessEqual({"case_seconds", "drives_case_seconds", "window_seconds", "tail_seconds"}, set(result["parameters"]))
        self.assertLessEqual(result["summary"]["ios_per_get"], 1.005)
        self.assertEqual(result["summary"]["allocations_per_get"], 0)

    def test_kv_restart(self):
        result = self.results("kv-restart")
        self.assertEqual([row["case"] for row in result["rows"]], kv_restart.CASES)
        self.assertLessEqual({"clean_seconds", "clean_read_bytes", "killed_seconds", "killed_read_bytes", "killed_replayed_records", "log_seconds",
                              "clean_peak_bytes", "killed_peak_bytes", "log_peak_bytes", "close_seconds", "checkpoint_bytes",
                              "load_seconds", "load_cpu_seconds"}, set(result["summary"]))
        self.assertEqual(result["summary"]["clean_replayed_records"], 0)
        self.assertLess(result["summary"]["clean_read_bytes"], 4 << 20)

    def test_device(self):
        if not shutil.which("fio"):
            self.skipTest("fio is not there")
        result = self.results("device", "--only", "disk/uring/read/4K")
        self.assertEqual([row["case"] for row in result["rows"]], ["disk/uring/read/4K/1", "disk/uring/read/4K/32"])
        for row in result["rows"]:
            self.assertGreater(row["cpu_ratio"], 0)
            self.assertGreaterEqual(row["peer_spread"], 0)
        self.assertLessEqual({"mean_ratio_disk", "worst_ratio_disk", "rows_below_spread_disk", "mean_cpu_ratio_disk"}, set(result["summary"]))

    def test_encrypt(self):
        result = self.results("encrypt", "--only", "disk")
        self.assertEqual([row["case"] for row in result["rows"]],
                         [f"disk/{case}/4K/32" for case in ("page/read", "page/write", "record/get", "record/put")])
        self.assertEqual(set(result["summary"]), {f"{case}_{what}_disk" for case in ("page_read", "page_write", "record_get", "record_put")
                                                  for what in ("us", "ratio")})

    def test_pagecache(self):
        result = self.results("pagecache", "--only", "hot", "--only", "cold/disk/mixed", "--only", "cold/zram/read/threads", "--only", "nodes",
                              "--only", "zipf/disk/8", "--only", "btree/disk/search", "--only", "btree/disk/update/8")
        cases = [row["case"] for row in result["rows"]]
        self.assertLessEqual({"hot/array/1", "hot/pread/2", "hot/scaling", "cold/disk/mixed/tasks/64", "cold/disk/mixed/threads/1"}, set(cases))
        self.assertEqual("hot/instructions/locked" in cases, shutil.which("valgrind") is not None)
        self.assertEqual("cold/zram/read/threads/1" in cases, not any("nothing on zram" in note for note in result["notes"]))
        for case in ("zipf/disk/8", "btree/disk/update/8"):
            self.assertEqual(case in cases, not any(f"nothing of {case}" in note for note in result["notes"]))
        self.assertLessEqual({f"nodes/{kind}/{nodes}" for kind in ("hot", "cold") for nodes in (2, 4, 8)}, set(cases))
        self.assertLessEqual({"btree/disk/search/tasks/64", "btree/disk/search/queue/64"}, set(cases))
        self.assertLessEqual({"hot_ns_1", "nodes_hot_4_messages", "hot_scaling_ratio", "hot_cpu_scaling", "hot_array_1_ratio", "cold_disk_mixed_worst",
                              "btree_disk_search_queue_64_ratio"}, set(result["summary"]))
        for row in result["rows"]:
            if row["case"].startswith("hot/array"):
                self.assertLess(row["reads"], 1e-4)
            if row["case"].startswith("cold/zram/read/threads"):
                self.assertEqual("pread_ratio" in row, not any("kernel's page cache" in note for note in result["notes"]))

    def test_persist_programs(self):
        if not persist_programs_are_there():
            self.skipTest("libpmemobj is not there")
        result = self.results("persist-programs", "--only", "rbtree", "--only", "hashmap_atomic")
        self.assertEqual([row["case"] for row in result["rows"]], ["rbtree", "hashmap_atomic"])
        self.assertLessEqual({"worst_auto_ratio", "best_epoch_ratio", "worst_decoupled_ratio"}, set(result["summary"]))

    def test_persist(self):
        result = self.results("persist", "--only", "lines/clwb/dirty/4", "--only", "hot/4/4/round", "--only", "model/log", "--only", "governor", "--only", "crowd", "--only", "threads", "--only", "flushers")
        cases = [row["case"] for row in result["rows"]]
        if not result["notes"]:
            self.assertLessEqual({f"{case}/{way}" for case in ("lines/clwb/dirty/4/1", "hot/4/4/round/1") for way in ("inline", "epoch", "auto", "decoupled")}, set(cases))
            self.assertLessEqual({"hot_epoch_speed", "hot_4_epoch_speed_least", "lines_auto_speed", "auto_over_best", "decoupled_times_as_slow"}, set(result["summary"]))
        self.assertLessEqual({"model/log/24/decoupled", "crowd/log/24/0.03", "governor/log-hash/24/first", "governor/log-hash/24/shift", "threads/log/1", "threads/log/24", "flushers/hash/24/3"}, set(cases))
        self.assertLessEqual({"modelled_decoupled_gain_percent_24", "modelled_governor_shift_over_best_least"}, set(result["summary"]))
        # What is not measured says so.
        for row in result["rows"]:
            self.assertEqual("modelled" in row["unit"], row["case"].startswith(("model/", "crowd/", "governor/", "threads/", "flushers/")))

    def test_nothing_is_left_after_an_interrupt(self):
        before = left_behind()
        for name, seconds in (("random", 2), ("random", 9), ("pagecache", 3), ("pagecache", 12)):
            process = subprocess.Popen([SPILLWAY, "bench", name, "--quick", "--out", self.folder, "--storage", self.folder],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=HANG_SECONDS)
            self.assertEqual(process.returncode, 130, errors)
            self.assertIn("spillway: stopped by signal 2; with --resume it goes on", errors)
            self.assertEqual(left_behind(), before)
            self.assertEqual([path for path in self.folder.iterdir() if not path.name.endswith(kept.SUFFIX)], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
