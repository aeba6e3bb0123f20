"""Tasks of a parallel_for beside as many threads, on data ten times as large as the memory for it."""
import pathlib

from lockstep import Failure, Programs, geometric_mean, median, row_of, take_turns

DOC = """\
Visits of random pages a second by the tasks of a `parallel_for`, with a worker for each CPU (ours), over those by as many
threads of the same program (peer): more is better. Both run compiled by spillcc with a tenth of the data in memory; a visit
reads so many random words of its page as the case's name says. (TriCache, "Threads or Fibers", finds 1.12 to 1.76.)
`cpu_ratio`: CPU time of the process for each visit, tasks over threads (`cpu_us`, `peer_cpu_us`); less is better.
"""
MIB = 1 << 20
TOP = pathlib.Path(__file__).resolve().parent.parent
SOURCE = TOP / "fibers" / "fibers.cc"
FLAGS = ["-O2", "-std=c++20", "-pthread"]
ANSWER_SECONDS = 600
# A thread that waits sleeps, as it would for a drive: else the model would use its CPU.
MODEL = "latency:us=10,channels=64,sleep=1:[memory:{}M]"
COUNT = 64


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.data_bytes = (320 if quick else 1280) * MIB
        self.budget_bytes = self.data_bytes // 10
        self.accesses = [1, 64, 4096] if quick else [1, 8, 64, 512, 1024, 2048, 4096]
        self.pairs = context.pairs or (2 if quick else 3)
        self.case_seconds = 15
        self.window_seconds = 0.5 if quick else 1.0
        self.warm_seconds = 1.0 if quick else 4.0


def _visits(program, kind, accesses, seconds):
    """Visits a second, and microseconds of CPU time for each."""
    visits, took, cpu, wrong = program.ask(f"run {kind} {COUNT} {accesses} {seconds}\n", ANSWER_SECONDS).split()
    if int(wrong) != 0:
        raise Failure(f"fibers: {wrong} of {visits} visits by {kind} found wrong data")
    return int(visits) / float(took), 1e6 * float(cpu) / max(int(visits), 1)


def _measure(context, plan, program, name, accesses):
    turns = take_turns(["tasks", "threads"], lambda kind: _visits(program, kind, accesses, plan.window_seconds), plan.pairs, plan.case_seconds)
    (rates, cpu), (peer_rates, peer_cpu) = (zip(*turns[kind]) for kind in ("tasks", "threads"))
    row = row_of(name, rates, peer_rates, "visits/s", cpu_ratio=median([ours / theirs for ours, theirs in zip(cpu, peer_cpu)]), cpu_us=median(cpu), peer_cpu_us=median(peer_cpu))
    context.say(f"{name:12} {row['ours']:>9,.0f}/s, {row['ratio']:.2f} times threads +-{row['spread'] / 2:.0%}, "
                f"{row['cpu_ratio']:.2f} of their CPU time")
    return row


def run(context):
    plan = Plan(context)
    binary = context.folder / "fibers"
    context.build("fibers, by spillc++", [context.spillcxx, *FLAGS, f"-I{context.include()}", SOURCE, "-o", binary])
    rows, summary = [], {}
    for device, storage in (("modelled", MODEL.format((plan.data_bytes >> 20) + 256)), ("disk", context.storage)):
        cases = [(f"{device}/{accesses}", accesses) for accesses in plan.accesses if context.cases.wants(f"{device}/{accesses}")]
        if not cases:
            continue
        with Programs() as programs:
            context.progress(f"fibers {device}: filling")
            program = programs.start([context.spillway, "run", "--memory", f"{plan.budget_bytes // MIB}M", "--storage", storage,
                                      "--", binary, plan.data_bytes])
            program.read(ANSWER_SECONDS)
            for kind in ("threads", "tasks"):
                _visits(program, kind, 1, plan.warm_seconds)
            own = []
            for name, accesses in cases:
                context.progress(f"fibers {name}")
                own.append(_measure(context, plan, program, name, accesses))
            program.finish()
        rows += own
        summary[f"{device}_geomean_ratio"] = geometric_mean([row["ratio"] for row in own])
        summary[f"{device}_worst_ratio"] = min(row["ratio"] for row in own)
        summary[f"{device}_cpu_ratio"] = geometric_mean([row["cpu_ratio"] for row in own])
    if not rows:
        raise Failure("fibers has no such case; cases are modelled/ACCESSES and disk/ACCESSES", 2)
    result = {
        "parameters": {"data_bytes": plan.data_bytes, "budget_bytes": plan.budget_bytes, "count": COUNT, "pairs": plan.pairs, "case_seconds": plan.case_seconds,
                       "window_seconds": plan.window_seconds, "flags": " ".join(FLAGS), "model": MODEL,
                       "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": summary, "notes": [],
    }
    bars = {"title": "tasks beside threads, a tenth of the data in memory",
            "subtitle": "visits of random pages a second, by tasks over threads; more is better",
            "cases": [row["case"] for row in rows], "series": {"over threads": [row["ratio"] for row in rows]}}
    return result, bars
