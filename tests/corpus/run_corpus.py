#!/usr/bin/env python3
"""Runs other people's programs natively and spilled: their own tests must find the same.

  run_corpus.py BIN WORK [--tier fast] [--level O2|O0|lto]... [--mode MODE]... [PROGRAM...]

BIN holds spillcc, spillc++ and spillway; WORK keeps sources, builds and logs. programs.toml says what is
built and tested, programs.py fetches, builds and runs it. For each program

  1 the sources are fetched (WORK/sources) and, once for each compiler, copied and built
  2 the tests run natively: what they find is what is expected, and their peak is measured
  3 they run under `spillway run --spill-all` with a cache of a sixteenth of that peak, but at least 256
    frames, at pages of 4 and 64 KiB, without and with chaos mode. MODE: 4K, 64K, chaos-4K, chaos-64K

A run passes if its tests find what they found natively and the busiest process evicted ten times as many
pages as its cache has frames; one whose tests agree with fewer evictions is called `few`, which is a failure
too, unless `--allow-few` is given. A program whose sources or needs are missing is `skipped`. WORK/table.md has the
table of all runs in WORK, the latest of each, and WORK/results.json their figures; both are written after each run.

Exit status: 0 all passed, 77 some skipped and none failed, 1 otherwise, 2 wrong arguments.
"""
import argparse
import collections
import dataclasses
import fcntl
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from programs import LEVELS, Corpus, read_programs  # noqa: E402
from support import SKIPPED, Failure, Skipped, fresh  # noqa: E402

MODES = {"4K": (4096, 0), "64K": (65536, 0), "chaos-4K": (4096, 1), "chaos-64K": (65536, 2)}
PEAK_TO_CACHE = 16
FRAMES_MIN = 256
EVICTIONS_TO_FRAMES = 10


@dataclasses.dataclass
class Statistics:
    """What the spilled processes of a run wrote: those that ended by themselves."""
    processes: list

    @staticmethod
    def taken_from(folder):
        processes = []
        for path in folder.glob("stats-*.json"):
            if path.stat().st_size:
                processes.append(json.loads(path.read_text()))
                path.unlink()
        return Statistics(processes)

    def total(self, folder, key):
        return sum(one[folder][key] for one in self.processes)

    def hottest_site(self):
        """Where most faults came from, and how many of a hundred; "" without faults."""
        counts = collections.Counter()
        for one in self.processes:
            for site in one["spill"]["fault_sites"]:
                name = f" {site['symbol']}" if site["symbol"] else f"+{site['offset']}"
                counts[(pathlib.PurePosixPath(site["module"]).name or "code of no file") + name] += site["count"]
        for name, count in counts.most_common(1):
            return f"{name} ({100 * count // self.total('spill', 'faults')} %)"
        return ""

    def busiest_evictions(self):
        return max((one["cache"]["evictions"] for one in self.processes), default=0)


@dataclasses.dataclass
class Row:
    program: str
    level: str
    mode: str
    outcome: str
    quick: bool = False
    native_tests: int = 0
    spilled_tests: int = 0
    native_peak_bytes: int = 0
    budget_bytes: int = 0
    frames: int = 0
    written_bytes: int = 0
    evictions: int = 0
    busiest_evictions: int = 0
    faults: int = 0
    hottest_site: str = ""
    native_seconds: float = 0
    spilled_seconds: float = 0
    detail: str = ""


