#!/usr/bin/env python3
"""What `programs` does with a program, of a small one; and its load of redis, by Debian's server on both sides.  programs_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import pathlib
import re
import shutil
import unittest

from bench_case import SPILLWAY, Case, run_in

from cases import Cases
import programs
import redis_load

MAKEFILE = """\
program: first.o second.o
\t$(CC) -O2 first.o second.o -o program
first.o: first.c
\t$(CC) -O2 -c first.c -o first.o
second.o: second.c
\t$(CC) -O2 -c second.c
"""
SOURCES = {"Makefile": MAKEFILE, "first.c": "int work(int *n);\nint main(int count, char **words) { return work(&count) == 7 && words ? 1 : 0; }\n",
           "second.c": "int work(int *n) { for (int i = 0; i < 100; ++i) n[0] += i; return *n; }\n"}


class Context:
    """Of a benchmark, as far as it is asked for."""

    def __init__(self, folder):
        self.folder, self.keep, self.storage, self.quick, self.cases, self.pairs = folder, None, folder, True, Cases(), 1
        self.spillway, self.spillcc, self.spillcxx = SPILLWAY, SPILLWAY.with_name("spillcc"), SPILLWAY.with_name("spillc++")
        self.native_cc, self.native_cxx = (shutil.which(name) for name in ("clang-19", "clang++-19"))

    def progress(self, text):
        pass

    def say(self, text):
        pass

    def build(self, what, command, **keywords):
        ended = programs.subprocess.run(command, capture_output=True, text=True, **keywords)
        if ended.returncode != 0:
            raise AssertionError(ended.stderr)


class Small(programs.Built):
    def source(self):
        folder = self.folder / "source"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in SOURCES.items():
            (folder / name).write_text(text)
        return folder


class Programs(Case):
    def setUp(self):
        super().setUp()
        self.context = Context(self.folder)
        self.measured = programs.Programs(self.context)

    def test_a_program_is_built_compiled_in_turns_and_weighed(self):
        programs.RECIPES["small"] = programs.Recipe("small", "make CC=$CC", "program")
        self.addCleanup(programs.RECIPES.pop, "small")
        built = Small(self.context, "small", self.measured.sides)
        self.assertLessEqual({"native", "ours"}, set(built.programs))
        for side, program in built.programs.items():
            self.assertEqual(run_in(self.folder, program).returncode, 0, side)
            # The sources were compiled by the side's own compiler.
            self.assertEqual(b"__spillway_translate" in program.read_bytes(), side != "native", side)
        commands = "".join(path.read_text() for path in (self.folder / "programs/small-native/commands").iterdir())
        self.assertEqual(len(re.findall(r" -c ", commands)), 2)
        # With and without -o; what was built stays as it is.
        self.assertEqual(len(built.largest()), 2)
        objects = [(path, path.stat().st_mtime_ns) for path in (self.folder / "programs/small-native").glob("*.o")]
        compiled, weighed = built.compile_row(2), built.size_row()
        self.assertEqual([(path, path.stat().st_mtime_ns) for path, _ in objects], objects)
        self.assertEqual((compiled["case"], compiled["bodies"], weighed["case"]), ("compile/small", 1, "size/small"))
        self.assertGreater(compiled["ratio"], 0)
        self.assertGreater(weighed["ratio"], 1)
        self.assertTrue(100 < weighed["peer"] < 10000, weighed)

    def test_formulas_are_the_same_each_time(self):
        for name in ("a", "b"):
            programs.write_3sat(self.folder / name, 50, 200, 7)
        text = (self.folder / "a").read_text()
        self.assertEqual(text, (self.folder / "b").read_text())
        header, *clauses = text.splitlines()
        self.assertEqual((header, len(clauses)), ("p cnf 50 200", 200))
        for clause in clauses:
            literals = [int(word) for word in clause.split()]
            self.assertEqual((len({abs(literal) for literal in literals[:3]}), literals[3:]), (3, [0]))

    def test_cases_are_chosen_by_their_beginning(self):
        for only, wanted in (([], True), (["redis"], True), (["redis/set"], True), (["zstd"], False), (["compile/redis"], False)):
            self.context.cases = Cases(only)
            self.assertEqual(self.measured.wanted("redis"), wanted, only)
        self.context.cases = Cases(["compile"])
        self.assertTrue(self.measured.wanted("compile/zstd"))

    def test_summary(self):
        rows = [{"case": "compile/a", "ratio": 1.0, "two_bodies_ratio": 2.0}, {"case": "compile/b", "ratio": 4.0, "two_bodies_ratio": 2.0}, {"case": "disk/redis/get", "ratio": 5.0}]
        summary = programs._summary(rows)
        self.assertEqual((summary["compile_geomean_ratio"], summary["compile_b_ratio"], summary["disk_redis_get_ratio"]), (2, 4, 5))
        self.assertAlmostEqual(summary["compile_two_bodies_geomean_ratio"], 2)

    def test_redis_is_filled_asked_and_compared(self):
        server = shutil.which("redis-server")
        if not server or not shutil.which("redis-benchmark"):
            self.skipTest("redis is not there")
        measured = self.measured
        measured.pairs = 1
        measured.command = lambda side, program, *words: [program, *words]
        measured.check = lambda case: None
        rows = redis_load.resident(measured, {"native": server, "ours": server}, 2000)
        self.assertEqual([row["case"] for row in rows], [f"redis/{test}" for test in redis_load.TESTS])
        self.assertTrue(all(row["ratio"] > 0 and row["unit"] == "requests/s" for row in rows))
        self.assertEqual([path for path in pathlib.Path(self.folder).iterdir() if path.suffix == ".sock"], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
