#!/usr/bin/env python3
"""Fails when no code counts what a line of statistics.inc describes, or what it calls a counter may fall.  check_counters.py SRC"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
text = "".join(path.read_text() for path in source.rglob("*") if path.suffix in (".cc", ".c", ".h", ".S") and not path.stem.endswith("_test"))
described = re.findall(r"^([A-Z]+)\((\w+), (\w+),", (source / "base" / "statistics.inc").read_text(), re.M)
assert len(described) > 30, "statistics.inc describes next to nothing"
missing = [f"{folder}.{name}" for _, folder, name in described if not re.search(rf"\b{folder}_{name}\b", text)]
if missing:
    sys.exit(f"never counted: {', '.join(missing)}")
falling = [f"{folder}.{name}" for kind, folder, name in described if kind == "COUNTER" and re.search(rf"\b{folder}_{name}\.(subtract|raise)\(", text)]
if falling:
    sys.exit(f"no counters, but gauges: {', '.join(falling)}")
