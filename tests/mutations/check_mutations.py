#!/usr/bin/env python3
"""Breaks the code on purpose, one breakage at a time, and checks that a test notices.

    make breakages                                      all of them, for hours; what was built stays in build/breakages
    tests/mutations/check_mutations.py                  the same in a temporary directory
    tests/mutations/check_mutations.py rescue place     those whose name contains one of the words
    tests/mutations/check_mutations.py --only-apply     only: does every breakage still fit the code?
    tests/mutations/check_mutations.py --list           their names and the tests that notice them

mutations_<unit>.py lists the breakages of a unit: {name, test, patches}. A patch is the file, the text to search
(it must occur exactly once) and what replaces it. `test` is what must fail then:

    ("cache_test", "ProtocolTest.*")    a program of the units' tests, and a gtest filter
    ("ctest", "^e2e_crossing$")         tests by name, of the product: compiler, runtime, programs compiled by it

docs/breakages.md says which protocols have which breakages.
A test that hangs has noticed too. A breakage that no test notices is a missing test, or no breakage: then say why
in the code and take it out.

The sources are copied twice, once for each kind of test, and built incrementally; both kinds run side by side.
"""
import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
COPIED = [".dockerignore", "CMakeLists.txt", "CONTRIBUTING.md", "LICENSE", "Makefile", "NOTICE", "README.md", "bindings", "cmake", "docs", "examples", "include", "packaging", "src", "compiler", "tools", "bench", "scripts", "tests"]
# What tests of the product run.
PRODUCT = ["product", "spillway_ir_tree", "pmem_calls"]
PROGRAM_SECONDS_MAX = 15
CTEST_SECONDS_MAX = 120


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


def unknown_names(page, table):
    """Breakages that the page speaks of and that do not exist. Names are emphasised there; … shortens one."""
    names = {m["name"] for m in table}
    said = re.findall(r"(?<!\*)\*([^*|]+)\*(?!\*)", page.read_text()) if page.is_file() else []
    return [f"{page}: there is no breakage '{name}'" for name in said if "…" not in name and name not in names]


def broken_files(mutation, root):
    """{path: text} after the breakage. Raises ValueError if it does not fit."""
    texts = {}
    for file, search, replacement in mutation["patches"]:
        path = root / file
        if not path.is_file():
            raise ValueError(f"{file}: there is no such file")
        text = texts.get(path) or path.read_text()
        if text.count(search) != 1:
            raise ValueError(f"{file}: found {text.count(search)} times: {search.strip().splitlines()[0]}")
        texts[path] = text.replace(search, replacement)
    return texts


class Tree:
    """A copy of the sources, and a build of it. One for each kind of test."""

    def __init__(self, source, work):
        self.root = work / "tree"
        self.build = work / "build"
        self.output = ""  # of the last test
        for name in COPIED:
            self.copy_newer(source / name, self.root / name)
        command = ["cmake", "-G", "Ninja", "-S", self.root, "-B", self.build, "-DCMAKE_C_COMPILER=clang-19",
                   "-DCMAKE_CXX_COMPILER=clang++-19", "-DCMAKE_BUILD_TYPE=None", f"-DCMAKE_CXX_FLAGS={self.FLAGS}"]
        if shutil.which("ccache"):
            command.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def copy_newer(self, source, to):
        """Mirrors a file or folder; what has not changed keeps its time, so that a second run builds little."""
        for path in [source] if source.is_file() else source.rglob("*"):
            target = to / path.relative_to(source) if path != source else to
            if path.is_dir() or "__pycache__" in path.parts:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes()
            if not target.exists() or target.read_bytes() != data:
                target.write_bytes(data)
                shutil.copymode(path, target)
        for path in [] if source.is_file() else list(to.rglob("*")):
            if path.is_file() and not (source / path.relative_to(to)).exists():
                path.unlink()

    def compile(self, mutations):
        """None, or what the compiler said."""
        targets = sorted({target for m in mutations for target in self.targets(m)})
        done = subprocess.run(["ninja", "-C", self.build, *targets], capture_output=True, text=True)
        return None if done.returncode == 0 else done.stdout + done.stderr

    def call(self, command, seconds_max, variables=None):
        """The exit status, None if it had to be stopped."""
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                 env={**os.environ, **(variables or {})}, start_new_session=True)
        try:
            self.output, _ = child.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            self.output, _ = child.communicate()
            return None
        return child.returncode


