"""One plain thread that sums a[b[i]], resident and out of core, beside native code, mmap and swap, and fio at depth 32."""
import pathlib
import shutil

from devices import Cleanup
from limited import MIB, PAGE_BYTES, Contest, Device, Fio, check_stats, fio_columns, limit_of, limited_row, plain_bytes, resident_row, usable_devices
from lockstep import Programs, take_turns_after_one
from variants import variants

DOC = """\
`sum += a[b[i]]` by one thread: b is read from front to back, a at random. `resident`: CPU time of an access with all data in memory, compiled by
spillcc (ours) over native code (peer); less is better. `disk` and `zram`: how many times as fast as the better peer ours is, with memory for an eighth of the data; `ours` and `peer` are
microseconds of an access. `mmap_ratio`: over both arrays mapped, a with MADV_RANDOM and b with MADV_SEQUENTIAL; `swap_ratio`: in memory with swap. `fio_ratio`: pages that
ours reads a second, over the reads a second of fio at depth 32. `bodies`: of each function ours has one, the instrumented one; `two_bodies_…` are of programs with two.
"""
SOURCE = pathlib.Path(__file__).resolve().parent.parent / "indirect" / "indirect.cc"
FLAGS = ["-O2", "-std=c++20"]
PART = 8
RUN_SECONDS = 600


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.a_bytes = (128 if quick else 1024) * MIB
        self.b_count = (1 if quick else 16) * MIB
        self.pairs = context.pairs or (2 if quick else 5)
        self.case_seconds = 20 if quick else 45  # but for what is loaded and the turn that does not count
        self.window_seconds = 0.5 if quick else 2.0
        self.words = [self.a_bytes, self.b_count]
        self.data_bytes = self.a_bytes + 4 * self.b_count


class Window:
    def __init__(self, line):
        accesses, seconds, cpu_seconds = line.split()
        self.us, self.cpu_ns, self.seconds = 1e6 * float(seconds) / int(accesses), 1e9 * float(cpu_seconds) / int(accesses), float(seconds)


def _resident(context, plan, ours):
    commands = {"native": [context.folder / "native", "heap", *plan.words]}
    for side in ours:
        commands[side] = context.spilled(plan.data_bytes * 5 // 4 + 64 * MIB, [context.folder / side, "heap", *plan.words], context.folder / f"stats-{side}.json")
    with Programs() as programs:
        running = {side: programs.start(command) for side, command in commands.items()}
        for program in running.values():
            program.read(RUN_SECONDS)
            program.ask("load\n", RUN_SECONDS)
        turns = take_turns_after_one(running, lambda side: Window(running[side].ask(f"run {plan.window_seconds / 3}\n", RUN_SECONDS)), plan.pairs, plan.case_seconds)
        for program in running.values():
            program.finish()
    for side in ours:
        check_stats("resident", context.folder / f"stats-{side}.json", plan.data_bytes, resident=True)
    return resident_row("resident", {side: [window.cpu_ns for window in own] for side, own in turns.items()}, "ns")


def _limited(context, plan, ours, name, notes):
    native = context.folder / "native"
    budget_bytes = plan.data_bytes // PART
    with Cleanup() as cleanup:
        device = Device(context, cleanup, name, plan.data_bytes + 256 * MIB)
        context.progress(f"indirect {name}: filling")
        context.output([native, "fill", device.mapped, *plan.words])
        contest = Contest(context, cleanup, device, limit_of(budget_bytes, plain_bytes([native, "heap", *plan.words])))
        for side in ours:
            contest.start(side, device.run(context, side, budget_bytes, context.folder / f"stats-{side}.json", [context.folder / side, "heap", *plan.words]))
        contest.start("mmap", [native, "map", device.mapped, *plan.words])
        if device.has_swap:
            contest.start("swap", [native, "heap", *plan.words], swap=True)
        contest.start("native", [native, "heap", *plan.words], limited=False)
        for side in list(contest.running):
            contest.running[side].read(RUN_SECONDS)
            contest.ask(side, "load\n")
        fio = Fio(device.mapped, plan.a_bytes, [32]) if shutil.which("fio") else None

        def turn(side):
            context.progress(f"indirect {name}: {side}")
            if side == "fio":
                return fio.rate()
            before = contest.read_bytes(side) if side == "ours" else 0
            line = contest.ask(side, f"run {plan.window_seconds}\n")
            if line is None:
                return None
            window = Window(line)
            if side == "ours":
                window.reads_per_second = (contest.read_bytes(side) - before) / PAGE_BYTES / window.seconds
            return window

        turns = take_turns_after_one([*contest.running, *(["fio"] if fio else [])], turn, plan.pairs, plan.case_seconds)
        contest.finish()
        notes += [f"{name}: {note}" for note in contest.left_out()]
        for side in ours:
            check_stats(name, context.folder / f"stats-{side}.json", plan.data_bytes, resident=False)
        us = {side: [window.us for window in turns[side]] for side in contest.running}
        row = {**limited_row(name, us, ours, "us"), **fio_columns([window.reads_per_second for window in turns["ours"]], turns.get("fio", []))}
    context.say(f"{name:10} {row['ours']:.2f} us, {row['ratio']:.2f} times as fast as {row['best_peer']} +-{row['spread'] / 2:.0%}, {row.get('fio_ratio', 0):.2f} of fio")
    return row


def _summary(rows):
    summary = {}
    for row in rows:
        if row["case"] == "resident":
            summary.update({f"resident_{side}ratio": row[side + "ratio"] for side in ("", "two_bodies_") if side + "ratio" in row})
        else:
            summary.update({f"{row['case']}_{peer}_ratio": row[peer + "_ratio"] for peer in ("fio", "mmap", "swap", "native") if peer + "_ratio" in row})
    return summary


def run(context):
    plan, ours, notes, rows = Plan(context), variants(context), [], []
    wanted = context.cases.chosen(["resident", "disk", "zram"])
    context.build("indirect natively", [context.native_cxx, *FLAGS, SOURCE, "-o", context.folder / "native"])
    for side, flags in ours.items():
        context.build(f"indirect by spillc++, {side}", [context.spillcxx, *FLAGS, *flags, SOURCE, "-o", context.folder / side])
    if "resident" in wanted:
        context.progress("indirect resident")
        rows.append(_resident(context, plan, ours))
        context.say(f"resident   ratio {rows[-1]['ratio']:.2f} +-{rows[-1]['spread'] / 2:.0%}")
    rows += [_limited(context, plan, ours, name, notes) for name in usable_devices(notes) if name in wanted]
    result = {
        "parameters": {"flags": " ".join(FLAGS), "a_bytes": plan.a_bytes, "b_count": plan.b_count, "part": PART, "pairs": plan.pairs, "case_seconds": plan.case_seconds, "window_seconds": plan.window_seconds,
                       "sides": {side: " ".join(flags) for side, flags in ours.items()}, "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows), "notes": notes,
    }
    bars = {"title": "sum += a[b[i]] by one thread", "subtitle": "resident: CPU time over native, less is better; else speed over the peer's, more is better",
            "cases": [row["case"] for row in rows],
            "series": {"native, resident": [None if "best_peer" in row else row["ratio"] for row in rows], "over mmap": [row.get("mmap_ratio") for row in rows],
                       "over swap": [row.get("swap_ratio") for row in rows], "reads over fio's": [row.get("fio_ratio") for row in rows]}}
    return result, bars
