#!/usr/bin/env python3
"""The Python package: built by pip against the installed library, and its own tests.  run_python.py SOURCE BUILD WORK"""
import pathlib
import shutil
import subprocess
import sys

from installed import check_example, install, run
from support import CLEAN, Failure, Skipped, fresh, status_of, take_paths

PYTHON = "/usr/bin/python3"
NEEDS = "import setuptools, wheel, sysconfig, os, pip; assert os.path.exists(sysconfig.get_path('include') + '/Python.h')"


def test(source, build, work):
    if not pathlib.Path(PYTHON).exists() or subprocess.run([PYTHON, "-c", NEEDS], capture_output=True).returncode != 0:
        raise Skipped("needs apt-get install python3-dev python3-pip python3-setuptools python3-wheel")
    prefix = fresh(work) / "prefix"
    install(build, prefix)
    copy = work / "python"  # a build leaves things beside the sources
    shutil.copytree(source / "bindings" / "python", copy)
    # A prefix that is wrong is not made up for by what is installed elsewhere.
    elsewhere = next(prefix.rglob("spillway-kv.pc")).parent
    refused = subprocess.run([PYTHON, "setup.py", "--version"], cwd=copy, capture_output=True, text=True,
                             env={**CLEAN, "PKG_CONFIG_PATH": str(elsewhere), "SPILLWAY_PREFIX": str(work / "nowhere")})
    if refused.returncode == 0 or "set SPILLWAY_PREFIX" not in refused.stderr:
        raise Failure(f"a wrong SPILLWAY_PREFIX is taken: {refused.stdout}{refused.stderr}")
    site = work / "site"
    run(PYTHON, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check", "--target", site,
        copy, SPILLWAY_PREFIX=prefix)
    shutil.rmtree(prefix)  # the package has the library
    tests = subprocess.run([PYTHON, "-m", "unittest", "discover", "-v", copy / "tests"], cwd=work, env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin"},
                           capture_output=True, text=True, timeout=800)
    print(tests.stderr)
    if tests.returncode != 0 or "Ran 0 tests" in tests.stderr:
        raise Failure("the package's tests fail")
    check_example(work, PYTHON, source / "examples" / "kv_example.py", PYTHONPATH=site)


if __name__ == "__main__":
    sys.exit(status_of("run_python", test, *take_paths(3)))
