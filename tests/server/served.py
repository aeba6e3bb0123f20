"""A server of the `spillway` under test, and plain connections to it: bytes that go there, and what comes back."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, assert_refused  # noqa: E402

READY = re.compile(r"^spillway: serve: (?P<places>.*); (?P<items>\d+) items, ready after (?P<ms>\d+) ms$", re.M)


class Connection:
    """A client of one address: (host, port), or the path of a socket."""

    def __init__(self, address, tls=None):
        """`tls`: a context of module ssl."""
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(HANG_SECONDS)
        try:
            self.socket.connect(address)
            if tls is not None:
                self.socket = tls.wrap_socket(self.socket)
        except OSError:
            self.socket.close()
            raise
        self.left = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def say(self, request):
        self.socket.sendall(request)

    def hear(self, count):
        """So many bytes, or all until the end."""
        while len(self.left) < count:
            some = self.socket.recv(1 << 16)
            if not some:
                break
            self.left += some
        heard, self.left = self.left[:count], self.left[count:]
        return heard

    def hear_some(self, count):
        """Waits until so many bytes are there, which the next call hears."""
        self.left = self.hear(count) + self.left

    def ask(self, request, reply):
        """The request, and whether its reply is this one; what came instead."""
        self.say(request)
        heard = self.hear(len(reply))
        if heard != reply:
            raise AssertionError(f"{request[:200]!r} was answered by {heard[:200]!r}, not by {reply[:200]!r}")

    def line(self):
        text = b""
        while not text.endswith(b"\n"):
            byte = self.hear(1)
            if not byte:
                break
            text += byte
        return text

    def has_ended(self):
        try:
            return self.hear(1) == b""
        except ConnectionResetError:
            return True


def key_of(value):
    """memcached's request that stores this."""
    return b"set key 5 0 %d\r\n%s\r\n" % (len(value), value)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """`spillway serve` with these words, until it is ended; .address, .resp, .metrics, .tls_address and .tls_resp are where it listens."""

    def __init__(self, spillway, *words, environment=None, before=(), **popen):
        """`before`: a command that is given the server's. `popen`: subprocess's own words."""
        self.process = subprocess.Popen([*before, spillway, "serve", *map(str, words)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        env={**CLEAN, **(environment or {})}, text=True, **popen)
        self.said = ""
        self.ready = None
        while self.ready is None:
            line = self.process.stderr.readline()
            self.said += line
            self.ready = READY.search(self.said)
            if not line:
                self.process.wait(HANG_SECONDS)
                raise AssertionError(f"it ended with {self.process.returncode}: {self.said}")
        self.address, self.resp, self.metrics = self._address("memcache"), self._address("RESP"), self._address("metrics")
        self.tls_address, self.tls_resp = self._address("memcache by TLS"), self._address("RESP by TLS")

    def _address(self, name):
        for place in self.ready["places"].split(", "):
            if place.startswith(f"{name} at "):
                text = place.removeprefix(f"{name} at ")
                host, _, port = text.rpartition(":")
                return text if text.startswith(("/", ".")) else (host.strip("[]"), int(port))
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait(HANG_SECONDS)
        self.process.stderr.close()

    def send_signal(self, number=signal.SIGTERM):
        os.kill(self.process.pid, number)

    def wait(self):
        """Its exit status; .said is all that it said then."""
        self.said += self.process.stderr.read()
        return self.process.wait(HANG_SECONDS)

    def end(self, number=signal.SIGTERM):
        self.send_signal(number)
        return self.wait()


def kill(process):
    """`process`: a descriptor. It may have ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(process, signal.SIGKILL)


class Case(unittest.TestCase):
    """A test with a store, which serve() makes the first time."""
    spillway = None  # of who runs the tests

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="spillway-serve-")
        self.addCleanup(self.folder.cleanup)
        self.store = os.path.join(self.folder.name, "store")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def serve(self, *words, capacity="64M", **options):
        """A server of self.store."""
        server = Server(self.spillway, "--storage", self.store, "--capacity", capacity, *words, **options)
        self.addCleanup(server.__exit__)
        return server

    def daemon(self, *words):
        """A server of self.store in the background: its number, and what whoever began it said. It does not outlive the test."""
        pid_file = self.path("pid")
        ended = subprocess.run([self.spillway, "serve", "--storage", self.store, "--capacity", "64M", "-d", "-P", pid_file, *words],
                               capture_output=True, text=True, env=CLEAN, timeout=HANG_SECONDS)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        pid = int(pathlib.Path(pid_file).read_text())
        process = os.pidfd_open(pid)  # it alone, whoever gets its number
        self.addCleanup(os.close, process)
        self.addCleanup(kill, process)
        return pid, ended.stderr

    def connect(self, address, tls=None):
        connection = Connection(address, tls)
        self.addCleanup(connection.close)
        return connection

    def refused(self, *words, says=(), environment=None):
        """It ends with one line that says all these."""
        ended = subprocess.run([self.spillway, "serve", *map(str, words)], capture_output=True, text=True, timeout=HANG_SECONDS,
                               env={**CLEAN, **(environment or {})})
        assert_refused(self, ended, *([says] if isinstance(says, str) else says))
