#!/usr/bin/env python3
"""Ways to build a program that build systems know.  builds_test.py BIN WORK [unittest arguments]

Each makes a program of two files that spills and is right. Flags for sanitizers are refused (spillcc_test), static linking
has tests of its own (tests/static).
"""
import functools
import json
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import built_in, fresh, run_in, take_paths  # noqa: E402

BIN, WORK = take_paths(2)
SOURCE = pathlib.Path(__file__).resolve().parent
CC, CXX = BIN / "spillcc", BIN / "spillc++"
FILES = ["main.c", "another.c"]
run, built = functools.partial(run_in, WORK), functools.partial(built_in, WORK)


class Builds(unittest.TestCase):
    def setUp(self):
        fresh(WORK)
        for path in SOURCE.glob("*.[ch]"):
            shutil.copy(path, WORK)
        self.expected = run(built("clang-19", "-O1", *FILES, "-o", "native")).stdout

    def made(self, *command):
        ended = run(*command)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), command)

    def spills(self, program):
        stats = WORK / "stats.json"
        stats.unlink(missing_ok=True)
        ended = run(program, memory="1M", storage="memory:64M", stats=stats)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, self.expected, ""))
        self.assertGreaterEqual(json.loads(stats.read_text())["cache"]["evictions"], 2000)

    def test_flags(self):
        # Clang 19 itself warns of what some processors have natively (AVX10).
        for flags in (
            "-O0", "-O1", "-O3 -march=native -Wno-invalid-feature-combination", "-Os", "-Oz", "-O3 -ffast-math", "-g -gsplit-dwarf", "-ftrapv", "-fwrapv",
            "-flto", "-flto=thin", "-fuse-ld=bfd", "-fuse-ld=gold", "-fuse-ld=lld",
            "-fPIC -fno-plt -fno-semantic-interposition", "-no-pie -fno-pie", "-mcmodel=medium", "-mcmodel=large",
            "-save-temps", "-save-temps=obj", "-pipe", "-pg", "-fprofile-instr-generate -fcoverage-mapping", "--coverage",
            "-fstack-protector-strong -D_FORTIFY_SOURCE=2 -fstack-clash-protection -fcf-protection",
            "-ftrivial-auto-var-init=zero", "-finstrument-functions", "-fxray-instrument", "-fno-omit-frame-pointer", "-MMD -MF dependencies",
            "-ffunction-sections -fdata-sections -Wl,--gc-sections", "-Wl,-z,now,-z,relro,--as-needed -Wl,--hash-style=gnu",
            "-x c main.c -x none",
        ):
            with self.subTest(flags):
                files = FILES[1:] if "main.c" in flags else FILES
                self.spills(built(CC, "-O2", *flags.split(), *files, "-o", "program"))
        self.assertIn("another.c", (WORK / "dependencies").read_text())

    def test_steps(self):
        """What is made of each file first, and how, if not by an option alone."""
        for name, option, suffix in (("objects", "-c", ".o"), ("assembly", "-S", ".s"), ("preprocessed", "-E", ".i"),
                                     ("bitcode", "-emit-llvm -c", ".bc"), ("LLVM's assembly", "-emit-llvm -S", ".ll"),
                                     ("objects for the linker to optimise", "-flto -c", ".o")):
            with self.subTest(name):
                between = [path.removesuffix(".c") + suffix for path in FILES]
                for path, made in zip(FILES, between):
                    self.made(CC, "-O2", *option.split(), path, "-o", made)
                self.spills(built(CC, "-O2", *(["-flto"] if "-flto" in option else []), *between, "-o", "program"))

    def test_objects_of_several_files(self):
        self.made(CC, "-O2", "-c", *FILES)
        with self.subTest("linked into one by the compiler"):
            self.made(CC, "-r", "main.o", "another.o", "-o", "both.o")
            self.spills(built(CC, "both.o", "-o", "program"))
        with self.subTest("linked into one by the linker"):
            self.made("ld", "-r", "main.o", "another.o", "-o", "both.o")
            self.spills(built(CC, "both.o", "-o", "program"))
        with self.subTest("linked into one and optimised"):
            self.made(CC, "-O2", "-flto", "-c", *FILES)
            self.made(CC, "-O2", "-flto", "-r", "main.o", "another.o", "-o", "both.o")
            self.assertIn("__spillway_translate", run("nm", "both.o").stdout)
            self.spills(built(CC, "both.o", "-o", "program"))
            self.made(CC, "-O2", "-c", *FILES)
        with self.subTest("an archive"):
            self.made("ar", "rcs", "libanother.a", "another.o")
            self.spills(built(CC, "main.o", "-L.", "-lanother", "-o", "program"))
        with self.subTest("an archive for the linker to optimise"):
            self.made(CC, "-O2", "-flto", "-c", "another.c", "-o", "bitcode.o")
            self.made("llvm-ar-19", "rcs", "libbitcode.a", "bitcode.o")
            self.spills(built(CC, "-O2", "-flto", "main.o", "-L.", "-lbitcode", "-o", "program"))
        with self.subTest("a shared library"):
            self.made(CC, "-O2", "-fPIC", "-shared", "another.c", "-o", "libanother.so")
            self.spills(built(CC, "main.o", "-L.", "-lanother", "-Wl,-rpath,.", "-o", "program"))

    def test_thread_local_variables_of_a_library(self):
        """They lie in a block that the loader allocates, and are accessed where they lie."""
        (WORK / "library.c").write_text(
            "static _Thread_local char own[1 << 20];\nlong touch(void) {\n  long sum = 0;\n"
            "  for (long i = 0; i < (long)sizeof own; i += 4096) sum += ++own[i];\n  return sum;\n}\n")
        (WORK / "opens.c").write_text(
            "#include <dlfcn.h>\n#include <stdio.h>\nint main(void) {\n  void *library = dlopen(\"./library.so\", RTLD_NOW);\n"
            '  long (*touch)(void) = library ? (long (*)(void))dlsym(library, "touch") : 0;\n  if (!touch) return 1;\n'
            '  for (int i = 0; i < 3; ++i) printf("%ld\\n", touch());\n  return 0;\n}\n')
        self.made(CC, "-O1", "-fPIC", "-shared", "library.c", "-o", "library.so")
        stats = WORK / "stats.json"
        ended = run(built(CC, "-O1", "opens.c", "-o", "program"), memory="4M", storage="memory:64M", stats=stats)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "256\n512\n768\n", ""))
        self.assertLess(json.loads(stats.read_text())["spill"]["faults"], 100)

    def test_own_functions_with_names_of_the_librarys(self):
        (WORK / "own.h").write_text("int error(const char *text, int times);\nlong send(long first, long second);\n")
        (WORK / "own.c").write_text('#include <stdio.h>\n#include "own.h"\n'
                                    'int error(const char *text, int times) { return printf("%s %d\\n", text, times); }\n'
                                    "long send(long first, long second) { return first * 10 + second; }\n")
        (WORK / "calls.c").write_text('#include <stdio.h>\n#include "own.h"\nlong (*volatile sends)(long, long) = send;\n'
                                      'int calls(void) { error("own", 3); return printf("%ld %ld\\n", send(4, 2), sends(5, 1)); }\n')
        (WORK / "begin.c").write_text("int calls(void);\nint main(void) { return calls() == 6 ? 0 : 1; }\n")
        for flags in ("-O0", "-O2", "-O2 -fspill-bodies=2", "-O2 -flto", "-O2 -flto=thin", "-O2 -fuse-ld=bfd", "-O2 -fuse-ld=lld"):
            with self.subTest(flags):
                self.prints_own(built(CC, *flags.split(), "begin.c", "calls.c", "own.c", "-o", "program"))
        with self.subTest("in a shared library"):
            self.made(CC, "-O2", "-fPIC", "-shared", "calls.c", "own.c", "-o", "libown.so")
            self.prints_own(built(CC, "-O2", "begin.c", "-L.", "-lown", "-Wl,-rpath,.", "-o", "program"))

    def prints_own(self, program):
        ended = run(program)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "own 3\n42 51\n", ""))

    def test_own_operators_of_cxx(self):
        """Blocks that have the mark of the program's own operators, however they are asked for and given back."""
        (WORK / "own.cc").write_text(
            "#include <cstdlib>\n#include <new>\nstatic volatile long live;  // clang takes new for a function that stores to nothing\nlong blocks() { return live; }\n"
            "void *operator new(std::size_t bytes) {\n  auto *block = static_cast<long *>(std::malloc(bytes + 16));\n"
            "  if (block == nullptr) throw std::bad_alloc();\n  block[0] = 42;\n  live = live + 1;\n  return block + 2;\n}\n"
            "void operator delete(void *pointer) noexcept {\n  if (pointer == nullptr) return;\n  long *block = static_cast<long *>(pointer) - 2;\n"
            "  if (block[0] != 42) std::abort();\n  live = live - 1;\n  std::free(block);\n}\n")
        (WORK / "calls.cc").write_text(
            "#include <cstdio>\n#include <string>\nlong blocks();\nstruct Node { Node *next; long value; };\nNode *volatile list;\n"
            "long *volatile array;\nstd::string *volatile text;\nint main() {\n  const long before = blocks();\n"
            "  for (long i = 0; i < 1000; ++i) list = new Node{list, i};\n  array = new long[500];\n  text = new std::string(1000, 'x');\n"
            '  std::printf("%ld\\n", blocks() - before);\n'
            "  while (Node *first = list) {\n    list = first->next;\n    delete first;\n  }\n  delete[] array;\n  delete text;\n"
            '  std::printf("%ld\\n", blocks() - before);\n  return 0;\n}\n')
        for flags in ("-O0", "-O2", "-O2 -fno-sized-deallocation", "-O2 -fspill-bodies=2", "-O2 -flto", "-O2 -flto=thin", "-O2 -fuse-ld=bfd"):
            for files in (["calls.cc", "own.cc"], ["-include", "own.cc", "calls.cc"]):
                with self.subTest(flags, files=files):
                    ended = run(built(CXX, *flags.split(), *files, "-o", "program"))
                    self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "1003\n0\n", ""))

    def test_own_operators_for_arrays(self):
        """They stay apart from those for single objects where the C++ library's forms, which lead to them, are not linked."""
        (WORK / "own.cc").write_text(
            "#include <cstdlib>\nstatic void *marked(std::size_t bytes, long mark) {\n"
            "  auto *block = static_cast<long *>(std::malloc(bytes + 16));\n  block[0] = mark;\n  return block + 2;\n}\n"
            "static void give_back(void *pointer, long mark) {\n  if (pointer == nullptr) return;\n"
            "  long *block = static_cast<long *>(pointer) - 2;\n  if (block[0] != mark) std::abort();\n  std::free(block);\n}\n"
            "void *operator new(std::size_t bytes) { return marked(bytes, 42); }\nvoid *operator new[](std::size_t bytes) { return marked(bytes, 43); }\n"
            "void operator delete(void *pointer) noexcept { give_back(pointer, 42); }\n"
            "void operator delete[](void *pointer) noexcept { give_back(pointer, 43); }\n")
        (WORK / "calls.cc").write_text(
            "#include <cstdio>\nlong sum;\nstruct Word {\n  long value;\n  ~Word() { sum += value; }\n};\nWord *volatile words;\nWord *volatile word;\n"
            "int main() {\n  words = new Word[100]();\n  words[3].value = 5;\n  delete[] words;\n  word = new Word{7};\n  delete word;\n"
            '  std::printf("%ld\\n", sum);\n  return 0;\n}\n')
        for flags in ("-O2", "-O2 -static-libstdc++"):
            with self.subTest(flags):
                ended = run(built(CXX, *flags.split(), "calls.cc", "own.cc", "-o", "program"))
                self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "12\n", ""))

    def test_own_operator_without_the_library_of_cxx(self):
        """Nothing asks for operators that nobody has."""
        (WORK / "own.cc").write_text(
            "#include <stdio.h>\nstruct Shape {\n  virtual ~Shape() {}\n  virtual int sides() const { return 3; }\n};\nstatic Shape triangle;\n"
            "Shape *volatile shape = &triangle;\nvoid operator delete(void *) noexcept {}\nvoid operator delete(void *, unsigned long) noexcept {}\n"
            'int main() {\n  printf("%d\\n", shape->sides());\n  return 0;\n}\n')
        for flags in ("-O0", "-O2", "-O2 -flto", "-O2 -fuse-ld=bfd"):
            with self.subTest(flags):
                ended = run(built(CXX, *flags.split(), "-fno-exceptions", "-fno-rtti", "-nostdlib++", "own.cc", "-o", "program"))
                self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "3\n", ""))

    def test_a_precompiled_header(self):
        for compiler, language, standard in ((CC, "c", "c17"), (CXX, "c++", "c++20")):
            with self.subTest(language):
                flags = ["-O2", f"-std={standard}"]
                self.made(compiler, *flags, "-x", language + "-header", "table.h", "-o", "table.h.pch")
                for path in FILES:
                    self.made(compiler, *flags, "-x", language, "-include", "table.h", "-c", path)
                self.spills(built(compiler, "main.o", "another.o", "-o", "program"))

    def test_arguments_from_a_file_and_a_program_from_a_pipe(self):
        (WORK / "arguments").write_text("-O2 main.c another.c\n-o 'pro gram'\n")
        self.made(CC, "@arguments")
        self.spills(WORK / "pro gram")
        self.made("sh", "-c", f"{CC} -O2 -x c - -c -o main.o < main.c")
        self.spills(built(CC, "-O2", "main.o", "another.c", "-o", "program"))

    def test_a_module(self):
        (WORK / "another.cppm").write_text('module;\n#include "table.h"\nexport module another;\n'
                                           'export unsigned long another() { return sum_of_another(); }\n')
        (WORK / "user.cc").write_text('#include "table.h"\nimport another;\n#define sum_of_another another\n#include "main.c"\n')
        self.made(CXX, "-std=c++20", "-O2", "--precompile", "another.cppm", "-o", "another.pcm")
        self.made(CXX, "-std=c++20", "-O2", "-c", "another.pcm", "-o", "module.o")
        self.made(CC, "-O2", "-c", "another.c")
        self.spills(built(CXX, "-std=c++20", "-O2", "-fmodule-file=another=another.pcm", "user.cc", "module.o", "another.o", "-o", "program"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
