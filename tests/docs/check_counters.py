#!/usr/bin/env python3
"""Fails when no code counts what a line of statistics.inc describes.  check_counters.py SRC"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
text = "".join(path.read_text() for path in source.rglob("*") if path.suffix in (".cc", ".c", ".h", ".S") and not path.stem.endswith("_test"))
described = re.findall(r"^[A-Z]+\((\w+), (\w+),", (source / "base" / "statistics.inc").read_text(), re.M)
assert len(described) > 30, "statistics.inc describes next to nothing"
missing = [f"{folder}.{name}" for folder, name in described if not re.search(rf"\b{folder}_{name}\b", text)]
if missing:
    sys.exit(f"never counted: {', '.join(missing)}")