class ProgramTree(Tree):
    FLAGS = "-O1"

    def targets(self, mutation):
        return [mutation["test"][0]]

    def run(self, mutations):
        """What the tests did: 'passed', 'failed', 'hung', or 'no such test'."""
        for program in sorted({m["test"][0] for m in mutations}):
            filters = ":".join(sorted({m["test"][1] for m in mutations if m["test"][0] == program}))
            status = self.call([self.build / "tests" / program, f"--gtest_filter={filters}", "--gtest_brief=1"],
                               PROGRAM_SECONDS_MAX * (1 if len(mutations) == 1 else 10),
                               {"SPILLWAY_TEST_SECONDS": "2", "SPILLWAY_TEST_SEEDS": "20"})
            if "] 0 tests from" in self.output:
                return "no such test"
            if status != 0:
                return "failed" if status is not None else "hung"
        return "passed"


class ProductTree(Tree):
    FLAGS = "-O1 -DNDEBUG"  # as users have it

    def targets(self, mutation):
        return PRODUCT

    def run(self, mutations):
        pattern = "|".join(sorted({m["test"][1] for m in mutations}))
        alone = len(mutations) == 1
        command = ["ctest", "--test-dir", self.build, "-R", pattern, "--output-on-failure", "--no-tests=error",
                   "--timeout", str(CTEST_SECONDS_MAX)]
        status = self.call(command + (["--stop-on-failure"] if alone else []), CTEST_SECONDS_MAX * (4 if alone else 40))
        if "No tests were found" in self.output:
            return "no such test"
        return "passed" if status == 0 else "hung" if status is None else "failed"


def check(tree, mutation):
    """What became of the breakage ("noticed", "hung", "MISSED"), and what went wrong when it was missed."""
    originals = {}
    try:
        for path, text in broken_files(mutation, tree.root).items():
            originals[path] = path.read_text()
            path.write_text(text)
        if (output := tree.compile([mutation])) is not None:
            return "MISSED", "does not compile:\n" + "\n".join(output.splitlines()[-15:])
        result = tree.run([mutation])
        if result in ("failed", "hung"):
            return {"failed": "noticed", "hung": "hung"}[result], None
        return "MISSED", f"{' '.join(mutation['test'])}: {result}"
    finally:
        for path, text in originals.items():
            path.write_text(text)


def check_all(kind, mutations, source, work, failures):
    tree = kind(source, work)
    if (output := tree.compile(mutations)) is not None:
        failures.append(output)
        return
    if (result := tree.run(mutations)) != "passed":
        failures.append(f"{tree.output}\n{result} without any breakage")
        return
    for mutation in mutations:
        begin = time.monotonic()
        outcome, problem = check(tree, mutation)
        print(f"{outcome:7} {time.monotonic() - begin:5.1f} s  {mutation['name']}", flush=True)
        if problem is not None:
            failures.append(f"{mutation['name']}: {problem}")


def guarded(function, failures, *arguments):
    try:
        function(*arguments, failures)
    except Exception as error:  # a thread must not fail unseen
        failures.append(f"{type(error).__name__}: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--source", type=pathlib.Path, default=HERE.parent.parent)
    parser.add_argument("--work", type=pathlib.Path, help="kept for the next run")
    parser.add_argument("--only-apply", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    table = [m for m in load_table() if not options.words or any(w in m["name"] for w in options.words)]
    if options.list:
        for mutation in table:
            print(f"{mutation['name']}\t{' '.join(mutation['test'])}")
        return 0

    failures = [] if options.words else unknown_names(options.source / "docs/breakages.md", table)
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
        threads = []
        for kind, name in ((ProgramTree, "programs"), (ProductTree, "product")):
            mutations = [m for m in table if (m["test"][0] == "ctest") == (kind is ProductTree)]
            if mutations:
                threads.append(threading.Thread(target=guarded, args=(check_all, failures, kind, mutations, options.source,
                                                                      work / name)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print("\n".join(failures) or f"all {len(table)} breakages were noticed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
