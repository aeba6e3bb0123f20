#!/usr/bin/env python3
"""What check_links.py, check_commands.py, check_claims.py, check_messages.py and check_variables.py find where something is wrong.  checks_test.py [unittest arguments]"""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_claims  # noqa: E402
import check_commands  # noqa: E402
import check_links  # noqa: E402
import check_messages  # noqa: E402
import check_variables  # noqa: E402
from support import temporary_folder  # noqa: E402

PAGE = """# Title

## Two words, `code` & [a link](other.md)

## Again

### Again

```sh
# no heading
spillway run --memory 1M -- ./program --anything  # spillway fly
```

See [it](#two-words-code--a-link), [again](#again-1), [other](other.md), [there](other.md#there), [web](https://example.org/#x), `[no](link)`.
Code is in `src/there.cc`, `cache/here.h`, `inner/here.h`, `src/*.cc`, and `src/x_test.cc`.
"""


class Links(unittest.TestCase):
    def problems(self, text):
        folder = temporary_folder(self)
        (folder / "src" / "cache" / "inner").mkdir(parents=True)
        for name in ("there.cc", "cache/here.h", "cache/inner/here.h"):
            (folder / "src" / name).touch()
        (folder / "other.md").write_text("# There\n")
        (folder / "page.md").write_text(text)
        return list(check_links.problems(folder, folder / "page.md"))

    def test_a_page_that_is_right(self):
        self.assertEqual(self.problems(PAGE), [])

    def test_what_is_wrong(self):
        for right, wrong, said in (("(other.md)", "(another.md)", "another.md: there is no such file"), ("#there", "#their", "#their: there is no such heading"),
                                   ("#again-1", "#again-2", "#again-2"), ("(#two-words-code--a-link)", "(#no-heading)", "#no-heading"), ("`src/there.cc`", "`src/their.cc`", "src/their.cc"),
                                   ("`cache/here.h`", "`cache/hear.h`", "cache/hear.h"), ("`inner/here.h`", "`inner/hear.h`", "inner/hear.h")):
            with self.subTest(wrong):
                found = self.problems(PAGE.replace(f"[other]{right}" if right == "(other.md)" else right, f"[other]{wrong}" if right == "(other.md)" else wrong))
                self.assertEqual(len(found), 1, found)
                self.assertRegex(found[0], r"\Apage.md:1[45]: ")
                self.assertIn(said, found[0])


class Helps(check_commands.Help):
    """Of a program that is not there."""
    TEXTS = {("run",): "usage: spillway run\n  --memory SIZE\n", ("kv", "make"): "usage: make\n  --capacity SIZE\n", ("serve",): "usage\n  -p, --port PORT\n",
             ("bench",): "usage: spillway bench\n\n  kv         measures\n  --quick    less\n"}

    def text(self, *words):
        return self.TEXTS.get(words, "")


class Commands(unittest.TestCase):
    def problems(self, code):
        helps = Helps(None)
        return [problem for _, words in check_commands.commands(code) if (problem := check_commands.problem_of(helps, words))]

    def test_what_is_right(self):
        for line in ("spillway run --memory 1M -- ./program --wrong", "spillway --help", "A=1 build/bin/spillway kv make store --capacity=1M | grep --wrong x", "spillway serve --port 0 &",
                     "spillway bench kv --quick # spillway fly", "echo 'spillway'"):
            self.assertEqual(self.problems(f"```sh\n{line}\n```\n"), [], line)
        self.assertEqual(self.problems("`spillway SUBCOMMAND --wrong`, `spillway kv NAME`, `spillway run [--memory SIZE] -- PROGRAM`\n```\nspillway fly\n```\n"), [])

    def test_what_is_wrong(self):
        for line, said in (("spillway fly", "no spillway fly"), ("true; spillway run --memroy 1M -- true", "run has no option --memroy"), ("spillway kv mak x", "no spillway kv mak"),
                           ("spillway run -- spillway kv make --size 1", "kv make has no option --size"), ("x=$(spillway kv make --size 1)", "--size"), ("spillway bench nothing", "no benchmark nothing"),
                           ("spillway serve \\\n  --wrong", "--wrong")):
            for block in (f"```sh\n{line}\n```\n", f"```\n$ {line}\n```\n"):
                if "$" in block and not line.startswith("spillway"):
                    continue
                found = self.problems(block)
                self.assertEqual(len(found), 1, (block, found))
                self.assertIn(said, found[0])
        self.assertEqual(len(self.problems("Use `spillway run --memroy SIZE`.")), 1)

    def test_goals_of_make(self):
        text = "`make all` makes it, `make PREFIX=/opt all && sudo make instal`\n```sh\nmake CC=spillcc\nmake docs all     # all of it\nspillway run -- make test\n```\n"
        self.assertEqual(check_commands.unknown_goals(text, ".PHONY: all docs\n"), [(text.index("&& sudo"), "instal")])


