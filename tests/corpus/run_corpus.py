#!/usr/bin/env python3
"""Runs other people's programs natively and spilled: their own tests must find the same.

  run_corpus.py BIN WORK [--tier fast] [--level O2|O0|lto]... [--mode MODE]... [PROGRAM...]

BIN holds spillcc, spillc++ and spillway; WORK keeps sources, builds and logs. programs.toml says what is
built and tested. For each program

  1 the sources are fetched (WORK/sources) and, once for each compiler, copied and built
  2 the tests run natively: what they find is what is expected, and their peak is measured
  3 they run under `spillway run --spill-all` with a cache of a sixteenth of that peak, but at least 256
    frames, at pages of 4 and 64 KiB, without and with chaos mode. MODE: 4K, 64K, chaos-4K, chaos-64K

A run passes if its tests find what they found natively and the busiest process evicted ten times as many
pages as its cache has frames; one whose tests agree with fewer evictions is called `few`, which is a failure
too, unless `--allow-few` is given. A program whose sources or needs are missing is `skipped`. The table at the
end is in WORK/table.md as well, WORK/results.json has all figures.

Exit status: 0 all passed, 77 some skipped and none failed, 1 otherwise, 2 wrong arguments.
"""
import argparse
import collections
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
FETCH = HERE.parent.parent / "scripts" / "fetch-source.sh"
LEVELS = {"O2": [], "O0": ["-O0"], "lto": ["-flto"]}
MODES = {"4K": (4096, 0), "64K": (65536, 0), "chaos-4K": (4096, 1), "chaos-64K": (65536, 2)}
PEAK_TO_CACHE = 16
FRAMES_MIN = 256
EVICTIONS_TO_FRAMES = 10
MISSING = 77
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}


class Skipped(Exception):
    pass


class Failure(Exception):
    pass


def status_of(name, test, options):
    """The exit status of a program that does test(options)."""
    try:
        test(options)
    except Skipped as reason:
        print(reason)
        return MISSING
    except Failure as failure:
        print(f"{name}: {failure}", file=sys.stderr)
        return 1
    return 0


@dataclasses.dataclass
class Program:
    name: str
    tier: str
    sources: list
    programs: list
    build: str
    test: str
    results: str
    needs: dict = dataclasses.field(default_factory=dict)
    frames: dict = dataclasses.field(default_factory=dict)
    timeout: int = 600


@dataclasses.dataclass
class Ran:
    """What one run of a program's tests left behind."""
    status: int
    findings: collections.Counter
    tests: int
    cpu_seconds: float
    log: pathlib.Path
    statistics: list = dataclasses.field(default_factory=list)   # one for each process that ended by itself

    def total(self, folder, key):
        return sum(one[folder][key] for one in self.statistics)

    def hottest_site(self):
        """Where most faults came from, and how many of a hundred; "" without faults."""
        counts = collections.Counter()
        for one in self.statistics:
            for site in one["spill"]["fault_sites"]:
                name = f" {site['symbol']}" if site["symbol"] else f"+{site['offset']}"
                counts[(pathlib.PurePosixPath(site["module"]).name or "code of no file") + name] += site["count"]
        for name, count in counts.most_common(1):
            return f"{name} ({100 * count // self.total('spill', 'faults')} %)"
        return ""

    def busiest_evictions(self):
        return max((one["cache"]["evictions"] for one in self.statistics), default=0)


@dataclasses.dataclass
class Row:
    program: str
    level: str
    mode: str
    outcome: str
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


