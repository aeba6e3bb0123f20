"""Servers that load pages for threads, beside threads that load their own: misses, hits, memory and instructions."""
import shutil

from counting import counted, counting, of_one
from lockstep import Failure, Programs, row_of, take_turns

DOC = """\
Pages of a cache asked for at random, as the slow path of a translation asks for them. `misses/DEVICE/SERVERS/THREADS`:
accesses a second with so many servers (ours) over those of threads that load their own pages (peer), a quarter of the
pages in memory. `hits/THREADS`: all in memory, one server: found by the threads themselves (ours) over asked of the
server (peer, the paper's delegation-only). More is better. `instructions/...`: of one access of one thread, with a server
(ours) over without (peer), all threads of the process together, by valgrind; less is better.
"""
MIB = 1 << 20
PAGE_BYTES = 4096
ANSWER_SECONDS = 600
# The model: microseconds of a request, and how many the device works on at a time. A thread that waits sleeps, as it would for a drive: else the model would use its CPU.
MODEL = "latency:us=10,channels=64,sleep=1:[memory:{}M]"
COUNTED = (2_000, 10_000)


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.pages = (64 if quick else 256) * MIB // PAGE_BYTES
        self.threads = [1, 2] if quick else [1, 2, 4]
        self.servers = [1] if quick else [1, 2]
        self.pairs = context.pairs or (2 if quick else 5)
        self.case_seconds = 15
        self.window_seconds = 0.3 if quick else 0.5


class Contest:
    """One program for each number of servers, all alive, asked in turns."""

    def __init__(self, context, plan, programs, device, frames, variants):
        self.context, self.plan = context, plan
        self.running = {name: programs.start([load_of(context), device, plan.pages, frames, *words])
                        for name, words in variants.items()}
        for name, program in self.running.items():
            context.progress(f"delegation: filling {device}, {name}")
            program.read(ANSWER_SECONDS)

    def rates(self, threads):
        """A list of accesses a second for each program."""
        def turn(name):
            accesses, _, seconds = self.running[name].ask(f"run {threads} {self.plan.window_seconds}\n", ANSWER_SECONDS).split()
            return int(accesses) / float(seconds)

        return take_turns(self.running, turn, self.plan.pairs, self.plan.case_seconds)

    def finish(self):
        for program in self.running.values():
            program.finish()


def load_of(context):
    load = context.spillway.parent.parent / "libexec/spillway/delegation-load"
    if not load.exists():
        raise Failure(f"{load} is not there; build or install Spillway completely", 2)
    return load


