"""The key-value store's index: insert, lookup, growth and memory, beside libcuckoo's concurrent map."""
import json
import pathlib

from lockstep import Failure, Programs, median, spread

DOC = """\
Millions of operations for a second of CPU time on the key-value store's index (ours) and on libcuckoo's map (peer), both with
their locks: more is better. `lookup` takes 64 keys at a time on ours, `lookup_one`
one. `insert` begins with an empty table, `insert_sized` with one of the final size. `latency` is of single inserts, with
growth and, as its peer, without; `memory` the bytes for a key.
"""
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "kv_index"
PEER_HEADER = pathlib.Path("/usr/include/libcuckoo/cuckoohash_map.hh")
FLAGS = ["-O2", "-std=c++20", "-pthread"]
PAIRS, QUICK_PAIRS = 3, 1
RUN_SECONDS = 1800
CASES = ["insert", "insert_sized", "lookup", "lookup_one"]
KEYS, QUICK_KEYS = (10_000_000, 50_000_000), (1_000_000,)
MEMORY_KEYS, QUICK_MEMORY_KEYS = 80_000_000, 2_000_000
THREADS = (1, 2)


class Contest:
    """The programs, each run anew for each measurement."""

    def __init__(self, context, notes):
        self.context = context
        ours = context.spillway.parent.parent / "libexec/spillway/kv-index-load"
        if not ours.exists():
            raise Failure(f"{ours} is not there; build or install Spillway completely", 2)
        self.programs = {"ours": ours}
        if PEER_HEADER.exists():
            self.programs["peer"] = context.folder / "libcuckoo"
            context.build("libcuckoo's map", [context.native_cxx, *FLAGS, SOURCES / "libcuckoo.cc", "-o", self.programs["peer"]])
        else:
            notes.append("nothing of libcuckoo: install libcuckoo-dev")

    def run(self, name, case, keys, threads):
        with Programs() as programs:
            program = programs.start([self.programs[name], case, keys, threads])
            answer = json.loads(program.read(RUN_SECONDS))
            program.finish()
        if answer["operations"] != keys:
            raise Failure(f"kv-index: {case} of {name} did {answer['operations']} operations, not {keys}")
        return answer

    def answers(self, case, keys, threads, pairs):
        """A list of answers for each program, in turns."""
        answers = {name: [] for name in self.programs}
        for number in range(pairs):
            self.context.progress(f"kv-index: {case}, {keys:,} keys, {threads} threads, pair {number + 1} of {pairs}")
            for name in list(answers) if number % 2 == 0 else list(answers)[::-1]:
                answers[name].append(self.run(name, case, keys, threads))
        return answers


def _size(keys):
    return f"{keys // 1_000_000}M"


def _throughput(contest, case, keys, threads, pairs, summary):
    answers = contest.answers(case, keys, threads, pairs)
    rates = {name: [1000 * keys / answer["cpu_ns"] for answer in own] for name, own in answers.items()}
    name = f"{case}/{_size(keys)}/{threads}"
    row = {"case": name, "ours": median(rates["ours"]), "unit": "M/s"}
    summary[f"{name}_per_us"] = row["ours"]
    if "peer" in rates:
        ratios = [ours / theirs for ours, theirs in zip(rates["ours"], rates["peer"])]
        row.update({"peer": median(rates["peer"]), "ratio": median(ratios), "spread": spread(ratios)})
        summary[f"{name}_ratio"] = row["ratio"]
    rows = [row]
    if case == "insert" and threads == 1:
        used = {name: median([answer["bytes"] / keys for answer in own]) for name, own in answers.items()}
        rows.append({"case": f"memory/{_size(keys)}", "ours": used["ours"], "unit": "bytes"})
        if "peer" in used:
            rows[-1].update({"peer": used["peer"], "ratio": used["ours"] / used["peer"], "spread": 0})
    return rows


def _latency(contest, keys, pairs, summary):
    """Growth is in ours and not in the peer, which is ours as well."""
    growing, sized = [], []
    for number in range(pairs):
        contest.context.progress(f"kv-index: latency, pair {number + 1} of {pairs}")
        growing.append(contest.run("ours", "latency", keys, 1))
        sized.append(contest.run("ours", "latency_sized", keys, 1))
    rows = []
    for figure in ("p50", "p99", "p99_99", "most"):
        values = [[answer[f"{figure}_ns"] for answer in answers] for answers in (growing, sized)]
        ratios = [ours / theirs for ours, theirs in zip(*values)]
        rows.append({"case": f"latency/{figure}/{_size(keys)}", "ours": median(values[0]), "peer": median(values[1]),
                     "ratio": median(ratios), "spread": spread(ratios), "unit": "ns"})
        summary[f"latency_{figure}_ns"] = rows[-1]["ours"]
        summary[f"latency_{figure}_sized_ns"] = rows[-1]["peer"]
    return rows


def _memory(contest, keys, summary):
    contest.context.progress(f"kv-index: memory, {keys:,} keys")
    answer = contest.run("ours", "memory", keys, 1)
    summary.update({"bytes_per_key_least": answer["least"], "bytes_per_key_mean": answer["mean"]})
    return [{"case": f"memory_{figure}/{_size(keys // 8)}-{_size(keys)}", "ours": answer[figure], "unit": "bytes"}
            for figure in ("least", "mean")]


def run(context):
    for case in context.cases:
        if case not in [*CASES, "latency", "memory"]:
            raise Failure(f"kv-index has no case {case!r}; there are {', '.join([*CASES, 'latency', 'memory'])}", 2)
    pairs = context.pairs or (QUICK_PAIRS if context.quick else PAIRS)
    notes, rows, summary = [], [], {}
    contest = Contest(context, notes)
    all_keys = QUICK_KEYS if context.quick else KEYS
    memory_keys = QUICK_MEMORY_KEYS if context.quick else MEMORY_KEYS
    for case in context.cases or [*CASES, "latency", "memory"]:
        if case == "latency":
            more = _latency(contest, all_keys[-1], pairs, summary)
        elif case == "memory":
            more = _memory(contest, memory_keys, summary)
        else:
            more = [row for keys in all_keys for threads in THREADS
                    for row in _throughput(contest, case, keys, threads, pairs, summary)]
        for row in more:
            beside = f"{row['ratio']:.2f} +-{row['spread'] / 2:.0%}" if "ratio" in row else ""
            context.say(f"{row['case']:24} {row['ours']:>10,.2f} {row['unit']:6} {beside}")
        rows += more
    result = {
        "parameters": {"pairs": pairs, "flags": " ".join(FLAGS), "peer": "libcuckoo", "keys": list(all_keys),
                       "memory_keys": memory_keys, "quick": context.quick},
        "rows": rows, "summary": summary, "notes": notes,
    }
    timed = [row for row in rows if "ratio" in row and row["case"].split("/")[0] in CASES]
    bars = {"title": "kv-index: operations for a second of CPU time", "subtitle": "times libcuckoo's, more is better",
            "cases": [row["case"] for row in timed], "series": {"over libcuckoo": [row["ratio"] for row in timed]}}
    return result, bars
