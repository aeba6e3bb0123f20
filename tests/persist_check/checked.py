"""What the test scripts of this folder share: the programs, compiled, and `spillway persist`."""
import concurrent.futures
import os
import pathlib
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, built_in, fresh, take_paths  # noqa: E402

BUILD, WORK = take_paths(2)
SPILLWAY = BUILD / "bin" / "spillway"
SOURCES = pathlib.Path(__file__).resolve().parent / "programs"
INCLUDE = SOURCES.parents[2] / "include"
POOL = concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))
COMPILERS = {"told": [BUILD / "bin" / "spillcc", "-fno-spill", "-fspill-persist=record"],
             "untold": [BUILD / "bin" / "spillcc", "-fno-spill", "-fspill-persist"],
             "plain": ["clang-19", "-static"]}  # which starts quickly, for recoveries


def compile_all(*programs):
    """WORK/PROGRAM.KIND, of all COMPILERS."""
    fresh(WORK)
    jobs = [POOL.submit(built_in, WORK, *compiler, "-g", "-O0", "-mclwb", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}",
                        SOURCES / f"{program}.c", "-o", f"{program}.{kind}")
            for program in programs for kind, compiler in COMPILERS.items()]
    for job in jobs:
        job.result()


def spillway(*arguments, **more):
    return subprocess.run([SPILLWAY, "persist", *map(str, arguments)], capture_output=True, text=True, timeout=HANG_SECONDS,
                          env=CLEAN | more)


def recovery(program, bug):
    return f"{shlex.quote(str(WORK))}/{program}.plain verify {{}} {{marker}} {bug}"
