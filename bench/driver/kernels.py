"""Loops over memory that is all resident: what translation costs, beside native code and TriCache's way."""
import itertools
import json
import pathlib

from lockstep import Failure, Programs, geometric_mean, in_turn, median, row_of, take_turns
from variants import SATC, more_ratios, variants

DOC = """\
CPU time of loops whose data is all in memory, compiled by spillcc (ours) over the same loops compiled natively
(peer): 1 is native speed, less is better. `tricache_ratio` is the same for translation the way TriCache does it,
re-created, `satc_ratio` for the same on Spillway's own runtime (-fspill-translation=satc); `memfd_ratio` for native code over the kind of memory that Spillway's frames are. `bodies`: of each function
ours has one, which is the instrumented one; `two_bodies_ratio` is the same for programs with two, of which the native
one runs as long as nothing has been evicted.
"""
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "kernels"
# What is measured: flags, and threads that run at the same time, each on data of its own or, where a kernel only reads, all on the same.
SETS = {"O2": (["-O2"], 1), "O3_native": (["-O3", "-march=native"], 1), "O2_2_threads": (["-O2"], 2)}
PAIRS, QUICK_PAIRS = 5, 2
CASE_SECONDS = 8
ROUNDS = 3          # in each pair: a pair has processes of its own, hence physical pages of its own
RUN_SECONDS = 120   # far more than any kernel takes
QUICK_OF_THREADS = ["random_read_64m", "random_rmw_64m", "chase_l2", "pagerank"]
# More than the largest kernel needs for each thread, for frames, tables and metadata: nothing is ever evicted.
MEMORY_MIB = 1792
# Pages that Private of each thread has, of `satc`: 1 GiB, which is all data of a kernel, and no more than all threads may pin.
SATC_PAGES = 1 << 18


class Build:
    """The sides of one set."""

    def __init__(self, context, name, folder):
        self.name, self.folder = name, folder
        self.context = context
        flags, self.threads = SETS[name]
        common = ["-std=c++20", "-pthread", *flags]
        native = [context.native_cxx, *common]
        kernels, main, heap, satc = (SOURCES / file for file in ("kernels.cc", "main.cc", "pages_heap.cc", "satc.cc"))
        context.build(f"kernels, {name}, natively", [*native, kernels, main, heap, "-o", folder / "native"])
        ours = {**variants(context), "satc": [SATC]}
        self.ours = list(ours)
        for side, own in ours.items():
            context.build(f"kernels, {name}, by spillc++, {side}", [context.spillcxx, *common, *own, kernels, main, heap, "-o", folder / side])
        self.sides = ["native", *self.ours]
        # Its frames are for one thread's data.
        if self.threads == 1:
            context.build(f"kernels, {name}, TriCache's way",
                          [context.spillcxx, *common, *ours["ours"], "-mllvm", "-spill-emit=call", "-c", kernels, "-o", folder / "calls.o"])
            context.build(f"kernels, {name}, TriCache's way", [*native, main, satc, folder / "calls.o", "-o", folder / "tricache"])
            self.sides += ["tricache"] if context.quick else ["tricache", "memfd"]

    def command(self, side, kernel, size):
        words = [kernel, "heap", size, self.threads]
        if side in self.ours:
            # The C library's own buffers stay plain.
            return self.context.spilled(MEMORY_MIB * self.threads << 20, [self.folder / side, *words], self.stats(side),
                                        ["--min-alloc", "16K", "--satc-private", SATC_PAGES])
        if side == "memfd":
            return [self.folder / "native", kernel, "memfd", size, self.threads]
        return [self.folder / side, *words]

    def stats(self, side):
        return self.folder / f"stats-{side}.json"


def _check_stats(kernel, stats, data_bytes):
    """The kernel must have run on spilled memory, all of it resident."""
    counted = json.loads(stats.read_text())
    if counted["spill"]["allocated_bytes"] < data_bytes:
        raise Failure(f"{kernel}: its data was not in spilled memory")
    if counted["cache"]["evictions"] != 0:
        raise Failure(f"{kernel}: {counted['cache']['evictions']} pages were evicted, it was to be resident")


