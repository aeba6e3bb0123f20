#!/usr/bin/env python3
"""`spillway serve` from its start to its end: words, addresses, signals, restarts.  serve_test.py SPILLWAY [unittest arguments]"""
import ctypes
import fcntl
import itertools
import os
import pathlib
import pwd
import re
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, ONE_LINE, sanitizer_of, take_paths  # noqa: E402
from served import Case, Connection, Server, free_port, key_of  # noqa: E402

SPILLWAY, = take_paths(1)
Case.spillway = SPILLWAY


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


HAS_IPV6 = has_ipv6()


class Words(Case):
    def test_help(self):
        text = subprocess.run([SPILLWAY, "serve", "--help"], capture_output=True, text=True, check=True, env=CLEAN).stdout
        self.assertIn("usage: spillway serve --storage DEVICE", text)
        for line in text.splitlines():
            self.assertLess(len(line), 150)

    def test_wrong_words(self):
        self.refused(says="--storage DEVICE")
        self.refused("--storage", self.store, says=["listen nowhere", "--memcache 11211"])
        here = ("--storage", self.store, "--memcache", "0")
        self.refused(*here, "--storage", self.path("other"), says=["--storage is given twice", "stripe:"])
        self.refused(*here, "store", says="'store' is not an option")
        self.refused(*here, "--fly", says=["'--fly'", "--help"])
        self.refused(*here, "-z", says="'-z'")
        self.refused(*here, "--threads", says="--threads needs a NUMBER")
        self.refused(*here, "--memory", "31M", says=["--memory", "from 32.0 MiB"])
        self.refused(*here, "-t", says="-t needs a NUMBER")
        self.refused(*here, "-t", "0", says=["'0'", "from 1 to 64"])
        self.refused(*here, "--daemon=1", says="takes no argument")
        self.refused(*here, "--durability", "some", says=["'some'", "none, batch or sync"])
        self.refused(*here, "-I", "2G", says=["2G", "1.0 KiB to 1.0 GiB"])
        self.refused(*here, "-U", "11211", says="UDP is not served")
        self.refused(*here, "-a", "800", says="octal")
        self.refused(*here, "-l", "127.0.0.1,,::1", says="empty")
        self.refused(*here, "--password-file", self.path("none"), says="cannot read")
        self.refused(*here, says="SPILLWAY_PASSWORD is empty", environment={"SPILLWAY_PASSWORD": ""})
        self.refused(*here, "--cache", says="--cache makes a cache, and needs --capacity SIZE")
        self.refused(*here, "--user", "nobody-of-this-name", says="there is no user")
        for words in ("--user", ""), ("-u", ""), ("--user=",), ("--pid-file", ""), ("--tls-cert", ""), ("--tls-ca=",):  # of a variable that is not set
            self.refused(*here, *words, says=[f"{words[0].rstrip('=')} needs a ", "not an empty word"])
        self.refused(*here, "--memcache", "::1:5", "--capacity", "64M", says=["'::1:5'", "brackets"])
        self.refused(*here, says=["no such file", "--capacity SIZE makes a store"])

    def test_a_store_that_is_there_is_as_it_was_made(self):
        self.assertEqual(self.serve("--memcache", "0").end(), 0)
        self.refused("--storage", self.store, "--capacity", "64M", "--cache", "--memcache", "0", says=["--cache", "is not a cache"])
        server = self.serve("--memcache", "0", capacity="256M")
        self.assertRegex(server.said, "store is there, with 6[0-9.]+ MiB; --capacity says what is made where nothing is\n")
        self.assertEqual(server.end(), 0)
        self.assertNotIn("--capacity", self.serve("--memcache", "0").said)

    def test_no_port(self):
        place = self.path("socket")
        server = self.serve("-p", "0", "-s", place, "-F", "--resp", "0")
        self.assertEqual(server.address, place)
        self.assertEqual(server.said.count("memcache at"), 1)
        self.connect(place).ask(b"flush_all\r\n", b"CLIENT_ERROR flush_all not allowed\r\n")
        self.connect(server.resp).ask(b"SET key value\r\nFLUSHALL\r\nFLUSHDB ASYNC\r\nGET key\r\n",
                                      b"+OK\r\n" + 2 * b"-NOPERM nothing may be flushed here (--disable-flush)\r\n" + b"$5\r\nvalue\r\n")
        self.refused("--storage", self.path("none"), "-l", "127.0.0.1", "-p", "0", says=["-l 127.0.0.1", "-p 0"])

    def test_what_is_in_use(self):
        first = self.serve("--memcache", "0")
        port = first.address[1]
        self.refused("--storage", self.store, "--memcache", "0", says="in use")
        self.refused("--storage", self.store, "--capacity", "64M", "--memcache", "0", says="in use")
        other = ("--storage", self.path("other"), "--capacity", "64M")
        ended = subprocess.run([SPILLWAY, "serve", *other, "--memcache", str(port)], capture_output=True, text=True, env=CLEAN,
                               timeout=HANG_SECONDS)
        self.assertEqual(ended.returncode, 2)
        self.assertIn(f"cannot listen at 127.0.0.1:{port}", ended.stderr.splitlines()[-1])

    def test_words_of_memcached(self):
        server = self.serve("-l", "127.0.0.1", f"-p{free_port()}", "-U", "0", "-m", "3", "-c", "100", "-vt", "1", "-I", "2m", "-kR", "20", "-b", "512",
                            "-o", "modern,idle_timeout=77,hashpower=20")
        self.assertIn("has no effect here: -k, -R, -b, -o modern, -o hashpower=20\n", server.said)
        connection = self.connect(server.address)
        connection.ask(b"version\r\n", b"VERSION ")
        connection.line()
        connection.say(b"stats settings\r\n")
        self.assertEqual(connection.line(), b"STAT maxbytes 33554432\r\n")
        self.assertEqual(server.end(), 0)
        server = self.serve("-l", "0.0.0.0", "-p", free_port())
        self.assertRegex(server.ready["places"], r"^memcache at 0\.0\.0\.0:\d+$")  # and at no address of IPv6
        self.assertEqual(server.end(), 0)
        if HAS_IPV6:  # as in Debian's memcached.conf
            server = self.serve("-l", "127.0.0.1", "-l", "::1", "-p", free_port())
            self.assertRegex(server.ready["places"], r"^memcache at 127\.0\.0\.1:(\d+), memcache at \[::1\]:\1$")
            self.assertEqual(server.end(), 0)
        place = self.path("socket")
        server = self.serve("-s", place, "-a", "770")
        self.assertEqual(os.stat(place).st_mode & 0o777, 0o770)
        self.connect(place).ask(key_of(b"value"), b"STORED\r\n")
        self.assertEqual(server.end(), 0)
        self.assertFalse(os.path.exists(place))

    @unittest.skipIf(subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode != 0, "needs root")
    def test_a_name_that_has_an_address_twice(self):
        hosts = pathlib.Path(self.path("hosts"))
        hosts.write_text("127.0.0.1 twice\n127.0.0.1 twice.example twice\n")
        server = self.serve("--memcache", f"twice:{free_port()}", before=("unshare", "--mount", "sh", "-c", f'mount --bind {hosts} /etc/hosts && exec "$@"', "sh"))
        self.assertRegex(server.ready["places"], r"^memcache at 127\.0\.0\.1:\d+$")
        self.connect(server.address).ask(b"mn\r\n", b"MN\r\n")


