"""The programs of the corpus: what programs.toml says of each, and how it is fetched, built and run, natively or spilled.

In a folder WORK:

  sources/PACKAGE               unpacked, of all programs
  compilers/VARIANT/clang       what its builds call: the native compiler or spillcc. VARIANT: native, O2, O0, lto
  PROGRAM/VARIANT/built         a copy of the first sources, built. build.log beside it, and stamp, the state that it is of
"""
import collections
import dataclasses
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from support import CLEAN, Failure, Skipped  # noqa: E402

FETCH = HERE.parent.parent / "scripts" / "fetch-source.sh"
LEVELS = {"O2": [], "O0": ["-O0"], "lto": ["-flto"]}  # spillcc's flags
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclasses.dataclass
class Program:
    """An entry of programs.toml, whose head says what each key means."""
    name: str
    tier: str
    sources: list
    programs: list
    build: str
    test: str
    results: str
    needs: dict = dataclasses.field(default_factory=dict)
    frames: dict = dataclasses.field(default_factory=dict)
    timeout: int = 600


@dataclasses.dataclass
class Ran:
    """What one run of a program's tests left behind."""
    status: int
    findings: collections.Counter
    tests: int
    cpu_seconds: float
    log: pathlib.Path


def read_programs():
    with open(HERE / "programs.toml", "rb") as file:
        return [Program(**entry) for entry in tomllib.load(file)["program"]]


class Corpus:
    def __init__(self, bin_folder, work, quick=False):
        self.bin = bin_folder
        self.work = work
        self.quick = "1" if quick else ""
        self.jobs = str(os.cpu_count())
        self.sources = work / "sources"

    def fetch_all(self, program):
        """Raises Skipped if its sources or what else it needs are missing."""
        for path, package in program.needs.items():
            if not pathlib.Path(path).exists():
                raise Skipped(f"needs {path} (package {package}); run scripts/install-deps.sh")
        for package in program.sources:
            self.fetch(package)

    def fetch(self, package):
        """The unpacked sources, also as WORK/sources/PACKAGE."""
        done = subprocess.run([FETCH, package, self.sources], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skipped(done.stderr.strip())
        folder = pathlib.Path(done.stdout.strip())
        link = self.sources / package
        if link.is_symlink() and link.resolve() != folder:
            link.unlink()
        try:
            link.symlink_to(folder.name)
        except FileExistsError:
            pass
        return folder

    def compilers(self, variant):
        """Native and spilled programs are built by the same commands: only what `clang` is differs."""
        folder = self.work / "compilers" / variant
        folder.mkdir(parents=True, exist_ok=True)
        for name, native, ours in (("clang", "clang-19", "spillcc"), ("clang++", "clang++-19", "spillc++")):
            real = native if variant == "native" else self.bin / ours
            flags = shlex.join(LEVELS.get(variant, []))
            text = f'#!/bin/sh\nexec {shlex.quote(str(real))} "$@" {flags}\n'
            script = folder / name
            if not script.exists() or script.read_text() != text:
                made = folder / f"{name}-{os.getpid()}"  # others run beside this one
                made.write_text(text)
                made.chmod(0o755)
                made.replace(script)
        # cmake looks for them there; those of another version do not read what -flto writes.
        for tool in ("llvm-ar", "llvm-ranlib"):
            try:
                (folder / tool).symlink_to(f"/usr/bin/{tool}-19")
            except FileExistsError:
                pass
        return folder

    def compiler_digest(self, variant):
        if variant == "native":
            return ""
        digest = hashlib.sha256()
        lib = self.bin.parent / "lib"
        for path in sorted([*lib.glob("libspillway-compiler.so"), *lib.glob("libspillway-hide.so"), *lib.glob("spillway-c++/**/*")]):
            if path.is_file():
                digest.update(path.read_bytes())
        return digest.hexdigest()

    def build(self, program, variant):
        """A copy of the sources, built; only once for each state of the compiler."""
        folder = self.work / program.name / variant
        built = folder / "built"
        stamp = folder / "stamp"
        key = hashlib.sha256(repr((program.build, variant, self.compiler_digest(variant))).encode()).hexdigest()
        if stamp.exists() and stamp.read_text() == key:
            return built
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copytree(self.fetch(program.sources[0]), built, symlinks=True)
        compilers = self.compilers(variant)
        environment = {**CLEAN, "CC": str(compilers / "clang"), "CXX": str(compilers / "clang++"), "JOBS": self.jobs,
                       "SOURCES": str(self.sources)}
        with open(folder / "build.log", "w") as log:
            done = subprocess.run(["bash", "-euxo", "pipefail", "-c", program.build], cwd=built, env=environment, stdout=log, stderr=log,
                                  stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failure(f"{variant}: its build ends with status {done.returncode}: {folder / 'build.log'}")
        stamp.write_text(key)
        return built

    def run(self, program, built, log, prefix, variables):
        """Its tests, to their end: the command `prefix` runs them, and Failure is raised if they take too long."""
        environment = {**CLEAN, "SOURCES": str(self.sources), "LC_ALL": "C", "TERM": "dumb", "QUICK": self.quick,
                       **variables}
        command = [*prefix, "bash", "-euo", "pipefail", "-c", program.test]
        with open(log, "wb") as out:
            child = subprocess.Popen(command, cwd=built, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                     start_new_session=True)
            deadline = time.monotonic() + program.timeout
            while True:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
                if pid != 0:
                    break
                if time.monotonic() > deadline:
                    os.killpg(child.pid, signal.SIGKILL)
                    os.wait4(child.pid, 0)
                    child.returncode = -signal.SIGKILL
                    raise Failure(f"still running after {program.timeout} s: {log}")
                time.sleep(0.05)
            child.returncode = os.waitstatus_to_exitcode(status)
            try:
                os.killpg(child.pid, signal.SIGKILL)   # servers that a failed test left
            except ProcessLookupError:
                pass
        text = COLOUR.sub("", log.read_text(errors="replace").replace("\r", "\n"))
        found = list(re.finditer(program.results, text, re.MULTILINE))
        tests = sum(int(match["count"]) if "count" in match.groupdict() and match["count"] else 1 for match in found)
        findings = collections.Counter(match[0] for match in found)
        return Ran(child.returncode, findings, tests, usage.ru_utime + usage.ru_stime, log)
