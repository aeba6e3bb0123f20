"""Programs over libpmemobj that know nothing of the runtime, with it and without."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from lockstep import Failure, median, row_of, spread, take_turns

DOC = """\
Milliseconds of maps and of a key-value program over libpmemobj, through the persistence runtime with `--policy auto` (ours) and without it (peer), their pools in
/dev/shm and taken for persistent memory: less is better. `inline_ratio` and so on are the same for the other policies. `asked`, `executed` and `fences`, of an
operation: lines that were asked to be flushed, lines that were (`--policy epoch`), fences. `dirtiness`: the share of bytes that had changed, of the lines that were asked for,
and `clean` the share of lines of which none had. Neither counts lines that were written `past_caches`. `unflushed_ratio`: the peer's time without any flush (libpmem's PMEM_NO_FLUSH), over that with
them, and `flushing_costs_percent`, by how much the throughput is less with them.
"""
MAPS = ["ctree", "btree", "rbtree", "hashmap_tx", "hashmap_atomic"]
CASES = [*MAPS, "kv/separate", "kv/together"]
POLICIES = ["auto", "inline", "epoch", "decoupled"]
PLAIN, UNFLUSHED = "plain", "unflushed"  # without the runtime; the second flushes nothing
OPERATIONS, QUICK_OPERATIONS = 100_000, 10_000
KEYS_SHARE, RECORDS_SHARE = 1 / 10, 1 / 4  # of the operations
PAIRS, QUICK_PAIRS = 5, 2
CASE_SECONDS = 30
RUN_SECONDS = 600
POOL_BYTES = 256 << 20
LINE_BYTES = 64


class Contest:
    """Runs of the programs, each with a pool of its own."""

    def __init__(self, context, folder, operations):
        self.context, self.folder, self.operations = context, folder, operations
        self.libexec = context.spillway.parent.parent / "libexec/spillway"
        for program in ("persist-maps", "persist-kv"):
            if not (self.libexec / program).exists():
                raise Failure(f"{self.libexec / program} is not there; install libpmemobj-dev, and build or install Spillway completely", 2)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPILLWAY_", "LD_PRELOAD"))}
        self.environment["PMEM_IS_PMEM_FORCE"] = "1"
        self.contents = {}

    def words(self, case, pool, operations):
        program, _, way = case.partition("/")
        if program == "kv":
            return [self.libexec / "persist-kv", pool, way, max(1, int(operations * RECORDS_SHARE)), operations, 1]
        return [self.libexec / "persist-maps", pool, case, operations, int(self.operations * KEYS_SHARE), 1]

    def run(self, case, policy, *flags, is_empty=False):
        """Seconds, and the runtime's statistics if it is there; policy: or PLAIN or UNFLUSHED; is_empty: of a program that only makes its pool."""
        is_alone = policy in (PLAIN, UNFLUSHED)
        pool, stats = self.folder / "pool", self.folder / "stats"
        command = self.words(case, pool, 0 if is_empty else self.operations)
        if not is_alone:
            command = [self.context.spillway, "persist", "run", "--policy", policy, "--stats", stats, *flags, "--", *command]
        try:
            ended = subprocess.run([str(word) for word in command], env={**self.environment, **({"PMEM_NO_FLUSH": "1"} if policy == UNFLUSHED else {})}, capture_output=True, text=True, timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"persist-programs: {case}, {policy} did not end") from None
        finally:
            pool.unlink(missing_ok=True)
        if ended.returncode != 0:
            raise Failure(f"persist-programs: {case}, {policy} failed: {(ended.stderr.strip().splitlines() or ['no message'])[-1]}")
        answer = json.loads(ended.stdout)
        content = {name: value for name, value in answer.items() if name != "seconds"}
        if not is_empty and self.contents.setdefault(case.split("/")[0], content) != content:
            raise Failure(f"persist-programs: {case}, {policy} ends with another content")
        told = None
        if not is_alone:
            told = json.loads(stats.read_text())
            stats.unlink()
        return answer["seconds"], told

    def counts(self, case, policy, part, *flags):
        """What the runtime counts of the operations alone, without what it takes to make a pool."""
        empty, whole = (self.run(case, policy, *flags, is_empty=is_empty)[1][part] for is_empty in (True, False))
        return {name: whole[name] - empty[name] for name in whole if isinstance(whole[name], int)}

    def measure(self, case, pairs):
        sides = [PLAIN, UNFLUSHED, *POLICIES]
        told = {}

        def turn(side):
            self.context.progress(f"persist-programs: {case}, {side}")
            took, told[side] = self.run(case, side)
            return took

        take_turns(sides, turn, 1, 0)  # for the processor and the page cache
        seconds = take_turns(sides, turn, pairs, CASE_SECONDS)
        for policy in POLICIES:
            if told[policy]["persist"]["asked_lines"] == 0:
                raise Failure(f"persist-programs: the runtime has not seen {case}")
        dirtiness, epoch = self.counts(case, "inline", "dirtiness", "--dirtiness"), self.counts(case, "epoch", "persist")
        ratios = {policy: [own / plain for own, plain in zip(seconds[policy], seconds[PLAIN])] for policy in POLICIES}
        unflushed = [without / plain for without, plain in zip(seconds[UNFLUSHED], seconds[PLAIN])]
        operations = self.operations
        row = {**row_of(case, *([1e3 * took for took in seconds[side]] for side in ("auto", PLAIN)), "ms"),
               **{f"{policy}_ratio": median(ratios[policy]) for policy in POLICIES[1:]},
               "plain_spread": spread(seconds[PLAIN]),
               "unflushed_ratio": median(unflushed), "flushing_costs_percent": 100 * (1 - median(unflushed)),
               "asked": epoch["asked_lines"] / operations, "executed": epoch["executed_lines"] / operations,
               "past_caches": epoch["copied_lines"] / operations, "fences": epoch["fences"] / operations,
               "dirtiness": dirtiness["dirty_bytes"] / dirtiness["lines"] / LINE_BYTES, "clean": dirtiness["clean_lines"] / dirtiness["lines"]}
        return row

    def compare(self, case, other, pairs):
        """Ratios of the times of two cases without the runtime, in turns."""
        self.context.progress(f"persist-programs: {case} beside {other}")
        seconds = take_turns([case, other], lambda side: self.run(side, PLAIN)[0], pairs, CASE_SECONDS)
        return [own / theirs for own, theirs in zip(seconds[case], seconds[other])]


