#!/usr/bin/env python3
"""Clients of Java's and Go's programs, each with a session that looks at every answer: spymemcached, jedis, gomemcache, go-redis.

  foreign_clients_test.py SPILLWAY

They are built from java_clients and go_clients first, by Maven and Go, which fetch what they need.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from served import Case
from support import HANG_SECONDS, take_paths

Case.spillway, = take_paths(1)
HERE = pathlib.Path(__file__).resolve().parent


def build(*words, folder):
    assert shutil.which(words[0]), f"{words[0]} is not there; scripts/install-deps.sh installs it"
    built = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr


class ForeignClients(Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="spillway-clients-")
        cls.addClassCleanup(folder.cleanup)
        cls.built = folder.name
        # Go's compiler is the one that is there.
        os.environ["GOTOOLCHAIN"] = "local"
        build("mvn", "-q", "-B", f"-Doutput={cls.built}", "package", folder=HERE / "java_clients")
        # Git may refuse to tell of a tree that is somebody else's.
        build("go", "build", "-buildvcs=false", "-o", f"{cls.built}/go_clients", ".", folder=HERE / "go_clients")

    def passes(self, *words):
        ended = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertRegex(ended.stdout, r"^\d{4,} checks passed$")

    def java(self, session, address, *words):
        self.passes("java", "-cp", f"{self.built}/classes:{self.built}/dependency/*", f"spillway.{session}", *address, *words)

    def start(self, *words):
        return self.serve("--memcache", "0", "--resp", "0", "--memory", "64M", *words)

    def test_spymemcached(self):
        self.java("Spymemcached", self.start().address)

    def test_jedis(self):
        self.java("JedisSession", self.start().resp)

    def test_go(self):
        server = self.start()
        self.passes(f"{self.built}/go_clients", "{}:{}".format(*server.address), "{}:{}".format(*server.resp))

    def test_users(self):
        with open(self.path("accounts"), "w", encoding="ascii") as file:
            file.write("alice:one\n")
        server = self.start("--password-file", self.path("accounts"))
        self.java("Spymemcached", server.address, "alice", "one")
        self.java("JedisSession", server.resp, "alice", "one")


if __name__ == "__main__":
    unittest.main(verbosity=2)
