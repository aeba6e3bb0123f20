#!/usr/bin/env python3
"""Cases that are kept of runs that were stopped, or had --only: what is measured again and what is not, with measurements that take no time.  kept_test.py SPILLWAY [unittest arguments]"""
import contextlib
import io
import json
import pathlib
import types
import unittest
import unittest.mock

from bench_case import SPILLWAY, Case

import batch_load
import bench as driver
import breakdown
import graph
import kept
import micro
import pagecache
import persist_model
import programs
import random_access
import redis_load
import rocksdb
import selfdriving
import sort
from cases import Cases
from lockstep import Failure

NAME, MADE_BY = "sort", {"build": "this one", "quick": True}


def row_of(case, **more):
    return {"case": case, "ours": 2.0, "peer": 1.0, "ratio": 2.0, "spread": 0.0, "unit": "s", **more}


class Benchmark:
    """One whose cases take no time; stops_at: one at which it is stopped."""
    DOC = "What it is."
    CASES = ["disk/1", "disk/2", "zram/1"]

    def __init__(self):
        self.measured, self.stops_at = [], None

    def measure(self, case):
        if case == self.stops_at:
            raise Failure("stopped by signal 2", 130)
        self.measured.append(case)
        return row_of(case)

    def run(self, context):
        wanted = context.cases.chosen(self.CASES)
        for case in wanted:
            if case not in context.kept:
                context.kept[case] = self.measure(case)
        rows = [context.kept[case] for case in wanted]
        return {"parameters": {}, "rows": rows, "summary": {"cases": len(rows)}}, {"title": "", "subtitle": "", "cases": wanted, "series": {"x": [row["ratio"] for row in rows]}}


