"""Random accesses with a quarter of the data in memory, beside mmap and swap under the same limit."""
import os
import pathlib
import shutil

from device import Contest as FioContest
from devices import Cleanup, file_of, swap_on, why_no_zram, zram
from lockstep import Failure, Programs, median, row_of, spread, take_turns
from memory_group import MemoryGroup, Unavailable

DOC = """\
Random 8-byte reads and read-modify-writes (rmw) of data four times as large as the memory budget, by some threads:
accesses a second by a program that spillcc compiled (ours) over those of the better peer, under the same memory
limit; more is better. Peers: `mmap_ratio` to a mapping of a file or device with MADV_RANDOM, `swap_ratio` to plain
memory with swap on the same kind of device and no swap read-ahead. `DEVICE/read/64`: ours by 64 tasks of a parallel_for,
on as many threads as there are CPUs, peers by 2 threads; `mmap_16_ratio` and `swap_16_ratio` are over peers with 16. `fio_ratio`: pages that ours read a second, over the reads a second of
fio, which takes turns with the others at the depth up to 64 at which it was fastest before.
"""
MIB = 1 << 20
SOURCE = pathlib.Path(__file__).resolve().parent.parent / "random" / "random.cc"
SLACK_BYTES = 16 * MIB
TASKS = 64
FEW_THREADS, MANY_THREADS = 2, 16  # of peers beside tasks; many are as many as the program may have
FLAGS = ["-O2", "-std=c++20", "-pthread"]
ANSWER_SECONDS = 600


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.data_bytes = (256 if quick else 1024) * MIB
        self.budget_bytes = self.data_bytes // 4
        self.threads = [1, 4] if quick else [1, 2, 4, 16]
        self.fio_depths = [32, 64] if quick else [8, 16, 32, 64]
        self.pairs = context.pairs or (2 if quick else 3)
        self.case_seconds = 20 if quick else 30
        self.window_seconds = 0.7 if quick else 1.0
        # Before each window, unmeasured; and when reads become writes, until evictions meet changed pages.
        self.warm_seconds = 0.2 if quick else 0.3
        self.settle_seconds = {"disk": 1 if quick else 6, "zram": 0.5 if quick else 2}

    def cases(self):
        """{name: (device, mode, threads)}"""
        return {f"{device}/{mode}/{threads}": (device, mode, threads) for device in ("disk", "zram") for mode in ("read", "rmw")
                for threads in self.threads + ([TASKS] if mode == "read" else [])}


