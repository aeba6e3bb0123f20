#!/usr/bin/env python3
"""Three servers, each in a network of its own, behind nutcracker and behind a client's own ketama: a node is killed and comes back.

  cluster_test.py SPILLWAY              needs root, for network namespaces

Keys have values that say their version. While clients change and read them, a node is killed; some time later it is started again on its
file. What a client reads is never another key's, nor anything that was not stored; where the proxy leaves keys on their node
(auto_eject_hosts: false) it is what was stored last. Keys are where ketama says, the share of those that are missed is what it says, and a
node that is back has all that it had. docs/cluster.md describes the set-ups.
"""
import bisect
import hashlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import pylibmc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import HANG_SECONDS, SKIPPED, take_paths  # noqa: E402
from served import Connection, Server  # noqa: E402

SPILLWAY, = take_paths(1)
NODES = 3
KEYS = [f"key{number}" for number in range(2_000)]
PORT = 11211
BRIDGE, NETWORK = "spillway-test", "10.213.87"
RETRY_SECONDS = 1.0
LOAD_SECONDS = 1.5
CLIENTS = 4


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def free_address():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()


class Network:
    """A bridge, and a namespace for each node."""

    def __enter__(self):
        self.__exit__()
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for node in range(NODES):
            name = self.name(node)
            ip("netns", "add", name)
            ip("link", "add", f"sp-node{node}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"sp-node{node}", "master", BRIDGE, "up")
            ip("-n", name, "addr", "add", f"{self.host(node)}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for node in range(NODES):
            subprocess.run(["ip", "netns", "del", self.name(node)], capture_output=True)
            subprocess.run(["ip", "link", "del", f"sp-node{node}"], capture_output=True)
        subprocess.run(["ip", "link", "del", BRIDGE], capture_output=True)

    @staticmethod
    def name(node):
        return f"spillway-node{node}"

    @staticmethod
    def host(node):
        return f"{NETWORK}.{2 + node}"


class Ketama:
    """Where nutcracker puts keys, with `hash: md5` and servers of one weight."""
    POINTS = 160

    def __init__(self, names):
        points = []
        for node, name in enumerate(names):
            for number in range(self.POINTS // 4):
                digest = hashlib.md5(f"{name}-{number}".encode()).digest()
                points += [(int.from_bytes(digest[at:at + 4], "little"), node) for at in range(0, 16, 4)]
        self.points = sorted(points)
        self.values = [value for value, _ in self.points]

    def node(self, key):
        value = int.from_bytes(hashlib.md5(key.encode()).digest()[:4], "little")
        return self.points[bisect.bisect_left(self.values, value) % len(self.points)][1]


class Memcache:
    protocol, redis = "memcache", "false"

    def set(self, connection, key, value):
        """None: it may have been stored, or not."""
        connection.say(b"set %s 0 0 %d\r\n%s\r\n" % (key.encode(), len(value), value))
        return self.line(connection) == b"STORED\r\n" or None

    def get(self, connection, key):
        """Its value; b"": there is none; None: there was no answer."""
        connection.say(b"get %s\r\n" % key.encode())
        line = self.line(connection)
        if line == b"END\r\n":
            return b""
        if not line.startswith(b"VALUE "):
            return None
        value = connection.hear(int(line.split()[3]) + 2)[:-2]
        if self.line(connection) != b"END\r\n":
            raise AssertionError(f"no END behind the value of {key}")
        return value

    @staticmethod
    def line(connection):
        line = connection.line()
        if not line:
            raise ConnectionError("it has ended")
        return line


class Resp(Memcache):
    protocol, redis = "resp", "true"

    def set(self, connection, key, value):
        connection.say(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key.encode(), len(value), value))
        return self.line(connection) == b"+OK\r\n" or None

    def get(self, connection, key):
        connection.say(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key.encode()))
        line = self.line(connection)
        if not line.startswith(b"$"):
            return None
        size = int(line[1:])
        return b"" if size < 0 else connection.hear(size + 2)[:-2]


class Nutcracker:
    """Listens at a port of the loopback interface."""

    def __init__(self, folder, speech, ejects):
        self.address, told = free_address(), free_address()
        servers = "".join(f"    - {Network.host(node)}:{PORT}:1 node{node}\n" for node in range(NODES))
        path = pathlib.Path(folder, "nutcracker.yml")
        path.write_text(f"caches:\n  listen: 127.0.0.1:{self.address[1]}\n  redis: {speech.redis}\n  hash: md5\n  distribution: ketama\n"
                        f"  timeout: 2000\n  auto_eject_hosts: {'true' if ejects else 'false'}\n  server_retry_timeout: {int(RETRY_SECONDS * 1000)}\n"
                        f"  server_failure_limit: 1\n  servers:\n{servers}", encoding="ascii")
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

    def end(self):
        self.process.kill()
        self.process.wait()


class Client(threading.Thread):
    """Changes and reads its part of the keys, and knows which versions they may have."""

    def __init__(self, case, number, connect):
        super().__init__()
        self.case, self.connect = case, connect
        self.keys = KEYS[number::CLIENTS]
        self.stored = {key: case.versions[key] for key in self.keys}  # acknowledged last
        self.tried = dict(self.stored)                                # stored perhaps: the newest
        self.turn = 0
        self.wrong, self.stale, self.missed, self.unanswered, self.answered = [], 0, 0, 0, 0
        self.ends = threading.Event()

    def run(self):
        try:
            while not self.ends.is_set():
                try:
                    with self.connect() as connection:
                        while not self.ends.is_set():
                            self.step(connection)
                except ConnectionError:
                    self.unanswered += 1
        except Exception as error:  # of a thread: the test says it
            self.wrong.append(repr(error))

    def step(self, connection):
        self.turn += 1
        key = self.keys[self.turn * 7 % len(self.keys)]
        if self.turn % 3 == 0:
            self.tried[key] += 1
            if self.case.speech.set(connection, key, self.case.value(key, self.tried[key])) is None:
                self.unanswered += 1
            else:
                self.stored[key] = self.tried[key]
            return
        value = self.case.speech.get(connection, key)
        if value is None:
            self.unanswered += 1
        elif value == b"":
            self.missed += 1
        else:
            self.answered += 1
            version = self.case.version(key, value)
            if version is None or version > self.tried[key]:
                self.wrong.append(f"{key} was stored as version {self.stored[key]}, and is {value[:60]!r}")
            elif version < self.stored[key]:
                self.stale += 1


class Cluster(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="spillway-cluster-")
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(Network().__enter__().__exit__)
        self.nodes = [None] * NODES
        self.addCleanup(lambda: [node.__exit__() for node in self.nodes if node])
        self.versions = {}

    @staticmethod
    def value(key, version):
        return f"{key}={version};".encode() * 20

    def version(self, key, value):
        """None: it is no value of the key's."""
        name, _, number = value.partition(b";")[0].partition(b"=")
        return int(number) if number.isdigit() and name == key.encode() and value == self.value(key, int(number)) else None

    def start_node(self, node):
        began = time.monotonic()
        self.nodes[node] = Server(SPILLWAY, "--storage", f"{self.folder.name}/node{node}", "--capacity", "128M", "--cache", "--memory", "64M",
                                  f"--{self.speech.protocol}", f"{Network.host(node)}:{PORT}", before=("ip", "netns", "exec", Network.name(node)))
        return time.monotonic() - began

    def start(self, speech):
        self.speech = speech
        for node in range(NODES):
            self.start_node(node)

    def node_values(self, node):
        """What a node has, asked itself."""
        with Connection((Network.host(node), PORT)) as connection:
            values = {key: self.speech.get(connection, key) for key in KEYS}
        return {key: self.version(key, value) for key, value in values.items() if value}

    def fill(self, connection):
        for key in KEYS:
            self.assertTrue(self.speech.set(connection, key, self.value(key, 1)))
        self.versions = dict.fromkeys(KEYS, 1)

    def kill(self, node):
        self.nodes[node].process.kill()
        self.nodes[node].process.wait()
        self.nodes[node].__exit__()

    def load(self, connect):
        clients = [Client(self, number, connect) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        return clients

    def end_load(self, clients):
        for client in clients:
            client.ends.set()
        for client in clients:
            client.join()
            self.assertEqual(client.wrong, [])
        self.assertGreater(min(client.answered for client in clients), 100)
        return {what: sum(getattr(client, what) for client in clients) for what in ("answered", "stale", "missed", "unanswered")}

    def behind_nutcracker(self, speech, ejects):
        self.start(speech)
        proxy = Nutcracker(self.folder.name, speech, ejects)
        self.addCleanup(proxy.end)
        ketama = Ketama([f"node{node}" for node in range(NODES)])
        victim = 1
        expected = {node: {key for key in KEYS if ketama.node(key) == node} for node in range(NODES)}
        with Connection(proxy.address) as connection:
            self.fill(connection)
            for node in range(NODES):
                self.assertEqual(set(self.node_values(node)), expected[node])
            self.kill(victim)
            # One request is refused before the proxy knows.
            self.speech.get(connection, next(iter(expected[victim])))
            replies = {key: self.speech.get(connection, key) for key in KEYS}
        # Within the retry time, or else the proxy has tried the node again.
        lost = {key for key, value in replies.items() if not value}
        self.assertLessEqual(lost, expected[victim])
        self.assertGreaterEqual(len(lost), len(expected[victim]) - (1 if ejects else 0))
        self.assertEqual({key for key in replies if replies[key] == b""}, lost if ejects else set())
        share = len(lost) / len(KEYS)
        self.assertAlmostEqual(share, len(expected[victim]) / len(KEYS), delta=0.01)
        clients = self.load(lambda: Connection(proxy.address))
        time.sleep(LOAD_SECONDS)
        ready = self.start_node(victim)
        # It has all that it had when it was killed.
        self.assertLessEqual(expected[victim], set(self.node_values(victim)))
        time.sleep(RETRY_SECONDS + LOAD_SECONDS)
        told = self.end_load(clients)
        if not ejects:
            self.assertEqual((told["stale"], told["missed"]), (0, 0))
        with Connection(proxy.address) as connection:
            for client in clients:
                for key in client.keys:
                    version = self.version(key, self.speech.get(connection, key) or b"")
                    self.assertIsNotNone(version, f"{key} is not there, or another's")
                    if not ejects:
                        self.assertGreaterEqual(version, client.stored[key])
        print(f"{speech.protocol}, {'ejecting' if ejects else 'waiting'}: {share:.1%} of keys on the killed node, back after {ready:.2f} s; {told}", flush=True)

    def test_memcache_waiting(self):
        self.behind_nutcracker(Memcache(), False)

    def test_memcache_ejecting(self):
        self.behind_nutcracker(Memcache(), True)

    def test_redis_waiting(self):
        self.behind_nutcracker(Resp(), False)

    def test_redis_ejecting(self):
        self.behind_nutcracker(Resp(), True)

    def test_a_client_with_ketama(self):
        self.start(Memcache())
        client = pylibmc.Client([f"{Network.host(node)}:{PORT}" for node in range(NODES)],
                                behaviors={"ketama": True, "tcp_nodelay": True, "connect_timeout": 2000, "retry_timeout": 1})
        for version in 1, 2:
            for key in KEYS:
                client.set(key, self.value(key, version))
        here = [self.node_values(node) for node in range(NODES)]
        self.assertEqual(sorted(key for values in here for key in values), sorted(KEYS))
        victim = 1

        def found(key):
            try:
                return client.get(key)
            except pylibmc.Error:
                return None

        self.kill(victim)
        lost = [key for key in KEYS if found(key) is None]
        self.assertEqual(sorted(lost), sorted(here[victim]))
        self.start_node(victim)
        deadline = time.monotonic() + HANG_SECONDS
        while found(lost[0]) is None and time.monotonic() < deadline:
            time.sleep(0.1)
        for key in KEYS:
            self.assertEqual(found(key), self.value(key, 2))
        print(f"pylibmc: {len(lost) / len(KEYS):.1%} of keys on the killed node, all there again", flush=True)


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("network namespaces need root")
        sys.exit(SKIPPED)
    unittest.main()
