#!/usr/bin/env python3
"""Fails when docs/server.md lists other commands of Redis' than are served.  check_redis_commands.py SOURCE"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
table = re.search(r"^\| of \| commands \|\n\|---\|---\|\n((?:\|.*\n)+)", (source / "docs/server.md").read_text(), re.M)
listed = re.findall(r"[A-Z-]+(?: [A-Z-]+)?", table[1] if table else "")
served = re.findall(r'^COMMAND\(\w+, \w+, "([\w|-]+)"', (source / "src/server/resp/commands.inc").read_text(), re.M)
assert len(served) > 80, "commands.inc has next to no commands"
# DEBUG is always refused, some commands are only the first words of others, and all of these have a HELP.
left_out = {"DEBUG", "CLIENT", "CONFIG", "OBJECT", "MEMORY"}
names = {name.upper().replace("|", " ") for name in served if not name.endswith("|help")} - left_out
if twice := sorted({name for name in listed if listed.count(name) > 1}):
    sys.exit(f"docs/server.md lists twice: {', '.join(twice)}")
if missing := sorted(names - set(listed)):
    sys.exit(f"docs/server.md does not list: {', '.join(missing)}")
if unknown := sorted(set(listed) - names):
    sys.exit(f"docs/server.md lists what is not served: {', '.join(unknown)}")
