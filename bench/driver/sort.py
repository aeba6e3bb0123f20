"""Sorts of records, resident and with memory for a part of them, beside native code and swap."""
from devices import Cleanup
from limited import MIB, OPENMP, Contest, Device, check_same, check_stats, limit_of, limited_row, plain_bytes, resident_row, resident_summary, usable_devices
from lockstep import Programs, take_turns
from variants import variants
from workloads import Sort as Workload

DOC = """\
Sorts of records of 100 bytes with keys of ten. `resident`: CPU time with all data in memory, compiled by spillcc (ours) over native code (peer); less is better.
`DEVICE/WAY/PART/THREADS`: how many times as fast as in memory with swap ours is, with memory for 1/PART of what the sort uses; of swap one page or eight come in at a time (`swapped_in`),
whichever was faster; `ours` and `peer` are seconds, and `native_ratio` is over native code with all the memory that it wants. `bodies`: of each function ours has one, the instrumented one; `two_bodies_…` are of programs with two.
"""
RUN_SECONDS = 1200


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.resident_records = 100_000 if quick else 1_000_000
        self.records = 300_000 if quick else 2_000_000
        # The merge sort is std::sort where there is one thread.
        self.resident = [("std", 1), ("shuffle", 1), ("gnu", 2), ("shuffle", 2)]
        self.limited = [("shuffle", 4, 2)] if quick else [(way, part, threads) for way, threads in (("std", 1), ("gnu", 2), ("shuffle", 2)) for part in (2, 4, 8)]
        self.pairs = context.pairs or (2 if quick else 5)
        # A case, but for the turns that do not count.
        self.resident_seconds, self.limited_seconds = 10, 20

    def cases(self):
        return [f"resident/{way}/{threads}" for way, threads in self.resident] + [f"{device}/{way}/{part}/{threads}" for device in ("disk", "zram") for way, part, threads in self.limited]


