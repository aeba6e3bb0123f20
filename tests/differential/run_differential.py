#!/usr/bin/env python3
"""Random programs, native against spilled in chaos mode, for as long as it is told to.  run_differential.py BIN WORK [OPTIONS]

  --kind KIND      csmith   csmith's programs, whose data is global: -fspill-globals=1; exit status 77 without csmith
                   heap     heap_program.py: lists, trees, tables, packed structures, bytes, threads
                   access   tests/ir/random_program.py: accesses to buffers, loops
                   may be given again; all three without it. Programs of csmith and access have little data: driver.c
  --level LEVEL    O0, O2, O3 or lto; all four without it
  --seed N         the first seed (1); program and chaos mode both follow from it
  --count N        so many seeds of each kind (20), and
  --seconds N      no new one after so long
  --runs N         so many runs of each spilled program (1), each with a chaos seed of its own, and for heap with other values
  --resume         goes on after the last seed that WORK/progress.json knows, and adds to its counts

BIN holds spillcc and spillway. Each program must print what it prints natively, not optimised, and end with the same status. A run
passes only when pages were evicted in it: one without evictions is tried again, and counted by itself if none of the tries had any.
Where a program differs, it is also run natively at that level: one whose native answers differ says nothing, nor does one
that takes more than NATIVE_SECONDS. What differs otherwise stays in WORK/found, with its source, and one line that runs it
again is printed.

The last line printed is a JSON object: the seeds tried, and how many programs and runs did what. It is also in WORK/progress.json, after each
seed. The exit status is 1 if anything was found, one run in ten evicted nothing, or no program of a kind said anything; 2 for wrong input.
"""
import argparse
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, SKIPPED, environment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LEVELS = {"O0": ["-O0"], "O2": ["-O2"], "O3": ["-O3", "-march=x86-64-v3"], "lto": ["-O2", "-flto"]}
FLAGS = ["-w", "-fwrapv", "-fno-strict-aliasing", "-pthread", "-mcx16", "-fuse-ld=lld"]
NATIVE_SECONDS = 1.5  # what is longer is as good as endless, as some of csmith's are
SPILLED_SECONDS = 600
TRIES = 5  # for a run with evictions
AGAIN_RUNS = 20  # threads and evictions fall as they like: what was found once may need more


def csmith(seed):
    # Some 50 KB each: most of the time goes into compiling.
    return ["csmith", "--seed", str(seed), "--max-funcs", "4", "--max-block-size", "3", "--max-block-depth", "4",
            "--max-array-len-per-dim", "60", "--max-array-dim", "2"]


KINDS = {
    # Command that prints the program, whether driver.c runs it, more flags, spillcc's own flags, argument of run i.
    "csmith": (csmith, True, ["-I/usr/include/csmith"], ["-fspill-globals=1"], lambda i: "1"),
    "heap": (lambda seed: [sys.executable, str(HERE / "heap_program.py"), str(seed)], False, [], [], str),
    "access": (lambda seed: [sys.executable, str(HERE.parent / "ir" / "random_program.py"), str(seed)], True, [], [], lambda i: ""),
}
MOST_WITHOUT = 0.1  # of all runs: small programs may end before anything is evicted
COUNTERS = ("programs", "runs", "evictions", "without_evictions", "undecided", "found")


class Undecided(Exception):
    """The program says nothing about spilling."""


class Difference(Exception):
    pass


