"""The key-value store beside fio and RocksDB: gets and puts a second, their CPU time, and what overwriting costs."""
import json
import math
import os
import pathlib
import resource
import shutil
import subprocess

from device import BATCH, ENGINES, FIO
from devices import Cleanup, file_of, fill_random, why_no_zram, zram
from lockstep import Failure, geometric_mean, in_turn, median, spread

DOC = """\
Operations a second on the key-value store (ours), and as many I/Os of the size of its records by fio, or operations on RocksDB, at the
same depth (peer): more is better. `_us` beside them are CPU time of an operation, and latencies. `sync` is puts that wait for the device,
beside 64 times what one writer of fio with fdatasync does; `overwrite` bytes written by the device for each byte of keys and values,
beside what collection from the oldest segment on would write: less is better.
"""
MIB = 1 << 20
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "kv"
ROCKSDB_HEADER = pathlib.Path("/usr/include/rocksdb/db.h")
FLAGS = ["-O2", "-std=c++20", "-pthread"]
SRC = SOURCES.parent.parent / "src"
MEMORY = pathlib.Path("/dev/shm")  # a file in memory; direct, as on a disk
# How the store is used, and fio beside it: the scheme of a device string, tasks of one worker or threads, fio's engine.
BACKENDS = {"uring": ("uring", "tasks", "uring"), "aio": ("aio", "tasks", "aio"), "threads": ("file", "threads", "file")}
MIXES = {"get": ["--rw=randread"], "put": ["--rw=randwrite"], "update": ["--rw=randwrite"],
         "mixed": ["--rw=randrw", "--rwmixread=70", "--unified_rw_reporting=mixed"]}
# What is stored: bytes of grains and values, and fio's words for I/Os of the same size. 40 bytes of header and up to 32 of key come on top.
RECORDS = {"4K": (4096, 4024, ["--bs=4096"]), "4.5K": (512, 4096, ["--bs=4608", "--blockalign=512"])}
RECORD_BYTES_MOST = 4608
SYNC_WRITERS = 64
THETAS = {"uniform": 0, "zipfian": 0.99}
IDLE_TURNS = 3
RUN_SECONDS = 3600
# uDepot's own test program, beside which nothing of this is measured.
UDEPOT_NOTE = ("uDepot by its own test program (udepot-test, 4-KiB records on tmpfs, one worker, a loaded machine) took 2.5 to 3.4 us of CPU time "
               "for a GET with AIO and 4.6 to 4.8 for a PUT, 4.8 to 16 and 6.7 to 17 with io_uring: not measured here")


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.quick = quick
        self.data_bytes = (192 if quick else 1024) * MIB
        self.keys = 8 * 1024 if quick else 64 * 1024
        self.depths = [1, 32] if quick else [1, 4, 16, 64, 128]
        self.pairs = context.pairs or (2 if quick else 3)
        self.window_seconds = 0.3 if quick else 1.0
        self.overwrite_bytes = (96 if quick else 1024) * MIB
        self.overwrite_rounds = 1.5 if quick else 10

    def cases(self, device):
        """(backend, operation, record, depth)"""
        operations = ["get", "put"] if self.quick else ["get", "put", "update", "mixed"]
        backends = {"disk": ["uring"] if self.quick else list(BACKENDS), "zram": ["uring"] if self.quick else ["uring", "threads"],
                    "ram": ["aio"] if self.quick else ["aio", "uring"]}[device]
        if device == "ram":
            operations = ["get", "put"]
        depths = self.depths if device == "disk" or not self.quick else [32]
        cases = [(backend, operation, "4K", depth) for backend in backends for operation in operations for depth in depths]
        if device == "disk" and not self.quick:
            cases += [("uring", operation, "4.5K", depth) for operation in ("get", "put") for depth in (16, 64)]
        return cases

    def rocksdb_cases(self):
        """(operation, depth)"""
        return [("get", 32)] if self.quick else [("get", 16), ("get", 64), ("put", 16), ("put", 64), ("mixed", 16), ("sync", SYNC_WRITERS)]


