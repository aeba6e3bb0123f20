#!/usr/bin/env python3
"""A server that clients of memcached and Redis load is killed, again and again: what they were told is there afterwards, with the time it has left.

  server_kill_test.py SPILLWAY          8 kills; tests/kills.py has variables for more, and others

Each client has keys of its own and sends some requests at a time, those of Redis now and then as a transaction. A key may be what was acknowledged last, or what a request that was
under way would have made of it: never anything older, or torn. A killed process loses nothing, whatever the durability, so that it changes
from one life to the next, as does the memory for items.
"""
import itertools
import os
import pathlib
import random
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from kills import Kills, wait_for_release  # noqa: E402
from support import Failure, sanitizer_of, status_of  # noqa: E402
from served import Connection, Server  # noqa: E402

KEYS = 60  # of a client
DURABILITIES = ["none", "batch", "sync"]
MEMORIES = ["32M", "64M", "1G"]
READY_SECONDS_MOST = 1.0


class State:
    """What a key may be: a value or None, and when it ends, as [earliest, latest], or None for never."""

    def __init__(self, value=None, ends=None):
        self.value, self.ends = value, ends

    def may_be_gone(self, now):
        return self.value is None or (self.ends is not None and self.ends[0] <= now)


class Client:
    """Sends requests until its connection ends, and keeps what its keys may be by then."""

    def __init__(self, name, seed):
        self.name = name
        self.random = random.Random(seed)
        self.possible = {f"{name}:{i}": [State()] for i in range(KEYS)}
        self.number = 0
        self.acknowledged = self.wrong = 0
        self.trouble = None
        self.ended = 0.0  # by time.monotonic()

    def value(self):
        self.number += 1
        text = f"{self.name}.{self.number}."
        return (text * (1 + self.random.choice([0, 10, 100, 2000 if self.random.random() < 0.1 else 5]))).encode()

    def run(self, address):
        try:
            with Connection(address) as connection:
                while self.batch(connection):
                    pass
        except OSError:
            pass
        except Exception as error:
            self.trouble = error
        self.ended = time.monotonic()

    def batch(self, connection):
        keys = self.random.sample(list(self.possible), self.random.choice([1, 1, 5, 20]))
        requests = [self.request(key) for key in keys]
        began = time.time()
        for key, (_, make, _) in zip(keys, requests):
            self.possible[key] = self.possible[key] + [make(old, began, began + 3600) for old in self.possible[key]]
        if not self.say(connection, [text for text, _, _ in requests]):
            return False
        for key, (_, make, replies) in zip(keys, requests):
            line = connection.line()
            if not line.endswith(b"\r\n"):
                return False
            if line not in replies:
                raise AssertionError(f"{key}: {line!r} is none of {replies}")
            # Of one that began it is not known which state it found; but no other request of the key is under way.
            before = self.possible[key]
            self.possible[key] = [make(old, began, time.time()) for old in before[:len(before) // 2]]
            self.acknowledged += 1
        return True

    def say(self, connection, requests):
        """So that their replies come next. False: the connection has ended."""
        connection.say(b"".join(requests))
        return True

    def expiry(self):
        """Seconds, or 0 for never."""
        return self.random.choice([0, 0, 0, 1, 2, 100, 5000])


def ends(seconds, began, ended):
    return [began + seconds, ended + seconds] if seconds else None


class Memcache(Client):
    def request(self, key):
        kind, seconds = self.random.random(), self.expiry()
        if kind < 0.15:
            return f"delete {key}\r\n".encode(), lambda old, b, e: State(), (b"DELETED\r\n", b"NOT_FOUND\r\n")
        if kind < 0.3:
            def touched(old, began, ended):
                return State() if old.may_be_gone(ended) and old.value is None else State(old.value, ends(seconds, began, ended))
            if all(state.value is not None and state.ends is None for state in self.possible[key]):
                return f"touch {key} {seconds}\r\n".encode(), touched, (b"TOUCHED\r\n",)
        value = self.value()
        return (b"set %s 0 %d %d\r\n%s\r\n" % (key.encode(), seconds, len(value), value),
                lambda old, began, ended: State(value, ends(seconds, began, ended)), (b"STORED\r\n",))

    def look(self, connection, key):
        """Its value and how many seconds it has left, -1 for ever; or None."""
        connection.say(f"mg {key} t v\r\n".encode())
        line = connection.line()
        if line == b"EN\r\n":
            return None
        words = line.split()
        value = connection.hear(int(words[1]) + 2)[:-2]
        return value, int(words[2][1:])


class Resp(Client):
    @staticmethod
    def command(*words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)

    def request(self, key):
        kind, seconds = self.random.random(), self.expiry()
        if kind < 0.15:
            return self.command("DEL", key), lambda old, b, e: State(), (b":0\r\n", b":1\r\n")
        value = self.value()
        make = lambda old, began, ended: State(value, ends(seconds, began, ended))  # noqa: E731
        if kind < 0.4 and not seconds:
            return self.command("MSET", key, value), make, (b"+OK\r\n",)
        more = ["PX", seconds * 1000] if seconds else []
        return self.command("SET", key, value, *more), make, (b"+OK\r\n",)

    def say(self, connection, requests):
        if self.random.random() < 0.7:
            return super().say(connection, requests)
        # As a transaction: EXEC acknowledges all of them, and each may be there if it has not.
        connection.say(self.command("MULTI") + b"".join(requests) + self.command("EXEC"))
        for expected in [b"+OK\r\n", *[b"+QUEUED\r\n"] * len(requests), b"*%d\r\n" % len(requests)]:
            line = connection.line()
            if not line.endswith(b"\r\n"):
                return False
            if line != expected:
                raise AssertionError(f"{line!r} came in a transaction, not {expected!r}")
        return True

    def look(self, connection, key):
        connection.say(self.command("PTTL", key) + self.command("GET", key))
        left = int(connection.line()[1:])
        line = connection.line()
        if line == b"$-1\r\n":
            return None
        value = connection.hear(int(line[1:]) + 2)[:-2]
        return value, left / 1000 if left >= 0 else -1


def check(client, address):
    with Connection(address) as connection:
        for key, possible in client.possible.items():
            before = time.time()
            found = client.look(connection, key)
            after = time.time()
            if found is None:
                fitting = [state for state in possible if state.may_be_gone(after)]
                client.possible[key] = [State()] if fitting else []
            else:
                value, left = found
                fitting = [state for state in possible if state.value == value and (
                    left < 0 if state.ends is None else left >= 0 and state.ends[0] - 1 <= after + left and before + left <= state.ends[1] + 2)]
                client.possible[key] = fitting
            if not fitting:
                states = [(state.value and state.value[:30], state.ends and [round(end - after, 2) for end in state.ends]) for state in possible]
                raise AssertionError(f"{key} is {found and (found[0][:30], found[1])}, and may be {states}")


def cpu_seconds(process):
    """That it has used so far."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test(spillway):
    kills = Kills(8)
    clients = [Memcache("m0", kills.seed), Memcache("m1", kills.seed + 1), Resp("r0", kills.seed + 2), Resp("r1", kills.seed + 3)]
    starts = []  # after a kill: seconds, and seconds of CPU time

    def done():
        return {"acknowledged": (sum(client.acknowledged for client in clients), 100 * kills.count + 1)}

    with kills.folder("spillway-") as folder:
        for life in itertools.count():
            wait_for_release(folder / "store")
            began = time.monotonic()
            with Server(spillway, "--storage", f"{folder}/store", "--capacity", "256M", "--memory", kills.random.choice(MEMORIES),
                        "--durability", kills.random.choice(DURABILITIES), "--threads", "2", "--memcache", "0", "--resp", "0") as server:
                with Connection(server.address) as first:
                    first.ask(b"mn\r\n", b"MN\r\n")
                if life > 0:
                    starts.append((time.monotonic() - began, cpu_seconds(server.process)))
                for client in clients:
                    check(client, server.address if isinstance(client, Memcache) else server.resp)
                if not kills.goes_on(life, **done()):
                    server.end()
                    break
                threads = [threading.Thread(target=client.run, args=(server.address if isinstance(client, Memcache) else server.resp,))
                           for client in clients]
                for thread in threads:
                    thread.start()
                time.sleep(kills.random.uniform(0.05, 0.6))
                killed = time.monotonic()
                server.process.kill()
                for thread in threads:
                    thread.join()
                if (status := server.wait()) != -signal.SIGKILL:
                    raise Failure(f"the server ended with {status}: {server.said}")
                for client in clients:
                    if client.trouble:
                        raise client.trouble
                    if client.ended < killed:
                        raise Failure(f"the server ended the connection of {client.name}")
    acknowledged = sum(client.acknowledged for client in clients)
    print(f"{kills}: {acknowledged} changes acknowledged, slowest start {max(starts)[0]:.2f} s")
    kills.expect(**done())
    if sanitizer_of(spillway):
        return  # how long a start takes is measured without
    # On a busy machine each lasts longer, but does no more; and not all of them have to wait.
    if min(starts)[0] >= READY_SECONDS_MOST:
        raise Failure("each start took too long")
    if max(cpu for _, cpu in starts) >= READY_SECONDS_MOST:
        raise Failure("a start did too much")


if __name__ == "__main__":
    sys.exit(status_of("server_kill_test", test, sys.argv[1]))
