#!/usr/bin/env python3
"""Kept inputs of fuzzers: what scripts/fuzz_corpus.py packs and unpacks, and what replay.cc runs, refuses and says of failures.

  fuzz_corpus_test.py FUZZER   failing.cc linked with replay.cc
"""
import hashlib
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import take_paths, temporary_folder  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "fuzz_corpus.py"


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
        self.hexfile = self.folder / "some.hex"

    def assert_refused(self, ended, reason):
        self.assertEqual(ended.returncode, 2, ended)
        self.assertEqual(ended.stdout, "")
        self.assertRegex(ended.stderr, rf"\A[^\n]*{reason}[^\n]*\n\Z")


class Script(Case):
    def files(self, *contents):
        folder = self.folder / "inputs"
        folder.mkdir()
        for i, content in enumerate(contents):
            (folder / str(i)).write_bytes(content)
        return folder

    def packed(self, folder, *arguments, of):
        ended = run(sys.executable, SCRIPT, "pack", folder, self.hexfile, *arguments)
        lines = self.hexfile.read_text().split()
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, f"{len(lines)} of {of} inputs\n", ""))
        return lines

    def test_pack_sorts_by_length_then_content(self):
        self.assertEqual(self.packed(self.files(b"ccc", b"b\n", b"", b"a\xff", b"z", b"z"), of=4), ["7a", "61ff", "620a", "636363"])

    def test_pack_keeps_the_shortest(self):
        folder = self.files(*(bytes(i) for i in range(1, 400)))
        self.assertEqual(len(self.packed(folder, of=399)), 150)
        self.assertEqual(self.packed(folder, 2, of=399), ["00", "0000"])

    def test_pack_keeps_to_48_kib(self):
        folder = self.files(*(bytes([i]) * 1000 for i in range(50)))
        self.assertEqual(len(self.packed(folder, of=50)), 48 * 1024 // 2001)

    def test_unpack_names_files_as_libfuzzer_does(self):
        self.hexfile.write_text("00ff\n61\n")
        ended = run(sys.executable, SCRIPT, "unpack", self.hexfile, self.folder / "new" / "inputs")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        found = {path.name: path.read_bytes() for path in (self.folder / "new" / "inputs").iterdir()}
        self.assertEqual(found, {hashlib.sha1(content).hexdigest(): content for content in (b"\0\xff", b"a")})

    def test_refusals(self):
        for text in ("00\n0\n", "00\n\n", "00\nFF\n", "00\n0x00\n", "00\n 00 \n"):
            self.hexfile.write_text(text)
            self.assert_refused(run(sys.executable, SCRIPT, "unpack", self.hexfile, self.folder / "new"), "some.hex:2: not an input")
            self.assertFalse((self.folder / "new").exists())
        self.hexfile.write_text("")
        self.assert_refused(run(sys.executable, SCRIPT, "unpack", self.hexfile, self.folder / "new"), "no inputs")
        self.assert_refused(run(sys.executable, SCRIPT, "unpack", self.folder / "none.hex", self.folder / "new"), "No such file")
        self.assert_refused(run(sys.executable, SCRIPT, "pack", self.files(b""), self.hexfile), "no inputs")
        self.assert_refused(run(sys.executable, SCRIPT, "pack", self.folder / "none", self.hexfile), "No such file")
        for arguments in ((), ("pack",), ("other", "a", "b"), ("pack", "a", "b", "-1")):
            self.assert_refused(run(sys.executable, SCRIPT, *arguments), "usage")


class Replay(Case):
    def test_runs_all_lines_or_one(self):
        self.hexfile.write_text("00\n3147\n61\n")
        for arguments, count in (((), 3), ((2,), 1)):
            ended = run(FUZZER, self.hexfile, *arguments)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, f"{count} inputs\n", ""))

    def test_an_input_that_fails(self):
        for bad, how in (("aa", r"signal 6 \(Aborted\)"), ("ee03", "exit status 3"), ("ee00", "exit status 0")):
            self.hexfile.write_text(f"00\n{bad}\n00\n")
            for arguments in ((), (2,)):
                ended = run(FUZZER, self.hexfile, *arguments)
                self.assertEqual((ended.returncode, ended.stdout), (1, ""))
                self.assertRegex(ended.stderr, rf"\Areplay: {how}\nreplay: it was this input: {FUZZER} {self.hexfile} 2\n\Z")
            self.assertEqual(run(FUZZER, self.hexfile, 3).returncode, 0)

    def test_refusals(self):
        for text, reason in (("00\n0\n", "some.hex:2: not a whole"), ("00\n\n", "some.hex:2: not a whole"),
                             ("00\nzz\n", "some.hex:2: not hexadecimal"), ("00\nFF\n", "some.hex:2: not hexadecimal"),
                             ("", "no inputs")):
            self.hexfile.write_text(text)
            self.assert_refused(run(FUZZER, self.hexfile), reason)
        self.assert_refused(run(FUZZER, self.folder / "none.hex"), "No such file")
        self.assert_refused(run(FUZZER, self.folder), "")
        self.assert_refused(run(FUZZER), "usage")
        self.hexfile.write_text("00\n")
        for line in ("0", "2", "x"):
            self.assert_refused(run(FUZZER, self.hexfile, line), "no such line")


class Tree(unittest.TestCase):
    def test_each_file_has_its_fuzzer(self):
        fuzzers = {path.stem for folder in ("src", "tools", "bench") for path in (ROOT / folder).rglob("*_fuzz.cc")}
        self.assertEqual({path.stem for path in (ROOT / "tests" / "fuzz").glob("*.hex")}, fuzzers)


if __name__ == "__main__":
    (FUZZER,) = take_paths(1)
    unittest.main(verbosity=2)
