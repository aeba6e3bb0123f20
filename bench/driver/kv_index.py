"""The key-value store's index: insert, lookup, growth and memory, beside libcuckoo's concurrent map."""
import json
import pathlib

from lockstep import Failure, Programs, median, row_of, spread, take_turns

DOC = """\
Millions of operations for a second of CPU time on the key-value store's index (ours) and on libcuckoo's map (peer), both with
their locks: more is better. `lookup` takes 64 keys at a time on ours, `lookup_one`
one, and `lookup_grown` as many as `lookup`, in a table that has grown. `insert` begins with an empty table, `insert_sized` with one of the final size; `sized_ratio` is ours of `insert` over the peer of
`insert_sized`. `latency` is of single inserts, with
growth and, as its peer, without; `memory` the bytes for a key beside those of an entry alone.
"""
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "kv_index"
PEER_HEADER = pathlib.Path("/usr/include/libcuckoo/cuckoohash_map.hh")
FLAGS = ["-O2", "-DNDEBUG", "-std=c++20", "-pthread"]  # as the project itself: peers are in headers, with their assertions
PAIRS, QUICK_PAIRS = 3, 1
CASE_SECONDS = 30
RUN_SECONDS = 1800
CASES = ["insert", "insert_sized", "lookup", "lookup_one", "lookup_grown"]
ALL = [*CASES, "latency", "memory"]  # the last two are of ours alone
KEYS, QUICK_KEYS = (10_000_000, 50_000_000), (1_000_000,)
MEMORY_KEYS, QUICK_MEMORY_KEYS = 80_000_000, 2_000_000
THREADS = (1, 2)
ENTRY_BYTES = 8
SIZED_PEER = "sized peer"


class Contest:
    """The programs, each run anew for each measurement."""

    def __init__(self, context):
        self.context = context
        ours = context.spillway.parent.parent / "libexec/spillway/kv-index-load"
        if not ours.exists():
            raise Failure(f"{ours} is not there; build or install Spillway completely", 2)
        if not PEER_HEADER.exists():
            raise Failure("libcuckoo is not there; install libcuckoo-dev", 2)
        self.programs = {"ours": ours, "peer": context.folder / "libcuckoo"}
        context.build("libcuckoo's map", [context.native_cxx, *FLAGS, SOURCES / "libcuckoo.cc", "-o", self.programs["peer"]])

    def run(self, name, case, keys, threads):
        with Programs() as programs:
            program = programs.start([self.programs[name], case, keys, threads])
            answer = json.loads(program.read(RUN_SECONDS))
            program.finish()
        if answer["operations"] != keys:
            raise Failure(f"kv-index: {case} of {name} did {answer['operations']} operations, not {keys}")
        return answer

    def answers(self, case, keys, threads, pairs):
        """A list of answers for each program, in turns; beside inserts into tables that grow also those of SIZED_PEER, whose need not."""
        self.context.progress(f"kv-index: {case}, {keys:,} keys, {threads} threads")
        sides = {name: (name, case) for name in self.programs}
        if case == "insert":
            sides[SIZED_PEER] = ("peer", "insert_sized")
        return take_turns(sides, lambda side: self.run(*sides[side], keys, threads), pairs, CASE_SECONDS)


def _size(keys):
    return f"{keys // 1_000_000}M"


def _throughput(contest, case, keys, threads, pairs, summary):
    answers = contest.answers(case, keys, threads, pairs)
    rates = {name: [1000 * keys / answer["cpu_ns"] for answer in own] for name, own in answers.items()}
    name = f"{case}/{_size(keys)}/{threads}"
    rows = [row_of(name, rates["ours"], rates["peer"], "M/s")]
    if SIZED_PEER in rates:
        ratios = [own / theirs for own, theirs in zip(rates["ours"], rates[SIZED_PEER])]
        rows[0].update({"sized_peer": median(rates[SIZED_PEER]), "sized_ratio": median(ratios), "sized_spread": spread(ratios)})
        summary[f"{name}_sized_ratio"] = rows[0]["sized_ratio"]
    summary[f"{name}_per_us"] = rows[0]["ours"]
    summary[f"{name}_ratio"] = rows[0]["ratio"]
    if case == "insert" and threads == 1:
        used = {name: [answer["bytes"] / keys for answer in own] for name, own in answers.items()}
        rows.append(row_of(f"memory/{_size(keys)}", used["ours"], used["peer"], "bytes"))
    return rows


def _latency(contest, keys, pairs, summary):
    """Growth is in ours and not in the peer, which is ours as well."""
    contest.context.progress(f"kv-index: latency, {keys:,} keys")
    answers = take_turns(["latency", "latency_sized"], lambda case: contest.run("ours", case, keys, 1), pairs, CASE_SECONDS)
    rows = []
    for figure in ("p50", "p99", "p99_99", "most"):
        values = [[answer[f"{figure}_ns"] for answer in own] for own in answers.values()]
        rows.append(row_of(f"latency/{figure}/{_size(keys)}", *values, "ns"))
        summary[f"latency_{figure}_ns"] = rows[-1]["ours"]
        summary[f"latency_{figure}_sized_ns"] = rows[-1]["peer"]
    return rows


def _memory(contest, keys, summary):
    """The peer is an entry alone."""
    contest.context.progress(f"kv-index: memory, {keys:,} keys")
    answer = contest.run("ours", "memory", keys, 1)
    summary.update({"bytes_per_key_least": answer["least"], "bytes_per_key_mean": answer["mean"]})
    return [row_of(f"memory_{figure}/{_size(keys // 8)}-{_size(keys)}", [answer[figure]], [ENTRY_BYTES], "bytes")
            for figure in ("least", "mean")]


def run(context):
    wanted = context.cases.chosen(ALL)
    pairs = context.pairs or (QUICK_PAIRS if context.quick else PAIRS)
    rows, summary = [], {}
    contest = Contest(context)
    all_keys = QUICK_KEYS if context.quick else KEYS
    memory_keys = QUICK_MEMORY_KEYS if context.quick else MEMORY_KEYS
    for case in wanted:
        if case == "latency":
            more = _latency(contest, all_keys[-1], pairs, summary)
        elif case == "memory":
            more = _memory(contest, memory_keys, summary)
        else:
            more = [row for keys in all_keys for threads in THREADS
                    for row in _throughput(contest, case, keys, threads, pairs, summary)]
        for row in more:
            context.say(f"{row['case']:24} {row['ours']:>10,.2f} {row['unit']:6} {row['ratio']:.2f} +-{row['spread'] / 2:.0%}")
        rows += more
    result = {
        "parameters": {"pairs": pairs, "case_seconds": CASE_SECONDS, "flags": " ".join(FLAGS), "peer": "libcuckoo", "keys": list(all_keys),
                       "memory_keys": memory_keys, "quick": context.quick},
        "rows": rows, "summary": summary,
    }
    timed = [row for row in rows if row["case"].split("/")[0] in CASES]
    bars = {"title": "kv-index: operations for a second of CPU time", "subtitle": "times libcuckoo's, more is better",
            "cases": [row["case"] for row in timed], "series": {"over libcuckoo": [row["ratio"] for row in timed]}}
    return result, bars
