#!/usr/bin/env python3
"""What a server tells of itself: metrics, the dashboard, `spillway top`, logs.  reports_test.py SPILLWAY [unittest arguments]"""
import base64
import errno
import hashlib
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, ONE_LINE, log_event, take_paths  # noqa: E402
from served import Case, Connection, key_of  # noqa: E402

SPILLWAY, = take_paths(1)
Case.spillway = SPILLWAY
DASHBOARD = pathlib.Path(__file__).resolve().parents[2] / "src/server/clients/dashboard.html"


class Metrics(Case):
    def test_pages(self):
        server = self.serve("--memcache", "0", "--metrics", "0")
        self.connect(server.address).ask(b"set a 0 0 1\r\nx\r\nget a\r\n", b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n")
        url = "http://{}:{}".format(*server.metrics)
        with urllib.request.urlopen(f"{url}/metrics", timeout=HANG_SECONDS) as page:
            self.assertIn("version=0.0.4", page.headers["Content-Type"])
            text = page.read().decode()
        self.assertIn('\nspillway_item_calls_total{call="get",result="hit"} 1\n', text)
        self.assertIn("\nspillway_connections 1\n", text)  # who asks is no client
        with self.assertRaises(urllib.error.HTTPError) as other:
            urllib.request.urlopen(f"{url}/other", timeout=HANG_SECONDS)
        self.assertEqual(other.exception.code, 404)
        # One connection may ask again and again.
        asks = http.client.HTTPConnection(*server.metrics, timeout=HANG_SECONDS)
        self.addCleanup(asks.close)
        for method in ("GET", "HEAD", "GET"):
            asks.request(method, "/metrics")
            answer = asks.getresponse()
            self.assertEqual((answer.status, len(answer.read()) > 1000), (200, method == "GET"))
        garbage = self.connect(server.metrics)
        garbage.say(b"x" * 20_000)
        self.assertTrue(garbage.has_ended())
        self.assertEqual(server.end(), 0)

    def ask(self, address, path, method="GET"):
        asks = http.client.HTTPConnection(*address, timeout=HANG_SECONDS)
        self.addCleanup(asks.close)
        asks.request(method, path)
        answer = asks.getresponse()
        return answer, answer.read().decode()

    def test_dashboard(self):
        server = self.serve("--memcache", "0", "--metrics", "0")
        answer, page = self.ask(server.metrics, "/")
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertEqual(page, DASHBOARD.read_text())
        # Browsers run what is in it, and ask nobody else.
        policy = dict(rule.split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split("; "))
        self.assertEqual((policy["default-src"], policy["connect-src"], policy["frame-ancestors"]), ("'none'", "'self'", "'none'"))
        for tag in ("script", "style"):
            [text] = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.S)
            self.assertEqual(policy[f"{tag}-src"], f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'")
        self.assertEqual(set(re.findall(r"https?://[^/'\"]+", page)), {"http://www.w3.org"})  # the name of SVG
        self.assertNotRegex(page, r"\son\w+=|\sstyle=")  # which the policy would not let through
        self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
        head, nothing = self.ask(server.metrics, "/?x=1", "HEAD")
        self.assertEqual((head.status, nothing, int(head.headers["Content-Length"])), (200, "", len(page.encode())))
        for path in ("/dashboard.html", "/metrics/", "//", "/../metrics"):
            self.assertEqual(self.ask(server.metrics, path)[0].status, 404, path)
        for method in ("POST", "DELETE", "OPTIONS"):
            refused = self.ask(server.metrics, "/", method)[0]
            self.assertEqual((refused.status, refused.headers["Allow"]), (405, "GET, HEAD"))

    def test_the_dashboard_draws_what_is_told(self):
        server = self.serve("--memcache", "0", "--metrics", "0")
        told = re.findall(r"^spillway_(\S+) ", self.ask(server.metrics, "/metrics")[1], re.M)
        page = DASHBOARD.read_text()
        drawn = dict(re.findall(r"(\w+): '([^']+)'", re.search(r"const METRIC = \{(.*?)^\};", page, re.M | re.S)[1]))
        self.assertGreater(len(drawn), 30)
        for name, metric in drawn.items():
            pattern = ".*".join(map(re.escape, metric.split("*")))
            self.assertTrue(any(re.fullmatch(pattern, one) for one in told), metric)
            self.assertIn(f"METRIC.{name}", page)
        self.assertEqual(set(re.findall(r"METRIC\.(\w+)", page)), set(drawn))

    def test_the_peak_of_memory_is_the_servers_own(self):
        taken = b"x" * (256 << 20)  # by who starts it
        server = self.serve("--resp", "0")
        del taken
        client = self.connect(server.resp)
        client.say(b"INFO memory\r\n")
        told = client.hear(int(client.line()[1:]))
        peak = int(re.search(rb"used_memory_peak:(\d+)", told)[1])
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        self.assertGreater(peak, 1 << 20)
        self.assertLessEqual(peak, int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)[1]) << 10)

    def top(self, *words):
        return subprocess.run([SPILLWAY, "top", "--once", *words], capture_output=True, text=True, env=CLEAN, timeout=HANG_SECONDS)

    def test_top(self):
        server = self.serve("--memcache", "0", "--metrics", "0")
        self.connect(server.address).ask(b"set a 0 0 1\r\nx\r\nget a\r\n", b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n")
        address, nobody = "{}:{}".format(*server.metrics), "127.0.0.1:1"
        table = self.top(address).stdout.splitlines()
        self.assertEqual(table[0].split()[:3], ["server", "clients", "requests/s"])
        self.assertEqual(table[1].split()[:2], [address, "1"])
        self.assertIn(["item_sets_total", "1", "0"], [line.split() for line in table])
        both = json.loads(self.top("--json", address, nobody).stdout)["servers"]
        self.assertEqual(both[0]["metrics"]["item_sets_total"], 1)
        self.assertIn("Connection refused", both[1]["problem"])
        self.assertIn(f"\n{nobody}", self.top(address, nobody).stdout)
        alone = self.top(nobody)
        self.assertEqual(alone.returncode, 1)
        self.assertRegex(alone.stderr, ONE_LINE)
        self.assertEqual(self.top("{}:{}".format(*server.address)).returncode, 1)  # where no metrics are
        for words in ("host:",), (address, "1"), (address, "--prometheus"):
            self.assertEqual(self.top(*words).returncode, 2)
        for _ in range(16):  # who has asked once, and stays
            asks = http.client.HTTPConnection(*server.metrics, timeout=HANG_SECONDS)
            self.addCleanup(asks.close)
            asks.request("HEAD", "/metrics")
            answer = asks.getresponse()
            self.assertEqual((answer.status, answer.read()), (200, b""))
        full = self.top(address)
        self.assertEqual(full.returncode, 1)
        self.assertRegex(full.stderr, ONE_LINE)
        self.assertIn("takes no more connections that ask for metrics", full.stderr)

    def test_top_waits_for_all_that_do_not_answer_at_the_same_time(self):
        silent = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        for listener in silent:
            self.addCleanup(listener.close)
        begun = time.monotonic()
        told = json.loads(self.top("--json", *("{}:{}".format(*listener.getsockname()) for listener in silent)).stdout)["servers"]
        self.assertLess(time.monotonic() - begun, 12, "each is given up after 5 seconds")
        for server in told:
            self.assertIn("no answer in time", server["problem"])

    def test_top_tells_in_json_too_that_a_server_has_gone(self):
        server = self.serve("--memcache", "0", "--metrics", "0")
        watching = subprocess.Popen([SPILLWAY, "top", "--json", "{}:{}".format(*server.metrics)], stdout=subprocess.PIPE, text=True, env=CLEAN)
        for cleanup in (watching.stdout.close, watching.wait, watching.kill):
            self.addCleanup(cleanup)
        self.assertIn("metrics", json.loads(watching.stdout.readline())["servers"][0])
        self.assertEqual(server.end(), 0)
        told = {}
        while "problem" not in told:
            told = json.loads(watching.stdout.readline())["servers"][0]


class Logs(Case):
    def begin(self, *words, capacity="64M", storage=None):
        """A server, and what it said until it served."""
        command = [SPILLWAY, "serve", "--storage", storage or self.store, "--capacity", capacity, "--log-format", "json", *words]
        process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True, env=CLEAN)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        events = []
        while not events or events[-1]["event"] != "started":
            line = process.stderr.readline()
            self.assertTrue(line, events)
            events.append(log_event(self, line))
        return process, events

    def place_of(self, started):
        host, port = re.search(r" at ([\d.]+):(\d+)$", started["addresses"]).groups()
        return host, int(port)

    def end(self, process, number=signal.SIGTERM):
        process.send_signal(number)
        events = [log_event(self, line) for line in process.stderr]
        return process.wait(HANG_SECONDS), events

    def test_each_line_is_an_object(self):
        process, events = self.begin("--memcache", "127.0.0.1:0", "-k", "-v", "-c", "1", "--memory", "64M", capacity="1G")
        self.assertEqual([event["event"] for event in events], ["words_without_effect", "store_made", "started"])
        started = events[-1]
        place = self.place_of(started)
        self.assertEqual((started["level"], started["addresses"], started["store"], started["items"], started["memory_bytes"]),
                         ("info", "memcache at {}:{}".format(*place), self.store, 0, 64 << 20))
        self.assertLessEqual(started["store_opened_ms"], started["ready_ms"])
        kept = self.connect(place)
        kept.ask(b"mn\r\n", b"MN\r\n")
        self.connect(place).hear(100)
        refused = log_event(self, process.stderr.readline())
        self.assertEqual((refused["event"], refused["most"], refused["speech"]), ("connection_refused", 1, "memcache"))
        kept.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        kept.close()
        closed = log_event(self, process.stderr.readline())
        self.assertEqual((closed["event"], closed["connection"], closed["level"], closed["error"], closed["requests"]),
                         ("connection_closed", 1, "warning", errno.ECONNRESET, 1))
        status, events = self.end(process)
        self.assertEqual(status, 0)
        self.assertEqual([event["event"] for event in events], ["stopping", "stopped"])
        stopping, stopped = events
        self.assertEqual((stopping["reason"], stopping["at_once"]), ("SIGTERM", 0))
        self.assertIsInstance(stopped["store_closed_ms"], int)

    def test_connections_that_end_well_are_told_with_two(self):
        process, events = self.begin("--memcache", "127.0.0.1:0", "-vv")
        with Connection(self.place_of(events[-1])) as client:
            client.ask(b"mn\r\nmn\r\n", b"MN\r\nMN\r\n")
            client.say(b"quit\r\n")
            self.assertTrue(client.has_ended())
        closed, *rest = self.end(process)[1]
        self.assertEqual((closed["event"], closed["level"], closed["error"], closed["peer"].split(":")[0]), ("connection_closed", "info", 0, "127.0.0.1"))
        self.assertEqual([event["event"] for event in rest], ["stopping", "stopped"])

    def test_what_fails(self):
        ended = subprocess.run([SPILLWAY, "serve", "--storage", self.store, "--memcache", "0", "--log-format=json"], capture_output=True, text=True,
                               env=CLEAN, timeout=HANG_SECONDS)
        self.assertEqual(ended.returncode, 2)
        failed, = [log_event(self, line) for line in ended.stderr.splitlines()]
        self.assertEqual((failed["event"], failed["level"], failed["status"]), ("failed", "error", 2))
        self.assertIn("no such file", failed["message"])
        self.refused("--storage", self.store, "--log-format", "xml", says=["'xml'", "text nor json"])

    def test_a_device_that_fails(self):
        self.serve("--memcache", "0").end()
        place, redis = self.path("socket"), self.path("resp")
        process, begun = self.begin("--memcache", place, "--resp", redis, "--metrics", "127.0.0.1:0", storage=f"fault:flush_eio=@4+:[{self.store}]")
        client = self.connect(place)
        deadline = time.monotonic() + HANG_SECONDS
        while time.monotonic() < deadline:
            client.say(key_of(b"value"))
            if client.line().startswith(b"SERVER_ERROR"):
                break
        else:
            self.fail("the device does not fail")
        with urllib.request.urlopen("http://{}:{}/metrics".format(*self.place_of(begun[-1])), timeout=HANG_SECONDS) as page:
            self.assertIn(f"\nspillway_store_error {errno.EIO}\n", page.read().decode())
        asks = self.connect(redis)
        asks.say(b"INFO persistence\r\n")
        told = asks.hear(int(asks.line()[1:])).split()
        self.assertIn(b"rdb_last_bgsave_status:err", told)
        self.assertIn(b"aof_last_write_status:err", told)
        # After a second it is logged, though the client has been told; once.
        hangs = threading.Timer(HANG_SECONDS, process.kill)
        hangs.start()
        logged = []
        while not logged or logged[-1]["event"] != "store_failed":
            line = process.stderr.readline()
            self.assertTrue(line, logged)
            logged.append(log_event(self, line))
        hangs.cancel()
        time.sleep(3)
        status, events = self.end(process)
        events = logged + events
        self.assertEqual(status, 1)
        self.assertEqual([(event["level"], event["error"]) for event in events if event["event"] == "store_failed"], [("error", errno.EIO)])
        self.assertEqual(events[-1]["event"], "failed")
        self.assertIn("may lack the last writes", events[-1]["message"])
        self.assertEqual(events[-1]["level"], "error")

    def test_text_is_what_there_is_else(self):
        server = self.serve("--memcache", "0")
        self.assertEqual(server.end(), 0)
        self.assertRegex(server.said, r"\nspillway: server: stopping: SIGTERM\nspillway: serve: stopped; the store was closed in \d+ ms\n\Z")


