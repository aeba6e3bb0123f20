"""The server beside memcached, in memory and with extstore: CPU time for each request, requests a second, latency."""
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import time

import server_hitrate
import server_overload
from devices import Cleanup
from lockstep import Failure, Programs, median, row_of, take_turns
from memory_group import MemoryGroup, Unavailable
from server_process import CLIENT_CPU, READY_SECONDS, ServerProcess, cpus, free_port

DOC = """\
Microseconds of CPU that the server's process takes for a request, ours beside each peer's: less is better. One CPU is the server's, another one
the client's; one request in ten stores a value of 1 KiB, the others get one, of any key alike. `1`, `4`, `16`, `64`: connections with a request each;
`16x16`: with 16 requests that are sent together. Beside `memcached` all data fit both servers' memory, though ours are on the disk too. Beside
`extstore`, memcached's own tier on the disk, both are in a group whose memory, the kernel's page cache included, is about half of the data.
`disk_over_memcached`: ours in that group beside memcached with all in memory: what the disk costs.
`rate_ratio`: requests a second over the peer's; more is better. Latencies in microseconds. `read`: parts of gets that our server read from the
disk. `idle`: bytes of memory for each of so many connections on which nothing happens. `overload` (with --only alone): minutes with ten times as much
data as memory; the 99.9th percentile of a request's time at three quarters of what the server does, beside fio's with as many I/Os a second in turns;
`busy`: the same when it does all that it can; `memory_share`: the most that the process had, of what it may. `hitrate` (with --only alone): the part of gets that a cache of ours answers, whose file is a quarter of the data, beside memcached
with as much memory; `lru_of_bytes`, `lru_of_items`: a list from which always the least recently used goes, with as many bytes of keys and values as that file, and
with as many items as ours had: more is better.
"""
MIB = 1 << 20
POINTS = {"1": (1, 1), "4": (4, 1), "16": (16, 1), "64": (64, 1), "16x16": (16, 16)}
# Ours and its peer. The first two have as much memory as each other.
PAIRS = {"memcached": ("ours in memory", "memcached"), "extstore": ("ours on disk", "extstore"), "disk_over_memcached": ("ours on disk", "memcached")}
IN_GROUPS = PAIRS["extstore"]
VALUE_BYTES = 1024
FILLS_MOST, FILL_PAUSE_SECONDS, FILL_CHECK_SECONDS = 8, 1, 0.5
# Of a group, for what the kernel counts besides a process's own memory: sockets, page tables.
GROUP_REST_MIB = 8
OVERLOADED = "ours with ten times the data"
CACHE, CACHE_PEER = "ours as a cache", "memcached as a cache"
IDLE = "ours without data"


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.keys = 20_000 if quick else 400_000
        self.extstore_mib = 8 if quick else 64  # for items; their index and the page cache come besides
        self.group_mib = 64 if quick else 256   # in all, of a server on the disk
        self.pairs = context.pairs or (1 if quick else 5)
        self.point_seconds = 60  # of a number of connections, all servers
        self.window_seconds = 0.3 if quick else 1.0
        self.idle_connections = 1000 if quick else 10_000
        self.hitrate_keys, self.hitrate_requests = (20_000, 60_000) if quick else (200_000, 1_000_000)
        self.hitrate_mib = max(16, self.hitrate_keys * VALUE_BYTES // MIB // 4)
        self.overload_seconds, self.overload_window_seconds = (6, 1) if quick else (600, 10)
        self.overload_memory_bytes = (32 if quick else 96) * MIB
        self.overload_keys = 10 * self.overload_memory_bytes // VALUE_BYTES
        self.overload_data_bytes = self.overload_keys * server_overload.RECORD_BYTES


class Server(ServerProcess):
    """A server that has been filled."""

    def __init__(self, contest, name):
        self.contest, self.port = contest, free_port()
        super().__init__(contest.programs, name, contest.command(name, self.port), self.port, contest.groups.get(name))

    def stat(self, name):
        """0: it does not tell."""
        with socket.create_connection(("127.0.0.1", self.port), READY_SECONDS) as asks:
            asks.sendall(b"stats\r\n")
            told = b""
            while not told.endswith(b"END\r\n"):
                told += asks.recv(1 << 16)
        found = re.search(rb"STAT %s (\d+)" % name.encode(), told)
        return int(found[1]) if found else 0

    def reads(self):
        """Gets that went to the disk so far; of memcached without a tier there none."""
        return self.stat("get_extstore")

    def ask(self, what, **words):
        words = {"value": VALUE_BYTES, "keys": self.contest.plan.keys, "cpu": CLIENT_CPU, **words}
        command = [self.contest.load, f"127.0.0.1:{self.port}", what, *(f"{name}={value}" for name, value in words.items())]
        ended = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if ended.returncode != 0:
            raise Failure(f"{self.name}: {(ended.stderr.strip().splitlines() or ['no message'])[-1]}")
        return json.loads(ended.stdout)

    def fill(self):
        """Till nearly all is there: extstore drops items at first, until its memory is parted as it should be."""
        for _ in range(FILLS_MOST):
            self.ask("fill", pipeline=1 if self.name == "extstore" else 32)
            time.sleep(FILL_PAUSE_SECONDS)
            told = self.ask("run", connections=16, pipeline=1, sets=0, seconds=FILL_CHECK_SECONDS)
            if told["hits"] >= 0.99 * told["gets"]:
                return
        raise Failure(f"{self.name} has but {told['hits'] / told['gets']:.0%} of its items after {FILLS_MOST} fills")

    def turn(self, point, seconds):
        connections, pipeline = POINTS[point]
        before, reads_before = self.cpu_us(), self.reads()
        told = self.ask("run", connections=connections, pipeline=pipeline, sets=0.1, seconds=seconds)
        return {"cpu_us": (self.cpu_us() - before) / told["requests"], "rate": told["per_second"],
                "hits": told["hits"] / max(1, told["gets"]), "read": (self.reads() - reads_before) / max(1, told["gets"]),
                **{f"{name}_us": told["latency_ns"][name] / 1e3 for name in ("p50", "p99", "p999")}}


class Contest:
    """What all cases are measured with. `needed`: names of the servers that cases of Compared have."""

    def __init__(self, context, plan, programs, cleanup, needed):
        self.context, self.plan, self.programs, self.cleanup, self.needed = context, plan, programs, cleanup, needed
        self.groups = {name: _group(cleanup, plan, name) for name in needed if name in IN_GROUPS}
        self.series = {}
        self.load = context.spillway.parent.parent / "libexec/spillway/server-load"

    def command(self, name, port):
        data_mib = self.plan.keys * 2 * VALUE_BYTES // MIB + 64
        user = ["-u", "root"] if os.geteuid() == 0 else []
        if name == OVERLOADED:
            return [self.context.spillway, "serve", "--storage", self.context.folder / "overloaded", "--capacity", 2 * self.plan.overload_data_bytes,
                    "--memory", self.plan.overload_memory_bytes, "--memcache", port, "--threads", 1]
        if name in (IDLE, *(ours for ours, _ in PAIRS.values())):
            memory_mib = self.plan.group_mib - GROUP_REST_MIB if name in self.groups else 2 * data_mib
            return [self.context.spillway, "serve", "--storage", self.context.folder / name.replace(" ", "-"),
                    "--capacity", f"{2 * data_mib}M", "--memory", f"{memory_mib}M",
                    "--memcache", port, "--threads", 1, "--connections", self.plan.idle_connections + 100]
        if name == CACHE:
            return [self.context.spillway, "serve", "--storage", self.context.folder / "cache", "--capacity", f"{self.plan.hitrate_mib}M", "--cache",
                    "--memory", "64M", "--memcache", port, "--threads", 1]
        peer = ["memcached", *user, "-p", port, "-U", 0, "-l", "127.0.0.1", "-t", 1]
        if name == "memcached":
            return [*peer, "-m", 2 * data_mib]
        if name == CACHE_PEER:
            return [*peer, "-m", self.plan.hitrate_mib]
        return [*peer, "-m", self.plan.extstore_mib, "-o", f"ext_path={self.context.folder / 'ext'}:{2 * data_mib}M,ext_item_size=512,slab_automove=2"]


def _group(cleanup, plan, name):
    try:
        group = cleanup.acquire(lambda: MemoryGroup.create(plan.group_mib * MIB, f"bench-{name.replace(' ', '-')}"), MemoryGroup.remove)
    except Unavailable as reason:
        raise Failure(f"{reason}; leave out extstore: --only 1/memcached", 2) from None
    group.forbid_swap()
    return group


def _check(contest):
    if not contest.load.exists():
        raise Failure(f"{contest.load} is not there; build or install Spillway completely", 2)
    if not shutil.which("memcached"):
        raise Failure("memcached is not there; install it", 2)
    cpus()


def _allow_descriptors(count):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[0] < count:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(limits[1], count)))
        except (OSError, ValueError):
            raise Failure(f"this needs {count} descriptors; raise ulimit -n", 2) from None


