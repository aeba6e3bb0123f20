#!/usr/bin/env python3
"""spillway bench all: its order, what it keeps and what it tells, with measurements that take no time; and the papers' figures.  everything_test.py SPILLWAY [unittest arguments]"""
import contextlib
import html.parser
import io
import json
import pathlib
import types
import unittest
import unittest.mock

from bench_case import SPILLWAY, Case, assert_refused, bench

import bench as driver
import claims
import everything
import kept
import overview
import papers
import report
from lockstep import Failure

FIGURES = [{"title": "A Paper <on> Tables", "where": "CONF 2020", "order": 1, "figure": [
    {"name": "Figure 1", "shows": "speed by `size`", "found": "3 times as fast", "how": "measured", "note": "smaller", "from": [{"benchmark": "sort", "cases": ["disk/*"], "columns": ["ratio", "extra"], "less": ["*"], "summary": ["be*"]}]},
    {"name": "Figure 2", "shows": "more nodes", "found": "7", "how": "simulated", "note": "a model", "from": [{"benchmark": "switch", "cases": ["*"], "columns": ["ratio"]}],
     "plots": [{"benchmark": "switch", "cases": ["disk/*"], "part": 1, "x": "tasks", "y": "seconds each", "lines": {"ours": "ours", "peer": "theirs"}}]},
    {"name": "Figure 3", "shows": "eight drives", "found": "8", "how": "not measured", "note": "one drive here"},
    {"name": "Figure 4", "shows": "others", "found": "9", "how": "measured", "note": "none", "from": [{"benchmark": "sort", "cases": ["zram/*"], "columns": ["ratio"]}]}]}]


CLAIMS = [{"what": "sorts", "figure": "2.0 ×, 3 s, 4 to 5 and 6", "command": "", "parts": [
    {"says": "2.0 ×", "benchmark": "sort", "summary": ["be*"]}, {"says": "3 s", "benchmark": "switch", "cases": ["disk/*"], "columns": ["extra", "ours"], "scale": 10},
    {"says": "4 to 5", "benchmark": "sort", "summary": ["worst"]}, {"says": "6", "benchmark": "graph", "summary": ["best"]}]}]


EXPLAINED = "What `it` is <for>."


class Balanced(html.parser.HTMLParser):
    """Whether each element that must be closed is, in order; and what its text is."""
    OPEN = {"meta", "br", "html"}

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.OPEN:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert tag == "html" or self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text.append(data)


def result(rows):
    return {"name": "", "machine": report.machine(), "parameters": {}, "rows": rows, "summary": {"best": 2.0}}


