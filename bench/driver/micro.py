"""Random accesses at given hit rates, of words and of whole pages, beside mmap and native code."""
from devices import Cleanup
from limited import MIB, PAGE_BYTES, Contest, Device, check_stats, limit_of, limited_row, plain_bytes, usable_devices
from lockstep import Failure, Programs, geometric_mean, median, take_turns
from random_access import FLAGS, SOURCE
from variants import SATC, variants

DOC = """\
Random reads of words of 8 bytes, and of pages of 4 KiB word by word (TriCache, section 4.5), by some threads: `DEVICE/SIZE/HIT/THREADS`. Accesses go to so much data that HIT percent of them find
theirs in the memory there is, at 100 somewhat less. How many times as fast ours, compiled by spillcc, is as a mapping with MADV_RANDOM under the same memory limit (`mmap_ratio`, peer)
and as native code with all data in memory (`native_ratio`); `ours` and `peer` are nanoseconds. `misses`: pages read for an access, by ours and by mmap.
`memory/SIZE/THREADS`: all in memory, without a limit: `satc_ratio` is the speed of TriCache's way of translating (-fspill-translation=satc) over native code's (peer), `ratio` that of ours by the table.
`bodies`: of each function ours has one, the instrumented one; `two_bodies_…` are of programs with two, which have evicted.
"""
# At 100 the data is smaller than the budget, which holds tables, too.
RESIDENT_SHARE = 0.75
RUN_SECONDS = 900
# Of `memory`: data; pages of Private of each thread, which hold all of it; memory, of which all threads pin less than half.
MEMORY_BYTES = 64 * MIB
MEMORY_PRIVATE_PAGES = 2 * MEMORY_BYTES // PAGE_BYTES
MEMORY_BUDGET_BYTES = 8 * MEMORY_BYTES


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.budget_bytes = (64 if quick else 256) * MIB
        self.hits = [100, 50] if quick else [100, 99, 90, 50, 10]
        self.threads = [2] if quick else [1, 2]
        self.data_bytes = self.within(min(self.hits)) + MIB
        self.pairs = context.pairs or (2 if quick else 3)
        self.case_seconds = 10 if quick else 15
        self.window_seconds, self.warm_seconds = (0.3, 0.3) if quick else (1.0, 1.0)

    def within(self, hit):
        return int(self.budget_bytes * (RESIDENT_SHARE if hit == 100 else 100 / hit)) // MIB * MIB

    def cases(self, name):
        """The data grows from case to case, so that memory holds a part of it."""
        return [(f"{name}/{size}/{hit}/{threads}", size, hit, threads) for hit in self.hits for size in ("8B", "4K") for threads in self.threads]

    def memory_cases(self):
        return [(f"memory/{size}/{threads}", size, threads) for size in ("8B", "4K") for threads in self.threads]


def _run(ask, threads, size, seconds):
    """Accesses, and the nanoseconds that each took."""
    accesses, took = ask(f"run {threads} {'read' if size == '8B' else 'pages'} {seconds}\n").split()
    return int(accesses), 1e9 * float(took) / int(accesses)


class Window:
    def __init__(self, contest, side, threads, size, seconds):
        before = contest.read_bytes(side)
        accesses, self.ns = _run(contest.asking(side), threads, size, seconds)
        self.misses = (contest.read_bytes(side) - before) / PAGE_BYTES / accesses


def _measure(context, plan, contest, ours, case, size, hit, threads):
    for side in contest.running:
        contest.ask(side, f"within {plan.within(hit)}\n")
        Window(contest, side, threads, size, plan.warm_seconds)
    turns = take_turns(list(contest.running), lambda side: Window(contest, side, threads, size, plan.window_seconds), plan.pairs, plan.case_seconds)
    misses = {side: median([window.misses for window in windows]) for side, windows in turns.items()}
    for side in ours:
        if hit == 100 and misses[side] > 0:
            raise Failure(f"{case}: {misses[side]:.2g} pages were read for an access, all was to be resident")
    row = limited_row(case, {side: [window.ns for window in windows] for side, windows in turns.items()}, ours, "ns")
    row.update({"misses": misses["ours"], "mmap_misses": misses["mmap"]})
    context.say(f"{case:18} {row['ours']:>9,.0f} ns, {row['ratio']:.2f} times as fast as mmap +-{row['spread'] / 2:.0%}, {row['native_ratio']:.2f} of native")
    return row


