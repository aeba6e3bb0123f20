"""What suites share that look at devices from outside: device_driver's answers, the tests that any device passes, and conformance_test.cc on one."""
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import Failure  # noqa: E402

EEXIST = 17
GOOD = "0:32"  # all of device_driver's 32
WHOLE = 64 * 160 * 1024  # bytes of its large transfer


class DeviceTests:
    """For a unittest.TestCase that has begun(device, *more), a device_driver; driver(device, *more), one that has opened the device; refused(device, number,
    words): it is not opened, with this error; and these devices, which are blank before each test."""

    def device(self):
        raise NotImplementedError

    def discarding_device(self):
        """Its discarded blocks are zeros."""
        raise NotImplementedError

    def devices_of_many_commands(self):
        """They take less in one than a transfer has."""
        raise NotImplementedError

    def errors(self, summary):
        """What "5:3 6:29" says, without what went well."""
        counts = {int(number): int(count) for number, count in (part.split(":") for part in summary.split())}
        self.assertEqual(sum(counts.values()), 32, summary)
        counts.pop(0, None)
        return set(counts)

    def check_reads_what_it_wrote(self, driver):
        for seed in (1, 2):
            self.assertEqual(driver.ask(f"write {seed}"), GOOD, driver.first)
            self.assertEqual(driver.ask(f"read {seed}"), GOOD, driver.first)
        self.assertEqual(driver.ask("read 7"), "-1:32")
        self.assertEqual(driver.end(), 0)

    def test_transfers_of_many_commands(self):
        for device in self.devices_of_many_commands():
            driver = self.begun(device, "overwrite")
            self.assertEqual(driver.ask("large 4"), f"0:{WHOLE}:{WHOLE}", device)
            self.assertEqual(driver.end(), 0)

    def test_discards(self):
        driver = self.driver(self.discarding_device(), "overwrite")
        self.assertEqual(driver.ask("write 3"), GOOD)
        self.assertEqual(driver.ask("discard"), GOOD)
        self.assertEqual(driver.ask("read 3"), "-1:32", "zeros")

    def test_content_is_not_lost(self):
        driver = self.driver(self.device())
        self.assertEqual(driver.ask("write 1"), GOOD)
        self.assertEqual(driver.end(), 0)
        self.refused(self.device(), EEXIST, "content; pass --storage-overwrite")
        self.assertEqual(self.driver(self.device(), "overwrite").ask("read 1"), GOOD)


def failed_conformance(name, device, run, blank):
    """Which tests of conformance_test.cc fail on the device that SPILLWAY_TEST_DEVICE gives this name. run(*flags): storage_test's status, and what it
    says; blank() makes the device zeros."""
    _, listed = run(f"--gtest_filter=*/Conformance*.*/{name}", "--gtest_list_tests")
    tests = re.findall(r"^  (\S+)/", listed, flags=re.M)
    failed = []
    for test in tests:
        blank()
        status, said = run(f"--gtest_filter=*/Conformance*.{test}/{name}", "--gtest_color=no")
        if status != 0 or "[  PASSED  ] 1 test." not in said:
            failed.append(f"{name}: {test}")
            print(said)
    print(f"{len(tests) - len(failed)} of {len(tests)} on {device}", flush=True)
    return failed if tests else [f"{name}: no tests"]


def run_cases(case, names):
    """Those tests of a class of the script, or all."""
    words = [f"{case}.{name}" for name in names] or [case]
    if not unittest.main(argv=[sys.argv[0], *words], verbosity=2, exit=False).result.wasSuccessful():
        raise Failure("see above")