class Runs(Case):
    def setUp(self):
        super().setUp()
        self.measured, self.said, self.broken = [], [], {}
        self.context = types.SimpleNamespace(quick=True, pairs=0, storage=pathlib.Path("/var/tmp"), traces=None, spillway=SPILLWAY, say=self.said.append)
        self.addCleanup(setattr, papers, "load", papers.load)
        papers.load = lambda: FIGURES
        self.addCleanup(setattr, claims, "load", claims.load)
        claims.load = lambda: CLAIMS

    def measure(self, name, made_by):
        self.measured.append(name)
        if name in self.broken:
            raise self.broken[name]
        rows = [{"case": f"disk/{number}", "ours": 1.0, "peer": 2.0, "ratio": 0.5, "spread": 0.0, "unit": "s", "extra": 3.0} for number in ((1, 4) if name == "switch" else (1,))]
        made = {**result(rows), "name": name, "made_by": made_by}
        report.write(self.folder, made, EXPLAINED, {"title": name, "subtitle": "", "cases": ["disk/1"], "series": {"x": [0.5]}})

    def run_all(self, names=("sort", "switch", "tasks"), resume=False):
        self.measured.clear()
        with contextlib.redirect_stdout(io.StringIO()):
            return everything.Everything(self.context, list(names), self.folder, self.measure, lambda name: EXPLAINED, resume).run()

    def report(self):
        return json.loads((self.folder / "report.json").read_text())

    def test_all_are_measured_and_reported(self):
        self.assertEqual(self.run_all(), 0)
        self.assertEqual(self.measured, ["sort", "switch", "tasks"])
        facts = self.report()
        self.assertEqual(set(facts["summary"]), {"sort", "switch", "tasks"})
        self.assertEqual(facts["figures"], {"measured": 1, "simulated": 1, "not measured": 1, "missing": 1})
        self.assertEqual([figure["state"] for figure in facts["papers"][0]["figures"]], ["measured", "simulated", "not measured", "missing"])
        self.assertEqual(facts["papers"][0]["figures"][0]["from"], [{"benchmark": "sort", "rows": [{"case": "disk/1", "ratio": 0.5, "spread": 0.0, "extra": 3.0}]},
                                                                    {"benchmark": "sort", "rows": [{"figure": "best", "value": 2.0}]}])
        self.assertIn("did not measure these cases", facts["papers"][0]["figures"][3]["missing"])
        page = (self.folder / "report.html").read_text()
        parser = Balanced()
        parser.feed(page)
        self.assertEqual(parser.open, [])
        text = " ".join(parser.text)
        for words in ("A Paper <on> Tables", "3 times as fast", "one drive here", "for>.", "disk/1", "seconds each", "theirs"):
            self.assertIn(words, text)
        # Of each benchmark, and of each figure that was measured: bars of one, and curves of the other, which has several points.
        self.assertEqual(page.count("<svg "), 3 + 2)
        self.assertEqual(page.count("ratios of the rows below"), 1)
        written = (self.folder / "report.md").read_text()
        self.assertIn("### Figure 1: measured", written)
        self.assertIn("Of [sort](sort.md); less is better: ratio:", written)
        self.assertIn("Of [switch](switch.md):", written)
        for text in (page, written):
            self.assertIn("Of 4 figures and tables of the papers: 1 measured, 1 simulated, 1 not measured, 1 missing.", text)

    def test_figures_have_the_notes_of_their_cases(self):
        def measure(name, made_by):
            made = {**result([{"case": case, "ours": 1.0, "peer": 2.0, "ratio": 0.5, "spread": 0.0, "unit": "s"} for case in ("disk/1", "disk/2", "ram/1")]), "name": name, "made_by": made_by}
            made["notes"] = ["no swap here", "disk/1: <killed>", "ram/1: slow", "disk/2: <killed>"] if name == "sort" else []
            report.write(self.folder, made, EXPLAINED, {"title": name, "subtitle": "", "cases": ["disk/1"], "series": {"x": [0.5]}})

        self.measure = measure
        self.run_all()
        first, second = (self.folder / "report.md").read_text().partition("### Figure 1: measured\n")[2].split("### Figure 2: simulated\n")
        self.assertIn("\nNote: no swap here.\n\nNote: disk/1, disk/2: <killed>.\n", first)
        self.assertNotIn("slow", first + second)
        page = (self.folder / "report.html").read_text().partition("Figure 1 <small")[2].partition("Figure 2 <small")[0]
        self.assertIn("<p>Note: disk/1, disk/2: &lt;killed&gt;.</p>", page)
        self.assertNotIn("slow", page)

    def test_rows_that_are_in_no_curve_have_bars(self):
        [plotted] = FIGURES[0]["figure"][1]["plots"]
        figure = FIGURES[0]["figure"][1] | {"plots": [plotted, plotted | {"cases": ["zram/*"]}]}
        rows = [{"case": case, "ours": 1.0, "peer": 2.0, "ratio": 0.5} for case in ("disk/1", "disk/4", "zram/1", "resident")]
        pictures, in_curves = overview._curves(figure, {"switch": result(rows)})
        self.assertEqual((len(pictures), in_curves), (1, {"switch": ["disk/*"]}))
        bars = overview._bars("Figure 2", rows, [], in_curves["switch"])
        self.assertEqual([row["case"] for row in rows if f">{row['case']}<" in bars], ["zram/1", "resident"])
        self.assertEqual(overview._bars("Figure 2", rows[:2] + [{"figure": "best", "value": 2.0}], [], in_curves["switch"]), "")

    def test_the_front_pages_claims_come_first(self):
        self.run_all()
        parts = self.report()["claims"]
        self.assertEqual([part["says"] for part in parts], ["2.0 ×", "3 s", "4 to 5", "6"])
        self.assertEqual([part.get("measured") for part in parts], [[2.0], [30.0, 10.0, 30.0, 10.0], None, None])
        self.assertEqual([claims.words_of(part) for part in parts], ["2", "10 to 30", "– (sort did not measure these cases in this run)", "– (graph was not run)"])
        self.assertIn("| sorts | 2.0 × | 2 | sort: be* |\n|  | 3 s | 10 to 30 | switch: disk/* |\n", (self.folder / "report.md").read_text())
        page = (self.folder / "report.html").read_text()
        self.assertLess(page.index("10 to 30"), page.index("Figures and tables of the papers"))

    def test_claims_that_are_off_are_counted_and_marked(self):
        # `best` is 2, and switch's are ten times 1 and 3.
        def part(says, **more):
            return {"says": says, "benchmark": "sort", "summary": ["be*"], **more}

        range_of_switch = {"benchmark": "switch", "summary": [], "cases": ["disk/*"], "columns": ["extra", "ours"], "scale": 10}
        claims.load = lambda: [
            {"what": "sorts", "figure": "", "command": "", "parts": [part(says) for says in ("2.0 ×", "2.15 ×", "1.85 ×", "1.5–2.2 ×", "2.4 to 3 ×", "1.7 <s>")]},
            {"what": "switches", "figure": "", "command": "", "parts": [part(says, **range_of_switch) for says in ("10 to 30", "8 to 32", "11–28", "20", "10 to 20", "15 to 30")]},
            {"what": "others", "figure": "", "command": "", "parts": [part("7", cpu="of nobody"), part("9", benchmark="graph")]}]
        self.context.quick = False
        self.run_all()
        facts, text, page = self.report(), (self.folder / "report.md").read_text(), (self.folder / "report.html").read_text()
        self.assertEqual([found.get("verdict") for found in facts["claims"]],
                         ["as said"] * 4 + ["less", "more"] + ["as said"] * 3 + ["less and more", "more", "less"] + [None] * 2)
        self.assertEqual(facts["check"], {"compared": 12, "off": 5})
        head, _, table = text.partition("\n## ")
        self.assertIn("5 of 12 claims are not what was measured here: [sorts: 2.4 to 3 ×, here less](#claim-5); [sorts: 1.7 <s>, here more](#claim-6); ", head)
        self.assertIn("[switches: 15 to 30, here less](#claim-12); 2 were not compared.\n", head)
        self.assertIn('|  | <a id="claim-5"></a>**2.4 to 3 ×** | 2 | less | sort: be* |\n', table)
        self.assertIn("|  | 1.5–2.2 × | 2 | as said | sort: be* |\n", table)
        Balanced().feed(page)
        self.assertIn('<a href="#claim-6">sorts: 1.7 &lt;s&gt;, here more</a>', page.partition("<h2>")[0])
        self.assertEqual([number for number in range(20) if f'<tr class=off id="claim-{number}">' in page], [5, 6, 10, 11, 12])

    def test_a_quick_run_is_no_check_of_claims(self):
        self.run_all()
        facts, text, page = self.report(), (self.folder / "report.md").read_text(), (self.folder / "report.html").read_text()
        self.assertIsNone(facts["check"])
        self.assertFalse(any("verdict" in part for part in facts["claims"]))
        for written in (text, page):
            self.assertIn("A quick run is no check of README's figures", written)
            self.assertNotIn("not what was measured here", written)
        self.assertNotIn("claim-", text + page)

    def test_what_cannot_be_measured_is_named_and_stops_nothing(self):
        self.broken = {"sort": Failure("swap needs root", 2), "switch": KeyError("a defect")}
        self.assertEqual(self.run_all(), 1)
        self.assertEqual(self.measured, ["sort", "switch", "tasks"])
        self.assertEqual(self.report()["failed"]["sort"], "swap needs root")
        self.assertRegex(self.report()["failed"]["switch"], r"^KeyError in everything_test.py, line \d+: 'a defect'$")
        self.assertIn("sort: swap needs root", self.report()["papers"][0]["figures"][0]["missing"])
        self.assertIn("not measured: swap needs root", (self.folder / "report.html").read_text())

    def test_a_run_that_was_stopped_goes_on(self):
        self.broken = {"switch": Failure("stopped by signal 2", 130)}
        with self.assertRaisesRegex(Failure, "stopped by signal 2") as stopped:
            self.run_all()
        self.assertEqual(stopped.exception.status, 130)
        self.assertEqual(set(self.report()["summary"]), {"sort"})
        self.broken = {}
        self.assertEqual(self.run_all(resume=True), 0)
        self.assertEqual(self.measured, ["switch", "tasks"])
        self.assertEqual(set(self.report()["summary"]), {"sort", "switch", "tasks"})

    def test_only_what_the_same_options_measured_is_kept(self):
        self.run_all()
        self.run_all()
        self.assertEqual(self.measured, ["sort", "switch", "tasks"], "without --resume nothing is")
        self.context.quick = False
        self.run_all(resume=True)
        self.assertEqual(self.measured, ["sort", "switch", "tasks"])
        (self.folder / "tasks.json").write_text("{")
        self.run_all(resume=True)
        self.assertEqual(self.measured, ["tasks"])

    def test_what_one_benchmark_alone_has_measured_is_kept_if_it_is_all_of_it(self):
        made_by = kept.made_by(self.context)
        self.measure("sort", made_by)
        self.measure("switch", made_by | {"only": ["disk/1"]})
        self.run_all(resume=True)
        self.assertEqual(self.measured, ["switch", "tasks"])
        self.assertEqual(set(self.report()["summary"]), {"sort", "switch", "tasks"})
        self.context.traces = self.folder
        self.run_all(resume=True)
        self.assertEqual(self.measured, ["sort", "switch", "tasks"], "other traces")

    def test_a_result_of_before_does_not_stand_for_one_that_failed(self):
        self.run_all()
        self.broken = {"sort": Failure("no more")}
        self.assertEqual(self.run_all(), 1)
        self.assertNotIn("sort", self.report()["summary"])

    def test_it_says_what_comes_and_how_long_it_takes(self):
        with unittest.mock.patch.dict(everything.SECONDS, {"sort": (400, 40), "switch": (60, 15), "tasks": (300, 40)}):
            self.run_all()
        self.assertEqual(self.said[0], "[1 of 3] sort, some 40 s; all of them 2 min")
        self.assertRegex(self.said[2], r"^\[3 of 3\] tasks, some 1 s; all of them 1 s$")


