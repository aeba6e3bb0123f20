#!/usr/bin/env python3
"""Fails when a generated page of docs/ is not what the data yields.  check_page.py SPILLWAY PAGE FILE"""
import difflib
import pathlib
import subprocess
import sys

spillway, page, file = sys.argv[1:]
made = subprocess.run([spillway, "docs", page], check=True, capture_output=True, text=True).stdout
kept = pathlib.Path(file).read_text()
assert made.count("\n| `") > 5, f"'{spillway} docs {page}' lists next to nothing"
if made != kept:
    sys.stdout.writelines(difflib.unified_diff(kept.splitlines(True), made.splitlines(True), file, "what the data yields"))
    sys.exit("run make docs and commit what it writes")
