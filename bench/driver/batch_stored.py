"""The batched update table in a file: random updates of a table four times as large as its memory, beside updates in place."""
import json

from devices import Cleanup, file_of
from lockstep import Failure, Programs, median, row_of, take_turns

DOC = """\
Updates a second of random records of 16 bytes, more is better: each adds to a number. The table is four times as large as the memory that there is for it. Ours keeps it
in a file and makes updates of the same region together (`plain`; `log`: with a log, and a sync at the end of each turn); the peer keeps records where their numbers say, in a
page cache of as much memory, and reads, changes and writes back the page of each, by one thread or by 32, whose reads overlap. `read` and `written` are the device's
bytes for an update, `cpu_us` the time of all processors. All programs are there all the time, and take turns.
"""
MIB = 1 << 20
RECORD_BYTES = 16
MEMORY_PART = 4  # of the table
MAKERS = 8
CACHE_PART = 8  # of the memory, is for pages; the rest is for what waits
PEER_THREADS = (1, 32)
FILE_ROOM = 3  # of a table: regions are not full, and are written elsewhere
LOG_ROOM = 4  # of the memory
ANSWER_SECONDS = 900


class Plan:
    def __init__(self, context):
        self.quick = quick = context.quick
        self.table_bytes = (64 if quick else 1024) * MIB
        self.pairs = context.pairs or (1 if quick else 5)
        self.case_seconds = 100  # of all cases together
        self.seconds = 1 if quick else 5
        self.sides = ["plain", "log"]

    def settings(self, side):
        memory = self.table_bytes // MEMORY_PART
        words = {"records": self.table_bytes // RECORD_BYTES, "memory": memory}
        makers = {"makers": MAKERS, "slot": 8 if self.quick else 64}
        return words | ({"cache": memory // CACHE_PART, **makers} if side in self.sides else {})


def _of_update(answers, figure):
    return median([answer[figure] / answer["updates"] for answer in answers])


def _rates(answers):
    return [answer["updates"] / answer["seconds"] for answer in answers]


def run(context):
    plan = Plan(context)
    load = context.spillway.parent.parent / "libexec/spillway/batch-stored-load"
    if not load.exists():
        raise Failure(f"{load} is not there; build or install Spillway completely", 2)
    cases = {f"{side}/{threads}": (side, threads) for side in plan.sides for threads in PEER_THREADS}
    wanted = [cases[name] for name in context.cases.chosen(cases)]
    names = list(dict.fromkeys([side for side, _ in wanted] + [f"in_place/{threads}" for _, threads in wanted]))
    with Cleanup() as cleanup:
        programs = cleanup.enter_context(Programs())
        running = {}
        for name in names:
            side, _, threads = name.partition("/")
            is_ours = side in plan.sides
            file = file_of(cleanup, context.folder / name.replace("/", "-"), (FILE_ROOM if is_ours else 1) * plan.table_bytes)
            words = plan.settings(side) | ({"threads": threads} if threads else {})
            if side == "log":
                words["log"] = file_of(cleanup, context.folder / "log-file", LOG_ROOM * plan.table_bytes // MEMORY_PART)
            context.progress(f"batch-stored: filling a table, {name}")
            running[name] = programs.start([load, "staged" if is_ours else "in_place", file, *(f"{word}={value}" for word, value in words.items())])
            running[name].read(ANSWER_SECONDS)
        context.progress("batch-stored: taking turns")
        answers = take_turns(names, lambda name: json.loads(running[name].ask(f"run {plan.seconds}\n", ANSWER_SECONDS)), plan.pairs, plan.case_seconds)
        context.progress("batch-stored: looking at all records")
        for program in running.values():
            program.finish(ANSWER_SECONDS)
    rows = []
    for side, threads in wanted:
        ours, peer = answers[side], answers[f"in_place/{threads}"]
        rows.append(row_of(f"{side}/{threads}", _rates(ours), _rates(peer), "updates/s"))
        for prefix, of in (("", ours), ("peer_", peer)):
            rows[-1] |= {prefix + "read": _of_update(of, "read_bytes"), prefix + "written": _of_update(of, "write_bytes"),
                         prefix + "cpu_us": 1e6 * _of_update(of, "cpu_seconds")}
        context.say(f"{rows[-1]['case']:10} {rows[-1]['ours']:>12,.0f} updates/s, {rows[-1]['ratio']:.1f} times the peer's; "
                    f"{rows[-1]['read']:.0f} + {rows[-1]['written']:.0f} bytes an update, {rows[-1]['peer_read']:.0f} + {rows[-1]['peer_written']:.0f}")
    summary = {f"{row['case'].replace('/', '_over_in_place_')}": row["ratio"] for row in rows}
    bars = {"title": "batch-stored: random updates of a table four times as large as its memory", "subtitle": "times as many as in place, more is better",
            "cases": [row["case"] for row in rows], "series": {"ours": [row["ratio"] for row in rows]}}
    return {"parameters": {"table_bytes": plan.table_bytes, "memory_bytes": plan.table_bytes // MEMORY_PART, "window_seconds": plan.seconds, "pairs": plan.pairs, "case_seconds": plan.case_seconds,
                           "quick": context.quick}, "rows": rows, "summary": summary}, bars
