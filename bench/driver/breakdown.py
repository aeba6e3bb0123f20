"""Translation by caches of each thread (SATC), level by level and setting by setting, beside the table."""
import json

from limited import MIB, OPENMP, check_same
from lockstep import Failure, Programs, geometric_mean, median, row_of, spread, take_warm_turns
from variants import SATC
from workloads import Graph, Sort, make_graph

DOC = """\
The tables and figures of TriCache's section 4.6, on programs that spillcc compiled with -fspill-translation=satc (ours) and by the table (peer), with memory for a part of their data. Cases are
FIGURE/PROGRAM/SETTING; `ours` and `peer` are seconds, `ratio` is ours over peer, `own_ratio` ours over ours with the first setting of its figure, and `table_ratio` the same of the table; `pairs` are as many as there was time for, after a turn that does not count where there was. Of
`misses`, of the work alone, `ours` and `peer` are the share of Direct's and of Private's translations that miss, in percent, `shared_misses_percent` that of accesses to the cache of all that load a page, and there
are cycles of a hit in each and of an access to the cache of all. `private_pages` of each thread, `private_share` of the frames those of all threads.
"""
RUN_SECONDS = 1200
PAGE_BYTES = 4096
ROOM = 0.95  # of the budget; tables take the rest
THREADS = (1, 2, 4)
LEAST_PRIVATE = 8  # pages


class Setting:
    def __init__(self, name, satc=(), both=(), threads=2, storage=None, levels="both", page_bytes=PAGE_BYTES, sharing=None, half=False, private_part=1, direct_part=4):
        """Words of spillway run, of ours only and of both. Private has, but for rounding, 1 / private_part of what each of `sharing` threads (all there are) may pin, and Direct 1 / direct_part of Private.
        half: all threads pin no more than half of the frames, which is what they may where there are few."""
        self.name, self.satc, self.both, self.threads, self.storage = name, list(satc), list(both), threads, storage
        self.levels, self.page_bytes, self.sharing, self.half = levels, page_bytes, sharing or threads, half
        self.private_part, self.direct_part = private_part, direct_part


