"""Kernels over graphs, resident and with memory for a part of them, beside native code, mmap and swap."""
import functools
import os
import shutil

from devices import Cleanup, forget
from limited import (ANSWER_SECONDS, MIB, OPENMP, PAGE_BYTES, Contest, Device, Fio, check_same, check_stats, fio_columns, limit_of, limited_row, plain_bytes, reckoned, resident_row,
                     resident_summary, usable_devices)
from lockstep import Failure, Programs, geometric_mean, median, take_turns, take_turns_after_one, take_warm_turns
from variants import variants
from workloads import Graph as Workload
from workloads import make_graph

DOC = """\
Kernels in the style of the GAP benchmark suite, over graphs in compressed rows. `resident`: CPU time with all data in memory, compiled by spillcc
(ours) over native code (peer); less is better. `DEVICE/GRAPH/KERNEL/PERCENT/THREADS`: how many times as fast as the best peer ours is, with memory for so
many percent of the data; `ours` and `peer` are seconds. `mmap_ratio`: over rows mapped from the device, read with the advice (`advice`)
that was faster, beside vertices in memory with swap; `swap_ratio`: over all of it in memory with swap, of which one page or eight come in at a time (`swapped_in`), whichever was faster; `native_ratio`: over native code with
all the memory that it wants. A peer that was not done with a turn after a minute, or twice as long as our first turn took if that is more (`late`), is reckoned as if it had been done then, with that turn and all that follow: ours is at least so many times as fast. `fio_ratio`: pages that ours reads a second, over the reads a second of fio at its best depth of 16, 32 and 64. `pairs`: as many as there was time for; where the first turns of all sides take longer than a case may, these are the pair. `bodies`: of each function ours has one,
the instrumented one; `two_bodies_…` are of programs with two, out of core with a quarter of the data in memory.
"""
RUN_SECONDS = 600
PEER_SECONDS = 60
# Lists of vertices that are short: below 64 KiB they are plain memory, outside the budget. The other kernels have none, and get nothing for them: at an eighth of the data it would be half as much as the budget.
SHORT_LISTS_BYTES = {"sssp": 4 * MIB}
FIO_DEPTHS = (16, 32, 64)
ADVICE = ("random", "sequential")
# By so many powers of two graphs of these are smaller: triangles take quadratic time where degrees are high, and out of core a turn takes minutes else. Not by more: a limit of
# little memory would be too much by what all sides get besides the data.
SMALLER = {"tc": 3}
SMALLER_LIMITED = {"sssp": 2, "bc": 2}
# Kernels of which only one is measured so: some of the triangles take a time that can be waited for, of a graph as large as the others'.
ONLY_RESIDENT, ONLY_LIMITED = {"tc"}, {"tc32"}
MIDDLE_PERCENT = 25  # at which all sides are measured, and from which long cases have the ways of peers


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.resident_scale, self.scale = (14, 19) if quick else (20, 21)
        self.kinds = ["kron"] if quick else ["kron", "uniform"]
        self.pairs = context.pairs or (2 if quick else 5)
        # A case, but for what it loads and the first turn of each side.
        self.resident_seconds, self.limited_seconds = (10, 20) if quick else (12, 40)
        self.threads = [1, 2]
        self.quick = quick

    def resident_cases(self, kernels):
        return [(kind, kernel, threads) for kind in self.kinds for threads in self.threads for kernel in kernels if kernel not in ONLY_LIMITED]

    def limited_cases(self, kernels):
        """(kind, kernel, percent, threads)."""
        if self.quick:
            return [("kron", kernel, 25, 2) for kernel in kernels if kernel in ("pr", "bfs")]
        percents = {"kron": (50, 25, 12), "uniform": (25,)}
        return [(kind, kernel, percent, 2) for kind in self.kinds for percent in percents[kind] for kernel in kernels if kernel not in ONLY_RESIDENT]


class Graphs:
    """Files, each made when it is wanted first."""

    def __init__(self, context, program):
        self.context, self.program, self.made = context, program, {}

    def path(self, kind, kernel, scale, smaller):
        scale -= smaller.get(kernel.name, 0)
        order = "degree" if kernel.by_degree else "any"
        key = (kind, order, scale)
        if key not in self.made:
            path = self.context.folder / f"{kind}-{order}-{scale}"
            make_graph(self.context, self.program, kind, order, scale, path)
            self.made[key] = path
        return self.made[key]