def run(context):
    wanted = context.cases.chosen(CASES)
    memory = pathlib.Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 2 * POOL_BYTES:
        raise Failure(f"{memory} has no {2 * POOL_BYTES} bytes free; mount a tmpfs there", 2)
    operations = QUICK_OPERATIONS if context.quick else OPERATIONS
    pairs = context.pairs or (QUICK_PAIRS if context.quick else PAIRS)
    rows, summary = [], {}
    with tempfile.TemporaryDirectory(prefix="spillway-bench-", dir=memory) as folder:
        contest = Contest(context, pathlib.Path(folder), operations)
        for case in wanted:
            row = contest.measure(case, pairs)
            rows.append(row)
            others = ", ".join(f"{policy} {row[policy + '_ratio']:.2f}" for policy in POLICIES[1:])
            context.say(f"{case:16} {row['peer']:7.0f} ms, auto {row['ratio']:.2f} times +-{row['spread'] / 2:.0%}, {others}; {row['asked']:.1f} lines asked, "
                        f"{row['executed']:.1f} executed, {row['fences']:.1f} fences, dirtiness {row['dirtiness']:.2f}; without flushes {row['unflushed_ratio']:.2f}")
        measured = {row["case"]: row for row in rows}
        beside = contest.compare("kv/together", "kv/separate", pairs) if {"kv/separate", "kv/together"} <= measured.keys() else []
    for policy in POLICIES:
        key = "ratio" if policy == "auto" else f"{policy}_ratio"
        summary[f"worst_{policy}_ratio"] = max(row[key] for row in rows)
        summary[f"best_{policy}_ratio"] = min(row[key] for row in rows)
    costs = [row["flushing_costs_percent"] for row in rows]
    summary.update({"flushing_costs_percent": sum(costs) / len(costs), "flushing_costs_percent_most": max(costs)})
    if beside:
        separate, together = measured["kv/separate"], measured["kv/together"]
        summary.update({"dirtiness_separate": separate["dirtiness"], "dirtiness_together": together["dirtiness"],
                        "lines_together_over_separate": together["asked"] / separate["asked"], "time_together_over_separate": median(beside),
                        "time_together_spread": spread(beside)})
    result = {
        "parameters": {"operations": operations, "keys": int(operations * KEYS_SHARE), "records": int(operations * RECORDS_SHARE), "pairs": pairs, "case_seconds": CASE_SECONDS, "order": " ".join([PLAIN, UNFLUSHED, *POLICIES]),
                       "memory": "DRAM, PMEM_IS_PMEM_FORCE=1", "quick": context.quick},
        "rows": rows, "summary": summary,
        "notes": ["this is DRAM, where write-backs of lines cost little; ratios are what the runtime itself costs, not what it saves on persistent memory"],
    }
    series = {policy: [row["ratio" if policy == "auto" else f"{policy}_ratio"] for row in rows] for policy in POLICIES}
    bars = {"title": "persist-programs: time over libpmemobj alone", "subtitle": "ratio, less is better", "cases": [row["case"] for row in rows], "series": series}
    return result, bars
