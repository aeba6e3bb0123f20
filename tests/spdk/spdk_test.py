#!/usr/bin/env python3
"""Storage by SPDK over NVMe/TCP on loopback.

    spdk_test.py BUILD NVMF_TGT conformance NAME     conformance_test.cc on it: plain, bounced, faulty or striped
    spdk_test.py BUILD NVMF_TGT behaviour [TEST...]  targets that are killed, hung, wrong, silent
    spdk_test.py BUILD NVMF_TGT program [TEST...]    programs that spill there

NVMF_TGT is SPDK's target; exit status 77 if there is none, or the backend was not built.
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "device")]
from driven import GOOD, DeviceTests, failed_conformance, run_cases  # noqa: E402
from spdk_target import NQN, Target, program_of  # noqa: E402
from support import CLEAN, Failure, Skipped, status_of  # noqa: E402

ENXIO, EIO, ENOTSUP, EMFILE, ETIMEDOUT = 6, 5, 95, 24, 110
ANSWER_SECONDS_MAX = 200  # a driver that lasts longer hangs
build, target = None, None


def needed(program):
    if not (build / "lib" / "libspillway-spdk.so").exists():
        raise Skipped("built without SPDK: pkg-config did not find spdk_nvme")
    found = program_of(program)
    if found is None:
        raise Skipped("SPDK's target, nvmf_tgt, is not there")
    return found


def started(program, test):
    """test() with a target."""
    global target
    with tempfile.TemporaryDirectory() as folder:
        target = Target(needed(program), folder)
        try:
            target.start()
            test()
        finally:
            target.end()


def conformance(name):
    devices = {
        "plain": target.device(1),
        "bounced": target.device(2, bounce=1),
        "faulty": f"fault:seed=5,read_split=1/2,write_split=2/3,any_delay_polls=1/3x2:[{target.device(1)}]",
        "striped": f"stripe:[{target.device(1)},{target.device(2)}]?unit=8K",
    }

    def run(*flags):
        ended = subprocess.run([build / "tests" / "storage_test", *flags], env={**CLEAN, "SPILLWAY_TEST_DEVICE": f"{name}={devices[name]}"},
                               capture_output=True, text=True, timeout=300)
        return ended.returncode, ended.stdout + ended.stderr

    if failed := failed_conformance(name, devices[name], run, target.blank):
        raise Failure(f"failed: {'; '.join(failed)}")


class Driver:
    """device_driver on a device."""

    def __init__(self, device, *more):
        self.process = subprocess.Popen([build / "tests" / "device_driver", device, *more], env=CLEAN, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.watch = threading.Timer(ANSWER_SECONDS_MAX, self.process.kill)
        self.watch.start()
        self.first = self.hear()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().rstrip("\n")

    def ask(self, line):
        self.say(line)
        return self.hear()

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Its exit status."""
        self.process.communicate()
        self.watch.cancel()
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.end()