class Words(Case):
    def test_words_that_do_not_go_together(self):
        assert_refused(self, bench("all", "--only", "disk", cwd=self.folder))

    def test_each_benchmark_has_a_time(self):
        self.assertEqual(sorted(everything.SECONDS), sorted(driver.BENCHMARKS))


class Curves(unittest.TestCase):
    def test_lines_are_what_parts_of_names_and_columns_tell_apart(self):
        rows = [{"case": f"disk/{backend}/{size}/{depth}", "ours": depth * 10.0, "peer": depth * 9.0, "other": ""} for backend in ("uring", "aio") for size in ("4K",) for depth in (1, 16)]
        rows += [{"case": "disk/threads/4K/1", "ours": 5.0}, {"case": "zram/uring/4K/1", "ours": 6.0}]
        drawn = {"cases": ["disk/*"], "part": 3, "lines": {"ours": "store", "peer": "fio", "other": "none"}}
        self.assertEqual(papers.curves_of(drawn, {"rows": rows}), {"uring, store": [(1, 10.0), (16, 160.0)], "uring, fio": [(1, 9.0), (16, 144.0)],
                                                                   "aio, store": [(1, 10.0), (16, 160.0)], "aio, fio": [(1, 9.0), (16, 144.0)]})
        self.assertEqual(papers.curves_of(drawn | {"cases": ["disk/aio/*"], "lines": {"ours": "store"}}, {"rows": rows}), {"store": [(1, 10.0), (16, 160.0)]})
        self.assertEqual(set(papers.curves_of(drawn | {"lines": {"ours": "store"}}, {"rows": rows})), {"uring", "aio"})
        self.assertEqual(papers.curves_of(drawn | {"cases": ["zram/*"]}, {"rows": rows}), {})


