#!/usr/bin/env python3
"""`spillway persist check` as people first use it, by mistake too: one line says what is wrong and what to do. Arguments: the build, a folder to work in."""
import json
import pathlib
import re
import signal
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, assert_refused, built_in, shown_on_a_terminal, temporary_folder  # noqa: E402
from checked import COMPILERS, SPILLWAY, WORK, compile_all, recovery, spillway  # noqa: E402

TABLE = WORK / "table.told"
WINDOW_BYTES = 1 << 20  # before the first record of a log
# Stores to a file that it maps and tells nobody of; with another word, whether what is stored there is in its order. With two it unmaps the file, as any program may, and ends.
MAPPED = """
#include <fcntl.h>
#include <immintrin.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char** words) {
  int file = open(words[1], O_RDWR | O_CREAT, 0600);
  if (count < 2 || file < 0 || ftruncate(file, 4096) != 0) return 2;
  volatile long* to = (long*)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (count == 3) return !((to[8] || !to[16]) && (to[16] || !to[24]));
  for (long i = 1; i < 4; ++i) {
    to[i * 8] = i;
    _mm_clwb((void*)&to[i * 8]);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  }
  if (count == 4) return munmap((void*)to, 4096);
  abort();
}
"""


def setUpModule():
    compile_all("table")
    (WORK / "mapped.c").write_text(MAPPED)
    built_in(WORK, *COMPILERS["told"], "-O0", "-g", "-mclwb", "mapped.c", "-o", "mapped")


