"""Programs that choose policy, read-ahead and cleaning by themselves, beside every fixed setting."""
import json

from limited import MIB, OPENMP, check_same
from lockstep import Failure, Programs, geometric_mean, median, row_of, take_turns
from workloads import Graph, Pattern, Sort, make_graph

DOC = """\
Six programs with memory for a part of their data, on the disk, each with everything left to Spillway (ours) and with each setting fixed. `ratio`: time of a turn of ours over that of the best
fixed setting (`best`, peer), in the same turns, after some in which policies learn; `first_ratio`: the same of the first turn; less is better. `reads_ratio`: the same of pages read. `chosen`: the policy that ours had at the end. Columns with names of settings: time of ours over theirs.
"""
RUN_SECONDS = 1200
OURS = "ours"
# Of each setting what is fixed; all else is as by itself.
SETTINGS = {
    OURS: ["--policy", "auto"],
    **{policy: ["--policy", policy] for policy in ("clock", "lru", "2q", "random", "s3fifo", "nrlfu")},
    "page_16K": ["--page", "16K"],
    "page_64K": ["--page", "64K"],
    "no_read_ahead": ["--read-ahead", "0"],
    "read_ahead_15": ["--read-ahead", "15"],
}
# The default, and those that were the best one of some case, or near it; larger pages are far from it but where memory is used in order.
QUICK_SETTINGS = (OURS, "clock", "2q", "nrlfu")
QUICK_SETTINGS_IN_ORDER = (*QUICK_SETTINGS, "page_16K", "page_64K")
IN_ORDER = ("loop", "sort", "graph")


class Plan:
    def __init__(self, context):
        self.quick = context.quick
        # Caches of 4 MiB have no samples to choose by.
        self.budget_mib = 8 if self.quick else 32
        self.pairs = context.pairs or 5
        # Turns before the first that counts, if there is time for them: policies learn.
        self.warm_up = 12 if self.quick else 3
        # A case, but for what it loads and what its last turn takes longer.
        self.case_seconds = 24 if self.quick else 90
        self.scale = 17 if self.quick else 19
        budget = self.budget_mib
        self.programs = {
            "loop": Pattern("loop", budget * 5 // 4),
            "zipf": Pattern("zipf", budget * 4),
            "scan": Pattern("scan", budget * 4),
            # A larger one takes more time to build than all else: half an hour for all settings on a disk, with four times the memory.
            "tree": Pattern("tree", budget * 2),
            "sort": Sort("std", budget * 4 * MIB // Sort.RECORD_BYTES),
            "graph": Graph(context.folder / "graph-file", "pr"),
        }

    def settings(self, case):
        if not self.quick:
            return SETTINGS
        return {name: SETTINGS[name] for name in (QUICK_SETTINGS_IN_ORDER if case in IN_ORDER else QUICK_SETTINGS)}


class Bench:
    def __init__(self, context, plan):
        self.context, self.plan = context, plan
        for kind in (Pattern, Sort, Graph):
            context.build(f"{kind.__name__} by spillc++", [context.spillcxx, *kind.flags, *kind.sources, "-o", self.program(kind)])

    def program(self, kind):
        return self.context.folder / kind.__name__

    def stats(self, side):
        return self.context.folder / f"stats-{side}.json"

    def command(self, side, workload):
        return self.context.spilled(self.plan.budget_mib * MIB, [self.program(type(workload)), *workload.words(threads=1)], self.stats(side), SETTINGS[side])

    def measure(self, case, workload):
        """A row."""
        if isinstance(workload, Graph):
            make_graph(self.context, self.program(Graph), "kron", "any", self.plan.scale, workload.path)
        with Programs() as programs:
            programs.environment.update(OPENMP)
            running = {side: programs.start(self.command(side, workload)) for side in self.plan.settings(case)}
            asks = {side: program.asking(RUN_SECONDS) for side, program in running.items()}
            for side, program in running.items():
                program.read(RUN_SECONDS)
                workload.begin(asks[side])
            first = {}

            def turn(side):
                self.context.progress(f"selfdriving {case}: {side}")
                taken = workload.turn(asks[side])
                first.setdefault(side, taken.seconds)
                return taken

            def look(answers):
                check_same(case, {side: taken.found for side, taken in answers.items()})

            third = self.plan.case_seconds / 3
            take_turns(running, turn, self.plan.warm_up, third, look)
            taken = take_turns(running, turn, self.plan.pairs, 2 * third, look)
            turns = {side: [each.seconds for each in own] for side, own in taken.items()}
            for program in running.values():
                program.finish()
        return self.row(case, first, turns, {side: json.loads(self.stats(side).read_text()) for side in running})

    def row(self, case, first, turns, statistics):
        for side, counted in statistics.items():
            if counted["cache"]["evictions"] == 0:
                raise Failure(f"{case}: {side} evicted nothing")
        fixed = [side for side in turns if side != OURS]
        best = min(fixed, key=lambda side: median(turns[side]))
        ratios = {side: [ours / theirs for ours, theirs in zip(turns[OURS], turns[side])] for side in fixed}
        reads = {side: counted["storage"]["read_bytes"] for side, counted in statistics.items()}
        fewest = min(reads[side] for side in fixed)
        first_best = min(first[side] for side in fixed)
        row = row_of(case, turns[OURS], turns[best], "s", best=best, first_ratio=first[OURS] / first_best, reads_ratio=reads[OURS] / max(fewest, 1), chosen=statistics[OURS]["chosen"]["policy"],
                     **{side: median(ratios[side]) if side in ratios else None for side in SETTINGS if side != OURS})
        self.context.say(f"{case:8} {row['ratio']:.2f} of {best} +-{row['spread'] / 2:.0%}, {row['first_ratio']:.2f} in the first turn, reads {row['reads_ratio']:.2f} of the fewest, {row['chosen']} at the end")
        return row


def run(context):
    plan = Plan(context)
    wanted = context.cases.chosen(plan.programs)
    if missing := context.kept.missing(wanted):
        bench = Bench(context, plan)
        for case in missing:
            context.kept[case] = bench.measure(case, plan.programs[case])
    rows = [context.kept[case] for case in wanted]
    result = {
        "parameters": {"budget_bytes": plan.budget_mib * MIB, "settings": {side: " ".join(words) for side, words in SETTINGS.items()},
                       "pairs": plan.pairs, "warm_up": plan.warm_up, "case_seconds": plan.case_seconds, "storage": str(context.storage), "quick": context.quick},
        "rows": rows,
        "summary": {"geomean_ratio": geometric_mean([row["ratio"] for row in rows]), "worst_ratio": max(row["ratio"] for row in rows),
                    "geomean_first_ratio": geometric_mean([row["first_ratio"] for row in rows]),
                    "worst_reads_ratio": max(row["reads_ratio"] for row in rows), **{f"{row['case']}_ratio": row["ratio"] for row in rows}},
    }
    fixed = [side for side in SETTINGS if side != OURS and any(row[side] is not None for row in rows)]
    bars = {"title": "everything chosen while running, over fixed settings", "subtitle": "time of the same work, less is better",
            "cases": [row["case"] for row in rows], "series": {side: [row[side] for row in rows] for side in ["ratio", *fixed]}}
    bars["series"]["best"] = bars["series"].pop("ratio")
    return result, bars
