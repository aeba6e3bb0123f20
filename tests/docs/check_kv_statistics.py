#!/usr/bin/env python3
"""Fails when docs/kv.md does not have a name of the store's statistics, of the library's or of the command's.  check_kv_statistics.py SOURCE"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
section = re.search(r"^### Statistics$(.*?)^## ", (source / "docs/kv.md").read_text(), re.M | re.S)[1]


def names_in(file, pattern, least):
    names = set(re.findall(pattern, (source / file).read_text()))
    if len(names) < least:
        sys.exit(f"{file} has {len(names)} names of statistics, and should have more")
    return names


# The lists that names are composed of.
calls = names_in("src/kv/calls.h", r'"(\w+)"(?=[^;]*\};)', 6)
purposes = names_in("src/kv/media/io_counts.h", r'"(\w+)"(?=[^;]*\};)', 6)
names = {f"{call}_latency" for call in calls} | {f"io_for_{purpose}" for purpose in purposes}
names |= names_in("src/capi/kv/store.cc", r'(?:\\|write_ratio\()"([a-z]\w+)\\?"[:,] ', 40)
names |= names_in("tools/spillway/kv_stats.cc", r'(?:\{|stats\[)"([a-z]\w+)"(?:,\s|\])', 50)
if missing := sorted(name for name in names if f"`{name}`" not in section):
    sys.exit(f'docs/kv.md, "Statistics", has nothing of {", ".join(missing)}')
