"""The page cache beside the kernel's, a plain one and direct I/O: hits, misses, and what a memory limit leaves of both."""
import json
import shutil

from counting import counted, counting, of_one
from devices import Cleanup, file_of, forget, why_no_zram, zram
from lockstep import Failure, Programs, geometric_mean, median, row_of, spread, take_turns
from memory_group import MemoryGroup, Unavailable

DOC = """\
Blocks of 128 bytes of a file's 4-KiB pages, at random, through the page cache (ours) and through the peer: requests a second, more is
better. `hot`: all of the data is in memory; beside an array, a mapped file, pread, and a map with a list under one lock, `ns` of a request
of one thread. `cold`: next to none is; beside direct I/O, which reads and writes whole pages, and of reads by threads `pread` of the kernel's page cache with as much memory (`pread_ratio`: over direct I/O, too). `zipf`: a quarter of the data fits, beside
pread under the same memory limit, and beside the same file mapped (`mmap_ratio`: ours over it). `reads` and `writes` are the device's, in pages of a request; `peer_` the peer's. `hot/scaling` is ours by
two threads over ours by one. `hot/instructions` are those of a request in user mode, less is better. `nodes`: one thread's queue of requests
to a cache in parts, as on a machine with so many memory nodes, over one part; `messages` are those of a request that went to a server, there
and back. `btree`: keys are looked up in a B+-tree: `search` many at a time, over one thread, both through the page cache; `read` and
`update` beside pread as `zipf`, `eleventh` as `read` with memory for an eleventh of the data.
"""
MIB = 1 << 20
PAGE_BYTES = 4096
ANSWER_SECONDS = 600
HOT_PEERS = ["array", "mmap", "pread", "locked"]
KINDS = ["read", "mixed", "update"]
COUNTED = (2_000, 10_000)
COUNTED_BYTES = 4 * MIB
# A set has as much room as any other, and not as many pages: with so many times the data's memory none is too small.
HOT_ROOM = 4
# That a queue has under way: a message of 64 that is filled, and one that is carried out.
REQUESTS_OF_NODE = 128
# Beyond that of the cache, and of a program that has none.
SLACK_BYTES = 8 * MIB
# Of hot requests that miss all the same, more than these are worth a note.
HOT_MISSES_MOST = 1e-4


def words_of(settings):
    return [f"{name}={value}" for name, value in settings.items()]


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.hot_bytes = (16 if quick else 128) * MIB
        self.data_bytes = (192 if quick else 1024) * MIB
        self.cold_memory_bytes = self.data_bytes // 64
        self.zipf_memory_bytes = self.data_bytes // 4
        self.theta = 0.99
        # Ten million keys with values of 8 bytes; profiles, of which a page has five.
        self.search_bytes = (3_940 if quick else 39_372) * PAGE_BYTES
        self.search_memory_bytes = self.search_bytes // 16
        self.search_value_bytes, self.profile_bytes = 8, 800
        self.search_depths = {"tasks": 64, "queue": 64}
        self.hot_threads = [1, 2]
        self.cold_depths = {"tasks": [1, 64] if quick else [1, 16, 64], "threads": [1] if quick else [1, 2]}
        # More threads than there are CPUs still wait for the device at the same time. (set-associative page cache, figure 3)
        self.more_readers = [4] if quick else [4, 12]
        self.zipf_threads = [1, 8] if quick else [1, 2, 8]
        self.profile_kinds = ["read", "update"]
        # 2 GB for the 22 of the paper's load. (set-associative page cache, figure 6)
        self.eleventh_memory_bytes = self.data_bytes // 11 // MIB * MIB
        self.nodes = [2, 4, 8]
        self.pairs = context.pairs or (2 if quick else 3)
        self.case_seconds = 15
        self.warm_seconds = 0.05 if quick else 0.1
        self.window_seconds = {"hot": 0.1 if quick else 0.5, "cold": 0.1 if quick else 0.5, "nodes": 0.1 if quick else 0.5,
                               "zipf": 0.3 if quick else 0.7}
        # Until evictions meet changed pages, and the policies have seen what is popular.
        self.settle_seconds = {"cold": 0.3 if quick else 1, "zipf": 1 if quick else 8}

    def cold_cases(self, device, by):
        """(name, kind, depth)"""
        return [(f"cold/{device}/{kind}/{by}/{depth}", kind, depth) for kind in KINDS
                for depth in self.cold_depths[by] + (self.more_readers if (kind, by) == ("read", "threads") else [])]

    def nodes_cases(self, kind):
        """(name, nodes)"""
        return [(f"nodes/{kind}/{nodes}", nodes) for nodes in self.nodes]

    def zipf_cases(self, device):
        """(name, kind, threads)"""
        return [(f"zipf/{device}/{threads}", "read", threads) for threads in self.zipf_threads]

    def search_cases(self, device):
        """(name, by, depth)"""
        return [(f"btree/{device}/search/{by}/{depth}", by, depth) for by, depth in self.search_depths.items()]

    def profile_cases(self, device):
        """As zipf_cases()."""
        return [(f"btree/{device}/{kind}/{threads}", kind, threads) for kind in self.profile_kinds for threads in self.zipf_threads]

    def eleventh_cases(self, device):
        """As zipf_cases()."""
        return [(f"btree/{device}/eleventh/{threads}", "read", threads) for threads in self.zipf_threads]


