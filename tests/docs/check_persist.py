#!/usr/bin/env python3
"""Fails when docs/persist.md does not say what the code does: its table of options is made of options.inc, its statistics and kinds are those of the code.

  check_persist.py SOURCE            compares
  check_persist.py SOURCE --table    prints the table of options
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
persist = root / "src" / "persist"
page = (root / "docs" / "persist.md").read_text()

lines = re.findall(r'^PERSIST_OPTION\((\w+), "(.*?)", "(.*?)",\s*"(.*?)"\)$', (persist / "own" / "options.inc").read_text(), re.M)
table = "| variable | default | meaning |\n|---|---|---|\n" + "".join(
    f"| `SPILLWAY_PERSIST_{name.upper()}={bars}` | {f'`{default}`' if default else ''} | {doc} |\n"
    for name, default, bars, doc in ((name, default, argument.replace("|", "\\|"), doc) for name, default, argument, doc in lines))
if sys.argv[2:] == ["--table"]:
    print(table, end="")
    sys.exit()
assert len(lines) > 5, "options.inc lists next to nothing"
if page.count(table) != 1:
    sys.exit(f"docs/persist.md: its table of options is not\n{table}")

code = "".join((persist / "own" / name).read_text() for name in ("own.cc", "dirtiness.cc"))
names = set(re.findall(r'\\"(\w+)\\": ', code))
assert len(names) > 15, "own.cc writes next to no statistics"
if missing := sorted(name for name in names if f"`{name}`" not in page):
    sys.exit(f"docs/persist.md: nothing of the statistics {', '.join(missing)}")
for kind in ("memory", "flush_on_fail", "file", "dram"):
    if page.count(f"\n| `{kind}` |") != 1:
        sys.exit(f"docs/persist.md: nothing of the kind {kind}")
policies = re.findall(r'case Way::\w+: return "(\w+)"', (persist / "policy.cc").read_text())
assert len(policies) > 2, "policy.cc has next to no policies"
for policy in policies:
    if page.count(f"\n| `{policy}` |") != 1:
        sys.exit(f"docs/persist.md: nothing of the policy {policy}")
