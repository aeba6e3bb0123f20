#!/usr/bin/env python3
"""Probes: each binary has its own, with their arguments; scripts listen to those that there are; and they fire with what is so, as gdb sees.

  probes_test.py SOURCE BUILD WORK [unittest arguments]
"""
import errno
import pathlib
import re
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, environment, fresh, take_paths  # noqa: E402

SOURCE, BUILD, WORK = take_paths(3)
BIN, LIB = BUILD / "bin", BUILD / "lib"
HERE = pathlib.Path(__file__).resolve().parent
PAGE = 4096
# {name: (folder, number of arguments)}
PROBES = {name: (folder, int(count)) for count, folder, name in
          re.findall(r"^PROBE(\d)\((\w+), (\w+),", (SOURCE / "src/base/probes.inc").read_text(), re.M)}


def run(*command, **keywords):
    ended = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=HANG_SECONDS, env=CLEAN, **keywords)
    if ended.returncode != 0:
        raise AssertionError(f"{command}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def setUpModule():
    fresh(WORK)
    run("clang-19", "-O2", "-shared", "-fPIC", HERE / "foreign.c", "-o", WORK / "libforeign.so")
    run("clang-19", "-O2", "-c", HERE / "foreign.c", "-o", WORK / "foreign.o")
    spillcc = (BIN / "spillcc", "-O2", f"-I{SOURCE}/include", HERE / "spills.c")
    run(*spillcc, WORK / "libforeign.so", "-o", WORK / "spills")
    run(*spillcc, "-static", WORK / "foreign.o", "-o", WORK / "spills-static")
    run(*spillcc, "-fspill-bodies=2", WORK / "libforeign.so", "-o", WORK / "spills-bodies")


def of_folders(*folders):
    return {name for name, (folder, _) in PROBES.items() if folder in folders}


class Notes(unittest.TestCase):
    def found_in(self, file):
        """{name: arguments} of what readelf finds, each place of which is checked."""
        found = {}
        notes = re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: 0x([0-9a-f]+), Base: \S+ Semaphore: 0x([0-9a-f]+)\s+Arguments: ?(.*)",
                           run("readelf", "-nW", file))
        for provider, name, location, semaphore, arguments in notes:
            if provider != "spillway":
                continue  # the C library has some
            self.assertIn(name, PROBES)
            self.assertEqual(len(arguments.split()), PROBES[name][1], name)
            self.assertEqual(set(re.findall(r"(\S+)@", arguments)), {"8"}, f"{name}: {arguments}")
            self.assertEqual(int(semaphore, 16), 0, name)
            self.assertNotEqual(int(location, 16), 0, f"{file}: {name} is in code that is not there")
            found[name] = arguments
        return found

    def test_each_binary_has_its_own(self):
        self.assertGreater(len(PROBES), 12)
        of_programs = of_folders("cache", "spill")
        for file, expected in ((LIB / "libspillway.so", of_programs), (WORK / "spills-static", of_programs), (LIB / "libspillway-preload.so", of_folders("cache")),
                               (LIB / "libspillway_kv.so", of_folders("kv")), (BIN / "spillway", of_folders("kv", "server"))):
            with self.subTest(file.name):
                self.assertEqual(set(self.found_in(file)), expected)

    def test_none_is_nobodys(self):
        self.assertEqual(set(PROBES), of_folders("cache", "spill", "kv", "server"))


class Scripts(unittest.TestCase):
    def test_they_listen_to_what_there_is(self):
        listened = set()
        for script in (SOURCE / "tools/trace").glob("*.bt"):
            for name, body in re.findall(r"^usdt:\$1:spillway:(\w+)\n(.*?)^}", script.read_text(), re.M | re.S):
                self.assertIn(name, PROBES, script)
                for argument in re.findall(r"\barg(\d+)\b", body):
                    self.assertLess(int(argument), PROBES[name][1], f"{script}: {name}")
                listened.add(name)
            self.assertEqual(script.read_text().count("usdt:"), len(re.findall(r"^usdt:\$1:spillway:", script.read_text(), re.M)), script)
        self.assertGreater(len(listened), 8)

    def test_pages_name_what_there_is(self):
        pages = "".join((SOURCE / page).read_text() for page in ("docs/debugging.md", "docs/operations.md"))
        named = re.findall(r"\bspillway:(\w+)\b", pages)
        self.assertTrue(named)
        self.assertLessEqual(set(named), set(PROBES))


