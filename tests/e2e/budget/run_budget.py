#!/usr/bin/env python3
"""A spilled program stays within its budget.  run_budget.py BIN WORK BUDGET.c SCRIPTS KIND

The program runs with --memory 256M in a control group that is limited to that, plus the peak of the plain
program without data, plus 16 MiB; it must end well and never be at the limit for lack of memory.
KIND: live (1 GiB), touch (a byte in each MiB of 64 GiB), small (20 million blocks of 32 bytes).
Exit status 77 where no control group can be made: that is no pass.
"""
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, SKIPPED  # noqa: E402

BUDGET_MIB = 256
SLACK_MIB = 16
AMOUNTS = {"live": 1024, "touch": 64, "small": 20_000_000}


def mib(count):
    return f"{count / (1 << 20):.1f}M"


def peak_of(memory_group, command, limit_bytes):
    """(exit status, peak bytes, kernel's kills, seconds, standard error) of the command under the limit."""
    group = memory_group.MemoryGroup.create(limit_bytes)
    try:
        begin = time.monotonic()
        done = subprocess.run(command, env=CLEAN, preexec_fn=group.enter, capture_output=True, text=True, timeout=1500)
        return done.returncode, group.peak_bytes(), group.kills(), time.monotonic() - begin, done.stderr
    finally:
        group.remove()


def main():
    bin_folder, work, source, scripts = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
    kind = sys.argv[5]
    sys.path.insert(0, str(scripts))
    import memory_group
    work.mkdir(parents=True, exist_ok=True)
    plain, spilled = work / f"plain-{kind}", work / f"spilled-{kind}"
    subprocess.run(["clang-19", "-O2", "-w", source, "-o", plain], check=True)
    subprocess.run([bin_folder / "spillcc", "-O2", "-w", source, "-o", spilled], check=True, env=CLEAN)
    try:
        status, plain_peak, _, _, _ = peak_of(memory_group, [plain, kind, "0"], 1 << 30)
    except memory_group.Unavailable as reason:
        print(f"no control group can be made ({reason}): nothing is shown")
        return SKIPPED
    limit = (BUDGET_MIB + SLACK_MIB << 20) + plain_peak
    stats = work / f"stats-{kind}.json"
    stats.unlink(missing_ok=True)
    command = [bin_folder / "spillway", "run", "--memory", f"{BUDGET_MIB}M", "--storage", work, "--stats", stats, "--",
               spilled, kind, str(AMOUNTS[kind])]
    status, peak, kills, seconds, error = peak_of(memory_group, command, limit)
    print(f"{kind}: peak {mib(peak)} of a limit of {mib(limit)} (plain program without data: {mib(plain_peak)}), "
          f"status {status}, {kills} killed, {seconds:.0f} s")
    if status != 0:
        print(error)
        return 1
    statistics = json.loads(stats.read_text())
    print(f"  counted peak {mib(statistics['memory']['peak_bytes'])}, frames now {mib(statistics['memory']['frames_bytes'])}, "
          f"metadata now {mib(statistics['memory']['metadata_bytes'])}, {statistics['cache']['evictions']} evictions")
    memory = statistics["memory"]
    if memory["frames_bytes"] < 64 << 20 or memory["metadata_bytes"] < 1 << 20 or \
       memory["frames_bytes"] + memory["metadata_bytes"] > memory["peak_bytes"]:
        print(f"the parts do not make up the whole: {memory}")
        return 1
    # At the limit the kernel takes pages of the program's own files away instead of failing.
    if peak >= limit or kills > 0:
        print("the limit was reached")
        return 1
    if statistics["cache"]["evictions"] < 10000 and kind != "touch":
        print("too few evictions")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
