#!/usr/bin/env python3
"""Who may use `spillway serve`, and connections by TLS.  secure_test.py SPILLWAY [unittest arguments]"""
import os
import pathlib
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, ONE_LINE, take_paths  # noqa: E402
from served import Case, free_port  # noqa: E402

Case.spillway, = take_paths(1)


def binary(opcode, key=b"", value=b"", extras=b""):
    body = extras + key + value
    return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0, len(body), 0, 0) + body


def binary_reply(connection):
    """Its status and body."""
    header = connection.hear(24)
    return struct.unpack(">H", header[6:8])[0], connection.hear(struct.unpack(">I", header[8:12])[0])


class Accounts(Case):
    def setUp(self):
        super().setUp()
        with open(self.path("accounts"), "w", encoding="ascii") as file:
            file.write("alice:one\nsecret\n")
        self.server = self.serve("--memcache", "0", "--resp", "0", "-Y", self.path("accounts"))

    def test_text(self):
        client = self.connect(self.server.address)
        client.ask(b"get key\r\n", b"CLIENT_ERROR unauthenticated\r\n")
        client.ask(b"set key 0 0 5\r\nvalue\r\n", b"CLIENT_ERROR bad authentication token format\r\n")
        client.ask(b"set key 0 0 9\r\nalice two\r\n", b"CLIENT_ERROR authentication failure\r\n")
        client.ask(b"set key 0 0 5000\r\n" + b"x" * 5000 + b"\r\n", b"CLIENT_ERROR bad authentication token format\r\n")
        client.ask(b"set key 0 0 9\r\nalice one\r\nget key\r\n", b"STORED\r\nEND\r\n")
        client.ask(b"set key 0 0 9\r\nalice two\r\nget key\r\n", b"STORED\r\nVALUE key 0 9\r\nalice two\r\nEND\r\n")
        client.say(b"stats\r\n")
        told = dict(line.split()[1:3] for line in iter(client.line, b"END\r\n"))
        self.assertEqual((told[b"auth_cmds"], told[b"auth_errors"]), (b"2", b"1"))
        client.ask(b"stats reset\r\n", b"RESET\r\n")
        client.say(b"stats\r\n")
        told = dict(line.split()[1:3] for line in iter(client.line, b"END\r\n"))
        self.assertEqual((told[b"auth_cmds"], told[b"auth_errors"]), (b"0", b"0"))
        endless = self.connect(self.server.address)
        endless.say(b"x" * 3000)
        self.assertTrue(endless.has_ended())

    def test_binary(self):
        client = self.connect(self.server.address)
        client.say(binary(0x20) + binary(0x0b) + binary(0x22, b"PLAIN") + binary(0x21, b"PLAIN", b"\0alice\0two"))
        self.assertEqual(binary_reply(client), (0, b"PLAIN"))
        self.assertEqual(binary_reply(client)[0], 0)
        self.assertEqual(binary_reply(client), (0x20, b"Auth failure."))
        self.assertEqual(binary_reply(client), (0x20, b"Auth failure."))
        client.say(binary(0x21, b"CRAM-MD5", b"\0alice\0one") + binary(0x21, b"PLAIN", b"\0alice\0one"))
        self.assertEqual(binary_reply(client), (0x20, b"Auth failure."))
        self.assertEqual(binary_reply(client), (0, b"Authenticated"))
        client.say(binary(0x01, b"key", b"value", bytes(8)) + binary(0x00, b"key"))
        self.assertEqual(binary_reply(client), (0, b""))
        self.assertEqual(binary_reply(client), (0, bytes(4) + b"value"))

    def test_who_says_nothing_does_nothing(self):
        for request in binary(0x01, b"key", b"value", bytes(8)), binary(0x04, b"key"), binary(0x7f), binary(0x01, b"key", b"v", bytes(9)):
            with self.connect(self.server.address) as client:
                client.say(request)
                self.assertEqual(binary_reply(client), (0x20, b"Auth failure."))
                self.assertTrue(client.has_ended())
        client = self.connect(self.server.resp)
        client.ask(b"AUTH secret\r\nEXISTS key\r\n", b"+OK\r\n:0\r\n")

    def test_redis(self):
        client = self.connect(self.server.resp)
        client.ask(b"GET key\r\n", b"-NOAUTH Authentication required.\r\n")
        wrong = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
        client.ask(b"AUTH one\r\nAUTH alice secret\r\nAUTH bob one\r\n", 3 * wrong)
        client.ask(b"AUTH alice one\r\nGET key\r\n", b"+OK\r\n$-1\r\n")
        client.say(b"CLIENT INFO\r\n")
        self.assertTrue(client.line().startswith(b"$"))
        self.assertIn(b" user=alice ", client.line())
        client.line()
        client.ask(b"CLIENT KILL USER bob\r\nCLIENT KILL USER default\r\n", b"-ERR No such user 'bob'\r\n:0\r\n")
        client.ask(b"AUTH default secret\r\nCLIENT KILL USER alice\r\n", b"+OK\r\n:0\r\n")

    def test_without_accounts_there_is_no_sasl(self):
        self.server.end()
        server = self.serve("--memcache", "0")
        client = self.connect(server.address)
        client.say(binary(0x20) + binary(0x21, b"PLAIN", b"\0alice\0one") + binary(0x0a))
        self.assertEqual(binary_reply(client), (0x81, b"Unknown command"))
        self.assertEqual(binary_reply(client), (0x81, b"Unknown command"))
        self.assertEqual(binary_reply(client)[0], 0)

    def test_clients_of_their_own(self):
        host, port = self.server.address
        said = {"MEMCACHED_SERVERS": f"{host}:{port}", **os.environ}
        who = ("--binary", "--username=alice", "--password=one")
        with open(self.path("item"), "w", encoding="ascii") as file:
            file.write("an item")
        subprocess.run(["memccp", *who, self.path("item")], env=said, check=True)
        answered = subprocess.run(["memccat", *who, "item"], env=said, capture_output=True, text=True)
        self.assertEqual(answered.stdout, "an item\n", answered.stderr)
        host, port = self.server.resp
        answered = subprocess.run(["redis-cli", "-h", host, "-p", str(port), "--user", "alice", "--pass", "one", "SET", "key", "value"],
                                  capture_output=True, text=True)
        self.assertEqual(answered.stdout, "OK\n", answered.stderr)

    def write(self, accounts):
        with open(self.path("accounts"), "w", encoding="ascii") as file:
            file.write(accounts)
        self.server.send_signal(signal.SIGHUP)

    def test_the_file_is_read_again(self):
        text, redis = self.connect(self.server.address), self.connect(self.server.resp)
        text.ask(b"set key 0 0 9\r\nalice one\r\n", b"STORED\r\n")
        self.write("alice:two\nbob:three\n")
        begun, answer = time.monotonic(), b""
        while answer != b"+OK\r\n":
            self.assertLess(time.monotonic() - begun, HANG_SECONDS)
            redis.say(b"AUTH bob three\r\n")
            answer = redis.line()
        wrong = b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
        redis.ask(b"AUTH alice one\r\nAUTH secret\r\nAUTH alice two\r\nCLIENT KILL USER bob\r\n", 2 * wrong + b"+OK\r\n:0\r\n")
        self.connect(self.server.address).ask(b"set key 0 0 9\r\nalice one\r\nset key 0 0 9\r\nalice two\r\n",
                                              b"CLIENT_ERROR authentication failure\r\nSTORED\r\n")
        text.ask(b"get key\r\n", b"END\r\n")  # who was admitted stays so
        self.write("alice:\n")
        self.assertEqual(self.server.end(), 0)
        self.assertIn("passwords: has read the file again\n", self.server.said)
        self.assertRegex(self.server.said, r"passwords: [^\n]*accounts: line 1 has no password; [^\n]*; goes on with what there was\n")

    def test_wrong_files(self):
        here = ("--storage", self.path("other"), "--capacity", "64M", "--memcache", "0", "--password-file")
        for text, says in ("alice:\n", "line 1 has no password"), ("", "empty"), ("a:b\na:c\n", "line 2 has the user of an earlier line"):
            with open(self.path("wrong"), "w", encoding="ascii") as file:
                file.write(text)
            self.refused(*here, self.path("wrong"), says=["--password-file", "wrong", says])


