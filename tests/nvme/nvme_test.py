#!/usr/bin/env python3
"""NVMe passthrough (/dev/ng0n1) in a virtual machine.

    nvme_test.py BUILD conformance [NAME...]   conformance_test.cc on devices: CONFORMANCE below
    nvme_test.py BUILD behaviour [TEST...]     what is refused, errors of the medium, devices that go
    nvme_test.py BUILD crash                   the machine is killed at any time, and what was flushed is there (tests/kills.py has variables)

Exit status 77 if QEMU or a kernel for it is not there. TMPDIR says where the devices' files lie: 560 MiB, sparse.
"""
import pathlib
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "device")]
from driven import GOOD, DeviceTests, failed_conformance, run_cases  # noqa: E402
from kills import Kills  # noqa: E402
from nvme_vm import DEVICES, Machine  # noqa: E402
from support import Failure, status_of  # noqa: E402

EIO, ENXIO, EBUSY, ENODEV, ENOTSUP = 5, 6, 16, 19, 95
CONFORMANCE = {  # name: (serial, device)
    "plain": ("small", "{character}"),
    "large_blocks": ("large", "{character}"),
    "with_kernel_thread": ("small", "uring:{character}?sqpoll=1"),
    "by_calls": ("small", "file:{character}"),
    "faulty": ("small", "fault:seed=5,read_split=1/2,write_split=2/3,any_delay_polls=1/3x2:[{character}]"),
    # No passthrough: but nowhere else are there devices that poll.
    "polled": ("large", "uring:{block}?iopoll=1"),
}
CRASHES = 4
build, machine = None, None


def started(programs, test):
    """test() with a machine."""
    global machine
    with tempfile.TemporaryDirectory(prefix="spillway-nvme-") as folder:
        machine = Machine(folder, build, programs)
        for serial in DEVICES:
            machine.blank(serial)
        try:
            machine.start()
            test()
        finally:
            machine.kill()


def conformance(*names):
    line = machine.lines[0]
    failed = []
    for name in names or CONFORMANCE:
        serial, device = CONFORMANCE[name]
        device = device.format(character=machine.device(serial), block=machine.block(serial))
        failed += failed_conformance(name, device, lambda *flags: line.run(f"SPILLWAY_TEST_DEVICE={name}={device}", "/bin/storage_test", *flags),
                                     lambda: machine.blank(serial))
    if failed:
        raise Failure(f"failed: {'; '.join(failed)}")


class Driver:
    """device_driver on a device, by a line of its own."""

    def __init__(self, device, *more, line=0):
        self.line = machine.lines[line]
        self.line.say("run", "/bin/device_driver", device, *more)
        self.first = self.hear()
        self.said = []
        self.status = None

    def hear(self):
        return self.line.hear()

    def ask(self, *words):
        """The answer; lines of log before it go to `said`."""
        self.line.say(*words)
        while (answer := self.hear()).startswith("spillway: "):
            self.said.append(answer)
        return answer

    def end(self):
        """Its exit status. An end of input is what a line cannot say: the driver has a word for it."""
        if self.status is None:
            if not self.first.startswith("error "):
                self.line.say("end")
            self.status = int(self.line.answer()[0])
        return self.status