class Contest:
    """Programs, all alive, each another side, which are asked in turns."""

    def __init__(self, load, plan, cleanup):
        self.load, self.plan, self.cleanup = load, plan, cleanup
        self.programs = cleanup.enter_context(Programs())
        self.running = {}

    def start(self, name, side, place, data_bytes, group=None, **settings):
        program = self.programs.start([self.load, side, place, data_bytes, *words_of(settings)], group)
        self.cleanup.callback(program.kill)
        program.read(ANSWER_SECONDS)
        self.running[name] = program

    def ask(self, name, words):
        return json.loads(self.running[name].ask(words + "\n", ANSWER_SECONDS))

    def turns(self, names, kind, by, depth, window_seconds):
        """A list of answers for each of them."""
        return take_turns(names, lambda name: self.turn(name, kind, by, depth, window_seconds), self.plan.pairs, self.plan.case_seconds)

    def turn(self, name, kind, by, depth, window_seconds):
        return self.ask(name, f"run {kind} {by} {depth} {self.plan.warm_seconds} {window_seconds}")

    def settle(self, names, kind, by, depth, seconds):
        for name in names:
            self.ask(name, f"run {kind} {by} {depth} 0 {seconds}")

    def finish(self):
        for program in self.running.values():
            program.finish()


def rate_of(answer):
    return answer["requests"] / answer["seconds"]


def make_row(case, ours, peer, **more):
    """Of answers, pair by pair."""
    row = row_of(case, list(map(rate_of, ours)), list(map(rate_of, peer)), "requests/s", **more)
    for figure in ("cpu_us", "reads", "writes"):
        row[figure] = median([answer[figure] for answer in ours])
        row["peer_" + figure] = median([answer[figure] for answer in peer])
    return row


def beside_kernel(answers):
    """Columns for reads by the kernel's page cache, of answers of it and of direct I/O, pair by pair; none where it was not asked."""
    if "pread" not in answers:
        return {}
    rates = [rate_of(answer) for answer in answers["pread"]]
    ratios = [rate / rate_of(direct) for rate, direct in zip(rates, answers["direct"])]
    return {"pread": median(rates), "pread_ratio": median(ratios), "pread_spread": spread(ratios), "pread_reads": median([answer["reads"] for answer in answers["pread"]])}


def beside_map(answers):
    """Columns for reads of the same file mapped, pair by pair; none where there is no such side."""
    if "mmap" not in answers:
        return {}
    rates = [rate_of(answer) for answer in answers["mmap"]]
    ratios = [rate_of(ours) / rate for ours, rate in zip(answers["cache"], rates)]
    return {"mmap": median(rates), "mmap_ratio": median(ratios), "mmap_spread": spread(ratios), "mmap_reads": median([answer["reads"] for answer in answers["mmap"]])}


def scaling(ones, twos):
    """Of answers of one thread and of two, pair by pair."""
    return median([rate_of(two) / rate_of(one) for one, two in zip(ones, twos)])


