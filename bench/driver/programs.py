"""Real programs, compiled by spillcc and natively: redis, cadical, zstd and SQLite; what compiling them takes, and their size."""
import dataclasses
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess

import redis_load
from devices import Cleanup
from limited import check_same, check_stats, resident_row, usable_devices
from lockstep import Failure, geometric_mean, take_turns
from variants import variants

DOC = """\
Programs from Debian's source packages, unmodified, compiled by spillcc (ours) beside the same natively (peer), all data resident unless the case names a device. `redis`: requests
a second, of a server that redis-benchmark asks by 20 connections, 16 at a time; more is better. `cadical`, `zstd`: CPU time, less is better.
`compile`: CPU time of the compiler for the largest sources; `size`: bytes of executable code. `DEVICE/redis`: requests a second with memory for a quarter of the data, over the same natively in
memory with swap. `bodies`: of each function ours has one, the instrumented one; `two_bodies_…` are of programs with two.
"""
MEMORY_BYTES = 1 << 30
RUN_SECONDS = 1200
SOURCES_COMPILED = 8
CASE_SECONDS = 30
PARTS = {"redis": "requests a second over native, more is better", "cadical": "CPU time over native", "zstd": "time over native",
         "compile": "CPU time of spillcc over clang's", "size": "bytes of code over native", "disk": "requests a second over swap, a quarter in memory",
         "zram": "requests a second over swap, a quarter in memory"}


@dataclasses.dataclass
class Recipe:
    """How a program is built: $CC, $CXX and $JOBS are set, $CC is always called clang."""
    package: str
    build: str
    program: str


RECIPES = {
    "redis": Recipe("redis", "make -j$JOBS CC=$CC MALLOC=libc OPTIMIZATION=-O2 redis-server", "src/redis-server"),
    "cadical": Recipe("cadical", "CXX=$CXX ./configure && make -C build -j$JOBS cadical", "build/cadical"),
    "sqlite": Recipe("sqlite3", "./configure CC=$CC --disable-shared --disable-tcl && make sqlite3.c && $CC -O2 -c sqlite3.c -o sqlite3.o && "
                     "$CC -O2 -I. -c test/speedtest1.c -o speedtest1.o && $CC speedtest1.o sqlite3.o -o speedtest1 -lm -ldl -lpthread", "speedtest1"),
    "zstd": Recipe("libzstd", "make -C programs -j$JOBS CC=$CC CFLAGS=-O2 ZSTD_LEGACY_SUPPORT=0 HAVE_ZLIB=0 HAVE_LZMA=0 HAVE_LZ4=0 zstd", "programs/zstd"),
}


class Built:
    """A program by each side, built in a copy of its sources."""

    def __init__(self, context, name, sides):
        self.context, self.name, self.recipe, self.sides = context, name, RECIPES[name], sides
        self.folder = (context.keep or context.folder) / "programs"
        self.programs = {side: self.build(side) for side in sides}

    def source(self):
        self.context.progress(f"fetching the source of {self.recipe.package}")
        fetched = subprocess.run([self.context.scripts / "fetch-source.sh", self.recipe.package, self.folder], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if fetched.returncode != 0:
            raise Failure(fetched.stderr.strip().splitlines()[-1] if fetched.stderr else f"the source of {self.recipe.package} could not be fetched")
        return pathlib.Path(fetched.stdout.strip())

    def build(self, side):
        # Programs of spillcc may be of an older one: only what is native is kept.
        built = (self.folder if side == "native" else self.context.folder) / f"{self.name}-{side}"
        if not ((built / "complete").exists() and (built / "commands").is_dir()):  # what was kept may be of an older driver
            shutil.rmtree(built, ignore_errors=True)
            shutil.copytree(self.source(), built, symlinks=True)
            compilers, commands = built / "compilers", built / "commands"
            compilers.mkdir()
            commands.mkdir()
            for tool, real in zip(("clang", "clang++"), self.sides[side][:2]):
                # A file of each: several are at work at a time.
                words = f'(printf "%q " "$PWD" "{tool}" "$@"; echo) >> {shlex.quote(str(commands))}/$$\n'
                (compilers / tool).write_text(f'#!/bin/bash\n{words}exec {shlex.quote(str(real))} "$@" {shlex.join(self.sides[side][2])}\n')
                (compilers / tool).chmod(0o755)
            clean = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_") and name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS")}
            environment = {**clean, "CC": str(compilers / "clang"), "CXX": str(compilers / "clang++"), "JOBS": str(os.cpu_count())}
            self.context.build(f"{self.name}, {side}", ["bash", "-euo", "pipefail", "-c", self.recipe.build], cwd=built, env=environment)
            (built / "complete").touch()
        return built / self.recipe.program

    def largest(self):
        """(folder, tool, words) of the commands that compiled the largest sources natively, of their own build."""
        commands = []
        lines = [line for path in (self.folder / f"{self.name}-native" / "commands").iterdir() for line in path.read_text().splitlines()]
        for folder, tool, *words in map(shlex.split, lines):
            sources = [pathlib.Path(folder, word) for word in words if word.endswith((".c", ".cc", ".cpp"))]
            if "-c" in words and len(sources) == 1 and sources[0].exists():
                commands.append((sources[0].stat().st_size, folder, tool, words))
        if not commands:
            raise Failure(f"{self.name}: nothing was compiled")
        return [command for _, *command in sorted(commands, reverse=True)[:SOURCES_COMPILED]]

    def compile_row(self, pairs):
        """The largest sources, compiled by all sides in turns, in the folder where they were built natively."""
        commands = self.largest()

        def turn(side):
            return sum(_cpu_seconds([self.sides[side][0 if tool == "clang" else 1], *_without_output(words), "-o", self.context.folder / "compiled.o", *self.sides[side][2]], folder)
                       for folder, tool, words in commands)

        return resident_row(f"compile/{self.name}", take_turns(self.sides, turn, pairs, CASE_SECONDS))

    def size_row(self):
        return resident_row(f"size/{self.name}", {side: [code_bytes(program)] for side, program in self.programs.items()}, "bytes")