class Sort:
    def __init__(self, context, plan):
        self.context, self.plan, self.rows = context, plan, []
        self.native = context.folder / "native"
        context.build("sort natively", [context.native_cxx, *Workload.flags, *Workload.sources, "-o", self.native])
        self.ours = variants(context)
        for side, flags in self.ours.items():
            context.build(f"sort by spillc++, {side}", [context.spillcxx, *Workload.flags, *flags, *Workload.sources, "-o", context.folder / side])

    def stats(self, side):
        return self.context.folder / f"stats-{side}.json"

    def turns(self, case, workload, asking, running, pairs=1, seconds=0):
        """{side: its turns}; asking(side) is how one is asked."""
        return take_turns(list(running), lambda side: workload.turn(asking(side)), pairs, seconds,
                          lambda answers: check_same(case, {side: turn.found for side, turn in answers.items()}))

    def resident(self):
        for way, threads in self.plan.resident:
            case = f"resident/{way}/{threads}"
            if not self.context.cases.wants(case):
                continue
            if case not in self.context.kept:
                self.context.progress(f"sort {case}")
                row = self.measure_resident(case, way, threads)
                self.context.kept[case] = row
                self.say(row)
            self.rows.append(self.context.kept[case])

    def measure_resident(self, case, way, threads):
        workload = Workload(way, self.plan.resident_records)
        words = workload.words(threads)
        commands = {"native": [self.native, *words]}
        for side in self.ours:
            commands[side] = self.context.spilled(3 * workload.records_bytes + 256 * MIB, [self.context.folder / side, *words], self.stats(side))
        with Programs() as programs:
            programs.environment.update(OPENMP)
            running = {side: programs.start(command) for side, command in commands.items()}
            for program in running.values():
                program.read(RUN_SECONDS)
            asks = {side: program.asking(RUN_SECONDS) for side, program in running.items()}
            self.turns(case, workload, asks.get, running)  # a warm-up
            turns = self.turns(case, workload, asks.get, running, self.plan.pairs, self.plan.resident_seconds)
            for program in running.values():
                program.finish()
        for side in self.ours:
            check_stats(case, self.stats(side), workload.records_bytes, resident=True)
        return resident_row(case, {side: [turn.cpu_seconds for turn in own] for side, own in turns.items()})

    def limited(self, name, notes):
        cases = [(f"{name}/{way}/{part}/{threads}", way, part, threads) for way, part, threads in self.plan.limited]
        cases = [case for case in cases if self.context.cases.wants(case[0])]
        if missing := self.context.kept.missing(cases):
            self.measure_on(name, missing)
        for case, *_ in cases:
            row, own_notes = self.context.kept[case]
            self.rows.append(row)
            notes += own_notes

    def measure_on(self, name, cases):
        """Keeps of each of these cases, on this kind of device, its row and its notes."""
        plain = plain_bytes([self.native, "std", self.plan.records, 2])
        with Cleanup() as cleanup:
            device = Device(self.context, cleanup, name, 4 * Workload("std", self.plan.records).records_bytes + 256 * MIB)
            for case, way, part, threads in cases:
                self.context.progress(f"sort {case}")
                with Cleanup() as inner:
                    row, notes = self.measure_limited(case, Workload(way, self.plan.records), part, threads, device, inner, plain)
                self.context.kept[case] = row, notes
                self.say(row)

    def measure_limited(self, case, workload, part, threads, device, cleanup, plain):
        """A row, and notes."""
        budget_bytes = workload.data_bytes // part
        contest = Contest(self.context, cleanup, device, limit_of(budget_bytes, plain))
        words = workload.words(threads)
        for side in self.ours:
            contest.start(side, device.run(self.context, side, budget_bytes, self.stats(side), [self.context.folder / side, *words]))
        if device.has_swap:
            contest.start("swap", [self.native, *words], swap=True)
        contest.start("native", [self.native, *words], limited=False)
        for program in contest.running.values():
            program.read(RUN_SECONDS)

        def warm_up():
            """A turn of all sides, since records are new in each and the same on all. Seconds of the side that is swapped."""
            swapped = self.turns(case, workload, contest.asking, contest.running).get("swap")
            return swapped[0].seconds if swapped else None

        swapped_in = contest.choose("swap", contest.ways_to_swap(), warm_up)
        turns = self.turns(case, workload, contest.asking, contest.running, self.plan.pairs, self.plan.limited_seconds)
        contest.finish()
        for side in self.ours:
            check_stats(case, self.stats(side), workload.records_bytes, resident=False)
        row = limited_row(case, {side: [turn.seconds for turn in turns[side]] for side in contest.running}, self.ours)
        return {**row, "swapped_in": swapped_in}, [f"{case}: {note}" for note in contest.left_out()]

    def say(self, row):
        what = f"times as fast as {row['best_peer']}" if "best_peer" in row else "of native"
        self.context.say(f"{row['case']:24} {row['ours']:.2f} s, {row['ratio']:.2f} {what} +-{row['spread'] / 2:.0%}")


def _summary(rows):
    summary = resident_summary(rows)
    for row in rows:
        if "best_peer" in row:
            device, way, part, _ = row["case"].split("/")
            for peer in ("swap", "native"):
                if peer + "_ratio" in row:
                    summary[f"{way}_{part}_{device}_{peer}"] = row[peer + "_ratio"]
    return summary


def run(context):
    plan, notes = Plan(context), []
    context.cases.chosen(plan.cases())
    sort = Sort(context, plan)
    sort.resident()
    for device in usable_devices(notes):
        sort.limited(device, notes)
    rows = sort.rows
    result = {
        "parameters": {"flags": " ".join(Workload.flags), "resident_records": plan.resident_records, "records": plan.records, "record_bytes": Workload.RECORD_BYTES,
                       "sides": {side: " ".join(flags) for side, flags in sort.ours.items()}, "pairs": plan.pairs, "resident_seconds": plan.resident_seconds, "limited_seconds": plan.limited_seconds, "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows), "notes": notes,
        "parts": {"resident": "CPU time, ours over native code", "disk": "times as fast, on the disk", "zram": "times as fast, on zram"},
    }
    bars = {"title": "sorts of records", "subtitle": "resident: CPU time over native, less is better; else speed over the peer's, more is better",
            "cases": [row["case"] for row in rows],
            "series": {"native, resident": [None if "best_peer" in row else row["ratio"] for row in rows],
                       "over swap": [row.get("swap_ratio") for row in rows],
                       "over native": [row.get("native_ratio") for row in rows]}}
    return result, bars
