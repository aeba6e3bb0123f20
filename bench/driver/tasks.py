"""The task runtime: switch, spawn, notify, lock, and memory of tasks, beside Boost.Fiber and threads."""
import json
import os
import pathlib
import shutil

from counting import counted, counting, of_one
from lockstep import Failure, Programs, median, row_of, take_turns

DOC = """\
Cost of one operation on the project's own tasks (ours), over that of Boost.Fiber (peer) and of POSIX threads
(`pthreads`): less is better. Nanoseconds are CPU time of the process where one CPU is used, and time on the wall
for `notify_remote`, where two are. `/instructions` are those in user mode, counted by valgrind.
"""
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "tasks"
FLAGS = ["-O2", "-DNDEBUG", "-std=c++20", "-pthread"]  # as the project itself: peers are in headers, with their assertions
PAIRS, QUICK_PAIRS = 5, 2
CASE_SECONDS = 30
RUN_SECONDS = 300
PEERS = {"boost_fiber": "Boost.Fiber", "pthreads": "pthreads"}
# Operations of a run, for some tenths of a second.
COUNTS = {
    "switch": {"ours": 10_000_000, "boost_fiber": 4_000_000, "pthreads": 400_000},
    "spawn": {"ours": 1_000_000, "boost_fiber": 600_000, "pthreads": 30_000},
    "notify_local": {"ours": 6_000_000, "boost_fiber": 1_000_000, "pthreads": 200_000},
    "notify_remote": {"ours": 200_000, "boost_fiber": 50_000, "pthreads": 50_000},
    "mutex": {"ours": 10_000_000, "boost_fiber": 10_000_000, "pthreads": 10_000_000},
    "mutex_local": {"ours": 40_000_000, "boost_fiber": 10_000_000, "pthreads": 10_000_000},
    "alive": {"ours": 1_000_000, "boost_fiber": 20_000, "pthreads": 10_000},
}
QUICK_PART = 10
COUNTED = (1000, 5000)
LEAST_TASK_BYTES = 4600  # of memory, for `alive` to run: a page for a task, its page table, and what may be measured wrong


class Contest:
    """The programs, each run anew for each measurement."""

    def __init__(self, context, notes):
        self.context, self.notes = context, notes
        ours = context.spillway.parent.parent / "libexec/spillway/tasks-load"
        if not ours.exists():
            raise Failure(f"{ours} is not there; build or install Spillway completely", 2)
        self.programs = {"ours": ours}
        if self._has_boost():
            self._build("boost_fiber", "-lboost_fiber", "-lboost_context")
        else:
            notes.append("nothing of Boost.Fiber: install libboost-fiber1.74-dev")
        self._build("pthreads")
        self.peer = "boost_fiber" if "boost_fiber" in self.programs else "pthreads"
        self.valgrind = shutil.which("valgrind")
        if not self.valgrind:
            notes.append("instructions were not counted: install valgrind")

    def _has_boost(self):
        """The compiler's path of the library, or its name if it finds none."""
        library = self.context.output([self.context.native_cxx, "-print-file-name=libboost_fiber.so"])
        return pathlib.Path(library.strip()).is_absolute()

    def _build(self, name, *libraries):
        self.programs[name] = self.context.folder / name
        self.context.build(f"tasks, {PEERS[name]}", [self.context.native_cxx, *FLAGS, SOURCES / f"{name}.cc",
                                                     "-o", self.programs[name], *libraries])

    def count(self, name, case):
        return COUNTS[case][name] // (QUICK_PART if self.context.quick else 1)

    def run(self, name, case):
        """What the program answers (bench/tasks/cases.h)."""
        with Programs() as programs:
            program = programs.start([self.programs[name], case, self.count(name, case)])
            answer = json.loads(program.read(RUN_SECONDS))
            program.finish()
        if answer["operations"] != self.count(name, case):
            raise Failure(f"tasks: {case} of {name} did {answer['operations']} operations, not {self.count(name, case)}")
        return answer

    def answers(self, case, pairs, names=None):
        """A list of answers for each program, in turns."""
        self.context.progress(f"tasks: {case}")
        return take_turns(names or self.programs, lambda name: self.run(name, case), pairs, CASE_SECONDS)

    def instructions(self, name, case):
        """Of one operation."""
        log = self.context.folder / "valgrind"
        counts = []
        for operations in COUNTED:
            self.context.progress(f"tasks: {case}, counting instructions of {name}")
            self.context.output(counting(log, [self.programs[name], case, operations]))
            counts.append(counted(log))
        return of_one(counts, COUNTED)