class Kernel:
    def __init__(self, line):
        self.name, weighted, by_degree = line.split()
        self.weighted, self.by_degree = weighted == "1", by_degree == "1"


class Graph:
    def __init__(self, context):
        self.context, self.plan = context, Plan(context)
        folder = context.folder
        sources, flags = Workload.sources, Workload.flags
        self.native = folder / "native"
        context.build("graph natively", [context.native_cxx, *flags, *sources, "-o", self.native])
        self.ours = variants(context)
        for side, own in self.ours.items():
            context.build(f"graph by spillc++, {side}", [context.spillcxx, *flags, *own, *sources, "-o", folder / side])
        self.kernels = {kernel.name: kernel for kernel in map(Kernel, context.output([self.native, "list"]).splitlines())}
        self.graphs = Graphs(context, self.native)
        self.rows = []

    def stats(self, side):
        return self.context.folder / f"stats-{side}.json"

    # All data in memory.

    def resident(self):
        for kind, name, threads in self.plan.resident_cases(self.kernels):
            case = f"resident/{kind}/{name}/{threads}"
            if not self.context.cases.wants(case):
                continue
            if case not in self.context.kept:
                self.context.progress(f"graph {case}")
                path = self.graphs.path(kind, self.kernels[name], self.plan.resident_scale, SMALLER)
                row = self.measure_resident(case, Workload(path, name), threads)
                self.context.kept[case] = row
                self.context.say(f"{case:32} ratio {row['ratio']:.2f} +-{row['spread'] / 2:.0%}")
            self.rows.append(self.context.kept[case])

    def measure_resident(self, case, workload, threads):
        # Rows, and lists of vertices that grow while others are alive.
        memory_bytes = 4 * workload.path.stat().st_size + 256 * MIB
        words = workload.words(threads)
        commands = {"native": [self.native, *words]}
        for side in self.ours:
            commands[side] = self.context.spilled(memory_bytes, [self.context.folder / side, *words], self.stats(side))
        with Programs() as programs:
            programs.environment.update(OPENMP)
            running = {side: programs.start(command) for side, command in commands.items()}
            asks = {side: program.asking(RUN_SECONDS) for side, program in running.items()}
            for side, program in running.items():
                program.read(RUN_SECONDS)
                data_bytes = workload.begin(asks[side])
            turns = take_turns_after_one(running, lambda side: workload.turn(asks[side]), self.plan.pairs, self.plan.resident_seconds, lambda answers: _check(case, answers))
            for program in running.values():
                program.finish()
        for side in self.ours:
            check_stats(case, self.stats(side), data_bytes, resident=True)
        walls = [ours.seconds / native.seconds for ours, native in zip(turns["ours"], turns["native"])]
        cpu = {side: [answer.cpu_seconds for answer in answers] for side, answers in turns.items()}
        return {**resident_row(case, cpu), "wall_ratio": median(walls)}

    # Memory for a part of it.

    def limited(self, name, notes):
        cases = [(f"{name}/" + "/".join(map(str, case)), case) for case in self.plan.limited_cases(self.kernels)]
        cases = [case for case in cases if self.context.cases.wants(case[0])]
        if missing := self.context.kept.missing(cases):
            self.measure_on(name, missing)
        for case, _ in cases:
            row, own_notes = self.context.kept[case]
            self.rows.append(row)
            notes += own_notes

    def measure_on(self, name, cases):
        """Keeps of each of these cases, on this kind of device, its row and its notes."""
        paths = {case: self.graphs.path(case[0], self.kernels[case[1]], self.plan.scale, SMALLER_LIMITED) for _, case in cases}
        room_bytes = 2 * max(path.stat().st_size for path in paths.values()) + 256 * MIB
        plain = plain_bytes([self.native, "heap", next(iter(paths.values())), "pr", 2])
        with Cleanup() as cleanup:
            device = Device(self.context, cleanup, name, room_bytes)
            mapped, chosen = None, {}
            for case, key in sorted(cases, key=self.order):
                self.context.progress(f"graph {case}")
                if mapped != paths[key]:
                    mapped = paths[key]
                    _copy(mapped, device.mapped)
                with Cleanup() as inner:
                    row, notes = self.measure_limited(case, key, device, inner, mapped, plain, chosen)
                self.context.kept[case] = row, notes
                self.context.say(f"{case:32} {row['ours']:.2f} s, {row['ratio']:.2f} times as fast as {row['best_peer']} +-{row['spread'] / 2:.0%}")

    def order(self, case):
        """Of a case, (name, key): graph by graph, and of each the middle percentage first."""
        kind, kernel, percent, _ = case[1]
        return self.plan.kinds.index(kind), list(self.kernels).index(kernel), percent != MIDDLE_PERCENT

    def measure_limited(self, case, key, device, cleanup, path, plain, chosen):
        """A row, and notes. chosen: {(graph, kernel, peer): the way in which it was faster in another case of them}."""
        kind, name, percent, threads = key
        workload = Workload(path, name)
        words = workload.words(threads)
        with Programs() as programs:  # how much there is
            program = programs.start([self.native, *words])
            program.read(RUN_SECONDS)
            data_bytes = workload.begin(program.asking(RUN_SECONDS))
        budget_bytes = data_bytes * percent // 100
        contest = Contest(self.context, cleanup, device, limit_of(budget_bytes, plain + SHORT_LISTS_BYTES.get(name, 0)))
        sides = self.ours if percent == MIDDLE_PERCENT else {"ours": self.ours["ours"]}
        for side in sides:
            contest.start(side, device.run(self.context, side, budget_bytes, self.stats(side), [self.context.folder / side, *words]))
        peers = {"mmap": [self.native, "map", device.mapped, name, threads], "swap": [self.native, *words]} if device.has_swap else {}
        for side, command in peers.items():
            contest.start(side, command, swap=True)
        contest.start("native", [self.native, *words], limited=False)
        limited = Limited(case, contest, workload, peers, self.plan)
        limited.begin()
        ways = limited.first_turns({side: chosen.get((kind, name, side)) for side in peers})
        chosen.update({(kind, name, side): way for side, way in ways.items() if way})
        turns, fio_rates = limited.turns(Fio(device.mapped, path.stat().st_size, FIO_DEPTHS) if shutil.which("fio") else None)
        contest.finish()
        for side in sides:
            check_stats(case, self.stats(side), data_bytes // 2, resident=False)
        seconds = {side: [turn.seconds for turn in own] for side, own in turns.items()}
        late = {side: reckoned(seconds.get(side, []), len(turns["ours"]), contest.peer_seconds) for side in sorted(contest.late)}
        row = limited_row(case, {side: seconds[side] for side in contest.running} | late, sides)
        row = {**row, "late": ", ".join(late), "advice": ways.get("mmap", ""), "swapped_in": ways.get("swap", ""), **fio_columns([turn.reads_per_second for turn in turns["ours"]], fio_rates)}
        return row, [f"{case}: {note}" for note in contest.notes]


class Limited:
    """Turns of a case with memory for a part of the data. peers: {side: command} of those that may be late."""

    def __init__(self, case, contest, workload, peers, plan):
        self.case, self.contest, self.workload, self.peers, self.plan = case, contest, workload, peers, plan
        self.first = {}  # of each side, a peer's in the way in which it was the fastest
        self.cold = set()  # peers that have begun anew, and had no turn since

    def begin(self):
        for side in list(self.contest.running):
            self.begin_one(side)

    def begin_one(self, side):
        self.contest.running[side].read(RUN_SECONDS)
        # What it loads is not a turn: the disk may take longer for that.
        self.workload.begin(functools.partial(self.contest.ask, side, seconds=ANSWER_SECONDS))

    def begin_anew(self, side):
        if side == "mmap":
            forget(self.contest.device.mapped)
        self.contest.start(side, self.peers[side], swap=True)
        self.begin_one(side)
        self.cold.add(side)

    def turn(self, side):
        """None where it is no longer there. Of ours it has pages that were read a second, too."""
        if side != "ours":
            self.cold.discard(side)
            return self.workload.turn(self.contest.asking(side))
        before = self.contest.read_bytes(side)
        turn = self.workload.turn(self.contest.asking(side))
        turn.reads_per_second = (self.contest.read_bytes(side) - before) / PAGE_BYTES / turn.seconds
        return turn

    def first_turns(self, known):
        """{peer: the way in which it was the fastest}. known: in another case. Where turns are long a peer is tried in no other way than that."""
        contest = self.contest
        self.first["ours"] = self.turn("ours")
        contest.peer_seconds = max(PEER_SECONDS, 2 * self.first["ours"].seconds)
        is_long = len(contest.running) * self.first["ours"].seconds > self.plan.limited_seconds
        every = {"mmap": {word: functools.partial(contest.ask, "mmap", f"advise {word}\n") for word in ADVICE}, "swap": contest.ways_to_swap()}
        best = {}
        for side in self.peers:
            names = sorted(every[side], key=lambda name: name != known[side])
            best[side] = self.choose(side, {name: every[side][name] for name in (names[:1] if is_long and known[side] else names)})
        for side in list(contest.running):
            if side not in self.first:
                self.first[side] = self.turn(side)
        _check(self.case, self.first)
        return best

    def choose(self, side, ways):
        turns = []

        def seconds_of_turn():
            if (turn := self.turn(side)) is None:
                return None
            turns.append(turn)
            return turn.seconds

        best = self.contest.choose(side, ways, seconds_of_turn, lambda: self.begin_anew(side))
        if turns:
            self.first[side] = min(turns, key=lambda turn: turn.seconds)
        return best

    def turns(self, fio):
        """{side: its turns that count}, and rates of fio, in turns with them. The first turns are these where there is no time for others."""
        rates = []

        def look(answers):
            _check(self.case, answers)
            if fio:
                rates.append(fio.rate())

        seconds, spent = self.plan.limited_seconds, sum(turn.seconds for turn in self.first.values())
        if spent > seconds:
            look(self.first)
            return {side: [turn] for side, turn in self.first.items()}, rates
        # Where turns are short, what a peer's other way has left in memory is a part of them.
        take = take_warm_turns if spent < seconds / 4 else take_turns
        for side in sorted(self.cold) if take is take_turns else ():
            self.turn(side)
        taken = take(list(self.contest.running), self.turn, self.plan.pairs, seconds, look)
        return taken, rates[-len(taken["ours"]):]


def _check(case, answers):
    check_same(case, {side: answer.found for side, answer in answers.items()})


def _copy(source, target):
    """Past the page cache."""
    part = 4 * MIB
    descriptor = os.open(target, os.O_WRONLY)
    with open(source, "rb") as file:
        while data := file.read(part):
            os.write(descriptor, data)
    os.close(descriptor)
    forget(source)


def _summary(rows):
    summary = resident_summary(rows)
    for device in ("disk", "zram"):
        for percent in (50, 25, 12):
            own = [row for row in rows if row["case"].startswith(device + "/") and row["case"].split("/")[3] == str(percent)]
            for peer in ("swap", "mmap", "native", "fio"):
                ratios = [row[peer + "_ratio"] for row in own if peer + "_ratio" in row]
                if ratios:
                    summary[f"{peer}_{device}_{percent}"], summary[f"{peer}_{device}_{percent}_worst"] = geometric_mean(ratios), min(ratios)
    return summary


def run(context):
    notes = []
    graph = Graph(context)
    graph.resident()
    for device in usable_devices(notes):
        graph.limited(device, notes)
    rows = graph.rows
    if not rows:
        raise Failure("graph has no such case; cases are resident/GRAPH/KERNEL/THREADS and DEVICE/GRAPH/KERNEL/PERCENT/THREADS", 2)
    plan = graph.plan
    result = {
        "parameters": {"flags": " ".join(Workload.flags), "resident_scale": plan.resident_scale, "scale": plan.scale, "smaller": SMALLER, "smaller_out_of_core": SMALLER_LIMITED, "pairs": plan.pairs, "resident_seconds": plan.resident_seconds, "limited_seconds": plan.limited_seconds,
                       "sides": {side: " ".join(flags) for side, flags in graph.ours.items()}, "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows), "notes": notes,
        "parts": {"resident": "CPU time, ours over native code", "disk": "times as fast, on the disk", "zram": "times as fast, on zram"},
    }
    own = [row for row in rows if "best_peer" in row]
    bars = {"title": "kernels over graphs", "subtitle": "resident: CPU time over native, less is better; else speed over the peer's, more is better",
            "cases": [row["case"] for row in rows],
            "series": {"native, resident": [None if row in own else row["ratio"] for row in rows],
                       "over mmap": [row.get("mmap_ratio") for row in rows], "over swap": [row.get("swap_ratio") for row in rows]}}
    return result, bars