class Comparison:
    """Runs of one program, native and spilled."""

    def __init__(self, corpus, program, storage):
        self.corpus = corpus
        self.program = program
        self.storage = storage
        self.folder = corpus.work / program.name

    def run_native(self):
        """What it left behind, and its peak in bytes."""
        built = self.corpus.build(self.program, "native")
        library = self.corpus.work / "peak.so"
        if not library.exists() or library.stat().st_mtime < (HERE / "peak.c").stat().st_mtime:
            made = self.corpus.work / f"peak-{os.getpid()}.so"
            subprocess.run(["clang-19", "-O2", "-shared", "-fPIC", HERE / "peak.c", "-o", made], check=True)
            made.replace(library)
        peaks = self.folder / "native" / "peaks"
        peaks.unlink(missing_ok=True)
        ran = self.corpus.run(self.program, built, self.folder / "native" / "test.log", [],
                              {"LD_PRELOAD": str(library), "CORPUS_PEAKS": str(peaks)})
        if ran.status != 0 or ran.tests == 0:
            raise Failure(f"natively, its tests end with status {ran.status}, {ran.tests} passed: {ran.log}")
        measured = [line.split("\t") for line in (peaks.read_text().splitlines() if peaks.exists() else [])]
        peak_kib = max((int(kib) for name, kib in measured if name in self.program.programs), default=0)
        if peak_kib == 0:
            raise Failure(f"natively, none of its processes ended by itself: {peaks}")
        return ran, peak_kib * 1024

    def run_spilled(self, level, mode, native, peak_bytes):
        page_bytes, seed = MODES[mode]
        built = self.corpus.build(self.program, level)
        budget_bytes = max(peak_bytes // PEAK_TO_CACHE, FRAMES_MIN * page_bytes)
        budget_bytes = min(budget_bytes, self.program.frames.get(str(page_bytes), 1 << 40) * page_bytes)
        folder = fresh(self.folder / level / mode)
        prefix = [str(self.corpus.bin / "spillway"), "run", "--spill-all", "--memory", str(budget_bytes), "--page", str(page_bytes),
                  "--storage", self.storage, "--stats", str(folder / "stats-%p.json"),
                  "--preload=0"]  # what shells and interpreters spill proves nothing of the program
        if seed:
            prefix += ["--chaos", str(seed)]
        prefix += ["--"]
        row = Row(self.program.name, level, mode, "failed", native_tests=native.tests, native_peak_bytes=peak_bytes, budget_bytes=budget_bytes,
                  frames=budget_bytes // page_bytes, native_seconds=native.cpu_seconds)
        try:
            ran = self.corpus.run(self.program, built, folder / "test.log", prefix, {})
        except Failure as failure:
            row.detail = str(failure)
            return row
        statistics = Statistics.taken_from(folder)
        row.spilled_tests = (native.findings & ran.findings).total() if native.tests == native.findings.total() else ran.tests
        row.written_bytes = statistics.total("storage", "write_bytes")
        row.evictions = statistics.total("cache", "evictions")
        row.busiest_evictions = statistics.busiest_evictions()
        row.faults = statistics.total("spill", "faults")
        row.hottest_site = statistics.hottest_site()
        row.spilled_seconds = ran.cpu_seconds
        if ran.status != native.status or ran.findings != native.findings:
            lost = list((native.findings - ran.findings))[:3]
            more = list((ran.findings - native.findings))[:3]
            row.detail = f"status {ran.status}; natively only: {lost}; spilled only: {more}; {ran.log}"
        elif not statistics.processes:
            row.detail = "no process wrote statistics"
        elif row.busiest_evictions < EVICTIONS_TO_FRAMES * row.frames:
            row.outcome = "few"
        else:
            row.outcome = "passed"
        return row

    def run_all(self, levels, modes):
        """Yields a row for each run. Others of the same program in this WORK wait."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield from self._run_all(levels, modes)

    def _run_all(self, levels, modes):
        name = self.program.name
        try:
            self.corpus.fetch_all(self.program)
            native, peak_bytes = self.run_native()
        except Skipped as reason:
            yield Row(name, "", "", "skipped", detail=str(reason))
            return
        except Failure as failure:
            yield Row(name, "native", "", "failed", detail=str(failure))
            return
        for level in levels:
            for mode in modes:
                try:
                    row = self.run_spilled(level, mode, native, peak_bytes)
                except Failure as failure:
                    row = Row(name, level, mode, "failed", detail=str(failure))
                print(f"{name} {level} {mode}: {row.outcome} {row.spilled_tests}/{row.native_tests} "
                      f"{row.spilled_seconds:.1f} s {row.detail}", file=sys.stderr, flush=True)
                yield row


def table(rows):
    head = ["program", "level", "run", "outcome", "tests native", "tests spilled", "native peak", "cache", "written", "evictions ÷ frames",
            "slowdown", "faults", "hottest site"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        mib = lambda count: f"{count / (1 << 20):.1f} MiB"
        if not row.mode:
            lines.append([row.program, row.level, "", row.outcome, *[""] * 9])
            continue
        lines.append([row.program, row.level, row.mode + ", quick" * row.quick, row.outcome, str(row.native_tests), str(row.spilled_tests),
                      mib(row.native_peak_bytes), mib(row.budget_bytes), mib(row.written_bytes),
                      f"{row.busiest_evictions / max(row.frames, 1):.0f}",
                      f"{row.spilled_seconds / row.native_seconds:.1f}" if row.native_seconds else "", str(row.faults),
                      row.hottest_site.replace("|", "\\|")])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def record(work, row):
    """Puts a row among those of WORK, in the place of the one of the same run; programs may run side by side."""
    with open(work / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = work / "results.json"
        rows = [Row(**one) for one in json.loads(results.read_text())] if results.exists() else []
        key = lambda row: (row.program, row.quick, row.level, row.mode)
        rows = [other for other in rows if key(other) != key(row)] + [row]
        order = [program.name for program in read_programs()]
        rows.sort(key=lambda row: (row.quick, order.index(row.program), row.level, list(MODES).index(row.mode) if row.mode else -1))
        (work / "table.md").write_text(table(rows))
        results.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))


def exit_status(count, allow_few):
    if count["failed"] or (count["few"] and not allow_few) or not count:
        return 1
    return SKIPPED if count["skipped"] else 0


def main():
    programs = read_programs()
    names = [program.name for program in programs]
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n", 1)[1].replace("  ", "", 1))
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("program", nargs="*", help="all of the tier if none is named")
    parser.add_argument("--tier", choices=["fast", "slow"])
    parser.add_argument("--level", action="append", choices=LEVELS)
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--storage", default="memory:16G", help="device (default: in memory, the disk is not what is tested)")
    parser.add_argument("--quick", action="store_true", help="leaves out what takes long: $QUICK in the tests")
    parser.add_argument("--allow-few", action="store_true")
    arguments = parser.parse_intermixed_args()
    for name in arguments.program:
        if name not in names:
            parser.error(f"no program is called {name}: {', '.join(names)}")
    chosen = [program for program in programs
              if (program.name in arguments.program if arguments.program else arguments.tier in (None, program.tier))]
    work = arguments.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(arguments.bin.resolve(), work, arguments.quick)
    rows = []
    for program in chosen:
        for row in Comparison(corpus, program, arguments.storage).run_all(arguments.level or ["O2"], arguments.mode or list(MODES)):
            row.quick = arguments.quick
            rows.append(row)
            record(work, row)
    print(table(rows), end="")
    count = collections.Counter(row.outcome for row in rows)
    for row in rows:
        if row.detail:
            print(f"{row.program} {row.level} {row.mode}: {row.outcome}: {row.detail}")
    skipped = "".join(f"; {row.program}: {row.detail}" for row in rows if row.outcome == "skipped")
    print(", ".join(f"{number} {outcome}" for outcome, number in count.items()) + skipped)
    return exit_status(count, arguments.allow_few)


if __name__ == "__main__":
    sys.exit(main())
