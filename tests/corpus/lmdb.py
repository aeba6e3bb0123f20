#!/usr/bin/env python3
"""LMDB with a writable map (MDB_WRITEMAP), spilled.  lmdb.py BIN WORK [options]

Debian's lmdb is built natively and with spillcc, unmodified:

  1 its own tests, mtest to mtest6, each with MDB_WRITEMAP, do natively and spilled the same (addresses aside)
  2 a writer (lmdb_writer.c) fills a database of several times its budget. What its map keeps resident is looked at from
    outside all the time, and is at most half of the budget, with SLACK, nine times out of ten and when it has stopped
  3 the writer is killed (SIGKILL) at random moments, with commits that reach the disk and without; after each, native
    LMDB finds in the file each transaction that was committed, and nothing of the one that was not
  4 it runs once more to its end, and says how much was taken out of its page tables

Exit status: 0 all that held, 77 the sources are missing, 1 otherwise.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from programs import Corpus  # noqa: E402
from support import CLEAN, Failure, fresh, status_of  # noqa: E402

TESTS = ["mtest", "mtest2", "mtest3", "mtest4", "mtest5", "mtest6"]
SLACK = 8 << 20   # the program's own files, and what it touches faster than it is taken out
ADDRESS = re.compile(rb"0x[0-9a-f]+")
SECONDS = 600


def make(corpus, source, variant, folder):
    """Native programs, or spilled ones."""
    compiler = corpus.compilers("native" if variant == "native" else "O2") / "clang"
    folder.mkdir(parents=True, exist_ok=True)
    library = source / "libraries" / "liblmdb"

    def run(*arguments):
        done = subprocess.run([compiler, "-O2", "-g", "-w", "-pthread", "-I", library, *arguments], cwd=folder, capture_output=True, text=True,
                              env=CLEAN)
        if done.returncode != 0:
            raise Failure(f"{variant}: it does not compile:\n{done.stderr}")

    objects = ["mdb.o", "midl.o"]
    run("-DMDB_DEBUG=1", "-c", library / "mdb.c", library / "midl.c", HERE / "lmdb_wrap.c")   # for a function that mtest6 calls
    for test in TESTS:
        run("-Dtime=fixed_time", "-include", HERE / "lmdb_wrap.h", library / f"{test}.c", *objects, "lmdb_wrap.o",
            "-Wl,--wrap=mdb_env_open", "-o", test)
    run(library / "mdb_stat.c", *objects, "-o", "mdb_stat")
    run(HERE / "lmdb_writer.c", *objects, "-o", "lmdb_writer")
    return folder


def run_test(command, folder):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "testdb").mkdir(parents=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=SECONDS, env=CLEAN)
    return done.returncode, ADDRESS.sub(b"ADDRESS", done.stdout + done.stderr)


def own_tests(native, spilled, prefix, folder):
    for test in TESTS:
        expected = run_test([native / test], folder / "tests")
        found = run_test([*prefix("2M"), spilled / test], folder / "tests")
        if expected[0] != 0:
            raise Failure(f"{test} ends natively with status {expected[0]}: {expected[1][-400:]!r}")
        if found != expected:
            (folder / "native.txt").write_bytes(expected[1])
            (folder / "spilled.txt").write_bytes(found[1])
            raise Failure(f"{test} ends with status {found[0]}; what it says is in {folder}/spilled.txt, and natively in native.txt")
        print(f"{test}: status 0, {len(found[1])} bytes of output as natively", flush=True)


def resident_bytes(process):
    """Of mapped files; None when it is over."""
    try:
        text = pathlib.Path(f"/proc/{process}/status").read_text()
    except OSError:
        return None
    found = re.search(r"^RssFile:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) << 10 if found else None


class Writer:
    """A writer that runs; what it has committed, and what it keeps resident."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=CLEAN)
        first = self.process.stdout.readline()
        if not first:
            raise Failure(f"the writer does not begin: status {self.process.wait()}")
        self.number = int(first)   # of the process: there may be others above it
        self.committed = 0
        self.samples = []
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=self.sample)]
        for thread in self.threads:
            thread.start()

    def read(self):
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.committed = int(line)

    def sample(self):
        while (found := resident_bytes(self.number)) is not None:
            self.samples.append(found)
            time.sleep(0.002)

    def wait_for_little(self, limit_bytes):
        """Once it waits, what it keeps resident becomes little."""
        deadline = time.monotonic() + 60
        while (found := resident_bytes(self.number)) is not None and found > limit_bytes:
            if time.monotonic() > deadline:
                raise Failure(f"{found >> 20} MiB stay resident")
            time.sleep(0.01)

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(timeout=SECONDS)
        for thread in self.threads:
            thread.join()
        return status


