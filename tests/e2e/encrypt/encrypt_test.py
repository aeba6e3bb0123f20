#!/usr/bin/env python3
"""--encrypt: what a program has spilled cannot be read where it lies.  encrypt_test.py BIN WORK PROGRAM.c [unittest arguments]

The program fills its memory with a planted text. Its storage is a file that stays when it has ended, and is searched for the text:
without --encrypt it is found there.
"""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, HANG_SECONDS, environment, fresh, take_paths, temporary_folder  # noqa: E402

BIN, WORK, SOURCE = take_paths(3)
PLANTED = b"planted where nobody"
KILOBYTES = 16384


def build(name, compiler, *flags):
    subprocess.run([compiler, "-O2", "-w", *flags, SOURCE, "-o", WORK / name], check=True, env=CLEAN)
    return WORK / name


def setUpModule():
    fresh(WORK)


class Encrypt(unittest.TestCase):
    def left_by(self, run):
        """What a run has left in its storage."""
        medium = temporary_folder(self, WORK) / "medium"
        medium.touch()
        ended = run(medium)
        self.assertEqual((ended.returncode, ended.stdout), (0, "whole\n"), ended)
        content = medium.read_bytes()
        self.assertGreater(len(content) - content.count(0), KILOBYTES << 8, "more than a quarter of it was spilled there")
        return content

    def is_encrypted_if_asked_for(self, program, memory):
        for options, is_found in (([], True), (["--encrypt"], False), (["--encrypt=0"], True)):
            def run(medium, options=options):
                return subprocess.run([BIN / "spillway", "run", "--memory", memory, "--spill-all", "--storage", medium, *options, "--",
                                       program, str(KILOBYTES)], env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS)
            self.assertEqual(PLANTED in self.left_by(run), is_found, options)

    def test_a_program(self):
        self.is_encrypted_if_asked_for(build("program", BIN / "spillcc"), "1M")

    def test_a_static_program(self):
        self.is_encrypted_if_asked_for(build("static", BIN / "spillcc", "-static"), "1M")

    def test_a_program_that_spillcc_did_not_compile(self):
        self.is_encrypted_if_asked_for(build("native", "clang-19"), "4M")

    def test_by_the_environment_alone(self):
        program = build("program", BIN / "spillcc")

        def run(medium, **settings):
            variables = environment(memory="1M", spill_all=1, storage=medium, **settings)
            return subprocess.run([program, str(KILOBYTES)], env=variables, capture_output=True, text=True, timeout=HANG_SECONDS)

        self.assertIn(PLANTED, self.left_by(run))
        self.assertNotIn(PLANTED, self.left_by(lambda medium: run(medium, encrypt=1)))

    def test_what_is_wrong_with_a_key_is_said(self):
        program = build("program", BIN / "spillcc")
        medium = temporary_folder(self, WORK) / "medium"
        ended = subprocess.run([program, "1"], env=environment(storage=f"encrypt:key={WORK}/none:[{medium}]"), capture_output=True, text=True,
                               timeout=HANG_SECONDS)
        self.assertEqual((ended.returncode, ended.stdout), (2, ""), ended)
        self.assertRegex(ended.stderr, r"\Aspillway: storage: encrypt: the key [^\n]*/none: no such file[^\n]*\n\Z")
        self.assertFalse(medium.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