class Claims(unittest.TestCase):
    README = "# T\n\n| | figure | command |\n|---|---|---|\n| a sort | 1.20 × native, 3.0–4.5 × with 16 threads; 4.2 KB | `spillway bench sort --quick`, `tasks` |\n\nAt 1.2 times.\n"
    PAGE = "See [README](../README.md#figures): sorts take 1.2\ntimes as long; 3.02, 3.5 and 4.46; 4,232 bytes.\n"
    CLAIM = {"what": "a sort", "figure": "1.20 × native, 3.0–4.5 × with 16 threads; 4.2 KB", "command": "`spillway bench sort --quick`, `tasks`", "besides": ["with 16 threads"], "parts": [
        {"says": "1.20 × native", "benchmark": "sort", "pages": {"docs/page.md": ["sorts take 1.2 times"], "README.md": ["At 1.2 times"]}},
        {"says": "3.0–4.5 ×", "benchmark": "sort", "pages": {"docs/page.md": ["3.02, 3.5 and 4.46"]}},
        {"says": "4.2 KB", "benchmark": "tasks", "scale": 1e-3, "pages": {"docs/page.md": ["4,232 bytes"]}}]}

    def problems(self, readme=README, page=PAGE, claim=None):
        return list(check_claims.problems({"README.md": readme, "docs/page.md": page}, [claim or self.CLAIM]))

    def test_what_is_right(self):
        self.assertEqual(self.problems(), [])

    def test_a_table_that_says_something_else(self):
        for right, wrong in (("1.20", "1.21"), ("a sort", "a sorter"), ("--quick", "--pairs 1"), ("| a sort", "| another | 1 | `x` |\n| a sort"), ("| figure |", "| number |")):
            self.assertTrue(any("README.md" in problem for problem in self.problems(readme=self.README.replace(right, wrong))), wrong)

    def test_pages_that_say_something_else(self):
        for right, wrong in (("1.2\ntimes", "1.3 times"), ("4,232", "4,332"), ("3.02", "3.08"), ("sorts take", "a sort takes")):
            self.assertEqual(len(self.problems(page=self.PAGE.replace(right, wrong))), 1, wrong)
        for number, (part, words) in enumerate((("1.20", "1.3 times"), ("3.0–4.5", "3.02, 3.5 and 4.6"), ("4.2", "4,300 bytes"))):
            parts = [dict(each) for each in self.CLAIM["parts"]]
            parts[number] |= {"pages": {"docs/page.md": [words]}}
            [problem] = self.problems(page=self.PAGE + words, claim=self.CLAIM | {"parts": parts})
            self.assertIn(part, problem)

    def test_a_page_of_which_nothing_is_known(self):
        parts = [{key: value for key, value in part.items() if key != "pages"} for part in self.CLAIM["parts"]]
        [problem] = self.problems(claim=self.CLAIM | {"parts": parts})
        self.assertIn("docs/page.md leads to README's figures", problem)

    def test_numbers_without_a_source_and_parts_without_a_command(self):
        for part in ({"besides": []}, {"parts": self.CLAIM["parts"][:2]}, {"command": "`make sort`, `tasks`"}, {"command": "`spillway bench sort`"}):
            claim = self.CLAIM | part
            self.assertTrue(self.problems(readme=self.README.replace(check_claims.row_of(self.CLAIM), check_claims.row_of(claim)), claim=claim), part)


