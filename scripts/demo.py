#!/usr/bin/env python3
"""Runs SQLite in memory with several times more data than its memory budget, three ways.

 1 natively, without a limit: the reference output, and how much memory the data takes
 2 compiled by spillcc, under `spillway run --memory BUDGET`, inside a control group that holds the budget,
   what the program takes without data, and 16 MiB
 3 natively inside the same control group, cut off at twice the time of 2

SQLite is Debian's source package, unmodified; its own configure and make build both programs, once with CC=clang
and once with CC=spillcc. Exit status 0 only if the outputs are equal byte for byte, the data is at least four times the budget
and pages were spilled. Nothing is left behind but the build in BUILD_FOLDER/demo. `spillway bench demo` measures the same by this class.

With --first-look the same is done with an eighth of the data and of the budget, in a few seconds, and the budget is set by the variables that
`spillway run` sets: that program, with its stores and servers, is half of what there is to build, and is not needed yet.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from memory_group import MemoryGroup, Unavailable

MIB = 1 << 20
SCRIPTS = pathlib.Path(__file__).resolve().parent
SLACK_BYTES = 16 * MIB
DATA_TO_BUDGET = 4
FIRST_LOOK_SHARE = 8
# From its many source files, so that all cores compile; the shell without line editing, which would need a library.
CONFIGURE = "CFLAGS=-O2 --disable-amalgamation --disable-shared --disable-tcl --disable-readline"

WORKLOAD = """\
.bail on
CREATE TABLE item(id INTEGER PRIMARY KEY, key INTEGER, ref INTEGER, note TEXT);
INSERT INTO item
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
  SELECT i, (i * 2654435761) % 4294967296, ((i + 7) * 2654435761) % 4294967296,
         printf('item %d of lot %d, weighed on day %d by inspector %d and stored in hall %d',
                i, i % 977, i % 3651, i % 89, i % 31) FROM n;
CREATE INDEX item_key ON item(key);
SELECT 'rows', count(*), sum(key), sum(length(note)) FROM item;
SELECT 'neighbours', count(*), sum(a.key % 1000 * (b.key % 1000))
  FROM item a JOIN item b ON b.id = a.id + 1 WHERE a.id % 8 = 0;
SELECT 'scattered', count(*), sum(b.id % 1009), max(b.note)
  FROM item a JOIN item b INDEXED BY item_key ON b.key = a.ref WHERE a.id % 64 = 0;
SELECT 'bucket', key / 16777216 AS bucket, count(*), min(key), max(key)
  FROM item INDEXED BY item_key GROUP BY bucket ORDER BY bucket;
"""


class Failure(Exception):
    """Ends the demo: the message is one line, the status the exit status."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


class Progress:
    """One line for each step; on a terminal, with what is going on at its end."""

    def __init__(self):
        self.terminal = sys.stderr.isatty()
        self.began = time.monotonic()

    def begin(self, step):
        self.step, self.began = step, time.monotonic()
        if not self.terminal:
            print(f"{step} ...", file=sys.stderr, flush=True)

    def update(self, detail=""):
        if self.terminal:
            seconds = time.monotonic() - self.began
            print(f"\r\033[K{self.step} ... {seconds:.0f} s {detail}", end="", file=sys.stderr, flush=True)

    def end(self, detail=""):
        seconds = time.monotonic() - self.began
        lead = "\r\033[K" + self.step if self.terminal else "  "
        print(f"{lead} {seconds:.1f} s {detail}".rstrip(), file=sys.stderr, flush=True)


@dataclasses.dataclass
class Outcome:
    seconds: float
    status: int          # as subprocess: negative for a signal
    peak_bytes: int      # of the control group where there is one, else of the process
    out_of_memory: bool
    cut_off: bool
    output: pathlib.Path

    def words(self):
        if self.cut_off:
            return "cut off, not finished"
        if self.out_of_memory:
            return "killed by the kernel: out of memory"
        if self.status < 0:
            return f"ended by signal {-self.status}"
        return "finished" if self.status == 0 else f"exit status {self.status}"


