#!/usr/bin/env python3
"""A server under a load of all protocols at once, and of clients that nobody would want, for as long as SPILLWAY_TEST_SECONDS says (20 without it).

  soak_test.py SPILLWAY

Clients that behave look at every value: it is made of its key and a number, so that one that was never stored, or is another key's, is known. The
others send garbage, half of requests, endless lines, too much at a time, or go away in the middle; connections of both kinds come and go. The server's
cache is small, so that it drops items all the time. At the end everything that was asked for has been answered, and the server has ended by
itself.
"""
import os
import pathlib
import random
import re
import ssl
import struct
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import HANG_SECONDS, take_paths  # noqa: E402
from served import Case, Connection  # noqa: E402

Case.spillway, = take_paths(1)
SECONDS = int(os.environ.get("SPILLWAY_TEST_SECONDS", "20"))
SEED = int(os.environ.get("SPILLWAY_TEST_SEED", "1"))
KEYS = 4_000


def value_of(key, number):
    """So long that some are copied, some sent from where they lie, and some stored in pieces."""
    size = random.Random(f"{key} {number % 8}").choice((0, 10, 100, 1_000, 3_000, 10_000, 60_000, 400_000 if number % 64 == 0 else 500))
    return f"{key}={number};".encode() + b"v" * size


def is_value_of(key, value):
    told = re.match(rb"(\w+)=(\d+);", value)
    return bool(told) and told[1].decode() == key and value == value_of(key, int(told[2]))


class Client:
    """One that behaves: a connection, and what it does there."""

    def __init__(self, load, seed):
        self.load, self.random = load, random.Random(seed)

    def key(self):
        return f"key{int(KEYS * self.random.random() ** 2)}"

    def check(self, key, value):
        if value is None:
            return
        if not is_value_of(key, value):
            raise AssertionError(f"{key} has {value[:100]!r}")
        self.load.found += 1

    def turn(self, connection):
        raise NotImplementedError

    def run(self, connect):
        while not self.load.ends():
            with connect() as connection:
                for _ in range(self.random.randrange(1, 400)):
                    self.turn(connection)
                    self.load.count += 1
                    if self.load.ends():
                        break


class Text(Client):
    def turn(self, connection):
        keys = [self.key() for _ in range(self.random.choice((1, 1, 1, 20)))]
        what = self.random.random()
        if what < 0.35:
            values = [value_of(key, self.random.randrange(1 << 30)) for key in keys]
            connection.say(b"".join(b"set %s 0 %d %d\r\n%s\r\n" % (key.encode(), self.random.choice((0, 0, 1, 500)), len(value), value)
                                    for key, value in zip(keys, values)))
            for _ in keys:
                self.expect(connection.line(), b"STORED")
        elif what < 0.40:
            connection.say(b"delete %s\r\n" % keys[0].encode())
            self.expect(connection.line(), b"DELETED", b"NOT_FOUND")
        elif what < 0.45:
            connection.say(b"mg %s v t f T100\r\n" % keys[0].encode())
            head = connection.line()
            if not head.startswith(b"EN"):
                self.check(keys[0], connection.hear(int(head.split()[1]) + 2)[:-2])
        elif what < 0.47:
            connection.say(b"touch %s 100\r\n" % keys[0].encode())
            self.expect(connection.line(), b"TOUCHED", b"NOT_FOUND")
        elif what < 0.50:
            connection.say(b"incr number%d 1\r\nadd number%d 0 0 1\r\n0\r\n" % (len(keys), len(keys)))
            connection.line(), connection.line()
        else:
            connection.say(b"get " + b" ".join(key.encode() for key in keys) + b"\r\n")
            for head in iter(connection.line, b"END\r\n"):
                _, key, _, size = head.split()
                self.check(key.decode(), connection.hear(int(size) + 2)[:-2])

    @staticmethod
    def expect(line, *known):
        if not line.strip().startswith(known):
            raise AssertionError(f"{line!r} came, not {known}")


class Binary(Client):
    def turn(self, connection):
        key = self.key().encode()
        if self.random.random() < 0.4:
            value = value_of(key.decode(), self.random.randrange(1 << 30))
            connection.say(struct.pack(">BBHBBHIIQII", 0x80, 1, len(key), 8, 0, 0, 8 + len(key) + len(value), 7, 0, 0, 0) + key + value)
        else:
            connection.say(struct.pack(">BBHBBHIIQ", 0x80, 0, len(key), 0, 0, 0, len(key), 7, 0) + key)
        head = connection.hear(24)
        status, size = struct.unpack(">HI", head[6:12])
        body = connection.hear(size)
        if head[1] == 0 and status == 0:
            self.check(key.decode(), body[4:])
        elif status not in (0, 1):
            raise AssertionError(f"status {status}")


