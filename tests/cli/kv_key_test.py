#!/usr/bin/env python3
"""`spillway kv --key-file`: the store is one under its key alone.  kv_key_test.py SPILLWAY [unittest arguments]

kv_case.py says how what is wrong ends.
"""
import os
import unittest

from kv_case import Case, dump_of, spillway


class Key(Case):
    def setUp(self):
        super().setUp()
        self.key = self.make_key("key")

    def make_key(self, name, content=None, mode=0o600):
        path = self.folder / name
        path.write_bytes(os.urandom(64) if content is None else content)
        path.chmod(mode)
        return path

    def with_key(self, *words):
        return self.done(*words, "--key-file", self.key)

    def test_nothing_of_it_can_be_read_on_the_medium(self):
        records = [(b"planted-key-%d" % i, b"planted-value " * (1 + 7 * i)) for i in range(200)]
        for options, is_found in (((), True), (("--key-file", self.key), False)):
            device = self.folder / f"store-{is_found}"
            self.done("make", device, "--capacity", "16M", *options)
            self.done("load", device, "-", *options, give=dump_of(*records))
            self.done("delete", device, "planted-key-0", *options)
            content = device.read_bytes()
            self.assertGreater(len(content) - content.count(0), 1 << 20)
            for planted in (b"planted-key", b"planted-value", b"planted"):
                self.assertEqual(planted in content, is_found, planted)
            self.assertEqual(self.done("get", device, "planted-key-3", *options), records[3][1])

    def test_each_subcommand(self):
        self.with_key("make", self.device, "--capacity", "16M")
        self.with_key("put", self.device, "key", "value")
        self.with_key("put", self.device, "other", "x")
        self.assertEqual(self.with_key("get", self.device, "key"), b"value")
        self.with_key("delete", self.device, "other")
        self.assertEqual(self.with_key("list", self.device, "--values"), b"key\tvalue\n")
        dump = self.with_key("dump", self.device, "-")
        self.assertEqual(dump, dump_of((b"key", b"value")))
        self.done("load", self.device, "-", "--key-file", self.key, give=dump)
        self.assertIn(b"segments", self.with_key("stats", self.device))
        self.with_key("compact", self.device)
        self.assertRegex(self.with_key("check", self.device), rb": clean\n\Z")
        self.assertRegex(spillway("check", "--key-file", self.key, self.device).out, rb": clean\n\Z")
        # The same by a device string, and on a stripe.
        self.assertEqual(self.done("get", f"encrypt:key={self.key}:[aio:{self.device}]", "key"), b"value")
        stripe = f"stripe:[{self.folder}/a,{self.folder}/b]"
        self.with_key("make", stripe, "--capacity", "16M")
        self.with_key("put", stripe, "key", "value")
        self.assertEqual(self.with_key("get", stripe, "key"), b"value")

    def is_left_alone(self, *options):
        before = self.device.read_bytes()
        for words in (["get", self.device, "k"], ["put", self.device, "k", "v"], ["delete", self.device, "k"], ["list", self.device],
                      ["dump", self.device, "-"], ["load", self.device, "/dev/null"], ["stats", self.device], ["compact", self.device],
                      ["check", self.device]):
            self.refused(*words, *options, says=[str(self.device), "holds no store, or one under another key", "--key-file"])
        self.refused("make", self.device, *options, says="has content")
        self.assertEqual(self.device.read_bytes(), before)

    def test_without_its_key_there_is_none(self):
        self.with_key("make", self.device, "--capacity", "16M")
        self.with_key("put", self.device, "key", "value")
        self.is_left_alone()
        self.is_left_alone("--key-file", self.make_key("other"))
        self.assertEqual(self.with_key("get", self.device, "key"), b"value")

    def test_info_says_what_it_is_to_who_has_the_key(self):
        self.with_key("make", self.device, "--capacity", "16M")
        other = self.make_key("other")
        for device, is_told in ((f"encrypt:key={self.key}:[{self.device}]", True), (self.device, False), (f"encrypt:key={other}:[{self.device}]", False)):
            ended = spillway("info", device)
            self.assertEqual((ended.status, ended.err), (0, ""), ended)
            self.assertEqual(b"this is a key-value store" in ended.out, is_told, ended)
            self.assertEqual(b"this file has content" in ended.out, not is_told, ended)

    def test_a_store_without_a_key_is_none_under_one(self):
        self.make()
        self.put("key", b"value")
        self.is_left_alone("--key-file", self.key)
        self.assertEqual(self.get("key"), b"value")

    def test_a_key_that_would_end_is_refused(self):
        self.refused("make", f"encrypt:[{self.device}]", "--capacity", "16M", says=["needs a key", "encrypt:key=FILE:[DEVICE]"])
        self.assertFalse(self.device.exists())

    def test_keys_that_are_none(self):
        for key, says in ((self.folder / "none", "no such file"), (self.folder, "not a file"),
                          (self.make_key("short", b"k" * 63), "63 bytes"), (self.make_key("zeros", bytes(64)), "halves"),
                          (self.make_key("open", mode=0o644), "chmod 600"), ("", "names no file"), ("a[b", "no path with [")):
            for words in (["make", self.device, "--capacity", "16M"], ["get", self.device, "k"]):
                self.refused(*words, f"--key-file={key}", says=says)
            self.assertFalse(self.device.exists())
        self.refused("get", self.device, "k", "--key-file", says="--key-file needs a FILE")


if __name__ == "__main__":
    unittest.main(verbosity=2)
