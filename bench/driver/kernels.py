"""Loops over memory that is all resident: what translation costs, beside native code and TriCache's way."""
import json
import pathlib

from lockstep import Failure, Programs, geometric_mean, in_turn, median, spread

DOC = """\
CPU time of loops whose data is all in memory, compiled by spillcc (ours) over the same loops compiled natively
(peer): 1 is native speed, less is better. `tricache_ratio` is the same for translation the way TriCache does it,
re-created; `memfd_ratio` for native code over the kind of memory that Spillway's frames are.
"""
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "kernels"
FLAGS = {"O2": ["-O2"], "O3_native": ["-O3", "-march=native"]}
PAIRS, QUICK_PAIRS = 5, 2
ROUNDS = 3          # in each pair: a pair has processes of its own, hence physical pages of its own
RUN_SECONDS = 120   # far more than any kernel takes
# More than the largest kernel needs, for frames, tables and metadata: nothing is ever evicted.
MEMORY = "1792M"


class Build:
    """The variants of one set of flags."""

    def __init__(self, context, name, flags, folder):
        self.name, self.folder = name, folder
        self.storage = context.storage
        self.spillway = context.spillway
        common = ["-std=c++20", *flags]
        native = [context.native_cxx, *common]
        ours = [context.spillcxx, *common]
        kernels, main, heap, satc = (SOURCES / file for file in ("kernels.cc", "main.cc", "pages_heap.cc", "satc.cc"))
        context.build(f"kernels, {name}, natively", [*native, kernels, main, heap, "-o", folder / "native"])
        context.build(f"kernels, {name}, by spillc++", [*ours, kernels, main, heap, "-o", folder / "ours"])
        context.build(f"kernels, {name}, TriCache's way",
                      [*ours, "-mllvm", "-spill-emit=call", "-c", kernels, "-o", folder / "calls.o"])
        context.build(f"kernels, {name}, TriCache's way", [*native, main, satc, folder / "calls.o", "-o", folder / "tricache"])

    def command(self, variant, kernel, size, stats):
        if variant == "ours":
            # The C library's own buffers stay plain.
            return [self.spillway, "run", "--memory", MEMORY, "--storage", self.storage, "--spill-all", "--min-alloc", "16K",
                    "--stats", stats, "--", self.folder / "ours", kernel, "heap", size]
        if variant == "memfd":
            return [self.folder / "native", kernel, "memfd", size]
        return [self.folder / variant, kernel, "heap", size]


def _check_stats(kernel, stats, data_bytes):
    """The kernel must have run on spilled memory, all of it resident."""
    counted = json.loads(stats.read_text())
    if counted["spill"]["allocated_bytes"] < data_bytes:
        raise Failure(f"{kernel}: its data was not in spilled memory")
    if counted["cache"]["evictions"] != 0:
        raise Failure(f"{kernel}: {counted['cache']['evictions']} pages were evicted, it was to be resident")


def _measure_pair(context, build, kernel, variants):
    """Median CPU seconds of each variant in one set of processes; they take turns."""
    stats = build.folder / "stats.json"
    size = "quick" if context.quick else "full"
    with Programs() as programs:
        started = {}
        data_bytes = 0
        for variant in variants:
            started[variant] = programs.start(build.command(variant, kernel, size, stats))
            data_bytes = int(started[variant].read(RUN_SECONDS).split()[1])
        seconds = {variant: [] for variant in variants}
        for number in range(ROUNDS):
            answers = {variant: started[variant].ask("run\n", RUN_SECONDS).split() for variant in variants}
            if len({answer[1] for answer in answers.values()}) != 1:
                raise Failure(f"{kernel}, {build.name}: results differ in run {number}: "
                              + ", ".join(f"{variant} {answer[1]}" for variant, answer in answers.items()))
            for variant, answer in answers.items():
                seconds[variant].append(float(answer[0]))
        contents = {variant: started[variant].ask("check\n", RUN_SECONDS) for variant in variants}
        if len(set(contents.values())) != 1:
            raise Failure(f"{kernel}, {build.name}: memory differs afterwards: {contents}")
        for variant in variants:
            started[variant].finish()
    _check_stats(kernel, stats, data_bytes)
    return {variant: median(values) for variant, values in seconds.items()}


def _measure(context, build, kernel, variants, pairs):
    """Pairs alternate in order too: what runs second in one runs first in the next."""
    measured = []
    for number in range(pairs):
        order = in_turn(variants, number)
        measured.append(_measure_pair(context, build, kernel, order))
    ratios = {variant: [pair[variant] / pair["native"] for pair in measured] for variant in variants if variant != "native"}
    row = {
        "case": f"{build.name}/{kernel}",
        "ours": 1e3 * median([pair["ours"] for pair in measured]),
        "peer": 1e3 * median([pair["native"] for pair in measured]),
        "ratio": median(ratios["ours"]),
        "spread": spread(ratios["ours"]),
        "unit": "ms",
        "tricache_ratio": median(ratios["tricache"]),
    }
    if "memfd" in ratios:
        row["memfd_ratio"] = median(ratios["memfd"])
    return row


def _summary(rows, flags):
    """The first set of flags has the plain names."""
    summary = {}
    for number, name in enumerate(flags):
        own = [row for row in rows if row["case"].startswith(name + "/")]
        worst = max(own, key=lambda row: row["ratio"])
        suffix = "" if number == 0 else "_" + name
        summary["geomean_ratio" + suffix] = geometric_mean([row["ratio"] for row in own])
        summary["worst_ratio" + suffix] = worst["ratio"]
        summary["worst_kernel" + suffix] = worst["case"].split("/")[1]
        summary["tricache_geomean_ratio" + suffix] = geometric_mean([row["tricache_ratio"] for row in own])
    return summary


def run(context):
    flags = ["O2"] if context.quick else list(FLAGS)
    pairs = context.pairs or (QUICK_PAIRS if context.quick else PAIRS)
    variants = ["native", "ours", "tricache"] + ([] if context.quick else ["memfd"])
    rows = []
    for name in flags:
        folder = context.folder / name
        folder.mkdir()
        build = Build(context, name, FLAGS[name], folder)
        kernels = context.output([folder / "native", "list"]).split()
        if context.cases:
            kernels = [kernel for kernel in kernels if kernel in context.cases]
        for number, kernel in enumerate(kernels):
            context.progress(f"kernels {name} {number + 1}/{len(kernels)}: {kernel}")
            rows.append(_measure(context, build, kernel, variants, pairs))
            context.say(f"{rows[-1]['case']:28} ratio {rows[-1]['ratio']:.2f} +-{rows[-1]['spread'] / 2:.0%}, "
                        f"TriCache's way {rows[-1]['tricache_ratio']:.2f}")
    if not rows:
        raise Failure("no kernel has such a name", 2)
    result = {
        "parameters": {"flags": [" ".join(FLAGS[name]) for name in flags], "pairs": pairs, "rounds_per_pair": ROUNDS,
                       "memory": MEMORY, "quick": context.quick, "time": "CPU time of the thread",
                       "pages": "4 KiB on all sides", "order": " ".join(variants)},
        "rows": rows,
        "summary": _summary(rows, flags),
    }
    series = {"spillcc": [row["ratio"] for row in rows], "TriCache's way": [row["tricache_ratio"] for row in rows]}
    if "memfd" in variants:
        series["native on a memfd"] = [row.get("memfd_ratio") for row in rows]
    bars = {"title": "kernels: CPU time, all data resident", "subtitle": "ratio to native code, 1 is native speed, less is better",
            "cases": [row["case"] for row in rows], "series": series}
    return result, bars