def fifo_amplification(slots, keys, theta):
    """Writes for each write of a user when always the oldest segment is collected, for `keys` live records in room for `slots`.

    Between two collections of a segment everything is written once: W writes of users and the copies, together `slots`. A record that
    users write with probability p each time has, when its segment's turn comes, not been written for W of them, and is copied with
    probability exp(-pW). It is written n times in between, of which pW are users' and n exp(-pW) copies:

        n = p W / (1 - exp(-p W)),    and the sum of n over all keys is `slots`

    The left side grows with W, so that W is found by halving; the amplification is slots / W. With all p = 1 / keys, u = keys / slots and
    v = exp(-W / keys), the share of what is alive in the oldest segment, this is v = exp(-(1 - v) / u), the equation of a log that is
    cleaned in turn (Menon and Stockmeyer; LRU and FIFO of Desnoyers). Greedy collection takes the segment with the least alive: under
    uniform writes that is never worse than the oldest, and as segments get large their shares get alike and it comes to the same. So
    this is the bound of greedy collection for uniform writes. For others it is FIFO's, not a bound.
    """
    # Ranks of about the same probability are counted as one: (how many, p).
    groups, first = [], 1
    total = sum(i ** -theta for i in range(1, keys + 1))
    while first <= keys:
        last = min(keys, first + first // 64)
        groups.append((last - first + 1, ((first + last) / 2) ** -theta / total))
        first = last + 1

    def written(user_writes):
        return sum(count * p * user_writes / -math.expm1(-p * user_writes) for count, p in groups)

    low, high = 0.0, float(slots)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle == 0 or written(middle) < slots else (low, middle)
    return slots / high


def run_program(words, what):
    """Its output as an object, and microseconds of CPU time of the whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
    ended = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment,
                           timeout=RUN_SECONDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode != 0:
        lines = (ended.stderr or ended.stdout).strip().splitlines()
        raise Failure(f"kv {what}: {lines[-1] if lines else words[0] + ' failed'}")
    cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(ended.stdout[ended.stdout.index("{"):]), 1e6 * cpu_seconds


class Contest:
    """Ours on one place, fio on another of the same kind and size."""

    def __init__(self, load, plan, place, peer_place):
        self.load, self.plan, self.place, self.peer_place = load, plan, place, peer_place
        self.filled = None  # what the store on `place` has been filled with, if it is there
        self.idle_us = 0.0

    def ours(self, operation, backend="uring", record="4K", depth=1, **settings):
        scheme, by, _ = BACKENDS[backend]
        grain, value, _ = RECORDS[record]
        settings = {"value": value, "depth": depth, "by": by, "seconds": self.plan.window_seconds, **settings}
        if settings.get("make") or operation in ("fill", "overwrite"):
            settings = {"grain": grain, "capacity": self.plan.data_bytes, **settings}
        words = [self.load, f"{scheme}:{self.place}", operation, *(f"{name}={value}" for name, value in settings.items())]
        answer = run_program(words, operation)[0]
        if answer.get("found", 0) != answer.get("gets", 0):
            raise Failure(f"kv: of {answer['gets']} keys only {answer['found']} were found")
        return answer

    def turn(self, operation, backend, record, depth, **settings):
        """One turn of ours: gets on a store that is there, all else on a new one, so that it is not full."""
        if operation == "get":
            if self.filled != record:
                self.ours("fill", record=record, depth=32, keys=self.plan.keys)
                self.filled = record
            return self.ours(operation, backend, record, depth, keys=self.plan.keys)
        self.filled = None
        keys = 0 if operation == "put" else self.plan.keys
        room = self.plan.data_bytes * 8 // 10 // RECORD_BYTES_MOST - keys
        return self.ours(operation, backend, record, depth, make=1, keys=keys, most=room, **settings)

    def fio(self, operation, backend, record, depth, batched):
        """I/Os a second, and CPU time for each."""
        engine = BACKENDS[backend][2]
        words = [*FIO, *ENGINES[engine], *MIXES[operation], *RECORDS[record][2], f"--filename={self.peer_place}"]
        words += [f"--numjobs={depth}", "--group_reporting=1"] if engine == "file" else [f"--iodepth={depth}"]
        if batched:
            words += BATCH.format(depth).split()
        return self.fio_rate(words, operation)

    def fio_sync(self):
        """Writes a second of one writer, each of which waits for the device."""
        words = [*FIO, *ENGINES["file"], "--rw=randwrite", "--bs=4096", "--fdatasync=1", f"--filename={self.peer_place}"]
        return self.fio_rate(words, "sync")[0]

    def fio_rate(self, words, what):
        answer, process_us = run_program([*words, f"--size={self.plan.data_bytes}", "--time_based",
                                          f"--runtime={round(self.plan.window_seconds * 1000)}ms"], what)
        [done] = [part for part in map(answer["jobs"][0].get, ("read", "write", "mixed")) if part and part["total_ios"]]
        return done["iops"], max(process_us - self.idle_us, 0) / done["total_ios"]

    def find_idle(self):
        """What fio takes besides its I/O: it measures the machine first."""
        words = [*FIO, *ENGINES["file"], "--rw=randread", "--bs=4096", "--size=4096", f"--filename={self.peer_place}"]
        self.idle_us = median([run_program(words, "fio")[1] for _ in range(IDLE_TURNS)])

    def measure(self, name, case):
        operation, depth = case[1], case[3]
        # One at a time is no batch, nor are threads.
        sides = ["ours", "one"] if depth == 1 or case[0] == "threads" else ["ours", "one", "batch"]
        answers, peers = [], {side: [] for side in sides[1:]}
        for number in range(self.plan.pairs):
            for side in in_turn(sides, number):
                if side == "ours":
                    answers.append(self.turn(operation, case[0], *case[2:]))
                else:
                    peers[side].append(self.fio(operation, case[0], *case[2:], side == "batch"))
        best = max(peers, key=lambda side: median([rate for rate, _ in peers[side]]))
        row = make_row(name, answers, [rate for rate, _ in peers[best]])
        return {**row, "best_peer": best, "peer_cpu_us": min(median([cpu for _, cpu in turns]) for turns in peers.values())}


def make_row(name, answers, peer_rates):
    """Of answers of ours and rates of a peer, pair by pair."""
    ratios = [answer["per_second"] / rate for answer, rate in zip(answers, peer_rates)]
    row = {"case": name, "ours": median([answer["per_second"] for answer in answers]), "peer": median(peer_rates), "ratio": median(ratios),
           "spread": spread(ratios), "unit": "operations/s"}
    row["cpu_us"] = median([answer["user_us"] + answer["system_us"] for answer in answers])
    for figure in ("user_us", "system_us", "reads", "writes", "allocations"):
        row[figure] = median([answer[figure] for answer in answers])
    times = "get_ns" if answers[0]["gets"] else "put_ns"
    for figure in ("p50", "p99", "p999", "max"):
        row[f"{figure}_us"] = median([answer[times][figure] / 1e3 for answer in answers])
    return row


def measure_sync(contest):
    """64 puts at a time, each there for good when it returns. The peer is 64 times one writer that waits for the device each time."""
    rows = []
    for backend in ("uring", "threads"):
        answers, rates = [], []
        for number in range(contest.plan.pairs):
            for side in in_turn(["ours", "fio"], number):
                if side == "ours":
                    answers.append(contest.turn("put", backend, "4K", SYNC_WRITERS, durability="sync"))
                else:
                    rates.append(SYNC_WRITERS * contest.fio_sync())
        rows.append(make_row(f"sync/{backend}/{SYNC_WRITERS}", answers, rates))
    return rows


class RocksDb:
    """RocksDB under the same load, by as many threads as ours has operations at a time."""

    def __init__(self, context, plan):
        self.plan, self.folder = plan, context.folder / "rocksdb"
        self.program = context.folder / "rocksdb-load"
        context.build("RocksDB's load", [context.native_cxx, *FLAGS, f"-I{SRC}", SOURCES / "rocksdb_load.cc", "-o", self.program, "-lrocksdb"])
        self.filled = False

    def run(self, operation, depth, **settings):
        words = {"value": RECORDS["4K"][1], "depth": depth, "seconds": self.plan.window_seconds, **settings}
        words = [self.program, self.folder, operation, *(f"{name}={value}" for name, value in words.items())]
        answer = run_program(words, f"RocksDB, {operation}")[0]
        if answer.get("found", 0) != answer.get("gets", 0):
            raise Failure(f"kv: of {answer['gets']} keys RocksDB found only {answer['found']}")
        return answer

    def turn(self, operation, depth, **settings):
        if operation != "get":
            self.filled = False
            return self.run(operation, depth, make=1, keys=0 if operation == "put" else self.plan.keys, **settings)
        if not self.filled:
            self.run("fill", 32, keys=self.plan.keys)
            self.filled = True
        return self.run("get", depth, keys=self.plan.keys)

    def measure(self, contest, operation, depth):
        """`sync` is puts that wait for the device."""
        settings = {"durability": "sync"} if operation == "sync" else {}
        operation = "put" if settings else operation
        answers = {"ours": [], "rocksdb": []}
        for number in range(self.plan.pairs):
            for side in in_turn(answers, number):
                answers[side].append(contest.turn(operation, "uring", "4K", depth, **settings) if side == "ours"
                                     else self.turn(operation, depth, **settings))
        peer_rates = [answer["per_second"] for answer in answers["rocksdb"]]
        peer_cpu_us = median([answer["user_us"] + answer["system_us"] for answer in answers["rocksdb"]])
        name = f"rocksdb/{'sync' if settings else operation}/{depth}"
        return {**make_row(name, answers["ours"], peer_rates), "best_peer": "threads", "peer_cpu_us": peer_cpu_us}


def measure_overwrite(contest, name, plan):
    """What the device writes for each byte, once it has written half of what it will, beside fifo_amplification()."""
    answer = contest.ours("overwrite", depth=32, capacity=plan.overwrite_bytes, rounds=plan.overwrite_rounds, theta=THETAS[name])
    contest.filled = None
    bound = fifo_amplification(answer["slots"], answer["keys"], THETAS[name])
    row = make_row(f"overwrite/{name}", [answer], [1.0])
    row.update({"ours": answer["late_amplification"], "peer": bound, "ratio": answer["late_amplification"] / bound, "unit": "bytes/byte",
                "per_second": answer["per_second"], "amplification": answer["amplification"]})
    return row, {"seconds": answer["series_seconds"], "puts_per_second": answer["series"]}


def places(context, plan, device, cleanup):
    """Two places of a kind, filled: for ours and for fio. Or why there are none."""
    if device == "disk":
        made = [file_of(cleanup, context.folder / f"data{i}", plan.data_bytes) for i in range(2)]
    elif device == "zram":
        if why_no_zram():
            return why_no_zram()
        made = [zram(cleanup, plan.data_bytes) for _ in range(2)]
    else:
        if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < 3 * plan.data_bytes:
            return f"{MEMORY} has no room for it"
        made = [file_of(cleanup, MEMORY / f"{context.folder.name}-{i}", plan.data_bytes) for i in range(2)]
    for place in made:
        fill_random(place, plan.data_bytes)
    return made


def summarise(rows):
    """What targets are set for. CPU time is that at the greatest depth on the file in memory."""
    summary = {}
    groups = {}
    for row in rows:
        words = row["case"].split("/")
        if words[0] in ("sync", "rocksdb", "overwrite"):
            summary[row["case"].replace("/", "_") + ("_p999_us" if words[0] == "overwrite" else "_ratio")] = (
                row["p999_us"] if words[0] == "overwrite" else row["ratio"])
            if words[0] == "overwrite":
                summary[row["case"].replace("/", "_") + "_amplification"] = row["ours"]
                summary[row["case"].replace("/", "_") + "_ratio"] = row["ratio"]
            continue
        groups.setdefault((words[2], words[0], words[1], words[3]), []).append(row)
        if words[0] == "ram" and words[3] == "4K":
            for figure in ("user_us", "cpu_us"):
                summary[f"{words[2]}_{figure}_{words[1]}"] = row[figure]
    for (operation, device, backend, record), own in groups.items():
        name = f"{operation}_ratio_{device}_{backend}" + ("" if record == "4K" else f"_{record}")
        summary[name] = geometric_mean([row["ratio"] for row in own])
    for operation in ("get", "put"):
        own = [row for key, group in groups.items() if key[0] == operation for row in group]
        if own:
            summary[f"ios_per_{operation}"] = max(row["reads"] + row["writes"] for row in own)
            summary[f"allocations_per_{operation}"] = max(row["allocations"] for row in own)
    return summary


class Run:
    """Which cases are wanted, and what they have given."""

    def __init__(self, context):
        self.context, self.plan = context, Plan(context)
        if not shutil.which("fio"):
            raise Failure("fio is not there; install it", 2)
        self.load = context.spillway.parent.parent / "libexec/spillway/kv-load"
        if not self.load.exists():
            raise Failure(f"{self.load} is not there; build or install Spillway completely", 2)
        self.rows, self.notes, self.series = [], [], {}

    def wanted(self, name):
        return not self.context.cases or any(name.startswith(start) for start in self.context.cases)

    def add(self, *rows):
        for row in rows:
            self.rows.append(row)
            self.context.say(f"{row['case']:24} {row['ours']:>11,.5g} {row['unit']}, {row['ratio']:.2f} times the peer's +-{row['spread'] / 2:.0%}; "
                             f"CPU {row['user_us']:.2f} + {row['system_us']:.2f} us; p99.9 {row['p999_us']:,.0f} us")

    def on(self, device, cleanup):
        cases = [(f"{device}/{'/'.join(map(str, case))}", case) for case in self.plan.cases(device)]
        cases = [(name, case) for name, case in cases if self.wanted(name)]
        peers = [f"rocksdb/{operation}/{depth}" for operation, depth in self.plan.rocksdb_cases()]
        others = [name for name in ["sync", *peers, *(f"overwrite/{name}" for name in THETAS)] if device == "disk" and self.wanted(name)]
        if not cases and not others:
            return
        self.context.progress(f"kv {device}: filling it with random data")
        made = places(self.context, self.plan, device, cleanup)
        if isinstance(made, str):
            self.notes.append(f"nothing on {device}: {made}")
            return
        contest = Contest(self.load, self.plan, *made)
        contest.find_idle()
        for name, case in cases:
            self.context.progress(f"kv {name}")
            self.add(contest.measure(name, case))
        self.beside(contest, others)

    def beside(self, contest, names):
        """What is measured on the disk alone."""
        rocksdb = None
        for name in names:
            self.context.progress(f"kv {name}")
            kind, *words = name.split("/")
            if kind == "sync":
                self.add(*measure_sync(contest))
            elif kind == "overwrite":
                row, self.series[name] = measure_overwrite(contest, words[0], self.plan)
                self.add(row)
            elif ROCKSDB_HEADER.exists():
                rocksdb = rocksdb or RocksDb(self.context, self.plan)
                self.add(rocksdb.measure(contest, words[0], int(words[1])))
            elif not any("RocksDB" in note for note in self.notes):
                self.notes.append("nothing of RocksDB: install librocksdb-dev")


def run(context):
    doing = Run(context)
    for device in ("disk", "zram", "ram"):
        with Cleanup() as cleanup:
            doing.on(device, cleanup)
    if not doing.rows and not doing.notes:
        raise Failure("kv has no such case; they begin with disk/, zram/, ram/, sync, rocksdb/ and overwrite/", 2)
    if any(row["case"].startswith("ram/") for row in doing.rows):
        doing.notes.append(UDEPOT_NOTE)
    plan, rows = doing.plan, doing.rows
    result = {
        "parameters": {"data_bytes": plan.data_bytes, "keys": plan.keys, "records": {name: record[:2] for name, record in RECORDS.items()},
                       "pairs": plan.pairs, "window_seconds": plan.window_seconds, "fio_flags": " ".join(FIO[2:]),
                       "overwrite_bytes": plan.overwrite_bytes, "overwrite_rounds": plan.overwrite_rounds,
                       "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": summarise(rows), "notes": doing.notes, "series": doing.series,
    }
    rated = [row for row in rows if not row["case"].startswith("overwrite")]
    bars = {"title": "key-value store: operations a second", "subtitle": "over fio's I/Os, or RocksDB's operations; more is better",
            "cases": [row["case"] for row in rated], "series": {"over the peer": [row["ratio"] for row in rated]}}
    if doing.series:
        bars["lines"] = {"title": "puts a second while the store is overwritten",
                         "seconds": {name: own["seconds"] for name, own in doing.series.items()},
                         "series": {name: own["puts_per_second"] for name, own in doing.series.items()}}
    return result, bars