class Gdb:
    """A program under gdb, which stops at probes, one after the other."""

    def __init__(self, program, *arguments, first="work", **settings):
        self.settings, self.steps = environment(**settings), []
        self.command = ["gdb", "-nx", "-batch", "-readnever", "-ex", "set debuginfod enabled off", "-ex", "set breakpoint pending on",
                        "-ex", "set confirm off", "-ex", "handle SIGSEGV nostop noprint pass"]
        self.program = ["--args", program, *arguments]
        if first:
            self.step(f"tbreak {first}", "run")

    def step(self, *commands):
        for command in commands:
            self.command += ["-ex", command]

    def stop(self, name, condition=""):
        """At the next time that it fires; prints its arguments."""
        values = ", ".join(f"$_probe_arg{i}" for i in range(PROBES[name][1]))
        formats = " %lu" * PROBES[name][1]
        self.step("delete", f"tbreak -probe-stap spillway:{name}", f"condition $bpnum {condition}", "continue",
                  f'printf "at {name}:{formats} of %d\\n", {values}, $_probe_argc')

    def run(self):
        """[(name, arguments)] of the stops, and all that was printed."""
        self.step("kill")
        command = [str(word) for word in self.command + self.program]
        ended = subprocess.run(command, env=self.settings, capture_output=True, text=True, timeout=HANG_SECONDS)
        printed = ended.stdout + ended.stderr
        stops = []
        for name, values in re.findall(r"^at (\w+):((?: \d+)+) of \d+$", printed, re.M):
            stops.append((name, [int(value) for value in values.split()]))
        return stops, printed


