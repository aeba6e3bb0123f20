"""`persist` on the real machine: what a flush costs by the CPU's instruction, and by the runtime's ways."""
import json

from lockstep import Programs, geometric_mean, median, row_of, spread

PEER, WAYS = "native", ("inline", "epoch", "auto", "decoupled")
INSTRUCTIONS, STATES, FENCES, THREADS = ("clwb", "clflushopt", "clflush"), ("dirty", "clean", "absent"), (1, 4, 16, 64, 0), (1, 2)
HOT, AGAIN, ORDERS = (4, 16, 64), (2, 4, 16), ("round", "random")
NO_FENCE = "none"
RUN_SECONDS = 300


def _flags():
    with open("/proc/cpuinfo") as file:
        return next((line.split() for line in file if line.startswith("flags")), [])


class Lines:
    def __init__(self, context, cpu_count):
        quick = context.quick
        self.context = context
        self.turns = context.pairs or (3 if quick else 9)
        self.seconds = 0.002 if quick else 0.005
        threads = [count for count in THREADS if count <= cpu_count]
        flags = _flags()
        instructions = [name for name in INSTRUCTIONS if name in flags]
        self.missing = [name for name in INSTRUCTIONS if name not in instructions]
        shapes = [(instruction, state, fence, count) for instruction in instructions for state in STATES for fence in FENCES for count in threads]
        hot = [(lines, again, order, count) for lines in HOT for again in AGAIN for order in ORDERS for count in threads]
        if quick:
            shapes = [each for each in shapes if each[0] == instructions[0] and each[1] == "dirty" and each[2] in (4, 64, 0) and each[3] == 1]
            hot = [each for each in hot if each[0] < 64 and each[1] == 4 and each[3] == 1]
        self.cases = {}
        for instruction, state, fence, count in shapes:
            self.cases[f"lines/{instruction}/{state}/{fence or NO_FENCE}/{count}"] = {
                "instruction": instruction, "state": state, "fence": fence, "threads": count}
        for lines, again, order, count in hot:
            self.cases[f"hot/{lines}/{again}/{order}/{count}"] = {
                "instruction": instructions[0], "hot": lines, "again": again, "order": order, "threads": count}

    def measure(self, case, program):
        """The rows of a case, one for each way."""
        words = [f"{name}={value}" for name, value in self.cases[case].items()] + [f"turns={self.turns}", f"seconds={self.seconds}"]
        with Programs() as programs:
            started = programs.start([program, *words])
            ways = json.loads(started.read(RUN_SECONDS))["ways"]
            started.finish()
        rows = []
        for way in WAYS:
            rows.append(row_of(f"{case}/{way}", ways[way], ways[PEER], "ns"))
        over_inline = [auto / inline for auto, inline in zip(ways["auto"], ways["inline"])]
        rows[WAYS.index("auto")] |= {"over_inline": median(over_inline), "over_inline_spread": spread(over_inline),
                                     "over_best": rows[WAYS.index("auto")]["ours"] / min(row["ours"] for row in rows[:2])}
        self.context.say(f"{case:28} native {median(ways[PEER]):7.2f} ns; " + ", ".join(f"{way} {row['ratio']:.2f}" for way, row in zip(WAYS, rows)))
        return rows


def _speeds(rows, way, starts, ends_with=None):
    """Native's time over ours, of the cases that begin so."""
    return [1 / row["ratio"] for row in rows
            if row["case"].endswith("/" + way) and row["case"].startswith(starts) and (ends_with is None or ends_with(row["case"].split("/")))]


def summarise(rows):
    summary = {}

    def fenced(words):
        return words[3] != NO_FENCE

    def add(key, values):
        if values:
            summary[key + "_speed"] = geometric_mean(values)
            summary[key + "_speed_least"] = min(values)

    for lines in HOT:
        add(f"hot_{lines}_epoch", _speeds(rows, "epoch", f"hot/{lines}/"))
    for way in ("epoch", "auto"):
        add(f"hot_{way}", _speeds(rows, way, "hot/"))
    for way in ("inline", "epoch", "auto"):
        add(f"lines_{way}", _speeds(rows, way, "lines/", fenced))
        add(f"lines_unfenced_{way}", _speeds(rows, way, "lines/", lambda words: not fenced(words)))
    # The instruction's own times, of an instruction, a state, a fence and threads.
    natives = {tuple(row["case"].split("/")[1:5]): row["peer"] for row in rows if row["case"].startswith("lines/") and row["case"].endswith("/inline")}
    for instruction in INSTRUCTIONS:
        pairs = [(natives[instruction, "dirty", str(fence), "1"], natives[instruction, "clean", str(fence), "1"])
                 for fence in FENCES if {(instruction, state, str(fence), "1") for state in ("dirty", "clean")} <= natives.keys()]
        if pairs:
            summary[f"dirty_over_clean_{instruction}"] = geometric_mean([dirty / clean for dirty, clean in pairs])
    autos = [row for row in rows if "over_best" in row]
    if autos:
        summary["auto_over_best"] = geometric_mean([row["over_best"] for row in autos])
        summary["auto_over_best_most"] = max(row["over_best"] for row in autos)
        summary["auto_over_inline_most"] = max(row["over_inline"] for row in autos)
        # Of a way that is as fast half of the turns lie above and half below: one that loses is slower by more than their distance.
        summary["auto_loses_to_inline_cases"] = sum(row["over_inline"] > 1 + max(row["over_inline_spread"], 0.02) for row in autos)
    decoupled = [row["ratio"] for row in rows if row["case"].endswith("/decoupled")]
    if decoupled:
        summary["decoupled_times_as_slow"] = geometric_mean(decoupled)
    return summary


def bars(rows):
    shown = [row["case"].rpartition("/")[0] for row in rows if row["case"].endswith("/epoch") and row["case"].split("/")[-2] == "1"
             and row["case"].startswith(("lines/clwb/", "hot/"))]
    by_name = {row["case"]: row for row in rows}
    return {"title": "persist: a flush of a line", "subtitle": "time over the instruction's where it stands, less is better", "cases": shown,
            "series": {way: [by_name[f"{case}/{way}"]["ratio"] for case in shown] for way in WAYS[:3]}}
