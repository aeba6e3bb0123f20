#!/usr/bin/env python3
"""Fails when something asks for a variable SPILLWAY_... of the environment, or a page sets one, that docs/options.md does not have: a spilled program
would refuse to start wherever it is set.  check_variables.py SOURCE

The page is made of the code's own lists (check_page.py compares), and has those of others in a table of its own.
"""
import pathlib
import re
import sys

from pages import fail, line_of, pages

FOLDERS = ("bench", "bindings", "compiler", "packaging", "scripts", "src", "tests", "tools")
# The calls of C++ that ask for one by name, getenv and what tests have instead; those of Python; and a shell's NAME=value, but not cmake's -DNAME=value.
ASKED = re.compile(r"""(?:getenv|environment|setting|number_of|environ(?:\.get)?)[(\[]"(SPILLWAY_[A-Z_]+)"|"(SPILLWAY_[A-Z_]+)" in os\.environ""")
SET = re.compile(r"(?<![\w$-])(SPILLWAY_[A-Z_]+)=")
LISTED = re.compile(r"`(SPILLWAY_[A-Z_]+)(\.\.\.)?`")


def known(options):
    """(names, beginnings of names) on docs/options.md."""
    found = LISTED.findall(options)
    return {name for name, more in found if not more}, tuple(name for name, more in found if more)


def unknown(text, pattern, names, beginnings):
    """(where, name) of each."""
    for found in pattern.finditer(text):
        name = next(filter(None, found.groups()))
        if name not in names and not name.startswith(beginnings):
            yield found.start(), name


def main(source):
    names, beginnings = known((source / "docs" / "options.md").read_text())
    assert len(names) > 25 and len(beginnings) > 2, "docs/options.md has hardly any variables"
    code = [path for folder in FOLDERS for path in (source / folder).rglob("*") if path.suffix in (".c", ".cc", ".cpp", ".h", ".py")]
    shell = [source / "Makefile", *(path for path in (source / "packaging").rglob("*") if path.suffix in (".sh", ".in")), *pages(source)]
    fail([f"{path.relative_to(source)}:{line_of(text, at)}: {name} is neither an option nor among kOthersVariables (src/base/options.cc)"
          for pattern, paths in ((ASKED, code), (SET, shell)) for path in paths for text in (path.read_text(),) for at, name in unknown(text, pattern, names, beginnings)],
         "variables that nobody knows")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
