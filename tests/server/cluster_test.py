#!/usr/bin/env python3
"""Three servers, each in a network of its own, behind nutcracker and behind a client's own ketama: a node is killed under load and comes back.

  cluster_test.py SPILLWAY              SPILLWAY_TEST_SECONDS=60 for so much load in each set-up, 3 without
  cluster_test.py SPILLWAY --figures    what nutcracker costs: requests a second and latency, through it and without it

Keys have values that say their version. While clients change and read some, a node is killed; some time later it is started again on its
file. What a client reads is never another key's, nor anything that was not stored; where the proxy leaves keys on their node
(auto_eject_hosts: false) it is what was acknowledged last, or newer. Other keys are stored once, and read once after the kill: missed are those that
ketama puts on the node, each of them. A node that is back has all that it had. docs/cluster.md describes the set-ups.

Networks are namespaces within a namespace of the test's own, which the kernel ends with it. Where none can be made, nodes have addresses of the
loopback interface.
"""
import bisect
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

import pylibmc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import HANG_SECONDS, take_paths  # noqa: E402
from served import Connection, Server, free_port  # noqa: E402

SPILLWAY, = take_paths(1)
SECONDS = float(os.environ.get("SPILLWAY_TEST_SECONDS", "3"))
NODES, VICTIM = 3, 1
LOADED = [f"key{number}" for number in range(2_000)]   # changed and read all the time
STILL = [f"still{number}" for number in range(10_000)]  # stored once
PORT = 11211
RETRY_SECONDS = 0.5
CLIENTS = 4
AT_A_TIME = 50  # requests that are sent together
APART = "SPILLWAY_TEST_APART"  # set: this process has networks of its own


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    """A bridge, and a namespace for each node."""
    apart = APART in os.environ
    first = "10.213.87." if apart else "127.0.0."

    @classmethod
    def make(cls):
        ip("link", "add", "nodes", "type", "bridge")
        ip("addr", "add", f"{cls.first}1/24", "dev", "nodes")
        ip("link", "set", "nodes", "up")
        for node in range(NODES):
            name = f"node{node}"
            ip("netns", "add", name)
            ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", name, "master", "nodes", "up")
            ip("-n", name, "addr", "add", f"{cls.host(node)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    @classmethod
    def host(cls, node):
        return f"{cls.first}{2 + node}"

    @classmethod
    def inside(cls, node):
        """What runs a command on the node."""
        return ("ip", "netns", "exec", f"node{node}") if cls.apart else ()


class Ketama:
    """Where nutcracker with `hash: md5`, and libmemcached with ketama_weighted, put keys among servers of one weight."""
    POINTS = 160

    def __init__(self, names):
        """`names`: of servers, by node."""
        points = []
        for node, name in names.items():
            for number in range(self.POINTS // 4):
                digest = hashlib.md5(f"{name}-{number}".encode()).digest()
                points += [(int.from_bytes(digest[at:at + 4], "little"), node) for at in range(0, 16, 4)]
        self.points = sorted(points)
        self.values = [value for value, _ in self.points]

    def node(self, key):
        value = int.from_bytes(hashlib.md5(key.encode()).digest()[:4], "little")
        return self.points[bisect.bisect_left(self.values, value) % len(self.points)][1]

    def share(self, node):
        """Of the circle."""
        before = [self.values[-1] - (1 << 32), *self.values]
        return sum(value - last for last, (value, owner) in zip(before, self.points) if owner == node) / (1 << 32)


class Lines(Connection):
    """A connection that is read fast."""

    def __init__(self, address):
        super().__init__(address)
        self.stream = self.socket.makefile("rb")

    def close(self):
        self.stream.close()
        super().close()

    def hear(self, count):
        return self.stream.read(count)

    def line(self):
        line = self.stream.readline()
        if not line:
            raise ConnectionError("it has ended")
        return line


class Memcache:
    protocol, redis, connect = "memcache", "false", Lines

    @staticmethod
    def setting(key, value):
        return b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value)

    @staticmethod
    def is_set(connection):
        return connection.line() == b"STORED\r\n"

    @staticmethod
    def getting(key):
        return b"get %s\r\n" % key.encode()

    @staticmethod
    def got(connection):
        line = connection.line()
        if line == b"END\r\n":
            return b""
        if not line.startswith(b"VALUE "):
            return None
        value = connection.hear(int(line.split()[3]) + 2)[:-2]
        if connection.line() != b"END\r\n":
            raise AssertionError(f"no END behind {line}")
        return value

    def set(self, connection, items):
        """Whether each is stored; if not, it may be yet."""
        return self._ask(connection, [self.setting(*item) for item in items], self.is_set)

    def get(self, connection, keys):
        """The value of each; b"": there is none; None: an error."""
        return self._ask(connection, [self.getting(key) for key in keys], self.got)

    @staticmethod
    def _ask(connection, requests, reply):
        replies = []
        for at in range(0, len(requests), AT_A_TIME):
            some = requests[at:at + AT_A_TIME]
            connection.say(b"".join(some))
            replies += [reply(connection) for _ in some]
        return replies


class Resp(Memcache):
    protocol, redis = "resp", "true"

    @staticmethod
    def setting(key, value):
        return b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key.encode(), len(value), value)

    @staticmethod
    def is_set(connection):
        return connection.line() == b"+OK\r\n"

    @staticmethod
    def getting(key):
        return b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key.encode())

    @staticmethod
    def got(connection):
        line = connection.line()
        if not line.startswith(b"$"):
            return None
        size = int(line[1:])
        return b"" if size < 0 else connection.hear(size + 2)[:-2]