def _measure_pair(context, build, kernel, sides):
    """Median CPU seconds of each side in one set of processes; they take turns."""
    size = "quick" if context.quick else "full"
    with Programs() as programs:
        started = {}
        data_bytes = 0
        for side in sides:
            started[side] = programs.start(build.command(side, kernel, size))
            data_bytes = int(started[side].read(RUN_SECONDS).split()[1])
        seconds = {side: [] for side in sides}
        for number in range(ROUNDS):
            answers = {side: started[side].ask("run\n", RUN_SECONDS).split() for side in sides}
            if len({answer[1] for answer in answers.values()}) != 1:
                raise Failure(f"{kernel}, {build.name}: results differ in run {number}: "
                              + ", ".join(f"{side} {answer[1]}" for side, answer in answers.items()))
            for side, answer in answers.items():
                seconds[side].append(float(answer[0]))
        contents = {side: started[side].ask("check\n", RUN_SECONDS) for side in sides}
        if len(set(contents.values())) != 1:
            raise Failure(f"{kernel}, {build.name}: memory differs afterwards: {contents}")
        for side in sides:
            started[side].finish()
    for side in build.ours:
        _check_stats(kernel, build.stats(side), data_bytes)
    return {side: median(values) for side, values in seconds.items()}


def _measure(context, build, kernel, pairs):
    """Pairs alternate in order too: what runs second in one runs first in the next."""
    numbers = itertools.count()
    # A pair is one turn here, of all sides together.
    [measured] = take_turns(["all"], lambda _: _measure_pair(context, build, kernel, in_turn(build.sides, next(numbers))), pairs, CASE_SECONDS).values()
    turns = {side: [1e3 * pair[side] for pair in measured] for side in build.sides}
    return row_of(f"{build.name}/{kernel}", turns["ours"], turns["native"], "ms", **more_ratios(turns, "native"))


def _summary(rows):
    """The first set has the plain names."""
    summary = {}
    for number, name in enumerate(SETS):
        own = [row for row in rows if row["case"].startswith(name + "/")]
        if not own:
            continue
        suffix = "" if number == 0 else "_" + name
        for side in ("", "two_bodies_", "satc_", "tricache_"):
            if side + "ratio" not in own[0]:
                continue
            worst = max(own, key=lambda row: row[side + "ratio"])
            summary[side + "geomean_ratio" + suffix] = geometric_mean([row[side + "ratio"] for row in own])
            summary[side + "worst_ratio" + suffix] = worst[side + "ratio"]
            summary[side + "worst_kernel" + suffix] = worst["case"].split("/")[1]
    return summary


def run(context):
    sets = ["O2", "O2_2_threads"] if context.quick else list(SETS)
    pairs = context.pairs or (QUICK_PAIRS if context.quick else PAIRS)
    rows = []
    for name in sets:
        folder = context.folder / name
        folder.mkdir()
        build = Build(context, name, folder)
        kernels = context.output([folder / "native", "list"]).split()
        kernels = context.cases.chosen(kernels)
        if context.quick and not context.cases and build.threads > 1:
            kernels = [kernel for kernel in kernels if kernel in QUICK_OF_THREADS]
        for number, kernel in enumerate(kernels):
            case = f"{name}/{kernel}"
            if case not in context.kept:
                context.progress(f"kernels {name} {number + 1}/{len(kernels)}: {kernel}")
                row = _measure(context, build, kernel, pairs)
                context.kept[case] = row
                more = [f"{title} {row[key]:.2f}" for title, key in (("two bodies", "two_bodies_ratio"), ("satc", "satc_ratio"), ("TriCache's way", "tricache_ratio")) if key in row]
                context.say(", ".join([f"{case:32} ratio {row['ratio']:.2f} +-{row['spread'] / 2:.0%}", *more]))
            rows.append(context.kept[case])
    result = {
        "parameters": {"flags": [" ".join(SETS[name][0]) for name in sets], "threads": [SETS[name][1] for name in sets], "pairs": pairs, "case_seconds": CASE_SECONDS,
                       "rounds_per_pair": ROUNDS, "memory_mib_per_thread": MEMORY_MIB, "quick": context.quick, "time": "CPU time of a thread",
                       "pages": "4 KiB on all sides"},
        "rows": rows,
        "summary": _summary(rows),
    }
    titles = {"ratio": "spillcc", "two_bodies_ratio": "two bodies", "satc_ratio": "satc", "tricache_ratio": "TriCache's way", "memfd_ratio": "native on a memfd"}
    bars = {"title": "kernels: CPU time, all data resident", "subtitle": "ratio to native code, 1 is native speed, less is better",
            "cases": [row["case"] for row in rows],
            "series": {title: [row.get(key) for row in rows] for key, title in titles.items() if any(key in row for row in rows)}}
    return result, bars
