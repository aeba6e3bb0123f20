#!/usr/bin/env python3
"""Fails when docs/operations.md explains a message that nothing says.  check_messages.py SOURCE

Messages are `code` in the first column of the tables below "What messages mean"; what stands between two `...` has to be in a text of the sources.
"""
import pathlib
import re
import sys

from pages import fail

source = pathlib.Path(sys.argv[1])
files = [path for folder in ("src", "tools") for path in (source / folder).rglob("*") if path.suffix in (".cc", ".h", ".c") and "_test" not in path.name]
# Literals that follow each other are one text, as parts of a message, too.
texts = re.sub(r'"\s*,?\s*"', "", "\n".join(path.read_text() for path in files))
page = (source / "docs" / "operations.md").read_text()
messages = re.findall(r"^\| `(.*?)` \|", page[page.index("\n## What messages mean\n"):], re.M)
assert len(messages) > 40, "docs/operations.md explains next to nothing"
fail([f"docs/operations.md: nothing says '{part}' ({message})" for message in messages for part in message.split("...")
      if len(part.strip(" ;:,()'")) > 2 and part.strip(" ") not in texts and part not in texts], "parts of messages that nothing says")
