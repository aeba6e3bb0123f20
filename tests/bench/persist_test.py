#!/usr/bin/env python3
"""The programs of `persist`, and what the driver makes of their answers.  persist_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import subprocess
import types
import unittest

from bench_case import HANG_SECONDS, LIBEXEC, Case, assert_refused, run_in
from support import CLEAN

import papers
import persist_lines
import persist_model


class Lines(Case):
    PROGRAM = LIBEXEC / "persist-lines-load"

    def test_each_way_has_a_figure_for_each_turn(self):
        for words in (["state=dirty", "fence=4"], ["state=clean", "fence=0"], ["state=absent", "fence=64", "threads=2"], ["hot=4", "again=4"],
                      ["hot=16", "again=2", "order=random", "instruction=clflush"]):
            ended = run_in(self.folder, self.PROGRAM, "turns=2", "seconds=0.001", "instruction=clflush", *words)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), words)
            ways = json.loads(ended.stdout)["ways"]
            self.assertEqual(set(ways), {persist_lines.PEER, *persist_lines.WAYS})
            for figures in ways.values():
                self.assertEqual(len(figures), 2)
                self.assertGreater(min(figures), 0)

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in (["other=1"], ["instruction=sfence"], ["state=new"], ["threads=0"], ["fence=2000"], ["way=fast"], ["hot=x"], ["nothing"]):
            assert_refused(self, run_in(self.folder, self.PROGRAM, *words), by="persist-lines-load: ")


class Model(Case):
    PROGRAM = LIBEXEC / "persist-model-load"

    def answers(self, words, questions):
        ended = subprocess.run([str(word) for word in (self.PROGRAM, *words)], input="".join(question + "\n" for question in questions), env=CLEAN,
                               capture_output=True, text=True, timeout=HANG_SECONDS)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), words)
        return [json.loads(line) for line in ended.stdout.splitlines()]

    def test_structures_are_right_in_every_way(self):
        """The program looks at them itself when it ends, and when its threads go on with another."""
        for structure, then in (("hash", "tree"), ("tree", "log"), ("log", "swap"), ("swap", "store"), ("store", "coalesced"), ("coalesced", "hash")):
            for way in ("inline", "decoupled"):
                words = [f"structure={structure}", f"way={way}", "threads=3", "most=2", "dilation=100", "period=0.01"]
                first, shifted, second = self.answers(words, ["run 0.1", f"shift {then}", "run 0.1"])
                self.assertEqual(shifted, {"structure": then})
                for answer in (first, second):
                    self.assertGreater(answer["operations"], 0)
                    self.assertGreater(answer["lines"], answer["operations"])
                    self.assertEqual(answer["ways"], {way: 3})
                    self.assertGreater(answer["device_seconds"], 0.0009)
                    self.assertEqual(answer["flushers"] > 0, way == "decoupled")

    def test_coalesced_blocks_have_fewer_lines(self):
        lines = {}
        for structure in ("store", "coalesced"):
            [answer] = self.answers([f"structure={structure}", "threads=2", "dilation=100"], ["run 0.3"])
            lines[structure] = answer["lines"] / answer["operations"], answer["dirtiness"]
        self.assertLess(lines["coalesced"][0], lines["store"][0])
        self.assertGreater(lines["coalesced"][1], lines["store"][1])

    def test_writers_beyond_some_make_the_device_slower_by_the_factor(self):
        operations = {}
        for crowd in (0, 10):
            _, answer = self.answers(["structure=log", "threads=16", f"crowd={crowd}"], ["run 0.3", "run 0.5"])
            operations[crowd] = answer["operations"] / answer["device_seconds"]
        # Each of nine more makes media writes ten times longer.
        self.assertLess(5 * operations[10], operations[0])

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in ([], ["structure=list"], ["structure=log", "way=fast"], ["structure=log", "threads=0"], ["structure=log", "least=3", "most=2"],
                      ["structure=log", "most=65"], ["structure=log", "dilation=0"], ["structure=log", "crowd=-1"], ["structure=log", "other=1"]):
            assert_refused(self, run_in(self.folder, self.PROGRAM, *words), by="persist-model-load: ")


class Figures(Case):
    def test_speeds_are_the_peers_time_over_ours(self):
        def row(case, ratio, **more):
            return {"case": case, "ours": ratio, "peer": 1.0, "ratio": ratio, "spread": 0.0, "unit": "ns", **more}

        rows = [row("hot/4/2/round/1/epoch", 0.25), row("hot/4/4/round/1/epoch", 1.0), row("hot/64/4/round/1/epoch", 0.5), row("lines/clwb/dirty/4/1/epoch", 1.25),
                row("lines/clwb/dirty/none/1/epoch", 2.0), row("lines/clwb/dirty/4/1/auto", 1.0, over_best=1.5, over_inline=1.1, over_inline_spread=0.05),
                row("hot/4/2/round/1/auto", 1.0, over_best=1.0, over_inline=1.1, over_inline_spread=0.2), row("hot/4/2/round/1/decoupled", 16.0)]
        summary = persist_lines.summarise(rows)
        for key, value in {"hot_4_epoch_speed": 2, "hot_4_epoch_speed_least": 1, "hot_64_epoch_speed": 2, "hot_epoch_speed": 2, "lines_epoch_speed": 0.8,
                           "lines_unfenced_epoch_speed_least": 0.5, "auto_over_best": 1.5 ** 0.5, "auto_over_best_most": 1.5, "auto_loses_to_inline_cases": 1,
                           "decoupled_times_as_slow": 16}.items():
            self.assertAlmostEqual(summary[key], value, msg=key)

    def test_gains_are_means_of_structures_and_those_of_coalescing_are_their_own(self):
        def row(case, gain):
            return {"case": case, "gain_percent": gain, "ratio": 1 + gain / 100}

        summary = persist_model.summarise([row("model/log/24/decoupled", 10.0), row("model/hash/24/decoupled", 30.0), row("model/coalesced/24/decoupled", 90.0),
                                           row("model/coalesced/24/inline", 25.0), row("model/log/4/auto", -1.0)])
        self.assertEqual(summary["modelled_decoupled_gain_percent_24"], 20)
        self.assertEqual(summary["modelled_decoupled_gain_percent_24_least"], 10)
        self.assertEqual(summary["modelled_coalesced_inline_gain_percent_24"], 25)
        self.assertEqual(summary["modelled_auto_gain_percent_4"], -1)
        of_paper = {"paper_gain_percent_4": 9.3, "paper_gain_percent_4_most": 17.6, "paper_gain_percent_24": 20.2, "paper_gain_percent_24_most": 49.8, "paper_coalesced_gain_percent": 22}
        self.assertLessEqual(of_paper.items(), summary.items())
        # The report has those of coalescing apart from the others.
        [ribbon] = [paper for paper in papers.load() if paper["title"].startswith("Ribbon")]
        beside = {figure["name"]: [key for key in summary if papers.fits(key, figure["from"][0]["summary"])] for figure in ribbon["figure"] if figure["name"].startswith("Section 3, ")}
        of_coalescing = [key for key in summary if "coalesced" in key]
        self.assertEqual(beside["Section 3, coalescing"], of_coalescing)
        self.assertEqual(sorted(beside["Section 3, 4 threads"] + beside["Section 3, 24 threads"]), sorted(summary.keys() - of_coalescing))

    def test_gains_by_other_factors_of_a_crowd_are_their_own(self):
        context = types.SimpleNamespace(quick=False, pairs=1, kept={}, progress=lambda text: None, say=lambda text: None)
        model = persist_model.Model(context, None)

        def rate(structure, threads, way, dilation, more=None, settle=None, window=None):
            return (1 + 10 * float(more["crowd"]) if way == "decoupled" else 1.0), {"flushers": 8, "dirtiness": 0.5}

        model.rate = rate
        rows = [model.by_crowd(case) for case in model.crowd_cases]
        self.assertEqual([row["case"] for row in rows[:4]], ["crowd/hash/24/0", "crowd/hash/24/0.03", "crowd/hash/24/0.09", "crowd/tree/24/0"])
        summary = persist_model.summarise(rows)
        self.assertEqual(set(summary), {f"modelled_decoupled_gain_percent_24_crowd_{factor}" for factor in ("0", "0.03", "0.09")})
        for factor in ("0", "0.03", "0.09"):
            self.assertAlmostEqual(summary[f"modelled_decoupled_gain_percent_24_crowd_{factor}"], 1000 * float(factor))

    def test_a_dirty_line_is_beside_a_clean_one(self):
        rows = [{"case": f"lines/{instruction}/{state}/{fence}/{threads}/{way}", "peer": peer, "ratio": 1.0, "ours": peer} for instruction, state, fence, threads, way, peer in (
            ("clwb", "dirty", 1, 1, "inline", 40.0), ("clwb", "clean", 1, 1, "inline", 10.0), ("clwb", "dirty", 64, 1, "inline", 9.0), ("clwb", "clean", 64, 1, "inline", 9.0),
            ("clwb", "dirty", 4, 1, "inline", 7.0), ("clwb", "clean", 1, 1, "epoch", 99.0), ("clwb", "dirty", 1, 2, "inline", 80.0), ("clwb", "clean", 1, 2, "inline", 10.0),
            ("clwb", "dirty", "none", 1, "inline", 80.0), ("clwb", "clean", "none", 1, "inline", 10.0), ("clflush", "dirty", 1, 1, "inline", 5.0))]
        of_lines = {key: value for key, value in persist_lines.summarise(rows).items() if key.startswith("dirty")}
        self.assertEqual(list(of_lines), ["dirty_over_clean_clwb"])
        self.assertAlmostEqual(of_lines["dirty_over_clean_clwb"], 2)

    def test_curves_have_a_row_for_each_point(self):
        context = types.SimpleNamespace(quick=True, pairs=0, kept={}, progress=lambda text: None, say=lambda text: None)
        model = persist_model.Model(context, None)
        # A device on which 8 at a time are the most that does good.
        model.rate = lambda structure, threads, way, dilation, more=None, *windows: (10.0 * (min(more["most"], 8) if more else min(threads, 8)), {})
        rows = model.by_threads("threads/log")
        self.assertEqual([(row["case"], row["ours"], row["ratio"]) for row in rows], [("threads/log/1", 10, 1), ("threads/log/8", 80, 8), ("threads/log/24", 80, 8)])
        rows = model.by_flushers("flushers/log/24")
        self.assertEqual([(row["case"], row["ours"], row["peer"]) for row in rows], [("flushers/log/24/3", 30, 80), ("flushers/log/24/8", 80, 80), ("flushers/log/24/16", 80, 80)])
        for case in (*model.thread_cases, *model.flusher_cases):
            self.assertRegex(case, r"^(threads/log|flushers/(log|hash)/24)$")

    def test_a_curve_is_read_between_its_points(self):
        curve = {1: 10.0, 4: 40.0, 8: 20.0}
        for count, value in ((1, 10), (2, 20), (4, 40), (6, 30), (8, 20), (32, 20)):
            self.assertAlmostEqual(persist_model._at(curve, count), value)


if __name__ == "__main__":
    unittest.main(verbosity=2)
