#!/usr/bin/env python3
"""Runs a test of a build with a sanitizer, which fails when a process that it started has reported something.  watched.py COMMAND [ARGUMENT]...

What a server has said that was killed, or whose standard error nobody reads, would be lost: so sanitizers write their reports into a folder, which is
looked at when the command has ended. The exit status is the command's, or 1 when there are reports.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

REPORTS_SHOWN = 10


def environment(folder):
    """This process's, with sanitizers that write to files of the folder; what their variables say already comes first."""
    log = f'log_path="{folder}/report"'  # and the number of the process
    options = {"ASAN_OPTIONS": log, "TSAN_OPTIONS": log, "UBSAN_OPTIONS": "print_stacktrace=1"}  # which reports where the address sanitizer does
    return {**os.environ, **{name: f"{os.environ.get(name, '')}:{words}" for name, words in options.items()}}


def main(*command):
    with tempfile.TemporaryDirectory(prefix="spillway-reports-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o1777)  # a server may have become another user
        status = subprocess.run(command, env=environment(folder)).returncode
        reports = sorted(pathlib.Path(folder).iterdir())
        for report in reports[:REPORTS_SHOWN]:
            print(f"{report.name}:\n{report.read_text(errors='replace')}", flush=True)
        if reports:
            print(f"processes that reported something: {len(reports)}")
    return 1 if reports else status


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
