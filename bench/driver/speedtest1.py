"""SQLite's own benchmark on an in-memory database that is all resident, beside the same program natively."""
import json
import os
import pathlib
import shutil
import subprocess
import time

from lockstep import Failure, median, row_of, take_turns
from variants import more_ratios, variants

DOC = """\
CPU time of speedtest1, SQLite's own benchmark, with its database in memory and all of it resident, compiled by
spillcc (ours) over the same source compiled natively (peer): 1 is native speed, less is better. The source is
Debian's package sqlite3, unmodified. `user_ratio` leaves out the time in the kernel. `bodies`: of each function ours has one, the instrumented one;
`two_bodies_ratio` is of a program with two.
"""
FLAGS = {"O2": ["-O2"]}
# Natively a second or two: a third of a second differed by half from run to run.
SIZE, QUICK_SIZE = 100, 20
PAIRS, QUICK_PAIRS = 5, 2
CASE_SECONDS = 60
RUN_SECONDS = 600
MEMORY_BYTES = 1 << 30
OPTIONS = ["-DSQLITE_THREADSAFE=1"]
LIBRARIES = ["-lm", "-ldl", "-lpthread"]


def _source(context, folder):
    """The folder with sqlite3.c, sqlite3.h and speedtest1.c."""
    made = folder / "amalgamation"
    if (made / "complete").exists():
        return made
    context.progress("fetching SQLite's source (Debian package sqlite3)")
    fetched = subprocess.run([context.scripts / "fetch-source.sh", "sqlite3", folder], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if fetched.returncode != 0:
        raise Failure(fetched.stderr.strip().splitlines()[-1] if fetched.stderr else "SQLite's source could not be fetched")
    source = pathlib.Path(fetched.stdout.strip())
    made.mkdir(exist_ok=True)
    script = f"'{source}/configure' CC={context.native_cc} --disable-shared --disable-tcl && make sqlite3.c"
    context.build("SQLite's amalgamation", ["sh", "-c", script], cwd=made)
    shutil.copy(source / "test" / "speedtest1.c", made)
    (made / "complete").touch()
    return made


def _build(context, folder, source):
    programs = {}
    compilers = {"native": [context.native_cc], **{side: [context.spillcc, *flags] for side, flags in variants(context).items()}}
    for variant, compiler in compilers.items():
        programs[variant] = folder / f"speedtest1-{variant}"
        context.build(f"speedtest1, {variant}", [*compiler, *FLAGS["O2"], *OPTIONS, "-I.", "speedtest1.c", "sqlite3.c",
                                                 "-o", programs[variant], *LIBRARIES], cwd=source)
    return programs


def _run(command, scratch, environment):
    """(CPU seconds, of these in user mode, what it computed)."""
    output = scratch / "output"
    with open(output, "w") as out, open(scratch / "errors", "w") as errors:
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                   env=environment, cwd=scratch)
    try:
        deadline = time.monotonic() + RUN_SECONDS
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                process.returncode = os.waitstatus_to_exitcode(status)
                break
            if time.monotonic() > deadline:
                raise Failure(f"{command[0]} did not end within {RUN_SECONDS} s")
            time.sleep(0.01)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    if process.returncode != 0:
        words = (scratch / "errors").read_text().strip().splitlines()
        raise Failure(f"speedtest1 ended with status {process.returncode}{': ' + words[-1] if words else ''}")
    hashes = [line for line in output.read_text().splitlines() if line.startswith("Verification Hash")]
    return usage.ru_utime + usage.ru_stime, usage.ru_utime, hashes


def run(context):
    size = QUICK_SIZE if context.quick else SIZE
    pairs = context.pairs or (QUICK_PAIRS if context.quick else PAIRS)
    folder = context.keep or context.folder
    folder.mkdir(parents=True, exist_ok=True)
    programs = _build(context, context.folder, _source(context, folder))
    words = ["--memdb", "--verify", "--size", str(size)]
    stats = {side: context.folder / f"stats-{side}.json" for side in programs if side != "native"}
    commands = {"native": [programs["native"], *words]}
    for side, path in stats.items():
        commands[side] = context.spilled(MEMORY_BYTES, [programs[side], *words], path)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}

    def turn(variant):
        context.progress(f"speedtest1: {variant}")
        return _run(commands[variant], context.folder, environment)

    def look(answers):
        if any(hashes != answers["native"][2] for _, _, hashes in answers.values()) or not answers["native"][2]:
            raise Failure("speedtest1: the results differ")

    measured = take_turns(commands, turn, pairs, CASE_SECONDS, look)
    for path in stats.values():
        counted = json.loads(path.read_text())
        if counted["cache"]["evictions"] != 0 or counted["spill"]["allocated_bytes"] == 0:
            raise Failure("speedtest1: its data was not resident in spilled memory")
    cpu_seconds = {side: [one[0] for one in of_side] for side, of_side in measured.items()}
    user_ratios = [ours[1] / native[1] for ours, native in zip(measured["ours"], measured["native"])]
    row = row_of(f"speedtest1/size_{size}", cpu_seconds["ours"], cpu_seconds["native"], "s", user_ratio=median(user_ratios), **more_ratios(cpu_seconds, "native"))
    result = {
        "parameters": {"flags": " ".join(FLAGS["O2"] + OPTIONS), "arguments": " ".join(words), "pairs": pairs, "case_seconds": CASE_SECONDS, "memory_bytes": MEMORY_BYTES,
                       "time": "CPU time of the process", "quick": context.quick},
        "rows": [row],
        "summary": {"speedtest1_ratio": row["ratio"], "speedtest1_user_ratio": row["user_ratio"],
                    **({"speedtest1_two_bodies_ratio": row["two_bodies_ratio"]} if "two_bodies_ratio" in row else {})},
    }
    bars = {"title": "speedtest1: CPU time, database resident", "subtitle": "ratio to native code, less is better",
            "cases": [row["case"]], "series": {"spillcc": [row["ratio"]], "user mode only": [row["user_ratio"]]}}
    return result, bars
