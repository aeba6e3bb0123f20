"""The key-value store beside fio and RocksDB: gets and puts a second, their CPU time, and what overwriting costs."""
import math
import os
import pathlib
import shutil

import kv_drives
from device import FIO
from devices import Cleanup, file_of, fill_random, why_no_zram, zram
from kv_contest import BACKENDS, RECORDS, Contest, make_row, run_program
from lockstep import Failure, geometric_mean, median, row_of, take_turns
from rocksdb import LOAD_FLAGS, Library

DOC = """\
Operations a second on the key-value store (ours), and as many I/Os of the size of its records by fio, or operations on RocksDB, at the
same depth (peer): more is better. `_us` beside them are CPU time of an operation, and latencies. `sync` is puts that wait for the device,
beside 64 times what one writer of fio with fdatasync does, and beside 64 such writers; `overwrite` bytes written by the device for each
byte of keys and values, beside what collection from the oldest segment on would write; `tail` the 99.9th percentile of overwriting puts
in microseconds, beside fio's, or on the modelled device beside their median: of these less is better. `drives/WORKERS/DRIVES/DEPTH` is gets of tasks of so many workers on modelled drives, beside a
simulation of them, `cores/CORES/DEPTH` that simulation for more cores and 24 drives, beside one core; `cores_BACKEND/CORES/DEPTH` the same with the CPU time of a get on the disk, the kernel's part in it.
"""
MIB = 1 << 20
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "kv"
ROCKSDB_HEADER = pathlib.Path("/usr/include/rocksdb/db.h")
FLAGS = ["-O2", "-std=c++20", "-pthread"]
# RocksDB's libraries. Debian 12's was compiled with all that its developers look for mistakes with.
OWN_ROCKSDB, DEBIANS_ROCKSDB = "compiled here", "Debian's, with assertions"
ROCKSDB_NOTE = ("RocksDB is Debian's library, which was compiled with its assertions and test points: what spillway bench rocksdb has compiled without them is taken where the same --keep has it")
SRC = SOURCES.parent.parent / "src"
MEMORY = pathlib.Path("/dev/shm")  # a file in memory; direct, as on a disk
SYNC_WRITERS = 64
THETAS = {"uniform": 0, "zipfian": 0.99}
# A device of 160,000 requests of 4 KiB a second, and 3.2 GB a second in large ones.
MODEL = "latency:us=80,channels=16,mbps=200:[memory:{}]"
MODEL_DEPTH = 32
MODELLED = ("drives/", "cores/", "cores_")  # by kv_drives


class Plan:
    def __init__(self, context):
        quick = context.quick
        self.quick = quick
        self.data_bytes = (192 if quick else 1024) * MIB
        self.keys = 8 * 1024 if quick else 64 * 1024
        self.depths = [1, 64] if quick else [1, 4, 16, 64, 128]
        self.pairs = context.pairs or (2 if quick else 3)
        self.case_seconds = 10 if quick else 20
        self.drives_turns = context.pairs or (1 if quick else 3)
        self.window_seconds = 0.3 if quick else 0.5
        self.overwrite_bytes = (96 if quick else 1024) * MIB
        self.overwrite_rounds = 1.5 if quick else 10
        self.tail_seconds = 0.3 if quick else 1.0  # a window: percentiles need many puts
        self.tail_depths = [32] if quick else [1, 4, 32]
        self.tail_rounds = 0.5 if quick else 2  # before the windows, and on the modelled device
        self.model_bytes = (48 if quick else 256) * MIB

    def cases(self, device):
        """(backend, operation, record, depth)"""
        # The last two of tasks on the disk alone.
        operations = ["get", "put"] if self.quick else ["get", "put", "update", "mixed"]
        backends = {"disk": ["uring"] if self.quick else list(BACKENDS), "zram": ["uring"] if self.quick else ["uring", "threads"],
                    "ram": ["aio"] if self.quick else ["aio", "uring"]}[device]
        depths = self.depths if device == "disk" or not self.quick else self.depths[-1:]
        cases = [(backend, operation, "4K", depth) for backend in backends for operation in operations for depth in depths
                 if operation in ("get", "put") or (device, backend) == ("disk", "uring")]
        if device == "disk" and not self.quick:
            cases += [("uring", operation, "4.5K", depth) for operation in ("get", "put") for depth in (16, 64)]
        return cases

    def gets_on_disk(self):
        """{backend: the case of gets by it on the disk, as many at a time as there are}"""
        return {backend: f"disk/{backend}/get/4K/{depth}" for backend, operation, record, depth in self.cases("disk") if (operation, record, depth) == ("get", "4K", self.depths[-1])}

    def rocksdb_cases(self):
        """(operation, depth)"""
        return [("get", 64), ("sync", SYNC_WRITERS)] if self.quick else [("get", 16), ("get", 64), ("put", 16), ("put", 64), ("mixed", 16), ("sync", SYNC_WRITERS)]


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