class Contest:
    """The programs on one kind of device, all alive, each in a memory group of its own."""

    def __init__(self, context, plan, device, cleanup, binaries, limit_bytes):
        self.plan, self.device, self.notes, self.progress = plan, device, [], context.progress
        self.programs = cleanup.enter_context(Programs())
        self.running = {}
        self.stats = context.folder / "stats.json"
        native, ours = binaries
        size = plan.data_bytes
        if device == "zram":
            # Room for swap's own header, and for pages that ours keeps twice while they are written.
            spill, mapped, swap = (zram(cleanup, size + 256 * MIB) for _ in range(3))
        else:
            spill = context.storage
            mapped = file_of(cleanup, context.folder / "mapped", size)
            swap = file_of(cleanup, context.folder / "swap", size + 256 * MIB) if os.geteuid() == 0 else None
        self.fio = FioContest(None, plan, mapped)
        context.progress(f"random {device}: filling what mmap maps")
        context.output([native, "fill", mapped, size])
        overwrite = ["--storage-overwrite"] if device == "zram" else []
        commands = {
            "ours": [context.spillway, "run", "--memory", f"{plan.budget_bytes // MIB}M", "--storage", spill, *overwrite,
                     "--stats", self.stats, "--", ours, "heap", size],
            "mmap": [native, "map", mapped, size],
        }
        if swap is not None:
            swap_on(cleanup, swap)
            commands["swap"] = [native, "heap", size]
        for variant, command in commands.items():
            group = cleanup.acquire(lambda: MemoryGroup.create(limit_bytes, f"bench-{variant}"), MemoryGroup.remove)
            if variant == "swap":
                group.forbid_kills()
            else:
                group.forbid_swap()
            context.progress(f"random {device}: filling {variant}")
            program = self.programs.start(command, group)
            self.running[variant] = program
            cleanup.callback(program.kill)
            program.read(ANSWER_SECONDS)
            program.ask("fill\n", ANSWER_SECONDS)

    def window(self, variant, threads, mode, seconds):
        """Accesses a second."""
        accesses, took = self.running[variant].ask(f"run {threads} {mode} {seconds}\n", ANSWER_SECONDS).split()
        return int(accesses) / float(took)

    def drop(self, peer, died):
        """Goes on without a peer that the kernel killed, as it may where reclaim does not keep up. Ours may not."""
        if peer == "ours" or "signal 9" not in str(died):
            raise died
        self.notes.append(f"{self.device}: the kernel killed the {peer} program for lack of memory; left out from then on")
        del self.running[peer]
        if len(self.running) == 1:
            raise Failure(f"random on {self.device}: no peer is left")

    def settle(self, mode):
        for variant in list(self.running):
            try:
                self.window(variant, 4, mode, self.plan.settle_seconds[self.device])
            except Failure as died:
                self.drop(variant, died)

    def sides(self, mode, threads):
        """{name: (program, threads, mode)} of what takes turns in a case. Beside tasks peers are there twice: with few threads, and with many, whose reads overlap as those of tasks do."""
        if threads != TASKS:
            return {variant: (variant, threads, mode) for variant in self.running}
        peers = [variant for variant in self.running if variant != "ours"]
        return {"ours": ("ours", TASKS, "tasks"), **{peer: (peer, FEW_THREADS, mode) for peer in peers}, **{f"{peer}_{MANY_THREADS}": (peer, MANY_THREADS, mode) for peer in peers}}

    def rates(self, mode, threads):
        """A list of accesses a second for each side whose program is still there in the end, of reads a second for "fio"."""
        plan, sides = self.plan, self.sides(mode, threads)
        best = self.best_of_fio() if threads == TASKS and shutil.which("fio") else None

        def turn(side):
            if side == "fio":
                return self.fio.turn(*best).rate
            variant, *how = sides[side]
            if variant not in self.running:
                return None
            try:
                self.window(variant, *how, plan.warm_seconds)
                return self.window(variant, *how, plan.window_seconds)
            except Failure as died:
                self.drop(variant, died)
                return None

        rates = take_turns([*sides, *(["fio"] if best else [])], turn, plan.pairs, plan.case_seconds)
        return {side: rates[side] for side in rates if side == "fio" or sides[side][0] in self.running}

    def measure(self, mode, threads):
        rates = self.rates(mode, threads)
        fio = rates.pop("fio", None)
        ratios = {side: [ours / theirs for ours, theirs in zip(rates["ours"], own)] for side, own in rates.items() if side != "ours"}
        best = min((side for side in ratios if side in self.running), key=lambda peer: median(ratios[peer]))
        row = row_of(f"{self.device}/{mode}/{threads}", rates["ours"], rates[best], "accesses/s", best_peer=best)
        row.update({f"{side}_ratio": median(own) for side, own in ratios.items()})
        if fio:
            missing = 1 - self.plan.budget_bytes / self.plan.data_bytes
            shares = [ours * missing / theirs for ours, theirs in zip(rates["ours"], fio)]
            row.update({"fio": median(fio), "fio_ratio": median(shares), "fio_spread": spread(shares)})
        return row

    def best_of_fio(self):
        """How fio reads most: its side and its case."""
        turns = [(side, ("uring", "read", "4K", depth)) for depth in self.plan.fio_depths for side in ("one", "batch")]
        return max(turns, key=lambda turn: self.fio.turn(*turn).rate)

    def check(self):
        """All changes must be there: ours and the peers'."""
        for variant, program in self.running.items():
            self.progress(f"random {self.device}: checking {variant}")
            if program.ask("check\n", ANSWER_SECONDS) != "right":
                raise Failure(f"random on {self.device}: data of {variant} is wrong afterwards")
        for program in self.running.values():
            program.finish()


