#!/usr/bin/env python3
"""Fails when README's table of figures is not what bench/driver/claims.toml says, names no command, or another page says another figure.  check_claims.py SOURCE"""
import pathlib
import re
import sys

from pages import fail, pages

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/driver"))
from claims import decimals, load, numbers  # noqa: E402

HEAD = "| | figure | command |\n|---|---|---|\n"
COMMAND = re.compile(r"`spillway bench [^`]+`(?:, `[^`]+`)*")
FIGURES_LINK = "README.md#figures"


def one_line(text):
    """As a page shows it, whose lines end anywhere."""
    return " ".join(text.split())


def agree(claimed, said, scale):
    """Whether a number of README is that of a page, to as many digits as the one that has fewer."""
    digits = min(decimals(text) for text in ((claimed, said) if scale == 1 else (claimed,)))
    return abs(float(claimed) - scale * float(said)) <= 0.5 * 10 ** -digits + 1e-9


def row_of(claim):
    return f"| {claim['what']} | {claim['figure']} | {claim['command']} |"


def problems_of_table(readme, claims):
    _, found, table = readme.partition(HEAD)
    if not found:
        yield f"README.md has no table that begins with {HEAD.splitlines()[0]}"
        return
    rows, wanted = table.partition("\n\n")[0].splitlines(), [row_of(claim) for claim in claims]
    for row in rows:
        if row not in wanted:
            yield f"README.md: claims.toml has no such row, or another: {row}"
    for row in wanted:
        if row not in rows:
            yield f"claims.toml: README.md has no such row, or another: {row}"
    if not any(row not in rows for row in wanted) and rows != wanted:
        yield "README.md and claims.toml have their rows in another order"


def problems_of_claim(claim):
    """Each number is a part's or a circumstance, and a command makes each part again."""
    rest = claim["figure"]
    for words in [*(part["says"] for part in claim["parts"]), *claim.get("besides", [])]:
        if words not in rest:
            yield f"{claim['what']}: its figure does not say {words!r}, or not so often"
        rest = rest.replace(words, "", 1)
    if numbers(rest):
        yield f"{claim['what']}: nothing says where {numbers(rest)[0]} comes from"
    if not COMMAND.match(claim["command"]):
        yield f"{claim['what']}: its command is none of spillway bench: {claim['command']}"
    named = re.findall(r"`(?:spillway bench )?([\w-]+)", claim["command"])
    for part in claim["parts"]:
        if part["benchmark"] not in named:
            yield f"{claim['what']}: {part['says']} is of {part['benchmark']}, which its command does not run"


def problems_of_pages(texts, claims):
    """texts: {page: text}."""
    quoted = set()
    for part in (part for claim in claims for part in claim["parts"]):
        for page, quotes in part.get("pages", {}).items():
            quoted.add(page)
            for words in quotes:
                if one_line(words) not in one_line(texts.get(page, "")):
                    yield f"{page} does not say {words!r}, of which claims.toml says that it does"
                missing = [number for number in numbers(part["says"]) if not any(agree(number, said, part.get("scale", 1)) for said in numbers(words))]
                if missing:
                    yield f"{page} says {words!r}, README {part['says']!r}"
    for page, text in texts.items():
        if FIGURES_LINK in text and page not in quoted:
            yield f"{page} leads to README's figures, and claims.toml has nothing of it: say what it quotes (pages)"


def problems(texts, claims):
    yield from problems_of_table(texts["README.md"], claims)
    for claim in claims:
        yield from problems_of_claim(claim)
    yield from problems_of_pages(texts, claims)


def main(source):
    fail(list(problems({str(page.relative_to(source)): page.read_text() for page in pages(source)}, load(source / "bench/driver/claims.toml"))), "claims are not the same everywhere")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