class Behaviour(DeviceTests, unittest.TestCase):
    def setUp(self):
        for serial in DEVICES:
            machine.blank(serial)

    def device(self):
        return machine.device("small")

    discarding_device = device

    def devices_of_many_commands(self):
        return [form.format(machine.device(serial)) for serial in ("small", "large") for form in ("{}", "file:{}?threads=0", "uring:{}?sqpoll=1,qd=1")]

    def begun(self, device, *more, line=0):
        """A driver, whatever it says first."""
        driver = Driver(device, *more, line=line)
        self.addCleanup(driver.end)
        return driver

    def driver(self, device, *more, line=0):
        driver = self.begun(device, *more, line=line)
        self.assertRegex(driver.first, r"^open (uring|file):/dev/ng")
        return driver

    def refused(self, device, number, words, line=0):
        driver = self.begun(device, line=line)
        self.assertRegex(driver.first, rf"^error {number} storage /dev/.*: .*{words}")
        self.assertEqual(driver.end(), 1)

    def test_reads_what_it_wrote(self):
        for serial in ("small", "large"):
            for form, way, words in (("{}", "uring", None), ("file:{}", "file", None),
                                     ("uring:{}?iopoll=1", "uring", "iopoll: commands are not polled for; using interrupts"),
                                     ("aio:{}", "file", "Linux AIO has no commands of devices; using blocking calls")):
                device = form.format(machine.device(serial))
                driver = self.begun(device, "overwrite")
                if words is not None:
                    self.assertIn(words, driver.first)
                    driver.first = driver.hear()
                self.assertRegex(driver.first, f"^open {way}:{machine.device(serial)} ")
                self.check_reads_what_it_wrote(driver)

    def test_bytes_lie_where_they_belong(self):
        driver = self.driver(machine.device("large"))
        self.assertEqual(driver.ask("write 2"), GOOD)
        self.assertEqual(pattern(32 * 4096, 2), machine.files["large"].read_bytes()[:32 * 4096])

    def test_registered_memory(self):
        for form in ("{}", "uring:{}?sqpoll=1"):
            driver = self.begun(form.format(machine.device("large")), "overwrite")
            self.assertEqual(driver.ask("fixed 3"), "0:32 0:32 used", form)
            self.assertEqual(driver.ask("read 3"), GOOD)
            self.assertEqual(driver.end(), 0)
        driver = self.driver("file:" + machine.device("large"), "overwrite")
        self.assertEqual(driver.ask("fixed 4"), "0:32 0:32 refused")

    def test_children_have_queues(self):
        driver = self.driver(machine.device("small"))
        self.assertEqual(driver.ask("write 1"), GOOD)
        self.assertEqual(driver.ask("fork").strip(), "error 0")
        self.assertEqual(driver.ask("read 1"), GOOD)

    def test_two_processes_do_not_share_one(self):
        small, block = machine.device("small"), machine.block("small")
        driver = self.begun(small)
        for other in (small, block):
            self.refused(other, EBUSY, "in use", line=1)
        self.assertEqual(driver.end(), 0)
        driver = self.begun(block)
        self.assertRegex(driver.first, rf"^open uring:{block} ")
        self.refused(small, EBUSY, "in use", line=1)
        self.assertEqual(driver.end(), 0)
        self.driver(small)

    def test_metadata_is_refused(self):
        self.refused(machine.device("metadata"), ENOTSUP, "8 bytes of metadata")

    def test_other_character_devices_are_refused(self):
        for other in ("/dev/nvme0", "/dev/null"):
            self.refused(other, 22, "neither")

    def test_errors_of_the_medium(self):
        for form in ("{}", "file:{}"):
            driver = self.begun(form.format(machine.device("failing")), "overwrite")
            # Block 25 cannot be written, 20 cannot be read.
            self.assertEqual(driver.ask("write 5"), f"0:31 {EIO}:1")
            self.assertEqual(len(driver.said), 1, driver.said)
            self.assertRegex(driver.said[0], r"^spillway: (uring|file):/dev/ng\S+ \(.*\): write of 4K at byte 102400: write fault "
                             r"\(NVMe status type 2, code 0x80\)")
            self.assertEqual(self.errors(driver.ask("read 5")), {-1, EIO})
            self.assertEqual(len(driver.said), 1, "no more lines")
            self.assertEqual(driver.end(), 0)

    def streaming(self, device):
        """A driver that writes until something fails."""
        driver = self.begun(device)
        driver.line.say("stream")
        self.assertEqual(driver.hear(), "begun")
        time.sleep(1)
        return driver

    def test_reset_and_removed_in_flight(self):
        """What the controller had when it is reset the kernel gives up, and it is asked for again: nobody notices. When the kernel
        removes the device, it lets what has begun end, and then has no such device."""
        for form, serial in (("{}", "removed"), ("file:{}", "slow")):
            driver = self.streaming(form.format(machine.device(serial)))
            for _ in range(3):
                machine.put(f"{machine.controller(serial)}/reset_controller", "1")
                time.sleep(1)
            self.assertTrue(driver.line.is_silent())
            machine.put(f"{machine.controller(serial)}/device/remove", "1")
            # What its queues still had when they were ended is an error of I/O.
            self.assertLessEqual(self.errors(driver.hear()), {ENODEV, EIO})
            self.assertEqual(driver.ask("write 1"), f"{ENODEV}:32")
            self.refused(machine.device(serial), r"\d+", "no such device", line=1)
            self.assertEqual(driver.said, [])
            self.assertEqual(driver.end(), 0)

    def test_unplugged_in_flight(self):
        driver = self.streaming(machine.device("unplugged"))
        machine.command("device_del", id="unplugged")
        self.assertLessEqual(self.errors(driver.hear()), {ENODEV, EIO, ENXIO})
        self.assertLessEqual(self.errors(driver.ask("write 1")), {ENODEV, EIO, ENXIO})
        self.assertEqual(driver.end(), 0)

    def test_info(self):
        for serial, block_words in (("small", "512 bytes"), ("large", "4.0 KiB|4096 bytes")):
            status, said = machine.lines[0].run("/bin/spillway", "info", machine.device(serial))
            self.assertEqual(status, 0, said)
            name = machine.device(serial)
            self.assertRegex(said, rf"is +uring:{name} \(NVMe namespace 1, passthrough beside {machine.block(serial)}\)")
            self.assertRegex(said, rf"block +({block_words})")
            self.assertRegex(said, r"capacity +80.0 MiB")
            self.assertRegex(said, r"largest command +" + ("32.0 KiB" if serial == "small" else r"\d+"))
            self.assertRegex(said, r"can be polled +no")


def pattern(size, seed):
    """TestIo's."""
    return bytes(((offset * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 56) ^ (seed * 37 & 0xFF) for offset in range(size))


def crash():
    kills = Kills(CRASHES)
    print(kills)
    expected = pattern(8 << 20, 1)
    for turn in range(kills.count):
        serial = ("small", "large")[turn % 2]
        machine.blank(serial)
        driver = Driver(machine.device(serial))
        driver.line.say("journal")
        until = time.monotonic() + kills.random.uniform(0.5, 8)
        flushed = 0
        while time.monotonic() < until:
            flushed = int(driver.hear().split()[1])
        machine.kill()
        there = machine.files[serial].read_bytes()[:flushed * 4096]
        if not flushed or there[:len(expected)] != expected[:len(there)]:
            raise Failure(f"{flushed} blocks flushed, and other bytes are there")
        machine.start()
        driver = Driver(machine.device(serial), "overwrite")
        if flushed >= 32 and driver.ask("read 1") != GOOD:
            raise Failure("other bytes are read")
        driver.end()
        print(f"{serial}: {flushed} blocks flushed, and there", flush=True)


def main():
    global build
    build = pathlib.Path(sys.argv[1]).resolve()
    kind, more = sys.argv[2], sys.argv[3:]

    tests = {"conformance": lambda: conformance(*more), "behaviour": lambda: run_cases("Behaviour", more), "crash": crash}
    programs = [build / "bin" / "spillway"] if kind == "behaviour" else []
    return status_of("nvme_test.py", started, programs, tests[kind])


if __name__ == "__main__":
    sys.exit(main())
