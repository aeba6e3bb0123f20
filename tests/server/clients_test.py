#!/usr/bin/env python3
"""Clients that people have, each with a session as it is used: memccapable's whole suite, pymemcache, redis-cli, redis-benchmark, redis-py.

  clients_test.py SPILLWAY
"""
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import pymemcache
import redis

from served import Server
from support import HANG_SECONDS

SPILLWAY = sys.argv.pop(1)
MEMCCAPABLE_TESTS = 54


class ClientsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="spillway-")
        self.addCleanup(self.folder.cleanup)
        self.server = Server(SPILLWAY, "--storage", f"{self.folder.name}/store", "--capacity", "64M", "--memory", "64M",
                             "--memcache", "0", "--resp", "0")
        self.addCleanup(self.server.__exit__)

    def run_tool(self, *words, told=None):
        self.assertTrue(shutil.which(words[0]), f"{words[0]} is not there; scripts/install-deps.sh installs it")
        return subprocess.run([str(word) for word in words], input=told, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


class Memccapable(ClientsTest):
    def test_all(self):
        ended = self.run_tool("memccapable", "-h", self.server.address[0], "-p", self.server.address[1], "-t", 10)
        lines = ended.stdout.splitlines()
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertEqual(sum("[pass]" in line for line in lines), MEMCCAPABLE_TESTS, ended.stdout)
        self.assertFalse([line for line in lines if "[FAIL]" in line or "[skip]" in line])


class Pymemcache(ClientsTest):
    def test_session(self):
        client = pymemcache.Client(self.server.address, default_noreply=False, timeout=HANG_SECONDS)
        self.addCleanup(client.close)
        self.assertTrue(client.version().startswith(b"1.6."))
        self.assertTrue(client.set("key", b"value", expire=100, flags=7))
        self.assertEqual(client.get("key"), b"value")
        self.assertIsNone(client.get("none"))
        self.assertEqual(client.get("none", b"other"), b"other")
        self.assertFalse(client.add("key", b"x"))
        self.assertTrue(client.replace("key", b"val"))
        self.assertTrue(client.append("key", b"ue"))
        self.assertTrue(client.prepend("key", b"a "))
        value, cas = client.gets("key")
        self.assertEqual(value, b"a value")
        self.assertTrue(client.cas("key", b"changed", cas))
        self.assertFalse(client.cas("key", b"again", cas))
        self.assertIsNone(client.cas("none", b"x", b"1"))
        self.assertEqual(client.set_many({f"many{i}": str(i).encode() * 1000 for i in range(200)}), [])
        found = client.get_many([f"many{i}" for i in range(201)])
        self.assertEqual(found, {f"many{i}": str(i).encode() * 1000 for i in range(200)})
        self.assertTrue(client.delete_many([f"many{i}" for i in range(100)]))
        self.assertEqual(len(client.gets_many([f"many{i}" for i in range(200)])), 100)
        client.set("number", b"10")
        self.assertEqual((client.incr("number", 5), client.decr("number", 20), client.incr("none", 1)), (15, 0, None))
        self.assertTrue(client.touch("key", 50))
        self.assertFalse(client.touch("none", 50))
        large = bytes(range(256)) * 3900
        self.assertTrue(client.set("large", large))
        self.assertEqual(client.get("large"), large)
        with self.assertRaises(pymemcache.exceptions.MemcacheError):
            client.set("larger", large * 2)
        self.assertGreater(client.stats()[b"curr_items"], 100)
        self.assertTrue(client.flush_all())
        self.assertIsNone(client.get("large"))
        client.quit()


class RedisTools(ClientsTest):
    def ask(self, *words):
        ended = self.run_tool("redis-cli", "-h", self.server.resp[0], "-p", self.server.resp[1], *words)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout.rstrip("\n")

    def test_redis_cli(self):
        self.assertEqual(self.ask("ping"), "PONG")
        self.assertEqual(self.ask("set", "key", "a value", "ex", "100"), "OK")
        self.assertEqual(self.ask("get", "key"), "a value")
        self.assertIn(self.ask("ttl", "key"), ("99", "100"))
        self.assertEqual(self.ask("-3", "get", "none"), "")
        self.assertEqual(self.ask("mset", "a", "1", "b", "2"), "OK")
        self.assertEqual(self.ask("mget", "a", "none", "b"), "1\n\n2")
        self.assertEqual(self.ask("incrby", "a", "41"), "42")
        self.assertEqual(sorted(self.ask("--scan").splitlines()), ["a", "b", "key"])
        self.assertEqual(self.ask("del", "a", "b", "c"), "2")
        self.assertIn("redis_version:", self.ask("info", "server"))
        self.assertIn("ERR unknown command", self.ask("lpush", "list", "x"))
        self.assertEqual(self.ask("flushdb"), "OK")
        self.assertEqual(self.ask("dbsize"), "0")
        requests = "".join(f"SET pipe{i} {i}\r\n" for i in range(1000))
        ended = self.run_tool("redis-cli", "-h", self.server.resp[0], "-p", self.server.resp[1], "--pipe", told=requests)
        self.assertIn("errors: 0, replies: 1000", ended.stdout)
        self.assertEqual(self.ask("get", "pipe999"), "999")

    def test_redis_benchmark(self):
        for pipeline in (1, 16):
            ended = self.run_tool("redis-benchmark", "-h", self.server.resp[0], "-p", self.server.resp[1], "-t", "ping,set,get,incr,mset",
                                  "-n", 2000, "-r", 1000, "-P", pipeline, "-d", 100, "--csv")
            self.assertEqual(ended.returncode, 0, ended.stderr)
            tests = [line.split(",")[0].strip('"') for line in ended.stdout.splitlines()]
            self.assertTrue({"SET", "GET", "INCR", "MSET (10 keys)"} <= set(tests), ended.stdout)


class RedisPy(ClientsTest):
    def test_any_connection_goes_on_with_a_scan(self):
        keys = sorted(f"key{i}".encode() for i in range(3000))
        clients = [redis.Redis(*self.server.resp, socket_timeout=HANG_SECONDS, single_connection_client=True) for _ in range(8)]
        clients[0].mset({key: "v" for key in keys})
        for first in range(2):  # the workers have connections by turns
            cursor, found = 0, []
            for number in range(100):
                cursor, some = clients[(first + number) % len(clients)].scan(cursor, count=100)
                found += some
                if cursor == 0:
                    break
            self.assertEqual(sorted(found), keys)
        with self.assertRaisesRegex(redis.ResponseError, "cursor is not known"):
            clients[0].scan(4711)
        # As a pool's clients do, many at a time; none stays behind.
        with redis.Redis(*self.server.resp, socket_timeout=HANG_SECONDS) as pooled, ThreadPoolExecutor(6) as threads:
            for listed in threads.map(lambda _: sorted(pooled.scan_iter(count=50)), range(24)):
                self.assertEqual(listed, keys)
        for client in clients:
            client.close()

    def test_session(self):
        with redis.Redis(*self.server.resp, socket_timeout=HANG_SECONDS) as client:
            self.assertTrue(client.ping())
            self.assertTrue(client.set("key", "value", ex=100))
            self.assertEqual(client.get("key"), b"value")
            self.assertTrue(90 < client.ttl("key") <= 100)
            self.assertIsNone(client.set("key", "x", nx=True))
            self.assertEqual(client.set("key", "new", get=True), b"value")
            self.assertTrue(client.persist("key") is False and client.ttl("key") == -1)
            self.assertTrue(client.expire("key", 50))
            self.assertEqual(client.getex("key", persist=True), b"new")
            self.assertEqual((client.getset("key", "1"), client.incr("key", 9), client.decr("key")), (b"new", 10, 9))
            self.assertEqual((client.append("key", "xyz"), client.strlen("key"), client.getrange("key", 1, -2)), (4, 4, b"xy"))
            self.assertEqual(client.getdel("key"), b"9xyz")
            self.assertTrue(client.mset({f"many{i}": "v" * i for i in range(300)}))
            self.assertEqual(client.mget([f"many{i}" for i in range(300)]), [b"v" * i for i in range(300)])
            self.assertEqual(sorted(client.scan_iter(match="many29*", count=50)), sorted(f"many{i}".encode() for i in [29, *range(290, 300)]))
            with client.pipeline(transaction=False) as pipe:
                for i in range(300):
                    pipe.set(f"pipe{i}", i)
                    pipe.get(f"pipe{i}")
                    pipe.delete(f"many{i}")
                results = pipe.execute()
            self.assertEqual(results[1::3], [str(i).encode() for i in range(300)])
            self.assertEqual(results[2::3], [1] * 300)
            self.assertEqual(client.exists("pipe0", "pipe1", "none"), 2)
            self.assertEqual((client.type("pipe0"), client.dbsize()), (b"string", 300))
            self.assertGreaterEqual(client.info("keyspace")["db0"]["keys"], 300)
            large = bytes(range(256)) * 3900
            client.set("large", large)
            self.assertEqual(client.get("large"), large)
            with self.assertRaises(redis.ResponseError):
                client.lpush("list", "x")
            self.assertTrue(client.flushdb())
            self.assertEqual(client.dbsize(), 0)

    def test_transactions(self):
        with redis.Redis(*self.server.resp, socket_timeout=HANG_SECONDS) as client, redis.Redis(*self.server.resp, socket_timeout=HANG_SECONDS) as other:
            with client.pipeline() as pipe:  # a transaction unless it is told otherwise
                pipe.set("a", 1).incr("a").get("a").mget("a", "none").expire("a", 100)
                self.assertEqual(pipe.execute(), [True, 2, b"2", [b"2", None], True])
            many = {f"many{i}": "v" * i for i in range(300)}
            with client.pipeline() as pipe:  # as Django's cache.set_many does it
                pipe.mset(many)
                for key in many:
                    pipe.expire(key, 100)
                self.assertEqual(pipe.execute(), [True] * 301)
            self.assertTrue(90 < client.ttl("many299") <= 100)
            with client.pipeline() as pipe:
                pipe.watch("a")
                self.assertEqual(pipe.get("a"), b"2")
                other.set("a", "2")
                pipe.multi()
                pipe.set("a", 3)
                with self.assertRaises(redis.WatchError):
                    pipe.execute()
            self.assertEqual(client.get("a"), b"2")

            def add_one(pipe):
                number = int(pipe.get("a"))
                pipe.multi()
                pipe.set("a", number + 1)

            with ThreadPoolExecutor(4) as threads:
                for result in threads.map(lambda _: client.transaction(add_one, "a"), range(100)):
                    self.assertEqual(result, [True])
            self.assertEqual(client.get("a"), b"102")
            with client.pipeline() as pipe:
                results = pipe.set("text", "x").incr("text").set("after", 1).execute(raise_on_error=False)
            self.assertEqual((results[0], type(results[1]), results[2]), (True, redis.ResponseError, True))
            with client.pipeline() as pipe:
                pipe.set("not", "set").execute_command("LPUSH", "list", "x")
                with self.assertRaisesRegex(redis.ResponseError, "unknown command"):
                    pipe.execute()
            self.assertIsNone(client.get("not"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
