#!/usr/bin/env python3
"""The same random text commands to our server and to memcached, and the same answers, byte for byte.

  differential_test.py SPILLWAY         4,000 rounds; SPILLWAY_TEST_ROUNDS=n for as many, SPILLWAY_TEST_SEED=n for others

Commands are classic and meta ones of a few keys, as they should be, or with something wrong in them; some at a time. Cas uniques are each server's
own: a command that gives one gets what that server told last, and in answers they are left out, as are seconds, which may pass in
between, and whether an item was used, which memcached does not note each time. What only one of them has, such as slabs, is not asked for.
"""
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from served import Connection, Server, free_port

KEYS = [b"a", b"b", b"key", b"k" * 250, b"n1", b"n2", b"foo:1"]
NUMBERS = [b"0", b"1", b"5", b"10", b"18446744073709551615", b"18446744073709551616", b"-1", b"x", b"1x", b""]
# Not of more than 32 bits, of which memcached takes the lower ones.
FLAGS = [b"0", b"1", b"4294967295", b"-1", b"x"]
EXPTIMES = [b"0", b"0", b"0", b"1000", b"-1", b"2000000000", b"x", b"1.5"]


class Maker:
    """Of commands; `CAS` stands for a key's cas unique."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, choices, rather=None):
        """Mostly of `rather`, or the first ones."""
        if self.random.random() < 0.9:
            return self.random.choice(rather or choices[:max(2, len(choices) // 2)])
        return self.random.choice(choices)

    def key(self):
        return self.random.choice(KEYS + [b"K" * 251]) if self.random.random() < 0.1 else self.random.choice(KEYS[:3] + KEYS[4:])

    def value(self):
        kind = self.random.random()
        if kind < 0.3:
            return str(self.random.randrange(10 ** self.random.randrange(1, 21))).encode()
        # Of blanks alone memcached reads a number behind them, where the item ends.
        value = bytes(self.random.choice(b"abc \r\n0") for _ in range(self.random.choice([0, 1, 3, 10, 2000])))
        return b"a" + value if value.isspace() else value

    def noreply(self):
        return b" noreply" if self.random.random() < 0.1 else b""

    def block(self, value):
        return value + (b"\r\n" if self.random.random() < 0.97 else b"xx\r\n")

    def classic_store(self):
        verb = self.random.choice([b"set", b"set", b"add", b"replace", b"append", b"prepend", b"cas"])
        value = self.value()
        length = str(len(value)).encode() if self.random.random() < 0.97 else self.random.choice([b"x", b"-1", b"1x"])
        words = [verb, self.key(), self.pick(FLAGS), self.pick(EXPTIMES), length]
        if verb == b"cas":
            words.append(self.pick([b"CAS", b"CAS", b"0", b"1", b"x"]))
        return b" ".join(words) + self.noreply() + b"\r\n" + self.block(value)

    def classic_get(self):
        verb = self.random.choice([b"get", b"gets", b"gat", b"gats"])
        # Of a key that is too long among others memcached forgets answers to what came before.
        # Ours takes lines of more than 2,048 bytes of get and gets alone.
        most = 30 if verb in (b"get", b"gets") else 7
        keys = [self.random.choice(KEYS) for _ in range(self.random.choice([1, 1, 2, 5, most]))]
        before = [self.pick(EXPTIMES)] if verb in (b"gat", b"gats") else []
        return b" ".join([verb, *before, *keys]) + b"\r\n"

    def classic_other(self):
        kind = self.random.randrange(6)
        if kind == 0:
            return b"delete " + self.key() + self.pick([b"", b"", b" 0", b" 1"]) + self.noreply() + b"\r\n"
        if kind in (1, 2):
            return self.pick([b"incr ", b"decr "]) + self.key() + b" " + self.pick(NUMBERS) + self.noreply() + b"\r\n"
        if kind == 3:
            return b"touch " + self.key() + b" " + self.pick(EXPTIMES) + self.noreply() + b"\r\n"
        if kind == 4:
            return self.pick([b"verbosity 0", b"verbosity", b"get", b"set", b"delete", b"incr a", b"touch", b"bogus", b"", b"cas a",
                              b"flush_all x", b"flush_all noreply", b"SET a 0 0 1"]) + b"\r\n"
        return b"flush_all\r\n" if self.random.random() < 0.05 else b"mn\r\n"

    def some_flags(self, choices):
        return b"".join(b" " + flag for flag in self.random.sample(choices, self.random.randrange(min(5, len(choices) + 1))))

    def meta(self):
        verb = self.random.choice([b"mg", b"mg", b"ms", b"ms", b"md", b"ma", b"me"])
        key = self.key()
        both = [b"Oop", b"k", b"q", b"c"]
        if verb == b"mg":
            return b"mg " + key + self.some_flags(both + [b"v", b"f", b"s", b"t", b"T100", b"N100", b"R30", b"h", b"v", b"v v", b"z"]) + b"\r\n"
        if verb == b"ms":
            value = self.value()
            flags = both + [b"F5", b"T200", b"CCAS", b"C0", b"I", b"ME", b"MA", b"MP", b"MR", b"MS", b"MX", b"Fx"]
            return b"ms " + key + b" " + str(len(value)).encode() + self.some_flags(flags) + b"\r\n" + self.block(value)
        if verb == b"md":
            return b"md " + key + self.some_flags(both[:3] + [b"CCAS", b"C0", b"I", b"T300"]) + b"\r\n"
        if verb == b"ma":
            return b"ma " + key + self.some_flags(both + [b"D3", b"Dx", b"MI", b"MD", b"J7", b"N100", b"T50", b"v", b"t", b"CCAS", b"MZ"]) + b"\r\n"
        return b"me " + self.pick(KEYS[:3]) + b"x\r\n"  # of one that is never there: the rest is each one's own

    def some(self):
        commands = []
        for _ in range(self.random.choice([1, 1, 2, 8])):
            commands.append(self.random.choice([self.classic_store, self.classic_get, self.classic_other, self.meta, self.meta])())
        numeric = [command for command in commands if command.startswith((b"incr", b"decr", b"ma"))]
        if not numeric:
            return commands
        # memcached fills a number that gets shorter up with blanks, unless somebody has the item at that moment.
        return [numeric[0], b"set " + numeric[0].split()[1] + b" 0 0 2\r\n17\r\n"]


class Side:
    def __init__(self, address):
        self.address = address
        self.cas = {}
        self.connection = Connection(address)

    def answer(self, commands):
        """What comes; the connection's end, too."""
        text = b"".join(self.filled(command) for command in commands)
        try:
            self.connection.say(text + b"\r\nmg end Othe-end\r\n")
            heard = b""
            while not heard.endswith(b"EN Othe-end\r\n"):
                some = self.connection.hear(1) if not self.connection.left else self.connection.hear(len(self.connection.left))
                if not some:
                    raise ConnectionResetError
                heard += some
        except (ConnectionResetError, BrokenPipeError):
            self.connection.close()
            self.connection = Connection(self.address)
            return "the end"
        for key, cas in re.findall(rb"VALUE (\S+) \d+ \d+ (\d+)\r\n", heard):
            self.cas[key] = cas
        return heard

    def filled(self, command):
        words = command.split()
        known = self.cas.get(words[1], b"12345678901") if len(words) > 1 else b"1"
        return command.replace(b" CAS", b" " + known, 1).replace(b" CCAS", b" C" + known, 1)


