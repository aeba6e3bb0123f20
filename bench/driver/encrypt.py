"""What encryption costs: pages and records on encrypted storage beside the same storage without it."""
import os

from devices import Cleanup, file_of, fill_random, why_no_zram, zram
from kv_contest import RECORD_BYTES_MOST, RECORDS, run_program
from lockstep import Failure, median, row_of, take_turns

DOC = """\
Random I/O with O_DIRECT through one storage queue (`page`), and gets and puts of records of 4 KiB by tasks of one worker (`record`), under a key from a file (ours) and without
encryption (peer): `DEVICE/page/read/4K/DEPTH`. Operations a second; `cost_us`: by how much CPU time one takes longer, the median over the pairs of `cpu_us` less `peer_cpu_us`.
"""
MIB = 1 << 20
SIDES = ("ours", "peer")


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.data_bytes = (128 if quick else 512) * MIB
        self.keys = 4 * 1024 if quick else 32 * 1024
        self.blocks = ["4K"] if quick else ["4K", "128K"]
        self.depths = [32] if quick else [1, 32]
        self.pairs = context.pairs or (2 if quick else 5)
        self.case_seconds = 15
        self.window_seconds = 0.3 if quick else 0.5

    def cases(self, device):
        """{name: (what, operation, block, depth)}; records are put after all others: a store that was put to is not what gets are from."""
        cases = [("page", mix, block, depth) for mix in ("read", "write") for block in self.blocks for depth in self.depths]
        cases += [("record", operation, "4K", depth) for operation in ("get", "put") for depth in self.depths]
        return {"/".join(map(str, (device, *case))): case for case in cases}


class Side:
    """Storage of one kind on a place of its own."""

    def __init__(self, folder, plan, device):
        self.folder, self.plan, self.device = folder, plan, device
        self.is_filled = False  # with records

    def turn(self, what, operation, block, depth):
        """Operations a second, and CPU time of each in microseconds."""
        return self.page(operation, block, depth) if what == "page" else self.record(operation, depth)

    def page(self, mix, block, depth):
        self.is_filled = False
        words = [self.folder / "device-load", self.device, self.plan.data_bytes, block, depth, mix, self.plan.window_seconds]
        answer = run_program(words, f"page {mix}")[0]
        return answer["iops"], answer["cpu_us"] / answer["ios"]

    def record(self, operation, depth):
        if operation == "put":
            self.is_filled = False
            answer = self.store(operation, depth, make=1, most=self.plan.data_bytes * 8 // 10 // RECORD_BYTES_MOST)
        else:
            if not self.is_filled:
                self.store("fill", depth, make=1, keys=self.plan.keys)
                self.is_filled = True
            answer = self.store(operation, depth, keys=self.plan.keys)
            if answer["found"] != answer["gets"]:
                raise Failure(f"encrypt: of {answer['gets']} keys only {answer['found']} were found")
        return answer["per_second"], answer["user_us"] + answer["system_us"]

    def store(self, operation, depth, **settings):
        grain, value, _ = RECORDS["4K"]
        settings = {"grain": grain, "value": value, "capacity": self.plan.data_bytes, "depth": depth, "by": "tasks", "seconds": self.plan.window_seconds,
                    **settings}
        if not settings.get("make"):
            del settings["grain"], settings["capacity"]
        return run_program([self.folder / "kv-load", self.device, operation, *(f"{name}={value}" for name, value in settings.items())], operation)[0]


def _measure(name, case, sides, plan):
    turns = take_turns(SIDES, lambda side: sides[side].turn(*case), plan.pairs, plan.case_seconds)
    rates, cpu = ({side: [turn[of] for turn in turns[side]] for side in SIDES} for of in (0, 1))
    return row_of(name, rates["ours"], rates["peer"], "operations/s", cpu_us=median(cpu["ours"]), peer_cpu_us=median(cpu["peer"]),
                  cost_us=median([ours - peer for ours, peer in zip(cpu["ours"], cpu["peer"])]))


def _places(context, plan, cleanup, notes):
    """Makes and yields what is measured, one after the other: (name, {side: path})."""
    yield "disk", {side: file_of(cleanup, context.folder / side, plan.data_bytes) for side in SIDES}
    no_zram = why_no_zram()
    if no_zram:
        notes.append(f"nothing on zram: {no_zram}")
    else:
        yield "zram", {side: zram(cleanup, plan.data_bytes) for side in SIDES}


def _summary(rows, plan):
    summary = {}
    for row in rows:
        device, what, operation, block, depth = row["case"].split("/")
        if block == "4K" and int(depth) == max(plan.depths):
            summary[f"{what}_{operation}_us_{device}"] = row["cost_us"]
            summary[f"{what}_{operation}_ratio_{device}"] = row["ratio"]
    return summary


def run(context):
    folder = context.spillway.parent.parent / "libexec/spillway"
    for program in ("device-load", "kv-load"):
        if not (folder / program).exists():
            raise Failure(f"{folder / program} is not there; build or install Spillway completely", 2)
    plan = Plan(context)
    context.cases.chosen(plan.cases("disk") | plan.cases("zram"))
    key = context.folder / "key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(64))
    notes, rows = [], []
    with Cleanup() as cleanup:
        for device, places in _places(context, plan, cleanup, notes):
            cases = {name: case for name, case in plan.cases(device).items() if context.cases.wants(name)}
            if not cases:
                continue
            context.progress(f"encrypt {device}: filling it with random data")
            for place in places.values():
                fill_random(place, plan.data_bytes)
            sides = {"ours": Side(folder, plan, f"encrypt:key={key}:[uring:{places['ours']}]"), "peer": Side(folder, plan, f"uring:{places['peer']}")}
            for name, case in cases.items():
                context.progress(f"encrypt {name}")
                row = _measure(name, case, sides, plan)
                rows.append(row)
                context.say(f"{name:24} {row['ours']:>9,.0f}/s, {row['ratio']:.2f} times without +-{row['spread'] / 2:.0%}; "
                            f"CPU {row['cpu_us']:.2f} us, {row['cost_us']:.2f} us of it for encryption")
    for note in notes:
        context.say(f"encrypt: note: {note}")
    result = {
        "parameters": {"data_bytes": plan.data_bytes, "keys": plan.keys, "pairs": plan.pairs, "case_seconds": plan.case_seconds, "window_seconds": plan.window_seconds,
                       "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows, plan), "notes": notes,
    }
    bars = {"title": "encrypted storage", "subtitle": "operations a second over those without encryption; more is better",
            "cases": [row["case"] for row in rows], "series": {"encrypted": [row["ratio"] for row in rows]}}
    return result, bars