class Run:
    """Which cases are wanted, and what they have given."""

    def __init__(self, context):
        self.context, self.plan = context, Plan(context)
        self.load = context.spillway.parent.parent / "libexec/spillway/pagecache-load"
        if not self.load.exists():
            raise Failure(f"{self.load} is not there; build or install Spillway completely", 2)
        self.rows, self.notes = [], []

    def wanted(self, cases):
        """Of cases, (name, ...)."""
        return [case for case in cases if self.context.cases.wants(case[0])]

    def together(self, cases, measure):
        """Takes the rows of cases that one set of programs measures, and notes: those that are kept, and for the others what measure(others) returns. What cannot be measured has a note alone."""
        kept = self.context.kept
        if missing := kept.missing(cases):
            rows, notes = measure(missing)
            for row in rows:
                kept[row["case"]] = row, notes
            self.note(notes)
        for name in (case[0] for case in cases if case[0] in kept):
            row, notes = kept[name]
            self.rows.append(row)
            self.note(notes)

    def note(self, notes):
        self.notes += [note for note in notes if note not in self.notes]

    def said(self, row):
        """The row."""
        self.context.say(f"{row['case']:28} {row['ours']:>12,.0f} {row['unit']}, {row['ratio']:.2f} times the peer's "
                         f"+-{row['spread'] / 2:.0%}" + (f"; {row['ns']:.1f} ns, {row['peer_ns']:.1f} ns" if "ns" in row else "")
                         + (f"; {row['messages']:.3f} messages" if "messages" in row else "")
                         + (f"; pages {row['reads']:.2f} + {row['writes']:.2f}, {row['peer_reads']:.2f} + {row['peer_writes']:.2f}"
                            if row["case"].startswith(("cold", "zipf", "btree")) else ""))
        return row

    def place_of(self, device, cleanup, name, size_bytes, **settings):
        """A new file or device that holds the data."""
        place = zram(cleanup, size_bytes) if device == "zram" else file_of(cleanup, self.context.folder / name, size_bytes)
        self.context.progress(f"pagecache {device}: filling {place}")
        self.context.output([self.load, "fill", place, size_bytes, *words_of(settings)])
        return place

    def hot(self):
        cases = self.wanted([(f"hot/{peer}/{threads}", peer) for peer in HOT_PEERS for threads in self.plan.hot_threads] + [("hot/scaling", None)])
        # All of them if any is missing: how well all sides scale is of the same turns.
        self.together(cases, lambda _: self.measure_hot(cases))

    def measure_hot(self, cases):
        plan, names = self.plan, [name for name, _ in cases]
        peers = list(dict.fromkeys(peer for _, peer in cases if peer))
        with Cleanup() as cleanup:
            place = self.place_of("disk", cleanup, "hot", plan.hot_bytes)
            contest = Contest(self.load, plan, cleanup)
            contest.start("ours", "cache", f"uring:{place}", plan.hot_bytes, memory=HOT_ROOM * plan.hot_bytes)
            for peer in peers:
                contest.start(peer, peer, place, plan.hot_bytes)
            for name in contest.running:
                self.context.progress(f"pagecache hot: reading all of it, {name}")
                contest.ask(name, "touch tasks 64" if name == "ours" else "touch threads 1")
            self.context.progress("pagecache hot: taking turns")
            # One thread's turns and two threads', which are compared, too, are of the same pairs.
            taken = take_turns([(threads, name) for threads in plan.hot_threads for name in contest.running], lambda side: contest.turn(side[1], "read", "threads", side[0], plan.window_seconds["hot"]),
                               plan.pairs, len(cases) * plan.case_seconds)
            answers = {threads: {name: taken[threads, name] for name in contest.running} for threads in plan.hot_threads}
            contest.finish()
        rows = []
        for peer in peers:
            for threads, own in answers.items():
                if f"hot/{peer}/{threads}" in names:
                    ns, peer_ns = (median([threads * 1e9 / rate_of(answer) for answer in own[name]]) for name in ("ours", peer))
                    rows.append(self.said(make_row(f"hot/{peer}/{threads}", own["ours"], own[peer], ns=ns, peer_ns=peer_ns)))
        if "hot/scaling" in names:
            more = {f"{peer}_scaling": scaling(answers[1][peer], answers[2][peer]) for peer in peers}
            row = make_row("hot/scaling", answers[2]["ours"], answers[1]["ours"], **more)
            rows.append(self.said({**row, "cpu_scaling": 2 * row["peer_cpu_us"] / row["cpu_us"]}))
        misses = median([answer["reads"] for answer in answers[1]["ours"]])
        return rows, [f"hot: {misses:.2%} of the requests missed"] if misses > HOT_MISSES_MOST else []

    def nodes(self, kind):
        self.together(self.wanted(self.plan.nodes_cases(kind)), lambda cases: self.measure_nodes(kind, cases))

    def measure_nodes(self, kind, cases):
        """Beside a cache of one node, which has as many requests under way."""
        plan, rows = self.plan, []
        with Cleanup() as cleanup:
            place = self.place_of("disk", cleanup, "nodes", plan.hot_bytes)
            memory_bytes = plan.hot_bytes * HOT_ROOM if kind == "hot" else plan.hot_bytes // 16
            contest = Contest(self.load, plan, cleanup)
            for nodes in [1, *(nodes for _, nodes in cases)]:
                contest.start(nodes, "cache", f"uring:{place}", plan.hot_bytes, memory=memory_bytes, nodes=nodes)
            for nodes in contest.running:
                contest.ask(nodes, f"touch queue {REQUESTS_OF_NODE * nodes}")
            for name, nodes in cases:
                self.context.progress(f"pagecache {name}")
                answers = contest.turns([nodes, 1], "read", "queue", REQUESTS_OF_NODE * nodes, plan.window_seconds["nodes"])
                rows.append(self.said(make_row(name, answers[nodes], answers[1], **{figure: median([answer[figure] for answer in answers[nodes]])
                                                                                   for figure in ("messages", "sent")})))
            contest.finish()
        return rows, []

    def instructions(self, side, place):
        """Of a read of a page that is there."""
        log, counts = self.context.folder / "valgrind", []
        for requests in COUNTED:
            self.context.progress(f"pagecache hot: counting instructions of {side}")
            with Programs() as programs:
                program = programs.start(counting(log, [self.load, side, place, COUNTED_BYTES, f"memory={HOT_ROOM * COUNTED_BYTES}"]))
                program.read(ANSWER_SECONDS)
                program.ask("touch threads 1\n", ANSWER_SECONDS)
                if json.loads(program.ask(f"count {requests}\n", ANSWER_SECONDS))["requests"] != requests:
                    raise Failure(f"pagecache: {side} did not do {requests} requests")
                program.finish()
            counts.append(counted(log))
        return of_one(counts, COUNTED)

    def hot_instructions(self):
        self.together(self.wanted([(f"hot/instructions/{side}", side) for side in ("locked", "array")]), self.measure_instructions)

    def measure_instructions(self, cases):
        if not shutil.which("valgrind"):
            return [], ["instructions were not counted: install valgrind"]
        with Cleanup() as cleanup:
            place = self.place_of("disk", cleanup, "counted", COUNTED_BYTES)
            ours = self.instructions("cache", f"uring:{place}")
            peers = {name: self.instructions(side, place) for name, side in cases}
        return [self.said({"case": name, "ours": ours, "peer": peer, "ratio": ours / peer, "spread": 0.0, "unit": "instructions"}) for name, peer in peers.items()], []

    def cold(self, device, places, by, cases):
        plan, rows, notes = self.plan, [], []
        with Cleanup() as cleanup:
            contest = Contest(self.load, plan, cleanup)
            scheme = {"tasks": "uring", "threads": "file"}[by]
            for (name, side), place in zip((("ours", "cache"), ("direct", "direct")), places):
                contest.start(name, side, f"{scheme}:{place}", plan.data_bytes, memory=plan.cold_memory_bytes)
            if by == "threads" and any(kind == "read" for _, kind, _ in cases):
                try:
                    contest.start("pread", "pread_random", places[2], plan.data_bytes, self.group_of(cleanup, "pread", places[2], self.limit_bytes(plan.cold_memory_bytes)))
                except Unavailable as reason:
                    notes.append(f"nothing of the kernel's page cache in cold/{device}/read: no memory limit can be set here ({reason})")
            settled = None
            for name, kind, depth in cases:
                self.context.progress(f"pagecache {name}")
                sides = [side for side in contest.running if kind == "read" or side != "pread"]
                if kind != settled:
                    contest.settle(sides, kind, by, plan.cold_depths[by][-1], plan.settle_seconds["cold"])
                    settled = kind
                answers = contest.turns(sides, kind, by, depth, plan.window_seconds["cold"])
                rows.append(self.said(make_row(name, answers["ours"], answers["direct"], **beside_kernel(answers))))
            contest.finish()
        return rows, notes

    def limit_bytes(self, cache_bytes):
        """What a program takes before it has data, and the cache."""
        with Programs() as programs:
            program = programs.start([self.load, "cache", f"memory:{COUNTED_BYTES}", COUNTED_BYTES, f"theta={self.plan.theta}"])
            program.read(ANSWER_SECONDS)
            return cache_bytes + program.peak_bytes() + SLACK_BYTES

    @staticmethod
    def group_of(cleanup, side, place, limit_bytes):
        """A control group without swap, of who reads this place, of which no other group has left anything in memory. Raises Unavailable."""
        forget(place)
        group = cleanup.acquire(lambda: MemoryGroup.create(limit_bytes, f"bench-{side}"), MemoryGroup.remove)
        group.forbid_swap()
        return group

    def limited(self, places, cases, memory_bytes, own=(), **settings):
        """Cases beside pread, by Zipf's law, under the memory limit of a cache of so many bytes, and beside a map if there is a fourth place. `own`: settings of ours only."""
        plan, rows = self.plan, []
        limit_bytes = self.limit_bytes(memory_bytes)
        with Cleanup() as cleanup:
            contest = Contest(self.load, plan, cleanup)
            for side, place in zip(("cache", "pread", "pread_random", "mmap"), places):
                try:
                    group = self.group_of(cleanup, side, place, limit_bytes)
                except Unavailable as reason:
                    return [], [f"nothing of {cases[0][0]} and the like: no memory limit can be set here ({reason})"]
                more = {**settings, "memory": memory_bytes, **dict(own)} if side == "cache" else settings
                contest.start(side, side, f"file:{place}" if side == "cache" else place, plan.data_bytes, group, theta=plan.theta, **more)
            settled = None
            for name, kind, threads in cases:
                self.context.progress(f"pagecache {name}")
                if kind != settled:
                    contest.settle(contest.running, kind, "threads", plan.zipf_threads[-1], plan.settle_seconds["zipf"])
                    settled = kind
                answers = contest.turns(list(contest.running), kind, "threads", threads, plan.window_seconds["zipf"])
                best = max(("pread", "pread_random"), key=lambda side: median(map(rate_of, answers[side])))
                rows.append(self.said(make_row(name, answers["cache"], answers[best], best_peer=best, **beside_map(answers))))
            contest.finish()
        return rows, []

    def profiles(self, device, cases, memory_bytes):
        with Cleanup() as cleanup:
            places = [self.place_of(device, cleanup, f"tree{i}", self.plan.data_bytes, value=self.plan.profile_bytes) for i in range(3)]
            # With a server, which writes changed pages back before their frames are needed, as the kernel's threads do for pread.
            return self.limited(places, cases, memory_bytes, own={"nodes": 1}, value=self.plan.profile_bytes)

    def search(self, device, cases):
        """Many lookups in a tree at a time, by tasks or by a queue with a server, beside those of one thread, of the same cache."""
        plan, rows = self.plan, []
        with Cleanup() as cleanup:
            place = self.place_of(device, cleanup, "tree", plan.search_bytes, value=plan.search_value_bytes)
            contest = Contest(self.load, plan, cleanup)
            contest.start("ours", "cache", f"uring:{place}", plan.search_bytes, memory=plan.search_memory_bytes, value=plan.search_value_bytes,
                          nodes=1)
            for name, *many in cases:
                self.context.progress(f"pagecache {name}")
                contest.settle(contest.running, "read", *many, plan.settle_seconds["cold"])
                sides = [tuple(many), ("threads", 1)]
                answers = take_turns(sides, lambda side: contest.turn("ours", "read", *side, plan.window_seconds["cold"]), plan.pairs, plan.case_seconds)
                rows.append(self.said(make_row(name, *answers.values())))
            contest.finish()
        return rows, []

    def on(self, device):
        plan = self.plan
        cold = {by: self.wanted(plan.cold_cases(device, by)) for by in plan.cold_depths}
        zipf, search, profiles, eleventh = map(self.wanted, (plan.zipf_cases(device), plan.search_cases(device), plan.profile_cases(device), plan.eleventh_cases(device)))
        of_places = [case for cases in (*cold.values(), zipf) for case in cases]
        if not of_places and not search and not profiles and not eleventh:
            return
        if device == "zram" and why_no_zram():
            self.notes.append(f"nothing on zram: {why_no_zram()}")
            return
        with Cleanup() as cleanup:
            count = 4 if self.context.kept.missing(zipf) else 3 if self.context.kept.missing(of_places) else 0
            places = [self.place_of(device, cleanup, f"data{i}", plan.data_bytes) for i in range(count)]
            for by, cases in cold.items():
                self.together(cases, lambda missing: self.cold(device, places, by, missing))
            self.together(zipf, lambda missing: self.limited(places, missing, plan.zipf_memory_bytes))
        self.together(search, lambda missing: self.search(device, missing))
        self.together(profiles, lambda missing: self.profiles(device, missing, plan.zipf_memory_bytes))
        self.together(eleventh, lambda missing: self.profiles(device, missing, plan.eleventh_memory_bytes))