class Resp(Client):
    def reply(self, connection):
        line = connection.line()
        if line[:1] == b"$":
            size = int(line[1:])
            return None if size < 0 else connection.hear(size + 2)[:-2]
        if line[:1] == b"*":
            return [self.reply(connection) for _ in range(int(line[1:]))]
        if line[:1] == b"-":
            raise AssertionError(f"{line!r}")
        return line[1:-2]

    def ask(self, connection, *words):
        connection.say(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.reply(connection)

    def transact(self, connection, keys):
        key, value = keys[0].encode(), value_of(keys[0], self.random.randrange(1 << 30))
        if self.random.random() < 0.5:
            self.ask(connection, b"WATCH", key)
        for words in ((b"MULTI",), (b"MGET", *(each.encode() for each in keys)), (b"SET", key, value), (b"GET", key)):
            self.ask(connection, *words)
        answers = self.ask(connection, b"EXEC")
        if not answers:
            return  # somebody has changed what it watches
        for each, found in zip(keys, answers[0]):
            self.check(each, found)
        if answers[2] != value:
            raise AssertionError(f"{keys[0]} is not what the same transaction has set, but {answers[2] and answers[2][:100]!r}")

    def turn(self, connection):
        keys = [self.key() for _ in range(10)]
        key, what = keys[0].encode(), self.random.random()
        if what < 0.35:
            value = value_of(keys[0], self.random.randrange(1 << 30))
            self.ask(connection, b"SET", key, value, *self.random.choice(((), (b"EX", b"100"), (b"PX", b"50"))))
        elif what < 0.40:
            self.ask(connection, b"DEL", key)
        elif what < 0.45:
            self.ask(connection, b"EXPIRE", key, b"100")
        elif what < 0.46:
            self.ask(connection, b"SCAN", b"0", b"COUNT", b"50")
        elif what < 0.60:
            for each, value in zip(keys, self.ask(connection, b"MGET", *(each.encode() for each in keys))):
                self.check(each, value)
        elif what < 0.65:
            self.transact(connection, keys)
        else:
            self.check(keys[0], self.ask(connection, b"GET", key))


class Unwanted(Client):
    """Whatever becomes of it is its own."""

    def turn(self, connection):
        connection.socket.settimeout(2)
        try:
            what = self.random.randrange(7)
            if what == 0:
                connection.say(self.random.randbytes(self.random.randrange(1, 5_000)))
            elif what == 1:
                connection.say(b"set key 0 0 1000\r\nhalf")
            elif what == 2:
                connection.say(b"get " + b"k" * 300_000)
            elif what == 3:
                connection.say(b"*2\r\n$3\r\nGET\r\n$1000000000\r\n")
            elif what == 4:
                connection.say(struct.pack(">BBHBBHIIQ", 0x80, self.random.randrange(256), 60_000, 255, 0, 0, 1 << 31, 0, 0))
            elif what == 5:
                connection.say(b"get key0 key1 key2\r\n" * 2_000)  # and takes none of it
            else:
                for byte in b"get key0\r\n":
                    connection.say(bytes((byte,)))
                    time.sleep(0.01)
            if self.random.random() < 0.3:
                connection.hear(100)
        except OSError:
            pass

    def run(self, connect):
        while not self.load.ends():
            try:
                with connect() as connection:
                    self.turn(connection)
            except OSError:  # a handshake that was cut short, a connection too many
                pass


class Load:
    def __init__(self):
        self.until = time.monotonic() + SECONDS
        self.failed = []
        self.count = self.found = 0  # requests, and values that came, about

    def ends(self):
        return time.monotonic() > self.until or bool(self.failed)

    def start(self, client, connect):
        def run():
            try:
                client.run(connect)
            except Exception as error:  # of a thread: the test says it
                self.failed.append(f"{type(client).__name__}: {error!r}")

        thread = threading.Thread(target=run)
        thread.start()
        return thread


class Soak(Case):
    def test_mixed_load(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=soak",
                        "-keyout", self.path("key"), "-out", self.path("certificate")], check=True, capture_output=True)
        context = ssl.create_default_context(cafile=self.path("certificate"))
        context.check_hostname = False
        server = self.serve("--cache", "--memcache", "0", "--resp", "0", "--memcache", "tls:0", "--resp", "tls:0", "--metrics", "0", "--memory", "64M",
                            "--threads", "2", "--tls-cert", self.path("certificate"), "--tls-key", self.path("key"),
                            capacity="256M")
        says = []
        listens = threading.Thread(target=lambda: says.extend(server.process.stderr))
        listens.start()
        plain, secure = (lambda: Connection(server.address)), (lambda: Connection(server.tls_address, context))
        resp, secure_resp = (lambda: Connection(server.resp)), (lambda: Connection(server.tls_resp, context))
        load = Load()
        threads = [load.start(kind(load, f"{SEED} {number}"), connect) for number, (kind, connect) in enumerate(
            ((Text, plain), (Text, plain), (Text, secure), (Binary, plain), (Binary, secure), (Resp, resp), (Resp, resp), (Resp, secure_resp),
             (Unwanted, plain), (Unwanted, resp), (Unwanted, secure), (Unwanted, lambda: Connection(server.tls_address))))]
        turn, began = 0, time.monotonic()
        while not load.ends():
            with Connection(server.address) as watcher, urllib.request.urlopen("http://{}:{}/metrics".format(*server.metrics)) as page:
                watcher.ask(b"watch fetchers mutations connevents\r\n", b"OK\r\n")
                dropped = re.search(rb"dropped_records_total (\d+)", page.read())
                time.sleep(1)
                watcher.line()
            turn += 1
            if sys.stderr.isatty() or turn % 60 == 0:
                print(f"\r{time.monotonic() - began:.0f} s, {load.count} requests, {int(dropped[1])} items dropped", end="\n" if turn % 60 == 0 else "", flush=True)
        for thread in threads:
            thread.join()
        self.assertEqual(load.failed, [])
        server.send_signal()
        status = server.process.wait(HANG_SECONDS)
        listens.join()
        self.assertEqual(status, 0, "".join(says))
        print(f"{load.count} requests in {SECONDS} s, {load.found} values")
        self.assertGreater(load.found, load.count // 20, "hardly any value was looked at")


if __name__ == "__main__":
    unittest.main(verbosity=2)