class Corpus:
    def __init__(self, bin_folder, work, storage, quick):
        self.bin = bin_folder
        self.storage = storage
        self.work = work
        self.quick = "1" if quick else ""
        self.jobs = str(os.cpu_count())
        self.sources = work / "sources"

    def fetch(self, package):
        """The unpacked sources, also as WORK/sources/PACKAGE."""
        done = subprocess.run([FETCH, package, self.sources], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skipped(done.stderr.strip())
        folder = pathlib.Path(done.stdout.strip())
        link = self.sources / package
        if link.is_symlink() and link.resolve() != folder:
            link.unlink()
        try:
            link.symlink_to(folder.name)
        except FileExistsError:
            pass
        return folder

    def compilers(self, variant):
        """Native and spilled programs are built by the same commands: only what `clang` is differs."""
        folder = self.work / "compilers" / variant
        folder.mkdir(parents=True, exist_ok=True)
        for name, native, ours in (("clang", "clang-19", "spillcc"), ("clang++", "clang++-19", "spillc++")):
            real = native if variant == "native" else self.bin / ours
            flags = shlex.join(LEVELS.get(variant, []))
            text = f'#!/bin/sh\nexec {shlex.quote(str(real))} "$@" {flags}\n'
            script = folder / name
            if not script.exists() or script.read_text() != text:
                script.write_text(text)
                script.chmod(0o755)
        return folder

    def compiler_digest(self, variant):
        if variant == "native":
            return ""
        digest = hashlib.sha256()
        for path in sorted(self.bin.parent.glob("lib/libspillway-compiler.so")):
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def build(self, program, variant):
        """A copy of the sources, built; only once for each state of the compiler."""
        folder = self.work / program.name / variant
        built = folder / "built"
        stamp = folder / "stamp"
        key = hashlib.sha256(repr((program.build, variant, self.compiler_digest(variant))).encode()).hexdigest()
        if stamp.exists() and stamp.read_text() == key:
            return built
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copytree(self.fetch(program.sources[0]), built, symlinks=True)
        compilers = self.compilers(variant)
        environment = {**CLEAN, "CC": str(compilers / "clang"), "CXX": str(compilers / "clang++"), "JOBS": self.jobs,
                       "SOURCES": str(self.sources)}
        with open(folder / "build.log", "w") as log:
            done = subprocess.run(["bash", "-euxo", "pipefail", "-c", program.build], cwd=built, env=environment, stdout=log, stderr=log,
                                  stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failure(f"{variant}: its build ends with status {done.returncode}: {folder / 'build.log'}")
        stamp.write_text(key)
        return built

    def run(self, program, built, log, prefix, variables):
        """Its tests, to their end."""
        environment = {**CLEAN, "SOURCES": str(self.sources), "LC_ALL": "C", "TERM": "dumb", "QUICK": self.quick,
                       **variables}
        command = [*prefix, "bash", "-euo", "pipefail", "-c", program.test]
        with open(log, "wb") as out:
            child = subprocess.Popen(command, cwd=built, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                     start_new_session=True)
            deadline = time.monotonic() + program.timeout
            while True:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
                if pid != 0:
                    break
                if time.monotonic() > deadline:
                    os.killpg(child.pid, signal.SIGKILL)
                    os.wait4(child.pid, 0)
                    child.returncode = -signal.SIGKILL
                    raise Failure(f"still running after {program.timeout} s: {log}")
                time.sleep(0.05)
            child.returncode = os.waitstatus_to_exitcode(status)
            try:
                os.killpg(child.pid, signal.SIGKILL)   # servers that a failed test left
            except ProcessLookupError:
                pass
        text = COLOUR.sub("", log.read_text(errors="replace").replace("\r", "\n"))
        found = list(re.finditer(program.results, text, re.MULTILINE))
        tests = sum(int(match["count"]) if "count" in match.groupdict() and match["count"] else 1 for match in found)
        findings = collections.Counter(match[0] for match in found)
        return Ran(child.returncode, findings, tests, usage.ru_utime + usage.ru_stime, log)

    def run_native(self, program):
        built = self.build(program, "native")
        library = self.work / "peak.so"
        if not library.exists() or library.stat().st_mtime < (HERE / "peak.c").stat().st_mtime:
            made = self.work / f"peak-{os.getpid()}.so"
            subprocess.run(["clang-19", "-O2", "-shared", "-fPIC", HERE / "peak.c", "-o", made], check=True)
            made.replace(library)
        peaks = self.work / program.name / "native" / "peaks"
        peaks.unlink(missing_ok=True)
        ran = self.run(program, built, self.work / program.name / "native" / "test.log", [],
                       {"LD_PRELOAD": str(library), "CORPUS_PEAKS": str(peaks)})
        if ran.status != 0 or ran.tests == 0:
            raise Failure(f"natively, its tests end with status {ran.status}, {ran.tests} passed: {ran.log}")
        measured = [line.split("\t") for line in (peaks.read_text().splitlines() if peaks.exists() else [])]
        peak_kib = max((int(kib) for name, kib in measured if name in program.programs), default=0)
        if peak_kib == 0:
            raise Failure(f"natively, none of its processes ended by itself: {peaks}")
        return ran, peak_kib * 1024

    def run_spilled(self, program, level, mode, native, peak_bytes):
        page_bytes, seed = MODES[mode]
        built = self.build(program, level)
        budget_bytes = max(peak_bytes // PEAK_TO_CACHE, FRAMES_MIN * page_bytes)
        budget_bytes = min(budget_bytes, program.frames.get(str(page_bytes), 1 << 40) * page_bytes)
        folder = self.work / program.name / level / mode
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        prefix = [str(self.bin / "spillway"), "run", "--spill-all", "--memory", str(budget_bytes), "--page", str(page_bytes),
                  "--storage", self.storage, "--stats", str(folder / "stats-%p.json"),
                  "--preload=0"]  # what shells and interpreters spill proves nothing of the program
        if seed:
            prefix += ["--chaos", str(seed)]
        prefix += ["--"]
        row = Row(program.name, level, mode, "failed", native.tests, native_peak_bytes=peak_bytes, budget_bytes=budget_bytes,
                  frames=budget_bytes // page_bytes, native_seconds=native.cpu_seconds)
        try:
            ran = self.run(program, built, folder / "test.log", prefix, {})
        except Failure as failure:
            row.detail = str(failure)
            return row
        for path in folder.glob("stats-*.json"):
            if path.stat().st_size:
                ran.statistics.append(json.loads(path.read_text()))
                path.unlink()
        row.spilled_tests = (native.findings & ran.findings).total() if native.tests == native.findings.total() else ran.tests
        row.written_bytes = ran.total("storage", "write_bytes")
        row.evictions = ran.total("cache", "evictions")
        row.busiest_evictions = ran.busiest_evictions()
        row.faults = ran.total("spill", "faults")
        row.hottest_site = ran.hottest_site()
        row.spilled_seconds = ran.cpu_seconds
        if ran.status != native.status or ran.findings != native.findings:
            lost = list((native.findings - ran.findings))[:3]
            more = list((ran.findings - native.findings))[:3]
            row.detail = f"status {ran.status}; natively only: {lost}; spilled only: {more}; {ran.log}"
        elif not ran.statistics:
            row.detail = "no process wrote statistics"
        elif row.busiest_evictions < EVICTIONS_TO_FRAMES * row.frames:
            row.outcome = "few"
        else:
            row.outcome = "passed"
        return row

    def run_program(self, program, levels, modes):
        """All runs of one program. Others of the same program in this WORK wait."""
        (self.work / program.name).mkdir(parents=True, exist_ok=True)
        with open(self.work / program.name / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return self._run_program(program, levels, modes)

    def _run_program(self, program, levels, modes):
        try:
            for path, package in program.needs.items():
                if not pathlib.Path(path).exists():
                    raise Skipped(f"needs {path} (package {package}); run scripts/install-deps.sh")
            for package in program.sources:
                self.fetch(package)
            native, peak_bytes = self.run_native(program)
        except Skipped as reason:
            return [Row(program.name, "", "", "skipped", detail=str(reason))]
        except Failure as failure:
            return [Row(program.name, "native", "", "failed", detail=str(failure))]
        rows = []
        for level in levels:
            for mode in modes:
                try:
                    row = self.run_spilled(program, level, mode, native, peak_bytes)
                except Failure as failure:
                    row = Row(program.name, level, mode, "failed", detail=str(failure))
                print(f"{program.name} {level} {mode}: {row.outcome} {row.spilled_tests}/{row.native_tests} "
                      f"{row.spilled_seconds:.1f} s {row.detail}", file=sys.stderr, flush=True)
                rows.append(row)
        return rows


def table(rows):
    head = ["program", "level", "run", "outcome", "tests native", "tests spilled", "native peak", "cache", "written", "evictions ÷ frames",
            "slowdown", "faults", "hottest site"]
    lines = [head, ["---"] * len(head)]
    for row in rows:
        mib = lambda count: f"{count / (1 << 20):.1f} MiB"
        if not row.mode:
            lines.append([row.program, row.level, "", row.outcome, *[""] * 9])
            continue
        lines.append([row.program, row.level, row.mode, row.outcome, str(row.native_tests), str(row.spilled_tests),
                      mib(row.native_peak_bytes), mib(row.budget_bytes), mib(row.written_bytes),
                      f"{row.busiest_evictions / max(row.frames, 1):.0f}",
                      f"{row.spilled_seconds / row.native_seconds:.1f}" if row.native_seconds else "", str(row.faults),
                      row.hottest_site.replace("|", "\\|")])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def exit_status(count, allow_few):
    if count["failed"] or (count["few"] and not allow_few) or not count:
        return 1
    return MISSING if count["skipped"] else 0


def read_programs():
    with open(HERE / "programs.toml", "rb") as file:
        return [Program(**entry) for entry in tomllib.load(file)["program"]]


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
    corpus = Corpus(arguments.bin.resolve(), work, arguments.storage, arguments.quick)
    rows = []
    for program in chosen:
        rows += corpus.run_program(program, arguments.level or ["O2"], arguments.mode or list(MODES))
    text = table(rows)
    (work / "table.md").write_text(text)
    (work / "results.json").write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    print(text, end="")
    count = collections.Counter(row.outcome for row in rows)
    for row in rows:
        if row.detail:
            print(f"{row.program} {row.level} {row.mode}: {row.outcome}: {row.detail}")
    skipped = "".join(f"; {row.program}: {row.detail}" for row in rows if row.outcome == "skipped")
    print(", ".join(f"{number} {outcome}" for outcome, number in count.items()) + skipped)
    return exit_status(count, arguments.allow_few)


if __name__ == "__main__":
    sys.exit(main())
