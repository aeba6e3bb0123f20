"""The storage queues beside fio: I/Os a second, latency and CPU time at several depths."""
import json
import resource
import shutil
import subprocess

from devices import Cleanup, file_of, fill_random, why_no_zram, zram
from lockstep import Failure, geometric_mean, median, row_of, spread, take_turns

DOC = """\
Random I/O with O_DIRECT through one storage queue, and by fio with the same engine, file, block size and depth: I/Os a
second, ours over those of fio; more is better. The peer is the faster of two ways to run fio, `one` I/O after the other
and in a `batch`; `peer_spread` is how far its own turns lie apart. `cpu_ratio`: CPU time for each I/O,
ours over that of the way of fio that needs less (`cpu_us`, `peer_cpu_us`); less is better.
"""
MIB = 1 << 20
# The scheme of a device string, and fio's words for the same.
ENGINES = {
    "uring": ["--ioengine=io_uring", "--fixedbufs=1", "--registerfiles=1", "--nonvectored=1"],
    "aio": ["--ioengine=libaio", "--userspace_reap=1"],
    "file": ["--ioengine=psync"],
}
MIXES = {"read": ["--rw=randread"], "write": ["--rw=randwrite"],
         "mixed": ["--rw=randrw", "--rwmixread=70", "--unified_rw_reporting=mixed"]}
# O_DIRECT, one thread, new random places in each turn, no record of where it has been, the clock read no more often than
# latency needs.
FIO = ["fio", "--name=turn", "--direct=1", "--thread=1", "--norandommap=1", "--randrepeat=0", "--allow_file_create=0",
       "--invalidate=0", "--disable_lat=1", "--disable_slat=1", "--disable_bw_measurement=1", "--output-format=json"]
BATCH = "--iodepth_batch_submit={0} --iodepth_batch_complete_min=1 --iodepth_batch_complete_max={0}"
IDLE_TURNS = 5
# What fio's process takes beyond its job and its start is noise below this share of the window, kernel workers above.
WORKERS_SHARE = 0.1


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.data_bytes = (256 if quick else 1024) * MIB
        self.engines = {"disk": ["uring"] if quick else list(ENGINES), "zram": ["uring"]}
        self.blocks = {"disk": ["4K", "128K"], "zram": ["4K"] if quick else ["4K", "128K"]}
        self.mixes = ["read", "mixed"] if quick else list(MIXES)
        # Of large blocks fewer say as much; of aio there are none.
        self.depths = {"4K": [1, 32] if quick else [1, 4, 16, 32, 128], "128K": [1, 32] if quick else [1, 16, 32]}
        self.pairs = context.pairs or (2 if quick else 3)
        self.case_seconds = 10
        self.window_seconds = 0.3 if quick else 0.5

    def cases(self, device):
        """{name: (engine, mix, block, depth)}; plain calls are one at a time."""
        return {f"{device}/{engine}/{mix}/{block}/{depth}": (engine, mix, block, depth) for engine in self.engines[device] for mix in self.mixes
                for block in self.blocks[device] for depth in self.depths[block] if (engine != "file" or depth == 1) and (engine != "aio" or block == "4K")}


class Turn:
    """What one run did: I/Os a second, CPU time for each, latencies, all in microseconds."""

    def __init__(self, ios, rate, cpu_us, mean_us, p50_us, p99_us):
        self.rate, self.cpu_us = rate, cpu_us / ios
        self.mean_us, self.p50_us, self.p99_us = mean_us, p50_us, p99_us