class Fires(unittest.TestCase):
    settings = {"memory": "1M", "spill_all": 1, "storage": WORK}

    def stops_of(self, gdb, *names):
        stops, printed = gdb.run()
        self.assertEqual([name for name, _ in stops], list(names), printed)
        for name, values in stops:
            self.assertIn(f"at {name}: {' '.join(map(str, values))} of {PROBES[name][1]}\n", printed)
        return [values for _, values in stops], printed

    def check_program(self, program):
        gdb = Gdb(WORK / program, 8, **self.settings)
        gdb.step('printf "data %lu\\n", *(unsigned long*)&data')
        gdb.stop("miss")
        gdb.stop("load_done")
        gdb.stop("eviction", "$_probe_arg1 > 0")
        gdb.stop("write_back_begin")
        gdb.stop("write_back_done")
        gdb.stop("load_done", "$_probe_arg2 > 0")
        (miss, zeros, left, begun, written, read), printed = self.stops_of(
            gdb, "miss", "load_done", "eviction", "write_back_begin", "write_back_done", "load_done")
        begin = int(re.search(r"^data (\d+)$", printed, re.M)[1])
        for page in (miss[0], left[0], read[0]):
            self.assertIn(page * PAGE, range(begin - PAGE, begin + (8 << 20)))
        self.assertEqual((miss[1], zeros), (1, [miss[0], 1, 0]))
        self.assertEqual(left[1], 1)
        self.assertGreaterEqual(begun[0], 1)
        self.assertGreaterEqual(written[0], 1)
        self.assertEqual(read[2], read[1] * PAGE)

    def test_loads_and_evictions(self):
        self.check_program("spills")

    def test_of_a_static_program(self):
        self.check_program("spills-static")

    def test_budget_and_faults(self):
        gdb = Gdb(WORK / "spills", 2, "more", first="main", **self.settings)
        gdb.stop("budget")
        gdb.stop("fault")
        gdb.step('printf "data %lu, code %lu\\n", *(unsigned long*)&data, &foreign_sum')
        (budget, fault), printed = self.stops_of(gdb, "budget", "fault")
        self.assertEqual(budget, [1 << 20, 3 << 20])
        data, code = (int(number) for number in re.search(r"^data (\d+), code (\d+)$", printed, re.M).groups())
        self.assertEqual(fault[0], data)
        self.assertIn(fault[1] - code, range(0, 256))

    def test_the_end_of_native_bodies(self):
        gdb = Gdb(WORK / "spills-bodies", 96, memory="40M", storage=WORK)
        gdb.stop("native_end")
        (end,), _ = self.stops_of(gdb, "native_end")
        self.assertEqual(end[0], 1)
        self.assertGreaterEqual(end[1], 1)

    def test_rescues_and_prefetches(self):
        gdb = Gdb(WORK / "spills", 4, memory="1M", spill_all=1, storage=WORK, chaos=5)
        gdb.stop("rescue")
        gdb.stop("prefetch")
        (rescue, prefetch), _ = self.stops_of(gdb, "rescue", "prefetch")
        self.assertLessEqual(rescue[1], 1)
        self.assertGreaterEqual(prefetch[1], 1)

    def test_writes_that_fail(self):
        gdb = Gdb(WORK / "spills", 8, memory="1M", spill_all=1, storage="fault:seed=1,write_eio=1/3:[memory:64M]")
        gdb.stop("write_failed")
        self.assertEqual(self.stops_of(gdb, "write_failed")[0], [[errno.EIO]])

    def test_a_store(self):
        device = WORK / "store"
        run(BIN / "spillway", "kv", "make", device, "--capacity", "64M", "--overwrite")
        gdb = Gdb(BIN / "spillway", "kv", "put", device, "key", "a value", first="main")
        gdb.stop("kv_recovery_step")
        gdb.stop("kv_call_done")
        gdb.step("continue")
        (step, put), _ = self.stops_of(gdb, "kv_recovery_step", "kv_call_done")
        self.assertEqual((step, put[:2]), ([1], [2, len("keya value")]))
        self.assertGreater(put[2], 1000)
        gdb = Gdb(BIN / "spillway", "kv", "get", device, "key", first="main")
        gdb.stop("kv_call_done")
        self.assertEqual(self.stops_of(gdb, "kv_call_done")[0][0][:2], [0, len("keya value")])

    def test_collection(self):
        device = WORK / "collected"
        run(BIN / "spillway", "kv", "make", device, "--capacity", "16M", "--overwrite")
        for _ in range(3):
            run(BIN / "spillway", "kv", "put", device, "key", "-", input="v" * 500_000)
        gdb = Gdb(BIN / "spillway", "kv", "compact", device, first="main")
        gdb.stop("kv_collected")
        (collected,), _ = self.stops_of(gdb, "kv_collected")
        self.assertLess(collected[0], 64)
        self.assertLess(collected[1], 1_000_000)

    def test_a_server(self):
        place = WORK / "socket"
        gdb = Gdb(BIN / "spillway", "serve", "--storage", WORK / "items", "--capacity", "64M", "--memory", "32M", "--threads", "1", "--memcache", place,
                  first="main")
        gdb.stop("connection_accepted")
        gdb.stop("request")
        gdb.step('printf "asked %s\\n", (char*)$_probe_arg1')
        gdb.stop("connection_closed")
        gdb.step("kill")
        command = [str(word) for word in gdb.command + gdb.program]
        debugger = subprocess.Popen(command, env=gdb.settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(debugger.kill)
        deadline = time.monotonic() + HANG_SECONDS
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(HANG_SECONDS)
            while client.connect_ex(str(place)) != 0 and debugger.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)  # there is no socket yet, or nobody listens there
            client.sendall(b"get key\r\n")
            self.assertEqual(client.recv(100), b"END\r\n")
        printed, _ = debugger.communicate(timeout=HANG_SECONDS)
        self.assertIn("at connection_accepted: 1 0 of 2\n", printed)
        self.assertIn("at request: 1 ", printed)
        self.assertIn("asked get\n", printed)
        self.assertIn("at connection_closed: 1 1 0 of 3\n", printed)


if __name__ == "__main__":
    unittest.main(verbosity=2)
