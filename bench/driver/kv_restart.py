"""The key-value store's starts: after a close, after kill -9, and without a checkpoint, beside plain reads of as many bytes. And how long it took to fill it."""
import json
import mmap
import os
import random
import resource
import shutil
import subprocess
import threading
import time

from devices import Cleanup, file_of, fill_random
from kv import run_program
from lockstep import Failure, Programs, median, row_of, take_turns

DOC = """\
Seconds to open a store (ours), and to read as many bytes of the same file in large pieces past the page cache (peer): less is better.
`log` is after kill -9 without a checkpoint, `clean` after a close, `killed` after kill -9 with the checkpoint of that close and as many
changes since as there are in the mean. `load` is `spillway kv load` of a dump with as many records into an empty store, beside plain writes of as many bytes
as its records and their summaries take. `cpu_seconds` are of all threads, `peak_bytes` the process's memory at its most.
"""
MIB = 1 << 20
KEYS, QUICK_KEYS = 10_000_000, 100_000
PAIRS, QUICK_PAIRS = 5, 2
CASE_SECONDS = 45
STARTS = ["log", "clean", "killed"]  # in the order in which one comes out of the other
CASES = [*STARTS, "load"]
GRAIN_BYTES, VALUE_BYTES = 512, 100
CAPACITY_PER_KEY = 860  # a grain and its entry, what is not to be filled, and room for changes and checkpoints
CAPACITY_MORE = 64 * MIB  # a store with few keys is not to be near its end
SPARE_BYTES = 1 << 30  # that the disk has left
# Between two checkpoints half as many changes are made as there are keys: half of these in the mean.
KILLED_AFTER = 1 / 4
LOG_KILLED_AFTER = 1 / 100
PLAIN_BYTES, PLAIN_THREADS = 4 * MIB, 2
DUMP_RECORDS = 100_000  # written at a time
ENTRY_BYTES = 32  # of a record in its segment's summary
RUN_SECONDS = 7200