def _misses(context, plan):
    for device, text in (("modelled", MODEL.format(2 * plan.pages * PAGE_BYTES // MIB)), ("disk", context.folder)):
        if not any(context.cases.wants(f"misses/{device}/{servers}/{threads}") for servers in plan.servers for threads in plan.threads):
            continue
        with Programs() as programs:
            variants = {servers: [servers, 0] for servers in [0, *plan.servers]}
            contest = Contest(context, plan, programs, text, plan.pages // 4, variants)
            for threads in plan.threads:
                context.progress(f"delegation: misses of {threads} threads, {device}")
                rates = contest.rates(threads)
                for servers in plan.servers:
                    if context.cases.wants(f"misses/{device}/{servers}/{threads}"):
                        yield row_of(f"misses/{device}/{servers}/{threads}", rates[servers], rates[0], "accesses/s")
            contest.finish()


def _hits(context, plan):
    if not any(context.cases.wants(f"hits/{threads}") for threads in plan.threads):
        return
    with Programs() as programs:
        contest = Contest(context, plan, programs, f"memory:{2 * plan.pages * PAGE_BYTES // MIB}M", 2 * plan.pages,
                          {"hybrid": [1, 0], "always": [1, 1]})
        for threads in plan.threads:
            if context.cases.wants(f"hits/{threads}"):
                context.progress(f"delegation: hits of {threads} threads")
                rates = contest.rates(threads)
                yield row_of(f"hits/{threads}", rates["hybrid"], rates["always"], "accesses/s")
        contest.finish()


def _entries(context, plan):
    """Bytes of a page in memory, and on storage; the second as far as it grows with the pages."""
    figures = []
    for pages in (plan.pages, 2 * plan.pages):
        with Programs() as programs:
            program = programs.start([load_of(context), f"memory:{4 * plan.pages * PAGE_BYTES // MIB}M", pages, 3 * plan.pages, 0, 0])
            program.read(ANSWER_SECONDS)
            figures.append([float(word) for word in program.ask("entries\n", ANSWER_SECONDS).split()])
            program.finish()
    (_, few), (resident, many) = figures
    return {"entry_bytes_resident": resident, "entry_bytes_stored": 2 * many - few}


class Counter:
    """Instructions of one access, by valgrind."""

    def __init__(self, context, plan):
        self.context, self.plan = context, plan

    def instructions(self, what, servers, always):
        pages = 4096
        frames = 2 * pages if what == "hit" else pages // 4
        log = self.context.folder / "valgrind"
        command = counting(log, [load_of(self.context), f"memory:{4 * pages * PAGE_BYTES // MIB}M", pages, frames, servers, always])
        counts = []
        for accesses in COUNTED:
            self.context.progress(f"delegation: counting instructions of a {what}, {servers} servers")
            with Programs() as programs:
                program = programs.start(command)
                program.read(ANSWER_SECONDS)
                done, misses = program.ask(f"count {accesses}\n", ANSWER_SECONDS).split()
                program.finish()
            if int(done) != accesses or (what == "hit" and int(misses) > 0):
                raise Failure(f"delegation: {done} accesses and {misses} misses, not {accesses} hits")
            counts.append(counted(log))
        return of_one(counts, COUNTED)

    def rows(self):
        for what in ("hit", "miss"):
            if not self.context.cases.wants(f"instructions/{what}"):
                continue
            alone = self.instructions(what, 0, 0)
            yield row_of(f"instructions/{what}", [self.instructions(what, 1, 1)], [alone], "instructions")


def run(context):
    plan = Plan(context)
    notes, rows, summary = [], [], {}

    def add(row):
        context.say(f"{row['case']:20} {row['ours']:>12,.0f} {row['unit']:12} {row['ratio']:.2f} times {row['peer']:,.0f} "
                    f"+-{row['spread'] / 2:.0%}")
        rows.append(row)
        summary[row["case"].replace("/", "_")] = row["ours"] if row["case"].startswith("instructions") else row["ratio"]
        if row["case"].startswith("instructions"):
            summary[row["case"].replace("/", "_") + "_alone"] = row["peer"]

    for row in _misses(context, plan):
        add(row)
    for row in _hits(context, plan):
        add(row)
    if not shutil.which("valgrind"):
        notes.append("instructions were not counted: install valgrind")
    else:
        for row in Counter(context, plan).rows():
            add(row)
    if context.cases.wants("entries"):
        summary.update(_entries(context, plan))
    if not rows and not summary:
        raise Failure("delegation has no such case; cases are misses/DEVICE/SERVERS/THREADS, hits/THREADS, instructions/hit, instructions/miss and entries", 2)
    result = {
        "parameters": {"pages": plan.pages, "page_bytes": PAGE_BYTES, "pairs": plan.pairs, "case_seconds": plan.case_seconds, "window_seconds": plan.window_seconds,
                       "model": MODEL, "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": summary, "notes": notes,
    }
    drawn = [row for row in rows if not row["case"].startswith("instructions")]
    bars = {"title": "delegation: servers beside threads that load their own pages",
            "subtitle": "accesses a second as a ratio, more is better", "cases": [row["case"] for row in drawn],
            "series": {"over the peer": [row["ratio"] for row in drawn]}}
    return result, bars