class Messages(unittest.TestCase):
    PAGE = """## Else

| `no message` | x |

## What messages mean

| message | because |
|---|---|
| `cannot write to ...: ...; tried again` | the disk |
| `...; using ... instead` | the kernel, and `code` |
| `no room for ...` | memory |
"""
    SOURCE = """
// base::log("a comment") is none
void f() {
  base::log("cannot write to ", name(a, b), ": ", error_of("a (", 1),
            "; tried "
            "again");
  if (x) base::log({.name = "odd_event", .fields = {{"error", 1}, {"at", f(2)}}}, name, ": ", x ? "a" : "b", "; using ", way, " instead");
  base::log({.level = base::LogLevel::kInfo}, "all is well");
  base::log("persist: ", error.message);
  base::log("task ", name, " of worker ", 1, ": ", state);
  end_process(base::Error::of(-f(1), "no ",
                              "room for ", name),
              kFatalStatus);
  end_process(base::Error::of(EINVAL, "before it runs"));
  end_process(error, kFatalStatus);
}
"""

    def unexplained(self, *changes):
        text = self.SOURCE
        for right, wrong in changes:
            self.assertIn(right, text)
            text = text.replace(right, wrong)
        return [message for _, message in check_messages.unexplained(check_messages.messages_on(self.PAGE), text)]

    def test_rows(self):
        messages = check_messages.messages_on(self.PAGE)
        self.assertEqual(messages, ["cannot write to ...: ...; tried again", "...; using ... instead", "no room for ..."])
        self.assertEqual(check_messages.unsaid(messages, self.SOURCE), [])
        [problem] = check_messages.unsaid(messages, self.SOURCE.replace('"; tried "', '"; is tried "'))
        self.assertIn("nothing says '; tried again'", problem)

    def test_what_is_told(self):
        self.assertEqual(self.unexplained(), [])
        for right, wrong, message in (("; tried ", "; is tried ", "cannot write to ...: ...; is tried again"), (" instead", "", "...: ...; using ..."),
                                      ("kInfo", "kError", "all is well"), ("persist: ", "persist: at last: ", "persist: at last: ..."),
                                      ("of worker", "of no worker", "task ... of no worker ...: ..."), ("room for ", "room by ", "no room by ...")):
            self.assertEqual(self.unexplained((right, wrong)), [message], wrong)

    def test_a_call_that_is_not_understood(self):
        with self.assertRaises(AssertionError):
            self.unexplained(("error.message", "c == ';'"))


class Variables(unittest.TestCase):
    OPTIONS = "| `--memory SIZE` | `SPILLWAY_MEMORY` | `0` | memory |\n\n| `SPILLWAY_MINE_...`, `SPILLWAY_KEY` | others |\n"

    def unknown(self, text, pattern):
        return [name for _, name in check_variables.unknown(text, pattern, *check_variables.known(self.OPTIONS))]

    def test_what_code_asks_for(self):
        for call in ('getenv("SPILLWAY_{}")', 'setting("SPILLWAY_{}", 1)', 'os.environ.get("SPILLWAY_{}")', 'os.environ["SPILLWAY_{}"]', '"SPILLWAY_{}" in os.environ'):
            for known in "MEMORY", "MINE_OWN", "KEY":
                self.assertEqual(self.unknown(call.format(known), check_variables.ASKED), [], call)
            for unknown in "MEMORIES", "MINE", "KEY_FILE":
                self.assertEqual(self.unknown(call.format(unknown), check_variables.ASKED), [f"SPILLWAY_{unknown}"], call)

    def test_what_pages_set(self):
        self.assertEqual(self.unknown("SPILLWAY_KEY=1 SPILLWAY_MEMORY=4G x; `SPILLWAY_MEMROY=4G x`, cmake -DSPILLWAY_FUZZ=ON", check_variables.SET), ["SPILLWAY_MEMROY"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
