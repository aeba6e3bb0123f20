"""redis-server under redis-benchmark's load: with all data in memory, and with memory for a quarter of it. For `programs`."""
import os
import pathlib
import random
import subprocess
import time

from limited import MIB, SLACK_BYTES, Contest, Device, check_same, check_stats, limited_row
from lockstep import Failure, Programs, median, row_of, take_turns, take_turns_after_one
from variants import more_ratios

CASE_SECONDS = 12  # of a kind of request
TESTS = ["set", "get", "lpush", "sadd", "hset", "zadd"]
CLIENTS, PIPELINED, KEYS = 20, 16, 100_000
VALUE_BYTES = 900
START_SECONDS, ANSWER_SECONDS = 60, 1200
SERVER = ["--port", 0, "--save", "", "--appendonly", "no", "--enable-debug-command", "yes", "--daemonize", "no"]


def _on_cpu(number):
    """For preexec_fn: server and load each have a CPU, where there are two."""
    cpus = sorted(os.sched_getaffinity(0))
    return lambda: os.sched_setaffinity(0, {cpus[number % len(cpus)]})


class Server:
    def __init__(self, folder, side):
        self.side, self.socket, self.program = side, folder / f"{side}.sock", None
        self.socket.unlink(missing_ok=True)

    def words(self):
        return [*SERVER, "--unixsocket", self.socket]

    def started(self, program):
        self.program = program
        cpus = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(program.process.pid, {cpus[0]})
        deadline = time.monotonic() + START_SECONDS
        while not self.socket.exists() or self.ask("PING", may_fail=True) != "PONG":
            if program.process.poll() is not None or time.monotonic() > deadline:
                raise Failure(f"redis, {self.side}: the server does not answer")
            time.sleep(0.05)

    def ask(self, *words, may_fail=False):
        ended = subprocess.run([str(word) for word in ("redis-cli", "-s", self.socket, *words)], capture_output=True, text=True, timeout=ANSWER_SECONDS)
        if ended.returncode != 0 and not may_fail:
            raise Failure(f"redis, {self.side}: {(ended.stderr or ended.stdout).strip()[-200:]}")
        return ended.stdout.strip()

    def fill(self, commands):
        """Of an iterable of commands, each a list of bytes; none may be refused."""
        load = subprocess.Popen(["redis-cli", "-s", str(self.socket), "--pipe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
        try:
            for words in commands:
                load.stdin.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
            said = load.communicate(timeout=ANSWER_SECONDS)[0].decode()
        except BrokenPipeError:
            said = ""
        finally:
            load.kill()
            load.wait()
        if "errors: 0" not in said:
            raise Failure(f"redis, {self.side}: it could not be filled")

    def load(self, requests, *words):
        """Requests a second, and the server's CPU time for each in microseconds."""
        before = self.cpu_seconds()
        command = ["redis-benchmark", "-s", self.socket, "-c", CLIENTS, "-P", PIPELINED, "-n", requests, "--csv", *words]
        ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=ANSWER_SECONDS, preexec_fn=_on_cpu(1))
        lines = ended.stdout.strip().splitlines()
        if ended.returncode != 0 or len(lines) < 2:
            raise Failure(f"redis, {self.side}: redis-benchmark failed: {(ended.stderr or ended.stdout).strip()[-200:]}")
        return float(lines[-1].split(",")[1].strip('"')), 1e6 * (self.cpu_seconds() - before) / requests

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.program.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.ask("SHUTDOWN", "NOSAVE", may_fail=True)
        self.program.finish()


def _some_of_each():
    """Commands of all kinds, the same each time."""
    for i in range(3000):
        key, word = b"own:%d" % (i % 50), b"%d" % (i * 2654435761 % 1000003)
        yield [b"SET", b"own-key:" + word, word * 20]
        yield [b"LPUSH", b"list-" + key, word]
        yield [b"SADD", b"set-" + key, word]
        yield [b"HSET", b"hash-" + key, word, word * 3]
        yield [b"ZADD", b"sorted-" + key, word, word]


def resident(programs, binaries, requests):
    """A row for each kind of request: all sides alive at the same time."""
    with Programs() as running:
        servers = {}
        for side, binary in binaries.items():
            server = servers[side] = Server(programs.context.folder, side)
            server.started(running.start(programs.command(side, binary, *server.words())))
            server.fill(_some_of_each())
        check_same("redis", {side: server.ask("DEBUG", "DIGEST") for side, server in servers.items()})
        rows = []
        for test in TESTS:
            programs.context.progress(f"redis/{test}")

            def turns(requests, pairs, seconds):
                return take_turns(servers, lambda side: servers[side].load(requests, "-t", test, "-r", KEYS), pairs, seconds)

            turns(requests // 4, 1, 0)
            taken = turns(requests, programs.pairs, CASE_SECONDS)
            rates = {side: [rate for rate, _ in measured] for side, measured in taken.items()}
            cpu = [ours[1] / max(native[1], 0.01) for ours, native in zip(taken["ours"], taken["native"])]
            rows.append(row_of(f"redis/{test}", rates["ours"], rates["native"], "requests/s", cpu_ratio=median(cpu), **more_ratios(rates, "native")))
        # Each of redis-benchmark's pushes is there, and what was there before is as it was.
        check_same("redis", {side: server.ask("LLEN", "mylist") for side, server in servers.items()})
        check_same("redis", {side: server.ask("DEBUG", "DIGEST-VALUE", *[f"{kind}-own:{i}" for kind in ("list", "set", "hash", "sorted") for i in range(50)])
                             for side, server in servers.items()})
        for server in servers.values():
            server.end()
    programs.check("redis")
    return rows


def _records(count):
    chosen = random.Random(3)
    for i in range(count):
        yield [b"SET", b"key:%012d" % i, chosen.randbytes(VALUE_BYTES)]


def limited(programs, binaries, name, cleanup, count):
    """Reads of keys at random, and writes, beside the native server with swap."""
    context = programs.context
    device = Device(context, cleanup, name, 2 * count * (VALUE_BYTES + 120) + 256 * MIB)
    if not device.has_swap:
        return []
    with Programs() as alone:  # what the server takes with nothing in it, and with all
        server = Server(context.folder, "native")
        server.started(alone.start([binaries["native"], *server.words()]))
        plain = server.program.peak_bytes()
        server.fill(_records(count))
        data_bytes = server.program.peak_bytes() - plain
        server.end()
    budget_bytes = data_bytes // 4
    # Buffers of connections come on top of what an empty server takes.
    contest = Contest(context, cleanup, device, budget_bytes + plain + 2 * SLACK_BYTES)
    servers = {}
    try:
        for side in [*programs.ours, "swap"]:
            server = servers[side] = Server(context.folder, side)
            command = [binaries["native"], *server.words()] if side == "swap" else device.run(context, side, budget_bytes, programs.stats(side), [binaries[side], *server.words()])
            server.started(contest.start(side, command, swap=side == "swap"))
            context.progress(f"{name}/redis: filling {side}")
            server.fill(_records(count))
        rows = _limited_rows(programs, name, servers, count)
        check_same(f"{name}/redis", {side: server.ask("DBSIZE") for side, server in servers.items()})
        for server in servers.values():
            server.end()
    except Failure:
        swap = contest.running.get("swap")
        if swap is None or swap.process.poll() is None:
            raise
        programs.notes.append(f"{name}/redis: the kernel killed the server in memory with swap")
        return []
    for side in programs.ours:
        check_stats(f"{name}/redis", programs.stats(side), data_bytes // 2, resident=False)
    return rows


def _limited_rows(programs, name, servers, count):
    rows = []
    for test, words in (("get", ["GET", "key:__rand_int__"]), ("set", ["-t", "set", "-d", VALUE_BYTES])):
        programs.context.progress(f"{name}/redis/{test}")
        costs = take_turns_after_one(servers, lambda side: 1e6 / servers[side].load(count // 20, "-r", count, *words)[0], programs.pairs, CASE_SECONDS)
        rows.append(limited_row(f"{name}/redis/{test}", costs, programs.ours, "us"))
    return rows
