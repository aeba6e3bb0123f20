#!/usr/bin/env python3
"""An installed C library: what it exports and needs, and programs that find it by pkg-config and CMake.

  run_package.py SOURCE BUILD WORK batch|kv|pagecache|persist
"""
import collections
import random
import re
import subprocess
import sys

from installed import check_example, install, run
from support import Failure, fresh, status_of, take_paths

CMAKE_LISTS = """cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(Spillway 0.1 REQUIRED COMPONENTS {name})
find_package(Spillway 0.1 COMPONENTS {other})
if(Spillway_FOUND OR TARGET Spillway::{other})
  message(FATAL_ERROR "{other} is not installed, and found")
endif()
add_executable(user {name}_example.c)
target_link_libraries(user PRIVATE Spillway::{name})
"""


def names_of_others(source):
    """What is called of the persistence runtime besides its API: by code that spillcc -fspill-persist compiled, and by the preload library."""
    compiled = re.findall(r'^SPILLWAY_PERSIST_SYMBOL\(\w+, "(\w+)"', (source / "include" / "spillway" / "abi.inc").read_text(), re.M)
    preload = re.findall(r"\b(__spillway_persist_\w+)\(", (source / "src" / "capi" / "persist" / "entries.h").read_text())
    return set(compiled + preload)


def check_library(library, header, name, more):
    """It exports what the header declares and `more`, and nothing else; it needs the C library, and nothing else."""
    text = re.sub(r"//.*", "", header.read_text())
    declared = set(re.findall(rf"\b(spillway_{name}(?:_\w+)?)\(", text)) | more
    exported = {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--defined-only", library).splitlines()}
    if len(declared) < 15 or declared != exported:
        raise Failure(f"declared and exported differ: {declared ^ exported}")
    dynamic = run("readelf", "-dW", library)
    if f"Library soname: [libspillway_{name}.so.0]" not in dynamic:
        raise Failure(f"the SONAME is not libspillway_{name}.so.0\n{dynamic}")
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    if not needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}:
        raise Failure(f"the library needs {needed}")


def check_header(header, work, name):
    """The header is one of C99, C11 and C++11, and one of C++ of C++17, without a warning."""
    standards = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++20")] if header.suffix == ".h" else [("c++", "c++17"), ("c++", "c++20")]
    for language, standard in standards:
        source = work / f"header.{language}"
        source.write_text(f"#include <spillway/{header.name}>\nint use(void);\nint use(void) {{ return SPILLWAY_{name.upper()}_OK; }}\n")
        run("clang-19", "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
            f"-I{header.parents[1]}", source)


def check_runs(work, program):
    """The batched update table's example counts runs of letters."""
    letters = random.Random(8).choices("ACGT", k=200_000)
    text = "".join(letters[:100_000]) + "GATTACAGATTACA" * 50 + "N" + "".join(letters[100_000:])
    counts = collections.Counter(each for each in (text[i:i + 12] for i in range(len(text) - 11)) if "N" not in each)
    frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:5]
    sequence = work / "sequence"
    sequence.write_text("\n".join(text[i:i + 60] for i in range(0, len(text), 60)))
    printed = run(program, sequence, 5)
    expected = f"{len(counts)} runs\n" + "".join(f"{each} {count}\n" for each, count in frequent)
    if printed != expected:
        raise Failure(f"{program} prints {printed!r}, not {expected!r}")


def check_refusals(work, program, name):
    """What an example says of arguments that it does not take. It has done nothing then."""
    for words in [[], *([[work / "store", "spill", "x" * 56]] if name == "pagecache" else [])]:
        ended = subprocess.run([program, *words], capture_output=True, text=True, timeout=60)
        if ended.returncode != 2 or ended.stdout != "" or f"{name}_example" not in ended.stderr:
            raise Failure(f"{program} {words} ends with {ended.returncode} and prints {ended.stdout!r} and {ended.stderr!r}")


def test(source, build, work, name):
    prefix = fresh(work) / "prefix"
    library_folder = install(build, prefix, name)
    header = prefix / "include" / "spillway" / f"{name}.h"
    library = library_folder / f"libspillway_{name}.so"
    check_library(library, header, name, names_of_others(source) if name == "persist" else set())
    # Threads end through it, and flushers run in it, whatever dlclose() is asked for.
    if ("NODELETE" in run("readelf", "-dW", library)) != (name == "persist"):
        raise Failure(f"{library} may be unloaded, and must not, or the other way round")
    for each in header.parent.iterdir():
        check_header(each, work, name)
    example = source / "examples" / f"{name}_example.c"

    # The package may be moved: its files name no absolute path.
    moved = work / "moved"
    prefix.rename(moved)
    library_folder = moved / library_folder.relative_to(prefix)
    packages = library_folder / "pkgconfig"
    flags = run("pkg-config", "--cflags", "--libs", f"spillway-{name}", PKG_CONFIG_PATH=packages).split()
    run("clang-19", "-std=c11", "-Wall", "-Wextra", "-Werror", example, "-o", work / "by_pkg_config", *flags, f"-Wl,-rpath,{library_folder}")
    check = check_runs if name == "batch" else check_example
    check(work, work / "by_pkg_config")
    check_refusals(work, work / "by_pkg_config", name)

    project = work / "project"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(CMAKE_LISTS.format(name=name, other="kv" if name != "kv" else "pagecache"))
    (project / example.name).write_text(example.read_text())
    run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={moved}", "-DCMAKE_C_COMPILER=clang-19")
    run("cmake", "--build", project / "build")
    check(work, project / "build" / "user")


if __name__ == "__main__":
    sys.exit(status_of("run_package", test, *take_paths(3), sys.argv[1]))
