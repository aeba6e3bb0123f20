#!/usr/bin/env python3
"""Fails when a page leads nowhere: a relative link, a #heading of a page, or a file named in `code`.  check_links.py SOURCE"""
import pathlib
import re
import sys

from pages import fail, line_of, pages, prose, without_code

LINK = re.compile(r"\[[^\[\]]*\]\((?P<target>[^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} (?P<text>.+?)\s*$", re.M)
# `src/cache/policies/policy.h`, alone, of folders that are in every clone; not src/kv/*, nor x_test.cc and NAME, which stand for others.
FILE = re.compile(r"`(?P<path>(?:src|docs|tests|tools|bench|compiler|include|examples|bindings|scripts|cmake)/[\w./+-]+)`")
# `cache/policies/policy.h`: as it is included, or as it lies in a folder of src/.
INCLUDED = re.compile(r"`(?P<path>[a-z][\w-]*(?:/[\w-]+)*/[\w.-]+\.(?:h|hpp|cc|c|cpp|S|inc))`")


def anchors(text):
    """The names that headings get on a web page: as GitHub makes them."""
    found, counts = set(), {}
    for heading in HEADING.finditer(prose(text)):
        words = re.sub(r"\[([^\[\]]*)\]\([^()]*\)", r"\1", heading["text"])
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        counts[name] = counts.get(name, -1) + 1
        found.add(name if counts[name] == 0 else f"{name}-{counts[name]}")
    return found


def is_there(source, path):
    return any((source / folder / path).exists() for folder in (".", "src", "include")) or any((source / "src").glob(f"*/{path}"))


def problems(source, page):
    text, links = prose(page.read_text()), without_code(page.read_text())
    where = page.relative_to(source)
    for link in LINK.finditer(links):
        target = link["target"]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        line = line_of(links, link.start())
        if not there.exists():
            yield f"{where}:{line}: {target}: there is no such file"
        elif anchor and (there.suffix != ".md" or anchor not in anchors(there.read_text())):
            yield f"{where}:{line}: {target}: there is no such heading"
    for file in [*FILE.finditer(text), *(found for found in INCLUDED.finditer(text) if not FILE.fullmatch(found[0]))]:
        if not re.search(r"/x_|/[A-Z]+$", file["path"]) and not is_there(source, file["path"]):
            yield f"{where}:{line_of(text, file.start())}: {file['path']}: there is no such file"


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1]).resolve()
    fail([problem for page in pages(source) for problem in problems(source, page)], "links that lead nowhere")
