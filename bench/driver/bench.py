#!/usr/bin/env python3
"""spillway bench: measures Spillway beside its peers and writes figures that anyone can make again.

To add a benchmark: 1) a module beside this file with DOC and run(context), which returns the result
{parameters, rows, summary, notes?} and the arguments of plot.bars; it leaves nothing behind, whatever ends
it, ends a case as lockstep.take_turns() does, and keeps its cases (kept.py) if it takes longer than ten minutes; 2) its name in BENCHMARKS; 3) a section in docs/benchmarks.md.
"""
import argparse
import importlib
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(1, str(HERE.parent.parent / "scripts"))

import everything  # noqa: E402
import kept  # noqa: E402
import report  # noqa: E402
from cases import Cases  # noqa: E402
from lockstep import Failure  # noqa: E402

BENCHMARKS = ["batch", "batch-stored", "breakdown", "delegation", "demo", "device", "encrypt", "fibers", "graph", "hitrate", "indirect", "instructions", "kernels", "kv", "kv-index", "kv-restart", "micro", "pagecache", "persist", "persist-programs", "programs", "random", "rocksdb",
              "selfdriving", "server", "sort", "speedtest1", "switch", "tasks", "ycsb"]


class Context:
    """What a benchmark may use."""

    def __init__(self, arguments, programs):
        self.quick, self.pairs, self.cases = arguments.quick, arguments.pairs, Cases(arguments.only)
        self.storage = pathlib.Path(arguments.storage).resolve()
        self.keep = pathlib.Path(arguments.keep).resolve() if arguments.keep else None
        self.traces = pathlib.Path(arguments.traces).resolve() if arguments.traces else None
        self.scripts = HERE.parent.parent / "scripts"
        self.spillway = programs / "spillway"
        self.spillcc, self.spillcxx = programs / "spillcc", programs / "spillc++"
        self.native_cc, self.native_cxx = shutil.which("clang-19"), shutil.which("clang++-19")
        self.folder = None  # temporary, for builds; set for each benchmark
        self.kept = None  # what is measured of its cases; set for each benchmark
        self.terminal = sys.stderr.isatty()

    def check(self):
        for program in (self.spillway, self.spillcc, self.spillcxx):
            if not program.exists():
                raise Failure(f"{program} is not there; build or install Spillway completely", 2)
        if not self.native_cc or not self.native_cxx:
            raise Failure("clang-19 is not there; install it", 2)
        if not self.storage.is_dir():
            raise Failure(f"{self.storage} is no folder; give one with --storage", 2)

    def include(self):
        """The folder of spillway/task.h: beside these sources, or installed."""
        for folder in (HERE.parent.parent / "include", self.spillway.parent.parent / "include"):
            if (folder / "spillway" / "task.h").exists():
                return folder
        raise Failure("spillway/task.h is not there; build or install Spillway completely", 2)

    def say(self, text):
        lead = "\r\033[K" if self.terminal else ""
        print(lead + text, file=sys.stderr, flush=True)

    def progress(self, text):
        """What goes on now; only where it can be replaced by what comes next."""
        if self.terminal:
            print(f"\r\033[K{text} ...", end="", file=sys.stderr, flush=True)

    def output(self, command, **keywords):
        """The output of a command that must succeed."""
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, **keywords)
        if done.returncode != 0:
            words = (done.stderr or done.stdout).strip().splitlines()
            words = [line for line in words if "error" in line or "undefined" in line][:1] or words
            raise Failure(f"{command[0]} failed: {words[-1] if words else 'no message'}")
        return done.stdout

    def spilled(self, memory_bytes, command, stats=None, options=(), storage=None):
        """The command that runs a program of ours with all of its heap spilled, from the first allocation on."""
        return [self.spillway, "run", "--memory", f"{memory_bytes >> 10}K", "--storage", storage or self.storage, "--spill-all", *(["--stats", stats] if stats else []), *options,
                "--", *command]

    def build(self, what, command, **keywords):
        self.progress(f"building {what}")
        self.output(command, **keywords)


