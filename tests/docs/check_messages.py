#!/usr/bin/env python3
"""Fails when docs/operations.md explains a message that nothing says, or has no row for one that is told unasked.  check_messages.py SOURCE

Messages are `code` in the first column of the tables below "What messages mean", with `...` for what is another each time; what stands between two of
these has to be in a text of the sources. Told unasked is what base::log() is given with a level above info, and what ends a program that was running,
which end_process() is given: each of these lines, `...` in place of what is no literal there, has to be one that a row has. An error that is handed on, with a word before it at most, need not: errors say themselves what to do.
"""
import pathlib
import re
import sys

from pages import fail, line_of

# What is told to somebody who has asked for it: by the server's -v, by Scheduler::dump().
ASKED = ["server: a connection from ... was refused: ...", "task ... of worker ...: ..."]
STRING = r'"(?:[^"\\\n]|\\.)*"'
COMMENT = re.compile(r"^ *//.*", re.M)
LOG = re.compile(rf'\bbase::log\(((?:{STRING}|[^";])*)\);')
END = re.compile(rf'\bend_process\(base::Error::of\(((?:{STRING}|[^";])*)\),\s*kFatalStatus\);')
TOKEN = re.compile(rf'{STRING}|[^"]')
LITERALS = re.compile(rf"(?:\s*{STRING})+\s*")
ERROR = re.compile(r"(?:\w+: )*\.\.\.")


def arguments_of(call):
    """What stands between those commas of a call that are in no brackets."""
    arguments, depth = [""], 0
    for token in TOKEN.findall(call):
        depth += (token in "([{") - (token in ")]}")
        if token == "," and depth == 0:
            arguments.append("")
        else:
            arguments[-1] += token
    return arguments


def message_of(call):
    """What is logged, as a row has it."""
    texts = [argument for argument in arguments_of(call) if not argument.lstrip().startswith("{")]  # that is the event
    message = "".join("".join(text[1:-1] for text in re.findall(STRING, argument)) if LITERALS.fullmatch(argument) else "..." for argument in texts)
    return re.sub(r"(?:\.\.\.)+", "...", message)


def told_unasked(text):
    """(where, message) of each."""
    code = COMMENT.sub(lambda found: " " * len(found[0]), text)
    calls = list(LOG.finditer(code))
    assert len(calls) == code.count("base::log("), "a call of base::log() that is not one statement"
    for found in calls:
        message = message_of(found[1])
        if "LogLevel::kInfo" not in found[1] and not ERROR.fullmatch(message):
            yield found.start(), message


def ended_by(text):
    """(where, message) of each."""
    for found in END.finditer(text):
        message = message_of(found[1].partition(",")[2])  # what comes first is the error's number
        if not ERROR.fullmatch(message):
            yield found.start(), message


def messages_on(page):
    return re.findall(r"^\| `(.*?)` \|", page[page.index("\n## What messages mean\n"):], re.M)


def unsaid(messages, sources):
    """What of the messages nothing says."""
    # Literals that follow each other are one text, as parts of a message, too.
    texts = re.sub(r'"\s*,?\s*"', "", sources)
    return [f"docs/operations.md: nothing says '{part}' ({message})" for message in messages for part in message.split("...")
            if len(part.strip(" ;:,()'")) > 2 and part.strip(" ") not in texts and part not in texts]


def unexplained(messages, text):
    """(where, message) of what is told unasked, or ends a program, and is none of the messages."""
    known = re.compile("|".join(re.escape(message).replace(r"\.\.\.", ".*") for message in [*messages, *ASKED]))
    return [(at, message) for at, message in [*told_unasked(text), *ended_by(text)] if not known.fullmatch(message)]


def main(source):
    files = [path for folder in ("src", "tools") for path in (source / folder).rglob("*") if path.suffix in (".cc", ".h", ".c") and "_test" not in path.name]
    texts = {path: path.read_text() for path in files}
    messages = messages_on((source / "docs" / "operations.md").read_text())
    assert len(messages) > 40, "docs/operations.md explains next to nothing"
    assert sum(len(list(told_unasked(text))) for text in texts.values()) > 30, "next to nothing is told unasked"
    assert sum(len(list(ended_by(text))) for text in texts.values()) > 10, "next to nothing ends a program"
    fail([*unsaid(messages, "\n".join(texts.values())),
          *(f"{path.relative_to(source)}:{line_of(text, at)}: docs/operations.md has no row for `{message}`"
            for path, text in texts.items() for at, message in unexplained(messages, text))], "messages that are on the page alone, or not there")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
