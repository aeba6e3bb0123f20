#!/usr/bin/env python3
"""The program of `graph`: its kernels find what plain ones find, native and spilled; and how figures come of turns.  graph_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import collections
import functools
import heapq
import json
import pathlib
import re
import struct
import subprocess
import types
import unittest
import unittest.mock

from bench_case import CLEAN, HANG_SECONDS, SPILLWAY, Case, assert_refused, built_in, run_in

import graph
import limited
import lockstep

SCALE = 8
NONE = 2 ** 32 - 1


class Read:
    """A file of `graph make`."""

    def __init__(self, path):
        data = path.read_bytes()
        self.count, entries = struct.unpack_from("<QQ", data)
        at = 4096
        offsets = struct.unpack_from(f"<{self.count + 1}Q", data, at)
        at += -(-(self.count + 1) * 8 // 4096) * 4096
        ends = struct.unpack_from(f"<{entries}I", data, at)
        at += -(-entries * 4 // 4096) * 4096
        weights = struct.unpack_from(f"<{entries}I", data, at)
        self.rows = [list(zip(ends[offsets[v]:offsets[v + 1]], weights[offsets[v]:offsets[v + 1]])) for v in range(self.count)]

    def degree(self, vertex):
        return len(self.rows[vertex])


def depths(read, source):
    found, queue = {source: 0}, collections.deque([source])
    while queue:
        u = queue.popleft()
        for v, _ in read.rows[u]:
            if v not in found:
                found[v] = found[u] + 1
                queue.append(v)
    return [found.get(v, NONE) for v in range(read.count)]


def distances(read, source):
    found, heap = {}, [(0, source)]
    while heap:
        distance, u = heapq.heappop(heap)
        if u not in found:
            found[u] = distance
            for v, weight in read.rows[u]:
                heapq.heappush(heap, (distance + weight, v))
    return [found.get(v, NONE) for v in range(read.count)]


def lowest_of_components(read):
    lowest = [None] * read.count
    for v in range(read.count):
        if lowest[v] is None:
            for u, depth in enumerate(depths(read, v)):
                if depth != NONE:
                    lowest[u] = v
    return lowest


def ranks(read):
    scores = [1 / read.count] * read.count
    for _ in range(5):
        scores = [0.15 / read.count + 0.85 * sum(scores[u] / read.degree(u) for u, _ in row) for row in read.rows]
    return scores


def triangles(read, largest):
    """Those of which one of these vertices is the largest."""
    rows = [{u for u, _ in row if u < v} for v, row in enumerate(read.rows)]
    return sum(len(rows[u] & rows[v]) for u in largest for v in rows[u])


def dependencies(read, source):
    depth = depths(read, source)
    order = sorted((v for v in range(read.count) if depth[v] != NONE), key=lambda v: depth[v])
    paths, found = collections.Counter({source: 1}), [0.0] * read.count
    for v in order[1:]:
        paths[v] = sum(paths[u] for u, _ in read.rows[v] if depth[u] == depth[v] - 1)
    for v in reversed(order[1:]):
        found[v] = sum(paths[v] / paths[w] * (1 + found[w]) for w, _ in read.rows[v] if depth[w] == depth[v] + 1)
    return found


class Kernels(Case):
    def setUp(self):
        super().setUp()
        self.native = built_in(self.folder, "clang++-19", *graph.Workload.flags, *graph.Workload.sources, "-o", "native")
        self.files = {}
        for kind in ("kron", "uniform"):
            for order in ("any", "degree"):
                path = self.folder / f"{kind}-{order}"
                self.assertEqual(run_in(self.folder, self.native, "make", kind, order, SCALE, path).returncode, 0)
                self.files[kind, order] = path

    def values(self, *command):
        """What a kernel finds, and its checksum."""
        ended = subprocess.run([str(word) for word in command], input="load\nrun\nrun\nvalues\n", capture_output=True, text=True, timeout=HANG_SECONDS, env=CLEAN)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), command)
        started, ready, first, second, count, *values = ended.stdout.splitlines()
        self.assertEqual((started, ready.split()[0], int(count)), ("started", "ready", len(values)))
        self.assertEqual(first.split()[2], second.split()[2])
        return [float(value) for value in values], first.split()[2]

    def near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for ours, plain in zip(found, expected):
            self.assertAlmostEqual(ours, plain, delta=1e-4 * abs(plain) + 1e-9)

    def test_they_find_what_plain_ones_find(self):
        for kind in ("kron", "uniform"):
            read = {order: Read(self.files[kind, order]) for order in ("any", "degree")}
            any_order = read["any"]

            def found(kernel, order="any"):
                return self.values(self.native, "heap", self.files[kind, order], kernel, 2)[0]

            with self.subTest(kind):
                self.assertTrue(all(row == sorted(set(row)) and v not in dict(row) for v, row in enumerate(any_order.rows)))
                self.assertEqual(sorted(map(len, any_order.rows)), sorted(map(len, read["degree"].rows)))
                self.assertTrue(all((v, weight) in any_order.rows[u] and 1 <= weight <= 255 for v, row in enumerate(any_order.rows) for u, weight in row))
                self.near(found("pr"), ranks(any_order))
                self.assertEqual(found("cc"), lowest_of_components(any_order))
                self.assertEqual(found("tc", "degree"), [triangles(read["degree"], range(any_order.count))])
                self.assertEqual(found("tc32", "degree"), [triangles(read["degree"], range(64))])
                self.assertEqual(found("tc"), found("tc", "degree"))
                for kernel, plain in (("bfs", depths), ("sssp", distances)):
                    values = found(kernel)
                    self.assertEqual(values, plain(any_order, values.index(0)))
                # Of two sources, which are at no distance from themselves.
                sources = {i for i, value in enumerate(self.values(self.native, "heap", self.files[kind, "any"], "sssp", 1)[0]) if value == 0}
                scores = found("bc")
                first = dependencies(any_order, sources.pop())
                self.assertTrue(any(all(abs(score - one - two) < 1e-4 * score + 1e-9 for score, one, two in zip(scores, first, dependencies(any_order, v)))
                                    for v in range(any_order.count) if any_order.degree(v) > 0))

    def test_spilled_mapped_and_by_any_threads_they_find_the_same(self):
        ours = built_in(self.folder, SPILLWAY.with_name("spillc++"), *graph.Workload.flags, *graph.Workload.sources, "-o", "ours")
        run = [SPILLWAY, "run", "--memory", "6M", "--storage", "memory:64M", "--spill-all", "--stats", self.folder / "stats", "--chaos", 7, "--", ours]
        for kernel in ("pr", "bfs", "cc", "tc", "tc32", "sssp", "bc"):
            path = self.files["kron", "degree" if kernel.startswith("tc") else "any"]
            expected = self.values(self.native, "heap", path, kernel, 1)
            for threads in (1, 2):
                with self.subTest(f"{kernel} {threads}"):
                    self.assertEqual(self.values(*run, "heap", path, kernel, threads), expected)
                    self.assertGreater(json.loads((self.folder / "stats").read_text())["spill"]["allocated_bytes"], 50000)
                    self.assertEqual(self.values(self.native, "map", path, kernel, threads), expected)

    def test_all_that_is_mapped_is_read_as_advised(self):
        path = self.files["kron", "any"]
        with lockstep.Programs() as programs:
            program = programs.start([self.native, "map", path, "sssp", 1])
            program.read(HANG_SECONDS)
            program.ask("load\n", HANG_SECONDS)
            for advice, flag in (("random", "rr"), ("sequential", "sr")):
                self.assertEqual(program.ask(f"advise {advice}\n", HANG_SECONDS), "ready")
                maps = pathlib.Path(f"/proc/{program.process.pid}/smaps").read_text()
                flags = re.findall(rf"^[0-9a-f]+-.* {re.escape(str(path))}\n(?:\w+:.*\n)*?VmFlags:(.*)$", maps, re.M)
                # Where rows begin, what they hold, and weights.
                self.assertEqual([flag in each.split() for each in flags], [True] * 3, maps)
            program.finish()

    def test_wrong_words_are_one_line_and_status_2(self):
        for words in ([], ["heap"], ["make", "other", "any", 5, "x"], ["make", "kron", "any", 30, "x"], ["heap", "x", "nothing", 1], ["map", "x", "pr", 0]):
            assert_refused(self, run_in(self.folder, self.native, *words), by="")


class Contest:
    """Of a case, with programs whose turns take as long as they are told, {side: seconds, or {way: seconds}}, and no time. load_seconds: that a peer takes to load."""
    peer_seconds, device, PEERS, choose = limited.ANSWER_SECONDS, types.SimpleNamespace(mapped="mapped"), limited.Contest.PEERS, limited.Contest.choose

    def __init__(self, seconds, load_seconds):
        self.seconds, self.load_seconds, self.running, self.late, self.way, self.asked, self.read, self.now = seconds, load_seconds, {}, set(), {}, [], 0, 0.0
        for side in seconds:
            self.start(side, [])

    def start(self, side, command, swap=False):
        self.running[side] = types.SimpleNamespace(read=lambda seconds: "started")
        self.late.discard(side)

    def asking(self, side):
        return lambda question: self.ask(side, question)

    def ask(self, side, question, seconds=None):
        if side not in self.running:
            return None
        if question.startswith("advise"):
            self.way[side] = question.split()[1]
            return "ready"
        took = self.seconds[side]
        took = self.load_seconds if question == "load\n" else took[self.way[side]] if isinstance(took, dict) else took
        if question == "run\n":
            self.asked.append(side)
        if side in self.PEERS and took > (waited := seconds or self.peer_seconds):
            self.now += waited
            self.late.add(side)
            del self.running[side]
            return None
        self.now, self.read = self.now + took, self.read + 4096
        return "ready 4096" if question == "load\n" else f"{took} {took} found"

    def ways_to_swap(self):
        return {pages: functools.partial(self.way.update, swap=pages) for pages in (1, 8)}

    def read_bytes(self, side):
        return self.read


class Limited(Case):
    def turns(self, seconds, known, limited_seconds=40, pairs=3, load_seconds=1):
        """(ways, turns that count, pages a second of fio's turns, sides in the order in which they were asked)"""
        contest = Contest(seconds, load_seconds)
        measured = graph.Limited("c", contest, graph.Workload(None, "pr"), {"mmap": [], "swap": []}, types.SimpleNamespace(pairs=pairs, limited_seconds=limited_seconds))
        with unittest.mock.patch("time.monotonic", lambda: contest.now), unittest.mock.patch.object(graph, "forget", lambda place: None):
            measured.begin()
            ways = measured.first_turns(known)
            turns, rates = measured.turns(types.SimpleNamespace(rate=lambda: 7.0))
        self.assertTrue(all(turn.reads_per_second == 1 / turn.seconds for turn in turns["ours"]))
        return ways, {side: [turn.seconds for turn in own] for side, own in turns.items()}, rates, contest.asked

    def test_first_turns_of_all_sides_count_where_they_take_all_of_the_time(self):
        seconds = {"ours": 10.0, "two_bodies": 11.0, "mmap": {"random": 9.0, "sequential": 30.0}, "swap": {1: 20.0, 8: 12.0}, "native": 1.0}
        ways, turns, rates, asked = self.turns(seconds, {"mmap": None, "swap": None})
        self.assertEqual((ways, rates), ({"mmap": "random", "swap": 8}, [7.0]))
        self.assertEqual(turns, {"ours": [10.0], "mmap": [9.0], "swap": [12.0], "two_bodies": [11.0], "native": [1.0]})
        self.assertEqual(asked, ["ours", "mmap", "mmap", "swap", "swap", "two_bodies", "native"])
        # Where it is known in what way a peer is the fastest it is tried in no other.
        ways, turns, _, asked = self.turns(seconds, {"mmap": "sequential", "swap": 8})
        self.assertEqual((ways, turns["mmap"], turns["swap"]), ({"mmap": "sequential", "swap": 8}, [30.0], [12.0]))
        self.assertEqual(asked, ["ours", "mmap", "swap", "two_bodies", "native"])

    def test_short_turns_are_taken_until_there_are_pairs_or_the_time_is_over(self):
        seconds = {"ours": 1.0, "mmap": {"random": 3.0, "sequential": 2.0}, "swap": {1: 4.0, 8: 5.0}, "native": 0.5}
        ways, turns, rates, asked = self.turns(seconds, {"mmap": "random", "swap": 1})
        # Both ways of each peer, and a pair that does not count.
        self.assertEqual((ways, len(asked)), ({"mmap": "sequential", "swap": 1}, 6 + 4 + 3 * 4))
        self.assertEqual((turns["ours"], turns["swap"], rates), ([1.0] * 3, [4.0] * 3, [7.0] * 3))
        _, turns, rates, asked = self.turns(seconds, {"mmap": None, "swap": None}, limited_seconds=16)
        self.assertEqual((len(turns["ours"]), len(rates), len(asked)), (2, 2, 6 + 2 * 4))

    def test_a_peer_that_has_begun_anew_is_as_warm_as_the_others_before_its_turns_count(self):
        seconds = {"ours": 3.0, "mmap": {"random": 6.0, "sequential": 100.0}, "swap": {1: 4.0, 8: 5.0}, "native": 1.0}
        ways, turns, _, asked = self.turns(seconds, {"mmap": None, "swap": None})
        self.assertEqual((ways["mmap"], turns["mmap"], turns["ours"]), ("random", [6.0] * 3, [3.0] * 3))
        self.assertEqual(asked[:8], ["ours", "mmap", "mmap", "swap", "swap", "native", "mmap", "ours"])
        self.assertEqual(len(asked), 7 + 3 * 4)
        # Where there is a pair of all that does not count it is in that.
        _, _, _, asked = self.turns(seconds, {"mmap": None, "swap": None}, limited_seconds=60)
        self.assertEqual(len(asked), 6 + 4 + 3 * 4)

    def test_what_a_peer_loads_may_take_longer_than_a_turn(self):
        seconds = {"ours": 3.0, "mmap": {"random": 6.0, "sequential": 100.0}, "swap": {1: 100.0, 8: 5.0}, "native": 1.0}
        ways, turns, _, _ = self.turns(seconds, {"mmap": None, "swap": None}, load_seconds=90)
        self.assertEqual((ways, turns["mmap"], turns["swap"]), ({"mmap": "random", "swap": 8}, [6.0] * 3, [5.0] * 3))

    def test_cases_are_in_the_order_of_what_they_have_in_common(self):
        measured = graph.Graph.__new__(graph.Graph)
        measured.plan, measured.kernels = graph.Plan(types.SimpleNamespace(quick=False, pairs=0)), {"pr": None, "bfs": None}
        cases = [(str(key), key) for key in measured.plan.limited_cases(measured.kernels)]
        self.assertEqual([key[:3] for _, key in sorted(cases, key=measured.order)],
                         [("kron", "pr", 25), ("kron", "pr", 50), ("kron", "pr", 12), ("kron", "bfs", 25), ("kron", "bfs", 50), ("kron", "bfs", 12), ("uniform", "pr", 25), ("uniform", "bfs", 25)])


class Figures(Case):
    def test_summary(self):
        rows = [{"case": "resident/kron/pr/1", "ratio": 1.0, "two_bodies_ratio": 1.0}, {"case": "resident/kron/pr/2", "ratio": 4.0, "two_bodies_ratio": 1.0},
                {"case": "disk/kron/pr/25/2", "ratio": 2.0, "mmap_ratio": 2.0, "swap_ratio": 8.0, "native_ratio": 0.5, "fio_ratio": 0.5},
                {"case": "disk/kron/bc/25/2", "ratio": 2.0, "mmap_ratio": 8.0, "native_ratio": 0.5}]
        self.assertEqual({key: round(value, 6) for key, value in graph._summary(rows).items()},
                         {"resident_geomean_ratio": 2, "resident_worst_ratio": 4, "resident_two_bodies_geomean_ratio": 1, "resident_two_bodies_worst_ratio": 1,
                          "swap_disk_25": 8, "swap_disk_25_worst": 8, "mmap_disk_25": 4, "mmap_disk_25_worst": 2, "native_disk_25": 0.5, "native_disk_25_worst": 0.5,
                          "fio_disk_25": 0.5, "fio_disk_25_worst": 0.5})


if __name__ == "__main__":
    unittest.main(verbosity=2)