def _row(contest, case, values, unit):
    """values: a list for each program, one for each pair."""
    row = row_of(case, values["ours"], values[contest.peer], unit)
    if "pthreads" in values:
        row.update({"pthreads": median(values["pthreads"]), "pthreads_ratio": row_of(case, values["ours"], values["pthreads"], unit)["ratio"]})
    return row


def _timed(contest, case, pairs, summary):
    clock = "wall_ns" if case == "notify_remote" else "cpu_ns"
    values = {name: [answer[clock] / answer["operations"] for answer in answers]
              for name, answers in contest.answers(case, pairs).items()}
    row = _row(contest, case, values, "ns")
    summary[f"{case}_ns"] = row["ours"]
    if contest.peer == "boost_fiber":
        summary[f"{case}_ratio"] = row["ratio"]
    summary[f"{case}_pthreads_ratio"] = row["pthreads_ratio"]
    return [row]


def _counted(contest, case, summary):
    """Threads do their work in the kernel, where nobody counts. Fibers of two CPUs spin while valgrind runs the other thread."""
    if not contest.valgrind:
        return []
    ours = contest.instructions("ours", case)
    summary[f"{case}_instructions"] = ours
    if contest.peer != "boost_fiber" or case == "notify_remote":
        return []
    row = _row(contest, f"{case}/instructions", {"ours": [ours], "boost_fiber": [contest.instructions("boost_fiber", case)]},
               "instructions")
    summary[f"{case}_instructions_ratio"] = row["ratio"]
    return [row]


def _alive(contest, pairs, summary):
    count = contest.count("ours", "alive")
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:") and int(line.split()[1]) * 1024 < count * LEAST_TASK_BYTES:
            contest.notes.append(f"alive was not run: {count:,} tasks take {count * LEAST_TASK_BYTES >> 20:,} MiB, which are not free")
            return []
    names = ["ours"]
    for name in contest.programs:
        try:
            names += [name] if name != "ours" and contest.run(name, "alive") else []
        except Failure as failure:
            contest.notes.append(f"alive without {PEERS[name]}, of which {contest.count(name, 'alive'):,} were too many: {failure}")
    if contest.peer not in names:
        return []
    answers = contest.answers("alive", pairs, names)

    def row(case, figure, unit):
        values = {name: [figure(answer) / answer["operations"] for answer in own] for name, own in answers.items()}
        return _row(contest, case, values, unit)

    rows = [row("alive/memory", lambda answer: answer["bytes"], "bytes"),
            row("alive/spawn", lambda answer: answer["spawn_ns"], "ns"),
            row("alive/end", lambda answer: answer["end_ns"], "ns")]
    summary.update({"tasks_alive": count, "bytes_per_task": rows[0]["ours"],
                    "page_table_bytes_per_task": median([answer["page_table_bytes"] / count for answer in answers["ours"]])})
    if contest.peer == "boost_fiber":
        summary["bytes_per_task_ratio"] = rows[0]["ratio"]
    if "pthreads" in names:
        summary["bytes_per_task_pthreads_ratio"] = rows[0]["pthreads_ratio"]
    return rows


def run(context):
    wanted = context.cases.chosen(COUNTS)
    pairs = context.pairs or (QUICK_PAIRS if context.quick else PAIRS)
    notes, rows, summary = [], [], {}
    contest = Contest(context, notes)
    for case in wanted:
        if case == "notify_remote" and len(os.sched_getaffinity(0)) < 2:
            notes.append("nothing of notify_remote: it needs two CPUs")
            continue
        more = _alive(contest, pairs, summary) if case == "alive" else _timed(contest, case, pairs, summary) + _counted(contest, case, summary)
        for row in more:
            context.say(f"{row['case']:27} {row['ours']:>9,.1f} {row['unit']:12} {row['ratio']:.2f} times {PEERS[contest.peer]} "
                        f"+-{row['spread'] / 2:.0%}")
        rows += more
    result = {
        "parameters": {"pairs": pairs, "case_seconds": CASE_SECONDS, "flags": " ".join(FLAGS), "peer": PEERS[contest.peer],
                       "counts": {name: {case: contest.count(name, case) for case in COUNTS} for name in contest.programs},
                       "quick": context.quick},
        "rows": rows, "summary": summary, "notes": notes,
    }
    bars = {"title": "tasks: cost of an operation", "subtitle": "ratio of ours to the peer's, less is better",
            "cases": [row["case"] for row in rows],
            "series": {f"over {PEERS[name]}": [row.get(key) for row in rows]
                       for name, key in (("boost_fiber", "ratio"), ("pthreads", "pthreads_ratio")) if name in contest.programs}}
    return result, bars
