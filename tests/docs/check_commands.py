#!/usr/bin/env python3
"""Fails when a page names a subcommand, a benchmark or an option that there is not.  check_commands.py SOURCE SPILLWAY

Looked at are commands in blocks of sh, lines of others that begin with `$ `, and `code` that begins with `spillway `: what there is, is what
--help says, and words in capitals stand for others. And options of spillcc and goals of make, wherever they are: what there is, is in the sources
and the Makefile.
"""
import functools
import pathlib
import re
import subprocess
import sys

from pages import FENCE, fail, line_of, pages, prose

COMMAND = re.compile(r"(?:^(?:\$ )?|[;|&(`]|\b(?:do|exec|then|sudo)\b|--)[^\S\n]*(?:[A-Z_]+=\S+ )*(?:[\w./~-]+/)?spillway[^\S\n]+(?=(?P<words>[^\n]*))", re.M)
INLINE = re.compile(r"`spillway (?P<words>[^`]+)`")
PLACEHOLDER = re.compile(r"[^a-z]*[A-Z|]")
COMPILER_OPTION = re.compile(r"(?<![\w-])-(?:f(?:no-)?spill|spill)(?:-[a-z]+)*(?=[\s=`\[|,]|$)", re.M)
MAKE_GOALS = re.compile(r"(?:(?P<line>^)[^\S\n]*|&& |`)(?:sudo )?make(?: [A-Z_]+=\S+)*(?P<goals>(?: [a-z][a-z-]*)+)(?=[\s`;]|$)", re.M)
# Their words: the second of these is a subcommand of its own.
GROUPS = ("kv", "persist")


class Help:
    def __init__(self, spillway):
        self.spillway = spillway

    @functools.cache
    def text(self, *words):
        """Empty: there is no such subcommand."""
        ended = subprocess.run([self.spillway, *words, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        return ended.stdout if ended.returncode == 0 and "usage" in ended.stdout else ""

    @functools.cache
    def options(self, *words):
        return set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-zA-Z-]*", self.text(*words))) | {"--help"}


def words_of(text):
    """Of one command: up to what ends it. Quoted words stay whole."""
    text = re.split(r"\s#|[;&]|(?<!\[)\||[<>]|\)\s*$", re.sub(r"'[^']*'|\"[^\"]*\"", "QUOTED", text))[0]
    return text.replace("[", " ").replace("]", " ").split()


def problem_of(helps, words):
    """None: there is nothing wrong."""
    if not words or PLACEHOLDER.match(words[0]) or words[0] in ("--help", "--version"):
        return None
    name, rest = [words[0]], words[1:]
    if name[0] in GROUPS:
        if not rest or PLACEHOLDER.match(rest[0]):
            return None
        name, rest = [name[0], rest[0]], rest[1:]
    if not helps.text(*name):
        return f"there is no spillway {' '.join(name)}"
    if name == ["bench"] and rest and re.fullmatch(r"[a-z][a-z0-9-]*", rest[0]) and rest[0] != "all" and f"\n  {rest[0]} " not in helps.text("bench"):
        return f"there is no benchmark {rest[0]}"
    for word in rest:
        if word == "--":
            break
        option = re.match(r"--[a-z][a-z-]*", word)
        if option and option[0] not in helps.options(*name):
            return f"spillway {' '.join(name)} has no option {option[0]}"
    return None


def commands(text):
    """(where it begins, its words) of each."""
    for block in FENCE.finditer(text):
        code = re.sub(r"\\\n", "  ", block["text"])
        for found in COMMAND.finditer(code):
            line = code[code.rfind("\n", 0, found.start("words")) + 1:found.start("words")]
            if block["language"] == "sh" or line.startswith("$ "):
                yield block.start("text") + found.start(), words_of(found["words"])
    for found in INLINE.finditer(prose(text)):
        yield found.start(), words_of(found["words"])


def compiler_options(source):
    """As they are spelt in the sources of spillcc and the plugin: \"-fspill\", \"spill-reuse\"."""
    files = [path for folder in ("tools/spillcc", "compiler") for path in (source / folder).rglob("*") if path.is_file() and "_test" not in path.name]
    return set(re.findall(r'"-?((?:fno-|f)?spill[a-z-]*?)=?"', "".join(path.read_text() for path in files)))


def unknown_goals(text, makefile):
    """(where, goal) of each."""
    known = set(re.search(r"^\.PHONY:(.*)$", makefile, re.M)[1].split())
    code = [block.span() for block in FENCE.finditer(text) if block["language"] == "sh"]
    return [(found.start(), goal) for found in MAKE_GOALS.finditer(text) for goal in found["goals"].split() if goal not in known
            and (found["line"] is None or any(begin < found.start() < end for begin, end in code))]


if __name__ == "__main__":
    source, helps = pathlib.Path(sys.argv[1]).resolve(), Help(sys.argv[2])
    wrong, count, known = [], 0, compiler_options(source)
    assert len(known) > 20, "the compiler has hardly any options"
    for page in pages(source):
        text = page.read_text()
        for at, words in commands(text):
            count += 1
            if problem := problem_of(helps, words):
                wrong.append(f"{page.relative_to(source)}:{line_of(text, at)}: {problem}")
        for option in COMPILER_OPTION.finditer(text):
            if option[0].removeprefix("-") not in known:
                wrong.append(f"{page.relative_to(source)}:{line_of(text, option.start())}: spillcc has no option {option[0]}")
        for at, goal in unknown_goals(text, (source / "Makefile").read_text()):
            wrong.append(f"{page.relative_to(source)}:{line_of(text, at)}: make has no goal {goal}")
    assert count > 50, "pages have hardly any commands"
    fail(wrong, "commands that there are not")
