#!/usr/bin/env python3
"""Fails when the programs on a page are not the files that tests run.  check_examples.py SOURCE PAGE LANGUAGE:FILE...

Each file is on the page once, as a block of its language, and no other block of that language is.
"""
import difflib
import pathlib
import re
import sys

source, page, *files = sys.argv[1:]
text = pathlib.Path(source, page).read_text()
for language, file in (name.split(":") for name in files):
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    kept = pathlib.Path(source, file).read_text()
    if blocks != [kept]:
        sys.stdout.writelines(difflib.unified_diff("".join(blocks).splitlines(True), kept.splitlines(True), page, file))
        sys.exit(f"{page}: its {language} program is not {file}")
