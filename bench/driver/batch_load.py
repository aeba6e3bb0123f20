"""What the programs of `batch` are asked, and what they answer; nothing is measured twice."""
import json
import pathlib
import shutil
import tempfile

from counting import counting, missed, of_one
from lockstep import Failure, Programs, in_turn

PEER, DIRECT, OURS = "linear", "direct", "cache_buckets"  # direct: as the peer, but it searches as ours does
RUN_SECONDS = 600
THESIS_CACHE_MIB = 15  # that of the thesis's machine (table 4.1)
CELL_BYTES = 1024


def key_bytes(record):
    """The thesis's records of 8 bytes have keys of 4."""
    return min(8, record // 2)


def shape(record, bucket, buckets):
    return {"key": key_bytes(record), "record": record, "bucket": bucket, "buckets": buckets}


class Measured:
    """Times of tables of full size, and misses of smaller ones with a smaller cache."""

    def __init__(self, context, turns, seconds):
        self.progress, self.kept, self.turns, self.seconds = context.progress, context.kept, turns, seconds
        self.folder = context.spillway.parent.parent / "libexec/spillway"
        # A smaller cache is quicker to fill, and less like one.
        self.cache_bytes, self.updates = (128 << 10, (40_000, 120_000)) if context.quick else (1 << 20, (200_000, 600_000))
        # Tables are as much smaller than the thesis's as the cache is; with --quick those are a tenth.
        self.shrunk = (THESIS_CACHE_MIB << 20) / self.cache_bytes / (10 if context.quick else 1)
        self.known_costs, self.known_organisations, self.known_misses = {}, {}, {}

    def program(self, name):
        found = self.folder / f"{name}-load"
        if not found.exists():
            raise Failure(f"{found} is not there; build or install Spillway completely", 2)
        return found

    def ask(self, name, words, *more):
        words = [*(f"{word}={value}" for word, value in words.items()), *more]
        asked = " ".join([name, *words])
        if asked not in self.kept:
            with Programs() as programs:
                program = programs.start([self.program(name), *words])
                told = json.loads(program.read(RUN_SECONDS))
                program.finish()
            if "unavailable" in told:  # to who asks now
                return told
            self.kept[asked] = told
        return self.kept[asked]

    def note_costs(self, record, bucket, thousands, threads, told):
        self.known_costs[record, bucket, thousands, threads] = told

    def costs(self, record, bucket, thousands, threads):
        """Nanoseconds of an update, of all threads together, by the peer, by cache-buckets, and by the peer with their search, in turns."""
        case = record, bucket, thousands, threads
        if case not in self.known_costs:
            self.progress("batch: {}/{}/{}k/{}".format(*case))
            words = {**shape(record, bucket, thousands * 1000), "threads": threads, "turns": self.turns, "seconds": self.seconds}
            self.known_costs[case] = self.ask("batch", words, *(f"engine={engine}" for engine in (PEER, DIRECT, OURS)))
        return self.known_costs[case]

    def organisations(self, record, bucket, thousands, threads, cells):
        """{bytes of a cache-bucket: {engine: nanoseconds of an update}} of the peer and of cache-buckets, as many bytes of them for each size. The sizes take turns, each turn a program of its own,
        in which the two engines take turns."""
        case = record, bucket, thousands, threads, tuple(cells)
        if case not in self.known_organisations:
            times = {cell: {PEER: [], OURS: []} for cell in cells}
            for turn in range(self.turns):
                for cell in in_turn(cells, turn):
                    self.progress(f"batch: {record}/{bucket}/{thousands}k/{threads}, cache-buckets of {cell} bytes, turn {turn + 1}")
                    words = {**shape(record, bucket, thousands * 1000), "threads": threads, "cell": cell, "turns": self.turns, "seconds": self.seconds, "seed": turn + 1}
                    told = self.ask("batch", words, f"engine={PEER}", f"engine={OURS}")
                    for engine, all_times in times[cell].items():
                        all_times += told["engines"][engine]
            self.known_organisations[case] = times
        return self.known_organisations[case]

    def base_costs(self, record, threads):
        self.progress(f"batch: base costs of {record}/{threads}")
        return self.ask("batch", {**shape(record, 512, 400_000), "threads": threads, "turns": self.turns, "seconds": self.seconds, "base": 1})

    def count(self, runs):
        """Misses of an update of each run, {name: the program and its words}; and what the programs have said."""
        if not shutil.which("valgrind"):
            raise Failure("misses are counted by valgrind, which is not there: apt-get install valgrind", 2)
        asked = "; ".join(" ".join(["misses", program.name, *words]) for program, *words in runs.values())
        if asked not in self.kept:
            self.kept[asked] = self.count_anew(runs)
        return self.kept[asked]

    def count_anew(self, runs):
        with tempfile.TemporaryDirectory(prefix="spillway-bench-") as folder, Programs() as programs:
            started = [(name, updates, pathlib.Path(folder, f"{name}-{updates}"), command) for name, command in runs.items() for updates in self.updates]
            # All at the same time: what they count does not depend on how long they take.
            running = [programs.start(counting(log, [*command, f"updates={updates}"], self.cache_bytes)) for _, updates, log, command in started]
            told = {}
            for (name, _, _, _), program in zip(started, running):
                told[name] = json.loads(program.read(RUN_SECONDS))
                program.finish()
            counts = {name: [missed(log) for other, _, log, _ in started if other == name] for name in runs}
        return {name: of_one(each, self.updates) for name, each in counts.items()}, told

    def misses_of(self, record, bucket, buckets, cell=CELL_BYTES):
        """Misses of an update by the peer and by cache-buckets as large as the cache, and what equation 3.4 says of their ratio."""
        case = record, bucket, buckets, cell
        if case not in self.known_misses:
            self.progress("batch: counting misses of {}/{}, {} buckets, cache-buckets of {} bytes".format(*case))
            words = {**shape(record, bucket, buckets), "cell": cell, "cache": self.cache_bytes >> 10}
            counts, told = self.count({engine: [self.program("batch"), f"engine={engine}", *(f"{name}={value}" for name, value in words.items())]
                                       for engine in (PEER, OURS)})
            self.known_misses[case] = counts[OURS], counts[PEER], told[OURS]["relative_misses"]
        return self.known_misses[case]

    def misses(self, record, bucket, thousands, cell=CELL_BYTES):
        """The same of a table that is to the cache as one of so many thousand buckets is to the thesis's."""
        return self.misses_of(record, bucket, round(thousands * 1000 / self.shrunk), cell)
