"""The batched update table: updates of random records by each engine, beside the thesis's way."""
import os
import shutil

import batch_colouring
import batch_figures
from batch_load import PEER, Measured, shape
from lockstep import Failure, geometric_mean, median, spread

DOC = """\
Nanoseconds of an update of a random record of a full table, all threads together: less is better. A case is the bytes of a record and of a bucket,
how many thousand buckets, and threads, as in table 4.2 of the thesis (its 5 and 10 threads as far as there are CPUs for them); `clustered`: of the
buckets a quarter takes part at a time. `peer` is the thesis's baseline, a lock for each bucket and a linear search of its records; `direct` is the same with vectors. Those that stage, `cache_buckets` and `decoupled` in 16 MiB and `partitioned` in 64 MiB for each thread, have staged
as much as they may before their time begins; `auto` is the engine that the table chose under this load, `chosen`, before the first turn. All are in large OS pages, in turns on the same records, and requests are made meanwhile, which is in the time. In the summary: times as fast as the peer; and of the engine that was
chosen its speed over the best one's, and over `direct`'s, at the worst; `large`: the same of cases whose table is more than four times as large as the cache was measured to be, geometric means. `misses`: lines that are not in a last-level cache of 1 MiB, an update, of `cache_buckets` in as much memory over the peer's, by valgrind's cachegrind, and beside it
what equation 3.4 says (`model`); tables are smaller than the thesis's by as much as the cache is.
`figure4.N` and `table4.N`: the thesis's, of `linear` (peer) and `cache_buckets` (ours) alone, in cycles of the CPU's clock (its time stamp counter) that a thread was at work, or million updates a second (M/s); `direct_ratio` is over `direct`, which searches as cache-buckets do. Where misses
come in they are simulated, as above; in table 4.5 the times beside them are those of tables of full size, each its fastest turn's: of a line through all tables `base_cycles` is what an update costs without misses, `miss_cycles` what each adds;
`misses_share`: their part of the cost, the median; `explained`: of the differences between tables the part that the line explains. `ours` and `peer` are medians of the tables.
`colouring`: cache-buckets and table in OS pages of different colours (ours), or as they come (peer), an experiment of one thread; `misses` simulated, `time` by addresses that the system takes for physical, beside large OS pages (`huge`);
`lines`: a line of pages of one colour, over one of pages of all.
"""
RECORDS, BUCKETS, THOUSANDS = (8, 16, 32), (128, 256, 512), (200, 400, 600, 800)
LARGE = (2000, 8000)  # thousand buckets, of the middle bucket alone
THREADS = (1, 2, 5, 10)
CLUSTERED_PART = 4
AS_GOOD = 0.98  # as the best engine
LARGE_TABLE = 4  # times the cache
MISSES_CASES = [(16, 128, 13), (16, 128, 53), (16, 512, 13), (16, 512, 53), (8, 256, 27), (32, 256, 27)]  # record, bucket, thousands


class Plan:
    def __init__(self, context, cpu_count):
        quick = context.quick
        self.turns = context.pairs or (1 if quick else 2)
        self.seconds = 0.05 if quick else 0.2
        threads = [count for count in THREADS if count <= cpu_count]
        thousands = (20,) if quick else THOUSANDS
        self.cases = [(record, bucket, many, count, False) for record in RECORDS for bucket in BUCKETS for many in thousands for count in threads]
        if not quick:
            self.cases += [(record, 256, many, count, False) for record in RECORDS for many in LARGE for count in threads]
        self.cases += [(16, 512, thousands[-1], count, True) for count in threads]
        # Of records, buckets, thousands, threads, and thousands of large tables.
        self.of_figures = ((16,), BUCKETS, (20, 80), threads, ()) if quick else (RECORDS, BUCKETS, THOUSANDS, threads, LARGE)


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
            "cache_bytes": told["cache_bytes"], "is_large": many * 1000 * bucket > LARGE_TABLE * told["cache_bytes"]}


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


def _misses(context, measured, case):
    """A row: how many of the peer's misses cache-buckets have."""
    record, bucket, many = case
    ours, peer, model = measured.misses_of(record, bucket, many * 1000)
    context.say(f"{_misses_name(case):24} {peer:.2f} misses an update, cache_buckets {ours / peer:.2f} times as many, by equation 3.4 {model:.2f}")
    return {"case": _misses_name(case), "ours": ours, "peer": peer, "ratio": ours / peer, "spread": 0.0, "unit": "misses", "model": model}


