#!/usr/bin/env python3
"""C++ programs beside C++ libraries that spillcc did not compile.  cxx_test.py BIN WORK [unittest arguments]

Both sides work on the same containers, which do not fit in memory, and each keeps its own strings where it should. A library may wait for its
threads where it is opened, and have operators new and delete of its own.
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, environment, fresh, take_paths  # noqa: E402

BIN, WORK = take_paths(2)
SOURCES = pathlib.Path(__file__).resolve().parent


def command(*words):
    return subprocess.run([str(word) for word in words], check=True, env=CLEAN, capture_output=True, text=True).stdout


def setUpModule():
    fresh(WORK)


class Foreign(unittest.TestCase):
    def build(self, name, *flags):
        """The library, the program natively and the program spilled, all of one dialect."""
        library = WORK / name / "libforeign.so"
        library.parent.mkdir()
        dialect = [flag for flag in flags if flag.startswith(("-std=", "-D"))]
        command("clang++-19", *dialect, "-O1", "-fPIC", "-shared", SOURCES / "foreign.cc", "-o", library)
        for compiler, program in (("clang++-19", "native"), (BIN / "spillc++", "spilled")):
            command(compiler, *flags, "-w", SOURCES / "program.cc", library, "-Wl,-rpath," + str(library.parent),
                    "-o", library.parent / program)
        return library.parent

    def check(self, name, *flags):
        folder = self.build(name, *flags)
        native = command(folder / "native")
        stats = folder / "stats.json"
        small = environment(memory="1M", spill_all=1, storage=WORK, stats=stats)
        for variables in [small] + ([{**small, "SPILLWAY_CHAOS": "1"}] if name == "cxx17" else []):
            ended = subprocess.run([folder / "spilled"], env=variables, capture_output=True, text=True, timeout=300)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, native, ""), name)
            self.assertGreater(json.loads(stats.read_text())["cache"]["evictions"], 1000, name)
        return folder / "spilled"

    def test_shared_containers(self):
        for name, *flags in (("cxx17", "-O2"), ("cxx20-O0", "-O0", "-std=c++20"), ("lto", "-O2", "-flto"),
                             ("older-abi", "-O1", "-std=c++14", "-D_GLIBCXX_USE_CXX11_ABI=0")):
            with self.subTest(name):
                program = self.check(name, *flags)
                exported = command("nm", "-D", "-C", "--defined-only", program)
                self.assertNotIn("basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_append", exported)
                self.assertNotIn("vtable for std::__cxx11::basic_stringbuf", exported)
                self.assertNotIn("std::getline<char", exported)
                self.assertNotIn("std::__ostream_insert<char", exported)

    def test_a_constructor_waits_for_a_thread(self):
        library, program = WORK / "libwaiting.so", WORK / "opens"
        command("clang++-19", "-O1", "-fPIC", "-shared", SOURCES / "waiting.cc", "-o", library)
        command(BIN / "spillc++", "-O1", SOURCES / "opens.cc", "-o", program)
        self.assertEqual(command(program, library), "opened\n")

    def test_operators_new_and_delete(self):
        """Those of a library, or of the program, are called by both, whoever compiled them."""
        folder = WORK / "operators"
        folder.mkdir()
        rpath = "-Wl,-rpath," + str(folder)
        command(BIN / "spillc++", "-O1", "-fPIC", "-shared", SOURCES / "operators_beside.cc", "-o", folder / "libbeside.so")
        for compiler in ("clang++-19", BIN / "spillc++"):
            library, object_file = folder / "liboperators.so", folder / "operators.o"
            command(compiler, "-O1", "-fPIC", "-shared", SOURCES / "operators.cc", "-o", library)
            command(compiler, "-O1", "-c", SOURCES / "operators.cc", "-o", object_file)
            for operators in (library, object_file):
                with self.subTest(operators.name, compiler=compiler):
                    command(BIN / "spillc++", "-O1", SOURCES / "operators_user.cc", operators, folder / "libbeside.so", rpath,
                            "-o", folder / "program")
                    self.assertEqual(command(folder / "program"), "42 42 42\n0\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