def parse(words):
    parser = argparse.ArgumentParser(prog="spillway bench", add_help=False, exit_on_error=False)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--out", default="bench-results")
    parser.add_argument("--storage", default="/var/tmp")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--keep")
    parser.add_argument("--traces")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--help", "-h", action="store_true")
    parser.error = lambda message: (_ for _ in ()).throw(Failure(f"{message}; see spillway bench --help", 2))
    try:
        return parser.parse_args(words)
    except argparse.ArgumentError as error:
        raise Failure(f"{error}; see spillway bench --help", 2) from None


def help_text():
    docs = "".join(f"  {name:10} {module_of(name).__doc__.strip()}\n" for name in BENCHMARKS)
    return ("usage: spillway bench NAME|all [OPTION]...\n\n"
            "Measures Spillway beside its peers, in turns, and writes NAME.json, NAME.md and NAME.svg.\n\n" + docs + """
  --out DIR       folder to write to, made if it is not there; default bench-results
  --quick         less data and fewer turns: under a minute
  --storage DIR   folder on the disk that is measured; default /var/tmp
  --pairs N       measure N pairs instead of the benchmark's own number, if there is time for them
  --only CASE     measure only cases whose names begin so; may be given again
  --keep DIR      keep fetched sources and what was built from them there, for the next time
  --traces DIR    hitrate: replay the traces in this folder as well
  --resume        measure only what earlier runs with the same options, stopped or with --only, have not left in DIR

all: each of them, and one report, report.html, of them and of the papers' figures; what cannot be measured here is named in it.
""")


def module_of(name):
    # A module is called `random` in Python's library, and `demo` in scripts.
    return importlib.import_module({"random": "random_access", "demo": "demo_sqlite"}.get(name, name.replace("-", "_")))


def run_one(context, name, out, made_by, resume):
    began = time.monotonic()
    module = module_of(name)
    facts = report.machine()
    context.kept = kept.Kept(out, name, made_by, resume)
    resumed = len(context.kept)
    if resumed:
        context.say(f"{name}: cases that are kept of earlier runs: {resumed}")
    with tempfile.TemporaryDirectory(prefix="spillway-bench-", dir=context.storage) as folder:
        context.folder = pathlib.Path(folder)
        measured, bars = module.run(context)
    only = context.cases.words
    result = {"name": name, "machine": facts, "made_by": made_by | ({"only": only} if only else {}), **measured}
    result["parameters"] |= {"seconds": round(time.monotonic() - began)} | ({"resumed": True} if resumed else {})
    report.write(out, result, module.DOC, bars)
    # What --only has left out is measured by a later run, which takes the others.
    if not only:
        context.kept.remove()
    context.say("")
    for key, value in result["summary"].items():
        print(f"{name}: {key} {report.figure(value)}")
    for note in result.get("notes", []):
        print(f"{name}: note: {note}")
    print(f"{name}: written to {out / name}.json, .md, .svg", flush=True)


def main():
    arguments = parse(sys.argv[2:])
    if arguments.help:
        print(help_text(), end="")
        return
    if arguments.name not in ("all", *BENCHMARKS):
        given = "no benchmark given" if arguments.name is None else f"no benchmark is called {arguments.name!r}"
        raise Failure(f"{given}; spillway bench --help lists them", 2)
    if arguments.pairs < 0:
        raise Failure("--pairs needs a positive number", 2)
    if arguments.name == "all" and arguments.only:
        raise Failure("--only chooses among the cases of one benchmark; say which", 2)
    context = Context(arguments, pathlib.Path(sys.argv[1]))
    context.check()
    out = pathlib.Path(arguments.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / ".spillway-bench").touch()
        (out / ".spillway-bench").unlink()
    except OSError as error:
        raise Failure(f"cannot write to {out}: {error.strerror}; give another folder with --out", 2) from None
    if arguments.name == "all":
        measure, explain = lambda name, made_by: run_one(context, name, out, made_by, arguments.resume), lambda name: module_of(name).DOC
        sys.exit(everything.Everything(context, BENCHMARKS, out, measure, explain, arguments.resume).run())
    run_one(context, arguments.name, out, kept.made_by(context), arguments.resume)


def stop(number, _):
    # The second signal must not cut the cleaning short.
    for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_IGN)
    raise Failure(f"stopped by signal {number}; with --resume it goes on with what is kept", 128 + number)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        main()
    except Failure as failure:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        print(f"spillway: {failure}", file=sys.stderr)
        sys.exit(failure.status)