class LogFiles(Case):
    def test_a_daemon_has_a_log(self):
        log, moved = pathlib.Path(self.path("log")), pathlib.Path(self.path("log.1"))
        log.write_text("before\n")
        pid, said = self.daemon("-s", self.path("socket"), "--log", log)
        self.assertNotIn("ready after", said)
        log.rename(moved)
        os.kill(pid, signal.SIGHUP)
        os.kill(pid, signal.SIGTERM)
        begun = time.monotonic()
        while not (log.exists() and "stopped" in log.read_text()) and time.monotonic() - begun < HANG_SECONDS:
            time.sleep(0.01)
        self.assertRegex(moved.read_text(), r"\Abefore\nspillway: serve: memcache at .*, ready after \d+ ms\n\Z")
        self.assertRegex(log.read_text(), r"\Aspillway: server: log: has opened the file again\nspillway: server: stopping: SIGTERM\nspillway: serve: stopped; .*\n\Z")

    def logs_to(self, pipe, *words):
        """A server whose log is this pipe, which is made, and who reads there. It serves."""
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        process = subprocess.Popen([SPILLWAY, "serve", "--storage", self.store, "--capacity", "64M", "--log", pipe, *words], stderr=subprocess.DEVNULL, env=CLEAN)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        self.assertEqual(poll.poll(30_000), [(reader, select.POLLIN)])  # and not that whoever wrote there has gone
        self.assertIn(b"ready after", os.read(reader, 4096))
        return process, reader

    def test_a_log_that_is_a_pipe(self):
        os.mkdir(self.path("%p"))  # a name like others
        process, _ = self.logs_to(self.path("%p/log"), "--memcache", "0")
        process.terminate()
        self.assertEqual(process.wait(HANG_SECONDS), 0)

    def test_a_log_that_is_a_full_pipe_holds_up_nobody(self):
        pipe, place = self.path("log"), self.path("socket")
        process, reader = self.logs_to(pipe, "--memcache", place, "--threads", "1", "-vv")
        other = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, other)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(other, b"x" * select.PIPE_BUF)
        for _ in range(3):  # there is a line for the end of each
            client = self.connect(place)
            client.socket.settimeout(20)
            client.ask(b"mn\r\n", b"MN\r\n")
            client.say(b"quit\r\n")
            self.assertTrue(client.has_ended())
        process.terminate()
        self.assertEqual(process.wait(HANG_SECONDS), 0)
        self.assertEqual(set(os.read(reader, 1 << 20)), {ord("x")})

    def test_a_log_that_cannot_be_written(self):
        self.refused("--storage", self.store, "--capacity", "64M", "--memcache", "0", "--log", self.path("none/log"), says=["--log", "No such file"])

    def test_sighup_with_nothing_to_open_or_read_again(self):
        server = self.serve("--memcache", "0")
        server.send_signal(signal.SIGHUP)
        self.assertEqual(server.end(), 0)
        self.assertRegex(server.said, r"\nspillway: server: SIGHUP: there is nothing [^\n]*\nspillway: server: stopping: SIGTERM\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
