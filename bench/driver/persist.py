"""The persistence runtime: the cost of a flush by its ways, and the paper's experiments on a modelled device."""
import os

import persist_lines
import persist_model
from lockstep import Failure

DOC = f"""\
`lines` and `hot`: nanoseconds of a flush of a line on this machine, its part of the fences included: less is better. The peer is the CPU's instruction where it stands, without a runtime; ours the same
source compiled by spillcc -fspill-persist, by way. `lines/INSTRUCTION/STATE/FENCE/THREADS`: as many flushes before each fence; dirty lines are stored to before, in the time.
`hot/LINES/TIMES/ORDER/THREADS`: so many lines, each stored to and flushed so many times before a fence. `over_inline`, `over_best`: auto's time over inline's, and over the better one's of inline and epoch. In the
summary `_speed` is the peer's time over ours, a geometric mean, `_speed_least` the least.
`model` and `governor`: on a modelled device, nothing of it a measurement of one: million operations in a second of the device's time, more is better. The peer of `model/STRUCTURE/THREADS/WAY` is
the program itself, which flushes where it stands; of `coalesced` it is `store`, whose keys and values lie apart, in the same way. The paper's gains beside them are those of its programs on a real device.
`crowd/STRUCTURE/THREADS/FACTOR`: the same of `decoupled`, if each writer beyond 7 makes the device slower by another part than the 0.06 of all other cases, which is chosen: how far the gains depend on it.
`governor/FIRST-THEN/THREADS`: what the Governor's number of flushers reaches from sample {persist_model.SAMPLES_MOST} on (as many as 3 s have of 250 ms), at first and after the threads have gone on with another structure;
the peer is the best of all numbers, each by itself. `by_curve`: what that number has reached by itself. `flushers/STRUCTURE/THREADS/NUMBER`: each of them.
`threads/STRUCTURE/THREADS`: the program by itself, which flushes where it stands; the peer is one thread of it.
"""


def _program(context, name):
    program = context.spillway.parent.parent / f"libexec/spillway/persist-{name}-load"
    if not program.exists():
        raise Failure(f"{program} is not there; build or install Spillway completely", 2)
    return program


def run(context):
    lines = persist_lines.Lines(context, len(os.sched_getaffinity(0)))
    model = persist_model.Model(context, _program(context, "model"))

    def asked_for(names):
        return [name for name in names if context.cases.wants(name)]

    def kept(measure):
        """Rows of a case: those that are kept, or what measure(case) returns."""
        def rows_of(case):
            if case not in context.kept:
                context.kept[case] = measure(case)
            return context.kept[case]
        return rows_of

    line_cases = asked_for(lines.cases)
    measure_lines = kept(lambda case: lines.measure(case, _program(context, "lines")))
    # What measures each kind of case on the model, and which of them are wanted.
    on_model = [(kept(lambda case: [model.measure(case)]), asked_for(model.cases)), (kept(lambda case: [model.by_crowd(case)]), asked_for(model.crowd_cases)), (model.governor, asked_for(model.governor_cases)),
                (kept(model.by_threads), asked_for(model.thread_cases)), (model.by_flushers, asked_for(model.flusher_cases))]
    if not (line_cases or any(cases for _, cases in on_model)):
        raise Failure(f"persist has no such case; there are {next(iter(lines.cases))}, {next(iter(model.cases))} and others", 2)
    line_rows = []
    for number, case in enumerate(line_cases):
        context.progress(f"persist: {case}, {number + 1} of {len(line_cases)}")
        line_rows += measure_lines(case)
    model_rows = [row for measure, cases in on_model for case in cases for row in measure(case)]
    bars = persist_lines.bars(line_rows) if line_rows else {}
    bars["more"] = model.pictures(model_rows)
    return {"parameters": {"turns": lines.turns, "window_seconds": lines.seconds, "model_pairs": model.pairs, "model_case_seconds": model.case_seconds, "dilation": persist_model.DILATION,
                           "auto_dilation": persist_model.AUTO_DILATION, "sample_seconds": persist_model.SAMPLE_SECONDS, "quick": context.quick},
            "rows": line_rows + model_rows, "summary": persist_lines.summarise(line_rows) | persist_model.summarise(model_rows),
            "curves": {f"{structure}/{threads}": curve for (structure, threads), curve in model.curves.items()},
            "notes": [f"this CPU has no {name}" for name in lines.missing],
            "parts": {"lines": "a flush of a line", "hot": "lines that are flushed again and again", "model": "throughput on the modelled device", "crowd": "the same, if it becomes slower with its writers by another factor",
                      "governor": "the number of flushers on the modelled device", "threads": "throughput on the modelled device by threads that flush where they stand",
                      "flushers": "throughput on the modelled device by the number of flushers"}}, bars