def summarise(rows):
    """What targets are set for."""
    summary = {}
    for row in rows:
        words = row["case"].split("/")
        if words[0] != "cold":
            summary["_".join(words) + "_ratio"] = row["ratio"]
        if words[0] == "hot" and "ns" in row:
            summary[f"hot_ns_{words[-1]}"] = row["ns"]
        if "messages" in row:
            summary["_".join(words) + "_messages"] = row["messages"]
        if row["case"] == "hot/scaling":
            summary["hot_cpu_scaling"] = row["cpu_scaling"]
        if words[:2] == ["hot", "instructions"]:
            summary["hot_instructions"] = row["ours"]
    for group in dict.fromkeys(tuple(row["case"].split("/")[:3]) for row in rows if row["case"].startswith("cold")):
        ratios = [row["ratio"] for row in rows if row["case"].startswith("/".join(group) + "/")]
        summary["_".join(group) + "_ratio"] = geometric_mean(ratios)
        summary["_".join(group) + "_worst"] = min(ratios)
    return summary


def run(context):
    doing = Run(context)
    doing.hot()
    doing.hot_instructions()
    for kind in ("hot", "cold"):
        doing.nodes(kind)
    for device in ("disk", "zram"):
        doing.on(device)
    plan, rows = doing.plan, doing.rows
    if not rows and not doing.notes:
        raise Failure("pagecache has no such case; they begin with hot/, nodes/, and cold/, zipf/ and btree/ with disk/ or zram/", 2)
    result = {
        "parameters": {"hot_bytes": plan.hot_bytes, "hot_memory_bytes": HOT_ROOM * plan.hot_bytes, "data_bytes": plan.data_bytes,
                       "cold_memory_bytes": plan.cold_memory_bytes, "zipf_memory_bytes": plan.zipf_memory_bytes, "eleventh_memory_bytes": plan.eleventh_memory_bytes, "theta": plan.theta,
                       "search_bytes": plan.search_bytes, "search_memory_bytes": plan.search_memory_bytes, "profile_bytes": plan.profile_bytes,
                       "slack_bytes": SLACK_BYTES, "pairs": plan.pairs, "case_seconds": plan.case_seconds, "window_seconds": plan.window_seconds,
                       "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": summarise(rows), "notes": doing.notes,
    }
    drawn = [row for row in rows if row["unit"] == "requests/s" and row["case"] != "hot/scaling"]
    bars = {"title": "page cache: requests a second", "subtitle": "over the peer's; more is better",
            "cases": [row["case"] for row in drawn], "series": {"over the peer": [row["ratio"] for row in drawn]}}
    return result, bars