def _measure_on(context, plan, device, binaries, limit_bytes, cases):
    """Rows of all of these cases, (device, mode, threads), and notes: their programs are looked at in the end."""
    rows = []
    with Cleanup() as cleanup:
        contest = Contest(context, plan, device, cleanup, binaries, limit_bytes)
        for mode in ("read", "rmw"):
            context.progress(f"random {device} {mode}: warming up")
            contest.settle(mode)
            for threads in (case[2] for case in cases if case[1] == mode):
                context.progress(f"random {device} {mode}: {threads} {'tasks' if threads == TASKS else 'threads'}")
                row = contest.measure(mode, threads)
                rows.append(row)
                context.say(f"{row['case']:16} {row['ours']:>9,.0f}/s, {row['ratio']:.2f} times {row['best_peer']} "
                            f"+-{row['spread'] / 2:.0%}")
        contest.check()
    return rows, contest.notes


def _plain_bytes(native):
    """The most memory that the program takes before it has data."""
    with Programs() as programs:
        program = programs.start([native, "heap", 1 << 20])
        program.read(60)
        return program.peak_bytes()


def _devices(context, notes):
    devices = ["disk"]
    if os.geteuid() != 0:
        notes.append("no swap beside ours on the disk: it needs root")
    no_zram = why_no_zram()
    if no_zram:
        notes.append(f"nothing on zram: {no_zram}")
    else:
        devices.append("zram")
    if not shutil.which("fio"):
        notes.append("nothing of fio beside the tasks: install fio")
    try:
        MemoryGroup.create(64 * MIB, "bench").remove()
    except Unavailable as reason:
        notes.append(f"nothing measured: no memory limit can be set here ({reason})")
        return []
    return devices


def _summary(rows):
    summary = {row["case"].split("/")[1] + "_" + row["case"].split("/")[0] + "_" + row["case"].split("/")[2]: row["ratio"]
               for row in rows}
    for device in ("disk", "zram"):
        own = [row["ratio"] for row in rows if row["case"].startswith(device)]
        if own:
            summary[f"worst_{device}"] = min(own)
    return summary


def run(context):
    plan = Plan(context)
    cases = plan.cases()
    chosen = context.cases.chosen(cases)
    notes, rows = [], []
    devices = _devices(context, notes)
    native, ours = context.folder / "random-native", context.folder / "random-ours"
    flags = [*FLAGS, f"-I{context.include()}"]
    context.build("random, natively", [context.native_cxx, *flags, SOURCE, "-o", native])
    context.build("random, by spillc++", [context.spillcxx, *flags, SOURCE, "-o", ours])
    limit_bytes = plan.budget_bytes + _plain_bytes(native) + SLACK_BYTES
    for device in devices:
        wanted = [name for name in chosen if cases[name][0] == device]
        if missing := context.kept.missing(wanted):
            measured, own_notes = _measure_on(context, plan, device, (native, ours), limit_bytes, [cases[name] for name in missing])
            for row in measured:
                context.kept[row["case"]] = row, own_notes
        for name in wanted:
            row, own_notes = context.kept[name]
            rows.append(row)
            notes += [note for note in own_notes if note not in notes]
    for note in notes:
        context.say(f"random: note: {note}")
    result = {
        "parameters": {"data_bytes": plan.data_bytes, "budget_bytes": plan.budget_bytes, "limit_bytes": limit_bytes,
                       "threads": plan.threads, "pairs": plan.pairs, "case_seconds": plan.case_seconds, "window_seconds": plan.window_seconds,
                       "flags": " ".join(FLAGS), "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows), "notes": notes,
    }
    bars = {"title": "random accesses, a quarter of the data in memory",
            "subtitle": "accesses a second as a ratio, ours over the peer's; more is better",
            "cases": [row["case"] for row in rows],
            "series": {"over mmap": [row.get("mmap_ratio") for row in rows], "over swap": [row.get("swap_ratio") for row in rows]}}
    return result, bars