def measure_sync(contest):
    """64 puts at a time, each there for good when it returns, beside as many writers of fio that wait for the device each time, and
    beside 64 times one."""
    rows = []
    for backend in ("uring", "threads"):
        sides = {"ours": lambda: contest.turn("put", backend, "4K", SYNC_WRITERS, durability="sync"), "alone": lambda: SYNC_WRITERS * contest.fio_sync(1), "beside": lambda: contest.fio_sync(SYNC_WRITERS)}
        turns = take_turns(sides, lambda side: sides[side](), contest.plan.pairs, contest.plan.case_seconds)
        rows.append(make_row(f"sync/{backend}/{SYNC_WRITERS}", turns["ours"], turns["alone"]))
        rows.append(make_row(f"sync/{backend}/{SYNC_WRITERS}/beside", turns["ours"], turns["beside"]))
    return rows


class RocksDb:
    """RocksDB under the same load, by as many threads as ours has operations at a time: the library that `rocksdb` has compiled, if it is kept, else Debian's."""

    def __init__(self, context, plan):
        self.plan, self.folder = plan, context.folder / "rocksdb"
        self.program = context.folder / "rocksdb-load"
        library = Library(context)
        if own := library.found("native"):
            self.library, flags, linked = OWN_ROCKSDB, [*LOAD_FLAGS, "-DNDEBUG", "-pthread", "-isystem", library.source() / "include"], [own, "-ldl"]
        else:
            self.library, flags, linked = DEBIANS_ROCKSDB, FLAGS, ["-lrocksdb"]
        context.build("RocksDB's load", [context.native_cxx, *flags, f"-I{SRC}", SOURCES / "rocksdb_load.cc", *linked, "-o", self.program])
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
        answers = take_turns(["ours", "rocksdb"], lambda side: contest.turn(operation, "uring", "4K", depth, **settings) if side == "ours" else self.turn(operation, depth, **settings),
                             self.plan.pairs, self.plan.case_seconds)
        peer_rates = [answer["per_second"] for answer in answers["rocksdb"]]
        peer_cpu_us = median([answer["user_us"] + answer["system_us"] for answer in answers["rocksdb"]])
        name = f"rocksdb/{'sync' if settings else operation}/{depth}"
        return {**make_row(name, answers["ours"], peer_rates), "best_peer": "threads", "peer_cpu_us": peer_cpu_us, "library": self.library}


def measure_overwrite(contest, name, plan):
    """What the device writes for each byte, once it has written half of what it will, beside fifo_amplification()."""
    answer = contest.ours("overwrite", depth=32, capacity=plan.overwrite_bytes, rounds=plan.overwrite_rounds, theta=THETAS[name])
    contest.filled = None
    bound = fifo_amplification(answer["slots"], answer["keys"], THETAS[name])
    row = make_row(f"overwrite/{name}", [answer], [1.0])
    row.update({"ours": answer["late_amplification"], "peer": bound, "ratio": answer["late_amplification"] / bound, "unit": "bytes/byte",
                "per_second": answer["per_second"], "amplification": answer["amplification"]})
    return row, {"seconds": answer["series_seconds"], "puts_per_second": answer["series"]}


