#!/usr/bin/env python3
"""The budget of a running program: changed by `spillway budget`, and by itself under pressure.  changes_test.py BIN WORK SCRIPTS [unittest arguments]

Exit status 77 where no control group can be made: that is no pass.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, HANG_SECONDS, SKIPPED, assert_refused, fresh, take_paths  # noqa: E402

BIN, WORK, SCRIPTS = take_paths(3)
SOURCES = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))
import memory_group  # noqa: E402

MIB = 1 << 20
SLOW_SECONDS_MAX = 100
unavailable = []


def setUpModule():
    fresh(WORK)
    for source, flags in ((SOURCES / "held.c", []), (SOURCES.parent / "model" / "model.c", ["-mcx16", "-mavx2", "-pthread"])):
        subprocess.run([BIN / "spillcc", "-O2", "-w", *flags, source, "-o", WORK / source.stem], check=True, env=CLEAN)


def change(pid, size):
    return subprocess.run([BIN / "spillway", "budget", str(pid), size], env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS)


def counters(pid):
    seen = subprocess.run([BIN / "spillway", "top", str(pid), "--once", "--json"], env=CLEAN, check=True, capture_output=True, text=True)
    return json.loads(seen.stdout)["programs"][0]


def wait_until(test, condition, what):
    end = time.monotonic() + HANG_SECONDS
    while not condition():
        if time.monotonic() > end:
            test.fail(f"never: {what()}")
        time.sleep(0.05)


class Held:
    """A program that has written MEGABYTES, and checks them each time that it is asked."""

    def __init__(self, test, megabytes, *options, group=None):
        self.stats = WORK / "held.json"
        self.stats.unlink(missing_ok=True)
        self.child = subprocess.Popen([BIN / "spillway", "run", "--spill-all", "--storage", WORK, "--stats", self.stats, *options, "--",
                                       WORK / "held", str(megabytes)], env=CLEAN, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, preexec_fn=group.enter if group else None)
        test.addCleanup(self.kill)
        self.pid = self.child.pid
        test.assertEqual(self.child.stdout.readline(), "ready\n")

    def check(self, test, word="check"):
        self.child.stdin.write(word + "\n")
        self.child.stdin.flush()
        test.assertEqual(self.child.stdout.readline(), "fine\n")

    def end(self, test):
        out, error = self.child.communicate(timeout=HANG_SECONDS)
        test.assertEqual((self.child.returncode, out), (0, ""), error)
        return json.loads(self.stats.read_text()), error

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.communicate()


class Budget(unittest.TestCase):
    def refused(self, *arguments, says):
        ended = subprocess.run([BIN / "spillway", "budget", *map(str, arguments)], env=CLEAN, capture_output=True, text=True)
        assert_refused(self, ended, *says)

    def test_what_cannot_be(self):
        held = Held(self, 8, "--memory", "8M", "--memory-most", "16M")
        self.refused(held.pid, "17M", says=["can be raised to 16M"])
        self.refused(held.pid, "1000", says=["below the least budget", "1M"])
        self.refused(held.pid, "1M", says=["too small", "at least"])
        self.refused(held.pid, "12Q", says=["12Q"])
        self.refused(held.pid, "999T", says=["machine"])
        self.refused(held.pid, says=["usage"])
        self.refused("me", "1M", says=["'me'"])
        self.refused("--soon", held.pid, "1M", says=["--soon"])
        self.refused(os.getpid(), "1M", says=["does not run Spillway"])
        self.assertEqual(counters(held.pid)["budget_bytes"], 8 * MIB)
        held.check(self)
        statistics, _ = held.end(self)
        self.assertEqual(statistics["memory"]["budget_bytes"], 8 * MIB)

    def test_what_is_pinned_has_room(self):
        held = Held(self, 8, "--memory", "32M", "--memory-most", "64M")
        held.check(self, "pin")
        self.refused(held.pid, "12M", says=["too small", "at least"])
        self.assertEqual(change(held.pid, "48M").returncode, 0)
        held.check(self, "unpin")
        self.assertEqual(change(held.pid, "12M").returncode, 0)
        held.check(self)
        held.end(self)

    def test_a_stopped_program_does_not_answer(self):
        held = Held(self, 1, "--memory", "8M")
        os.kill(held.pid, signal.SIGSTOP)
        ended = change(held.pid, "4M")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertRegex(ended.stderr, r"\Aspillway: process \d+ \(held\) has not answered [^\n]+\n\Z")
        os.kill(held.pid, signal.SIGCONT)
        held.check(self)

    def test_memory_is_given_back_and_taken(self):
        try:
            group = memory_group.MemoryGroup.create(1 << 30, "budget")
        except memory_group.Unavailable as reason:
            unavailable.append(str(reason))
            self.skipTest(str(reason))
        self.addCleanup(group.remove)
        held = Held(self, 128, "--memory", "96M", "--memory-most", "256M", group=group)
        full = group.usage_bytes()
        for size, least, most in (("32M", 24, 32), ("256M", 120, 256), ("64M", 56, 64)):
            ended = change(held.pid, size)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertRegex(ended.stdout, r"\Aprocess \d+ \(held\): budget \S+ \S+, before \S+ \S+\n\Z")
            held.check(self)
            # The budget was 96M: what it is less now is less in the group, about.
            used = lambda: group.usage_bytes() - full + 96 * MIB  # noqa: E731
            wait_until(self, lambda: used() < (most + 8) * MIB, lambda: f"{used() / MIB:.0f}M in use with {size}")
            self.assertGreater(used(), (least - 8) * MIB, size)
        statistics, _ = held.end(self)
        self.assertEqual(statistics["memory"]["budget_bytes"], 64 * MIB)

    def check_threads(self, *options, seconds=8):
        """Halved and doubled again and again, while threads compare all they read with a model."""
        stats = WORK / "model.json"
        child = subprocess.Popen([BIN / "spillway", "run", "--memory", "16M", "--spill-all", "--storage", WORK, "--stats", stats, *options, "--",
                                  WORK / "model", "1", str(seconds), "4", "64"], env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.kill)
        megabytes, changes, refused = 8, 0, ""
        while child.poll() is None:
            ended = change(child.pid, f"{megabytes}M")
            if ended.returncode == 0:
                changes += 1
                megabytes = {8: 32, 32: 16, 16: 64, 64: 8}[megabytes]
            refused = ended.stderr if "budget" in ended.stderr else refused
            time.sleep(0.1)
        out, error = child.communicate()
        self.assertEqual((child.returncode, error), (0, ""), out)
        cache = json.loads(stats.read_text())["cache"]
        print(f"{' '.join(options) or 'plain'}: {out.strip()}; {changes} changes, {cache['evictions']} evictions", flush=True)
        self.assertEqual(refused, "")
        self.assertGreater(cache["evictions"], 5000)
        if changes <= 10 and seconds < SLOW_SECONDS_MAX:  # on a slow machine
            return self.check_threads(*options, seconds=2 * seconds)
        self.assertGreater(changes, 10)

    def test_threads_plain(self):
        self.check_threads()

    def test_threads_chaos(self):
        for seed, page, policy in ((1, "4K", "clock"), (2, "16K", "s3fifo"), (3, "4K", "2q")):
            self.check_threads("--chaos", str(seed), "--page", page, "--policy", policy, seconds=5)


class Pressure(unittest.TestCase):
    def test_goes_down_under_pressure_and_up_again(self):
        limit = 256 * MIB
        try:
            group = memory_group.MemoryGroup.create(limit, "pressure")
        except memory_group.Unavailable as reason:
            unavailable.append(str(reason))
            self.skipTest(str(reason))
        self.addCleanup(group.remove)
        held = Held(self, 192, "--memory", "128M", "--pressure", group=group)
        held.check(self)
        memory = lambda: counters(held.pid)["memory"]  # noqa: E731
        self.assertEqual(memory()["budget_bytes"], 128 * MIB)
        # Another program of the group wants more and more, and reads a file.
        file = WORK / "file"
        file.write_bytes(os.urandom(64 * MIB))
        hog = subprocess.Popen([sys.executable, SOURCES / "hog.py", file, "130"], preexec_fn=group.enter)
        self.addCleanup(hog.kill)
        wait_until(self, lambda: memory()["budget_lowered"] >= 2, memory)
        lowered = memory()
        self.assertLess(lowered["budget_bytes"], 128 * MIB)
        self.assertGreaterEqual(lowered["budget_bytes"], 32 * MIB)
        self.assertGreaterEqual(lowered["pressures"], 2)
        held.check(self)
        hog.kill()
        hog.wait()
        wait_until(self, lambda: memory()["budget_bytes"] == 128 * MIB, memory)
        held.check(self)
        statistics, error = held.end(self)
        self.assertEqual(error, "")
        self.assertGreaterEqual(statistics["memory"]["budget_raised"], 2)
        self.assertEqual(group.kills(), 0)

    def test_nothing_without_the_option(self):
        held = Held(self, 4, "--memory", "8M")
        open_files = [os.readlink(f"/proc/{held.pid}/fd/{name}") for name in os.listdir(f"/proc/{held.pid}/fd")]
        self.assertFalse([path for path in open_files if "eventfd" in path or "pressure" in path])
        statistics, _ = held.end(self)
        self.assertEqual(statistics["memory"]["pressures"], 0)


if __name__ == "__main__":
    ran = unittest.main(verbosity=2, exit=False).result
    if not ran.wasSuccessful():
        sys.exit(1)
    for reason in unavailable:
        print(f"no control group can be made ({reason}): not all is shown")
    sys.exit(SKIPPED if unavailable else 0)
