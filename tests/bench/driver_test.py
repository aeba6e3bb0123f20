#!/usr/bin/env python3
"""spillway bench: its words, its figures, and that it leaves nothing behind; quick_test.py runs whole benchmarks.  driver_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import os
import shutil
import signal
import unittest
import unittest.mock
import xml.etree.ElementTree

from bench_case import Case, assert_refused, bench

import cases
import devices
import lockstep
import plot
import report

BARS = {"title": "t", "subtitle": "s <&>", "cases": ["a", "b"], "series": {"x": [0.5, 20.0], "y": [None, 1.0]}}


class Words(Case):
    def test_help_names_every_benchmark(self):
        ended = bench("--help")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        for name in ("batch", "batch-stored", "breakdown", "delegation", "demo", "device", "encrypt", "fibers", "graph", "hitrate", "indirect", "instructions", "kernels", "kv", "kv-index", "kv-restart", "micro", "pagecache", "persist", "persist-programs", "programs", "random", "rocksdb", "selfdriving", "sort", "speedtest1", "switch", "tasks", "--out", "--quick", "--resume"):
            self.assertIn(name, ended.stdout)

    def test_wrong_input_is_one_line_and_status_2(self):
        (self.folder / "file").touch()
        for arguments in ([], ["nothing"], ["kernels", "--fast"], ["instructions", "--only", "nothing"], ["indirect", "--only", "nothing"], ["demo", "--only", "nothing"], ["micro", "--only", "nothing"], ["programs", "--only", "nothing"], ["rocksdb", "--only", "nothing"], ["kernels", "--pairs", "many"], ["kernels", "--pairs", "-1"],
                          ["batch", "--only", "nothing"], ["batch-stored", "--only", "nothing"], ["tasks", "--only", "nothing"], ["random", "--only", "nothing"], ["selfdriving", "--only", "nothing"], ["sort", "--only", "nothing"], ["hitrate", "--only", "nothing"], ["hitrate", "--traces", self.folder / "none"],
                          ["encrypt", "--only", "nothing"], ["kv-index", "--only", "nothing"], ["kv-restart", "--only", "nothing"], ["kv", "--only", "nothing"],
                          ["pagecache", "--only", "nothing"], ["persist", "--only", "nothing"], ["persist-programs", "--only", "nothing"], ["kernels", "--storage", self.folder / "none"], ["kernels", "--out", self.folder / "file" / "x"]):
            assert_refused(self, bench(*arguments, cwd=self.folder))

    def test_a_missing_fio_is_one_line_and_status_2(self):
        for program in ("python3", "clang-19", "clang++-19"):
            (self.folder / program).symlink_to(shutil.which(program))
        assert_refused(self, bench("device", cwd=self.folder, env={"PATH": str(self.folder)}), "fio")


class Figures(Case):
    def test_statistics(self):
        self.assertEqual(lockstep.median([3, 1, 2]), 2)
        self.assertAlmostEqual(lockstep.spread([1.0, 2.0, 4.0]), 1.5)
        self.assertAlmostEqual(lockstep.geometric_mean([1.0, 4.0, 16.0]), 4.0)

    def turns(self, take, pairs, seconds, each=(1.0,), sides=("a", "b")):
        """The turns that count, {side: when each ended}, and all that were taken, by the side; a pair takes so many seconds, the last of them from there on."""
        now, taken, looked = [0.0], [], []

        def turn(side):
            taken.append(side)
            now[0] += each[min((len(taken) - 1) // len(sides), len(each) - 1)] / len(sides)
            return now[0]

        with unittest.mock.patch("time.monotonic", lambda: now[0]):
            counted = take(sides, turn, pairs, seconds, looked.append)
        self.assertEqual(len(looked), len(taken) // len(sides))
        self.assertEqual([sorted(answers) for answers in looked], [sorted(sides)] * len(looked))
        return counted, "".join(taken)

    def test_turns_end_with_the_time_or_the_number(self):
        self.assertEqual(self.turns(lockstep.take_turns, 3, 100), ({"a": [0.5, 2.0, 2.5], "b": [1.0, 1.5, 3.0]}, "abbaab"))
        for pairs, seconds, each, number in ((5, 0, [1], 1), (1, 100, [1], 1), (5, 1.4, [1], 1), (5, 1.5, [1], 2), (5, 3, [1], 3), (5, 10, [1, 8], 2), (5, 10, [1, 6], 3), (5, 1, [100], 1)):
            self.assertEqual(len(self.turns(lockstep.take_turns, pairs, seconds, each)[0]["b"]), number, (pairs, seconds, each))

    def test_the_first_pair_counts_where_there_is_time_for_no_other(self):
        self.assertEqual(self.turns(lockstep.take_warm_turns, 2, 100), ({"a": [1.5, 3.0], "b": [2.0, 2.5]}, "ababba"))
        self.assertEqual(self.turns(lockstep.take_warm_turns, 5, 4, [2]), ({"a": [3.0], "b": [4.0]}, "abab"))
        self.assertEqual(self.turns(lockstep.take_warm_turns, 5, 4, [2.1]), ({"a": [1.05], "b": [2.1]}, "ab"))

    def test_a_warm_up_is_no_pair_and_takes_none_of_the_time(self):
        self.assertEqual(self.turns(lockstep.take_turns_after_one, 2, 100), ({"a": [1.5, 3.0], "b": [2.0, 2.5]}, "ababba"))
        self.assertEqual(self.turns(lockstep.take_turns_after_one, 5, 2, [9, 1]), ({"a": [9.5, 11.0], "b": [10.0, 10.5]}, "ababba"))

    def test_a_side_that_is_gone_has_no_more_turns(self):
        looked = []
        taken = lockstep.take_turns(["a", "b"], lambda side: None if side == "b" and len(looked) > 0 else side, 3, 100, looked.append)
        self.assertEqual(taken, {"a": ["a"] * 3, "b": ["b"]})
        self.assertEqual(looked, [{"a": "a", "b": "b"}, {"a": "a"}, {"a": "a"}])

    def test_a_row_says_of_how_many_pairs_it_is(self):
        self.assertEqual(lockstep.row_of("c", [2.0, 6.0, 9.0], [1.0, 2.0, 2.0], "s", extra=7),
                         {"case": "c", "ours": 6.0, "peer": 2.0, "ratio": 3.0, "spread": 2.5 / 3, "unit": "s", "pairs": 3, "extra": 7})

    def test_cases_are_chosen_by_how_they_begin(self):
        names = ["disk/read/1", "disk/read/16", "zram/read/1", "figure4.3"]
        for words, chosen in ([[], names], [["disk"], names[:2]], [["disk/read/1"], names[:1]], [["figure", "zram/read/"], names[2:]], [["disk/read/16", "disk/read/1"], names[:2]]):
            self.assertEqual(cases.Cases(words).chosen(iter(names)), chosen, words)
        with self.assertRaisesRegex(lockstep.Failure, "begins with 'disk/rmw'; there are disk/read/1, "):
            cases.Cases(["zram", "disk/rmw"]).chosen(names)
        self.assertFalse(cases.Cases(["redis/set"]).wants("redis"))
        self.assertTrue(cases.Cases(["redis/set"]).wants("redis", or_below=True))
        self.assertFalse(cases.Cases(["redis2/set"]).wants("redis", or_below=True))

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
        for svg in (root, *below):
            self.assertEqual(svg.get("viewBox"), f"0 0 {svg.get('width')} {svg.get('height')}")
        first, second = ([tuple(map(float, point.split(","))) for point in line.get("points").split()]
                         for line in root.iter("{http://www.w3.org/2000/svg}polyline"))
        self.assertEqual([len(first), len(second)], [3, 2])
        # Heights from 0, and seconds, are to scale.
        floor = second[0][1]
        self.assertAlmostEqual((floor - first[2][1]) / (floor - first[0][1]), 4, delta=0.05)
        self.assertAlmostEqual((second[1][0] - second[0][0]) / (first[1][0] - first[0][0]), 2, delta=0.01)

    def test_curves_are_svg_with_a_dot_for_each_point(self):
        drawn = plot.curves("t", "s", "x <&>", {"a": [(2, 4.0), (1, 2.0), (4, 1.0)], "b": [(1, 1.0), (4, 4.0)]}, dots=("b",))
        root = xml.etree.ElementTree.fromstring(drawn)
        self.assertIn("x <&>", [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")])
        [line] = root.iter("{http://www.w3.org/2000/svg}polyline")
        first, second, third = (tuple(map(float, point.split(","))) for point in line.get("points").split())
        # In the order of x; both axes are to scale.
        self.assertAlmostEqual((third[0] - first[0]) / (second[0] - first[0]), 3, delta=0.01)
        self.assertAlmostEqual((third[1] - second[1]) / (third[1] - first[1]), 3, delta=0.02)
        self.assertEqual(len(list(root.iter("{http://www.w3.org/2000/svg}circle"))), 5)

    def test_axes_of_curves(self):
        def texts(drawn):
            return [element.text for element in xml.etree.ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]

        points = {"a": [(1, 1000.0), (4, 2000.0), (64, 150_000.0)]}
        self.assertLessEqual({"x", "y, in k", "0", "50k", "100k", "150k", "20", "40", "60"}, set(texts(plot.curves("t", "s", "x", points, y_name="y, in k"))))
        drawn = plot.curves("t", "s", "x", points, logarithmic="xy")
        # Few numbers are all named, and lie as far from each other as they are multiples.
        self.assertLessEqual({"1", "4", "64", "1k", "2k", "150k"}, set(texts(drawn)))
        [line] = xml.etree.ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}polyline")
        first, second, third = (tuple(map(float, point.split(","))) for point in line.get("points").split())
        self.assertAlmostEqual((third[0] - first[0]) / (second[0] - first[0]), 3, delta=0.02)
        # A logarithm of nothing is none.
        self.assertIn("0", texts(plot.curves("t", "s", "x", {"a": [(1, 0.0), (2, 5.0)]}, logarithmic="y")))

    def test_a_legend_takes_as_many_lines_as_it_needs(self):
        names = [f"the name of line {number}, which is long" for number in range(12)]
        root = xml.etree.ElementTree.fromstring(plot.curves("t", "s", "x", {name: [(1, 1.0), (2, 2.0)] for name in names}))
        placed = {element.text: (float(element.get("x")), float(element.get("y"))) for element in root.iter("{http://www.w3.org/2000/svg}text") if element.text in names}
        self.assertEqual((len(placed), len(set(placed.values()))), (12, 12))
        self.assertLess(max(x for x, _ in placed.values()), plot.WIDTH - 100)
        lowest = max(y for _, y in placed.values())
        self.assertLess(lowest, min(float(y) for line in root.iter("{http://www.w3.org/2000/svg}polyline") for y in (point.split(",")[1] for point in line.get("points").split())))
        self.assertEqual(len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))), 12)

    def test_a_report_of_cases_without_pictures_is_written_too(self):
        rows = [{"case": "a", "ours": 1.0, "unit": "ms"}]
        report.write(self.folder, {"name": "n", "machine": report.machine(), "parameters": {}, "rows": rows, "summary": {}}, "What it is.", {"more": []})
        self.assertIn("none of these cases has a picture", (self.folder / "n.svg").read_text())
        self.assertIn("| a |", (self.folder / "n.md").read_text())

    def test_a_report_has_a_table_for_each_part_and_further_pictures(self):
        rows = [{"case": case, "ours": 1.0, "peer": 1.0, "ratio": 1.0, "spread": 0.0, "unit": "ms", **more}
                for case, more in (("a/1", {}), ("part/1", {"extra": 7.0}), ("part/2", {"extra": 8.0}), ("party", {}), ("one", {"own": 9.0}))]
        result = {"name": "n", "machine": report.machine(), "parameters": {}, "rows": rows, "summary": {}, "parts": {"part": "its title", "one": "alone", "none": "nothing"}}
        report.write(self.folder, result, "What it is.", {"more": [plot.bars(**BARS), plot.bars(**BARS)]})
        written = (self.folder / "n.md").read_text()
        before, after = written.split("\n## part: its title\n")
        self.assertIn("| a/1 | 1 | 1 | 1 | – | ms |\n| party | 1 |", before)
        self.assertIn("| case | ours | peer | ratio | spread | unit | extra |", after)
        self.assertIn("| part/1 | 1 | 1 | 1 | – | ms | 7 |\n| part/2 |", after)
        self.assertIn("\n## one: alone\n", after)
        self.assertIn("| one | 1 | 1 | 1 | – | ms | 9 |", after)
        self.assertNotIn("nothing", written)
        root = xml.etree.ElementTree.fromstring((self.folder / "n.svg").read_text())
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}svg")), 2)

    def test_a_table_has_the_columns_of_all_rows(self):
        rows = [{"case": "resident", "ratio": 1.5, "unit": "s"}, {"case": "disk", "ratio": 2.0, "unit": "s", "pairs": 3, "swap_ratio": 2.0}, {"case": "zram", "swap_ratio": 4.0, "ours": 1.0}]
        self.assertEqual(report.table(rows), ["| case | ours | ratio | unit | pairs | swap_ratio |", "|---|--:|--:|---|--:|--:|",
                                              "| resident |  | 1.5 | s |  |  |", "| disk |  | 2 | s | 3 | 2 |", "| zram | 1 |  |  |  | 4 |"])

    def test_the_last_level_cache_is_among_the_facts_of_a_machine(self):
        self.assertEqual(report.last_level_cache(self.folder), "")
        for index, level, size in ((0, "1", "48K"), (1, "3", "15M"), (2, "2", "2048K")):
            (self.folder / f"index{index}").mkdir()
            (self.folder / f"index{index}" / "level").write_text(level + "\n")
            (self.folder / f"index{index}" / "size").write_text(size + "\n")
        self.assertEqual(report.last_level_cache(self.folder), "15M")
        self.assertEqual(report.machine()["last_level_cache"], report.last_level_cache())

    def test_a_spread_of_one_pair_is_none(self):
        rows = [{"spread": spread, **pairs} for spread, pairs in ((0.0, {"pairs": 1}), (0.0, {}), (0.0, {"pairs": 2}), (0.25, {}), ("", {"pairs": 1}))]
        self.assertEqual([report.shown(row, "spread") for row in rows], ["–", "–", "0", "0.25", ""])
        self.assertEqual(report.shown({"ratio": 0.0, "own_spread": 0.0, "pairs": 1}, "ratio"), "0")
        self.assertEqual(report.shown({"ratio": 0.0, "own_spread": 0.0, "pairs": 1}, "own_spread"), "–")

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