def verify(native, database, keys):
    done = subprocess.run([native / "lmdb_writer", "verify", database, str(keys)], capture_output=True, text=True, timeout=SECONDS,
                          env=CLEAN)
    stat = subprocess.run([native / "mdb_stat", "-e", database], capture_output=True, text=True, timeout=SECONDS, env=CLEAN)
    if done.returncode != 0 or stat.returncode != 0:
        raise Failure(f"native LMDB: {done.stderr}{stat.stderr}")
    pages = int(re.search(r"Number of pages used: (\d+)", stat.stdout)[1])
    return int(done.stdout), pages * 4096


def killed_writers(native, writer, options, database):
    chosen = random.Random(options.seed)
    first = last = verify(native, database, options.keys)[0]
    turn = 0
    # On a busy machine the first ones may come to nothing.
    while turn < options.kills or (last == first and turn < 10 * options.kills):
        kind = ["nosync"] if turn % 2 else []
        turn += 1
        running = Writer([*writer, "0", *kind])
        time.sleep(chosen.uniform(0.05, options.seconds))
        os.kill(running.number, signal.SIGKILL)
        status = running.end()
        if status != -signal.SIGKILL:
            raise Failure(f"the writer ends with status {status} before it is killed")
        found, _ = verify(native, database, options.keys)
        committed = max(running.committed, last)
        if not committed <= found <= committed + 1:
            raise Failure(f"{found} transactions are there, and {committed} were committed")
        print(f"killed {'without' if kind else 'with'} sync after {committed - last} transactions: {found} are there, whole; "
              f"at most {max(running.samples, default=0) >> 20} MiB resident", flush=True)
        last = found
    if last == first:
        raise Failure("no writer has committed anything before it was killed")


def filled(native, writer, options, database, stats):
    """Fills the database; returns the statistics."""
    stats.unlink(missing_ok=True)
    first = verify(native, database, options.keys)[0] if (database / "data.mdb").exists() else 0
    limit = (options.memory << 20) // 2 + SLACK
    running = Writer([*writer, str(options.fill), "nosync"])
    try:
        while running.committed < first + options.fill and running.process.poll() is None:
            time.sleep(0.01)
        busy = sorted(running.samples)
        running.wait_for_little(limit)
    finally:
        status = running.end()
    if status != 0:
        raise Failure(f"the writer ends with status {status}")
    found, size = verify(native, database, options.keys)
    if found != running.committed:
        raise Failure(f"{found} transactions are there, and {running.committed} were committed")
    middle, often = busy[len(busy) // 2], busy[len(busy) * 9 // 10]
    counted = json.loads(stats.read_text())["spill"]
    print(f"{found} transactions, {size >> 20} MiB in use, budget {options.memory} MiB: resident {middle >> 20} MiB in the middle, "
          f"{often >> 20} nine times out of ten, {busy[-1] >> 20} at most; {counted['shared_maps_out_bytes'] >> 20} MiB taken out", flush=True)
    if often > limit:
        raise Failure(f"more than {limit >> 20} MiB were resident too often")
    return size, counted


def run(options):
    corpus = Corpus(options.bin.resolve(), options.work.resolve())
    folder = corpus.work / "lmdb"
    source = corpus.fetch("lmdb")
    native, spilled = make(corpus, source, "native", folder / "native"), make(corpus, source, "spilled", folder / "spilled")
    stats = folder / "stats.json"

    def prefix(memory):
        return [corpus.bin / "spillway", "run", "--spill-all", "--memory", memory, "--storage", options.storage, "--stats", stats, "--"]

    own_tests(native, spilled, prefix, folder)
    database = fresh(folder / "database")
    writer = [*prefix(f"{options.memory}M"), spilled / "lmdb_writer", "write", database, str(options.keys)]
    size, _ = filled(native, writer, options, database, stats)
    if size < 3 * (options.memory << 20):
        raise Failure(f"{size} bytes are too few for a budget of {options.memory} MiB")
    killed_writers(native, writer, options, database)
    size, counted = filled(native, writer, options, database, stats)
    if counted["shared_maps"] < 1 or counted["shared_maps_out_bytes"] < 2 * (options.memory << 20):
        raise Failure(f"too little was taken out to prove anything: {counted}")
    shutil.rmtree(database)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--keys", type=int, default=120_000)
    parser.add_argument("--fill", type=int, default=6000, help="transactions before and after the kills")
    parser.add_argument("--memory", type=int, default=32, help="the writer's budget in MiB")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3, help="the longest that a writer runs before it is killed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--storage", default="/var/tmp", help="device")
    return status_of("lmdb", run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