class Behaviour(DeviceTests, unittest.TestCase):
    def setUp(self):
        if target.process is None:
            target.start()
        target.blank()

    def device(self):
        return target.device(1)

    def discarding_device(self):
        return target.device(3)

    def devices_of_many_commands(self):
        return [target.device(1), target.device(1, bounce=1), target.device(2, qd=1)]

    def begun(self, device, *more):
        """A driver, whatever it says first."""
        driver = Driver(device, *more)
        self.addCleanup(driver.kill)
        return driver

    def driver(self, device, *more):
        driver = self.begun(device, *more)
        self.assertTrue(driver.first.startswith("open spdk:tcp=127.0.0.1:"), driver.first)
        return driver

    def refused(self, device, number, words):
        driver = Driver(device)
        self.assertRegex(driver.first, rf"^error {number} storage: spdk:tcp=.*: .*{words}")
        self.assertEqual(driver.end(), 1)

    def stays_lost(self, driver, number):
        """Although the target works."""
        until = time.monotonic() + 3
        while time.monotonic() < until:
            self.assertEqual(driver.ask("read 1"), f"{number}:32")
            time.sleep(0.1)
        self.assertEqual(driver.end(), 0)
        self.assertEqual(self.driver(target.device(1), "overwrite").ask("write 1"), GOOD)

    def test_reads_what_it_wrote(self):
        self.check_reads_what_it_wrote(self.driver(target.device(1)))

    def test_a_command_fails_its_transfer(self):
        driver = self.driver(target.device(4), "overwrite")
        target.fail_next("write", 1)
        self.assertEqual(driver.ask("large 4"), f"{EIO}:0:0")

    def test_the_process_stays_its_own(self):
        driver = self.driver(target.device(1))
        self.assertEqual(driver.ask("marks"), "bus error kept, 0 low descriptors")

    def test_killed_in_flight(self):
        driver = self.driver(target.device(1))
        driver.say("stream")
        self.assertEqual(driver.hear(), "begun")
        target.kill()
        self.assertEqual(self.errors(driver.hear()), {ENXIO})
        self.assertEqual(driver.ask("write 1"), f"{ENXIO}:32")
        target.start()
        self.stays_lost(driver, ENXIO)

    def test_target_that_comes_back_is_another_one(self):
        driver = self.driver(target.device(1))
        self.assertEqual(driver.ask("write 1"), GOOD)
        target.kill()
        target.blank()
        target.start()
        self.stays_lost(driver, ENXIO)

    def test_hung_in_flight(self):
        driver = self.driver(target.device(1, timeout=2))
        driver.say("stream")
        self.assertEqual(driver.hear(), "begun")
        target.signal(signal.SIGSTOP)
        try:
            # Some of the last 32 may have been done before.
            self.assertEqual(self.errors(driver.hear()), {ETIMEDOUT})
            self.assertEqual(driver.ask("write 1"), f"{ETIMEDOUT}:32")
        finally:
            target.signal(signal.SIGCONT)
        self.stays_lost(driver, ETIMEDOUT)

    def test_one_time_out_ends_all_queues(self):
        driver = self.driver(target.device(1, timeout=2))
        for i in (2, 1):
            self.assertEqual(driver.ask(f"queue {i}"), f"uses {i}")
            self.assertEqual(driver.ask("write 1"), GOOD)
        target.signal(signal.SIGSTOP)
        try:
            self.assertEqual(driver.ask("begin 1"), "begun")
            self.assertEqual(driver.ask("queue 0"), "uses 0")
            self.assertEqual(driver.ask("write 1"), f"{ETIMEDOUT}:32")
        finally:
            target.signal(signal.SIGCONT)
        Driver(target.device(2)).kill()  # the target has answered what it was asked before
        self.assertEqual(driver.ask("queue 1"), "uses 1")
        self.assertEqual(driver.ask("finish"), f"{ETIMEDOUT}:32", "what others have under way ends as well")
        self.assertEqual(driver.ask("queue 2"), "uses 2")
        self.assertEqual(driver.ask("write 2"), f"{ETIMEDOUT}:32")
        self.assertRegex(driver.ask("queue 3"), rf"^error {ETIMEDOUT} storage: spdk:.*: no queue: timed out \(the connection was lost\)$")
        self.assertEqual(driver.end(), 0)

    def test_hung_before(self):
        driver = self.driver(target.device(1, timeout=2))
        target.signal(signal.SIGSTOP)
        try:
            self.assertEqual(driver.ask("write 1"), f"{ETIMEDOUT}:32")
            self.refused(target.device(1, timeout=2), ENXIO, r"\(Failed to construct qpair via correct icresp\)$")
        finally:
            target.signal(signal.SIGCONT)
        self.stays_lost(driver, ETIMEDOUT)

    def test_can_be_slept_for(self):
        driver = self.driver(target.device(1))
        target.signal(signal.SIGSTOP)
        try:
            self.assertEqual(driver.ask("quiet"), "begun")
        finally:
            target.signal(signal.SIGCONT)
        self.assertEqual(driver.hear(), GOOD)
        self.assertEqual(driver.end(), 0)

    def test_stopped_for_long(self):
        driver = self.driver(target.device(1))
        self.assertEqual(driver.ask("write 1"), GOOD)
        driver.signal(signal.SIGSTOP)
        time.sleep(25)  # twice SPDK's time for signs of life, and more than the time-out
        driver.signal(signal.SIGCONT)
        self.assertEqual(driver.ask("read 1"), GOOD)
        self.assertEqual(driver.end(), 0)

    def test_stopped_in_flight(self):
        driver = self.driver(target.device(1, timeout=5))
        driver.say("stream")
        self.assertEqual(driver.hear(), "begun")
        target.signal(signal.SIGSTOP)  # so that there is no answer when the driver goes on
        try:
            driver.signal(signal.SIGSTOP)
            time.sleep(8)
            driver.signal(signal.SIGCONT)
            time.sleep(1)
        finally:
            target.signal(signal.SIGCONT)
        time.sleep(1)
        target.kill()
        self.assertEqual(self.errors(driver.hear()), {ENXIO}, "the stream went on until here")

    def test_namespace_removed_in_flight(self):
        driver = self.driver(target.device(1))
        driver.say("stream")
        self.assertEqual(driver.hear(), "begun")
        target.remove(1)
        self.assertLessEqual(self.errors(driver.hear()), {ENXIO, EIO})
        self.assertLessEqual(self.errors(driver.ask("write 1")), {ENXIO, EIO})
        self.assertEqual(driver.end(), 0)
        target.kill()  # the next test has all namespaces again

    def test_namespace_that_comes_back_is_another_one(self):
        for asks_between in (False, True):
            with self.subTest(asks_between=asks_between):
                driver = self.driver(target.device(3), "overwrite")
                self.assertEqual(driver.ask("write 1"), GOOD)
                target.remove(3)
                if asks_between:
                    self.assertLessEqual(self.errors(driver.ask("read 1")), {ENXIO})
                target.call("bdev_malloc_create", name="other", num_blocks=(16 << 20) // 512, block_size=512)
                target.add("other", 3)
                if not asks_between:
                    time.sleep(1)  # the target has said so
                self.stays_lost(driver, ENXIO)
                target.kill()  # the next test has the first namespaces again
                target.start()

    def test_errors_of_the_medium(self):
        driver = self.driver(target.device(4), "overwrite")
        self.assertEqual(driver.ask("write 5"), GOOD)
        target.fail_next("read", 3)
        self.assertEqual(driver.ask("read 5"), f"0:29 {EIO}:3")
        self.assertEqual(driver.ask("read 5"), GOOD)
        target.fail_next("write", 32)
        self.assertEqual(driver.ask("write 6"), f"{EIO}:32")

    def test_children_have_no_queues(self):
        driver = self.driver(target.device(1))
        self.assertEqual(driver.ask("write 1"), GOOD)
        self.assertRegex(driver.ask("fork"), rf"^error {ENOTSUP} storage: spdk:.*fork")
        self.assertEqual(driver.ask("read 1"), GOOD)
        self.assertEqual(driver.end(), 0)

    def test_children_do_not_keep_connections(self):
        driver = self.driver(target.device(1))
        child = int(driver.ask("linger"))
        try:
            self.assertGreater(target.connection_count(), 0)
            self.assertEqual(driver.end(), 0)
            until = time.monotonic() + 20
            while target.connection_count() > 0:
                self.assertLess(time.monotonic(), until, "the target still has connections")
                time.sleep(0.1)
        finally:
            os.kill(child, signal.SIGKILL)

    def test_no_more_queues(self):
        driver = self.driver(target.device(1))
        for _ in range(2):
            self.assertRegex(driver.ask("queues"), rf"^[1-9]\d* then {EMFILE}$")
        self.assertEqual(driver.ask("write 1"), GOOD)
        self.assertEqual(driver.end(), 0)

    def test_nobody_listens(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            port = closed.getsockname()[1]
            self.refused(f"spdk:tcp=127.0.0.1:{port},nqn={NQN}", ENXIO, r"\(connect\(\) failed, err = 111\)$")

    def test_somebody_listens_and_says_nothing(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            port = silent.getsockname()[1]
            self.refused(f"spdk:tcp=127.0.0.1:{port},nqn={NQN},timeout=2", ENXIO, r"\(Failed to construct qpair via correct icresp\)$")

    def test_no_such_subsystem(self):
        self.refused(target.device(1).replace(NQN, NQN + "x"), ENXIO, r"\(Connect command failed, rc -5\b")

    def test_no_such_namespace(self):
        self.refused(target.device(7), ENXIO, "there is no such namespace")


class Program(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = pathlib.Path(target.folder) / "program"
        subprocess.run([build / "bin" / "spillcc", "-O2", "-pthread", HERE / "spdk_program.c", "-o", cls.program],
                       env=CLEAN, check=True)

    def setUp(self):
        if target.process is None:
            target.start()
        target.blank()

    def command(self, storage, *arguments, program=None):
        return [build / "bin" / "spillway", "run", "--memory", "8M", "--storage", storage, "--", program or self.program,
                *arguments]

    def run_program(self, *arguments, storage, program=None, **variables):
        return subprocess.run(self.command(storage, *arguments, program=program), env={**CLEAN, **variables}, capture_output=True, text=True,
                              timeout=600)

    def test_spills(self):
        for storage in (target.device(1), target.device(1, bounce=1)):
            target.blank()
            ended = self.run_program(storage=storage)
            self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "system: 0\nwrong: 0\n", ""))
            self.assertGreater(sum(1 for byte in target.files[0].read_bytes()[::4096] if byte), 1000, f"nothing was written to {storage}")

    def test_a_child_that_needs_pages_ends(self):
        ended = self.run_program("fork", storage=target.device(1))
        self.assertEqual((ended.returncode, ended.stdout), (0, "child: 134\nsystem: 0\nwrong: 0\n"))
        self.assertRegex(ended.stderr, r"\Aspillway: storage: spdk:[^\n]*fork[^\n]*\n\Z")

    def test_target_is_killed(self):
        for number in (signal.SIGKILL, signal.SIGSTOP):
            if target.process is None:
                target.start()
            target.blank()
            with subprocess.Popen(self.command(target.device(1, timeout=2), "forever"), env=CLEAN, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as process:
                self.assertEqual(process.stdout.readline(), "looked\n")
                target.signal(number)
                said = process.communicate(timeout=300)[1]
            target.kill()
            words = "no such device" if number == signal.SIGKILL else "timed out"
            self.assertRegex(said, rf"\Aspillway: [^\n]*{words}[^\n]*\n")
            self.assertNotEqual(process.returncode, 0)

    def test_programs_of_other_compilers_cannot(self):
        plain = pathlib.Path(target.folder) / "plain"
        subprocess.run(["cc", "-O2", "-pthread", HERE / "spdk_program.c", "-o", plain], env=CLEAN, check=True)
        for storage in (target.device(1), f"fault:[{target.device(1)}]", f"stripe:[{target.device(1)},{target.device(2)}]"):
            ended = self.run_program(storage=storage, program=plain)
            self.assertRegex(ended.stderr, r"\Aspillway: storage: spdk: only programs compiled by spillcc [^\n]*\n\Z")
            self.assertNotEqual(ended.returncode, 0)

    def test_without_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(build / "bin", pathlib.Path(folder) / "bin")
            (pathlib.Path(folder) / "lib").mkdir()
            library = pathlib.Path(folder) / "lib" / "libspillway.so"
            library.write_bytes((build / "lib" / "libspillway.so").read_bytes())
            ended = self.run_program(storage=target.device(1), LD_LIBRARY_PATH=str(library.parent))
        self.assertRegex(ended.stderr, r"\Aspillway: storage: spdk: there is no libspillway-spdk.so in [^\n]*\n\Z")
        self.assertNotEqual(ended.returncode, 0)


def main():
    global build
    build = pathlib.Path(sys.argv[1]).resolve()
    program, kind, more = sys.argv[2], sys.argv[3], sys.argv[4:]

    def test():
        if kind == "conformance":
            return conformance(*more)
        run_cases(kind.capitalize(), more)

    return status_of("spdk_test.py", started, program, test)


if __name__ == "__main__":
    sys.exit(main())
