#!/usr/bin/env python3
"""Breaks the code on purpose, one breakage at a time, and checks that a test notices.

    ctest -L slow -R mutations                          all of them, as part of the tests
    tests/mutations/check_mutations.py                  the same by hand, in a temporary directory
    tests/mutations/check_mutations.py rescue place     those whose name contains one of the words
    tests/mutations/check_mutations.py --only-apply     only: does every breakage still fit the code?

mutations_<unit>.py lists the breakages of src/<unit>. To add one: name it, give the file, the text to search
(it must occur exactly once) and what replaces it, and the gtest filter of tests that must fail. A breakage
that no test notices is a missing test, or no breakage: then say why in the code and take it out.

The sources are copied; only the libraries up to the unit and its tests are built, incrementally.
"""
import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = ["src/base", "src/sys", "src/storage", "src/cache", "include", "cmake"]
TEST_SECONDS_MAX = 25

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(mutations LANGUAGES C CXX ASM)
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CTest)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_SOURCE_DIR}/cmake)
include(SpillwayUnits)
find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
foreach(unit base sys storage cache)
  add_subdirectory(src/${unit})
endforeach()
"""


def load_table():
    table = []
    for path in sorted(HERE.glob("mutations_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        table += module.MUTATIONS
    names = [m["name"] for m in table]
    assert len(names) == len(set(names)), "two breakages have one name"
    return table


def broken_files(mutation, root):
    """{path: text} after the breakage. Raises ValueError if it does not fit."""
    texts = {}
    for file, search, replacement in mutation["patches"]:
        path = root / file
        text = texts.get(path) or path.read_text()
        if text.count(search) != 1:
            raise ValueError(f"{file}: found {text.count(search)} times: {search.strip().splitlines()[0]}")
        texts[path] = text.replace(search, replacement)
    return texts


class Tree:
    def __init__(self, source, work):
        self.root = work / "tree"
        self.build = work / "build"
        self.output = ""  # of the last test
        for folder in FOLDERS:
            self.copy_newer(source / folder, self.root / folder)
        (self.root / "CMakeLists.txt").write_text(CMAKE)
        command = ["cmake", "-G", "Ninja", "-S", self.root, "-B", self.build, "-DCMAKE_C_COMPILER=clang-19",
                   "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1"]
        if shutil.which("ccache"):
            command.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def copy_newer(self, source, to):
        """Mirrors a folder; what has not changed keeps its time, so that a second run builds little."""
        for path in source.rglob("*"):
            target = to / path.relative_to(source)
            if path.is_dir():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes()
            if not target.exists() or target.read_bytes() != data:
                target.write_bytes(data)
        for path in list(to.rglob("*")):
            if path.is_file() and not (source / path.relative_to(to)).exists():
                path.unlink()

    def compile(self, tests):
        done = subprocess.run(["ninja", "-C", self.build, *tests], capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout

    def run(self, test, gtest_filter):
        """What the tests did: 'passed', 'failed', 'hung', or 'no such test'."""
        command = [self.build / "tests" / test, f"--gtest_filter={gtest_filter}", "--gtest_brief=1"]
        environment = dict(os.environ, SPILLWAY_TEST_SECONDS="2", SPILLWAY_TEST_SEEDS="20")
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                  timeout=TEST_SECONDS_MAX, env=environment)
        except subprocess.TimeoutExpired:
            return "hung"
        self.output = done.stdout
        if "] 0 tests from" in done.stdout:
            return "no such test"
        return "passed" if done.returncode == 0 else "failed"


def check(tree, mutation):
    """None if the breakage was noticed, else what went wrong."""
    test, gtest_filter = mutation["test"]
    originals = {}
    try:
        for path, text in broken_files(mutation, tree.root).items():
            originals[path] = path.read_text()
            path.write_text(text)
        if (output := tree.compile([test])) is not None:
            return "does not compile:\n" + "\n".join(output.splitlines()[-15:])
        result = tree.run(test, gtest_filter)
        return None if result in ("failed", "hung") else f"{test} {gtest_filter}: {result}"
    finally:
        for path, text in originals.items():
            path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--source", type=pathlib.Path, default=HERE.parent.parent)
    parser.add_argument("--work", type=pathlib.Path, help="kept for the next run")
    parser.add_argument("--only-apply", action="store_true")
    options = parser.parse_args()
    table = [m for m in load_table() if not options.words or any(w in m["name"] for w in options.words)]

    failures = []
    for mutation in table:
        try:
            broken_files(mutation, options.source)
        except ValueError as error:
            failures.append(f"{mutation['name']}: does not fit the code any more: {error}")
    if options.only_apply or failures:
        print("\n".join(failures) or f"{len(table)} breakages fit the code")
        return 1 if failures else 0

    with tempfile.TemporaryDirectory(prefix="spillway-mutations-") as temporary:
        work = options.work or pathlib.Path(temporary)
        tree = Tree(options.source, work)
        tests = sorted({m["test"][0] for m in table})
        if (output := tree.compile(tests)) is not None:
            print(output)
            return 1
        for test in tests:
            filters = ":".join(sorted({m["test"][1] for m in table if m["test"][0] == test}))
            if (result := tree.run(test, filters)) != "passed":
                print(f"{tree.output}\n{test}: {result} without any breakage")
                return 1
        for mutation in table:
            begin = time.monotonic()
            problem = check(tree, mutation)
            print(f"{'noticed' if problem is None else 'MISSED '} {time.monotonic() - begin:5.1f} s  {mutation['name']}",
                  flush=True)
            if problem is not None:
                failures.append(f"{mutation['name']}: {problem}")
    print("\n".join(failures) or f"all {len(table)} breakages were noticed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