class Usage(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)
        self.out = self.folder / "out"
        self.program = ["--", TABLE, "run", self.folder / "memory", 0]

    def assert_wrong(self, says, *arguments):
        assert_refused(self, spillway(*arguments), says)

    def test_wrong_words(self):
        for says, *arguments in [
                ("no subcommand",), ("nothing", "nothing"), ("either", "check"), ("--nothing", "check", "--nothing"),
                ("--images", "check", "--images", "1", "--", "true"), ("--bugs", "check", "--bugs", "0", "--", "true"),
                ("--seed needs an argument", "check", "--seed"), ("either", "check", "--out", self.out, "--log", "x", "--", "true"),
                ("/nowhere/program", "check", "--out", self.out, "--", "/nowhere/program"),
                ("names no folder", "check", "--out=", "--", "true"),
                ("--out: cannot write '/proc/self/report.json'", "check", "--out", "/proc/self", *self.program),
                ("--ignore: it names nothing", "check", "--out", self.out, "--ignore", "", *self.program),
                ("has no {}", "check", "--out", self.out, "--recover", "fsck image", *self.program),
                ("behind PROGRAM", "check", "--out", self.out, TABLE, "--recover", "fsck {}"),
                ("behind PROGRAM", "check", "--out", self.out, TABLE, "--seed=1")]:
            with self.subTest(says, arguments=arguments):
                self.assert_wrong(says, *arguments)
        self.assertFalse((self.folder / "memory").exists())

    def test_a_recovery_that_cannot_be_run(self):
        self.assert_wrong("not found", "check", "--out", self.out, "--recover", "/nowhere/fsck {}", *self.program)
        self.assert_wrong("denied", "check", "--out", self.out, "--recover", f"{WORK}/mapped.c {{}}", *self.program)
        self.assert_wrong("{2}, but the program mapped 1 file", "check", "--out", self.out, "--recover", "cmp {} {2}", *self.program)

    def test_a_recovery_without_an_image(self):
        spillway("check", "--out", self.out, *self.program)
        log = self.folder / "beginning"
        log.write_bytes((self.out / "log").read_bytes()[:WINDOW_BYTES])
        self.assert_wrong("no mapping was recorded", "check", "--out", self.out, "--log", log, "--recover", "fsck {}")
        ended = spillway("check", "--out", self.out, "--log", log)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended)

    def test_a_recovery_that_never_succeeds(self):
        ended = spillway("check", "--out", self.out, "--recover", "false {}", "--images", 2, *self.program)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("the recovery failed on every image; does it succeed at all?\n", ended.stdout)

    def test_a_program_that_records_nothing(self):
        for ending, *words in [("'true' recorded nothing", "true"), ("'false' ended with exit status 1 and recorded nothing", "false"),
                               (f"'{WORK}/table.plain' recorded nothing", WORK / "table.plain", "run", self.folder / "memory", 0)]:
            self.assert_wrong(ending + ": it was not compiled by spillcc -fspill-persist=record", "check", "--out", self.out, "--", *words)

    def test_words_after_the_separator_are_the_programs(self):
        self.assert_wrong("'true' recorded nothing", "check", "--out", self.out, "--", "true", "--recover", "x")

    def test_logs_that_are_none(self):
        spillway("check", "--out", self.out, *self.program)
        whole = (self.out / "log").read_bytes()
        for content, says in [(b"text" * 100, "is not a log of a recorded program"), (b"", "is not a log"),
                              (whole[:8] + struct.pack("<I", 99) + whole[12:], "of another version")]:
            path = self.folder / "other"
            path.write_bytes(content)
            self.assert_wrong(says, "check", "--out", self.out, "--log", path)
        self.assert_wrong("cannot read", "check", "--out", self.out, "--log", self.folder / "nowhere")
        self.assert_wrong("is a folder", "check", "--out", self.out, "--log", self.folder)

    def test_a_program_that_is_killed(self):
        ended = spillway("check", "--out", self.out, "--recover", recovery("table", 0), "--images", 4, "--", "sh", "-c",
                         f"{TABLE} run {self.folder}/memory 0; kill -9 $$")
        self.assertEqual(ended.returncode, 0, ended)
        self.assertIn(f"'sh' ended with signal {int(signal.SIGKILL)} (Killed); what it did before is checked\n", ended.stderr)

    def test_a_program_that_is_interrupted(self):
        """As by Ctrl-C, which the check gets, too, and does not end by."""
        ended = spillway("check", "--out", self.out, "--", "sh", "-c", f"{TABLE} run {self.folder}/memory 0; kill -INT $PPID $$")
        self.assertEqual(ended.returncode, 0, ended)
        self.assertIn(f"'sh' ended with signal {int(signal.SIGINT)} (Interrupt); what it did before is checked\n", ended.stderr)
        self.assertTrue((self.out / "report.json").exists())

    def test_a_program_that_tells_of_no_mapping_and_crashes(self):
        """What it flushes is found. The fences are those of locked instructions."""
        ended = spillway("check", "--out", self.out, "--recover", f"{WORK}/mapped {{}} verify", "--", WORK / "mapped", self.folder / "memory")
        self.assertEqual(ended.returncode, 0, ended)
        self.assertRegex(ended.stderr, r"ended with signal 6 \(Aborted\)")
        self.assertIn("the program did not come to its end", ended.stdout)
        self.assertIn(" images", ended.stdout)
        report = json.loads((self.out / "report.json").read_text())
        self.assertEqual((report["findings"], report["is_ended"]), ([], False))
        self.assertGreaterEqual(report["recovery"]["images"], 3)

    def test_a_program_that_tells_of_no_mapping_and_unmaps_it(self):
        ended = spillway("check", "--out", self.out, "--recover", f"{WORK}/mapped {{}} verify", "--", WORK / "mapped", self.folder / "memory", "unmap", "it")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended)
        report = json.loads((self.out / "report.json").read_text())
        self.assertEqual((report["findings"], report["is_ended"]), ([], True))
        self.assertGreaterEqual(report["recovery"]["images"], 3)

    def test_two_programs_are_not_one(self):
        ended = spillway("check", "--out", self.out, "--", "sh", "-c",
                         f"{TABLE} run {self.folder}/memory 0 && {TABLE} run {self.folder}/other 0")
        self.assertIn("'sh' ended with exit status 2", ended.stderr)
        self.assertIn("another process records there", ended.stderr)

    def test_what_an_earlier_check_left_is_gone(self):
        ended = spillway("check", "--out", self.out, "--recover", "false {}", "--bugs", 1, *self.program)
        self.assertTrue((self.out / "bug-1.image").exists(), ended)
        (self.out / "bug-list").write_text("somebody's")
        spillway("check", "--out", self.out, *self.program)
        self.assertEqual(sorted(path.name for path in self.out.iterdir()), ["bug-list", "log", "log.1", "report.json"])

    def test_findings_of_others_are_left_out(self):
        said = {}
        for name in ("nothing", "write_record", "table.c", TABLE.name):
            (self.folder / "memory").unlink(missing_ok=True)
            ended = spillway("check", "--out", self.out, "--ignore", name, "--", TABLE, "run", self.folder / "memory", 1)
            said[name] = (ended.returncode, "missing flush" in ended.stdout, "redundant fence" in ended.stdout)
        self.assertEqual(said, {"nothing": (1, True, True), "write_record": (0, False, False), "table.c": (0, False, False), TABLE.name: (0, False, False)})

    def test_progress_on_a_terminal(self):
        def check(terminal):
            ended = subprocess.run([SPILLWAY, "persist", "check", "--out", self.out, "--recover", "sleep 0.05; : {}", "--crash-points", "12", "--images",
                                    "2", *map(str, self.program)], stderr=terminal, stdout=subprocess.PIPE, text=True, env={**CLEAN, "TERM": "xterm"}, timeout=HANG_SECONDS)
            self.assertEqual(ended.returncode, 0, ended.stdout)
            self.assertNotIn("\x1b", ended.stdout)
            self.assertTrue(re.search(r"no bugs\n\Z", ended.stdout), ended.stdout)

        shown = shown_on_a_terminal(check).decode()
        self.assertRegex(shown, r"\r\x1b\[K\d+ of 12 crash points, \d+ images, 0 bugs")
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)

    def test_help(self):
        for arguments in (("--help",), ("check", "--help")):
            ended = spillway(*arguments)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertIn("usage: spillway persist", ended.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