class Contest:
    """Ours and fio on one place."""

    def __init__(self, load, plan, place):
        self.load, self.plan, self.place = load, plan, place
        self.idle_us = 0.0

    def command(self, side, case, seconds):
        """Without seconds: as little as it can do."""
        engine, mix, block, depth = case
        if side == "ours":
            return [self.load, f"{engine}:{self.place}", self.plan.data_bytes, block, depth, mix, seconds]
        words = [*FIO, *ENGINES[engine], *MIXES[mix], f"--filename={self.place}", f"--bs={block}", f"--iodepth={depth}"]
        if side == "batch":
            words += BATCH.format(depth).split()
        if seconds == 0:
            return [*words, f"--size={block}"]
        return [*words, f"--size={self.plan.data_bytes}", "--time_based", f"--runtime={round(seconds * 1000)}ms"]

    def run(self, side, case, seconds):
        """Its output as an object, and the CPU time of the whole process."""
        words = [str(word) for word in self.command(side, case, seconds)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Ours says on standard error when it does without what the case is about.
        if ended.returncode != 0 or (side == "ours" and ended.stderr):
            lines = (ended.stderr or ended.stdout).strip().splitlines()
            raise Failure(f"{'/'.join(map(str, case))} on {self.place}: {lines[-1] if lines else words[0] + ' failed'}")
        cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return json.loads(ended.stdout[ended.stdout.index("{"):]), 1e6 * cpu_seconds

    def find_idle(self, case):
        """What fio takes besides its I/O: it measures the machine first. Fails when the case cannot be had."""
        self.run("ours", case, 0)
        self.idle_us = median([self.run("one", case, 0)[1] for _ in range(IDLE_TURNS)])

    def turn(self, side, case):
        result, process_us = self.run(side, case, self.plan.window_seconds)
        if side == "ours":
            times = result["latency_ns"]
            return Turn(result["ios"], result["iops"], result["cpu_us"], times["mean"] / 1e3, times["p50"] / 1e3,
                        times["p99"] / 1e3)
        job = result["jobs"][0]
        cpu_us = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e3  # of its thread
        beyond_us = process_us - self.idle_us - cpu_us
        if beyond_us > WORKERS_SHARE * self.plan.window_seconds * 1e6:
            cpu_us += beyond_us
        [done] = [job[kind] for kind in ("read", "write", "mixed") if job.get(kind, {}).get("total_ios")]
        times = done["clat_ns"]
        shares = times["percentile"]
        return Turn(done["total_ios"], done["iops"], cpu_us, times["mean"] / 1e3, shares["50.000000"] / 1e3,
                    shares["99.000000"] / 1e3)

    def measure(self, name, case):
        # One at a time is no batch.
        sides = ["ours", "one", "batch"] if case[-1] > 1 else ["ours", "one"]
        return _row(name, take_turns(sides, lambda side: self.turn(side, case), self.plan.pairs, self.plan.case_seconds))


def _row(name, turns):
    def every(side, what):
        return [getattr(turn, what) for turn in turns[side]]

    def middle(side, what):
        return median(every(side, what))

    peers = [side for side in turns if side != "ours"]
    peer = max(peers, key=lambda side: middle(side, "rate"))
    thrifty = min(peers, key=lambda side: middle(side, "cpu_us"))
    cpu_ratios = [ours / theirs for ours, theirs in zip(every("ours", "cpu_us"), every(thrifty, "cpu_us"))]
    row = row_of(name, every("ours", "rate"), every(peer, "rate"), "I/Os/s", best_peer=peer, peer_spread=spread(every(peer, "rate")), cpu_ratio=median(cpu_ratios), cpu_spread=spread(cpu_ratios),
                 cpu_us=middle("ours", "cpu_us"), peer_cpu_us=middle(thrifty, "cpu_us"))
    for what in ("mean_us", "p50_us", "p99_us"):
        row[what], row["peer_" + what] = middle("ours", what), middle(peer, what)
    return row


def _places(context, plan, cleanup, notes):
    """Makes and yields what is measured, one after the other: (name, path)."""
    yield "disk", file_of(cleanup, context.folder / "data", plan.data_bytes)
    no_zram = why_no_zram()
    if no_zram:
        notes.append(f"nothing on zram: {no_zram}")
    else:
        yield "zram", zram(cleanup, plan.data_bytes)


def _summary(rows):
    summary = {}
    for device in ("disk", "zram"):
        own = [row for row in rows if row["case"].startswith(device)]
        if own:
            summary.update({
                f"mean_ratio_{device}": geometric_mean([row["ratio"] for row in own]),
                f"worst_ratio_{device}": min(row["ratio"] for row in own),
                f"rows_{device}": len(own),
                f"rows_below_spread_{device}": sum(row["ratio"] < 1 - row["peer_spread"] for row in own),
                f"mean_cpu_ratio_{device}": geometric_mean([row["cpu_ratio"] for row in own]),
                f"worst_cpu_ratio_{device}": max(row["cpu_ratio"] for row in own)})
    return summary


def _load_program(context):
    if not shutil.which("fio"):
        raise Failure("fio is not there; install it", 2)
    load = context.spillway.parent.parent / "libexec/spillway/device-load"
    if not load.exists():
        raise Failure(f"{load} is not there; build or install Spillway completely", 2)
    return load


def run(context):
    load = _load_program(context)
    plan = Plan(context)
    context.cases.chosen(plan.cases("disk") | plan.cases("zram"))
    notes, rows = [], []
    with Cleanup() as cleanup:
        for device, place in _places(context, plan, cleanup, notes):
            cases = [(name, case) for name, case in plan.cases(device).items() if context.cases.wants(name)]
            if not cases:
                continue
            context.progress(f"device {device}: filling it with random data")
            fill_random(place, plan.data_bytes)
            contest = Contest(load, plan, place)
            engine = None
            for name, case in cases:
                context.progress(f"device {name}")
                if case[0] != engine:
                    engine = case[0]
                    contest.find_idle(case)
                rows.append(contest.measure(name, case))
                row = rows[-1]
                context.say(f"{name:24} {row['ours']:>9,.0f}/s, {row['ratio']:.2f} times fio +-{row['spread'] / 2:.0%}; "
                            f"CPU {row['cpu_us']:.2f} us, {row['cpu_ratio']:.2f} times fio's")
    for note in notes:
        context.say(f"device: note: {note}")
    result = {
        "parameters": {"data_bytes": plan.data_bytes, "pairs": plan.pairs, "case_seconds": plan.case_seconds, "window_seconds": plan.window_seconds,
                       "fio": context.output(["fio", "--version"]).strip(), "fio_flags": " ".join(FIO[2:]),
                       "engines": {engine: " ".join(words) for engine, words in ENGINES.items()},
                       "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows), "notes": notes,
    }
    bars = {"title": "storage queues beside fio", "subtitle": "ours over fio's: I/Os a second (more is better), CPU time for each (less)",
            "cases": [row["case"] for row in rows],
            "series": {"I/Os a second": [row["ratio"] for row in rows], "CPU for each": [row["cpu_ratio"] for row in rows]}}
    return result, bars
