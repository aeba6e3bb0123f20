"""The batched update table: updates of random records by each engine, beside the thesis's way."""
import json
import os
import pathlib
import shutil
import tempfile

from counting import counting, missed, of_one
from lockstep import Failure, Programs, geometric_mean, median, spread

DOC = """\
Nanoseconds of an update of a random record of a full table, all threads together: less is better. A case is the bytes of a record and of a bucket,
how many thousand buckets, and threads, as in table 4.2 of the thesis (its 5 and 10 threads as far as there are CPUs for them); `clustered`: of the
buckets a quarter takes part at a time. `peer` is the thesis's baseline, a lock for each bucket and a linear search of its records; `direct` is the same with vectors. Those that stage, `cache_buckets` and `decoupled` in 16 MiB and `partitioned` in 64 MiB for each thread, have staged
as much as they may before their time begins; `auto` is the engine that the table chose under this load, `chosen`, before the first turn. All are in large OS pages, in turns on the same records, and requests are made meanwhile, which is in the time. In the summary: times as fast as the peer; and of the engine that was
chosen its speed over the best one's, and over `direct`'s, at the worst; `large`: the same of cases whose table is more than four times as large as the cache was measured to be, geometric means. `misses`: lines that are not in a last-level cache of 1 MiB, an update, of `cache_buckets` in as much memory over the peer's, by valgrind's cachegrind, and beside it
what equation 3.4 says (`model`); tables are smaller than the thesis's by as much as the cache is.
"""
RECORDS, BUCKETS, THOUSANDS = (8, 16, 32), (128, 256, 512), (200, 400, 600, 800)
LARGE = (2000, 8000)  # thousand buckets, of the middle bucket alone
THREADS = (1, 2, 5, 10)
PEER = "linear"
CLUSTERED_PART = 4
AS_GOOD = 0.98  # as the best engine
LARGE_TABLE = 4  # times the cache
RUN_SECONDS = 600
MISSES_CACHE_BYTES = 1 << 20
MISSES_CASES = [(16, 128, 13), (16, 128, 53), (16, 512, 13), (16, 512, 53), (8, 256, 27), (32, 256, 27)]  # record, bucket, thousands
MISSES_UPDATES = (200_000, 600_000)