class Runs(Case):
    def setUp(self):
        super().setUp()
        self.benchmark, self.said = Benchmark(), []
        self.file, self.results = (self.folder / (NAME + suffix) for suffix in (kept.SUFFIX, ".json"))

    def run_it(self, *only, resume=False, made_by=MADE_BY, stops_at=None):
        """What was measured."""
        self.benchmark.measured, self.benchmark.stops_at = [], stops_at
        context = types.SimpleNamespace(cases=Cases(only), storage=self.folder, say=self.said.append)
        with unittest.mock.patch.object(driver, "module_of", lambda name: self.benchmark), contextlib.redirect_stdout(io.StringIO()):
            with self.assertRaises(Failure) if stops_at else contextlib.nullcontext():
                driver.run_one(context, NAME, self.folder, made_by, resume)
        return self.benchmark.measured

    def result(self):
        return json.loads(self.results.read_text())

    def kept_cases(self):
        return list(json.loads(self.file.read_text())["cases"])

    def test_a_benchmark_that_was_stopped_goes_on(self):
        self.run_it(stops_at="zram/1")
        self.assertEqual(self.kept_cases(), ["disk/1", "disk/2"])
        self.assertFalse(self.results.exists())
        self.assertEqual(self.run_it(resume=True), ["zram/1"])
        self.assertIn(f"{NAME}: cases that are kept of earlier runs: 2", self.said)
        self.assertEqual([row["case"] for row in self.result()["rows"]], Benchmark.CASES)
        self.assertTrue(self.result()["parameters"]["resumed"])
        self.assertFalse(self.file.exists(), "all is measured")

    def test_a_run_begins_anew_without_resume(self):
        self.run_it(stops_at="zram/1")
        self.run_it(stops_at="disk/1")
        self.assertFalse(self.file.exists())
        self.run_it(stops_at="zram/1")
        self.assertEqual(self.run_it(), Benchmark.CASES)
        self.assertNotIn("resumed", self.result()["parameters"])

    def test_cases_of_another_build_or_other_options_are_not_taken(self):
        self.run_it(stops_at="zram/1")
        self.assertEqual(self.run_it(resume=True, made_by=MADE_BY | {"quick": False}), Benchmark.CASES)

    def test_what_only_some_cases_were_measured_of_is_taken_by_a_run_of_all(self):
        self.assertEqual(self.run_it("disk/2"), ["disk/2"])
        self.assertEqual(self.kept_cases(), ["disk/2"])
        self.assertIsNone(kept.of_same(self.results, MADE_BY), "it is not all of it")
        self.assertEqual(self.run_it("disk", resume=True), ["disk/1"])
        self.assertEqual(self.run_it(resume=True), ["zram/1"])
        self.assertEqual([row["case"] for row in self.result()["rows"]], Benchmark.CASES)
        self.assertEqual(kept.of_same(self.results, MADE_BY), self.result())
        self.assertFalse(self.file.exists())

    def test_a_file_that_was_cut_short_or_is_another_one_is_ignored(self):
        self.run_it(stops_at="zram/1")
        whole = self.file.read_text()
        for text in ("", "{", whole[:len(whole) // 2], "[]", "7", json.dumps({"cases": {"disk/1": 5}}), "\0\xff"):
            self.file.write_text(text)
            self.assertEqual(self.run_it(resume=True), Benchmark.CASES, text)
        self.file.write_bytes(b"\xff\xfe")
        self.assertEqual(self.run_it(resume=True), Benchmark.CASES)

    def test_who_is_killed_while_a_case_is_written_keeps_those_before(self):
        self.run_it(stops_at="zram/1")
        before = self.file.read_text()
        cases = kept.Kept(self.folder, NAME, MADE_BY, resume=True)
        with unittest.mock.patch.object(pathlib.Path, "replace", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            cases["zram/1"] = row_of("zram/1")
        self.assertEqual(self.file.read_text(), before)
        self.assertEqual(self.run_it(resume=True), ["zram/1"])

    def test_what_is_kept_is_what_will_be_read(self):
        cases = kept.Kept(self.folder, NAME, MADE_BY, resume=False)
        cases["a"] = {"row": row_of("a"), "points": [(1, 2.5)]}, None
        self.assertEqual(cases["a"], [{"row": row_of("a"), "points": [[1, 2.5]]}, None])
        cases["a"][0].pop("row")
        cases["b"] = 0.1
        self.assertEqual(dict(kept.Kept(self.folder, NAME, MADE_BY, resume=True)), dict(cases))
        self.assertIn("row", cases["a"][0])

    def test_what_is_missing_is_told_in_order(self):
        cases = kept.Kept(self.folder, NAME, MADE_BY, resume=False)
        cases["b"] = cases["d"] = 1
        self.assertEqual(cases.missing(["c", "b", "a", "d"]), ["c", "a"])
        self.assertEqual(cases.missing([("c", 1), ("b", 2), ("a",), ("d", 4)]), [("c", 1), ("a",)])
        self.assertEqual(cases.missing(cases), [])

    def test_a_figure_depends_on_the_build_and_on_options(self):
        programs_folder = self.folder / "bin"
        programs_folder.mkdir()
        program = programs_folder / "spillway"
        program.write_text("a program")
        options = {"quick": False, "pairs": 0, "storage": pathlib.Path("/var/tmp"), "traces": None}

        def made_by(**more):
            return kept.made_by(types.SimpleNamespace(spillway=program, **options | more))

        others = [made_by(**{name: value}) for name, value in (("quick", True), ("pairs", 3), ("storage", self.folder), ("traces", self.folder))]
        first = made_by()
        self.assertEqual(first, json.loads(json.dumps(first)))
        program.write_text("another program")
        others.append(made_by())
        self.assertEqual(len({json.dumps(each) for each in [first, *others]}), 6)


class Benchmarks(Case):
    """That the long ones measure, build and start nothing for what is kept."""

    def context(self, *only, kept_cases=()):
        def nothing(*words, **keywords):
            return ""

        cases = kept.Kept(self.folder, NAME, MADE_BY, resume=False)
        cases.update(kept_cases)
        return types.SimpleNamespace(quick=True, pairs=0, cases=Cases(only), kept=cases, folder=self.folder, storage=self.folder, keep=None, spillway=SPILLWAY, spillcc="spillcc",
                                     spillcxx="spillc++", native_cc="clang", native_cxx="clang++", progress=nothing, say=nothing, build=nothing, output=nothing, include=lambda: "include")

    def patch(self, target, **attributes):
        patched = unittest.mock.patch.multiple(target, **attributes)
        patched.start()
        self.addCleanup(patched.stop)

    def never(self, what):
        return unittest.mock.Mock(side_effect=AssertionError(what))

    def graph_of(self, context):
        measured = graph.Graph.__new__(graph.Graph)
        measured.context, measured.plan, measured.rows = context, graph.Plan(context), []
        measured.kernels, measured.graphs = {"pr": None, "bfs": None}, types.SimpleNamespace(path=lambda *_: self.folder)
        return measured

    def test_graph(self):
        context = self.context(kept_cases={"resident/kron/pr/1": row_of("resident/kron/pr/1"), "disk/kron/pr/25/2": (row_of("disk/kron/pr/25/2"), ["disk/kron/pr/25/2: a note"])})
        measured, asked, notes = self.graph_of(context), [], []
        measured.measure_resident = lambda case, workload, threads: asked.append(case) or row_of(case)

        def measure_on(name, cases):
            for case, _ in cases:
                asked.append(case)
                context.kept[case] = row_of(case), []

        measured.measure_on = measure_on
        measured.resident()
        measured.limited("disk", notes)
        self.assertEqual(asked, ["resident/kron/bfs/1", "resident/kron/pr/2", "resident/kron/bfs/2", "disk/kron/bfs/25/2"])
        cases = ["resident/kron/pr/1", "resident/kron/bfs/1", "resident/kron/pr/2", "resident/kron/bfs/2", "disk/kron/pr/25/2", "disk/kron/bfs/25/2"]
        self.assertEqual(([row["case"] for row in measured.rows], notes), (cases, ["disk/kron/pr/25/2: a note"]))
        again = self.graph_of(context)
        again.measure_resident = again.measure_on = self.never("measured")
        again.resident()
        again.limited("disk", [])
        self.assertEqual(again.rows, measured.rows)

    def test_sort(self):
        context = self.context("resident/gnu", "disk", kept_cases={"resident/gnu/2": row_of("resident/gnu/2"), "disk/shuffle/4/2": (row_of("disk/shuffle/4/2"), ["a note"])})
        measured, notes = sort.Sort.__new__(sort.Sort), []
        measured.context, measured.plan, measured.rows = context, sort.Plan(context), []
        measured.measure_resident = measured.measure_on = self.never("measured")
        measured.resident()
        measured.limited("disk", notes)
        measured.limited("zram", notes)
        self.assertEqual(([row["case"] for row in measured.rows], notes), (["resident/gnu/2", "disk/shuffle/4/2"], ["a note"]))

    def test_rocksdb(self):
        cases = ["disk/100", "disk/50", "disk/25", "threads/1", "threads/2", "threads/4", "size"]
        self.patch(rocksdb.Library, load=self.never("compiled"))
        result, _ = rocksdb.run(self.context(kept_cases={case: (row_of(case), [f"{case}: a note"]) for case in cases}))
        self.assertEqual([row["case"] for row in result["rows"]], cases)
        self.assertEqual(result["notes"][-7:], [f"{case}: a note" for case in cases])

    def test_rocksdb_measures_once_what_two_cases_have_in_common(self):
        measured = []

        def contest(_, case, percent, threads, programs):
            measured.append((case, percent, threads))
            return row_of(case), [f"{case}: a note"]

        self.patch(rocksdb.Library, load=lambda library, side: side)
        self.patch(rocksdb.Rocksdb, make=lambda rocksdb, program: None, contest=contest)
        self.patch(rocksdb.os, cpu_count=lambda: 2)
        result, _ = rocksdb.run(self.context("disk/25", "threads"))
        self.assertEqual(measured, [("disk/25", 25, 2), ("threads/1", 25, 1), ("threads/4", 25, 4)])
        self.assertEqual([row["case"] for row in result["rows"]], ["disk/25", "threads/1", "threads/2", "threads/4"])
        self.assertEqual(result["notes"][-3:], ["disk/25: a note", "threads/1: a note", "threads/4: a note"])

    def test_programs(self):
        self.patch(programs, variants=lambda context: {"ours": []}, Built=self.never("built"), usable_devices=lambda notes: ["disk"])
        self.patch(programs.shutil, which=lambda name: name)
        cases = [f"{part}{name}" for part in ("compile/", "size/") for name in ("zstd", "cadical", "redis", "sqlite")]
        cases += ["zstd/3", "zstd/9", "cadical/hard", "cadical/large", "redis", "disk/redis"]
        context = self.context(kept_cases={case: [row_of(case)] for case in cases})
        context.quick = False
        result, _ = programs.run(context)
        self.assertEqual({row["case"] for row in result["rows"]}, set(cases))
        self.assertEqual([result["parameters"][name] for name in ("case_seconds", "redis_case_seconds")], [programs.CASE_SECONDS, redis_load.CASE_SECONDS])
        # Of what cannot be measured nothing is kept: it may be possible the next time.
        measured, context.kept = programs.Programs(context), {}
        measured.take("disk/redis", lambda: [])
        self.assertEqual((measured.rows, context.kept), ([], {}))
        measured.take("disk/redis", lambda: [row_of("disk/redis/get"), row_of("disk/redis/set")])
        measured.take("disk/redis", self.never("measured"))
        self.assertEqual([row["case"] for row in measured.rows], ["disk/redis/get", "disk/redis/set"] * 2)

    def test_micro(self):
        def rows_of(context, plan, ours, name, cases):
            asked.append([case for case, *_ in cases])
            return [row_of(case, mmap_ratio=1.0, native_ratio=1.0) for case, *_ in cases]

        asked, context = [], self.context("disk/8B", kept_cases={"disk/8B/100/2": row_of("disk/8B/100/2", mmap_ratio=1.0, native_ratio=1.0)})
        self.patch(micro, variants=lambda context: {"ours": []}, usable_devices=lambda notes: ["disk", "zram"], _device=rows_of)
        for _ in range(2):
            result, _ = micro.run(context)
            self.assertEqual([row["case"] for row in result["rows"]], ["disk/8B/100/2", "disk/8B/50/2"])
        self.assertEqual(asked, [["disk/8B/50/2"]])

    def test_breakdown(self):
        context, asked = self.context("levels/pr/both"), []
        measured = breakdown.Breakdown.__new__(breakdown.Breakdown)
        measured.context, measured.rows = context, []
        for _ in range(2):
            measured.take("levels/pr", lambda case: asked.append(case) or [row_of(f"{case}/both"), row_of(f"{case}/none")])
        measured.take("levels/gnu", self.never("measured"))
        self.assertEqual((asked, [row["case"] for row in measured.rows]), (["levels/pr"], ["levels/pr/both", "levels/pr/none"] * 2))

    def test_selfdriving(self):
        more = {"first_ratio": 1.0, "reads_ratio": 1.0, **dict.fromkeys(selfdriving.SETTINGS)}
        cases = ["loop", "zipf", "scan", "tree", "sort", "graph"]
        self.patch(selfdriving, Bench=self.never("built"))
        result, _ = selfdriving.run(self.context(kept_cases={case: row_of(case, **more) for case in cases}))
        self.assertEqual([row["case"] for row in result["rows"]], cases)

    def test_random(self):
        def measured_on(context, plan, device, binaries, limit_bytes, cases):
            asked.append(cases)
            return [row_of("/".join(map(str, case)), best_peer="mmap") for case in cases], ["a peer is gone"]

        asked, context = [], self.context("disk/read/1", "disk/rmw", kept_cases={"disk/rmw/1": (row_of("disk/rmw/1"), ["a peer is gone", "another one"])})
        self.patch(random_access, _devices=lambda context, notes: ["disk", "zram"], _plain_bytes=lambda native: 0, _measure_on=measured_on)
        for _ in range(2):
            result, _ = random_access.run(context)
            self.assertEqual(([row["case"] for row in result["rows"]], result["notes"]), (["disk/read/1", "disk/rmw/1", "disk/rmw/4"], ["a peer is gone", "another one"]))
        self.assertEqual(asked, [[("disk", "read", 1), ("disk", "rmw", 4)]])

    def test_pagecache(self):
        measured = pagecache.Run.__new__(pagecache.Run)
        measured.context, measured.rows, measured.notes = self.context(kept_cases={"cold/a": (row_of("cold/a"), ["slow"])}), [], []
        asked = []

        def measure(cases):
            asked.append(cases)
            return [row_of("cold/b")], ["slow", "of c nothing"]

        measured.together([("cold/a", 1), ("cold/b", 2), ("cold/c", 3)], measure)
        self.assertEqual(asked, [[("cold/b", 2), ("cold/c", 3)]])
        self.assertEqual(([row["case"] for row in measured.rows], measured.notes), (["cold/a", "cold/b"], ["slow", "of c nothing"]))
        measured.together([("cold/a", 1), ("cold/b", 2)], self.never("measured"))

    def test_batch(self):
        answered = [json.dumps({"engines": {"linear": [number]}}) for number in (1.0, 2.0)] + ['{"unavailable": 1}', '{"lines": 7}']
        program = unittest.mock.Mock(read=lambda seconds: answered.pop(0))
        self.patch(batch_load, Programs=unittest.mock.MagicMock())
        batch_load.Programs.return_value.__enter__.return_value.start.return_value = program
        context = self.context()
        measured = batch_load.Measured(context, 1, 0.1)
        measured.program = lambda name: name
        self.assertEqual(measured.costs(16, 128, 20, 1)["engines"], {"linear": [1.0]})
        self.assertEqual(measured.costs(16, 128, 20, 2)["engines"], {"linear": [2.0]})
        # What the system did not tell it may tell the next time.
        self.assertEqual([measured.ask("colouring", {"bucket": 512}) for _ in range(3)], [{"unavailable": 1}, {"lines": 7}, {"lines": 7}])
        again = batch_load.Measured(context, 1, 0.1)
        self.assertEqual([again.costs(16, 128, 20, threads)["engines"]["linear"] for threads in (1, 2)], [[1.0], [2.0]])

    def test_persist(self):
        context = self.context()
        model = persist_model.Model(context, None)
        model.rate = lambda structure, threads, way, dilation, more, *windows: (float(more["most"]), {})
        rows, curves = model.by_flushers("flushers/log/24"), model.curves
        again = persist_model.Model(context, None)
        again.rate = again.ask = self.never("measured")
        context.kept["governor/log-log/24"] = [row_of("governor/log-log/24/first")]
        again.governor_cases = {"governor/log-log/24": ("log", "log", 24)}
        self.assertEqual((again.by_flushers("flushers/log/24"), again.curves), (rows, curves))
        self.assertEqual(again.governor("governor/log-log/24"), [row_of("governor/log-log/24/first")])


if __name__ == "__main__":
    unittest.main(verbosity=2)
