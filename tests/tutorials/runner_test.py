#!/usr/bin/env python3
"""What run_tutorial.py takes for right, and what it does not.  runner_test.py [unittest arguments]"""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import run_tutorial  # noqa: E402
from run_tutorial import Failure, Shell, blocks_of, follow, says  # noqa: E402
from support import temporary_folder  # noqa: E402


def block(language, text, mark=""):
    return f"Prose.\n\n{f'<!-- {mark} -->{os.linesep}' if mark else ''}```{language}\n{text}\n```\n\n"


class Says(unittest.TestCase):
    def test_lines(self):
        self.assertTrue(says("a\nb\n", "a\nb\n"))
        self.assertTrue(says("a\n", "a"))
        self.assertTrue(says("a\n", "a  \n"))
        self.assertFalse(says("a\n", "a\nb\n"))
        self.assertFalse(says("a\nb\n", "a\n"))
        self.assertFalse(says("a.c\n", "abc\n"))
        self.assertTrue(says("", ""))

    def test_what_varies(self):
        self.assertTrue(says("took ... ms\n", "took 12 ms\n"))
        self.assertFalse(says("took ... ms\n", "took 12\n ms\n"))
        for some in ("", "x\n", "x\ny\n"):
            self.assertTrue(says("a\n...\nb\n", f"a\n{some}b\n"))
        self.assertFalse(says("a\n...\nb\n", "a\nx\n"))
        for some in ("", "a\n"):
            self.assertTrue(says("...\n", some))

    def test_numbers_that_vary(self):
        page = "  pid  program   in use\n   12  orders    8.0 MiB\n"
        for right in (page, "      pid  program        in use\n 12345  orders   10.25 MiB\n", "pid program in use\n1 orders 8 MiB\n"):
            self.assertTrue(says(page, right, True), right)
        for wrong in (page.replace("MiB", "GiB"), page.replace("12", "x"), page.replace("12  ", "12"), page + "\n", page.replace("8.0", "")):
            self.assertFalse(says(page, wrong, True), wrong)
        self.assertFalse(says("took 12 ms\n", "took 13 ms\n"))
        self.assertTrue(says("took 12 ms at ...\n...\n", "took 13 ms at home\nand 1\n", True))


class Follow(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
        self.work = temporary_folder(self)
        self.shell = Shell(self.folder, self.work, dict(os.environ))
        self.addCleanup(self.shell.close)
        self.wait_at_most(0)

    def wait_at_most(self, seconds):
        self.addCleanup(setattr, run_tutorial, "LATE_SECONDS", run_tutorial.LATE_SECONDS)
        run_tutorial.LATE_SECONDS = seconds

    def follow(self, *blocks, **keywords):
        return follow("".join(blocks), self.shell, self.folder, **keywords)

    def test_blocks_share_a_shell(self):
        self.assertEqual(self.follow(block("sh", "name=value; mkdir in; cd in"), block("sh", "echo $name; pwd"), block("text", "value\n.../in")), 2)

    def test_files(self):
        self.follow(block("c", "// a-file.c: of C\nint a;"), block("python", "# b.py\nprint(1)"), block("c", "int without_a_name;"))
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"a-file.c", "b.py"})
        self.assertEqual((self.folder / "b.py").read_text(), "# b.py\nprint(1)\n")

    def test_both_streams_are_compared(self):
        self.follow(block("sh", "echo out; echo error >&2"), block("text", "out\nerror"))
        with self.assertRaisesRegex(Failure, "line 9: .*\nwrong\n"):
            self.follow(block("sh", "echo right"), block("text", "wrong"))

    def test_a_command_that_fails(self):
        with self.assertRaisesRegex(Failure, "a command fails:\necho said; false\ntrue\n(.|\n)*said"):
            self.follow(block("sh", "echo said; false\ntrue"))

    def test_the_background_may_be_late(self):
        self.wait_at_most(60)
        self.follow(block("sh", "(sleep 0.3; echo late) &"), block("text", "late"))

    def test_nothing_is_said_of_the_end_of_what_runs_in_the_background(self):
        self.follow(block("sh", "sleep 100 &"), block("sh", "kill -9 $!"), block("sh", "sleep 0.1; echo after"), block("text", "after"))

    def test_marks(self):
        page = block("sh", "false", "not run: it fails") + block("sh", "echo slow", "slow") + block("sh", "echo quick") + block("text", "quick")
        self.assertEqual(self.follow(page), 1)
        self.assertEqual(self.follow(page, slow=True), 2)
        with self.assertRaisesRegex(Failure, "line 4: 'not rum: x' is no mark"):
            blocks_of(block("sh", "false", "not rum: x"), False)

    def test_text_that_nobody_says(self):
        with self.assertRaisesRegex(Failure, "no commands say this"):
            self.follow(block("text", "alone"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