def run(command, seconds, **settings):
    """(exit status, what it printed); None if it took longer."""
    try:
        ended = subprocess.run(command, env=environment(**settings), capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    return ended.returncode, ended.stdout + ended.stderr


def compiled(compiler, flags, source, target):
    ended = subprocess.run([str(compiler), *flags, str(source), "-o", str(target)], env=CLEAN, capture_output=True, text=True)
    if ended.returncode != 0:
        raise Difference(f"{compiler} {shlex.join(flags)} fails\n{ended.stderr[-2000:]}")
    return target


class Tester:
    def __init__(self, given, counts):
        self.given = given
        self.work = given.work
        self.counts = counts  # kind: counter: value

    def native(self, kind, flags, source):
        """What each run prints."""
        program = compiled("clang-19", flags, source, self.work / "native")
        answers = [run([str(program), KINDS[kind][4](i)], NATIVE_SECONDS) for i in range(self.given.runs)]
        if None in answers:
            raise Undecided
        return answers

    def run_once(self, kind, number, command):
        """What the program printed in a run with evictions; the last try's if none had any."""
        stats = self.work / "stats.json"
        storage = "memory:256M" if number % 16 else str(self.work)
        for attempt in range(TRIES):
            chaos = 1 + number * TRIES + attempt
            ended = run(command, SPILLED_SECONDS, memory="1M", spill_all=1, storage=storage, chaos=chaos,
                        page=("4K", "4K", "8K")[number % 3], stats=stats)
            if ended is None:
                raise Difference(f"still running after {SPILLED_SECONDS} s, chaos {chaos}")
            evictions = json.loads(stats.read_text())["cache"]["evictions"] if stats.exists() else 0
            stats.unlink(missing_ok=True)
            if evictions > 0 or ended[0] != 0:
                break
        self.counts[kind]["runs"] += 1
        self.counts[kind]["evictions"] += evictions
        self.counts[kind]["without_evictions"] += evictions == 0
        return ended

    def compare(self, kind, seed, level, source, flags, expected):
        flags = [*flags, *LEVELS[level]]
        try:
            program = compiled(self.given.bin / "spillcc", [*flags, *KINDS[kind][3]], source, self.work / "spilled")
            for i in range(self.given.runs):
                ended = self.run_once(kind, seed * self.given.runs + i, [str(program), KINDS[kind][4](i)])
                if ended != expected[i]:
                    raise Difference(first_difference(expected[i], ended))
        except Difference as difference:
            if self.native(kind, flags, source) != expected:
                raise Undecided from None
            self.keep(kind, seed, level, difference)

    def try_seed(self, kind, seed):
        generator, driven, more, _, _ = KINDS[kind]
        program = self.work / f"{kind}-{seed}.c"
        # csmith leaves a file where it runs.
        program.write_bytes(subprocess.run(generator(seed), check=True, capture_output=True, cwd=self.work).stdout)
        source = HERE / "driver.c" if driven else program
        flags = [*FLAGS, *more, *([f'-DPROGRAM="{program}"'] if driven else [])]
        self.counts[kind]["programs"] += 1
        try:
            expected = self.native(kind, [*flags, "-O0"], source)
            for level in self.given.level or LEVELS:
                self.compare(kind, seed, level, source, flags, expected)
        except Undecided:
            self.counts[kind]["undecided"] += 1
        program.unlink()

    def keep(self, kind, seed, level, difference):
        self.counts[kind]["found"] += 1
        folder = self.work / "found" / f"{kind}-{seed}-{level}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.work / f"{kind}-{seed}.c", folder / "program.c")
        again = shlex.join([sys.executable, __file__, str(self.given.bin), str(self.work / "again"), "--kind", kind, "--level",
                            level, "--seed", str(seed), "--count", "1", "--runs", str(AGAIN_RUNS)])
        (folder / "again").write_text(again + "\n")
        print(f"{kind} {seed} {level}: {difference}\nkept in {folder}; again: {again}", flush=True)


def first_difference(expected, ended):
    text = f"exit status {ended[0]}, natively {expected[0]}\n" if ended[0] != expected[0] else ""
    native, ours = expected[1].decode(errors="replace").splitlines(), ended[1].decode(errors="replace").splitlines()
    for i in range(max(len(native), len(ours))):
        a, b = (lines[i] if i < len(lines) else "(end)" for lines in (native, ours))
        if a != b:
            return f"{text}line {i + 1}\n  native  {a[:200]}\n  spilled {b[:200]}"
    return text


def parse_arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[0])
    parser.add_argument("bin", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("work", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--level", action="append", choices=LEVELS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def main():
    given = parse_arguments()
    kinds = given.kind or list(KINDS)
    if "csmith" in kinds and shutil.which("csmith") is None:
        print("csmith is not installed; scripts/install-deps.sh installs it")
        if kinds == ["csmith"]:
            return SKIPPED
        kinds.remove("csmith")
    given.work.mkdir(parents=True, exist_ok=True)
    progress = given.work / "progress.json"
    told = {"first_seed": given.seed, "next_seed": given.seed, "counts": {kind: dict.fromkeys(COUNTERS, 0) for kind in kinds}}
    if given.resume and progress.exists():
        told = json.loads(progress.read_text())
        if list(told["counts"]) != kinds:
            print(f"{progress} is of other kinds: {' '.join(told['counts'])}")
            return 2
    tester = Tester(given, told["counts"])
    end = time.monotonic() + given.seconds
    for seed in range(told["next_seed"], given.seed + given.count):
        if time.monotonic() >= end:
            break
        for kind in kinds:
            tester.try_seed(kind, seed)
        told["next_seed"] = seed + 1
        # A kill leaves the old one or the new one.
        fresh = progress.with_suffix(".new")
        fresh.write_text(json.dumps(told) + "\n")
        fresh.replace(progress)
    for name in ("native", "spilled"):
        (given.work / name).unlink(missing_ok=True)
    print(json.dumps(told))
    few = [kind for kind, counts in told["counts"].items() if counts["without_evictions"] > MOST_WITHOUT * max(counts["runs"], 1)]
    if few:
        print(f"too many runs without evictions: {', '.join(few)}", file=sys.stderr)
    silent = [kind for kind, counts in told["counts"].items() if counts["programs"] > 0 and counts["runs"] + counts["found"] == 0]
    if silent:
        print(f"nothing was compared: all programs are undecided, {', '.join(silent)}", file=sys.stderr)
    return 1 if few or silent or any(counts["found"] for counts in told["counts"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
