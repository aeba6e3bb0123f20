#!/usr/bin/env python3
"""Fails when a file of C or C++ does not stand as `make format` leaves it.

  check_formatting.py CLANG_FORMAT ROOT         names such files of the repository at ROOT, exit status 1
  check_formatting.py CLANG_FORMAT --self-test  checks that they are found in a made-up repository, and no others

Build folders and hidden ones are none of it.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SUFFIXES = {".h", ".hpp", ".cc", ".cpp", ".c"}  # as in the Makefile
BATCH_FILES = 100
BATCHES_AT_ONCE = 2


def sources(root):
    found = []
    for folder, folders, files in os.walk(root):
        if "CMakeCache.txt" in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(folder, name) for name in files if pathlib.Path(name).suffix in SUFFIXES]
    return sorted(found)


def wrong_of(clang_format, files):
    done = subprocess.run([clang_format, "--dry-run", "-Werror", *files], capture_output=True, text=True)
    wrong = list(dict.fromkeys(re.findall(r"^(.+?):\d+:\d+: error: ", done.stderr, re.M)))
    if done.returncode != 0 and not wrong:
        raise RuntimeError(f"{clang_format}: exit status {done.returncode}\n{done.stderr}")
    return wrong


def check(clang_format, root):
    """The files that clang-format would change, relative to `root`."""
    files = sources(root)
    batches = [files[i:i + BATCH_FILES] for i in range(0, len(files), BATCH_FILES)]
    with concurrent.futures.ThreadPoolExecutor(BATCHES_AT_ONCE) as pool:
        wrong = pool.map(lambda batch: wrong_of(clang_format, batch), batches)
        return [os.path.relpath(name, root) for names in wrong for name in names]


def self_test(clang_format):
    good, bad = "int main() { return 0; }\n", "int  main() { return 0; }\n"
    files = {
        ".clang-format": "BasedOnStyle: Google\n",
        "src/good.cc": good,
        "src/good.h": "",
        "src/bad.cc": bad,
        "src/bad.hpp": bad,
        "src/bad.py": bad,
        "tests/deep/bad.c": bad,
        ".hidden/bad.cc": bad,
        "build/CMakeCache.txt": "",
        "build/deep/bad.cc": bad,
    }
    expected = ["src/bad.cc", "src/bad.hpp", "tests/deep/bad.c"]
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = check(clang_format, root)
    if found != expected:
        sys.exit(f"expected {expected}, found {found}")
    print(f"{len(expected)} wrong files found, and no others")


def main():
    if len(sys.argv) != 3:
        print("usage: check_formatting.py CLANG_FORMAT ROOT | --self-test", file=sys.stderr)
        sys.exit(2)
    clang_format, what = sys.argv[1:]
    if what == "--self-test":
        return self_test(clang_format)
    if not pathlib.Path(what, "src").is_dir():
        print(f"check_formatting.py: there is no {what}/src", file=sys.stderr)
        sys.exit(2)
    if len(sources(what)) < 100:  # as where somebody builds in the folder itself, which is then a build folder
        print(f"check_formatting.py: {what} has hardly any files", file=sys.stderr)
        sys.exit(2)
    wrong = check(clang_format, what)
    print("\n".join(f"{name}: not as `make format` leaves it" for name in wrong) or "all files stand as `make format` leaves them")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