def tail_row(name, answers, peers_us):
    tails_us = [answer["put_ns"]["p999"] / 1e3 for answer in answers]
    return {**make_row(name, answers, [1.0] * len(answers)), **row_of(name, tails_us, peers_us, "us"), "per_second": median([answer["per_second"] for answer in answers])}


def measure_tail(contest, name, plan):
    """In windows in turn with fio's writes, on a store that is as full as for measure_overwrite()."""
    theta = THETAS[name]
    keys = contest.ours("overwrite", depth=32, capacity=plan.data_bytes, rounds=plan.tail_rounds, theta=theta)["keys"]
    contest.filled = None
    rows = []
    for depth in plan.tail_depths:
        turns = take_turns(["ours", "fio"], lambda side: contest.ours("update", depth=depth, keys=keys, theta=theta, seconds=plan.tail_seconds) if side == "ours" else contest.fio_tail(depth), plan.pairs, plan.case_seconds)
        rows.append(tail_row(f"tail/{name}/{depth}", turns["ours"], turns["fio"]))
    return rows


def measure_model_tail(load, plan, name):
    """On a device whose speed is a model's, beside the median."""
    def turn(_):
        words = [load, MODEL.format(plan.model_bytes), "overwrite", f"capacity={plan.model_bytes}", "grain=4096",
                 f"value={RECORDS['4K'][1]}", f"depth={MODEL_DEPTH}", "by=tasks", f"rounds={plan.tail_rounds}", f"theta={THETAS[name]}"]
        return run_program(words, "overwrite")[0]

    answers = take_turns(["ours"], turn, plan.pairs, plan.case_seconds)["ours"]
    return tail_row(f"model/tail/{name}", answers, [answer["put_ns"]["p50"] / 1e3 for answer in answers])


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
    modelled = [row for row in rows if row["case"].startswith(MODELLED)]
    summary = kv_drives.summarise(modelled)
    groups = {}
    for row in (row for row in rows if row not in modelled):
        words = row["case"].split("/")
        if words[0] in ("tail", "model"):
            summary[row["case"].replace("/", "_") + "_ratio"] = row["ratio"]
            continue
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
        summary[name], summary[name + "_worst"] = geometric_mean([row["ratio"] for row in own]), min(row["ratio"] for row in own)
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
        self.drives = kv_drives.Drives(context, self.load, self.plan.drives_turns, self.plan.window_seconds, len(os.sched_getaffinity(0)), self.plan.gets_on_disk())

    def keep(self, name, rows, series=None):
        """What was measured of a case; series: over time, if there is any."""
        self.context.kept[name] = rows, series
        for row in rows:
            self.context.say(f"{row['case']:24} {row['ours']:>11,.5g} {row['unit']}, {row['ratio']:.2f} times the peer's +-{row['spread'] / 2:.0%}; "
                             f"CPU {row['user_us']:.2f} + {row['system_us']:.2f} us; p99.9 {row['p999_us']:,.0f} us")

    def take(self, names):
        """What is kept of these cases; what cannot be measured here is in a note."""
        for name in names:
            if name in self.context.kept:
                rows, series = self.context.kept[name]
                self.rows += rows
                if series:
                    self.series[name] = series

    def on(self, device, cleanup):
        cases = {f"{device}/{'/'.join(map(str, case))}": case for case in self.plan.cases(device)}
        peers = [f"rocksdb/{operation}/{depth}" for operation, depth in self.plan.rocksdb_cases()]
        others = ["sync", *peers, *(f"overwrite/{name}" for name in THETAS), *(f"tail/{name}" for name in THETAS)] if device == "disk" else []
        needs = self.drives.needs()
        wanted = [name for name in [*cases, *others] if self.context.cases.wants(name) or name in needs]
        if missing := self.context.kept.missing(wanted):
            self.measure_on(device, cleanup, {name: cases.get(name) for name in missing})
        self.take(wanted)

    def measure_on(self, device, cleanup, cases):
        """cases: {name: (backend, operation, record, depth), or None of what is measured on the disk alone}"""
        self.context.progress(f"kv {device}: filling it with random data")
        made = places(self.context, self.plan, device, cleanup)
        if isinstance(made, str):
            self.notes.append(f"nothing on {device}: {made}")
            return
        contest = Contest(self.load, self.plan, *made)
        contest.find_idle()
        rocksdb = None
        for name, case in cases.items():
            self.context.progress(f"kv {name}")
            kind, *words = name.split("/")
            if case:
                self.keep(name, [contest.measure(name, case)])
            elif kind == "sync":
                self.keep(name, measure_sync(contest))
            elif kind == "overwrite":
                row, series = measure_overwrite(contest, words[0], self.plan)
                self.keep(name, [row], series)
            elif kind == "tail":
                self.keep(name, measure_tail(contest, words[0], self.plan))
            elif ROCKSDB_HEADER.exists():
                rocksdb = rocksdb or RocksDb(self.context, self.plan)
                self.keep(name, [rocksdb.measure(contest, words[0], int(words[1]))])
            elif not any("RocksDB" in note for note in self.notes):
                self.notes.append("nothing of RocksDB: install librocksdb-dev")

    def on_model(self):
        cases = {f"model/tail/{name}": name for name in THETAS}
        wanted = [case for case in cases if self.context.cases.wants(case)]
        for case in self.context.kept.missing(wanted):
            self.context.progress(f"kv {case}")
            self.keep(case, [measure_model_tail(self.load, self.plan, cases[case])])
        self.take(wanted)