def _without_output(words):
    """Of a compiler's command; without `-o` its output would be in the folder."""
    at = words.index("-o") if "-o" in words else len(words)
    return words[:at] + words[at + 2:]


def _cpu_seconds(command, folder, output=None):
    """Of a command that must succeed, with all that it starts."""
    process = subprocess.Popen([str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=output or subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 10, 20):  # SAT solvers tell what they found
        raise Failure(f"{command[0]} ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def code_bytes(program):
    listed = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"\]\s+\S+\s+PROGBITS\s+[0-9a-f]+\s+[0-9a-f]+\s+([0-9a-f]+)\s+\S+\s+\w*X", listed)
    return sum(int(size, 16) for size in found)


def write_3sat(path, variables, clauses, seed):
    """A random formula, the same everywhere. At 4.26 clauses for a variable half of them have no solution, and that takes longest to see."""
    chosen = random.Random(seed)
    with open(path, "w") as file:
        file.write(f"p cnf {variables} {clauses}\n")
        for _ in range(clauses):
            literals = (variable * chosen.choice((1, -1)) for variable in chosen.sample(range(1, variables + 1), 3))
            file.write(" ".join(map(str, literals)) + " 0\n")


class Programs:
    def __init__(self, context):
        self.context, self.rows, self.notes = context, [], []
        self.quick = context.quick
        self.pairs = context.pairs or (1 if self.quick else 5)
        self.ours = variants(context)
        self.sides = {"native": (context.native_cc, context.native_cxx, [])}
        self.sides.update({side: (context.spillcc, context.spillcxx, flags) for side, flags in self.ours.items()})
        self.made = {}

    def wanted(self, *cases):
        """Whether any of these cases, or what is below it, was asked for."""
        return any(self.context.cases.wants(case, or_below=True) for case in cases)

    def built(self, name):
        """A program by each side, built when it is wanted first."""
        if name not in self.made:
            self.made[name] = Built(self.context, name, self.sides)
        return self.made[name]

    def stats(self, side):
        return self.context.folder / f"stats-{side}.json"

    def spilled(self, side, program, *words):
        return self.context.spilled(MEMORY_BYTES, [program, *words], self.stats(side))

    def command(self, side, program, *words):
        return [program, *words] if side == "native" else self.spilled(side, program, *words)

    def take(self, case, measure):
        """The rows of a case, if it is wanted: those that are kept, or what measure() returns, which is empty where it cannot be measured."""
        if not self.wanted(case):
            return
        if case not in self.context.kept:
            self.context.progress(f"programs {case}")
            rows = measure()
            if not rows:
                return
            self.context.kept[case] = rows
            for row in rows:
                self.context.say(f"{row['case']:20} ratio {row['ratio']:.2f} +-{row['spread'] / 2:.0%}")
        self.rows += self.context.kept[case]

    def check(self, case):
        for side in self.ours:
            check_stats(case, self.stats(side), 1, resident=True)

    def take_building(self, name):
        self.take(f"compile/{name}", lambda: [self.built(name).compile_row(1 if self.quick else 3)])
        self.take(f"size/{name}", lambda: [self.built(name).size_row()])

    def cadical(self):
        # Formulas, and how long they are worked at: to the end, or for so many conflicts.
        formulas = {"hard": ((220, 937, 7), []), "large": ((100_000, 350_000, 8), ["-c", "1000"])}
        for name, (formula, limit) in formulas.items():
            self.take(f"cadical/{name}", lambda: [self.cadical_row(f"cadical/{name}", formula, limit)])
        self.take_building("cadical")

    def cadical_row(self, case, formula, limit):
        built = self.built("cadical")
        path, output = (self.context.folder / name for name in ("formula.cnf", "output"))
        write_3sat(path, *formula)

        def turn(side):
            self.context.progress(f"{case}: {side}")
            with open(output, "w") as file:
                seconds = _cpu_seconds(self.command(side, built.programs[side], "-n", *limit, path), self.context.folder, file)
            # The whole search, not only its end.
            return seconds, tuple(re.findall(r"^s .*|^c (?:conflicts|decisions|propagations): +\d+", output.read_text(), re.M))

        def look(answers):
            check_same(case, {side: found for side, (_, found) in answers.items()})
            if len(answers["native"][1]) < 3:
                raise Failure(f"{case}: cadical does not say what it did")

        turns = take_turns(self.sides, turn, self.pairs, CASE_SECONDS, look)
        self.check(case)
        return resident_row(case, {side: [seconds for seconds, _ in own] for side, own in turns.items()})

    def zstd(self):
        for level in (3, 9):
            self.take(f"zstd/{level}", lambda: self.zstd_rows(f"zstd/{level}", level))
        self.take_building("zstd")

    def zstd_rows(self, case, level):
        """There and back."""
        built, text = self.built("zstd"), self.context.folder / "text"
        sources = sorted(path for path in built.source().rglob("*.[ch]") if path.is_file())
        text.write_bytes(b"".join(path.read_bytes() for path in sources)[:(2 << 20) if self.quick else (8 << 20)])

        def turn(side):
            """Packed bytes, and megabytes a second there and back."""
            self.context.progress(f"{case}: {side}")
            output = self.context.output(self.command(side, built.programs[side], f"-b{level}", "-i1", text), cwd=self.context.folder)
            said = re.findall(r"-> *(\d+) \([^)]*\), *([\d.]+) MB/s,? *([\d.]+) MB/s", output.replace("\r", "\n"))
            if not said:
                raise Failure(f"{case}: zstd does not say how fast it is")
            return said[-1]

        turns = take_turns(self.sides, turn, self.pairs, CASE_SECONDS, lambda answers: check_same(case, {side: size for side, (size, _, _) in answers.items()}))
        self.check(case)
        kilobytes = text.stat().st_size / 1e3
        return [resident_row(name, {side: [kilobytes / float(each[way]) for each in own] for side, own in turns.items()}, "ms") for name, way in ((case, 1), (f"{case}-back", 2))]

    def redis(self):
        if not self.wanted("redis", "compile/redis", "size/redis", "disk/redis", "zram/redis"):
            return
        if not shutil.which("redis-benchmark") or not shutil.which("redis-cli"):
            self.notes.append("nothing of redis: install redis-tools")
            return
        self.take("redis", lambda: redis_load.resident(self, self.built("redis").programs, 200_000 if self.quick else 500_000))
        for name in usable_devices([]):
            self.take(f"{name}/redis", lambda: self.redis_rows(name))
        self.take_building("redis")

    def redis_rows(self, name):
        """With memory for a part of the data, on this device."""
        with Cleanup() as cleanup:
            return redis_load.limited(self, self.built("redis").programs, name, cleanup, 100_000 if self.quick else 400_000)


def _summary(rows):
    summary = {row["case"].replace("/", "_") + "_ratio": row["ratio"] for row in rows}
    summary.update({row["case"].replace("/", "_") + "_two_bodies_ratio": row["two_bodies_ratio"] for row in rows if "two_bodies_ratio" in row})
    for part in ("compile", "size"):
        own = [row for row in rows if row["case"].startswith(part + "/")]
        for side in ("", "two_bodies_"):
            if own and side + "ratio" in own[0]:
                summary[f"{part}_{side}geomean_ratio"] = geometric_mean([row[side + "ratio"] for row in own])
    return summary


def run(context):
    programs = Programs(context)
    programs.zstd()
    if not context.quick or context.cases:
        programs.cadical()
        programs.redis()
        programs.take_building("sqlite")  # its own benchmark is speedtest1
    rows = programs.rows
    if not rows:
        raise Failure("programs has no such case; cases are PROGRAM/LOAD, compile/PROGRAM, size/PROGRAM and DEVICE/redis", 2)
    result = {
        "parameters": {"pairs": programs.pairs, "case_seconds": CASE_SECONDS, "redis_case_seconds": redis_load.CASE_SECONDS, "memory_bytes": MEMORY_BYTES, "sides": {side: " ".join(flags) for side, flags in programs.ours.items()}, "sources_compiled": SOURCES_COMPILED,
                       "storage": str(context.storage), "quick": context.quick},
        "rows": rows, "summary": _summary(rows), "notes": programs.notes, "parts": PARTS,
    }
    bars = {"title": "real programs", "subtitle": "ratio to native code, beside a device to swap", "cases": [row["case"] for row in rows],
            "series": {"spillcc": [row["ratio"] for row in rows], **({"two bodies": [row.get("two_bodies_ratio") for row in rows]} if len(programs.ours) > 1 else {})}}
    return result, bars
