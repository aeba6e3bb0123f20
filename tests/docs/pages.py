"""The pages of the documentation, as checks read them."""
import re

FENCE = re.compile(r"^```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^```[^\S\n]*$", re.M | re.S)


def pages(source):
    """README.md, CONTRIBUTING.md and all of docs/, and that there are as many as there should be."""
    found = [source / "README.md", source / "CONTRIBUTING.md", *sorted((source / "docs").rglob("*.md"))]
    assert len(found) > 20, f"{source} has hardly any pages"
    return found


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def prose(text):
    """Without blocks, whose lines stay, empty."""
    return FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)


def without_code(text):
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", lambda found: re.sub(r"[^\n]", " ", found[0]), prose(text), flags=re.S)


def fail(problems, what):
    if problems:
        raise SystemExit("".join(f"{problem}\n" for problem in problems) + f"{len(problems)} {what}")
