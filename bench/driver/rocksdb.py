"""RocksDB of Debian's source, compiled by spillcc: plain tables over mapped files, beside its own block cache."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

from devices import Cleanup, forget
from limited import MIB, SLACK_BYTES, Contest, check_same, limit_of, plain_bytes, resident_row
from lockstep import Failure, median, row_of, take_turns
from memory_group import MemoryGroup, Unavailable
from programs import code_bytes
from variants import BODIES

DOC = """\
RocksDB from Debian's source package under a load like mixgraph (83 % gets, 14 % puts, 3 % short scans; `bench/rocksdb/mix.h`), with memory for so many percent of the
tables. Operations a second of all threads, more is better. `ours`: plain tables over mapped files, compiled by spillcc with one body of each function, the instrumented one. The peer: natively, tables of blocks, past
the page cache into RocksDB's own block cache of as much memory. `mmap`, `mmap_ratio`: plain tables natively, in a control group with as much memory, maps read page by page, and over these; `native_ratio`: the
same without a limit. `cpu_us`: CPU time of an operation, over the peer's (`cpu_ratio`) and over plain tables natively (`native_cpu_ratio`). `misses`: pages that ours loaded or zero-filled for an operation.
`size`: bytes of executable code, RocksDB's and the load's.
"""
SOURCES = pathlib.Path(__file__).resolve().parent.parent / "rocksdb"
# What of RocksDB nobody here uses; a third of the time that compiling it takes.
LEFT_OUT = re.compile(r"(db/(c|repair|experimental|db_impl/(compacted_db_impl|db_impl_debug|db_impl_readonly|db_impl_secondary))\.cc|tools/|test_util/(testutil|transaction_test_util)|"
                      r"table/(sst_file_dumper|sst_file_reader|adaptive)|utilities/(agg_merge|backup|blob_db|cache_dump|checkpoint|debug|env_mirror|fault_injection|leveldb_options|memory/|"
                      r"option_change|options/|persistent_cache/(block|volatile|persistent_cache_tier)|simulator_cache|ttl|trace/file|transactions/(lock/range|optimistic)))")
FLAGS = "-O2 -DNDEBUG"
# Several sources are one, as in RocksDB's own unity.cc: most of the time goes into its headers.
SETTINGS = {"CMAKE_BUILD_TYPE": "Release", "PORTABLE": "ON", "FORCE_SSE42": "ON", "CMAKE_UNITY_BUILD": "ON", "CMAKE_UNITY_BUILD_BATCH_SIZE": "10",
            **{name: "OFF" for name in ("ROCKSDB_BUILD_SHARED", "FAIL_ON_WARNINGS", "WITH_GFLAGS", "WITH_LIBURING", "WITH_TESTS", "WITH_ALL_TESTS", "WITH_BENCHMARK_TOOLS",
                                        "WITH_CORE_TOOLS", "WITH_TOOLS", "WITH_TRACE_TOOLS")}}
LOAD_FLAGS = ["-O2", "-std=c++20", "-fno-rtti"]
PERCENTS = (100, 50, 25)
THREADS, THREADS_PERCENT = (1, 2, 4), 25  # that are gone through, with memory for so many percent. (TriCache, figure 14)
MEMTABLES_BYTES = 8 * MIB
WARM_UP = 2  # times as many operations as a turn that counts
RUN_SECONDS = 1200


def trimmed(text):
    """CMakeLists.txt of RocksDB without the sources that are LEFT_OUT."""
    def without(match):
        *lines, last = match[0].splitlines(keepends=True)
        return "".join(line for line in lines if not LEFT_OUT.match(line.strip())) + last

    found = re.search(r"^set\(SOURCES\n.*?\)$", text, re.S | re.M)
    locks = re.search(r"^list\(APPEND SOURCES\n[^)]*range_tree[^)]*\)\n", text, re.M)
    if not found or not locks or found.end() > locks.start():
        raise Failure("the sources of RocksDB are not listed as they were")
    return text[:found.start()] + without(found) + text[found.end():locks.start()] + text[locks.end():]


class Library:
    """librocksdb.a of each side, and the load linked with it."""

    def __init__(self, context):
        self.context = context
        self.kept = (context.keep or context.folder) / "rocksdb"
        self.sides = {"native": (context.native_cc, context.native_cxx, []), "ours": (context.spillcc, context.spillcxx, [BODIES.format(1)])}

    def source(self):
        self.context.progress("fetching the source of rocksdb")
        fetched = subprocess.run([self.context.scripts / "fetch-source.sh", "rocksdb", self.kept], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if fetched.returncode != 0:
            raise Failure(fetched.stderr.strip().splitlines()[-1] if fetched.stderr else "the source of rocksdb could not be fetched")
        return pathlib.Path(fetched.stdout.strip())

    def made_of(self, side):
        """Tells a library that was kept from one that would be another now."""
        digest = hashlib.sha256(repr((SETTINGS, FLAGS, LEFT_OUT.pattern, self.sides[side][2])).encode())
        asked = subprocess.run([str(word) for word in (self.sides[side][1], "-###", "-x", "c++", "-c", "/dev/null")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        for plugin in re.findall(r"-fpass-plugin=([^\"\s]+)", asked.stderr):
            digest.update(pathlib.Path(plugin).read_bytes())
        return digest.hexdigest()

    def found(self, side):
        """The library of this side that an earlier run has kept; None if there is none, or it would be another now."""
        library, stamp = (self.kept / f"library-{side}" / name for name in ("librocksdb.a", "made_of"))
        return library if library.exists() and stamp.exists() and stamp.read_text() == self.made_of(side) else None

    def library(self, side, source):
        if found := self.found(side):
            return found
        folder = self.kept / f"library-{side}"
        if not shutil.which("cmake"):
            raise Failure("cmake is not there; install it")
        shutil.rmtree(folder, ignore_errors=True)
        work = self.context.folder / f"rocksdb-{side}"
        shutil.copytree(source, work, symlinks=True)
        (work / "CMakeLists.txt").write_text(trimmed((work / "CMakeLists.txt").read_text()))
        cc, cxx, flags = self.sides[side]
        settings = {**SETTINGS, "CMAKE_C_COMPILER": cc, "CMAKE_CXX_COMPILER": cxx, **{f"CMAKE_{language}_FLAGS_RELEASE": " ".join([FLAGS, *flags]) for language in ("C", "CXX")}}
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_") and name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS", "CXXFLAGS")}
        clean["CCACHE_DISABLE"] = "1"  # RocksDB uses it where it is there; it knows the compiler, not the plugin
        self.context.build(f"rocksdb, {side}", ["cmake", "-S", work, "-B", work / "build", *(f"-D{name}={value}" for name, value in settings.items())], env=clean)
        self.context.build(f"rocksdb, {side}; half an hour or more", ["cmake", "--build", work / "build", "-j", os.cpu_count(), "--target", "rocksdb"], env=clean)
        folder.mkdir(parents=True)
        library = shutil.copy(work / "build" / "librocksdb.a", folder / "librocksdb.a")
        shutil.rmtree(work)
        (folder / "made_of").write_text(self.made_of(side))
        return library

    def load(self, side):
        """The program of this side."""
        source = self.source()
        library, program = self.library(side, source), self.context.folder / f"mixgraph-{side}"
        maps = [SOURCES / "random_maps.cc", "-Wl,--wrap=mmap"] if side == "native" else []
        self.context.build(f"mixgraph, {side}", [self.sides[side][1], *LOAD_FLAGS, *self.sides[side][2], "-isystem", source / "include", SOURCES / "mixgraph.cc", *maps, library, "-lpthread", "-ldl",
                                                 "-o", program])
        return program


class Rocksdb:
    # How the sides keep their data.
    TABLES = {"ours": "plain", "block": "block", "mmap": "plain", "native": "plain"}

    def __init__(self, context):
        self.context, self.notes = context, []
        self.keys, self.operations = (1_600_000, 60_000) if context.quick else (4_000_000, 200_000)
        self.pairs = context.pairs or (2 if context.quick else 5)
        self.case_seconds = 20 if context.quick else 45  # but for what is copied and the turn that does not count
        self.threads = min(2, os.cpu_count())
        self.limits = True
        try:
            MemoryGroup.create(64 * MIB, "bench").remove()
        except Unavailable as reason:
            self.limits = False
            self.notes.append(f"nothing over plain maps, and no limit besides the budget: no memory limit can be set here ({reason})")

    def cases(self):
        """{name: (memory for so many percent of the tables, threads)}"""
        by_threads = {f"threads/{count}": (THREADS_PERCENT, count) for count in THREADS}
        return {f"disk/{percent}": (percent, self.threads) for percent in PERCENTS} | by_threads

    def make(self, program):
        """Both databases, filled."""
        self.made = {table: self.context.folder / f"made-{table}" for table in ("plain", "block")}
        for table, folder in self.made.items():
            self.context.progress(f"filling {table} tables")
            self.context.output([program, "make", table, folder, self.keys])

    def copy(self, side):
        """Of a database, for one program, none of it in memory."""
        folder = self.context.folder / f"data-{side}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.made[self.TABLES[side]], folder)
        for path in folder.iterdir():
            forget(path)
        return folder

    def contest(self, case, percent, threads, programs):
        """A row, and notes."""
        stats = self.context.folder / "stats.json"
        data_bytes = sum(path.stat().st_size for path in self.made["plain"].glob("*.sst"))
        budget_bytes = data_bytes * percent // 100 + MEMTABLES_BYTES
        with Cleanup() as cleanup:
            def words(side, cache_bytes=0):
                return [programs["ours" if side == "ours" else "native"], "run", self.TABLES[side], self.copy(side), self.keys, cache_bytes, threads]

            native = words("native")
            contest = Contest(self.context, cleanup, None, limit_of(budget_bytes, plain_bytes(native)))
            run = [self.context.spillway, "run", "--memory", f"{budget_bytes >> 10}K", "--storage", self.context.storage, "--stats", stats]
            # What the runtime has for itself does not help it to keep tables; it would help the kernel.
            contest.start("ours", [*run, "--", *words("ours")], limited=self.limits, more_bytes=2 * SLACK_BYTES)
            contest.start("block", words("block", budget_bytes), limited=False)
            if self.limits:
                contest.start("mmap", words("mmap"))
            contest.start("native", native, limited=False)
            for side, program in contest.running.items():
                self.context.progress(f"{case}: opening, {side}")
                program.read(RUN_SECONDS)
                contest.ask(side, "open\n")

            def turn(side, operations):
                """(operations a second, microseconds of CPU time for one, what was found)"""
                self.context.progress(f"{case}: {side}")
                line = contest.ask(side, f"run {operations}\n")
                if line is None:
                    return None
                seconds, cpu_seconds, found = line.split()
                return operations / float(seconds), 1e6 * float(cpu_seconds) / operations, found

            def turns(operations, pairs=1, seconds=0):
                return take_turns(list(contest.running), lambda side: turn(side, operations), pairs, seconds, lambda answers: check_same(case, {side: found for side, (_, _, found) in answers.items()}))

            turns(WARM_UP * self.operations)
            taken = turns(self.operations, self.pairs, self.case_seconds)
            contest.finish()
        pairs = len(taken["ours"])
        # One that the kernel has killed has nothing to compare.
        rates, cpu = ({side: [turn[of] for turn in own] for side, own in taken.items() if len(own) == pairs} for of in (0, 1))
        row = _row(case, rates, cpu, check_spilled(case, stats, evicted=percent < 100), self.operations * (pairs + WARM_UP))
        self.context.say(f"{case:10} {row['ours']:.0f}/s, {row['ratio']:.2f} of the block cache +-{row['spread'] / 2:.0%}, " +
                         ", ".join(f"{row[peer + '_ratio']:.2f} of {peer}" for peer in ("mmap", "native") if peer + "_ratio" in row))
        return row, [f"{case}: {note}" for note in contest.left_out()]


def size_row(programs):
    return resident_row("size", {side: [code_bytes(program)] for side, program in programs.items()}, "bytes")


def check_spilled(case, path, evicted):
    """The statistics; tables must have been mapped through the cache, and pages have left it."""
    counted = json.loads(path.read_text())
    if counted["spill"]["file_maps"] == 0 or counted["cache"]["misses"] == 0:
        raise Failure(f"{case}: its tables did not go through the cache")
    if evicted and counted["cache"]["evictions"] == 0:
        raise Failure(f"{case}: nothing was evicted")
    return counted


def _row(case, rates, cpu, counted, operations):
    ratios = {side: [ours / theirs for ours, theirs in zip(rates["ours"], rates[side])] for side in rates if side != "ours"}
    cpu_ratios = {name: median([ours / theirs for ours, theirs in zip(cpu["ours"], cpu[side])]) for name, side in (("cpu_ratio", "block"), ("native_cpu_ratio", "native"))}
    row = row_of(case, rates["ours"], rates["block"], "operations/s", bodies=1)
    row.update({side: median(rates[side]) for side in ("mmap",) if side in rates} | {f"{side}_ratio": median(own) for side, own in ratios.items() if side != "block"})
    return {**row, "cpu_us": median(cpu["ours"]), **cpu_ratios, "misses": counted["cache"]["misses"] / operations, "evictions": counted["cache"]["evictions"], "file_maps": counted["spill"]["file_maps"]}


def _summary(rows):
    return {f"{row['case'].replace('/', '_')}_{name}": row[name] for row in rows for name in ("ratio", "mmap_ratio", "native_ratio") if name in row}


def run(context):
    rocksdb, library, kept = Rocksdb(context), Library(context), context.kept
    cases = rocksdb.cases()
    chosen = context.cases.chosen([*cases, "size"])
    if missing := kept.missing(chosen):
        programs = {side: library.load(side) for side in library.sides}
        if missing != ["size"]:
            rocksdb.make(programs["native"])
        for name in missing:
            if name not in cases:
                kept[name] = size_row(programs), []
            elif same := next((other for other in cases if other in kept and cases[other] == cases[name]), None):
                row, notes = kept[same]  # by other threads, and by other memory
                kept[name] = row | {"case": name}, notes
            else:
                kept[name] = rocksdb.contest(name, *cases[name], programs)
    rows = []
    for row, notes in (kept[name] for name in chosen):
        rows.append(row)
        rocksdb.notes += [note for note in notes if note not in rocksdb.notes]
    result = {
        "parameters": {"keys": rocksdb.keys, "operations": rocksdb.operations, "threads": rocksdb.threads, "pairs": rocksdb.pairs, "case_seconds": rocksdb.case_seconds, "flags": FLAGS, "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows), "notes": rocksdb.notes,
        "parts": {"disk": "operations a second over the block cache's, more is better", "threads": "the same by threads", "size": "bytes of code over native"},
    }
    bars = {"title": "RocksDB", "subtitle": "plain tables by spillcc: operations a second over the peer's, more is better; size: over native, less is better", "cases": [row["case"] for row in rows],
            "series": {"block cache, size": [row["ratio"] for row in rows], "plain maps": [row.get("mmap_ratio") for row in rows], "all in memory": [row.get("native_ratio") for row in rows]}}
    return result, bars