# Kinds of cases. Each has: their names; measure(contest, wanted), which yields the row of each of these that are its own; what is said of a row; and
# figures of a row for the summary.


class Compared:
    """What a request costs our server and a peer, which take turns, by how many connections ask."""
    CASES = [f"{point}/{pair}" for point in POINTS for pair in PAIRS]

    @staticmethod
    def servers(wanted):
        pairs = [pair for pair in PAIRS if any(case.split("/")[1:] == [pair] for case in wanted)]
        return list(dict.fromkeys(side for pair in pairs for side in PAIRS[pair]))

    @staticmethod
    def measure(contest, wanted):
        servers = {}
        for name in contest.needed:
            contest.context.progress(f"server: filling {name}")
            servers[name] = Server(contest, name)
            servers[name].fill()
        for point in POINTS:
            own = [case for case in wanted if case.split("/")[0] == point]
            sides = Compared.servers(own)
            if not sides:
                continue
            contest.context.progress(f"server {point}")
            turns = take_turns(sides, lambda side: servers[side].turn(point, contest.plan.window_seconds), contest.plan.pairs, contest.plan.point_seconds)
            for case in own:
                ours, peer = PAIRS[case.split("/")[1]]
                yield Compared.row(case, turns[ours], turns[peer])

    @staticmethod
    def row(case, ours, theirs):
        def middle(turns, what):
            return median([turn[what] for turn in turns])

        row = row_of(case, [turn["cpu_us"] for turn in ours], [turn["cpu_us"] for turn in theirs], "us", rate_ratio=median([one["rate"] / other["rate"] for one, other in zip(ours, theirs)]))
        for what in ("rate", "p50_us", "p99_us", "p999_us", "hits", "read"):
            row[what], row["peer_" + what] = middle(ours, what), middle(theirs, what)
        return row

    @staticmethod
    def line(row):
        return (f"{row['ours']:6.2f} us a request, {row['ratio']:.2f} times the peer's +-{row['spread'] / 2:.0%}; "
                f"{row['rate']:>9,.0f}/s, {row['rate_ratio']:.2f} times; p99 {row['p99_us']:,.0f} us, {row['peer_p99_us']:,.0f} us; "
                f"read {row['read']:.2f}, {row['peer_read']:.2f}")

    @staticmethod
    def figures(row):
        name = row["case"].replace("/", "_")
        return {f"{name}_cpu_ratio": row["ratio"], f"{name}_rate_ratio": row["rate_ratio"]}


