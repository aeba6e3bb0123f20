"""YCSB's core workloads: the server, in memory and on the disk, beside memcached and Redis."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import time

from devices import Cleanup
from lockstep import Failure, Programs, median, row_of, take_turns
from memory_group import MemoryGroup, Unavailable
from server_process import CLIENT_CPU, ServerProcess, cpus, free_port

DOC = """\
Operations a second of YCSB's core workloads (site.ycsb:core 0.17.0): A reads and updates alike, B reads 95 of 100, C reads, F reads or reads, changes and
writes, D reads what was inserted last and inserts 5 of 100; keys by Zipf's law but for D. A record is one value of 1 KiB, an update writes it whole.
One CPU is the server's, another one YCSB's, whose 64 threads (of the 256 that a server with 10 cores was measured with) have a connection
each: more is better, but what YCSB itself can do on its CPU bounds it; `cpu_us` is what the server takes for an operation: less is better. `ours`
speaks the peer's protocol: memcached's or Redis'. `extstore`: a server with memory for a fourth of the records, beside memcached with its own tier on the disk and as much memory, the kernel's page cache
included; `disk`: the same beside memcached with all in memory: that is no contest, it says what the disk costs. `clients/CASE/THREADS`: A with other numbers of client threads. Our server has on the disk what it
has acknowledged; memcached has nothing there, or with extstore what does not fit its memory. Latencies in microseconds. `failed`: parts of operations that found nothing or were refused: extstore may lose items.
"""
WORKLOADS = {  # in the order in which they run: D inserts
    "A": {"readproportion": 0.5, "updateproportion": 0.5, "requestdistribution": "zipfian"},
    "B": {"readproportion": 0.95, "updateproportion": 0.05, "requestdistribution": "zipfian"},
    "C": {"readproportion": 1, "updateproportion": 0, "requestdistribution": "zipfian"},
    "F": {"readproportion": 0.5, "updateproportion": 0, "readmodifywriteproportion": 0.5, "requestdistribution": "zipfian"},
    "D": {"readproportion": 0.95, "updateproportion": 0, "insertproportion": 0.05, "requestdistribution": "latest"},
}
# What runs against what, and how it is spoken to.
TIER = "extstore"  # of memcached, on the disk
CASES = {"memcached": ("ours", "memcached", "MemcacheDb"), "redis": ("ours", "redis", "RespDb"), TIER: ("ours on disk", TIER, "MemcacheDb"), "disk": ("ours on disk", "memcached", "MemcacheDb")}
# The tier loses items and refuses some while it is filled, until its memory is parted as it should be.
FILLS_MOST, FILL_THREADS, FILL_PAUSE_SECONDS, FILL_CHECK_SECONDS, MISSED_MOST = 8, 4, 1, 2, 0.01
FAILED_MOST = 0.1  # of a turn's operations, of the tier alone
GROUP_REST_MIB = 8  # of a group, for what the kernel counts besides a process's own memory: sockets, page tables
RECORD_BYTES = 1100  # with its fields' names
CLIENTS_WORKLOAD = "A"  # that is gone through by client threads


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.records = 20_000 if quick else 1_000_000
        self.threads = 16 if quick else 64
        self.clients, self.clients_cases = ((1, 4), (TIER,)) if quick else ((1, 4, 16, 128, 256), ("memcached", TIER))
        self.pairs = context.pairs or (1 if quick else 2)
        self.case_seconds = 40
        self.seconds = 1 if quick else 5
        data_mib = self.records * RECORD_BYTES >> 20
        self.memory_mib = 2 * data_mib + 256
        self.disk_memory_mib = max(32, data_mib // 4)
        self.extstore_mib = 8 if quick else 160  # for items in memory and the heads of all others; the page cache comes besides

    def turns(self):
        """{name of a case: (what runs against what, workload, client threads)}, in the order in which they run: those that insert are the last."""
        clients = {f"clients/{case}/{threads}": (case, CLIENTS_WORKLOAD, threads) for case in self.clients_cases for threads in self.clients}
        return clients | {f"{workload}/{case}": (case, workload, self.threads) for workload in WORKLOADS for case in CASES}


class Server(ServerProcess):
    def __init__(self, contest, name):
        self.contest, self.records = contest, contest.plan.records
        self.ports = {"MemcacheDb": free_port(), "RespDb": free_port()}
        super().__init__(contest.programs, name, self._command(name), self.ports["RespDb" if name == "redis" else "MemcacheDb"], contest.group() if name == TIER else None)

    def _command(self, name):
        plan, context = self.contest.plan, self.contest.context
        memcache, resp = self.ports["MemcacheDb"], self.ports["RespDb"]
        if name in ("memcached", TIER):
            user = ["-u", "root"] if os.geteuid() == 0 else []
            tier = ["-o", f"ext_path={context.folder / 'ext'}:{2 * plan.memory_mib}M,ext_item_size=512,slab_automove=2"] if name == TIER else []
            return ["memcached", *user, "-p", memcache, "-U", 0, "-l", "127.0.0.1", "-t", 1, "-m", plan.extstore_mib if tier else plan.memory_mib, *tier]
        if name == "redis":
            return ["redis-server", "--port", resp, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        memory_mib = plan.memory_mib if name == "ours" else plan.disk_memory_mib
        return [context.spillway, "serve", "--storage", context.folder / name.replace(" ", "-"), "--capacity", f"{2 * plan.memory_mib}M",
                "--memory", f"{memory_mib}M", "--memcache", memcache, "--resp", resp, "--threads", 1]

    def run(self, database, what, threads, words):
        """What YCSB has measured with so many client threads, by operation and figure."""
        context, plan = self.contest.context, self.contest.plan
        told = context.folder / "measured.json"
        told.unlink(missing_ok=True)  # of the run before
        words = {"recordcount": self.records, "workload": "site.ycsb.workloads.CoreWorkload", "host": "127.0.0.1", "port": self.ports[database],
                 "writeallfields": "true", "measurementtype": "hdrhistogram", "hdrhistogram.percentiles": "50,95,99,99.9",
                 "exporter": "site.ycsb.measurements.exporter.JSONArrayMeasurementsExporter", "exportfile": told, **words}
        command = ["taskset", "-c", cpus()[CLIENT_CPU], "java", "-Xmx1g", "-XX:+UseSerialGC", "-cp", self.contest.classes, "site.ycsb.Client", what,
                   "-threads", threads, "-db", f"spillway.{database}", *(word for name, value in words.items() for word in ("-p", f"{name}={value}"))]
        before = self.cpu_us()
        said = context.output(command)
        # YCSB ends well whatever its threads throw, and goes on without those that find no connection.
        thrown = [line for line in said.splitlines() if re.match(r"[\w.$]+(Exception|Error)\b", line)]
        if thrown or not told.exists():
            raise Failure(f"{self.name}: YCSB ended early: {(thrown or said.splitlines() or ['no message'])[0]}")
        measured = {(each["metric"], each["measurement"]): each["value"] for each in json.loads(told.read_text())}
        wrong = {f"{metric} {name}": value for (metric, name), value in measured.items() if name.startswith("Return=") and name != "Return=OK"}
        if wrong and self.name != TIER:
            raise Failure(f"{self.name}: not all operations succeeded: {wrong}")
        operations = measured[("OVERALL", "Throughput(ops/sec)")] * measured[("OVERALL", "RunTime(ms)")] / 1000
        return measured, (self.cpu_us() - before) / max(1, operations)

    def fill(self):
        """Till all is there, in the tier nearly all."""
        if self.name != TIER:
            return self._load("RespDb" if self.name == "redis" else "MemcacheDb", self.contest.plan.threads, {})
        for _ in range(FILLS_MOST):
            self._load("MemcacheDb", FILL_THREADS, {"core_workload_insertion_retry_limit": 100, "core_workload_insertion_retry_interval": 1})
            time.sleep(FILL_PAUSE_SECONDS)
            measured, _ = self.run("MemcacheDb", "-t", self.contest.plan.threads, {"operationcount": 1 << 30, "maxexecutiontime": FILL_CHECK_SECONDS, **WORKLOADS["C"], "requestdistribution": "uniform"})
            if failed_of(measured) <= MISSED_MOST:
                return None
        raise Failure(f"{self.name} has lost {failed_of(measured):.0%} of its records after {FILLS_MOST} fills")

    def _load(self, database, threads, words):
        measured, _ = self.run(database, "-load", threads, words)
        loaded = measured.get(("INSERT", "Return=OK"), 0)
        if loaded != self.records:
            raise Failure(f"{self.name}: {loaded} of {self.records} records were loaded")

    def turn(self, database, workload, threads):
        measured, cpu_us = self.run(database, "-t", threads, {"operationcount": 1 << 30, "maxexecutiontime": self.contest.plan.seconds, **WORKLOADS[workload]})
        if not cpu_us:
            raise Failure(f"{self.name} took no CPU time that can be measured; measure on a machine that does nothing else")
        # What comes next inserts behind these.
        self.records += measured.get(("INSERT", "Return=OK"), 0)
        turn = {"rate": measured[("OVERALL", "Throughput(ops/sec)")], "cpu_us": cpu_us, "failed": failed_of(measured)}
        if turn["failed"] > FAILED_MOST:
            raise Failure(f"{self.name}: {turn['failed']:.0%} of the operations failed")
        for operation in ("READ", "UPDATE", "INSERT"):
            for name, figure in (("p50", "50thPercentileLatency(us)"), ("p95", "95thPercentileLatency(us)"),
                                 ("p99", "99thPercentileLatency(us)"), ("p999", "99.9PercentileLatency(us)")):
                if (operation, figure) in measured:
                    turn[f"{operation.lower()}_{name}_us"] = measured[(operation, figure)]
        return turn


def failed_of(measured):
    """The part of what YCSB has measured that found nothing or was refused."""
    returned = {name: value for name, value in measured.items() if name[1].startswith("Return=")}
    return sum(value for (_, name), value in returned.items() if name != "Return=OK") / max(1, sum(returned.values()))


class Contest:
    def __init__(self, context, plan, programs, cleanup):
        self.context, self.plan, self.programs, self.cleanup = context, plan, programs, cleanup
        cpus()
        for program in ("memcached", "redis-server", "java", "mvn"):
            if not shutil.which(program):
                raise Failure(f"{program} is not there; install it", 2)
        output = context.folder / "ycsb"
        context.build("YCSB", ["mvn", "-q", "-B", f"-Doutput={output}", "package"], cwd=pathlib.Path(__file__).resolve().parents[1] / "ycsb")
        self.classes = f"{output}/classes:{output}/dependency/*"

    def group(self):
        """Of the tier: the page cache counts there, which our server does without."""
        try:
            group = self.cleanup.acquire(lambda: MemoryGroup.create(self.plan.disk_memory_mib + GROUP_REST_MIB << 20, f"bench-{TIER}"), MemoryGroup.remove)
        except Unavailable as reason:
            raise Failure(f"{TIER}: {reason}") from None
        group.forbid_swap()
        return group


@contextlib.contextmanager
def tier_may_fail(notes, what):
    """What memcached cannot do here with its tier is a note: it needs a memory limit, and loses items."""
    try:
        yield
    except Failure as failure:
        if not str(failure).startswith(TIER):
            raise
        notes.append(f"{what}{failure}")


def _row(name, ours, theirs):
    def middle(turns, what):
        return median([turn[what] for turn in turns])

    row = row_of(name, [turn["rate"] for turn in ours], [turn["rate"] for turn in theirs], "operations a second",
                 cpu_ratio=median([one["cpu_us"] / other["cpu_us"] for one, other in zip(ours, theirs)]))
    for what in ours[0]:
        if what != "rate":
            row[what], row["peer_" + what] = middle(ours, what), middle(theirs, what)
    return row


def _measure(context, plan, turns):
    """Keeps a row of each of these turns of a plan. Returns notes."""
    notes = []
    with Cleanup() as cleanup, Programs() as programs:
        contest = Contest(context, plan, programs, cleanup)
        servers = {}
        for name in dict.fromkeys(side for case in CASES if any(each == case for each, _, _ in turns.values()) for side in CASES[case][:2]):
            context.progress(f"ycsb: filling {name}")
            with tier_may_fail(notes, f"nothing of {TIER} here: "):
                server = Server(contest, name)
                server.fill()
                servers[name] = server
        for name, (case, workload, threads) in turns.items():
            ours, peer, database = CASES[case]
            if peer not in servers:
                continue
            context.progress(f"ycsb {name}")
            measured = None
            with tier_may_fail(notes, f"{name}: "):
                measured = take_turns((ours, peer), lambda side: servers[side].turn(database, workload, threads), plan.pairs, plan.case_seconds)
            if not measured:
                continue
            row = _row(name, measured[ours], measured[peer])
            context.kept[name] = row
            context.say(f"{name:20} {row['ours']:>9,.0f}/s, {row['ratio']:.2f} times the peer's +-{row['spread'] / 2:.0%}; CPU {row['cpu_us']:.1f} us, "
                        f"{row['cpu_ratio']:.2f} times; read p99 {row['read_p99_us']:,.0f} us, {row['peer_read_p99_us']:,.0f} us")
    return notes


def run(context):
    plan = Plan(context)
    cases = plan.turns()
    wanted = context.cases.chosen(cases)
    missing = context.kept.missing(wanted)
    notes = _measure(context, plan, {name: cases[name] for name in missing}) if missing else []
    rows = [context.kept[name] for name in wanted if name in context.kept]
    if not rows:
        raise Failure(f"ycsb: {notes[0]}", 2)
    summary = {}
    for row in rows:
        name = row["case"].replace("/", "_").lower()
        summary.update({f"{name}_rate_ratio": row["ratio"], f"{name}_cpu_ratio": row["cpu_ratio"]})
    versions = {"memcached": context.output(["memcached", "--version"]).strip(), "redis": context.output(["redis-server", "--version"]).split()[2]}
    result = {"parameters": {"records": plan.records, "threads": plan.threads, "clients": list(plan.clients), "pairs": plan.pairs, "case_seconds": plan.case_seconds, "seconds_each": plan.seconds, "memory_mib": plan.memory_mib,
                             "disk_memory_mib": plan.disk_memory_mib, "extstore_mib": plan.extstore_mib, **versions, "storage": str(context.storage), "quick": context.quick},
              "rows": rows, "summary": summary, "notes": notes}
    bars = {"title": "YCSB's core workloads", "subtitle": "ours over the peer's: operations a second (more is better), CPU for one (less)",
            "cases": [row["case"] for row in rows],
            "series": {"operations a second": [row["ratio"] for row in rows], "CPU": [row["cpu_ratio"] for row in rows]}}
    return result, bars