def _key_bytes(record):
    """The thesis's records of 8 bytes have keys of 4."""
    return min(8, record // 2)


class Plan:
    def __init__(self, context, cpu_count):
        quick = context.quick
        self.turns = context.pairs or (1 if quick else 3)
        self.seconds = 0.05 if quick else 0.25
        threads = [count for count in THREADS if count <= cpu_count]
        thousands = (20,) if quick else THOUSANDS
        self.cases = [(record, bucket, many, count, False) for record in RECORDS for bucket in BUCKETS for many in thousands for count in threads]
        if not quick:
            self.cases += [(record, 256, many, count, False) for record in RECORDS for many in LARGE for count in threads]
        self.cases += [(16, 512, thousands[-1], count, True) for count in threads]


def _name(case):
    record, bucket, many, threads, clustered = case
    return f"{record}/{bucket}/{many}k/{threads}" + ("/clustered" if clustered else "")


def _choice(case, told, peer):
    """How good the engine is that the table has chosen, by its own times in the same turns."""
    times = {engine: median(all_times) for engine, all_times in told["engines"].items() if engine != "auto"}
    chosen = times[told["chosen"]] if told["chosen"] in times else peer
    record, bucket, many, _, _ = case
    return {"case": _name(case), "chosen": told["chosen"], "seconds": told["choosing_seconds"], "over_best": min(times.values()) / chosen,
            "over_direct": times["direct"] / chosen, "over_peer": peer / chosen,
            "is_large": many * 1000 * bucket > LARGE_TABLE * told["cache_bytes"]}


def _summary(choices):
    summary = {"auto_as_good_share": sum(choice["over_best"] >= AS_GOOD for choice in choices) / len(choices),
               "auto_over_best_worst": min(choice["over_best"] for choice in choices),
               "auto_over_direct_worst": min(choice["over_direct"] for choice in choices),
               "auto_seconds_most": max(choice["seconds"] for choice in choices)}
    if large := [choice for choice in choices if choice["is_large"]]:
        summary |= {"large_auto_times_as_fast": geometric_mean([choice["over_peer"] for choice in large]),
                    "large_auto_over_direct": geometric_mean([choice["over_direct"] for choice in large])}
    return summary


def _misses_name(case):
    return "misses/{}/{}/{}k".format(*case)


def _misses(context, load, case):
    """A row: how many of the peer's misses cache-buckets have."""
    record, bucket, many = case
    words = {"key": _key_bytes(record), "record": record, "bucket": bucket, "buckets": many * 1000, "cache": MISSES_CACHE_BYTES >> 10}
    each = {}
    with tempfile.TemporaryDirectory(prefix="spillway-bench-") as folder:
        log = pathlib.Path(folder, "log")
        for engine in (PEER, "cache_buckets"):
            context.progress(f"batch: counting misses of {_misses_name(case)}, {engine}")
            counts = []
            for updates in MISSES_UPDATES:
                with Programs() as programs:
                    program = programs.start(counting(log, [load, f"engine={engine}", f"updates={updates}", *(f"{name}={value}" for name, value in words.items())],
                                                      MISSES_CACHE_BYTES))
                    told = json.loads(program.read(RUN_SECONDS))
                    program.finish()
                counts.append(missed(log))
            each[engine] = of_one(counts, MISSES_UPDATES)
    ratio = each["cache_buckets"] / each[PEER]
    context.say(f"{_misses_name(case):24} {each[PEER]:.2f} misses an update, cache_buckets {ratio:.2f} times as many, by equation 3.4 {told['relative_misses']:.2f}")
    return {"case": _misses_name(case), "ours": each["cache_buckets"], "peer": each[PEER], "ratio": ratio, "unit": "misses", "model": told["relative_misses"]}


def run(context):
    plan = Plan(context, len(os.sched_getaffinity(0)))
    load = context.spillway.parent.parent / "libexec/spillway/batch-load"
    if not load.exists():
        raise Failure(f"{load} is not there; build or install Spillway completely", 2)
    wanted = [case for case in plan.cases if not context.cases or any(_name(case).startswith(start) for start in context.cases)]
    misses = [case for case in MISSES_CASES if any(_misses_name(case).startswith(start) for start in context.cases) or not (context.cases or context.quick)]
    if misses and not shutil.which("valgrind"):
        raise Failure("misses are counted by valgrind, which is not there: apt-get install valgrind", 2)
    if not wanted and not misses:
        raise Failure(f"batch has no case that begins with {context.cases[0]!r}; there are {_name(plan.cases[0])}, {_name(plan.cases[-1])} and others", 2)
    rows, ratios, choices = [], {}, []
    for number, case in enumerate(wanted):
        record, bucket, many, threads, clustered = case
        context.progress(f"batch {_name(case)}: {number + 1} of {len(wanted)}")
        words = {"key": _key_bytes(record), "record": record, "bucket": bucket, "buckets": many * 1000, "threads": threads, "turns": plan.turns,
                 "seconds": plan.seconds, "active": many * 1000 // CLUSTERED_PART if clustered else 0}
        with Programs() as programs:
            program = programs.start([load, *(f"{name}={value}" for name, value in words.items())])
            told = json.loads(program.read(RUN_SECONDS))
            program.finish()
        peer = told["engines"].pop(PEER)
        choices.append(_choice(case, told, median(peer)))
        for engine, times in told["engines"].items():
            each = [ours / theirs for theirs, ours in zip(peer, times)]
            rows.append({"case": f"{_name(case)}/{engine}", "ours": median(times), "peer": median(peer), "ratio": median(each), "spread": spread(each),
                         "unit": "ns", "memory_bytes": told["memory_bytes"], "modelled_ns": told["modelled"].get(engine)})
            ratios.setdefault(engine, []).append(rows[-1]["ratio"])
        context.say(f"{_name(case):24} {median(peer):6.1f} ns; " + ", ".join(
            f"{engine} {median(peer) / median(times):.2f}" for engine, times in told["engines"].items()) + f"; {told['chosen']}")
    rows += [_misses(context, load, case) for case in misses]
    summary = {f"{engine}_times_as_fast": 1 / geometric_mean(all_ratios) for engine, all_ratios in ratios.items()}
    summary |= _summary(choices) if choices else {}
    if misses:
        summary["misses_over_model"] = geometric_mean([row["ratio"] / row["model"] for row in rows if "model" in row])
    result = {"parameters": {"turns": plan.turns, "window_seconds": plan.seconds, "quick": context.quick}, "rows": rows, "choices": choices, "summary": summary}
    if not wanted:
        return result, {"title": "batch: misses of the last-level cache", "subtitle": "cache-buckets' over the baseline's, less is better",
                        "cases": [row["case"] for row in rows],
                        "series": {"cachegrind": [row["ratio"] for row in rows], "equation 3.4": [row["model"] for row in rows]}}
    shown = [case for case in wanted if case[3] == wanted[0][3] and not case[4]]
    by_name = {row["case"]: row for row in rows}
    bars = {"title": "batch: updates of random records", "subtitle": "time over the thesis's baseline's, less is better",
            "cases": [_name(case) for case in shown],
            "series": {engine: [by_name[f"{_name(case)}/{engine}"]["ratio"] for case in shown] for engine in ratios}}
    return result, bars
