#!/usr/bin/env python3
"""Static linking, from an installed tree.  static_test.py CMAKE BUILD WORK [unittest arguments]

The runtime and the linker options that spillcc gives must make programs that spill and are right, whatever
else is linked into them.
"""
import functools
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import built_in, fresh, run_in, take_paths  # noqa: E402

CMAKE, (BUILD, WORK) = sys.argv.pop(1), take_paths(2)
SOURCE = pathlib.Path(__file__).resolve().parent
TREE = WORK / "tree"
BIN = TREE / "bin"
run, built = functools.partial(run_in, WORK), functools.partial(built_in, WORK)


def setUpModule():
    fresh(WORK)
    ended = run(CMAKE, "--install", BUILD, "--prefix", TREE)
    if ended.returncode != 0:
        raise AssertionError(ended.stderr)
    built("clang-19", "-O2", "-c", SOURCE / "foreign.c", "-o", "foreign.o")
    built("clang++-19", "-O2", "-c", SOURCE / "foreign_new.cc", "-o", "foreign_new.o")


class Static(unittest.TestCase):
    def spills(self, program, *arguments, expected, evictions=100):
        """`spillway run` has nothing to say of the program, whose output is right although pages come and go."""
        stats = WORK / "stats.json"
        stats.unlink(missing_ok=True)
        ended = run(BIN / "spillway", "run", "--memory", "1M", "--spill-all", "--storage", WORK, "--stats", stats, "--",
                    program, *arguments)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, expected, ""))
        self.assertGreaterEqual(json.loads(stats.read_text())["cache"]["evictions"], evictions)

    def is_static(self, program):
        segments = run("readelf", "-lW", program).stdout
        self.assertIn("LOAD", segments)
        self.assertNotIn("INTERP", segments)

    def test_programs_with_objects_that_spillcc_never_saw(self):
        for name, flags in {"fixed": ["-static"], "pie": ["-static-pie"], "lto": ["-static", "-flto"],
                            "gc": ["-static", "-Wl,--gc-sections", "-ffunction-sections", "-O0", "-s"]}.items():
            with self.subTest(name):
                program = built(BIN / "spillcc", "-O2", *flags, SOURCE / "mixed.c", "foreign.o", "-o", name)
                self.is_static(program)
                self.spills(program, WORK / "file", expected="right\nend 1\n")
                program = built(BIN / "spillc++", "-O2", *flags, SOURCE / "mixed_new.cc", "foreign_new.o", "-o", name + "_new")
                self.is_static(program)
                self.spills(program, expected="right\n")

    def test_operator_new_throws_where_nothing_else_needs_the_library(self):
        program = built(BIN / "spillc++", "-static", SOURCE / "first.cc", "-o", "first")
        self.assertEqual(run(program).returncode, 0)

    def test_shared_libraries_of_the_compiler_may_be_static(self):
        program = built(BIN / "spillc++", "-O2", "-static-libgcc", "-static-libstdc++", SOURCE / "mixed_new.cc",
                        "foreign_new.o", "-o", "half")
        self.spills(program, expected="right\n")

    def test_another_version_does_not_link(self):
        (WORK / "old.c").write_text("extern char __spillway_abi_table_v0;\nvoid* old = &__spillway_abi_table_v0;\n")
        ended = run(BIN / "spillcc", "-static", SOURCE / "mixed.c", "foreign.o", "old.c", "-o", "old")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("undefined symbol: __spillway_abi_table_v0", ended.stderr)

    def test_a_heap_that_spillcc_did_not_compile_does_not_link(self):
        (WORK / "heap.c").write_text("void* malloc(unsigned long n) { return 0; }\nvoid free(void* p) {}\n")
        self.spills(built(BIN / "spillcc", "-w", "-static", SOURCE / "mixed.c", "foreign.o", "heap.c", "-o", "own"), WORK / "file",
                    expected="right\nend 1\n")
        built("clang-19", "-w", "-c", "heap.c", "-o", "heap.o")
        ended = run(BIN / "spillcc", "-w", "-static", SOURCE / "mixed.c", "foreign.o", "heap.o", "-o", "heap")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("duplicate symbol: malloc", ended.stderr)

    def refused(self, *arguments, says):
        ended = run(BIN / "spillcc", *arguments, SOURCE / "mixed.c", "foreign.o", "-o", "refused")
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, r"\Aspillcc: [^\n]{10,300}\n\Z")
        self.assertIn(says, ended.stderr)

    def test_refusals(self):
        self.refused("-static", "-fuse-ld=bfd", says="-static needs lld")
        self.refused("-static", "-fsanitize=address", says="-fsanitize=address")
        [installed] = TREE.rglob("spillway-static.o")
        installed.rename(WORK / "away")
        try:
            self.refused("-static", says="spillway-static.o")
        finally:
            (WORK / "away").rename(installed)

    def test_native_programs_are_named(self):
        program = built("clang-19", "-static", "-O2", "-w", SOURCE / "first.cc", "-x", "c", "/dev/null", "-lstdc++", "-o", "native")
        ended = run(BIN / "spillway", "run", "--", program)
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, r"\Aspillway: '[^\n]*native' is linked statically, [^\n]*\n\Z")

    def test_programs_that_are_cut_or_broken_are_looked_at(self):
        program = built(BIN / "spillc++", "-static", SOURCE / "first.cc", "-o", "whole")
        content = program.read_bytes()
        note = re.search(rb"Spillway\0", content).start()
        for length in (64, 200, note - 12, note - 4, note, note + 5, note + 12):
            (WORK / "cut").write_bytes(content[:length])
            (WORK / "cut").chmod(0o755)
            self.assertIn(run(BIN / "spillway", "run", "--", WORK / "cut").returncode, (2, -11, -9), length)
        for at, word in ((note - 12, b"\xff\xff\xff\xff"), (note - 8, b"\xff\xff\xff\xff"), (note - 12, b"\0\0\0\0")):
            (WORK / "broken").write_bytes(content[:at] + word + content[at + 4:])
            (WORK / "broken").chmod(0o755)
            ended = run(BIN / "spillway", "run", "--", WORK / "broken")
            self.assertEqual(ended.returncode, 2 if at == note - 12 else 0, at)
            self.assertIn("is linked statically" if at == note - 12 else "", ended.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