def without_own(answer):
    if isinstance(answer, str):
        return answer
    answer = re.sub(rb"(VALUE \S+ \d+ \d+) \d+\r\n", rb"\1 CAS\r\n", answer)
    lines = []
    for line in answer.split(b"\r\n"):
        if re.match(rb"(HD|VA|NF|EN|NS|EX) ?", line):
            line = re.sub(rb" ([cth])-?\d+", rb" \1", line)
        lines.append(line)
    return b"\r\n".join(lines)


def await_port(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise AssertionError("memcached does not serve")


def main():
    memcached = shutil.which("memcached") or shutil.which("memcached", path="/usr/sbin:/usr/bin")
    assert memcached, "memcached is not there; scripts/install-deps.sh installs it"
    rounds = int(os.environ.get("SPILLWAY_TEST_ROUNDS", "4000"))
    seed = int(os.environ.get("SPILLWAY_TEST_SEED", "1"))
    port = free_port()
    user = ["-u", "root"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="spillway-", dir=os.environ.get("TMPDIR", "/var/tmp")) as folder, \
         subprocess.Popen([memcached, *user, "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-t", "1"]) as peer:
        try:
            await_port(port)
            with Server(sys.argv[1], "--storage", f"{folder}/store", "--capacity", "128M", "--memory", "64M", "--memcache", "0") as server:
                compare(Side(server.address), Side(("127.0.0.1", port)), Maker(seed), rounds)
        finally:
            peer.kill()
    print(f"{rounds} rounds, seed {seed}: the same")


def compare(ours, theirs, maker, rounds):
    for number in range(rounds):
        commands = maker.some()
        # What noreply hides shows in what is there.
        commands.append(b"get " + b" ".join(KEYS) + b"\r\n")
        answers = [without_own(side.answer(commands)) for side in (ours, theirs)]
        if answers[0] != answers[1]:
            for command in commands:
                print(f"  {command[:300]!r}")
            same = len(os.path.commonprefix(answers)) if isinstance(answers[0], type(answers[1])) else 0
            begin = max(0, same - 60)
            raise AssertionError(f"round {number}: ours says {answers[0][begin:same + 200]!r}\nmemcached {answers[1][begin:same + 200]!r}")


if __name__ == "__main__":
    main()