class Tls(Case):
    def setUp(self):
        super().setUp()
        for name in "server", "client", "stranger":
            self.make(name)
        self.words = ("--tls-cert", self.path("server.crt"), "--tls-key", self.path("server.key"))

    def make(self, name):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.path(f"{name}.key"),
                        "-out", self.path(f"{name}.crt")], check=True, capture_output=True)

    def tls(self, own=None):
        """A client's, which trusts the server's certificate."""
        context = ssl.create_default_context(cafile=self.path("server.crt"))
        context.check_hostname = False
        if own is not None:
            context.load_cert_chain(self.path(f"{own}.crt"), self.path(f"{own}.key"))
        return context

    def test_both_kinds_of_clients(self):
        server = self.serve("--memcache", "tls:0", "--memcache", "0", "--resp", "tls:127.0.0.1:0", *self.words)
        client, plain, redis = self.connect(server.tls_address, self.tls()), self.connect(server.address), self.connect(server.tls_resp, self.tls())
        for value in b"v", b"v" * 20_000, b"v" * 1_000_000:
            client.ask(b"set key 0 0 %d\r\n%s\r\n" % (len(value), value), b"STORED\r\n")
            reply = b"VALUE key 0 %d\r\n%s\r\nEND\r\n" % (len(value), value)
            client.ask(b"get key\r\n", reply)
            plain.ask(b"get key\r\n", reply)
            redis.ask(b"GET key\r\n", b"$%d\r\n%s\r\n" % (len(value), value))
        client.ask(b"get none\r\n" * 2_000, b"END\r\n" * 2_000)
        self.assertEqual(server.end(), 0)

    def test_sockets_in_the_file_system_and_metrics(self):
        server = self.serve("--memcache", "tls:" + self.path("socket"), "--metrics", "tls:0", "--memcache", "0", *self.words)
        self.connect(server.tls_address, self.tls()).ask(b"mn\r\n", b"MN\r\n")
        port = server.said.split("metrics by TLS at 127.0.0.1:")[1].split(";")[0].split(",")[0]
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", context=self.tls()) as page:
            self.assertIn(b"spillway_connections ", page.read())

    def top(self, address, trusts):
        return subprocess.run([self.spillway, "top", "--once", address], capture_output=True, text=True, timeout=HANG_SECONDS,
                              env={**CLEAN, "SSL_CERT_FILE": self.path(f"{trusts}.crt")})

    def test_top(self):
        server = self.serve("--memcache", "0", "--metrics", "tls:127.0.0.1:0", *self.words)
        address = server.said.split("metrics by TLS at ")[1].split(";")[0]
        told = self.top(f"tls:{address}", "server")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertEqual(told.stdout.splitlines()[1].split()[:2], [f"tls:{address}", "0"])
        port = address.split(":")[1]
        for place, trusts, says in ((address, "stranger", "not trusted: self-signed certificate"), (f":{port}", "server", "not trusted: hostname mismatch")):
            refused = self.top(f"tls:{place}", trusts)
            self.assertEqual((refused.returncode, refused.stdout), (1, ""))
            self.assertRegex(refused.stderr, ONE_LINE)
            self.assertIn(says, refused.stderr)

    def test_clients_of_their_own(self):
        server = self.serve("--resp", "tls:0", *self.words)
        host, port = server.tls_resp
        answered = subprocess.run(["redis-cli", "-h", host, "-p", str(port), "--tls", "--cacert", self.path("server.crt"), "SET", "key", "value"],
                                  capture_output=True, text=True)
        self.assertEqual(answered.stdout, "OK\n", answered.stderr)

    def test_clients_with_certificates(self):
        server = self.serve("--memcache", "tls:0", *self.words, "--tls-ca", self.path("client.crt"))
        self.connect(server.tls_address, self.tls("client")).ask(b"mn\r\n", b"MN\r\n")
        for own in None, "stranger":
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                with self.connect(server.tls_address, self.tls(own)) as client:
                    client.say(b"mn\r\n")
                    if client.hear(4) == b"":
                        raise ConnectionError("it has ended")
        self.connect(server.tls_address, self.tls("client")).ask(b"mn\r\n", b"MN\r\n")

    def test_certificates_are_read_again(self):
        server = self.serve("--memcache", "tls:0", *self.words)
        before, first = self.connect(server.tls_address, self.tls()), self.tls()
        self.make("server")
        server.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                self.connect(server.tls_address, self.tls()).ask(b"mn\r\n", b"MN\r\n")
                break
            except ssl.SSLError:
                time.sleep(0.05)
        with self.assertRaises(ssl.SSLError):
            self.connect(server.tls_address, first)
        before.ask(b"mn\r\n", b"MN\r\n")
        with open(self.path("server.crt"), "w", encoding="ascii") as file:
            file.write("nothing\n")
        server.send_signal(signal.SIGHUP)
        before.ask(b"mn\r\n", b"MN\r\n")
        self.assertEqual(server.end(), 0)
        self.assertIn("has read the certificate again", server.said)
        self.assertIn("goes on with what there was", server.said)

    def test_what_is_no_tls_disturbs_nobody(self):
        server = self.serve("--memcache", "tls:0", "--threads", "1", "-c", "100", *self.words)
        good = self.connect(server.tls_address, self.tls())
        half = self.connect(server.tls_address)
        half.say(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a handshake, of which no more comes
        for garbage in b"get key\r\n", b"GET / HTTP/1.1\r\n\r\n", os.urandom(3000), b"\x16\x03\x01\xff\xff" + b"\0" * 70_000, b"\x80" * 24:
            client = self.connect(server.tls_address)
            try:
                client.say(garbage)
                client.socket.shutdown(socket.SHUT_WR)
                client.hear(1 << 20)
            except TimeoutError:
                raise
            except OSError:  # the server has ended it meanwhile
                pass
            good.ask(b"mn\r\n", b"MN\r\n")

    def test_who_is_refused_and_says_nothing_is_not_waited_for(self):
        server = self.serve("--memcache", "tls:0", "-c", "1", *self.words)
        first = self.connect(server.tls_address, self.tls())
        first.ask(b"mn\r\n", b"MN\r\n")
        self.assertEqual(self.connect(server.tls_address, self.tls()).hear(100), b"ERROR Too many open connections\r\n")
        silent = self.connect(server.tls_address)
        begun = time.monotonic()
        self.assertTrue(silent.has_ended())
        self.assertLess(time.monotonic() - begun, 30)  # a minute is for who has been heard

    def test_many_at_once(self):
        server = self.serve("--memcache", "tls:0", "--threads", "2", *self.words)
        failed = []

        def talk(number):
            try:
                for turn in range(20):
                    with self.connect(server.tls_address, self.tls()) as client:
                        value = b"%d-%d" % (number, turn) * (1 + 300 * turn)
                        client.ask(b"set key%d 0 0 %d\r\n%s\r\nget key%d\r\n" % (number, len(value), value, number),
                                   b"STORED\r\nVALUE key%d 0 %d\r\n%s\r\nEND\r\n" % (number, len(value), value))
            except Exception as error:  # of a thread: said by the test
                failed.append(error)

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def test_memcached_words(self):
        server = self.serve("-p", free_port(), "-l", "127.0.0.1", "-Z", *self.words)
        self.connect(server.tls_address, self.tls()).ask(b"mn\r\n", b"MN\r\n")
        self.assertIsNone(server.address)

    def test_wrong_words(self):
        here = ("--storage", self.store, "--capacity", "64M")
        certificate, key = ("--tls-cert", self.path("server.crt")), ("--tls-key", self.path("server.key"))
        self.refused(*here, "--memcache", "tls:0", says=["needs a certificate"])
        self.refused(*here, "--memcache", "0", *certificate, *key, says=["no address begins with tls:"])
        self.refused(*here, "--memcache", "tls:0", *key, says=["--tls-cert FILE"])
        self.refused(*here, "--memcache", "tls:0", *certificate, "--tls-key", self.path("client.key"), says=["client.key", "mismatch"])
        self.refused(*here, "--memcache", "tls:0", *certificate, says=["server.crt", "a private key in PEM"])
        self.refused(*here, "--memcache", "tls:0", "--tls-cert", self.path("none"), *key, says=["none", "no such file"])
        shutil.copy(self.path("server.key"), self.path("wrong.crt"))
        self.refused(*here, "--memcache", "tls:0", "--tls-cert", self.path("wrong.crt"), *key, says=["wrong.crt", "no start line"])
        self.assertFalse(os.path.exists(self.store))


if __name__ == "__main__":
    unittest.main(verbosity=2)
