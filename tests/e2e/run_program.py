#!/usr/bin/env python3
"""Runs one test program natively and spilled, and compares.  run_program.py BIN WORK PROGRAM.c [MODE...]

BIN holds spillcc, spillc++ and spillway; WORK is a folder for what is made. The program's first comment
block says what is expected, one "// key: value" a line:

  flags      for both compilers                           (none)
  spillcc    flags for spillcc only                       (none)
  levels     how spillcc compiles it                      O0 O2 O3 for C, O0 O2 for C++; lto, thin, thin-O0, bodies, satc, satc-O0, satc-lto, avx2, avx512, static, static-pie, static-lto
  case       arguments [=> exit status, 128 + signal if killed]; one line for each case   (no arguments, 0); "fork" is left out of satc
  input      file beside the program for standard input   (empty)
  stderr     same, or a regular expression for the spilled program's: it is not compared  (same)
  memory     budget                                       1M
  pages      page sizes of the runs in chaos mode         4K 16K 64K
  chaos      how many seeds                               3, and at most SPILLWAY_TEST_SEEDS_MOST; SPILLWAY_TEST_SEEDS overrides
  storage    device; a folder, where what the process has in memory is measured   a directory
  servers    "yes": also runs with one server, two, and one that is always asked, each plain and in chaos mode
  expect     bounds of the statistics of a run with a small budget, "cache.evictions>=100 spill.faults<=1"; at
             most so many spill.faults holds in chaos mode too
  evictions  "none", and why: no run evicts anything       (some run does)
  needs      flags of the processor: without one the program is skipped, exit status 77   (none)

A program that natively ends with exit status 77 is skipped, too: the last line that it prints says what it needs and is not there.
Each level runs with a small budget and everything spilled; O2 (or the only level) also in chaos mode
and with the option's defaults. Standard output, standard error and exit status must be the native ones.
A run that lasts SECONDS_MAX hangs; on a quiet machine the longest of a program, which its line of success names,
should take a twentieth of that.
MODE: tiny, default, chaos, servers (of any program) or native, to run only those. native is for the level bodies: with memory that native
bodies run in, which they then must, plain and in chaos mode. SPILLWAY_TEST_LEVELS overrides the levels, SPILLWAY_TEST_LEVELS_LEFT_OUT leaves some out
of programs that have others; SPILLWAY_TEST_STORAGE is the device of programs that name none, but not of the runs with the option's defaults;
SPILLWAY_TEST_FLAGS are for spillcc (a build with a sanitizer links its runtime with them).
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, SKIPPED, Failure, Skipped, shell_line, status_of  # noqa: E402

LEVELS = {
    "O0": ["-O0"],
    "O1": ["-O1", "-g"],
    "O2": ["-O2"],
    "O3": ["-O3"],
    "avx2": ["-O3", "-march=x86-64-v3"],
    "avx512": ["-O3", "-march=x86-64-v4"],
    "lto": ["-O2", "-flto"],
    "thin": ["-O2", "-flto=thin"],
    "thin-O0": ["-O0", "-flto=thin"],
    "bodies": ["-O2", "-fspill-bodies=2"],
    "satc": ["-O2", "-fspill-translation=satc"],
    "satc-O0": ["-O0", "-fspill-translation=satc"],
    "satc-lto": ["-O2", "-flto", "-fspill-translation=satc"],
    "static": ["-O2", "-static"],
    "static-pie": ["-O2", "-static-pie"],
    "static-lto": ["-O2", "-static", "-flto"],
}
# By whether it is C++: half the time of a test would be the optimization of what runs once.
NATIVE = {False: ["-O2"], True: ["-O0"]}
# In chaos mode, of programs that translate by software caches, by seed: small ones, of which pages leave.
SATC_LEVELS, SATC_POLICIES = ["both", "private", "direct", "none"], ["clock", "lru", "random"]
# Enough for native bodies to run.
BODIES_MEMORY = "24M"
SECONDS_MAX = HANG_SECONDS * int(os.environ.get("SPILLWAY_TEST_SLOWER", "1"))
BOUND = re.compile(r"^([a-z_.]+)(>=|<=|==)(\d+)$")


class Program:
    KEYS = {"flags", "spillcc", "levels", "case", "input", "stderr", "memory", "pages", "chaos", "storage", "servers", "expect", "evictions",
            "needs"}

    def __init__(self, path):
        self.path = path
        self.cxx = path.suffix == ".cc"
        settings = {}
        for line in path.read_text().splitlines():
            if not line.startswith("//"):
                break
            match = re.match(r"// ([a-z]+): (.*)$", line)
            if match and match[1] in self.KEYS:
                settings.setdefault(match[1], []).append(match[2].strip())
        self.flags = shlex.split(" ".join(settings.get("flags", [])))
        self.spillcc_flags = shlex.split(" ".join(settings.get("spillcc", []) + [os.environ.get("SPILLWAY_TEST_FLAGS", "")]))
        levels = settings.get("levels", ["O0 O2" if self.cxx else "O0 O2 O3"])
        left_out = os.environ.get("SPILLWAY_TEST_LEVELS_LEFT_OUT", "").split()
        self.levels = os.environ.get("SPILLWAY_TEST_LEVELS", " ".join(levels)).split()
        self.levels = [level for level in self.levels if level not in left_out] or self.levels
        self.cases = [self.parse_case(text) for text in settings.get("case", [""])]
        self.input = settings.get("input", [None])[0]
        self.stderr = settings.get("stderr", ["same"])[0]
        self.memory = settings.get("memory", ["1M"])[0]
        self.pages = " ".join(settings.get("pages", ["4K 16K 64K"])).split()
        seeds = min(int(settings.get("chaos", ["3"])[0]), int(os.environ.get("SPILLWAY_TEST_SEEDS_MOST", "1000")))
        self.seeds = int(os.environ.get("SPILLWAY_TEST_SEEDS", seeds))
        if settings.get("chaos") == ["0"]:
            self.seeds = 0
        self.storage = settings.get("storage", [None])[0]
        self.is_served = "servers" in settings
        self.bounds = [self.parse_bound(text) for text in " ".join(settings.get("expect", [])).split()]
        self.evicts = not settings.get("evictions", [""])[0].startswith("none")
        self.needs = " ".join(settings.get("needs", [])).split()
        # Pages are larger there, but some must have gone.
        self.chaos_bounds = [("cache.evictions", ">=", 1)] if self.bounds else []
        self.chaos_bounds += [bound for bound in self.bounds if bound[:2] == ("spill.faults", "<=")]

    @staticmethod
    def parse_case(text):
        arguments, _, status = text.partition("=>")
        return arguments.split(), int(status or 0)

    def parse_bound(self, text):
        match = BOUND.match(text)
        if not match:
            raise Failure(f"{self.path}: '{text}' is no bound such as cache.evictions>=100")
        return match[1], match[2], int(match[3])


class Ended:
    """What a run left behind."""

    def __init__(self, status, out, err):
        self.status = status if status >= 0 else 128 - status
        self.out = out
        self.err = err


class Runner:
    def __init__(self, bin_folder, work, program):
        self.bin = bin_folder
        self.work = work
        self.program = program
        self.runs = 0
        self.evictions = 0  # in all of them
        self.longest = 0.0  # of the spilled runs, in seconds

    def compile(self, compiler, level, flags=()):
        target = self.work / level
        command = [str(compiler), *LEVELS.get(level, NATIVE[self.program.cxx]), "-w", *self.program.flags, *flags, str(self.program.path),
                   "-o", str(target)]
        done = subprocess.run(command, env=CLEAN, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"{shlex.join(command)}\n{done.stderr}")
        return target

    def run(self, binary, arguments, variables):
        source = self.program.path.parent / self.program.input if self.program.input else "/dev/null"
        folder = self.work / "cwd"
        folder.mkdir(exist_ok=True)
        command = [str(binary), *arguments]
        with open(source, "rb") as given:
            child = subprocess.Popen(command, env={**CLEAN, **variables}, stdin=given, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, cwd=folder)
        self.pid = child.pid
        try:
            out, err = child.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            raise Failure(f"still running after {SECONDS_MAX} s\n{show(out)}{show(err)}")
        return Ended(child.returncode, out, err)

    def check(self, mode, binary, native, arguments, status, variables):
        """One spilled run against what the native program did."""
        stats_pattern = self.work / "stats-%p.json"
        elsewhere = os.environ.get("SPILLWAY_TEST_STORAGE") if mode != "default" else None
        variables = {"SPILLWAY_STORAGE": self.program.storage or elsewhere or str(self.work),
                     "SPILLWAY_STATS": str(stats_pattern), **variables}
        self.runs += 1
        try:
            start = time.monotonic()
            ended = self.run(binary, arguments, variables)
            self.longest = max(self.longest, time.monotonic() - start)
            if ended.status != status:
                raise Failure(f"exit status {ended.status}, not {status}\n{show(ended.out)}{show(ended.err)}")
            if ended.out != native.out:
                raise Failure("standard output differs\n" + difference(native.out, ended.out) + show(ended.err))
            if self.program.stderr == "same":
                if ended.err != native.err:
                    raise Failure("standard error differs\n" + difference(native.err, ended.err))
            elif not re.search(self.program.stderr, ended.err.decode(errors="replace")):
                raise Failure(f"standard error has no match for {self.program.stderr}\n{show(ended.err)}")
            bounds = {"tiny": self.program.bounds, "chaos": self.program.chaos_bounds, "default": [], "native": [("spill.native_ms", ">=", 1)],
                      "servers": [("cache.server_requests", ">=", 1), ("cache.server_messages", "<", "cache.server_requests")] if self.program.is_served else []}[mode]
            self.check_statistics(self.work / f"stats-{self.pid}.json", bounds, status)
        except Failure as failure:
            raise Failure(f"{failure}\nreplay: {shell_line(variables, [str(binary), *arguments])}") from None

    def check_statistics(self, path, bounds, status):
        if not path.exists():
            if status < 128 and bounds:
                raise Failure(f"no statistics in {path}")
            return
        statistics = json.loads(path.read_text())
        path.unlink()
        self.evictions += statistics["cache"]["evictions"]
        value_of = lambda name: statistics[name.partition(".")[0]][name.partition(".")[2]]  # noqa: E731
        for name, relation, bound in bounds:
            value, bound = value_of(name), value_of(bound) if isinstance(bound, str) else bound
            good = {">=": value >= bound, "<=": value <= bound, "<": value < bound, "==": value == bound}[relation]
            if not good:
                raise Failure(f"{name} is {value}, not {relation} {bound}")

    @staticmethod
    def satc(level, seed):
        if not level.startswith("satc"):
            return {}
        return {"SPILLWAY_SATC_LEVELS": SATC_LEVELS[(seed - 1) % 4], "SPILLWAY_SATC_POLICY": SATC_POLICIES[seed % 3], "SPILLWAY_SATC_PRIVATE": "8",
                "SPILLWAY_SATC_CYCLES": str(seed // 2 % 2)}

    def chaos_runs(self, mode, level, variables):
        pages = self.program.pages
        return [(mode, {**variables, "SPILLWAY_CHAOS": str(seed), "SPILLWAY_PAGE": pages[seed % len(pages)], **self.satc(level, seed)})
                for seed in range(1, self.program.seeds + 1)]

    def native_runs(self, level, variables):
        variables = {**variables, "SPILLWAY_MEMORY": BODIES_MEMORY}
        return [("native", variables), *self.chaos_runs("native", level, variables)]

    def served_runs(self, variables):
        runs = []
        for seed, (number, always) in enumerate([("1", "0"), ("2", "0"), ("1", "1")], 1):
            served = {**variables, "SPILLWAY_SERVERS": number, "SPILLWAY_SERVERS_ALWAYS": always}
            page = self.program.pages[seed % len(self.program.pages)]
            runs += [("servers", served), ("servers", {**served, "SPILLWAY_CHAOS": str(seed), "SPILLWAY_PAGE": page})]
        return runs

    def run_all(self, modes):
        program = self.program
        flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split()
        for need in program.needs + (["avx512vl"] if "avx512" in program.levels else []):
            if need not in flags:
                raise Skipped(f"this processor has no {need}")
        compiler = "clang++-19" if program.cxx else "clang-19"
        native = self.compile(compiler, "native")
        expected = []
        for arguments, status in program.cases:
            ended = self.run(native, arguments, {})
            if ended.status == SKIPPED:
                raise Skipped(ended.out.decode(errors="replace").rstrip("\n").rpartition("\n")[2])
            if ended.status != status:
                raise Failure(f"native, {arguments}: exit status {ended.status}, not {status}\n"
                              f"{show(ended.out)}{show(ended.err)}")
            expected.append(ended)
        ours = self.bin / ("spillc++" if program.cxx else "spillcc")
        for level in program.levels:
            binary = self.compile(ours, level, program.spillcc_flags)
            main = level == "O2" or len(program.levels) == 1
            tiny = {"SPILLWAY_MEMORY": program.memory, "SPILLWAY_SPILL_ALL": "1"}
            runs = [("tiny", tiny)]
            if main:
                runs.append(("default", {"SPILLWAY_MEMORY": program.memory}))
                runs += self.chaos_runs("chaos", level, tiny)
            if main and (program.is_served or "servers" in modes):
                runs += self.served_runs(tiny)
            if main and "native" in modes:
                runs += self.native_runs(level, tiny)
            for mode, variables in runs:
                if modes and mode not in modes:
                    continue
                for (arguments, status), ended in zip(program.cases, expected):
                    if level.startswith("satc") and arguments[:1] == ["fork"]:  # it is refused there
                        continue
                    self.check(mode, binary, ended, arguments, status, variables)
        if not modes and program.evicts and self.evictions == 0:
            raise Failure("no run evicted anything; give it more data, or say why it cannot: evictions: none, WHY")


def show(output):
    text = output.decode(errors="replace")
    return text if len(text) < 4000 else text[:2000] + "\n[...]\n" + text[-2000:]


def difference(native, ours):
    native, ours = native.decode(errors="replace").splitlines(), ours.decode(errors="replace").splitlines()
    for i in range(max(len(native), len(ours))):
        a = native[i] if i < len(native) else "(end)"
        b = ours[i] if i < len(ours) else "(end)"
        if a != b:
            return f"line {i + 1}\n  native  {a[:300]}\n  spilled {b[:300]}\n"
    return "in line ends only\n"


def run_all(bin_folder, work, path, modes):
    for left in work.glob("stats-*.json"):  # by children of earlier runs, whose numbers come again
        left.unlink()
    runner = Runner(bin_folder, work, Program(path))
    runner.run_all(modes)
    print(f"{path.name}: {runner.runs} spilled runs as native, {runner.evictions} evictions, {runner.longest:.0f} s the longest")


def main():
    bin_folder, work, path = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    work.mkdir(parents=True, exist_ok=True)
    return status_of(path.name, run_all, bin_folder, work, path, sys.argv[4:])


if __name__ == "__main__":
    sys.exit(main())