class Idle:
    """Memory for each connection on which nothing happens."""
    CASES = ["idle"]

    @staticmethod
    def measure(contest, _):
        ours, count = Server(contest, IDLE), contest.plan.idle_connections
        before = ours.resident_bytes()
        connections = [socket.create_connection(("127.0.0.1", ours.port)) for _ in range(count)]
        for connection in connections:
            connection.sendall(b"mn\r\n")
            if connection.recv(100) != b"MN\r\n":
                raise Failure("a connection is not answered")
        after = ours.resident_bytes()
        for connection in connections:
            connection.close()
        yield {"case": "idle", "ours": (after - before) / count, "peer": "", "ratio": "", "spread": "", "unit": "bytes", "resident_bytes": after}

    @staticmethod
    def line(row):
        return f"{row['ours']:,.0f} bytes a connection, {row['resident_bytes'] / MIB:,.0f} MiB in all"

    @staticmethod
    def figures(row):
        return {"idle_bytes": row["ours"], "idle_resident_bytes": row["resident_bytes"]}


class HitRate:
    """What a cache of ours has of what is asked for, beside memcached with as much memory, and lists."""
    CASES = [f"hitrate/{trace}" for trace in server_hitrate.TRACES]

    @staticmethod
    def measure(contest, wanted):
        for case in wanted:
            yield HitRate.row(contest, case)

    @staticmethod
    def row(contest, case):
        plan, trace = contest.plan, case.removeprefix("hitrate/")
        rates = {}
        for name in (CACHE, CACHE_PEER):
            contest.context.progress(f"server {case}: {name}")
            server = Server(contest, name)
            rates[name] = server_hitrate.hit_rate(server_hitrate.Client(server.port), trace, plan.hitrate_keys, plan.hitrate_requests)
            if name == CACHE:
                items = server.stat("curr_items")
            server.program.process.terminate()
            server.program.process.wait()
        (contest.context.folder / "cache").unlink()
        contest.context.progress(f"server {case}: lists")
        row = {"case": case, "ours": rates[CACHE], "peer": rates[CACHE_PEER], "ratio": rates[CACHE] / rates[CACHE_PEER], "spread": "", "unit": "of gets",
               "items": items}
        for name, most in (("lru_of_bytes", plan.hitrate_mib * MIB // (VALUE_BYTES + server_hitrate.KEY_BYTES)), ("lru_of_items", items)):
            row[name] = server_hitrate.hit_rate(server_hitrate.Lru(most), trace, plan.hitrate_keys, plan.hitrate_requests)
        return row

    @staticmethod
    def line(row):
        return (f"{row['ours']:.1%} of gets, memcached {row['peer']:.1%}, LRU lists of as many items {row['lru_of_items']:.1%}, "
                f"of as many bytes {row['lru_of_bytes']:.1%}")

    @staticmethod
    def figures(row):
        name = row["case"].replace("/", "_")
        return {f"{name}_ours": row["ours"], f"{name}_memcached": row["peer"], f"{name}_lru_of_items": row["lru_of_items"],
                f"{name}_lru_of_bytes": row["lru_of_bytes"]}


class Overload:
    """A server with ten times as much data as memory (server_overload.py)."""
    CASES = ["overload"]

    @staticmethod
    def measure(contest, _):
        server = Server(contest, OVERLOADED)
        contest.context.progress("server overload: filling")
        server.ask("fill", pipeline=32, keys=contest.plan.overload_keys)
        row, contest.series["requests a second"] = server_overload.measure(contest.context, contest.cleanup, server, contest.plan)
        yield row

    @staticmethod
    def line(row):
        return (f"p99.9 {row['ours']:,.0f} us, {row['ratio']:.2f} times fio's +-{row['spread'] / 2:.0%}, at most {row['max_us']:,.0f} us, "
                f"fio {row['peer_max_us']:,.0f}; busy {row['busy_p999_us']:,.0f} us, at most {row['busy_max_us']:,.0f}; {row['rate']:,.0f}/s, {row['rate_least']:,.0f} in the worst window; memory {row['memory_share']:.1%}")

    @staticmethod
    def figures(row):
        return {"overload_tail_ratio": row["ratio"], "overload_max_ratio": row["max_us"] / row["peer_max_us"],
                "overload_memory_share": row["memory_share"], "overload_per_second": row["rate"]}


KINDS = (Compared, Idle, HitRate, Overload)  # in the order in which they are measured
LONG = (*HitRate.CASES, *Overload.CASES)  # only for who asks for them


def run(context):
    plan = Plan(context)
    wanted = [name for name in context.cases.chosen(case for kind in KINDS for case in kind.CASES) if context.cases or name not in LONG]
    _allow_descriptors(plan.idle_connections + 200)
    missing = context.kept.missing(wanted)
    with Cleanup() as cleanup, Programs() as programs:
        contest = Contest(context, plan, programs, cleanup, Compared.servers(missing))
        _check(contest)
        for kind in KINDS:
            own = [case for case in missing if case in kind.CASES]
            for row in kind.measure(contest, own) if own else ():
                context.kept[row["case"]] = row, contest.series
                context.say(f"{row['case']:18} {kind.line(row)}")
    rows, summary, series = [], {}, {}
    for kind in KINDS:
        for case in (case for case in wanted if case in kind.CASES):
            row, own_series = context.kept[case]
            rows.append(row)
            summary.update(kind.figures(row))
            series |= own_series
    result = {
        "parameters": {"keys": plan.keys, "value_bytes": VALUE_BYTES, "pairs": plan.pairs, "point_seconds": plan.point_seconds, "window_seconds": plan.window_seconds,
                       "extstore_mib": plan.extstore_mib, "group_mib": plan.group_mib, "idle_connections": plan.idle_connections,
                       "memcached": context.output(["memcached", "--version"]).strip(), "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": summary, "series": series,
    }
    compared = [row for row in rows if row["case"] in Compared.CASES]
    bars = {"title": "the server beside memcached", "subtitle": "ours over the peer's: CPU for a request (less is better), requests a second (more)",
            "cases": [row["case"] for row in compared],
            "series": {"CPU": [row["ratio"] for row in compared], "requests a second": [row["rate_ratio"] for row in compared]}}
    if series:
        bars["lines"] = {"title": "requests a second with ten times as much data as memory", "seconds": {name: 1 for name in series}, "series": series}
    return result, bars