def _in_memory(context, plan, ours, cases):
    """Rows of these cases of `memory`."""
    ours = [*ours, "satc"]
    stats = {side: context.folder / f"stats-{side}.json" for side in ours}
    rows = []
    context.build("random by spillc++, satc", [context.spillcxx, *FLAGS, f"-I{context.include()}", SATC, SOURCE, "-o", context.folder / "satc"])
    with Programs() as programs:
        running = {"native": programs.start([context.folder / "native", "heap", MEMORY_BYTES])}
        for side in ours:
            running[side] = programs.start(context.spilled(MEMORY_BUDGET_BYTES, [context.folder / side, "heap", MEMORY_BYTES], stats[side], ["--satc-private", MEMORY_PRIVATE_PAGES]))
        asks = {side: program.asking(RUN_SECONDS) for side, program in running.items()}
        for side, program in running.items():
            program.read(RUN_SECONDS)
            asks[side]("fill\n")
        for case, size, threads in cases:
            context.progress(f"micro {case}")
            turns = take_turns(list(running), lambda side: _run(asks[side], threads, size, plan.window_seconds)[1], plan.pairs, plan.case_seconds)
            row = limited_row(case, turns, ours, "ns")
            context.say(f"{case:18} {row['ours']:>9,.1f} ns, {row['ratio']:.2f} of native +-{row['spread'] / 2:.0%}, TriCache's way {row['satc_ratio']:.2f}")
            rows.append(row)
        for side, ask in asks.items():
            if ask("check\n") != "right":
                raise Failure(f"micro in memory: data of {side} is wrong afterwards")
        for program in running.values():
            program.finish()
    for side in ours:
        check_stats(f"micro in memory, {side}", stats[side], MEMORY_BYTES, resident=True)
    return rows


def _device(context, plan, ours, name, cases):
    """Rows of all of these cases: their programs are looked at in the end."""
    native, rows = context.folder / "native", []
    with Cleanup() as cleanup:
        device = Device(context, cleanup, name, plan.data_bytes + 256 * MIB)
        context.progress(f"micro {name}: filling")
        context.output([native, "fill", device.mapped, plan.data_bytes])
        contest = Contest(context, cleanup, device, limit_of(plan.budget_bytes, plain_bytes([native, "heap", MIB])))
        for side in ours:
            contest.start(side, device.run(context, side, plan.budget_bytes, context.folder / f"stats-{side}.json", [context.folder / side, "heap", plan.data_bytes]))
        contest.start("mmap", [native, "map", device.mapped, plan.data_bytes])
        contest.start("native", [native, "heap", plan.data_bytes], limited=False)
        for side, program in contest.running.items():
            program.read(RUN_SECONDS)
            contest.ask(side, "fill\n")
        for number, (case, size, hit, threads) in enumerate(cases):
            context.progress(f"micro {number + 1}/{len(cases)}: {case}")
            rows.append(_measure(context, plan, contest, ours, case, size, hit, threads))
        for side in contest.running:
            if contest.ask(side, f"check\n") != "right":
                raise Failure(f"micro on {name}: data of {side} is wrong afterwards")
        contest.finish()
    return rows


def _summary(rows):
    """At 100 beside native code, below beside mmap."""
    summary = {}
    for size in ("8B", "4K"):
        own = [row["native_ratio"] for row in rows if f"/{size}/100/" in row["case"]]
        if own:
            summary[f"{size}_resident_native_ratio"], summary[f"{size}_resident_native_worst"] = geometric_mean(own), min(own)
    for row in rows:
        device, size, *hit, threads = row["case"].split("/")
        if not hit:
            summary[f"{size}_{device}_{threads}"], summary[f"{size}_{device}_{threads}_satc"] = row["native_ratio"], row["satc_ratio"]
        elif (hit := hit[0]) != "100":
            summary[f"{size}_{hit}_{device}_{threads}"] = row["mmap_ratio"]
    return summary


def run(context):
    plan, ours, notes, rows = Plan(context), variants(context), [], []
    devices = usable_devices(notes)
    cases = {"memory": plan.memory_cases(), **{name: plan.cases(name) for name in ("disk", "zram")}}
    wanted = context.cases.chosen(case[0] for own in cases.values() for case in own)
    chosen = {name: [case for case in own if case[0] in wanted] for name, own in cases.items()}
    flags = [*FLAGS, f"-I{context.include()}"]
    context.build("random natively", [context.native_cxx, *flags, SOURCE, "-o", context.folder / "native"])
    for side, own in ours.items():
        context.build(f"random by spillc++, {side}", [context.spillcxx, *flags, *own, SOURCE, "-o", context.folder / side])
    for name in ["memory", *devices]:
        if missing := context.kept.missing(chosen[name]):
            for row in _in_memory(context, plan, ours, missing) if name == "memory" else _device(context, plan, ours, name, missing):
                context.kept[row["case"]] = row
        rows += [context.kept[case] for case, *_ in chosen[name]]
    result = {
        "parameters": {"flags": " ".join(FLAGS), "budget_bytes": plan.budget_bytes, "within_bytes": {str(hit): plan.within(hit) for hit in plan.hits}, "pairs": plan.pairs, "case_seconds": plan.case_seconds,
                       "window_seconds": plan.window_seconds, "sides": {side: " ".join(flags) for side, flags in ours.items()}, "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows), "notes": notes,
    }
    bars = {"title": "random accesses at given hit rates", "subtitle": "speed over the peer's; more is better", "cases": [row["case"] for row in rows],
            "series": {"over mmap": [row.get("mmap_ratio") for row in rows], "over native": [row["native_ratio"] for row in rows], "TriCache's way over native": [row.get("satc_ratio") for row in rows]}}
    return result, bars
