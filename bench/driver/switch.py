"""A long loop in the middle of which memory gets short: how long it stands still, and how fast it is before and afterwards."""
import json
import pathlib

from lockstep import Failure, row_of, take_turns
from variants import variants

DOC = """\
One thread reads words at random in one long loop; meanwhile another one takes more memory than there is. `before/SIDE` and `after/SIDE`: reads a second of its CPU time, compiled by spillcc (ours) over those
natively with all memory (peer); more is better. `pause/SIDE`: the longest time that the loop stands still, in milliseconds. `bodies`: how many bodies functions have; with two, `before` is
the native one's, and `after` the instrumented one's, into which the loop has changed in mid-run.
"""
SOURCE = pathlib.Path(__file__).resolve().parent.parent / "switch" / "switch.cc"
FLAGS = ["-O2", "-std=c++20", "-pthread"]
MIB = 1 << 20
CASE_SECONDS = 90


def run(context):
    data_bytes, more_bytes, budget = (16 * MIB, 48 * MIB, 48 * MIB) if context.quick else (64 * MIB, 256 * MIB, 256 * MIB)
    seconds = 0.5 if context.quick else 2.0
    pairs = context.pairs or (2 if context.quick else 5)
    folder, ours = context.folder, variants(context)
    context.build("switch natively", [context.native_cxx, *FLAGS, SOURCE, "-o", folder / "native"])
    for side, flags in ours.items():
        context.build(f"switch by spillc++, {side}", [context.spillcxx, *FLAGS, *flags, SOURCE, "-o", folder / side])
    words = [data_bytes, more_bytes, seconds]
    stats = {side: folder / f"stats-{side}.json" for side in ours}
    commands = {"native": [folder / "native", *words]}
    commands.update({side: context.spilled(budget, [folder / side, *words], path)
                     for side, path in stats.items()})

    def turn(side):
        context.progress(f"switch: {side}")
        return json.loads(context.output(commands[side]))

    turns = take_turns(commands, turn, pairs, CASE_SECONDS)
    for side, path in stats.items():
        if json.loads(path.read_text())["cache"]["evictions"] == 0:
            raise Failure(f"switch: nothing was evicted of {side}'s")
    rows = []
    for side in ours:
        bodies = 2 if side == "two_bodies" else 1
        for case, key, scale, unit in (("before", "before", 1, "reads/s"), ("after", "after", 1, "reads/s"), ("pause", "pause_seconds", 1e3, "ms")):
            own, native = ([scale * max(turn[key], 1e-9) for turn in turns[of]] for of in (side, "native"))
            rows.append(row_of(f"{case}/{side}", own, native, unit, bodies=bodies, most=max(own)))
            context.say(f"{rows[-1]['case']:18} {rows[-1]['ours']:,.1f} {unit}, natively {rows[-1]['peer']:,.1f}")
    summary = {}
    for row in rows:
        case, side = row["case"].split("/")
        suffix = "" if side == "ours" else "_two_bodies"
        summary[f"{case}_ms_most{suffix}" if case == "pause" else f"{case}_ratio{suffix}"] = row["most"] if case == "pause" else row["ratio"]
    result = {
        "parameters": {"flags": " ".join(FLAGS), "data_bytes": data_bytes, "more_bytes": more_bytes, "memory": budget, "seconds_before": seconds, "pairs": pairs, "case_seconds": CASE_SECONDS,
                       "sides": {side: " ".join(flags) for side, flags in ours.items()}, "quick": context.quick},
        "rows": rows, "summary": summary,
    }
    shown = [row for row in rows if row["unit"] == "reads/s"]
    bars = {"title": "a loop in the middle of which memory gets short", "subtitle": "reads a second over native code; more is better",
            "cases": [row["case"] for row in shown], "series": {"over native": [row["ratio"] for row in shown]}}
    return result, bars