class Engines:
    """All engines beside each other, a table after the other."""

    def __init__(self, context, measured, plan):
        self.context, self.measured, self.plan = context, measured, plan
        self.rows, self.ratios, self.choices = [], {}, []

    def measure(self, case):
        record, bucket, many, threads, clustered = case
        words = {**shape(record, bucket, many * 1000), "threads": threads, "turns": self.plan.turns, "seconds": self.plan.seconds,
                 "active": many * 1000 // CLUSTERED_PART if clustered else 0}
        told = self.measured.ask("batch", words)
        if not clustered:
            self.measured.note_costs(record, bucket, many, threads, {**told, "engines": dict(told["engines"])})
        peer = told["engines"].pop(PEER)
        self.choices.append(_choice(case, told, median(peer)))
        for engine, times in told["engines"].items():
            each = [ours / theirs for theirs, ours in zip(peer, times)]
            self.rows.append({"case": f"{_name(case)}/{engine}", "ours": median(times), "peer": median(peer), "ratio": median(each), "spread": spread(each),
                              "unit": "ns", "pairs": len(each), "memory_bytes": told["memory_bytes"], "modelled_ns": told["modelled"].get(engine)})
            self.ratios.setdefault(engine, []).append(self.rows[-1]["ratio"])
        self.context.say(f"{_name(case):24} {median(peer):6.1f} ns; " + ", ".join(
            f"{engine} {median(peer) / median(times):.2f}" for engine, times in told["engines"].items()) + f"; {told['chosen']}")

    def bars(self, wanted):
        shown = [case for case in wanted if case[3] == wanted[0][3] and not case[4]]
        by_name = {row["case"]: row for row in self.rows}
        return {"title": "batch: updates of random records", "subtitle": "time over the thesis's baseline's, less is better",
                "cases": [_name(case) for case in shown],
                "series": {engine: [by_name[f"{_name(case)}/{engine}"]["ratio"] for case in shown] for engine in self.ratios}}


def _misses_bars(rows):
    return {"title": "batch: misses of the last-level cache", "subtitle": "cache-buckets' over the baseline's, less is better",
            "cases": [row["case"] for row in rows],
            "series": {"cachegrind": [row["ratio"] for row in rows], "equation 3.4": [row["model"] for row in rows]}}


def _figures(context, figures, names):
    """Rows of the thesis's figures and tables, and a picture of each."""
    cases, rows = figures.cases(), []
    for name in names:
        rows.append(cases[name]())
        row = rows[-1]
        context.say(f"{name:32} {row['ours']:.4g} {row['unit']}, baseline {row['peer']:.4g}, ratio {row['ratio']:.3g}")
    parts = [(part, [row for row in rows if row["case"].startswith(part + "/")]) for part in batch_figures.PARTS]
    return rows, [figures.picture(part, of) for part, of in parts if of]


def _colouring(context, colouring, names):
    cases, rows = colouring.cases(), []
    for name in names:
        row = cases[name](name)
        if row is not None:
            rows.append(row)
            context.say(f"{name:32} {row['ours']:.4g} {row['unit']}, as they come {row['peer']:.4g}, ratio {row['ratio']:.3g}")
    return rows, [batch_colouring.picture(rows)] if rows else []


def run(context):
    plan = Plan(context, len(os.sched_getaffinity(0)))
    measured = Measured(context, plan.turns, plan.seconds)
    figures = batch_figures.Figures(measured, *plan.of_figures)
    colouring = batch_colouring.Colouring(measured, context.quick)

    def asked_for(names, also_quick=False):
        """Those that --only asks for; without it all, but of --quick only what is quick."""
        return [name for name in names if context.cases.wants(name)] if context.cases or also_quick or not context.quick else []

    by_name = {_name(case): case for case in plan.cases}
    wanted = [by_name[name] for name in asked_for(by_name, also_quick=True)]
    misses = [case for case in MISSES_CASES if asked_for([_misses_name(case)])]
    # Small tables are quick also where misses are counted, if they can be.
    can_count = shutil.which("valgrind") is not None
    figure_names, colouring_names = asked_for(figures.cases(), also_quick=can_count), asked_for(colouring.cases(), also_quick=can_count)
    if not (wanted or misses or figure_names or colouring_names):
        raise Failure(f"batch has no such case; there are {_name(plan.cases[0])}, {_name(plan.cases[-1])} and others", 2)
    engines = Engines(context, measured, plan)
    for number, case in enumerate(wanted):
        context.progress(f"batch {_name(case)}: {number + 1} of {len(wanted)}")
        engines.measure(case)
    misses_rows = [_misses(context, measured, case) for case in misses]
    figure_rows, pictures = _figures(context, figures, figure_names)
    colouring_rows, more = _colouring(context, colouring, colouring_names)
    rows = engines.rows + misses_rows + figure_rows + colouring_rows
    if not rows:
        raise Failure("; ".join(colouring.notes))
    summary = {f"{engine}_times_as_fast": 1 / geometric_mean(all_ratios) for engine, all_ratios in engines.ratios.items()}
    summary |= _summary(engines.choices) if engines.choices else {}
    if misses:
        summary["misses_over_model"] = geometric_mean([row["ratio"] / row["model"] for row in misses_rows])
    summary |= batch_figures.summarise(figure_rows) | batch_colouring.summarise(colouring_rows)
    bars = engines.bars(wanted) if wanted else _misses_bars(misses_rows) if misses else {}
    bars["more"] = pictures + more
    parameters = {"turns": plan.turns, "window_seconds": plan.seconds, "quick": context.quick}
    if engines.choices:
        parameters["measured_cache_bytes"] = median([choice["cache_bytes"] for choice in engines.choices])
    return {"parameters": parameters,
            "rows": rows, "choices": engines.choices, "summary": summary, "notes": colouring.notes,
            "parts": {"misses": "misses of the last-level cache, simulated", **batch_figures.PARTS, **batch_colouring.PARTS}}, bars
