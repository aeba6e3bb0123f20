#!/usr/bin/env python3
"""The Java binding: compiled by javac, used with the native library as it is installed.  run_java.py SOURCE BUILD WORK"""
import shutil
import sys

from installed import check_example, install, run
from support import Failure, Skipped, fresh, status_of, take_paths


def test(source, build, work):
    if shutil.which("javac") is None:
        raise Skipped("needs apt-get install default-jdk-headless")
    library_folder = install(build, fresh(work) / "prefix")
    if not (library_folder / "libspillway_kv_jni.so").exists():
        raise Failure("there is a JDK, but libspillway_kv_jni.so was not built")
    classes = work / "classes"
    java = source / "bindings" / "java" / "src"
    run("javac", "-Xlint:all", "-Werror", "-d", classes, *sorted(java.rglob("*.java")), source / "examples" / "KvExample.java")
    start = ["java", "-Xmx256m", f"-Djava.library.path={library_folder}", "-cp", classes]
    printed = run(*start, "-Xcheck:jni", "io.spillway.KvStoreTest")
    if printed != "all calls of KvStore do what they should\n":
        raise Failure(f"the test prints {printed!r}")
    check_example(work, *start, "KvExample")
    # As in a jar that brings its libraries along, which are gone from the temporary folder once they are loaded.
    native, temporary = classes / "io" / "spillway" / "native", work / "temporary"
    for folder in (native, temporary):
        folder.mkdir()
    for name in ("libspillway_kv.so.0", "libspillway_kv_jni.so"):
        shutil.copy(library_folder / name, native)
    check_example(work, "java", "-Xmx256m", f"-Djava.io.tmpdir={temporary}", "-cp", classes, "KvExample")
    if any(temporary.glob("spillway*")):
        raise Failure(f"left behind: {list(temporary.iterdir())}")


if __name__ == "__main__":
    sys.exit(status_of("run_java", test, *take_paths(3)))
