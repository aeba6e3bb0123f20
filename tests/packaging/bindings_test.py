#!/usr/bin/env python3
"""The wheel and the jar, each used with nothing else of Spillway.  bindings_test.py SOURCE BUILD WORK"""
import pathlib
import shutil
import subprocess
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bindings"))
from installed import check_example, run  # noqa: E402
from support import Failure, Skipped, fresh, status_of, take_paths  # noqa: E402

PYTHON = "/usr/bin/python3"


def made(script, build, ending):
    """What the script makes, after one that it made of another version."""
    (build / "packages").mkdir(exist_ok=True)
    (build / f"packages/spillway-0.0{ending}").touch()
    print(run(script, build), end="")
    found, = (build / "packages").glob("*" + ending)
    return found


def test(source, build, work):
    for program, package in (("mvn", "maven"), ("javac", "default-jdk-headless")):
        if shutil.which(program) is None:
            raise Skipped(f"needs apt-get install {package}")
    if subprocess.run([PYTHON, "-c", "import setuptools, wheel, pip"], capture_output=True).returncode != 0:
        raise Skipped("needs apt-get install python3-pip python3-setuptools python3-wheel")
    fresh(work)
    wheel = made(source / "packaging/make_wheel.sh", build, ".whl")
    run(PYTHON, "-m", "venv", "--without-pip", work / "venv")
    site, = (work / "venv/lib").glob("python*/site-packages")
    run(PYTHON, "-m", "pip", "install", "--no-deps", "--no-index", "--disable-pip-version-check", "--target", site, wheel)
    check_example(work, work / "venv/bin/python3", source / "examples/kv_example.py")

    jar = made(source / "packaging/make_jar.sh", build, ".jar")
    run("javac", "-cp", jar, "-d", work / "classes", source / "examples/KvExample.java")
    check_example(work, "java", "-Xmx256m", "-cp", f"{jar}:{work / 'classes'}", "KvExample")
    for path in (wheel, jar):
        with zipfile.ZipFile(path) as archive:
            for notice in ("LICENSE", "NOTICE"):
                if not any(name.endswith(f"/{notice}") and archive.read(name) == (source / notice).read_bytes() for name in archive.namelist()):
                    raise Failure(f"{path} does not bring {notice} along")
            for name in archive.namelist():
                if bytes(build) + b"/" in archive.read(name):
                    raise Failure(f"{name} in {path} names a folder of the build")


if __name__ == "__main__":
    sys.exit(status_of("bindings_test", test, *take_paths(3)))
