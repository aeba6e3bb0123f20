#!/usr/bin/env python3
"""Fails when no code counts what a line of statistics.inc describes, or what it calls a counter may fall.  check_counters.py SRC"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
text = "".join(path.read_text() for path in source.rglob("*") if path.suffix in (".cc", ".c", ".h", ".S") and not path.stem.endswith("_test"))
described = re.findall(r"^([A-Z]+)\((\w+), (\w+),", (source / "base" / "statistics.inc").read_text(), re.M)
assert len(described) > 30, "statistics.inc describes next to nothing"
words = set(re.findall(r"\w+", text))
missing = [f"{folder}.{name}" for _, folder, name in described if f"{folder}_{name}" not in words]
if missing:
    sys.exit(f"never counted: {', '.join(missing)}")
fall = set(re.findall(r"(\w+)\.(?:subtract|raise)\(", text))
falling = [f"{folder}.{name}" for kind, folder, name in described if kind == "COUNTER" and f"{folder}_{name}" in fall]
if falling:
    sys.exit(f"no counters, but gauges: {', '.join(falling)}")
