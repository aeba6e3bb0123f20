#!/usr/bin/env python3
"""The programs of `batch`: every engine updates the records that there are; and the thesis's figures, of answers that are given.  batch_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import types
import unittest
import xml.etree.ElementTree

from bench_case import LIBEXEC, Case, assert_refused, run_in

import batch_colouring
import batch_figures
import batch_load
from batch_load import DIRECT, OURS, PEER


class Batch(Case):
    PROGRAM = LIBEXEC / "batch-load"

    def test_all_engines_in_turns(self):
        for words in (["key=4", "record=8", "bucket=512"], ["key=8", "record=32", "bucket=128", "threads=2", "active=50"], ["key=12", "record=20"]):
            ended = run_in(self.folder, self.PROGRAM, "buckets=1000", "seconds=0.01", "turns=3", "cache=1024", "staging=1024", *words)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), words)
            answer = json.loads(ended.stdout)
            self.assertEqual(set(answer["engines"]), {"linear", "direct", "prefetch", "tagged", "cache_buckets", "decoupled", "partitioned", "auto"})
            self.assertIn(answer["chosen"], {"direct", "prefetch", "tagged", "cache_buckets", "partitioned"})
            self.assertLessEqual({answer["chosen"], "direct", "prefetch", "tagged"}, set(answer["modelled"]))
            self.assertLess(0, answer["choosing_seconds"])
            for times in answer["engines"].values():
                self.assertEqual(len(times), 3)
                self.assertLess(0, min(times))

    def test_engines_that_are_asked_for(self):
        ended = run_in(self.folder, self.PROGRAM, "buckets=1000", "seconds=0.01", "turns=2", "cache=64", "cell=256", "engine=linear", "engine=cache_buckets")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        answer = json.loads(ended.stdout)
        self.assertEqual({engine: len(times) for engine, times in answer["engines"].items()}, {PEER: 2, OURS: 2})
        self.assertNotIn("chosen", answer)
        self.assertTrue(0.1 < answer["ns_per_cycle"] < 2, answer)
        self.assertEqual({engine: len(times) for engine, times in answer["cpu"].items()}, {PEER: 2, OURS: 2})

    def test_base_costs(self):
        for words in (["key=4", "record=8"], ["record=32", "threads=2", "cell=64"]):
            ended = run_in(self.folder, self.PROGRAM, "base=1", "buckets=1000", "seconds=0.01", "turns=2", "cache=64", *words)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), words)
            answer = json.loads(ended.stdout)
            self.assertEqual({engine: len(times) for engine, times in answer["engines"].items()}, {PEER: 2, OURS: 2})
            self.assertLess(0, min(min(times) for of in ("engines", "cpu") for times in answer[of].values()))
            self.assertNotIn("records", answer)

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in (["record"], ["records=5"], ["record=x"], ["seconds=-1"], ["key=3"], ["record=8", "key=8"], ["record=65"], ["bucket=100"], ["cell=0"], ["cell=100"], ["buckets=0"],
                      ["threads=0"], ["turns=0"], ["engine=x"], ["base=2"],
                      ["updates=5"], ["updates=5", "engine=linear", "engine=direct"], ["updates=5", "engine=auto"]):
            assert_refused(self, run_in(self.folder, self.PROGRAM, *words), by="batch-load: ")


class Colouring(Case):
    """The program of `colouring`: records are found wherever their pages are."""
    PROGRAM = LIBEXEC / "colouring-load"
    SMALL = ("buckets=2000", "cache=64", "colours=8", "taken=4")

    def test_updates_for_who_counts_them(self):
        for placement in ("plain", "coloured"):
            for bucket in (128, 512, 4096):
                ended = run_in(self.folder, self.PROGRAM, *self.SMALL, f"bucket={bucket}", f"placement={placement}", "updates=20000")
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                self.assertEqual(json.loads(ended.stdout), {"records": 2000 * bucket // 16})

    def test_all_placements_in_turns(self):
        ended = run_in(self.folder, self.PROGRAM, *self.SMALL, "near=2", "seconds=0.01", "turns=3")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        answer = json.loads(ended.stdout)
        if "unavailable" in answer:
            self.skipTest("the system does not tell physical addresses")
        self.assertEqual({name: len(times) for name, times in answer["placements"].items()}, {"plain": 3, "coloured": 3, "huge": 3})
        self.assertEqual(set(answer["lines"]), {"mixed", "near", "same"})
        self.assertLess(0, min(answer["lines"].values()))

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in (["bucket"], ["buckets=0"], ["bucket=100"], ["bucket=8192"], ["cell=96"], ["record=8"], ["cache=1"], ["taken=0"], ["taken=8", "colours=8"],
                      ["near=9", "colours=8", "taken=1"], ["placement=huge"], ["colours=1"], ["seconds=x"], ["turns=0"]):
            assert_refused(self, run_in(self.folder, self.PROGRAM, *words), by="colouring-load: ")

    def test_without_physical_addresses_there_is_nothing_of_time(self):
        class Unavailable:
            turns, seconds = 1, 0.1

            def progress(self, text):
                pass

            def ask(self, name, words):
                return {"unavailable": 1}

        colouring = batch_colouring.Colouring(Unavailable(), quick=False)
        made = {case: make(case) for case, make in colouring.cases().items() if "misses" not in case}
        self.assertEqual(set(made.values()), {None})
        self.assertEqual(len(made), 5)
        self.assertEqual(len(colouring.notes), 1)

    def test_colours_of_a_cache(self):
        for name, level, sets, ways in (("index2", 2, 2048, 8), ("index3", 3, 32768, 16)):
            cache = self.folder / name
            cache.mkdir()
            for file, number in (("level", level), ("number_of_sets", sets), ("ways_of_associativity", ways)):
                (cache / file).write_text(f"{number}\n")
        self.assertEqual(batch_colouring.colours_of(3, self.folder), (512, 32 << 20))
        self.assertEqual(batch_colouring.colours_of(2, self.folder), (32, 1 << 20))
        self.assertIsNone(batch_colouring.colours_of(4, self.folder))

    def test_rows_and_figures(self):
        rows = [{"case": "colouring/misses/128/4", "ratio": 0.5}, {"case": "colouring/misses/512/4", "ratio": 2.0},
                {"case": "colouring/time/128/4", "ratio": 3.0, "huge_ratio": 0.25}, {"case": "colouring/lines", "ratio": 7.0}]
        self.assertEqual({key: round(value, 6) for key, value in batch_colouring.summarise(rows).items()},
                         {"colouring_misses_ratio": 1, "colouring_time_ratio": 3, "colouring_lines_ratio": 7})
        words = [element.text for element in xml.etree.ElementTree.fromstring(batch_colouring.picture(rows)).iter("{http://www.w3.org/2000/svg}text")]
        for word in ("128/4", "512/4", "0.5", "2", "3", "0.25", "misses, simulated", "time", "time in large OS pages", "lines of one colour", "7"):
            self.assertIn(word, words)


class Given:
    """Answers whose figures are known: a cycle is half a nanosecond; an update by one thread costs the peer 10 ns and 4 for each miss, cache-buckets 20 and 8, a miss
    each for the peer for 100 thousand buckets, and half as many for cache-buckets; `direct` half of what the peer costs; two threads are twice as fast together."""

    def __init__(self):
        self.asked = []

    @staticmethod
    def misses(record, bucket, thousands, cell=1024):
        return thousands / 200, thousands / 100, 0.25

    def organisations(self, record, bucket, thousands, threads, cells):
        self.asked.append((record, bucket, thousands, threads))
        return {cell: {OURS: [1024 / cell * 10 * turn for turn in (1, 2, 3)], PEER: [20] * 3} for cell in cells}

    @classmethod
    def costs(cls, record, bucket, thousands, threads):
        ours, peer, _ = cls.misses(record, bucket, thousands)
        return {"ns_per_cycle": 0.5, "engines": {PEER: [(10 + 4 * peer) / threads] * 3, DIRECT: [(5 + 2 * peer) / threads] * 3, OURS: [(20 + 8 * ours) / threads] * 3},
                "cpu": {PEER: [10 + 4 * peer, 11 + 4 * peer, 10 + 4 * peer], DIRECT: [5 + 2 * peer] * 3, OURS: [20 + 8 * ours] * 3}}

    def base_costs(self, record, threads):
        return {"ns_per_cycle": 0.5, "cpu": {PEER: [10, 10], OURS: [10 + record] * 2}}


class Asked(Case):
    def test_sizes_of_cache_buckets_take_turns(self):
        context = types.SimpleNamespace(quick=True, progress=lambda text: None, kept={}, spillway=LIBEXEC.parent.parent / "bin/spillway")
        measured, asked = batch_load.Measured(context, 2, 0.1), []

        def answer(name, words, *more):
            asked.append((words["cell"], words["seed"], more))
            return {"engines": {PEER: [1.0, 2.0], OURS: [words["cell"], words["seed"]]}}

        measured.ask = answer
        for _ in range(2):
            told = measured.organisations(16, 512, 400, 1, [1024, 512, 256])
        engines = (f"engine={PEER}", f"engine={OURS}")
        self.assertEqual(asked, [(1024, 1, engines), (512, 1, engines), (256, 1, engines), (256, 2, engines), (512, 2, engines), (1024, 2, engines)])
        self.assertEqual(told[512], {PEER: [1.0, 2.0] * 2, OURS: [512, 1, 512, 2]})


class Figures(Case):
    def setUp(self):
        super().setUp()
        self.given = Given()
        self.figures = batch_figures.Figures(self.given, (8, 16, 32), (128, 256, 512), (200, 400, 600, 800), (1, 2), (2000, 8000))
        self.cases = self.figures.cases()

    def rows(self, start):
        return [make() for case, make in self.cases.items() if case.startswith(start)]

    def test_there_are_as_many_cases_as_the_thesis_has(self):
        counts = {}
        for case in self.cases:
            name = case.split("/")[0]
            counts[name] = counts.get(name, 0) + 1
        self.assertEqual(counts, {"figure4.3": 3 * 2, "table4.3": 3 * 2, "table4.4": 3, "figure4.4": 5 * 2, "figure4.5": 14, "figure4.6": 12, "figure4.7": 12,
                                  "figure4.8": 24 * 2, "figure4.9": 24, "table4.5": 3 * 2})
        self.assertEqual(set(counts), set(batch_figures.PARTS))

    def test_base_costs_are_cycles_of_a_thread(self):
        for row, record in zip(self.rows("figure4.3"), (8, 8, 16, 16, 32, 32)):
            self.assertEqual((row["ours"], row["peer"], row["more"], row["unit"]), (20 + 2 * record, 20, 2 * record, "cycles"), row)

    def test_organisations_are_compared_turn_by_turn(self):
        rows = self.rows("table4.3")
        self.assertEqual([row["case"] for row in rows], [f"table4.3/{name}/{threads}" for name in ("few_large", "medium", "many_small") for threads in (1, 2)])
        self.assertEqual(self.given.asked, [(16, 512, 400, threads) for _ in range(3) for threads in (1, 2)])
        for row, slower in zip(rows, (1, 1, 2, 2, 4, 4)):
            self.assertEqual((row["ours"], row["few_large_ratio"], row["ratio"]), (50 / slower, 1 / slower, 1 / slower), row)

    def test_throughput_and_misses_are_over_the_baselines(self):
        [row] = self.rows("figure4.5/512/800k")
        self.assertAlmostEqual(row["ours"], 1000 / 52)
        self.assertAlmostEqual(row["peer"], 1000 / 42)
        self.assertAlmostEqual(row["ratio"], 42 / 52)
        self.assertAlmostEqual(row["direct_ratio"], 21 / 52)
        [row] = self.rows("figure4.4/512/2")
        self.assertAlmostEqual(row["direct_ratio"], 36 / 13)
        [row] = self.rows("figure4.7/512/800k")
        self.assertEqual((row["ours"], row["peer"], row["ratio"], row["model"]), (4, 8, 0.5, 0.25))

    def test_a_line_through_all_tables(self):
        self.assertEqual(batch_figures.regress([(0, 1), (1, 3), (2, 5)]), (1, 2, 1))
        base, slope, explained = batch_figures.regress([(0, 0), (1, 3), (2, 0)])
        self.assertEqual((base, slope, explained), (1, 0, 0))
        for row in self.rows("table4.5"):
            for key, value in (("base_cycles", 40), ("miss_cycles", 16), ("peer_base_cycles", 20), ("peer_miss_cycles", 8), ("explained", 1), ("peer_explained", 1)):
                self.assertAlmostEqual(row[key], value, msg=key)
            # Of a table in the middle: 2.5 of 5 misses.
            self.assertAlmostEqual(row["misses_share"], (32 / 72 + 48 / 88) / 2)
            self.assertAlmostEqual(row["peer_misses_share"], (32 / 52 + 48 / 68) / 2)

    def test_a_picture_of_each(self):
        dots = {"figure4.4": 20, "figure4.5": 14, "figure4.6": 12, "figure4.7": 24, "table4.5": 2 * 12 + 4}
        rects = {"figure4.3": 6, "table4.3": 6, "table4.4": 3, "figure4.8": 48, "figure4.9": 48}
        for name in batch_figures.PARTS:
            with self.subTest(name):
                root = xml.etree.ElementTree.fromstring(self.figures.picture(name, self.rows(name)))
                self.assertEqual(len(list(root.iter("{http://www.w3.org/2000/svg}circle"))), dots.get(name, 0))
                bars = [element for element in root.iter("{http://www.w3.org/2000/svg}rect") if element.get("height") == "10"]
                self.assertEqual(len(bars), rects.get(name, 0))

    def test_summary(self):
        summary = batch_figures.summarise(self.rows("figure4.3") + self.rows("figure4.7") + self.rows("figure4.8") + self.rows("figure4.9"))
        self.assertEqual(set(summary), {"base_cost_more_cycles", "throughput_ratio_most", "throughput_ratio_least", "throughput_direct_ratio_most", "throughput_direct_ratio_least", "misses_ratio_least", "figure4.7_misses_over_model"})
        self.assertEqual((summary["base_cost_more_cycles"], summary["misses_ratio_least"]), (32, 0.5))
        self.assertAlmostEqual(summary["throughput_direct_ratio_most"], summary["throughput_ratio_most"] / 2)
        self.assertAlmostEqual(summary["figure4.7_misses_over_model"], 2)
        self.assertEqual(batch_figures.summarise([]), {})

    def test_simulated_misses_are_beside_those_of_the_thesis(self):
        summary = batch_figures.summarise(self.rows("figure4.6"))
        self.assertEqual(summary, {"thesis_baseline_misses_least": 4, "thesis_baseline_misses_most": 11, "simulated_baseline_misses_least": 2, "simulated_baseline_misses_most": 8,
                                   "thesis_misses_saved_percent_least": 20, "thesis_misses_saved_percent_most": 50, "simulated_misses_saved_percent_least": 50,
                                   "simulated_misses_saved_percent_most": 50})


if __name__ == "__main__":
    unittest.main(verbosity=2)
