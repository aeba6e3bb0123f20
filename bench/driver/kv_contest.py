"""Turns of the key-value store and of fio on places of the same kind, and what is made of them."""
import json
import os
import resource
import subprocess

from device import BATCH, ENGINES, FIO
from lockstep import Failure, median, row_of, take_turns

# How the store is used, and fio beside it: the scheme of a device string, tasks of one worker or threads, fio's engine.
BACKENDS = {"uring": ("uring", "tasks", "uring"), "aio": ("aio", "tasks", "aio"), "threads": ("file", "threads", "file")}
MIXES = {"get": ["--rw=randread"], "put": ["--rw=randwrite"], "update": ["--rw=randwrite"],
         "mixed": ["--rw=randrw", "--rwmixread=70", "--unified_rw_reporting=mixed"]}
# What is stored: bytes of grains and values, and fio's words for I/Os of the same size. 40 bytes of header and up to 32 of key come on top.
RECORDS = {"4K": (4096, 4024, ["--bs=4096"]), "4.5K": (512, 4096, ["--bs=4608", "--blockalign=512"])}
RECORD_BYTES = {"4K": 4096, "4.5K": 4608}
RECORD_BYTES_MOST = max(RECORD_BYTES.values())
IDLE_TURNS = 3
RUN_SECONDS = 3600


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
        """As fio_rate(). It reads from as much of its place as all records take: what lies closer together may be found sooner. Ours writes all over its own."""
        engine = BACKENDS[backend][2]
        words = [*FIO, *ENGINES[engine], *MIXES[operation], *RECORDS[record][2], f"--filename={self.peer_place}"]
        words += [f"--numjobs={depth}", "--group_reporting=1"] if engine == "file" else [f"--iodepth={depth}"]
        if batched:
            words += BATCH.format(depth).split()
        return self.fio_rate(words, operation, self.plan.keys * RECORD_BYTES[record] if operation == "get" else None)

    def fio_sync(self, writers):
        """Writes a second of so many writers, each of which waits for the device."""
        words = [*FIO, *ENGINES["file"], "--rw=randwrite", "--bs=4096", "--fdatasync=1", f"--numjobs={writers}", "--group_reporting=1",
                 f"--filename={self.peer_place}"]
        return self.fio_rate(words, "sync")["rate"]

    def fio_tail(self, depth):
        """The 99.9th percentile of writes, in microseconds."""
        words = [*FIO, *ENGINES["uring"], "--rw=randwrite", "--bs=4096", f"--iodepth={depth}", f"--filename={self.peer_place}"]
        return self.fio_turn(words, "tail", seconds=self.plan.tail_seconds)[0]["clat_ns"]["percentile"]["99.900000"] / 1e3

    def fio_rate(self, words, what, span_bytes=None):
        """I/Os a second, CPU time for each, and how long one takes in the median."""
        done, process_us = self.fio_turn(words, what, span_bytes)
        return {"rate": done["iops"], "cpu_us": max(process_us - self.idle_us, 0) / done["total_ios"], "p50_us": done["clat_ns"]["percentile"]["50.000000"] / 1e3}

    def fio_turn(self, words, what, span_bytes=None, seconds=None):
        """What fio says of its I/Os, and CPU time of its process. They are in the first so many bytes of its place, or all over it. seconds: if a turn is not as long as others."""
        answer, process_us = run_program([*words, f"--size={span_bytes or self.plan.data_bytes}", "--time_based",
                                          f"--runtime={round((seconds or self.plan.window_seconds) * 1000)}ms"], what)
        [done] = [part for part in map(answer["jobs"][0].get, ("read", "write", "mixed")) if part and part["total_ios"]]
        return done, process_us

    def find_idle(self):
        """What fio takes besides its I/O: it measures the machine first."""
        words = [*FIO, *ENGINES["file"], "--rw=randread", "--bs=4096", "--size=4096", f"--filename={self.peer_place}"]
        self.idle_us = median([run_program(words, "fio")[1] for _ in range(IDLE_TURNS)])

    def measure(self, name, case):
        operation, depth = case[1], case[3]
        # One at a time is no batch, nor are threads.
        sides = ["ours", "one"] if depth == 1 or case[0] == "threads" else ["ours", "one", "batch"]

        def turn(side):
            return self.turn(operation, case[0], *case[2:]) if side == "ours" else self.fio(operation, case[0], *case[2:], side == "batch")

        peers = take_turns(sides, turn, self.plan.pairs, self.plan.case_seconds)
        answers = peers.pop("ours")

        def middle(side, what):
            return median([turn[what] for turn in peers[side]])

        best = max(peers, key=lambda side: middle(side, "rate"))
        row = make_row(name, answers, [turn["rate"] for turn in peers[best]])
        return {**row, "best_peer": best, "peer_cpu_us": min(middle(side, "cpu_us") for side in peers), "peer_p50_us": middle(best, "p50_us")}


def make_row(name, answers, peer_rates):
    """Of answers of ours and rates of a peer, pair by pair."""
    row = row_of(name, [answer["per_second"] for answer in answers], peer_rates, "operations/s")
    row["cpu_us"] = median([answer["user_us"] + answer["system_us"] for answer in answers])
    for figure in ("user_us", "system_us", "reads", "writes", "allocations"):
        row[figure] = median([answer[figure] for answer in answers])
    times = "get_ns" if answers[0]["gets"] else "put_ns"
    for figure in ("p50", "p99", "p999", "max"):
        row[f"{figure}_us"] = median([answer[times][figure] / 1e3 for answer in answers])
    return row