class Life(Case):
    def test_both_kinds_of_clients(self):
        server = self.serve("--memcache", "0", "--resp", self.path("resp"), "--threads", "2")
        one, other = self.connect(server.address), self.connect(server.resp)
        one.ask(key_of(b"value"), b"STORED\r\n")
        other.ask(b"GET key\r\n", b"$5\r\nvalue\r\n")
        other.ask(b"SET key changed\r\n", b"+OK\r\n")
        one.ask(b"get key\r\n", b"VALUE key 0 7\r\nchanged\r\nEND\r\n")
        idle = self.connect(server.resp)
        server.send_signal()
        for connection in (one, other, idle):
            self.assertTrue(connection.has_ended())
        self.assertEqual(server.wait(), 0)

    def test_a_store_under_a_key(self):
        key = pathlib.Path(self.path("key"))
        key.write_bytes(os.urandom(64))
        key.chmod(0o600)
        server = self.serve("--memcache", "0", "--key-file", key)
        self.connect(server.address).ask(key_of(b"planted " * 100), b"STORED\r\n")
        self.assertEqual(server.end(), 0)
        self.assertNotIn(b"planted", pathlib.Path(self.store).read_bytes())
        for options in ((), ("--capacity", "64M")):
            self.refused("--storage", self.store, "--memcache", "0", *options, says="holds no store, or one under another key")
        server = self.serve("--memcache", "0", "--key-file", key)
        self.connect(server.address).ask(b"get key\r\n", b"VALUE key 5 800\r\n%s\r\nEND\r\n" % (b"planted " * 100))

    def test_a_cache_takes_more_than_it_has_room_for(self):
        server = self.serve("--memcache", "0", "--resp", "0", "--cache")
        client, value = self.connect(server.address), b"v" * 100_000
        for number in range(2000):
            client.ask(b"set key%d 0 0 %d\r\n%s\r\n" % (number, len(value), value), b"STORED\r\n")
        client.ask(b"get key0 key1999\r\n", b"VALUE key1999 0 %d\r\n%s\r\nEND\r\n" % (len(value), value))
        self.assertEqual(server.end(), 0)
        server = self.serve("--memcache", "0", "--resp", "0")
        self.connect(server.address).ask(b"get key0 key1999\r\n", b"VALUE key1999 0 %d\r\n%s\r\nEND\r\n" % (len(value), value))
        self.connect(server.resp).ask(b"CONFIG GET maxmemory-policy\r\n", b"*2\r\n$16\r\nmaxmemory-policy\r\n$11\r\nallkeys-lru\r\n")

    def test_what_a_cache_drops_while_a_client_is_slow_is_absent(self):
        """Large values are found together, and read one after the other while they are sent: some are gone by then."""
        server = self.serve("--cache", "--memcache", "0", "--resp", "0", "--memory", "64M", capacity="128M")
        names, value = [f"key{i}" for i in range(60)], b"v" * 400_000
        for address, request in ((server.address, f"get {' '.join(names)}\r\n"),
                                 (server.resp, f"*61\r\n$4\r\nMGET\r\n{''.join(f'${len(name)}{chr(13)}{chr(10)}{name}{chr(13)}{chr(10)}' for name in names)}")):
            with self.subTest(request[:4]):
                slow, others = self.connect(address), self.connect(server.address)
                for name in names:
                    others.ask(b"set %s 0 0 400000\r\n%s\r\n" % (name.encode(), value), b"STORED\r\n")
                slow.say(request.encode())
                slow.hear_some(1)  # it is being answered
                for i in range(400):
                    others.ask(b"set other%d 0 0 400000\r\n%s\r\n" % (i, value), b"STORED\r\n")
                found = 0
                if address == server.address:
                    for head in iter(slow.line, b"END\r\n"):
                        self.assertEqual(head.split()[0::3], [b"VALUE", b"400000"])
                        self.assertTrue(slow.hear(400_002) == value + b"\r\n")
                        found += 1
                else:
                    self.assertEqual(slow.line(), b"*60\r\n")
                    for _ in names:
                        head = slow.line()
                        self.assertIn(head, (b"$400000\r\n", b"$-1\r\n"))
                        if head == b"$400000\r\n":
                            self.assertTrue(slow.hear(400_002) == value + b"\r\n")
                            found += 1
                self.assertTrue(0 < found < len(names), found)
                slow.ask(b"get none\r\n" if address == server.address else b"GET none\r\n", b"END\r\n" if address == server.address else b"$-1\r\n")

    def test_restarts_find_what_was_stored(self):
        value = b"v" * 3000
        for number, how in enumerate([signal.SIGTERM, signal.SIGKILL, signal.SIGINT]):
            server = self.serve("--memcache", "0")
            connection = self.connect(server.address)
            if number:
                connection.ask(b"get key\r\n", b"VALUE key 5 3000\r\n" + value + b"\r\nEND\r\n")
            for i in range(100):
                connection.ask(b"set key%d 0 100 1\r\n%d\r\n" % (i, number), b"STORED\r\n")
            connection.ask(key_of(value), b"STORED\r\n")
            self.assertEqual(server.end(how), 0 if how != signal.SIGKILL else -signal.SIGKILL)
        server = self.serve("--memcache", "0")
        self.assertEqual(server.ready["items"], "101")

    def test_a_copy_has_all_that_was_not_flushed(self):
        """What a server keeps of a flush is about versions, and in a copy these are other ones."""
        def kv(*words, give=None):
            return subprocess.run([SPILLWAY, "kv", *words], input=give, capture_output=True, check=True, env=CLEAN, timeout=HANG_SECONDS).stdout

        def copy_of(dump, name, loaded):
            kv("make", self.path(name), "--capacity", "64M")
            self.assertEqual(kv("load", self.path(name), "-", give=dump), b"%d records were loaded\n" % loaded)
            server = Server(SPILLWAY, "--storage", self.path(name), "--memcache", "0")
            self.addCleanup(server.__exit__)
            return self.connect(server.address)

        server = self.serve("--memcache", "0")
        client = self.connect(server.address)
        client.ask(b"set gone 0 0 1\r\n1\r\nflush_all\r\n", b"STORED\r\nOK\r\n")
        for i in range(100):
            client.ask(b"set key%d 0 0 1\r\n1\r\n" % i, b"STORED\r\n")
        self.assertEqual(server.end(), 0)
        client = copy_of(kv("dump", self.store, "-"), "copy", loaded=100)
        client.ask(b"get gone\r\n", b"END\r\n")
        for i in range(100):
            client.ask(b"get key%d\r\n" % i, b"VALUE key%d 0 1\r\n1\r\nEND\r\n" % i)
        # Dumps that others have put together: a flush that was made, and one that is to come.
        for at_ms, loaded in (0, 1), (4_000_000_000_000, 2):
            record = (10 ** 12).to_bytes(8, "little") + at_ms.to_bytes(8, "little")
            dump = b"spillway-dump 1\n+3,2,0,0:key->\0v\n+7,16,0,0:\0\1flush->%s\n.2\n" % record
            copy_of(dump, f"copy-{at_ms}", loaded).ask(b"get key\r\n", b"VALUE key 0 1\r\nv\r\nEND\r\n")

    def test_requests_that_have_begun_end(self):
        server = self.serve("--memcache", "0", "--threads", "2")
        idle, busy = self.connect(server.address), self.connect(server.address)
        before, begins, asked = self.received_bytes(idle), b"set key 0 0 20000\r\n" + b"v" * 10001, itertools.count(1)
        busy.say(begins)
        self.wait_until(lambda: self.received_bytes(idle) - before - next(asked) * len(b"stats\r\n") == len(begins))
        server.send_signal()
        self.assertTrue(idle.has_ended())
        self.wait_until(lambda: self.is_refused(server.address))
        self.assertIsNone(server.process.poll())
        busy.ask(b"v" * 9999 + b"\r\n", b"STORED\r\n")
        self.assertTrue(busy.has_ended())
        self.assertEqual(server.wait(), 0)

    @staticmethod
    def received_bytes(connection):
        """Of all clients, this request among them."""
        connection.say(b"stats\r\n")
        return int(re.search(rb"STAT bytes_read (\d+)\r\n", b"".join(iter(connection.line, b"END\r\n")))[1])

    @staticmethod
    def is_refused(address):
        """Does nobody listen there any more?"""
        try:
            Connection(address).close()
        except ConnectionRefusedError:
            return True
        return False

    def wait_until(self, happens):
        begun = time.monotonic()
        while not happens():
            self.assertLess(time.monotonic() - begun, HANG_SECONDS)
            time.sleep(0.01)

    def slow(self, us, *words, before=()):
        """A server that listens, and that needs so long for each I/O; begun by the command `before`."""
        place = self.path("socket")
        process = subprocess.Popen([*before, SPILLWAY, "serve", "--storage", f"latency:us={us},sleep=1:[{self.store}]", "-s", place, *words],
                                   env=CLEAN, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_until(lambda: os.path.exists(place))
        return process

    def opening(self, *before):
        """One that opens its store for some time."""
        self.assertEqual(self.serve("--memcache", "0").end(), 0)
        return self.slow(2_000_000, before=before)

    def test_a_signal_ends_one_that_opens_its_store_at_once(self):
        process = self.opening()
        process.send_signal(signal.SIGHUP)  # that is kept for when it serves
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(HANG_SECONDS), -signal.SIGTERM)

    @unittest.skipIf(subprocess.run(["unshare", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL).returncode != 0, "needs root")
    def test_a_signal_ends_the_first_process_of_a_container_that_opens_its_store(self):
        begins = self.opening("unshare", "--pid", "--fork", "--kill-child")
        [first] = pathlib.Path(f"/proc/{begins.pid}/task/{begins.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        self.assertEqual(begins.wait(HANG_SECONDS), 128 + signal.SIGTERM)

    def test_a_signal_ends_one_that_makes_its_store_when_that_is_made(self):
        process = self.slow(10_000, "--capacity", "64M")
        # Two superblocks, and some headers of segments, of which there are more than a hundred.
        self.wait_until(lambda: os.path.exists(self.store) and os.stat(self.store).st_blocks > 64)
        process.send_signal(signal.SIGTERM)
        process.wait(HANG_SECONDS)
        self.assertEqual(self.serve("--memcache", "0").ready["items"], "0")

    def test_a_second_signal_waits_for_nobody(self):
        server = self.serve("--memcache", "0")
        busy = self.connect(server.address)
        busy.say(b"set key 0 0 20000\r\n")
        time.sleep(0.1)
        begun = time.monotonic()
        server.send_signal()
        self.wait_until(lambda: self.is_refused(server.address))  # two that wait for it would be one
        self.assertEqual(server.end(), 0)
        self.assertLess(time.monotonic() - begun, 10)  # for which one signal would have it wait
        self.assertTrue(busy.has_ended())

    def test_who_asks_for_many_keys_holds_up_no_end(self):
        server = self.serve("--resp", "0")
        self.connect(server.resp).ask(b"SET n 0\r\n" + b"".join(b"SET key%d v\r\n" % i for i in range(2500)), 2501 * b"+OK\r\n")
        self.assertEqual(server.end(), 0)
        slow = Server(SPILLWAY, "--storage", f"latency:us=10000,sleep=1:[{self.store}]", "--resp", "0", "--memcache", "0")  # all its keys take 25 s
        self.addCleanup(slow.__exit__)
        self.connect(slow.resp).say(b"KEYS none\r\n")
        self.connect(slow.resp).say(b"EXISTS%s\r\n" % b"".join(b" key%d" % i for i in range(2500)))
        self.connect(slow.address).say(b"incr n 1\r\n" * 3200)
        time.sleep(0.2)
        begun = time.monotonic()
        slow.send_signal()
        self.wait_until(lambda: self.is_refused(slow.address))
        self.assertEqual(slow.end(), 0)
        self.assertLess(time.monotonic() - begun, 15)

    def test_a_client_may_end_it_if_it_is_told_so(self):
        server = self.serve("--memcache", "0")
        self.connect(server.address).ask(b"shutdown\r\n", b"ERROR: shutdown not enabled\r\n")
        self.assertEqual(server.end(), 0)
        server = self.serve("--memcache", "0", "-A")
        self.connect(server.address).say(b"shutdown\r\n")
        self.assertEqual(server.wait(), 0)
        server = self.serve("--resp", "0")
        self.connect(server.resp).ask(b"SHUTDOWN NOSAVE\r\n", b"-NOPERM clients may not end this server (--enable-shutdown)\r\n")
        self.assertEqual(server.end(), 0)
        server = self.serve("--resp", "0", "--enable-shutdown")
        self.connect(server.resp).say(b"SHUTDOWN NOSAVE\r\n")
        self.assertEqual(server.wait(), 0)

    def test_a_daemon(self):
        place, pid_file = self.path("socket"), self.path("pid")
        pid, said = self.daemon("-s", place)
        self.assertRegex(said, "ready after")
        self.connect(place).ask(b"version\r\n", b"VERSION ")
        os.kill(pid, signal.SIGTERM)
        begun = time.monotonic()
        while os.path.exists(pid_file) and time.monotonic() - begun < HANG_SECONDS:
            time.sleep(0.01)
        self.assertFalse(os.path.exists(pid_file))

    def test_the_pid_file_is_there_until_the_store_is_closed(self):
        self.assertEqual(self.serve("--memcache", "0").end(), 0)
        pid_file = self.path("pid")
        process = self.slow(300_000, "-P", pid_file)
        self.wait_until(lambda: os.path.exists(pid_file))
        self.connect(self.path("socket")).ask(key_of(b"value"), b"STORED\r\n")
        process.send_signal(signal.SIGTERM)
        self.wait_until(lambda: not os.path.exists(pid_file))
        self.assertEqual(self.serve("--memcache", "0").ready["items"], "1")
        self.assertEqual(process.wait(HANG_SECONDS), 0)

    def begun(self, *command, **options):
        """A server at a socket of this command, which its helper does not begin."""
        process = subprocess.Popen([*command, SPILLWAY, "serve", "--storage", self.store, "--capacity", "64M", "-s", self.path("socket")], env=CLEAN, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_a_log_that_nobody_reads_any_more(self):
        process = self.begun(stderr=subprocess.PIPE, text=True)
        self.assertTrue(any("ready after" in line for line in process.stderr))
        process.stderr.close()
        process.send_signal(signal.SIGHUP)  # it says that there is nothing to read again
        self.connect(self.path("socket")).ask(b"version\r\n", b"VERSION ")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(HANG_SECONDS), 0)

    def test_standard_streams_that_are_closed(self):
        process = self.begun("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
        begun, connection = time.monotonic(), None
        while connection is None:
            try:
                connection = self.connect(self.path("socket"))
            except OSError:  # it does not listen yet
                self.assertLess(time.monotonic() - begun, HANG_SECONDS)
                time.sleep(0.01)
        connection.ask(b"version\r\n", b"VERSION ")
        self.assertEqual({os.readlink(f"/proc/{process.pid}/fd/{stream}") for stream in range(3)}, {"/dev/null"})
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(HANG_SECONDS), 0)

    def test_a_pid_file_that_is_no_file_stays(self):
        link = pathlib.Path(self.path("pid"))
        link.symlink_to("/dev/null")
        self.assertEqual(self.serve("--memcache", "0", "-P", str(link)).end(), 0)
        self.assertTrue(link.is_symlink())

    def test_a_pid_file_is_tried_before_anything_is_made(self):
        self.refused("--storage", self.store, "--capacity", "64M", "--memcache", "0", "--pid-file", self.path("none/pid"),
                     says=["--pid-file: cannot write", "No such file", "give a file"])
        self.assertFalse(os.path.exists(self.store))

    def test_a_pid_file_for_which_there_is_no_room(self):
        ended = subprocess.run([SPILLWAY, "serve", "--storage", self.store, "--capacity", "64M", "--memcache", "0", "--pid-file", "/dev/full"],
                               capture_output=True, text=True, env=CLEAN, timeout=HANG_SECONDS)
        self.assertEqual(ended.returncode, 1, ended)
        self.assertEqual(ended.stderr.splitlines()[-1], "spillway: serve: --pid-file: cannot write '/dev/full': No space left on device")

    def test_a_pid_file_is_no_disk(self):
        try:
            os.mknod(self.path("disk"), 0o600 | stat.S_IFBLK, os.makedev(7, 250))
        except PermissionError:
            self.skipTest("no devices can be made here")
        self.refused("--storage", self.store, "--capacity", "64M", "--memcache", "0", "-P", self.path("disk"), says=["-P", "is a disk"])

    def test_what_goes_wrong_when_it_listens_already_leaves_no_socket(self):
        place = self.path("socket")
        self.refused("--storage", self.store, "-s", place, says="no such file")
        self.assertFalse(os.path.exists(place))

    def test_a_daemon_that_cannot_begin_says_so(self):
        self.refused("--storage", self.store, "-d", "--memcache", "0", says="no such file")

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    @unittest.skipIf(sanitizer_of(SPILLWAY) == "thread", "the thread sanitizer has a thread of its own, which keeps its rights")
    def test_becomes_another_user(self):
        nobody = pwd.getpwnam("nobody")
        server = self.serve("--memcache", "0", "-u", "nobody", preexec_fn=lambda: os.setgroups([0, 4, 6]))
        self.connect(server.address).ask(key_of(b"value"), b"STORED\r\n")
        threads = list(pathlib.Path(f"/proc/{server.process.pid}/task").iterdir())
        self.assertGreater(len(threads), 2)
        for thread in threads:
            status = dict(re.findall(r"^(\w+):\t(.*)$", (thread / "status").read_text(), re.M))
            self.assertEqual(status["Uid"].split(), 4 * [str(nobody.pw_uid)], thread)
            self.assertEqual(status["Gid"].split(), 4 * [str(nobody.pw_gid)], thread)
            self.assertEqual(set(map(int, status["Groups"].split())), set(os.getgrouplist("nobody", nobody.pw_gid)), thread)
            self.assertEqual(status["NoNewPrivs"], "1", thread)
            for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                self.assertEqual(int(status[kind], 16), 0, f"{thread}: {kind}")
        self.assertEqual(server.end(), 0)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_user_who_would_keep_capabilities_is_refused(self):
        set_securebits, no_setuid_fixup, may_set_them = 28, 1 << 2, 1 << 8
        own = re.search(r"^CapEff:\t(\w+)$", pathlib.Path("/proc/self/status").read_text(), re.M)
        if not int(own[1], 16) & may_set_them:
            self.skipTest("without CAP_SETPCAP nothing keeps capabilities here")
        ended = subprocess.run([SPILLWAY, "serve", "--storage", self.store, "--capacity", "64M", "--memcache", "0", "-u", "nobody"],
                               capture_output=True, text=True, env=CLEAN, timeout=HANG_SECONDS,
                               preexec_fn=lambda: ctypes.CDLL(None).prctl(set_securebits, no_setuid_fixup, 0, 0, 0))
        self.assertEqual(ended.returncode, 2, ended.stderr)
        self.assertIn("'nobody' would keep capabilities", ended.stderr.splitlines()[-1])

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_socket_is_its_users(self):
        nobody, place = pwd.getpwnam("nobody"), self.path("socket")
        self.serve("-s", place, "-a", "660", "-u", "nobody")
        there = os.stat(place)
        self.assertEqual((there.st_uid, there.st_gid, there.st_mode & 0o777), (nobody.pw_uid, nobody.pw_gid, 0o660))


class ServiceManager(Case):
    def given(self, *sockets, names, words=()):
        """A server that finds these sockets open, as systemd has it."""
        copies = [os.dup(socket.fileno()) for socket in sockets]
        for copy in copies:
            self.addCleanup(os.close, copy)

        def place():
            high = [fcntl.fcntl(copy, fcntl.F_DUPFD, 100) for copy in copies]
            for number, descriptor in enumerate(high):
                os.dup2(descriptor, 3 + number)

        script = f'LISTEN_PID=$$ LISTEN_FDS={len(sockets)} LISTEN_FDNAMES={names} exec "$0" "$@"'
        return {"before": ["sh", "-c", script], "preexec_fn": place, "pass_fds": range(3, 3 + len(sockets))}

    def listening(self):
        listens = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listens.close)
        return listens

    def test_sockets_and_readiness(self):
        memcache, resp = self.listening(), self.listening()
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(self.path("notify"))
        manager.settimeout(HANG_SECONDS)
        server = self.serve(environment={"NOTIFY_SOCKET": self.path("notify")}, **self.given(memcache, resp, names="memcache:resp-2"))
        self.assertEqual(manager.recv(100), b"READY=1")
        self.assertEqual((server.address, server.resp), (memcache.getsockname(), resp.getsockname()))
        self.connect(memcache.getsockname()).ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n")
        self.connect(resp.getsockname()).ask(b"GET a\r\n", b"$1\r\nx\r\n")
        self.assertEqual(server.end(), 0)
        self.assertEqual(manager.recv(100), b"STOPPING=1")

    def test_what_nobody_said_whom_it_is_for(self):
        given = self.given(self.listening(), names="web")
        ended = subprocess.run([*given.pop("before"), SPILLWAY, "serve", "--storage", self.store], capture_output=True, text=True,
                               timeout=HANG_SECONDS, env=CLEAN, **given)
        self.assertEqual(ended.returncode, 2)
        self.assertRegex(ended.stderr, ONE_LINE)
        self.assertIn("FileDescriptorName=", ended.stderr)

    def test_one_by_tls_needs_a_certificate(self):
        given = self.given(self.listening(), names="memcache-tls")
        ended = subprocess.run([*given.pop("before"), SPILLWAY, "serve", "--storage", self.store, "--capacity", "64M"], capture_output=True, text=True,
                               timeout=HANG_SECONDS, env=CLEAN, **given)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("needs a certificate (--tls-cert)", ended.stderr)


class Connections(Case):
    def test_too_many(self):
        server = self.serve("--memcache", "0", "--resp", "0", "-c", "2")
        first, second = self.connect(server.address), self.connect(server.address)
        for connection in (first, second):
            connection.ask(b"version\r\n", b"VERSION ")
        third = self.connect(server.address)
        self.assertEqual(third.hear(100), b"ERROR Too many open connections\r\n")
        self.assertEqual(self.connect(server.resp).hear(100), b"-ERR max number of clients reached\r\n")
        first.close()
        deadline = time.monotonic() + HANG_SECONDS
        while time.monotonic() < deadline:
            again = self.connect(server.address)
            again.say(b"version\r\n")
            if again.hear(8) == b"VERSION ":
                return
        self.fail("there is room again, and it is not given")

    def test_there_are_descriptors_for_all(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if most != resource.RLIM_INFINITY and most < 4000:
            self.skipTest(f"only {most} descriptors are allowed")
        server = self.serve("--memcache", "0", "-c", "3000", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, most)))
        limits = pathlib.Path(f"/proc/{server.process.pid}/limits").read_text()
        allowed = int(re.search(r"^Max open files +(\d+)", limits, re.M)[1])
        self.assertGreaterEqual(allowed, 3000 + 512)  # which workers and storage may have

    def test_nothing_comes(self):
        server = self.serve("--memcache", "0", "--idle", "3")
        quiet, talks = self.connect(server.address), self.connect(server.address)
        begun = time.monotonic()
        while not select.select([quiet.socket], [], [], 0.1)[0]:
            self.assertLess(time.monotonic() - begun, HANG_SECONDS)
            talks.ask(b"mn\r\n", b"MN\r\n")
        self.assertTrue(quiet.has_ended())
        talks.say(b"stats\r\n")
        told = b""
        while not told.endswith(b"END\r\n"):
            told += talks.line()
        self.assertIn(b"STAT idle_kicks 1\r\n", told)
        self.assertEqual(server.end(), 0)
        server = self.serve("--resp", "0", "-o", "idle_timeout=0")  # memcached's word for never
        quiet = self.connect(server.resp)
        time.sleep(0.2)
        quiet.ask(b"CONFIG GET timeout\r\n", b"*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n")

    def test_a_password(self):
        server = self.serve("--resp", "0", environment={"SPILLWAY_PASSWORD": "secret"})
        client = self.connect(server.resp)
        client.ask(b"GET key\r\n", b"-NOAUTH Authentication required.\r\n")
        client.ask(b"AUTH secret\r\n", b"+OK\r\n")
        client.ask(b"GET key\r\n", b"$-1\r\n")

    def test_watch(self):
        server = self.serve("--memcache", "0", "--threads", "2")
        client = self.connect(server.address)
        client.ask(b"mn\r\n", b"MN\r\n")  # it has a number
        watcher = self.connect(server.address)
        watcher.ask(b"watch fetchers mutations connevents\r\n", b"OK\r\n")
        client.ask(b"set a%b 5 60 1\r\nx\r\nget a%b none\r\nmg none\r\nadd a%b 0 0 1\r\ny\r\n",
                   b"STORED\r\nVALUE a%b 5 1\r\nx\r\nEND\r\nEN\r\nNOT_STORED\r\n")
        client.close()
        ended = self.connect(server.address)
        ended.close()
        heard = [watcher.line().decode() for _ in range(10)]
        numbers = [int(re.match(r"ts=\d+\.\d{6} gid=(\d+) ", line)[1]) for line in heard]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 10)))
        told = [line.split(" ", 2)[2].strip() for line in heard]
        self.assertEqual(told[:7], ["type=item_get key=a%25b status=not_found clsid=0 cfd=1 size=0",
                                    "type=item_store key=a%25b status=stored cmd=set ttl=60 clsid=0 cfd=1 size=1",
                                    "type=item_get key=a%25b status=found clsid=0 cfd=1 size=1",
                                    "type=item_get key=none status=not_found clsid=0 cfd=1 size=0",
                                    "type=item_get key=none status=not_found clsid=0 cfd=1 size=0",
                                    "type=item_get key=a%25b status=found clsid=0 cfd=1 size=1",
                                    "type=item_store key=a%25b status=not_stored cmd=add ttl=0 clsid=0 cfd=1 size=1"])
        closed = "type=conn_close rip=127.0.0.1 rport={} transport=tcp reason=normal cfd=1"
        self.assertRegex("\n".join(told[7:]), closed.format(r"\d+"))
        self.assertRegex("\n".join(told[7:]), r"type=conn_new rip=127.0.0.1 rport=\d+ transport=tcp cfd=3")
        other = self.connect(server.address)
        other.ask(b"watch evictions\r\n", b"CLIENT_ERROR there is nothing to watch but fetchers, mutations and connevents\r\n")
        self.assertEqual(server.end(), 0)

    def test_watch_may_be_refused(self):
        server = self.serve("--memcache", "0", "-W")
        self.connect(server.address).ask(b"watch\r\n", b"CLIENT_ERROR watch commands not allowed\r\n")

    def test_many(self):
        server = self.serve("--memcache", "0", "-c", "2000", "--threads", "2")
        clients = [self.connect(server.address) for _ in range(500)]
        for number, client in enumerate(clients):
            client.say(b"set key%d 0 0 3\r\n%03d\r\nget key%d\r\n" % (number, number, number))
        for number, client in enumerate(clients):
            expected = b"STORED\r\nVALUE key%d 0 3\r\n%03d\r\nEND\r\n" % (number, number)
            self.assertEqual(client.hear(len(expected)), expected)

    def test_one_that_takes_nothing_disturbs_nobody(self):
        server = self.serve("--memcache", "0", "--threads", "1")
        deaf, other = self.connect(server.address), self.connect(server.address)
        other.ask(b"set key 0 0 100000\r\n" + b"v" * 100000 + b"\r\n", b"STORED\r\n")
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.socket.settimeout(1)
        try:
            for _ in range(1000):
                deaf.say(b"get key\r\n" * 100)
        except TimeoutError:
            pass
        other.ask(b"mg key s\r\n", b"HD s100000\r\n")

    def test_one_that_asks_for_connections_and_takes_nothing_disturbs_nobody(self):
        place = self.path("socket")
        server = self.serve("--memcache", place, "--threads", "1")
        deaf = self.connect(server.address)
        deaf.socket.settimeout(0.5)
        with self.assertRaises(TimeoutError):
            for _ in range(1000):
                deaf.say(b"stats conns\r\n" * 1000)
        other = self.connect(server.address)
        other.socket.settimeout(20)  # the server is the one that would hang
        other.ask(b"mn\r\n", b"MN\r\n")
        other.say(b"stats conns\r\n")
        told = list(iter(other.line, b"END\r\n"))
        self.assertEqual([line.split()[1].split(b":")[1] for line in told], 2 * [b"addr", b"listen_addr", b"secs_since_last_cmd"])

    def test_one_that_has_asked_for_nothing_is_idle_since_it_came(self):
        server = self.serve("--memcache", self.path("socket"), "--threads", "1")
        silent = self.connect(server.address)
        asks = self.connect(server.address)
        asks.say(b"stats conns\r\n")
        told = [line.split() for line in iter(asks.line, b"END\r\n")]
        idle_s = [int(words[2]) for words in told if words[1].endswith(b":secs_since_last_cmd")]
        self.assertEqual(len(idle_s), 2)
        self.assertLess(max(idle_s), 60)
        silent.ask(b"mn\r\n", b"MN\r\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
