#!/usr/bin/env python3
"""What spilled programs say with --log-format json: an object in each line.  logs_test.py BIN WORK PROGRAM.c [unittest arguments]"""
import errno
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, HANG_SECONDS, assert_refused, environment, fresh, log_event, take_paths, temporary_folder  # noqa: E402

BIN, WORK, SOURCE = take_paths(3)
PROGRAM, UNCOMPILED = WORK / "program", WORK / "uncompiled"


def setUpModule():
    fresh(WORK)
    subprocess.run([BIN / "spillcc", "-O2", "-w", SOURCE, "-o", PROGRAM], check=True, env=CLEAN)
    subprocess.run(["clang-19", "-O2", "-w", SOURCE, "-o", UNCOMPILED], check=True)


def run(kilobytes=4096, preexec_fn=None, stderr=subprocess.PIPE, **settings):
    variables = environment(**{"memory": "1M", "spill_all": 1, "storage": WORK, "log_format": "json", **settings})
    return subprocess.run([PROGRAM, str(kilobytes)], env=variables, stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=HANG_SECONDS, preexec_fn=preexec_fn)


class Logs(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self, WORK)

    def works(self, ended):
        self.assertEqual((ended.returncode, ended.stdout), (0, "filled\nend\n"), ended)
        return ended

    def events(self, ended):
        return [log_event(self, line) for line in ended.stderr.splitlines()]

    def first(self, name, events):
        self.assertIn(name, [event["event"] for event in events])
        return next(event for event in events if event["event"] == name)

    def ends(self, ended, status, error):
        """What it said as it ended."""
        self.assertEqual(ended.returncode, status, ended)
        failed = self.events(ended)[-1]
        self.assertEqual((failed["event"], failed["level"], failed["status"], failed["error"]), ("failed", "error", status, error))
        return failed["message"]


class Compiled(Logs):
    def test_each_line_is_an_object(self):
        events = self.events(self.works(run(storage=f"fault:seed=7,write_eio=1/10:[{self.folder}]", verbose=1)))
        failed = self.first("write_failed", events)
        self.assertEqual((failed["level"], failed["error"]), ("error", errno.EIO))
        self.assertIn(str(self.folder)[-60:], failed["device"])
        self.assertEqual(failed["message"], f"cannot write to {failed['device']}: input/output error; pages stay in memory and are tried again")
        summary = self.first("summary", events)
        self.assertEqual((summary["level"], summary["budget_bytes"], summary["device"]), ("info", 1 << 20, failed["device"]))
        self.assertIn(f"; misses {summary['misses']}, evictions {summary['evictions']}, read {summary['read_bytes'] >> 20}M, ", summary["message"])
        self.assertGreater(summary["evictions"], 500)

    def test_texts_of_any_bytes(self):
        name = f'{self.folder}/no "such"\\folder\t\udcff/stats.json'  # a byte there is no UTF-8
        event, = self.events(self.works(run(kilobytes=4, stats=name)))
        name = name.replace("\udcff", "\ufffd")
        self.assertEqual((event["event"], event["file"], event["error"]), ("statistics_not_written", name, errno.ENOENT))
        self.assertEqual(event["message"], f"cannot write statistics to {name}: no such file or directory")

    def test_why_it_ends(self):
        self.assertIn("cannot read page", self.ends(run(storage=f"fault:read_eio=@50+:[{self.folder}]"), 134, errno.EIO))
        missing = self.folder / "missing" / "file"
        self.assertIn("no such directory", self.ends(run(storage=missing), 2, errno.ENOENT))

    def test_wrong_options_are_told_as_text(self):
        assert_refused(self, run(log_format="xml"), "log_format: 'xml' is not known; give text or json")
        assert_refused(self, run(page="12K"), "page: 12K")
        for words in (("--log-format", "xml"), ("--log-format=json", "--page", "12K")):
            ended = subprocess.run([BIN / "spillway", "run", *words, "--", PROGRAM, "4"], env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS)
            assert_refused(self, ended, words[-1])

    def test_text_is_what_there_is_else(self):
        ended = run(storage=f"fault:read_eio=@50+:[{self.folder}]", log_format="text")
        self.assertEqual(ended.returncode, 134, ended)
        self.assertRegex(ended.stderr, r"\Aspillway: cannot read page [^\n]*\n\Z")

    def test_nobody_who_reads(self):
        storage = f"fault:seed=7,write_eio=1/10:[{self.folder}]"
        with open("/dev/full", "w") as full:
            self.works(run(storage=storage, verbose=1, stderr=full))
        self.works(run(storage=storage, verbose=1, stderr=None, preexec_fn=lambda: os.close(2)))


class Preloaded(Logs):
    def started(self, *words, storage):
        return subprocess.run([BIN / "spillway", "run", "--memory", "4M", "--storage", storage, "--log-format", "json", *words, "--", UNCOMPILED, "16000"],
                              env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS)

    def test_each_line_is_an_object(self):
        events = self.events(self.works(self.started("--verbose", storage=f"fault:seed=7,write_eio=1/10:[{self.folder}]")))
        failed = self.first("write_failed", events)
        self.assertEqual((failed["level"], failed["error"]), ("error", errno.EIO))
        self.assertEqual(self.first("summary", events)["budget_bytes"], 4 << 20)

    def test_why_it_ends(self):
        self.assertIn("storage is full", self.ends(self.started(storage="memory:4M"), 134, errno.ENOSPC))

    def test_what_runs_natively(self):
        event, = self.events(self.works(self.started("--preload=0", storage=self.folder)))
        self.assertEqual((event["event"], event["level"], event["program"]), ("not_spilled", "warning", str(UNCOMPILED)))


if __name__ == "__main__":
    unittest.main(verbosity=2)
