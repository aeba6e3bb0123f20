#!/usr/bin/env python3
"""The scripts of tools/trace, as bpftrace compiles them: each for the binary that its head names, with a program for each probe that it listens to.
Nothing goes to the kernel.  scripts_test.py SOURCE BUILD

Skipped where bpftrace is not, or compiles nothing whatsoever: without root, or where the kernel keeps BPF to itself.
"""
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, Failure, Skipped, status_of, take_paths  # noqa: E402


def dry_run(*script):
    """bpftrace's, which prints the programs that it would load."""
    return subprocess.run(["bpftrace", "-d", *map(str, script)], env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS)


def need_bpftrace():
    if shutil.which("bpftrace") is None:
        raise Skipped("needs apt-get install bpftrace")
    ended = dry_run("-e", "BEGIN { exit(); }")
    if ended.returncode != 0:
        raise Skipped(f"bpftrace does not work here: {' '.join(ended.stderr.split())}")


def check_script(script, build):
    text = script.read_text()
    binary = build / re.search(rf"^//   sudo {re.escape(script.name)} /usr/(\S+) ", text, re.M)[1]
    ended = dry_run(script, binary)
    # Of what it cannot read in a probe's argument it may only complain. That the kernel does not tell its types is no matter here.
    errors = [line for line in ended.stderr.splitlines() if re.search(r"\b(ERROR|FATAL|BUG): (?!BTF)", line)]
    if ended.returncode != 0 or errors:
        raise Failure(f"{script}: bpftrace ends with {ended.returncode}\n{ended.stderr}")
    listens = set(re.findall(r"^usdt:\$1:spillway:(\w+)$", text, re.M))
    has = set(re.findall(rf'section "s_usdt:{re.escape(str(binary))}:spillway:(\w+)_loc\d+_\d+"', ended.stdout))
    if not listens or has != listens:
        raise Failure(f"{script} listens to {sorted(listens)}, and bpftrace makes programs of {sorted(has)}")
    print(f"{script.name}: programs for {len(has)} probes of {binary.name}")


def test(source, build):
    need_bpftrace()
    scripts = sorted((source / "tools/trace").glob("*.bt"))
    if len(scripts) < 3:
        raise Failure(f"there are no scripts but {scripts}")
    for script in scripts:
        check_script(script, build)


if __name__ == "__main__":
    sys.exit(status_of("scripts_test", test, *take_paths(2)))
