"""Breakages of what checks the documentation, how sources look, and processes that are killed: what is wrong passes."""

RUN = "tests/tutorials/run_tutorial.py"
LINKS = "tests/docs/check_links.py"
COMMANDS = "tests/docs/check_commands.py"
CLAIMS = "tests/docs/check_claims.py"
FORMATTING = "tests/formatting/check_formatting.py"
MESSAGES = "tests/docs/check_messages.py"
VARIABLES = "tests/docs/check_variables.py"
TABLE_KILLS = "tests/batch_crash/batch_crash_test.py"
STORE_KILLS = "tests/kv_crash/kv_crash_test.py"


def of(name, test, *patches):
    return {"name": name, "test": ("ctest", f"^{test}$"), "patches": list(patches)}


MUTATIONS = [
    of("a command of a tutorial may fail", "tutorials_runner", (RUN, '"--norc", "-e"]', '"--norc"]')),
    of("numbers of a tutorial's output vary everywhere", "tutorials_runner", (RUN, "    if numbers_vary:\n", "    if True:\n")),
    of("a tutorial's output may have more lines", "tutorials_runner", (RUN, "return re.fullmatch(pattern, said) is not None", "return re.match(pattern, said) is not None")),
    of("dots of a tutorial's output go over lines", "tutorials_runner", (RUN, '.replace(r"\\.\\.\\.", r"[^\\n]*")', '.replace(r"\\.\\.\\.", r"(?s:.)*")')),
    of("blocks that are not to be run are run", "tutorials_runner", (RUN, 'if not block.mark.startswith("not run") and (', 'if (')),
    of("links to headings are not looked at", "docs_checks", (LINKS, '        elif anchor and (', '        elif anchor == "" and (')),
    of("the second heading of a name has the first one's", "docs_checks", (LINKS, "found.add(name if counts[name] == 0 else", "found.add(name if True else")),
    of("files that pages name as they are included are not looked at", "docs_checks", (LINKS, "if not FILE.fullmatch(found[0]))]:", "if False)]:")),
    of("figures on pages are README's whatever they say", "docs_checks", (CLAIMS, "                if missing:\n", "                if False and missing:\n")),
    of("numbers of README need no source", "docs_checks", (CLAIMS, "    if numbers(rest):\n", "    if False and numbers(rest):\n")),
    of("options of a program that is run count as Spillway's", "docs_checks", (COMMANDS, '        if word == "--":\n            break\n', "")),
    of("commands within commands are not looked at", "docs_checks", (COMMANDS, r"(?=(?P<words>[^\n]*))", r"(?P<words>[^\n]*)")),
    of("headers of C++ may look as they like", "formatting_self_test", (FORMATTING, '".h", ".hpp", ', '".h", ')),
    of("sources of another build are looked at", "formatting_self_test", (FORMATTING, "            folders.clear()\n            continue\n", "            pass\n")),
    of("what is told with a word before it needs no row", "docs_checks", (MESSAGES, r'r"(?:\w+: )*\.\.\."', r'r"(?:[\w ]+: )*\.\.\."')),
    of("a message that is told unasked has no row", "docs_messages", ("docs/operations.md", "| `store: ... has no new checkpoint: ...` |", "| no new checkpoint |")),
    of("a command of Redis' that is served is not on the page", "docs_redis_commands", ("docs/server.md", "GETDEL, ", "")),
    of("any variable that begins as a known one is known", "docs_checks", (VARIABLES, "if name not in names and", "if not name.startswith(tuple(names)) and")),
    of("a table that hangs when it is opened is killed like any other", "crash_scripts", (TABLE_KILLS, "    if found is None and not is_early:\n", "    if False:\n")),
    of("a store that hangs when it is opened is killed like any other", "crash_scripts", (STORE_KILLS, "    if not is_ready and not dies_early:\n", "    if False:\n")),
]