def run(context):
    doing = Run(context)
    for device in ("disk", "zram", "ram"):
        with Cleanup() as cleanup:
            doing.on(device, cleanup)
    doing.on_model()
    doing.rows += doing.drives.rows({row["case"]: row["cpu_us"] for row in doing.rows if row["case"].startswith("disk/")})
    if not doing.rows and not doing.notes:
        raise Failure("kv has no such case; they begin with disk/, zram/, ram/, sync, rocksdb/, overwrite/, tail/, model/, drives/, cores/ and cores_", 2)
    if any(row.get("library") == DEBIANS_ROCKSDB for row in doing.rows):
        doing.notes.append(ROCKSDB_NOTE)
    plan, rows = doing.plan, doing.rows
    result = {
        "parameters": {"data_bytes": plan.data_bytes, "keys": plan.keys, "records": {name: record[:2] for name, record in RECORDS.items()},
                       "pairs": plan.pairs, "case_seconds": plan.case_seconds, "drives_case_seconds": kv_drives.CASE_SECONDS, "window_seconds": plan.window_seconds, "tail_seconds": plan.tail_seconds, "fio_flags": " ".join(FIO[2:]),
                       "overwrite_bytes": plan.overwrite_bytes, "overwrite_rounds": plan.overwrite_rounds,
                       "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": summarise(rows), "notes": doing.notes, "series": doing.series,
    }
    rated = [row for row in rows if not row["case"].startswith(("overwrite", "tail", "model", *MODELLED))]
    bars = {"title": "key-value store: operations a second", "subtitle": "over fio's I/Os, or RocksDB's operations; more is better",
            "cases": [row["case"] for row in rated], "series": {"over the peer": [row["ratio"] for row in rated]}}
    if doing.series:
        bars["lines"] = {"title": "puts a second while the store is overwritten",
                         "seconds": {name: own["seconds"] for name, own in doing.series.items()},
                         "series": {name: own["puts_per_second"] for name, own in doing.series.items()}}
    return result, bars