class Demo:
    """build: the folder with bin/spillcc and bin/spillway. folder: where SQLite is built, by default build/demo. storage: as for `spillway run --storage`, by
    default the runtime's own choice. first_look: without bin/spillway."""

    def __init__(self, build, budget_bytes, page, rows, folder=None, storage=None, first_look=False):
        self.build, self.budget_bytes, self.page, self.rows = build, budget_bytes, page, rows
        self.folder = folder or self.build / "demo"
        self.storage, self.first_look = storage, first_look
        self.progress = Progress()
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}

    def main(self):
        """{native, spilled, limited: their Outcome, of `limited` None where there is no limit; data_bytes, stats}; raises Failure if the run did not show what the demo claims."""
        self.spillcc = self._built("spillcc")
        self.spillway = None if self.first_look else self._built("spillway")
        self.native_cc = shutil.which("clang-19") or self._missing("clang-19; run scripts/install-deps.sh")
        self.folder.mkdir(exist_ok=True)
        native, ours = self._build_programs(self._source())
        with tempfile.TemporaryDirectory(prefix="run-", dir=self.folder) as scratch:
            self.scratch = pathlib.Path(scratch)
            self.environment["HOME"] = scratch  # no ~/.sqliterc
            self.workload = self.scratch / "workload.sql"
            self.workload.write_text(WORKLOAD.format(rows=self.rows))
            return self._compare(native, ours)

    @staticmethod
    def _missing(what):
        raise Failure(f"demo needs {what}", 2)

    def _built(self, name):
        program = self.build / "bin" / name
        return program if program.exists() else self._missing(f"{program}; run make first")

    def _step(self, title, commands):
        """Runs commands of the build side by side to their ends; `commands` holds each by the name of its log."""
        self.progress.begin(title)
        processes = {}
        try:
            for name, command in commands.items():
                with open(self.folder / f"{name}.log", "w") as log:
                    processes[name] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                                       start_new_session=True)
            while any(process.poll() is None for process in processes.values()):
                self.progress.update()
                time.sleep(0.1)
        finally:
            for process in processes.values():
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)  # with the compilers that the driver started
                    process.wait()
        for name, process in processes.items():
            if process.returncode != 0:
                raise Failure(f"{title} failed; {self.folder / name}.log says why", 2)
        self.progress.end()

    def _source(self):
        """SQLite's source: Debian's package."""
        self.progress.begin("fetching SQLite's source (Debian package sqlite3)")
        fetched = subprocess.run([SCRIPTS / "fetch-source.sh", "sqlite3", self.folder], stdout=subprocess.PIPE, text=True)
        if fetched.returncode != 0:
            raise Failure("the source of SQLite could not be fetched", 2)
        source = pathlib.Path(fetched.stdout.strip())
        self.progress.end(source.name)
        return source

    def _build_programs(self, source):
        """Builds both programs, each in a folder of its own."""
        plugin = list((self.build / "lib").glob("*compiler*.so"))
        programs, commands = [], {}
        for name, compiler, parts in (("native", self.native_cc, []), ("spillway", self.spillcc, [self.spillcc, *plugin])):
            folder = self.folder / name
            program = folder / "sqlite3"
            programs.append(program)
            if program.exists() and program.stat().st_mtime > max([path.stat().st_mtime for path in parts], default=0):
                continue
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            commands[f"build-{name}"] = ["sh", "-c", f"cd '{folder}' && '{source}/configure' CC='{compiler}' {CONFIGURE} && "
                                                     f"make -j{os.cpu_count()} sqlite3"]
        if commands:
            self._step("building SQLite with clang and with spillcc", commands)
        return programs

    def _empty_program_bytes(self, program):
        """The most memory that the program takes before it has data."""
        process = subprocess.Popen([program, "-batch", ":memory:"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=self.environment)
        try:
            process.stdin.write("SELECT 1;\n.output stdout\n")
            process.stdin.flush()
            process.stdout.readline()
            for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        finally:
            process.kill()
            process.wait()
        raise Failure(f"{program} ended before it could be measured")

    def _run(self, title, command, group=None, limit_seconds=None):
        """Runs the workload; the program is gone when this returns, whatever happens."""
        output = self.scratch / f"output-{len(list(self.scratch.iterdir()))}"
        self.progress.begin(title)
        with open(self.workload) as workload, open(output, "w") as out:
            process = subprocess.Popen(command, stdin=workload, stdout=out, env=self.environment, start_new_session=True,
                                       preexec_fn=group.enter if group else None)
        began, cut_off = time.monotonic(), False
        try:
            while True:
                pid, status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid != 0:
                    break
                seconds = time.monotonic() - began
                self.progress.update(f"{group.usage_bytes() >> 20} MiB" if group else "")
                if limit_seconds is not None and seconds > limit_seconds and not cut_off:
                    cut_off = True
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0.1)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        seconds = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        outcome = Outcome(seconds, process.returncode, group.peak_bytes() if group else usage.ru_maxrss * 1024,
                          bool(group and group.kills()), cut_off, output)
        self.progress.end(outcome.words())
        return outcome

    def _limited(self, title, command, limit_bytes, **keywords):
        """_run inside a control group of its own; without one where the machine gives none."""
        if self.no_limit:
            return self._run(title, command, **keywords)
        group = MemoryGroup.create(limit_bytes)
        try:
            return self._run(title, command, group, **keywords)
        finally:
            group.remove()

    def _within_budget(self, stats_file):
        """The words before the program."""
        options = {"memory": f"{self.budget_bytes >> 20}M", "page": self.page, "stats": stats_file}
        if self.storage:
            options["storage"] = self.storage
        if self.first_look:
            return ["env", *(f"SPILLWAY_{name.upper()}={value}" for name, value in options.items())]
        return [self.spillway, "run", *(word for name, value in options.items() for word in (f"--{name}", value)), "--"]

    def _compare(self, native, ours):
        plain_bytes = self._empty_program_bytes(native)
        limit_bytes = self.budget_bytes + plain_bytes + SLACK_BYTES
        self.no_limit = ""
        try:
            MemoryGroup.create(limit_bytes).remove()
        except Unavailable as reason:
            self.no_limit = str(reason)
            print(f"note: no memory limit can be set here ({reason}); it needs root, or a delegated control group",
                  file=sys.stderr)
        if self.first_look:
            print(f"a first look: 1/{FIRST_LOOK_SHARE} of the data, in 1/{FIRST_LOOK_SHARE} of the memory", file=sys.stderr)
        within = "no limit available" if self.no_limit else f"limit {limit_bytes >> 20} MiB"
        workload = ["-batch", ":memory:"]
        stats_file = self.scratch / "stats.json"

        reference = self._run("native, no memory limit", [native, *workload])
        if reference.status != 0:
            raise Failure(f"native SQLite did not finish: {reference.words()}")
        spilled = self._limited(f"spillway, {within}", [*self._within_budget(stats_file), ours, *workload], limit_bytes)
        limited = None
        if not self.no_limit:
            limited = self._limited(f"native, {within}", [native, *workload], limit_bytes, limit_seconds=2 * spilled.seconds)

        same = reference.output.read_bytes() == spilled.output.read_bytes()
        stats = json.loads(stats_file.read_text()) if stats_file.exists() and stats_file.stat().st_size else {}
        self._print_table(reference, spilled, limited, stats, within, same)
        data_bytes = self._verdict(reference, spilled, stats, plain_bytes, same)
        return {"native": reference, "spilled": spilled, "limited": limited, "data_bytes": data_bytes, "stats": stats}

    def _print_table(self, reference, spilled, limited, stats, within, same):
        def row(name, outcome, result, counters=None):
            misses = f"{counters['cache']['misses']:,}" if counters else "-"
            written = f"{counters['storage']['write_bytes'] / MIB:,.0f} MiB" if counters else "-"
            return (name, f"{outcome.seconds:.1f} s", f"{outcome.peak_bytes / MIB:,.0f} MiB", misses, written, result)

        rows = [("", "time", "peak memory", "misses", "spilled", "result"),
                row("native, no memory limit", reference, "the reference")]
        if limited:
            rows.append(row(f"native, {within}", limited, limited.words()))
        result = spilled.words() if spilled.status != 0 else "same output" if same else "OUTPUT DIFFERS"
        rows.append(row(f"spillway, {within}", spilled, result, stats))
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        print()
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in range(1, 5)), row[5]]
            print("  ".join(cells).rstrip())
        print()

    def _verdict(self, reference, spilled, stats, plain_bytes, same):
        data_bytes = reference.peak_bytes - plain_bytes
        ratio = data_bytes / self.budget_bytes
        print(f"SQLite held {data_bytes / MIB:,.0f} MiB of data, {ratio:.1f} times its budget of {self.budget_bytes >> 20} MiB.")
        if spilled.status != 0:
            raise Failure(f"SQLite compiled by spillcc did not finish: {spilled.words()}")
        if not same:
            raise Failure("the outputs differ")
        if ratio < DATA_TO_BUDGET:
            raise Failure(f"the data is less than {DATA_TO_BUDGET} times the budget; give more --rows")
        if not stats or stats["storage"]["write_bytes"] == 0 or stats["cache"]["misses"] == 0:
            raise Failure("nothing was spilled, so nothing was shown")
        return data_bytes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build", metavar="BUILD_FOLDER")
    parser.add_argument("--budget", type=int, default=128, metavar="MIB", help="memory budget in MiB, default 128")
    parser.add_argument("--page", default="32K", metavar="SIZE", help="page size as for spillway run, default 32K")
    parser.add_argument("--rows", type=int, default=5_000_000, metavar="N", help="rows of the table, default 5000000")
    parser.add_argument("--first-look", action="store_true", help=f"with {FIRST_LOOK_SHARE} times less data and memory, and without spillway run")
    arguments = parser.parse_args()

    def stop(number, frame):
        raise Failure(f"stopped by signal {number}", 128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        share = FIRST_LOOK_SHARE if arguments.first_look else 1
        Demo(pathlib.Path(arguments.build).resolve(), arguments.budget // share * MIB, arguments.page, arguments.rows // share,
             first_look=arguments.first_look).main()
    except Failure as failure:
        print(f"\ndemo: {failure}" if sys.stderr.isatty() else f"demo: {failure}", file=sys.stderr)
        return failure.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
