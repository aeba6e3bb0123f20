#!/usr/bin/env python3
"""Random programs, native against spilled in chaos mode, for as long as it is told to.  run_differential.py BIN WORK [OPTIONS]

  --kind KIND      csmith   csmith's programs, whose data is global: -fspill-globals=1; exit status 77 without csmith
                   heap     heap_program.py: lists, trees, tables, packed structures, bytes, threads
                   access   tests/ir/random_program.py: accesses to buffers, loops
                   may be given again; all three without it
  --level LEVEL    O0, O2, O3 or lto; all four without it
  --seed N         the first seed (1); program and chaos mode both follow from it
  --count N        so many seeds of each kind (20), and
  --seconds N      no new one after so long

BIN holds spillcc and spillway. Each program must print what it prints natively and end with the same status. Natively it is
run twice, not optimised and at the level that is compared: a program whose own answers differ, or that takes more than NATIVE_SECONDS, says
nothing and is counted. What differs stays in WORK/found, with its source, and one line that runs it again is printed.
The exit status is 1 then, 2 for wrong input.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
LEVELS = {"O0": ["-O0"], "O2": ["-O2"], "O3": ["-O3", "-march=x86-64-v3"], "lto": ["-O2", "-flto", "-fuse-ld=lld"]}
FLAGS = ["-w", "-fwrapv", "-fno-strict-aliasing", "-pthread", "-mcx16"]
NATIVE_SECONDS = 4
SPILLED_SECONDS = 120


def csmith(seed):
    return ["csmith", "--seed", str(seed), "--max-funcs", "5", "--max-array-len-per-dim", "60", "--max-array-dim", "2"]


KINDS = {
    # Command that prints the program, more flags, spillcc's own flags, arguments.
    "csmith": (csmith, ["-I/usr/include/csmith"], ["-fspill-globals=1"], ["1"]),
    "heap": (lambda seed: [sys.executable, str(HERE / "heap_program.py"), str(seed)], [], [], []),
    "access": (lambda seed: [sys.executable, str(HERE.parent / "ir" / "random_program.py"), str(seed)], [], [], []),
}


class Undecided(Exception):
    """The program says nothing about spilling."""


class Difference(Exception):
    pass


def run(command, seconds, **variables):
    """(exit status, what it printed)"""
    try:
        ended = subprocess.run(command, env={**CLEAN, **variables}, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    return ended.returncode, ended.stdout + ended.stderr


def compiled(compiler, flags, source, target):
    ended = subprocess.run([str(compiler), *flags, str(source), "-o", str(target)], env=CLEAN, capture_output=True, text=True)
    if ended.returncode != 0:
        raise Difference(f"{compiler} {shlex.join(flags)} fails\n{ended.stderr[-2000:]}")
    return target


class Tester:
    def __init__(self, bin_folder, work):
        self.bin = bin_folder
        self.work = work
        self.counts = {"programs": 0, "comparisons": 0, "undecided": 0, "found": 0}

    def native(self, flags, source, name, arguments):
        ended = run([str(compiled("clang-19", flags, source, self.work / name)), *arguments], NATIVE_SECONDS)
        if ended is None:
            raise Undecided
        return ended

    def compare(self, kind, seed, level, source, expected):
        _, more, ours, arguments = KINDS[kind]
        flags = [*FLAGS, *more]
        if self.native([*flags, *LEVELS[level]], source, "native_level", arguments) != expected:
            raise Undecided
        program = compiled(self.bin / "spillcc", [*flags, *LEVELS[level], *ours], source, self.work / "spilled")
        variables = {"SPILLWAY_MEMORY": "1M", "SPILLWAY_SPILL_ALL": "1", "SPILLWAY_STORAGE": str(self.work),
                     "SPILLWAY_CHAOS": str(seed), "SPILLWAY_PAGE": ("4K", "4K", "8K")[seed % 3]}
        ended = run([str(program), *arguments], SPILLED_SECONDS, **variables)
        self.counts["comparisons"] += 1
        if ended is None:
            raise Difference(f"still running after {SPILLED_SECONDS} s")
        if ended != expected:
            raise Difference(first_difference(expected, ended))

    def try_seed(self, kind, seed, levels):
        generator, more, _, arguments = KINDS[kind]
        source = self.work / f"{kind}-{seed}.c"
        # csmith leaves a file where it runs.
        source.write_bytes(subprocess.run(generator(seed), check=True, capture_output=True, cwd=self.work).stdout)
        self.counts["programs"] += 1
        try:
            expected = self.native([*FLAGS, *more, "-O0"], source, "native", arguments)
            for level in levels:
                try:
                    self.compare(kind, seed, level, source, expected)
                except Difference as difference:
                    self.keep(kind, seed, level, source, difference)
        except Undecided:
            self.counts["undecided"] += 1
        source.unlink()

    def keep(self, kind, seed, level, source, difference):
        self.counts["found"] += 1
        folder = self.work / "found" / f"{kind}-{seed}-{level}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / "program.c")
        again = shlex.join([sys.executable, __file__, str(self.bin), str(self.work), "--kind", kind, "--level", level, "--seed",
                            str(seed), "--count", "1"])
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


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n")[0])
    parser.add_argument("bin", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("work", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--level", action="append", choices=LEVELS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seconds", type=float)
    given = parser.parse_args()
    kinds = given.kind or list(KINDS)
    if kinds == ["csmith"] and shutil.which("csmith") is None:
        print("csmith is not installed; scripts/install-deps.sh installs it")
        return 77
    if shutil.which("csmith") is None and "csmith" in kinds:
        print("without csmith, which is not installed")
        kinds.remove("csmith")
    given.work.mkdir(parents=True, exist_ok=True)
    tester = Tester(given.bin, given.work)
    end = time.monotonic() + given.seconds if given.seconds else None
    for seed in range(given.seed, given.seed + given.count):
        for kind in kinds:
            if end is None or time.monotonic() < end:
                tester.try_seed(kind, seed, given.level or list(LEVELS))
    for name in ("native", "native_level", "spilled"):
        (given.work / name).unlink(missing_ok=True)
    counts = tester.counts
    print(f"{counts['programs']} programs, {counts['comparisons']} comparisons, {counts['undecided']} programs that say nothing, "
          f"{counts['found']} differences")
    return 1 if counts["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
