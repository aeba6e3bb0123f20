#!/usr/bin/env python3
"""Redis with more data than memory, saving while it is written to.  redis_save.py BIN WORK [options]

A redis-server that spillcc built is filled over several connections, answers redis-benchmark, and saves (BGSAVE: a child
of fork writes the snapshot) while transactions go on. A native redis-server loads the dump:

  1 a transaction is in it whole or not at all: it sets a key to its next version, and counts that key in two counters
  2 each value is one that its key had: it says its key and version, and what follows is made from both
  3 after the load has stopped, a second dump has the same digest (DEBUG DIGEST) natively as in the spilled server
  4 the spilled server had more data than its budget, and evicted at least as many pages as the budget has

Exit status: 0 all that held, 77 the sources or a package are missing, 1 otherwise.
"""
import argparse
import json
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from programs import Corpus, read_programs  # noqa: E402
from support import CLEAN, Failure, fresh, status_of  # noqa: E402

COUNTERS = 64
BATCH = 500
OTHER_DATABASE = 9   # what redis-benchmark stores is not what is compared
SEED = 1


def value_of(key, version, size):
    """Says what it belongs to; what follows depends on both, and is not the same at any two offsets."""
    head = b"%d:%d:" % (key, version)
    block = random.Random(key * 1_000_003 + version).randbytes(96)
    return (head + block * (size // len(block) + 1))[:size]


class Connection:
    """RESP2 over a socket, with pipelines."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=600)
        self.file = self.socket.makefile("rb", buffering=1 << 20)

    def ask(self, *commands):
        """The answers to some commands, sent at once. An error is raised."""
        self.socket.sendall(b"".join(self.encode(command) for command in commands))
        return [self.answer() for _ in commands]

    @staticmethod
    def encode(words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)

    def answer(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.answer() for _ in range(int(rest))]
        raise Failure(f"the server answers {line!r}")

    def info(self):
        text = self.ask(["INFO"])[0].decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


class Server:
    def __init__(self, binary, folder, prefix=(), dump=None):
        fresh(folder)
        if dump:
            shutil.copyfile(dump, folder / "dump.rdb")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.dump = folder / "dump.rdb"
        self.log = folder / "log"
        command = [*prefix, binary, "--port", self.port, "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--loglevel", "notice",
                   "--enable-debug-command", "local", "--rdbcompression", "no"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, env=CLEAN)

    def connect(self, seconds=600):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise Failure(f"redis-server ended with status {self.process.returncode}: {self.log}")
            try:
                connection = Connection(self.port)
                connection.ask(["PING"])
                return connection
            except (OSError, Failure):   # not there yet, or still loading
                time.sleep(0.1)
        raise Failure(f"redis-server does not answer: {self.log}")

    def end(self, connection):
        try:
            connection.socket.sendall(b"SHUTDOWN NOSAVE\r\n")
        except OSError:
            pass
        try:
            return self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failure(f"redis-server does not end: {self.log}") from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def in_threads(count, work):
    """work(i) in each of some threads; the first exception goes on here."""
    errors = []

    def guarded(number):
        try:
            work(number)
        except Exception as error:   # raised again below
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def fill(server, keys, size):
    def part(number):
        connection = Connection(server.port)
        mine = range(number, keys, 4)
        for at in range(0, len(mine), BATCH):
            connection.ask(*[["SET", f"key:{key}", value_of(key, 0, size)] for key in mine[at:at + BATCH]])

    in_threads(4, part)


class Load:
    """Transactions until stopped: the versions that each key has had are 0 to versions[key]."""

    def __init__(self, server, keys, size):
        self.server, self.keys, self.size = server, keys, size
        self.versions = {}
        self.count = 0
        self.stopped = threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            connection = Connection(self.server.port)
            chosen = random.Random(SEED)
            while not self.stopped.is_set():
                commands = []
                for _ in range(20):
                    key = chosen.randrange(self.keys)
                    version = self.versions[key] = self.versions.get(key, 0) + 1
                    counter = key % COUNTERS
                    commands += [["MULTI"], ["INCR", f"one:{counter}"], ["SET", f"key:{key}", value_of(key, version, self.size)],
                                 ["INCR", f"two:{counter}"], ["EXEC"]]
                connection.ask(*commands)
                self.count += 20
        except Exception as error:   # told by stop()
            self.error = error

    def stop(self):
        self.stopped.set()
        self.thread.join()
        if self.error:
            raise self.error


def save(connection):
    """Seconds that BGSAVE took, and those that the server did not answer."""
    begin = time.monotonic()
    connection.ask(["BGSAVE"])
    pause = time.monotonic() - begin
    while True:
        info = connection.info()
        if info["rdb_bgsave_in_progress"] == "0":
            break
        time.sleep(0.2)
    if info["rdb_last_bgsave_status"] != "ok":
        raise Failure("BGSAVE failed")
    return time.monotonic() - begin, pause


def check_content(connection, keys, size, versions):
    """Every key has a value that it had; counters agree. Returns how many keys have a later value than their first."""
    ones = connection.ask(*[["GET", f"one:{i}"] for i in range(COUNTERS)])
    twos = connection.ask(*[["GET", f"two:{i}"] for i in range(COUNTERS)])
    if ones != twos:
        raise Failure(f"a transaction is there in part: {ones} and {twos}")
    later = 0
    for at in range(0, keys, BATCH):
        wanted = range(at, min(at + BATCH, keys))
        for key, value in zip(wanted, connection.ask(*[["GET", f"key:{key}"] for key in wanted])):
            named = value.split(b":", 2)[:2] if value else []
            version = int(named[1]) if len(named) == 2 and named[1].isdigit() else -1
            if not 0 <= version <= versions.get(key, 0) or value != value_of(key, version, size):
                raise Failure(f"key:{key} has a value that it never had: {value[:60] if value else value!r}")
            later += version > 0
    counted = sum(int(one or 0) for one in ones)
    if later > counted:
        raise Failure(f"{later} keys were set by {counted} transactions")
    return later, counted


def native_load(binary, folder, dump, keys, size, versions):
    server = Server(binary, folder, dump=dump)
    try:
        connection = server.connect()
        found = check_content(connection, keys, size, versions)
        digest = connection.ask(["DEBUG", "DIGEST"])[0]
        server.end(connection)
        return found, digest
    finally:
        server.kill()


def benchmark(built, server):
    done = subprocess.run([built / "src/redis-benchmark", "-p", str(server.port), "--dbnum", str(OTHER_DATABASE), "-n", "20000", "-P", "16", "-r", "20000", "-d", "100",
                           "-t", "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange,mset", "--csv"],
                          capture_output=True, text=True, env=CLEAN)
    rows = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if done.returncode != 0 or "error" in (done.stdout + done.stderr).lower() or len(rows) < 15:
        raise Failure(f"redis-benchmark ends with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return len(rows) - 1


def run(options):
    program = next(program for program in read_programs() if program.name == "redis")
    corpus = Corpus(options.bin.resolve(), options.work.resolve())
    native, spilled = corpus.build(program, "native"), corpus.build(program, "O2")
    folder = corpus.work / "redis" / "save"
    stats = folder / "stats.json"
    folder.mkdir(parents=True, exist_ok=True)
    stats.unlink(missing_ok=True)
    budget = options.memory << 20
    server = Server(spilled / "src/redis-server", folder / "spilled",
                    [corpus.bin / "spillway", "run", "--memory", str(budget), "--storage", options.storage, "--stats", str(stats), "--"])
    try:
        connection = server.connect()
        begin = time.monotonic()
        fill(server, options.keys, options.size)
        used = int(connection.info()["used_memory"])
        print(f"{options.keys} keys, {used >> 20} MiB in {budget >> 20} MiB: filled in {time.monotonic() - begin:.0f} s", flush=True)
        if used < 2 * budget:
            raise Failure(f"{used} bytes are too few for a budget of {budget}")
        print(f"redis-benchmark: {benchmark(native, server)} tests answered", flush=True)
        connection.ask(["SELECT", OTHER_DATABASE], ["FLUSHDB"], ["SELECT", 0])
        load = Load(server, options.keys, options.size)
        try:
            while load.count < 200 and load.error is None:
                time.sleep(0.05)
            before = load.count
            seconds, pause = save(connection)
            during = load.count - before
        finally:
            load.stop()
        if during < 20:
            raise Failure(f"only {during} transactions went on while it saved")
        shutil.copyfile(server.dump, folder / "under-load.rdb")
        print(f"BGSAVE under load: {seconds:.1f} s, {pause * 1000:.0f} ms of it without an answer, {during} transactions meanwhile", flush=True)
        found, _ = native_load(native / "src/redis-server", folder / "native", folder / "under-load.rdb", options.keys, options.size, load.versions)
        if found[1] >= load.count:
            raise Failure(f"{found[1]} of {load.count} transactions are in a dump that was begun before the last ones")
        print(f"native redis loads it: {options.keys} keys, {found[1]} of {load.count} transactions, {found[0]} keys changed by them", flush=True)
        save(connection)
        digest = connection.ask(["DEBUG", "DIGEST"])[0]
        found, loaded = native_load(native / "src/redis-server", folder / "native", server.dump, options.keys, options.size, load.versions)
        if digest != loaded or found[1] != load.count:
            raise Failure(f"the second dump has digest {loaded} and {found[1]} transactions, the server {digest} and {load.count}")
        print(f"second dump: digest {digest.decode()} natively as in the spilled server", flush=True)
        status = server.end(connection)
        if status != 0:
            raise Failure(f"redis-server ended with status {status}: {server.log}")
    finally:
        server.kill()
    cache = json.loads(stats.read_text())["cache"]
    print(f"{cache['misses']} misses, {cache['evictions']} evictions", flush=True)
    if cache["evictions"] < budget // 4096:
        raise Failure("too little was evicted to prove anything")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--keys", type=int, default=2_000_000)
    parser.add_argument("--size", type=int, default=900, help="bytes of a value")
    parser.add_argument("--memory", type=int, default=512, help="the spilled server's budget in MiB")
    parser.add_argument("--storage", default="/var/tmp", help="device")
    return status_of("redis", run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