class Claims(unittest.TestCase):
    def test_each_is_of_a_benchmark_that_there_is(self):
        for claim in claims.load():
            for part in claim["parts"]:
                self.assertIn(part["benchmark"], driver.BENCHMARKS, claim["what"])
                self.assertTrue(part.get("summary") or part.get("cases"), part)
                self.assertEqual("cases" in part, "columns" in part, part)
                self.assertIn(len(claims.numbers(part["says"])), (1, 2), part)

    def test_a_tenth_beyond_what_is_rounded_to_the_ends_is_as_said(self):
        for says, least, most in (("59 s", 52.65, 65.45), ("1.20 × native", 1.0755, 1.3255), ("0.01 ×", 0.0045, 0.0165), ("of 8.5 to 14 bytes", 7.605, 15.95), ("1,024–2,048", 921.15, 2253.35)):
            for value, said in ((1.001 * least, "as said"), (0.999 * least, "less"), (0.999 * most, "as said"), (1.001 * most, "more")):
                self.assertEqual(claims.verdict(says, [value]), said, (says, value))
                self.assertEqual(claims.verdict(says, [value, (least + most) / 2]), said, (says, value))
            self.assertEqual(claims.verdict(says, [2 * most, least / 2]), "less and more")


class Papers(unittest.TestCase):
    def test_a_figure_has_the_spreads_of_its_ratios_and_of_how_many_pairs_they_are(self):
        row = {"case": "a", "ours": 1.0, "peer": 2.0, "ratio": 0.5, "spread": 0.1, "own_ratio": 3.0, "own_spread": 0.2, "cycles": 7, "unit": "s", "pairs": 5}
        for columns, found in ((["own_ratio", "ours"], ["own_ratio", "own_spread", "ours", "pairs", "unit"]), (["ratio", "cycles"], ["ratio", "spread", "cycles", "pairs"]), (["cycles"], ["cycles", "pairs"])):
            source = {"benchmark": "sort", "cases": ["a"], "columns": columns}
            [(_, rows, less)] = papers.tables_of(source, {"rows": [row, {"case": "b"}], "summary": {}})
            self.assertEqual(([list(shown) for shown in rows], less), ([["case", *found]], []))

    def test_it_is_said_which_of_more_and_less_is_better(self):
        row = {"case": "a", "ours": 1.0, "ratio": 0.5, "cpu_ratio": 2.0}
        source = {"benchmark": "sort", "cases": ["a"], "columns": ["ours", "ratio", "cpu_ratio"], "less": ["cpu*", "o*"]}
        [(_, rows, less)] = papers.tables_of(source, {"rows": [row], "summary": {}})
        self.assertEqual(less, ["cpu_ratio"])
        bars = overview._bars("Figure 1", rows, less, [])
        for label in ("ratio: more is better", "cpu_ratio: less is better"):
            self.assertIn(f">{label}<", bars)

    def test_without_one_of_its_tables_a_figure_is_measured_in_part(self):
        sources = [{"benchmark": name, "cases": ["a"], "columns": ["ratio"]} for name in ("sort", "tasks")]
        sort = {"sort": {"rows": [{"case": "a", "ratio": 2.0}], "summary": {}}}
        for how, part in (("measured", "measured in part"), ("measured in part", "measured in part"), ("simulated", "simulated")):
            state, tables, reason = papers.state({"how": how, "from": sources}, sort, {"tasks": "no cores"})
            self.assertEqual((state, len(tables), reason), (part, 1, "tasks: no cores"))
            self.assertEqual(papers.state({"how": how, "from": sources}, sort | {"tasks": sort["sort"]}, {})[0], how)
            self.assertEqual(papers.state({"how": how, "from": sources}, {}, {})[0], "missing")

    def test_figures_are_counted_and_not_their_entries(self):
        entries = [("Figure 1, on DRAM", "measured"), ("Figure 1, on the disk", "missing"), ("Figure 2", "measured"), ("Figure 12", "missing"), ("Table 4.3", "not measured"), ("Tables 4.1, 4.2", "simulated"),
                   ("Figure 5a", "simulated"), ("Figure 5b", "missing"), ("Figure 6", "not measured"), ("Beside figure 6, locks", "measured"), ("Section 3, locks", "measured")]
        self.assertEqual(papers.counted(entries), {"measured in part": 1, "measured": 1, "missing": 1, "not measured": 2, "simulated": 2})

    def test_each_figure_says_where_it_comes_from(self):
        loaded = papers.load()
        self.assertEqual([paper["order"] for paper in loaded], list(range(1, len(loaded) + 1)))
        for paper in loaded:
            names = [figure["name"] for figure in paper["figure"]]
            self.assertEqual(len(names), len(set(names)), paper["title"])
            for figure in paper["figure"]:
                where = (paper["title"], figure["name"])
                self.assertLessEqual({"name", "shows", "found", "how", "note"}, set(figure), where)
                self.assertIn(figure["how"], papers.HOW, where)
                self.assertFalse(figure["how"] == "measured" and "Missing:" in figure["note"], where)
                self.assertRegex(figure["name"], r"^(Figure|Tables?|Sections?|Beside (figure|table)) \d", paper["title"])
                self.assertEqual("from" in figure, figure["how"] != "not measured", where)
                for source in figure.get("from", []):
                    self.assertIn(source["benchmark"], driver.BENCHMARKS, where)
                    self.assertTrue(source["cases"] and source["columns"], where)
                    for pattern in source.get("less", []):
                        self.assertTrue(any(column.endswith("ratio") and papers.fits(column, [pattern]) for column in source["columns"]), where)
                for drawn in figure.get("plots", []):
                    self.assertLessEqual({"benchmark", "cases", "part", "x", "y", "lines"}, set(drawn), where)
                    self.assertIn(drawn["benchmark"], [source["benchmark"] for source in figure["from"]], where)
                    self.assertTrue(all(len(pattern.split("/")) > drawn["part"] for pattern in drawn["cases"]), where)


if __name__ == "__main__":
    unittest.main(verbosity=2)