class Breakdown:
    def __init__(self, context):
        self.context, self.quick = context, context.quick
        self.pairs = context.pairs or (1 if self.quick else 3)
        # A figure of a program, but for what its programs load and what its last turn takes longer.
        self.figure_seconds = 60 if self.quick else 90
        self.part = 4
        self.programs, self.data_bytes, self.binaries, self.rows = {}, {}, {}, []
        scale, records = (16, 40_000) if self.quick else (20, 1_000_000)
        path = context.folder / "kron"
        make_graph(context, self.build("graph", Graph)["native"], "kron", "any", scale, path)
        self.build("sort", Sort)
        graph = Graph(path, "pr")
        self.add("pagerank", "graph", graph, self.loaded_bytes("graph", graph))
        for way in ("shuffle",) if self.quick else ("shuffle", "gnu"):
            sort = Sort(way, records)
            self.add(f"{way}_sort", "sort", sort, sort.data_bytes)

    def build(self, name, kind):
        self.binaries[name] = {}
        for side, compiler, flags in (("native", self.context.native_cxx, []), ("table", self.context.spillcxx, []), ("satc", self.context.spillcxx, [SATC])):
            target = self.context.folder / f"{name}-{side}"
            self.context.build(f"{name}, {side}", [compiler, *kind.flags, *flags, *kind.sources, "-o", target])
            self.binaries[name][side] = target
        return self.binaries[name]

    def add(self, name, binary, workload, data_bytes):
        self.programs[name] = (binary, workload)
        self.data_bytes[name] = data_bytes

    def loaded_bytes(self, name, workload):
        """Of what a program loads: of a graph less than its file has."""
        with Programs() as programs:
            program = programs.start([self.binaries[name]["native"], *workload.words(1)])
            program.read(RUN_SECONDS)
            return workload.begin(program.asking(RUN_SECONDS))

    def budget(self, name):
        return max(self.data_bytes[name] // self.part, 2 * MIB)

    def private_pages(self, name, setting):
        """Of one thread. A quarter of the frames is not pinned, and where they are few more than that (src/spill/satc.cc)."""
        frames = int(ROOM * self.budget(name)) // setting.page_bytes
        most = frames // 2 if setting.half else frames - max(frames // 4, min(1024, frames // 2))
        return max(_power_of_two_within(most // setting.sharing) // setting.private_part, LEAST_PRIVATE)

    def direct_pages(self, name, setting):
        return max(self.private_pages(name, setting) // setting.direct_part, 1)

    def sizes_of(self, name, setting):
        """Columns of what the caches of a thread have."""
        columns = {}
        if setting.levels in ("both", "private"):
            columns["private_pages"] = self.private_pages(name, setting)
            columns["private_share"] = columns["private_pages"] * setting.threads * setting.page_bytes / self.budget(name)
        if setting.levels in ("both", "direct"):
            columns["direct_pages"] = self.direct_pages(name, setting)
        return columns

    def figures(self):
        """{figure: settings}; the first of each is what others are compared with."""
        every = {
            "levels": [Setting("both"), *(Setting(left, levels=left) for left in ("private", "direct", "none"))],
            "threads": [Setting(str(count), threads=count, sharing=max(THREADS)) for count in THREADS],
            "policy": [Setting("clock"), Setting("lru", ["--satc-policy", "lru"], ["--policy", "lru"]), Setting("2q", [], ["--policy", "2q"]),
                       Setting("random", ["--satc-policy", "random"], ["--policy", "random"])],
            "page": [Setting(f"{kib}K", [], ["--page", f"{kib}K"], page_bytes=1024 * kib, half=True) for kib in (4, 8, 16, 32, 64, 128)],
            "backend": [Setting(name, storage=f"{name}:{self.context.storage}") for name in ("uring", "aio", "file")] + [Setting("memory", storage="memory:4G")],
        }
        if self.quick:
            every["page"] = every["page"][::2]
            every["threads"], every["policy"] = every["threads"][:2], every["policy"][:2]
        return every

    def sizes(self):
        """Parts of what it may pin that Private has, and of Private that Direct has."""
        parts = [("most", 1, 4), ("most", 1, 16), ("most", 1, 1), ("quarter", 4, 4), ("sixteenth", 16, 4)]
        return [Setting(f"{part}-{of_private}", private_part=of_most, direct_part=of_private) for part, of_most, of_private in (parts[:1] + parts[3:] if self.quick else parts)]

    def command(self, name, side, setting, more=()):
        binary, workload = self.programs[name]
        own = [*setting.satc, "--satc-levels", setting.levels, "--satc-private", self.private_pages(name, setting), "--satc-direct", self.direct_pages(name, setting)]
        options = [*setting.both, *(own if side == "satc" else []), *more]
        return self.context.spilled(self.budget(name), [self.binaries[binary][side], *workload.words(setting.threads)], options=options, storage=setting.storage)

    def turns(self, case, name, sides):
        """{side: seconds of each pair} of {side: command}."""
        workload = self.programs[name][1]
        with Programs() as programs:
            programs.environment.update(OPENMP)
            running = {side: programs.start(command) for side, command in sides.items()}
            asks = {side: one.asking(RUN_SECONDS) for side, one in running.items()}
            for side, one in running.items():
                one.read(RUN_SECONDS)
                workload.begin(asks[side])
            turns = take_warm_turns(running, lambda side: workload.turn(asks[side]), self.pairs, self.figure_seconds,
                                    lambda answers: check_same(case, {side: turn.found for side, turn in answers.items()}))
            for one in running.values():
                one.finish()
        return {side: [turn.seconds for turn in own] for side, own in turns.items()}

    def take(self, case, measure):
        """The rows of a figure of a program, if it is wanted: those that are kept, or what measure(case) returns."""
        if not self.context.cases.wants(case, or_below=True):
            return
        if case not in self.context.kept:
            self.context.progress(f"breakdown {case}")
            self.context.kept[case] = measure(case)
        self.rows += self.context.kept[case]

    def figure(self, case, name, settings):
        """A row for each setting."""
        sides = {("satc", setting.name): self.command(name, "satc", setting) for setting in settings}
        # What changes ours alone, the table does not see.
        seen = {setting.name: setting if setting.both or setting.storage or setting.threads != settings[0].threads else settings[0] for setting in settings}
        sides |= {("table", setting.name): self.command(name, "table", setting) for setting in seen.values()}
        turns = self.turns(case, name, sides)
        first = settings[0].name
        rows = []
        for setting in settings:
            ours, table = turns["satc", setting.name], turns["table", seen[setting.name].name]
            row = row_of(f"{case}/{setting.name}", ours, table, "s", **self.sizes_of(name, setting))
            for side, seconds, of_first in (("own", ours, turns["satc", first]), ("table", table, turns["table", first])):
                ratios = [a / b for a, b in zip(seconds, of_first)]
                row[side + "_ratio"], row[side + "_spread"] = median(ratios), spread(ratios)
            rows.append(row)
            self.context.say(f"{row['case']:24} {row['ours']:.2f} s, {row['ratio']:.2f} of the table's, {row['own_ratio']:.2f} of {first}")
        return rows

    def counts(self, name, setting, with_work):
        """Of a run in which every translation is counted: the program loads its data and, if it is to, does its work once."""
        stats = self.context.folder / "stats.json"
        workload = self.programs[name][1]
        with Programs() as programs:
            programs.environment.update(OPENMP)
            one = programs.start(self.command(name, "satc", setting, ["--satc-cycles", "--stats", stats]))
            one.read(RUN_SECONDS)
            workload.begin(one.asking(RUN_SECONDS))
            for question in [*workload.BEFORE, *([workload.WORK] if with_work else [])]:
                one.ask(question, RUN_SECONDS)
            one.finish()
        counted = json.loads(stats.read_text())
        return counted.get("satc", {}) | {"loads": counted["cache"]["misses"]}

    def misses(self, case, name):
        """A row of each level's misses, and cycles, of the work alone: the difference of two runs."""
        setting = Setting("counted")
        before, after = (self.counts(name, setting, with_work) for with_work in (False, True))
        row = {"case": f"{case}/counted", **misses_of({key: max(0, after[key] - before.get(key, 0)) for key in after}), **self.sizes_of(name, setting)}
        self.context.say(f"{row['case']:24} Direct misses {row['ours']:.2f} %, Private {row['peer']:.2f} %, cycles {row['direct_cycles']:.0f}, {row['private_cycles']:.0f}, {row['shared_cycles']:.0f}")
        return [row]


def _power_of_two_within(number):
    return 1 << max(number, 1).bit_length() - 1


def _percent(part, whole):
    return 100 * part / max(1, whole)


def misses_of(counts):
    """Columns of the folder `satc` of statistics, and of `loads`, of the cache of all."""
    direct, private = (_percent(counts[level + "_misses"], counts[level + "_hits"] + counts[level + "_misses"]) for level in ("direct", "private"))
    row = {"ours": direct, "peer": private, "ratio": direct / private if private else 0.0, "spread": 0.0, "unit": "%", "pairs": 1,
           "shared_misses_percent": _percent(counts["loads"], counts["shared_accesses"] + counts["bypasses"])}
    for level, count in (("direct", "direct_hits"), ("private", "private_hits"), ("shared", "shared_accesses")):
        row[level + "_cycles"] = counts[level + "_cycles"] / max(1, counts[count])
    return row | {"bypassed": counts["bypasses"]}


def _summary(rows):
    """Of each setting, over all programs: how much longer ours takes than with the first one, and than the table."""
    summary = {}
    timed = [row for row in rows if "own_ratio" in row]
    for figure, setting in dict.fromkeys((row["case"].split("/")[0], row["case"].split("/")[2]) for row in timed):
        own = [row for row in timed if row["case"].split("/")[0] == figure and row["case"].split("/")[2] == setting]
        summary[f"{figure}_{setting}"] = geometric_mean([row["own_ratio"] for row in own])
        summary[f"{figure}_{setting}_over_table"] = geometric_mean([row["ratio"] for row in own])
    for row in rows:
        if row["case"].startswith("misses/"):
            program = row["case"].split("/")[1]
            summary[f"misses_{program}_direct_percent"], summary[f"misses_{program}_private_percent"] = row["ours"], row["peer"]
    return summary


def run(context):
    breakdown = Breakdown(context)
    for name in breakdown.programs:
        breakdown.take(f"misses/{name}", lambda case: breakdown.misses(case, name))
        for figure, settings in breakdown.figures().items():
            if breakdown.quick and name != "pagerank" and figure != "levels":
                continue
            breakdown.take(f"{figure}/{name}", lambda case: breakdown.figure(case, name, settings))
        if not (breakdown.quick and name != "pagerank"):
            breakdown.take(f"size/{name}", lambda case: breakdown.figure(case, name, breakdown.sizes()))
    rows = breakdown.rows
    if not rows:
        raise Failure("breakdown has no such case; cases are FIGURE/PROGRAM/SETTING", 2)
    result = {
        "parameters": {"pairs": breakdown.pairs, "figure_seconds": breakdown.figure_seconds, "memory_part": breakdown.part, "data_bytes": breakdown.data_bytes,
                       "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows),
    }
    timed = [row for row in rows if "own_ratio" in row]
    bars = {"title": "translation by caches of each thread", "subtitle": "time over that of the first setting, and over the table's; less is better",
            "cases": [row["case"] for row in timed],
            "series": {"over the first": [row["own_ratio"] for row in timed], "over the table": [row["ratio"] for row in timed]}}
    return result, bars