def go_over(place, size_bytes, flags, transfer):
    """Seconds in which threads that take pieces in turn have done transfer(descriptor, memory, offset) with so many bytes of a file, from its beginning, and
    flushed what was written."""
    pieces = iter(range(0, size_bytes, PLAIN_BYTES))
    lock = threading.Lock()
    failures = []

    def work():
        memory = mmap.mmap(-1, PLAIN_BYTES)
        memory[:] = os.urandom(PLAIN_BYTES)
        descriptor = os.open(place, flags | os.O_DIRECT)
        ready.wait()
        try:
            while True:
                with lock:
                    at = next(pieces, None)
                if at is None:
                    break
                length = min(PLAIN_BYTES, size_bytes - at)
                if transfer(descriptor, [memoryview(memory)[:length]], at) != length:
                    raise OSError(f"{place} ends early")
            if flags != os.O_RDONLY:
                os.fdatasync(descriptor)
        except OSError as error:
            failures.append(error)
        finally:
            os.close(descriptor)

    ready = threading.Barrier(PLAIN_THREADS + 1)
    threads = [threading.Thread(target=work) for _ in range(PLAIN_THREADS)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.monotonic()
    for thread in threads:
        thread.join()
    if failures:
        raise Failure(f"kv-restart: cannot go over {place}: {failures[0]}")
    return time.monotonic() - began


def read_plainly(place, size_bytes):
    return go_over(place, size_bytes, os.O_RDONLY, os.preadv)


def write_plainly(place, size_bytes):
    return go_over(place, size_bytes, os.O_WRONLY, os.pwritev)


def write_dump(place, keys):
    """A dump of so many records (docs/formats/kv-dump.md), whose keys are in no order."""
    values = os.urandom(VALUE_BYTES * 500).hex().encode()
    with open(place, "xb") as file:
        file.write(b"spillway-dump 1\n")
        for begin in range(0, keys, DUMP_RECORDS):
            file.write(b"".join(b"+16,%d,0,0:%016d->%b\n" % (VALUE_BYTES, number * 2_654_435_761 % (1 << 50), values[at:at + VALUE_BYTES])
                                for number in range(begin, min(begin + DUMP_RECORDS, keys))
                                for at in [number % 1000 * VALUE_BYTES]))
        file.write(b".%d\n" % keys)


class Starts:
    """One store, and what is done to it. `figures` are for the summary."""

    def __init__(self, context, load, place, keys, pairs):
        self.context, self.load, self.place, self.keys, self.pairs = context, load, place, keys, pairs
        self.rows, self.figures = [], {}

    def run(self, wanted, capacity):
        self.context.progress(f"kv-restart: putting in {self.keys:,} keys")
        self.write_until_killed(int(self.keys * LOG_KILLED_AFTER), make=1, capacity=capacity, grain=GRAIN_BYTES, checkpoints=0)
        if "log" in wanted:
            self.add("log")
        ended = self.end()
        self.figures.update({"close_seconds": ended["close_seconds"], "checkpoint_bytes": ended["close_write_bytes"]})
        if "clean" in wanted:
            self.add("clean")
        if "killed" in wanted:
            self.context.progress(f"kv-restart: changing {int(self.keys * KILLED_AFTER):,} keys")
            self.write_until_killed(int(self.keys * KILLED_AFTER))
            self.add("killed")

    def add(self, case):
        row = self.measure(case)
        self.rows.append(row)
        self.context.say(f"{case:8} {row['ours']:8.3f} s, CPU {row['cpu_seconds']:.3f} s, {row['ratio']:.2f} times plain reads of "
                         f"{row['read_bytes'] / 1e6:,.1f} MB +-{row['spread'] / 2:.0%}; {row['peak_bytes'] / 1e6:,.0f} MB of memory")
        for figure in ("cpu_seconds", "read_bytes", "replayed_records", "peak_bytes", "ratio"):
            self.figures[f"{case}_{figure}"] = row[figure]
        self.figures[f"{case}_seconds"] = row["ours"]
        self.figures["index_bytes"] = row["index_bytes"]

    def words(self, operation, **settings):
        settings = {"keys": self.keys, "value": VALUE_BYTES, **settings}
        return [self.load, f"uring:{self.place}", operation, *(f"{name}={value}" for name, value in settings.items())]

    def write_until_killed(self, updates, **settings):
        """What the program says when it has made so many changes; it is killed while it makes more."""
        with Programs() as programs:
            program = programs.start(self.words("write", updates=updates, **settings))
            answer = json.loads(program.read(RUN_SECONDS))
            time.sleep(random.uniform(0.05, 0.5))
            if program.process.poll() is not None:
                raise Failure(f"kv-restart: the program ended before it was killed{program.last_words()}")
            program.kill()
        self.check_entries(answer)
        return answer

    def check_entries(self, answer):
        if answer["entries"] != self.keys:
            raise Failure(f"kv-restart: the store has {answer['entries']} entries, not {self.keys}")

    def end(self):
        return run_program(self.words("end"), "end")[0]

    def open(self, case):
        answer = run_program(self.words("open"), "open")[0]
        self.check_entries(answer)
        if (answer["checkpoint"] == 0) != (case == "log") or (answer["replayed_records"] == 0) != (case == "clean"):
            raise Failure(f"kv-restart: {case} used checkpoint {answer['checkpoint']} and {answer['replayed_records']} records")
        return answer

    def measure(self, case):
        # The first one may find less in the disk's own caches than all others.
        read_bytes = self.open(case)["read_bytes"]
        self.context.progress(f"kv-restart: {case}")
        turns = take_turns(["ours", "plain"], lambda side: self.open(case) if side == "ours" else read_plainly(self.place, read_bytes), self.pairs, CASE_SECONDS)
        answers = turns["ours"]
        row = row_of(case, [answer["seconds"] for answer in answers], turns["plain"], "s")
        for figure in ("cpu_seconds", "read_bytes", "replayed_records", "scanned_segments", "peak_bytes", "index_bytes"):
            row[figure] = median([answer[figure] for answer in answers])
        return row


class Loads:
    """The same dump, loaded into a new store again and again."""

    def __init__(self, context, place, keys, pairs):
        self.context, self.place, self.keys, self.pairs = context, place, keys, pairs
        self.dump = context.folder / "dump"
        self.rows, self.figures = [], {}

    def run(self, capacity):
        self.context.progress("kv-restart: writing a dump")
        write_dump(self.dump, self.keys)
        row = self.measure(capacity)
        self.dump.unlink()
        self.rows.append(row)
        self.context.say(f"load     {row['ours']:8.3f} s, CPU {row['cpu_seconds']:.3f} s, {row['ratio']:.2f} times plain writes of "
                         f"{row['written_bytes'] / 1e6:,.1f} MB +-{row['spread'] / 2:.0%}")
        self.figures.update({f"load_{figure}": row[figure] for figure in ("cpu_seconds", "ratio")}, load_seconds=row["ours"])

    def spillway(self, *words):
        ended = subprocess.run([self.context.spillway, "kv", *words], capture_output=True, text=True, timeout=RUN_SECONDS)
        if ended.returncode != 0:
            raise Failure(f"kv-restart: spillway kv {words[0]} failed: {ended.stderr.strip()}")
        return ended.stdout

    def load(self, capacity):
        self.spillway("make", self.place, "--capacity", str(capacity), "--grain", str(GRAIN_BYTES), "--overwrite")
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        self.spillway("load", self.place, self.dump)
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        entries = json.loads(self.spillway("stats", self.place, "--json"))["index"]["entries"]
        if entries != self.keys:
            raise Failure(f"kv-restart: {entries} keys were loaded, not {self.keys}")
        return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def measure(self, capacity):
        plain_bytes = self.keys * (GRAIN_BYTES + ENTRY_BYTES) // GRAIN_BYTES * GRAIN_BYTES
        self.context.progress("kv-restart: load")
        turns = take_turns(["ours", "plain"], lambda side: self.load(capacity) if side == "ours" else write_plainly(self.place, plain_bytes), self.pairs, CASE_SECONDS)
        seconds, cpu_seconds = zip(*turns["ours"])
        return row_of("load", seconds, turns["plain"], "s", cpu_seconds=median(cpu_seconds), written_bytes=plain_bytes)


def run(context):
    wanted = context.cases.chosen(CASES)
    load = context.spillway.parent.parent / "libexec/spillway/kv-restart-load"
    if not load.exists():
        raise Failure(f"{load} is not there; build or install Spillway completely", 2)
    keys = QUICK_KEYS if context.quick else KEYS
    pairs = context.pairs or (QUICK_PAIRS if context.quick else PAIRS)
    capacity = keys * CAPACITY_PER_KEY // MIB * MIB + CAPACITY_MORE
    needed = capacity + SPARE_BYTES + (keys * 2 * VALUE_BYTES if "load" in wanted else 0)
    if shutil.disk_usage(context.storage).free < needed:
        raise Failure(f"{context.storage} has no {needed} bytes free; give another folder with --storage", 2)
    with Cleanup() as cleanup:
        context.progress("kv-restart: filling the disk")
        place = file_of(cleanup, context.folder / "store", capacity)
        fill_random(place, capacity)
        starts, loads = Starts(context, load, place, keys, pairs), Loads(context, place, keys, pairs)
        if set(wanted) & set(STARTS):
            starts.run(wanted, capacity)
        if "load" in wanted:
            loads.run(capacity)
    rows = starts.rows + loads.rows
    result = {
        "parameters": {"keys": keys, "value_bytes": VALUE_BYTES, "grain_bytes": GRAIN_BYTES, "capacity_bytes": capacity, "pairs": pairs, "case_seconds": CASE_SECONDS,
                       "plain": f"{PLAIN_THREADS} threads, {PLAIN_BYTES >> 20} MiB at a time", "storage": str(context.storage),
                       "quick": context.quick},
        "rows": rows, "summary": {**starts.figures, **loads.figures},
    }
    bars = {"title": "kv-restart: seconds to open a store, and to fill it", "subtitle": "times plain reads, or writes, of as many bytes, less is better",
            "cases": [row["case"] for row in rows], "series": {"over plain reads or writes": [row["ratio"] for row in rows]}}
    return result, bars