class Library:
    """libmemcached, which finds keys' nodes by itself."""

    @staticmethod
    @contextlib.contextmanager
    def connect(hosts):
        yield pylibmc.Client(hosts, behaviors={"ketama_weighted": True, "tcp_nodelay": True, "connect_timeout": 2000, "retry_timeout": 1})

    def set(self, client, items):
        return [bool(self._try(client.set, *item)) for item in items]

    def get(self, client, keys):
        return [self._try(lambda key: client.get(key) or b"", key) for key in keys]

    @staticmethod
    def _try(call, *words):
        try:
            return call(*words)
        except pylibmc.Error:
            return None


class Nutcracker:
    """Listens at a port of the loopback interface."""

    def __init__(self, folder, speech, ejects, timeout_ms=20_000):
        self.address, told = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
        servers = "".join(f"    - {Network.host(node)}:{PORT}:1 node{node}\n" for node in range(NODES))
        path = pathlib.Path(folder, "nutcracker.yml")
        path.write_text(f"caches:\n  listen: 127.0.0.1:{self.address[1]}\n  redis: {speech.redis}\n  hash: md5\n  distribution: ketama\n"
                        f"  timeout: {timeout_ms}\n  auto_eject_hosts: {'true' if ejects else 'false'}\n"
                        f"  server_retry_timeout: {int(RETRY_SECONDS * 1000)}\n  server_failure_limit: 1\n  servers:\n{servers}", encoding="ascii")
        self.process = subprocess.Popen(["nutcracker", "-c", path, "-o", f"{folder}/nutcracker.log", "-p", f"{folder}/nutcracker.pid", "-s",
                                         str(told[1]), "-a", told[0]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + HANG_SECONDS
        while True:
            try:
                Connection(self.address).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.02)

    def cpu_us(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.kill()
        self.process.wait()


def value_of(key, version):
    return f"{key}={version};".encode() * (1 + (zlib.crc32(key.encode()) + 37 * version) % 100)


def version_of(key, value):
    """None: it is no value of the key's."""
    name, _, number = value.partition(b";")[0].partition(b"=")
    return int(number) if number.isdigit() and name == key.encode() and value == value_of(key, int(number)) else None


class Client(threading.Thread):
    """Changes and reads its part of the keys, and knows which versions they may have."""

    def __init__(self, number, front, speech):
        super().__init__(daemon=True)
        self.front, self.speech = front, speech
        self.keys = LOADED[number::CLIENTS]
        self.stored = dict.fromkeys(self.keys, 1)  # acknowledged last
        self.tried = dict(self.stored)             # stored perhaps: the newest
        self.turn = 0
        self.wrong, self.current, self.stale, self.missed, self.errors = [], 0, 0, 0, 0
        self.ends = threading.Event()

    def run(self):
        try:
            while not self.ends.is_set():
                try:
                    with self.speech.connect(self.front) as connection:
                        while not self.ends.is_set():
                            self.step(connection)
                except ConnectionError:
                    self.errors += 1
        except Exception as error:  # of a thread: the test says it
            self.wrong.append(repr(error))

    def step(self, connection):
        self.turn += 1
        key = self.keys[self.turn * 7 % len(self.keys)]
        if self.turn % 3 == 0:
            self.tried[key] += 1
            stored, = self.speech.set(connection, [(key, value_of(key, self.tried[key]))])
            if stored:
                self.stored[key] = self.tried[key]
            else:
                self.errors += 1
            return
        value, = self.speech.get(connection, [key])
        if value is None:
            self.errors += 1
        elif value == b"":
            self.missed += 1
        else:
            self.look(key, value)

    def look(self, key, value):
        version = version_of(key, value)
        if version is None or version > self.tried[key]:
            self.wrong.append(f"{key} was stored as version {self.stored[key]}, and is {value[:60]!r}")
        elif version < self.stored[key]:
            self.stale += 1
        else:
            self.current += 1


class Cluster(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="spillway-cluster-", dir=os.environ.get("TMPDIR", "/var/tmp"))
        self.addCleanup(self.folder.cleanup)
        self.nodes = [None] * NODES
        self.addCleanup(lambda: [node.__exit__() for node in self.nodes if node])

    def start_node(self, node, protocol):
        began = time.monotonic()
        self.nodes[node] = Server(SPILLWAY, "--storage", f"{self.folder.name}/node{node}", "--capacity", "256M", "--cache", "--memory", "64M",
                                  f"--{protocol}", f"{Network.host(node)}:{PORT}", before=Network.inside(node))
        return time.monotonic() - began

    def kill_node(self, node):
        self.nodes[node].process.kill()
        self.nodes[node].__exit__()

    def start(self, speech, front, ketama):
        """`speech`, to what clients connect; of nodes asked by themselves .plain."""
        self.speech, self.front, self.ketama = speech, front, ketama
        self.plain = speech if isinstance(speech, Memcache) else Memcache()
        for node in range(NODES):
            self.start_node(node, self.plain.protocol)

    def nutcracker(self, speech, ejects, **words):
        proxy = Nutcracker(self.folder.name, speech, ejects, **words)
        self.addCleanup(proxy.end)
        self.start(speech, proxy.address, Ketama({node: f"node{node}" for node in range(NODES)}))

    def node_versions(self, node, keys):
        """Of what a node has, asked itself."""
        with Lines((Network.host(node), PORT)) as connection:
            versions = {key: version_of(key, value) for key, value in zip(keys, self.plain.get(connection, keys)) if value}
        self.assertEqual([key for key, version in versions.items() if version is None], [], "these have another's value")
        return versions

    def read(self, keys):
        """What the cluster answers."""
        with self.speech.connect(self.front) as connection:
            return dict(zip(keys, self.speech.get(connection, keys)))

    def of(self, node, keys):
        return {key for key in keys if self.ketama.node(key) == node}

    def fill(self):
        """Each key is where ketama says, and nowhere else."""
        keys = LOADED + STILL
        with self.speech.connect(self.front) as connection:
            self.assertTrue(all(self.speech.set(connection, [(key, value_of(key, 1)) for key in keys])))
        for node in range(NODES):
            self.assertEqual(set(self.node_versions(node, keys)), self.of(node, keys))

    def load(self):
        clients = [Client(number, self.front, self.speech) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        self.addCleanup(lambda: [client.ends.set() for client in clients])
        time.sleep(SECONDS / 3)
        return clients

    def end_load(self, clients):
        for client in clients:
            client.ends.set()
        for client in clients:
            client.join()
            for key, value in self.read(client.keys).items():
                self.assertTrue(value, f"{key} is not there")
                client.look(key, value)
            self.assertEqual(client.wrong, [])
        self.assertGreater(min(client.current for client in clients), 100)
        return {what: sum(getattr(client, what) for client in clients) for what in ("current", "stale", "missed", "errors")}

    def missed_share(self):
        """Of keys that are read once, the victim's are not there, and all others are."""
        lost, expected = [key for key, value in self.read(STILL).items() if not value], self.of(VICTIM, STILL)
        self.assertEqual(set(lost), expected)
        share = self.ketama.share(VICTIM)
        self.assertAlmostEqual(len(lost) / len(STILL), share, delta=0.01)
        return f"{len(lost) / len(STILL):.1%} of keys missed, {share:.1%} of the circle"

    def dies_and_returns(self, ejects=False):
        """Under load."""
        self.fill()
        clients = self.load()
        before = {key: version for client in clients for key, version in list(client.stored.items())}
        self.kill_node(VICTIM)
        missed = self.missed_share()
        time.sleep(SECONDS / 3)
        seconds = self.start_node(VICTIM, self.plain.protocol)
        # It has all that it had when it was killed.
        self.assertEqual(self.node_versions(VICTIM, STILL), dict.fromkeys(self.of(VICTIM, STILL), 1))
        warm = self.node_versions(VICTIM, LOADED)
        for key in self.of(VICTIM, LOADED):
            self.assertGreaterEqual(warm.get(key, 0), before[key], key)
        time.sleep(1 + SECONDS / 3)  # the longest that it is left alone after it is back
        told = self.end_load(clients)
        if not ejects:
            self.assertEqual((told["stale"], told["missed"]), (0, 0))
        print(f"{missed}, all there again after {seconds:.2f} s; gets and errors: {told}", flush=True)

    def dies_again(self):
        """Where keys have been on other nodes once, those have what was stored there then."""
        with self.speech.connect(self.front) as connection:
            self.assertTrue(all(self.speech.set(connection, [(key, value_of(key, 1_000_000)) for key in LOADED])))
        others = {node: self.node_versions(node, LOADED) for node in range(NODES) if node != VICTIM}
        left = Ketama({node: f"node{node}" for node in others})
        self.kill_node(VICTIM)
        mine = self.of(VICTIM, LOADED)
        replies = {key: value for key, value in self.read(LOADED).items() if key in mine}
        for key, value in replies.items():
            if value is not None:  # the request that finds that the node has gone
                self.assertEqual(version_of(key, value) if value else None, others[left.node(key)].get(key), key)
        old = sum(bool(value) for value in replies.values())
        self.assertGreater(old, 0)
        print(f"killed again, {old} of its {len(mine)} keys have a value of its first absence", flush=True)

    def test_memcache_waiting(self):
        self.nutcracker(Memcache(), ejects=False)
        self.dies_and_returns()

    def test_memcache_ejecting(self):
        self.nutcracker(Memcache(), ejects=True)
        self.dies_and_returns(ejects=True)
        self.dies_again()

    def test_redis_waiting(self):
        self.nutcracker(Resp(), ejects=False)
        self.dies_and_returns()

    def test_redis_ejecting(self):
        self.nutcracker(Resp(), ejects=True)
        self.dies_and_returns(ejects=True)
        self.dies_again()

    def test_a_client_with_ketama(self):
        # Of the port that is usual, names have hosts alone.
        hosts = [Network.host(node) for node in range(NODES)]
        self.start(Library(), hosts, Ketama(dict(enumerate(hosts))))
        self.dies_and_returns()

    @unittest.skipUnless(Network.apart, "nodes have no networks of their own")
    def test_network_is_cut(self):
        """What was sent to the node may reach it late, after what was acknowledged since: old, never wrong."""
        self.nutcracker(Memcache(), ejects=False, timeout_ms=300)
        self.fill()
        clients = self.load()
        ip("link", "set", f"node{VICTIM}", "down")
        time.sleep(SECONDS / 3)
        ip("link", "set", f"node{VICTIM}", "up")
        time.sleep(1 + SECONDS / 3)
        told = self.end_load(clients)
        self.assertGreater(told["errors"], 0, "nobody has noticed")
        print(f"the network was cut; gets and errors: {told}", flush=True)


def figures():
    """Of one node that is asked itself, and of the three through nutcracker, in turns: medians."""
    load = SPILLWAY.parent.parent / "libexec/spillway/server-load"
    rounds, keys = 5, 20_000
    print(f"load of the machine {os.getloadavg()[0]:.1f}, {len(os.sched_getaffinity(0))} CPUs; values of 1 KiB, {rounds} rounds of {SECONDS / 3:g} s")
    print("| | requests a second | p50, µs | p99, µs | nutcracker's CPU for a request, µs |\n|---|--:|--:|--:|--:|")

    def ask(address, *words):
        ended = subprocess.run([load, f"{address[0]}:{address[1]}", *words, f"keys={keys}"], capture_output=True, text=True, check=True)
        return json.loads(ended.stdout)

    for speech in Memcache(), Resp():
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/var/tmp")) as folder, contextlib.ExitStack() as ends:
            for node in range(NODES):
                ends.enter_context(Server(SPILLWAY, "--storage", f"{folder}/node{node}", "--capacity", "512M", "--cache", "--memory", "256M",
                                          f"--{speech.protocol}", f"{Network.host(node)}:{PORT}", before=Network.inside(node)))
            proxy = Nutcracker(folder, speech, ejects=False)
            ends.callback(proxy.end)
            ways = {"one node": (Network.host(0), PORT), "nutcracker": proxy.address}
            for address in ways.values():
                ask(address, "fill", f"speech={speech.protocol}")
            for connections in 1, 16:
                for what, sets in ("gets", 0), ("sets", 1):
                    found = {way: [] for way in ways}
                    for _ in range(rounds):
                        for way, address in ways.items():
                            cpu = proxy.cpu_us()
                            told = ask(address, "run", f"speech={speech.protocol}", f"connections={connections}", f"sets={sets}",
                                       f"seconds={SECONDS / 3}")
                            latency = told["latency_ns"]
                            found[way].append((told["per_second"], latency["p50"] / 1e3, latency["p99"] / 1e3, (proxy.cpu_us() - cpu) / told["requests"]))
                    for way, rows in found.items():
                        rate, middle, late, cpu = map(statistics.median, zip(*rows))
                        print(f"| {speech.protocol}, {connections} connection{'s' * (connections > 1)}, {what}, {way} | {rate:,.0f} | "
                              f"{middle:.0f} | {late:.0f} | {f'{cpu:.1f}' if way == 'nutcracker' else ''} |", flush=True)
    print(f"load of the machine {os.getloadavg()[0]:.1f}")


def main():
    apart = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
             "sh", "-c", 'mount -t tmpfs none /run && mkdir /run/netns && ip link set lo up && exec "$@"', "sh"]
    if Network.apart:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first process of a namespace has no other
        Network.make()
    elif subprocess.run([*apart, "ip", "netns", "add", "node0"], capture_output=True).returncode == 0:
        os.execvpe("unshare", [*apart, sys.executable, __file__, str(SPILLWAY), *sys.argv[1:]], {**os.environ, APART: "1"})
    else:
        print(f"no network namespaces here: nodes are at {Network.host(0)} to {Network.host(NODES - 1)}", flush=True)
    if "--figures" in sys.argv:
        figures()
    else:
        unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
