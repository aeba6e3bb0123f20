#!/usr/bin/env python3
"""The `spillway` program as a user meets it.  cli_test.py SPILLWAY SRC_BASE [unittest arguments]

Every wrong input ends with exit status 2, nothing on standard output, and one line on standard error
that says what is wrong, where, and what to do.
"""
import errno
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, assert_refused, become_nobody, copied_for_everybody, filtering, log_event, sanitizer_of, take_paths, temporary_folder  # noqa: E402

SPILLWAY, SRC_BASE = take_paths(2)
LOAD, EQUAL, HAS, GIVE = 0x20, 0x15, 0x45, 0x06  # of filtering(): load a word, compare, look at bits, return
ALLOW, FAIL = 0x7FFF0000, 0x00050000
OPTIONS = re.findall(r"^OPTION\((\w+), (\w+), ([^,]*),", (SRC_BASE / "options.inc").read_text(), flags=re.M)


def spillway(*arguments, environment=None, **keywords):
    keywords.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([str(SPILLWAY), *map(str, arguments)], stderr=subprocess.PIPE, text=True,
                          env={**CLEAN, **(environment or {})}, timeout=HANG_SECONDS, **keywords)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)

    def refused(self, *arguments, says=(), **keywords):
        assert_refused(self, spillway(*arguments, **keywords), *says)

    def variables_of(self, *flags, environment=None):
        """The SPILLWAY_ variables that a program started with `flags` sees."""
        ended = spillway("run", *flags, "--", "env", environment=environment)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        lines = [line for line in ended.stdout.splitlines() if line.startswith("SPILLWAY_")]
        return dict(line.split("=", 1) for line in lines)


class Top(Case):
    def test_version_and_help(self):
        self.assertRegex(spillway("--version").stdout, r"\Aspillway \d+\.\d+\.\d+\n\Z")
        ended = spillway("--help")
        self.assertEqual(ended.returncode, 0)
        for subcommand in ("run", "info"):
            self.assertIn(f"spillway {subcommand}", ended.stdout)

    def test_unknown_subcommands(self):
        self.refused(says=["no subcommand", "--help"])
        self.refused("fly", says=["'fly'", "--help"])
        self.refused("--fly", says=["'--fly'"])
        self.refused("two\nlines", says=["two\\x0alines"])
        self.refused("", says=["''"])

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            ended = spillway("info", stdout=full)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("standard output", ended.stderr)

    @unittest.skipIf(sanitizer_of(SPILLWAY), "a sanitizer reserves more than the limit")
    def test_a_lack_of_memory_is_told_in_plain_words(self):
        log = self.folder / "log"
        with log.open("wb") as file:
            file.truncate(1 << 40)
        limit = (4 << 30, 4 << 30)
        ended = spillway("persist", "check", "--out", self.folder / "out", "--log", log, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertRegex(ended.stderr, r"\Aspillway: there is not enough memory; [^\n]*\n\Z")


class RunWords(Case):
    def test_help_lists_every_option(self):
        self.assertGreater(len(OPTIONS), 8)
        text = spillway("run", "--help").stdout
        for name, kind, default in OPTIONS:
            self.assertIn(f"--{name.replace('_', '-')} ", text)
            self.assertIn(f"SPILLWAY_{name.upper()}\n", text)

    def test_wrong_options(self):
        self.refused("run", "--memroy", "4G", "--", "true", says=["'--memroy'", "--help"])
        self.refused("run", "-m", "4G", "--", "true", says=["'-m'"])
        self.refused("run", "--spill_all", "--", "true", says=["'--spill_all'"])
        self.refused("run", "--memory", says=["--memory needs a SIZE"])
        self.refused("run", "--memory", "--", "true", says=["--memory needs a SIZE"])
        self.refused("run", "--storage", "/a", "--storage", "/b", "--", "true", says=["--storage is given twice"])
        self.refused("run", "--storage", "nvme:/x", "--", "true", says=["storage", "'nvme:'"])
        self.refused("run", "--storage", "file:/x?qd=0", "--", "true", says=["storage", "qd"])
        self.refused("run", "--verbose=2", "--", "true", says=["verbose", "0 or 1"])
        self.refused("run", "--read-ahead", "4K", "--", "true", says=["read_ahead", "whole number"])
        self.refused("run", "--log-format", "xml", "--", "true", says=["log_format", "'xml'", "text or json"])

    def test_wrong_sizes(self):
        for size in ("", "4X", "1.5G", "-1", "4 G", "99999999999999999999", "20000000T", "lots", "4G\n"):
            with self.subTest(size):
                self.refused("run", "--memory", size, "--", "true", says=["memory", "not a size"])
        self.refused("run", "--memory", "512K", "--", "true", says=["memory", "512K", "at least 1M"])
        self.refused("run", "--memory", "1", "--", "true", says=["at least 1M"])
        self.refused("run", "--memory", "1000T", "--", "true", says=["memory", "1000T", "machine"])
        for size in ("0", "1K", "12K", "4M"):
            self.refused("run", "--page", size, "--", "true", says=["page", "power of two"])
        self.refused("run", "--policy", "belady", "--", "true", says=["policy", "'belady'", "auto, clock, lru, 2q, random, s3fifo or nrlfu"])
        self.refused("run", "--storage", "x" * 600, "--", "true", says=["storage", "511 bytes"])

    def test_wrong_variables(self):
        self.refused("run", "--", "true", environment={"SPILLWAY_MEMROY": "4G"}, says=["SPILLWAY_MEMROY"])
        self.refused("run", "--", "true", environment={"SPILLWAY_MEMORY": "much"}, says=["memory", "'much'"])
        self.refused("run", "--", "true", environment={"SPILLWAY_MEMORY": "4K"}, says=["at least 1M"])

    def test_programs_that_cannot_be_started(self):
        self.refused("run", says=["no program"])
        self.refused("run", "--memory", "64M", "--", says=["no program"])
        self.refused("run", "--", "", says=["not found"])
        self.refused("run", "--", "no-such-program-anywhere", says=["'no-such-program-anywhere' not found", "PATH"])
        self.refused("run", "--", "./no/such", says=["'./no/such' not found"])
        self.refused("run", "--", "/dev/null/x", says=["/dev/null/x"])
        self.refused("run", "--", self.folder, says=["is a directory"])
        program = self.folder / "program"
        program.write_text("echo hello\n")
        self.refused("run", "--", program, says=["not executable", "chmod +x"])
        self.refused("run", "--", "program", environment={"PATH": f"/nowhere:{self.folder}"}, says=["not executable"])
        program.chmod(0o755)
        self.refused("run", "--", program, says=["not a program for this machine", "#!"])
        program.write_text("#!/no/such/interpreter\n")
        self.refused("run", "--", program, says=["interpreter", str(program)])


@unittest.skipIf(sanitizer_of(SPILLWAY), "preload mode is not built with a sanitizer, and run has it for programs that do not spill")
class Run(Case):
    def test_exit_status_is_the_programs(self):
        for status in (0, 1, 2, 77, 255):
            self.assertEqual(spillway("run", "--", "sh", "-c", f"exit {status}").returncode, status)
        ended = spillway("run", "--", "sh", "-c", "kill -TERM $$")
        self.assertEqual(ended.returncode, -signal.SIGTERM)

    def test_arguments_streams_and_process_pass_unchanged(self):
        ended = spillway("run", "--memory", "64M", "--", "printf", "%s|", "--memory", "", "a b", "--")
        self.assertEqual(ended.stdout, "--memory||a b|--|")
        ended = spillway("run", "cat", input="in")
        self.assertEqual(ended.stdout, "in")
        child = subprocess.Popen([SPILLWAY, "run", "--", "sh", "-c", "echo $$"], stdout=subprocess.PIPE, text=True, env=CLEAN)
        self.assertEqual(int(child.communicate()[0]), child.pid)

    def test_each_option_becomes_its_variable(self):
        for name, kind, default in OPTIONS:
            flag, variable = "--" + name.replace("_", "-"), "SPILLWAY_" + name.upper()
            if name == "stats":
                continue
            with self.subTest(flag):
                if kind == "flag":
                    self.assertEqual(self.variables_of(flag), {variable: "1"})
                    self.assertEqual(self.variables_of(flag + "=0"), {variable: "0"})
                    continue
                value = {"size": "4M", "count": "3", "text": "clock"}[kind]
                value = {"page": "64K", "servers": "2", "satc_levels": "private", "storage": "/clock", "log_format": "json"}.get(name, value)
                self.assertEqual(self.variables_of(flag, value), {variable: value})
                self.assertEqual(self.variables_of(f"{flag}={value}"), {variable: value})

    def test_flags_go_before_variables_and_the_last_counts(self):
        self.assertEqual(self.variables_of(environment={"SPILLWAY_MEMORY": "64M"}), {"SPILLWAY_MEMORY": "64M"})
        self.assertEqual(self.variables_of("--memory", "8M", environment={"SPILLWAY_MEMORY": "nonsense"}),
                         {"SPILLWAY_MEMORY": "8M"})
        self.assertEqual(self.variables_of("--memory", "8M", "--memory", "9M"), {"SPILLWAY_MEMORY": "9M"})

    def test_a_path_is_that_of_the_folder_that_run_is_started_in(self):
        for here, there in ((".", os.getcwd() + "/."), ("./a b:c", os.getcwd() + "/./a b:c"), ("/dev/x", "/dev/x"), ("file:x?qd=1", "file:x?qd=1")):
            with self.subTest(here):
                self.assertEqual(self.variables_of("--storage", here), {"SPILLWAY_STORAGE": there})
                self.assertEqual(self.variables_of(environment={"SPILLWAY_STORAGE": here}), {"SPILLWAY_STORAGE": there})

    def test_a_program_that_does_not_spill_is_named(self):
        # That nothing is said of one which does: tests/e2e/refusals.
        said = re.compile(r"spillway: '[^\n]*/true' was not built by spillcc: [^\n]*\n")
        for program in ("true", shutil.which("true")):
            self.assertEqual(spillway("run", "--", program).returncode, 0)
            ended = spillway("run", "--preload=0", "--", program)
            self.assertEqual(ended.returncode, 0)
            self.assertRegex(ended.stderr, said)
            event = log_event(self, spillway("run", "--preload=0", "--log-format", "json", "--", program).stderr)
            self.assertEqual((event["event"], event["program"][-5:]), ("not_spilled", "/true"))
        script = self.folder / "script"
        script.write_text("#!/bin/sh\ntrue\n")
        script.chmod(0o755)
        self.assertEqual(spillway("run", "--", script).returncode, 0)
        true = pathlib.Path(shutil.which("true")).read_bytes()
        for length in (4, 20, 64, 100, len(true) // 2):  # cut anywhere, it is looked at and refused or started
            program = self.folder / "cut"
            program.write_bytes(true[:length])
            program.chmod(0o755)
            self.assertNotEqual(spillway("run", "--", program).returncode, 0)

    def test_path_is_searched_in_order(self):
        for folder, text in (("a", "first"), ("b", "second")):
            (self.folder / folder).mkdir()
            (self.folder / folder / "program").write_text(f"#!/bin/sh\necho {text}\n")
            (self.folder / folder / "program").chmod(0o755)
        path = f"{self.folder}/none:{self.folder}/a:{self.folder}/b"
        self.assertEqual(spillway("run", "program", environment={"PATH": path}).stdout, "first\n")
        (self.folder / "a" / "program").chmod(0o644)
        self.assertEqual(spillway("run", "program", environment={"PATH": path}).stdout, "second\n")
        (self.folder / "b" / "program").chmod(0o644)
        self.refused("run", "program", environment={"PATH": path}, says=["not executable"])

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_programs_that_are_for_others(self):
        program, copy = self.folder / "program", copied_for_everybody(self, SPILLWAY.parent) / "spillway"
        program.write_text("#!/bin/sh\n")
        for folder_mode, mode, said in ((0o700, 0o755, "closed to this user"), (0o755, 0o700, "may not be executed by this user")):
            self.folder.chmod(folder_mode)
            program.chmod(mode)
            ended = subprocess.run([copy, "run", "--", program], capture_output=True, text=True, env=CLEAN, timeout=HANG_SECONDS, preexec_fn=become_nobody)
            assert_refused(self, ended, str(program), said)
        shutil.copy("/bin/true", program)
        program.chmod(0o711)
        ended = subprocess.run([copy, "run", "--", program], capture_output=True, text=True, env=CLEAN, timeout=HANG_SECONDS, preexec_fn=become_nobody)
        self.assertEqual(ended.returncode, 0, ended)
        self.assertRegex(ended.stderr, rf"\Aspillway: '{program}' was not built by spillcc, or may not be read to see: [^\n]*\n\Z")

    def test_stats_file_is_tried_first(self):
        for path in (self.folder, self.folder / "none" / "stats.json", "/proc/stats.json", f"{self.folder}/"):
            with self.subTest(path):
                self.refused("run", "--stats", path, "--", "true", says=["stats", str(path)])
        fresh = self.folder / "stats.json"
        self.assertEqual(self.variables_of("--stats", fresh), {"SPILLWAY_STATS": str(fresh)})
        self.assertFalse(fresh.exists())
        fresh.write_text("old")
        self.assertEqual(spillway("run", "--stats", fresh, "--", "true").returncode, 0)
        self.assertEqual(fresh.read_text(), "old")
        self.assertEqual(spillway("run", "--stats", self.folder / "%p.json", "--", "true").returncode, 0)
        self.assertEqual(os.listdir(self.folder), ["stats.json"])

    def test_stats_are_not_for_a_disk(self):
        try:
            os.mknod(self.folder / "disk", 0o600 | stat.S_IFBLK, os.makedev(7, 250))
        except PermissionError:
            self.skipTest("no devices can be made here")
        self.refused("run", "--stats", self.folder / "disk", "--", "true", says=["stats", "is a disk"])

    def test_variables_reach_grandchildren(self):
        makefile = self.folder / "Makefile"
        makefile.write_text("all:\n\t@sh -c 'echo $$SPILLWAY_MEMORY; exit 3'\n")
        ended = spillway("run", "--memory", "64M", "--", "make", "-s", "-f", makefile)
        self.assertEqual(ended.stdout, "64M\n")
        self.assertEqual(ended.returncode, 2)  # make's own status for a recipe that failed


class Info(Case):
    def test_json_holds_what_the_text_shows(self):
        ended = spillway("info", "--json")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        machine = json.loads(ended.stdout)
        self.assertEqual(set(machine), {"cpu", "kernel", "io_uring", "linux_aio", "spdk", "memory", "cgroup", "limits", "devices", "storage", "problems"})
        self.assertEqual(machine["cpu"]["cores"], len(os.sched_getaffinity(0)))
        self.assertEqual(machine["kernel"]["release"], os.uname().release)
        self.assertEqual(machine["memory"]["machine_bytes"], os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        self.assertIn(machine["cgroup"]["version"], ("v1", "v2", "none"))
        built = (SPILLWAY.parent.parent / "lib" / "libspillway-spdk.so").exists()
        self.assertRegex(machine["spdk"]["library"], "^works$" if built else "^storage: spdk: there is no libspillway-spdk.so in .*; build Spillway where")
        self.assertEqual(machine["linux_aio"]["most_requests"], int(pathlib.Path("/proc/sys/fs/aio-max-nr").read_text()))
        self.assertEqual(machine["limits"]["max_map_count"], int(pathlib.Path("/proc/sys/vm/max_map_count").read_text()))
        for device in machine["devices"]["persistent_memory"] + machine["devices"]["nvme_character_devices"]:
            self.assertTrue(pathlib.Path(device).exists())
        if machine["io_uring"]["plain"] == "works":
            self.assertEqual(machine["io_uring"]["registered_file"], "works")
            self.assertIn("registered_memory", machine["io_uring"])
            self.assertIn("uring_cmd", machine["io_uring"])
        text = spillway("info").stdout
        for section in set(machine) - {"problems"}:
            self.assertIn(f"\n{section.replace('_', ' ')}\n", "\n" + text)
        self.assertIn(os.uname().release, text)

    def test_default_storage_follows_tmpdir(self):
        storage = json.loads(spillway("info", "--json", environment={"TMPDIR": str(self.folder)}).stdout)["storage"]
        self.assertEqual(storage["folder"], str(self.folder))
        self.assertGreater(storage["free_bytes"], 0)
        self.assertEqual(os.listdir(self.folder), [])
        machine = json.loads(spillway("info", "--json", environment={"TMPDIR": "/no/such"}).stdout)
        self.assertTrue(any("/no/such" in problem and "--storage" in problem for problem in machine["problems"]))

    def test_where_there_are_neither_rings_nor_linux_aio(self):
        io_uring_setup, io_setup = 425, 206
        neither = filtering((LOAD, 0, 0, 0), (EQUAL, 1, 0, io_uring_setup), (EQUAL, 0, 1, io_setup), (GIVE, 0, 0, FAIL | errno.EPERM), (GIVE, 0, 0, ALLOW))
        machine = json.loads(spillway("info", "--json", preexec_fn=neither).stdout)
        self.assertNotEqual(machine["linux_aio"]["contexts"], "works")
        problem, = (problem for problem in machine["problems"] if problem.startswith("io_uring: "))
        self.assertIn("or else blocking calls", problem)

    def test_a_default_storage_whose_files_have_names(self):
        """As on NFS: the runtime takes the name away again, and so does this."""
        def storage(**keywords):
            return json.loads(spillway("info", "--json", environment={"TMPDIR": str(self.folder)}, **keywords).stdout)["storage"]

        open_at, its_flags, nameless = 257, 32, 0o20000000
        without = filtering((LOAD, 0, 0, 0), (EQUAL, 0, 3, open_at), (LOAD, 0, 0, its_flags), (HAS, 0, 1, nameless), (GIVE, 0, 0, FAIL | errno.EOPNOTSUPP), (GIVE, 0, 0, ALLOW))
        self.assertEqual(storage(preexec_fn=without)["direct_io"], storage()["direct_io"])
        self.assertEqual(os.listdir(self.folder), [])

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    @unittest.skipIf(sanitizer_of(SPILLWAY), "what is copied is not built with a sanitizer")
    def test_a_default_storage_that_is_closed_to_this_user(self):
        copy = copied_for_everybody(self, SPILLWAY.parent) / "spillway"
        ended = subprocess.run([copy, "info", "--json"], capture_output=True, text=True, env={**CLEAN, "TMPDIR": "/etc"}, timeout=HANG_SECONDS, preexec_fn=become_nobody)
        machine = json.loads(ended.stdout)
        self.assertEqual(set(machine["storage"]), {"folder", "state"})
        self.assertTrue(any(problem.startswith("the default storage folder /etc cannot be used (Permission denied)") for problem in machine["problems"]))

    def test_a_device_is_described_and_left_alone(self):
        def described(text):
            ended = spillway("info", "--json", text)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            return json.loads(ended.stdout)

        folder = described(self.folder)
        self.assertEqual(set(folder), {"device", "medium_1", "problems"})
        self.assertIn(f"{self.folder} (unlinked file", folder["device"]["is"])
        self.assertRegex(folder["device"]["is"], "^(uring|aio|file):")
        self.assertEqual(folder["medium_1"]["path"], str(self.folder))
        self.assertIn(folder["medium_1"]["direct_io"], (True, False))
        self.assertGreaterEqual(folder["device"]["capacity_bytes"], 64 << 20)
        self.assertEqual(folder["problems"], [])
        self.assertEqual(os.listdir(self.folder), [])

        # What spilling would refuse is said, looked at, and left as it is.
        full = self.folder / "full"
        full.write_text("mine")
        described_full = described(f"file:{full}")
        self.assertEqual(set(described_full), {"medium_1", "problems"})
        self.assertIn("--storage-overwrite", described_full["problems"][0])
        store = self.folder / "store"
        self.assertEqual(spillway("kv", "make", store, "--capacity", "16M").returncode, 0)
        described_store = described(store)
        self.assertEqual(set(described_store), {"medium_1", "problems"})
        self.assertEqual(len(described_store["problems"]), 1)
        self.assertIn(f"{store}: this is a key-value store", described_store["problems"][0])  # and not how to lose it
        for offset, damage in ((40, b"\xff\xfe"), (0, bytes(4096)), ((512 << 10) + 40, b"\xff\xfe")):
            with store.open("r+b") as file:
                file.seek(offset)
                file.write(damage)
            self.assertIn("this is a key-value store", described(store)["problems"][0], offset)
        self.assertEqual(described_full["medium_1"]["is"].split()[1], "(file,")
        self.assertEqual(full.read_text(), "mine")

        # pmem would allocate all of it.
        self.assertEqual(set(described(f"pmem:{full}?size=1M,dax=0")), {"medium_1", "problems"})
        self.assertEqual(set(described(f"pmem:{self.folder}?size=1M,dax=0")), {"medium_1", "problems"})
        empty = self.folder / "empty"
        empty.touch()
        described(f"pmem:{empty}?size=1M,dax=0")
        self.assertEqual(empty.stat().st_size, 0)
        self.assertEqual(full.read_text(), "mine")

        # Paths may be of any bytes.
        odd = os.fsdecode(os.fsencode(self.folder) + b"/\xff\n")
        with open(odd, "w") as file:
            file.write("mine")
        self.assertEqual(set(described(odd)), {"medium_1", "problems"})
        shown = subprocess.run([SPILLWAY, "info", odd], env=CLEAN, capture_output=True, timeout=60).stdout
        self.assertNotIn(b"\xff\n: ", shown)

        several = described("fault:[stripe:[memory:64M,memory:32M]?unit=4K]")
        self.assertEqual(several["device"]["capacity_bytes"], 64 << 20)
        self.assertNotIn("medium_1", several)
        text = spillway("info", self.folder).stdout
        self.assertIn("\nmedium 1\n", text)
        self.assertIn("  can be polled ", text)

    @unittest.skipIf(sanitizer_of(SPILLWAY), "a sanitizer needs terabytes of addresses")
    def test_limits_are_seen_and_explained(self):
        ended = subprocess.run(["sh", "-c", f"ulimit -v 4000000; exec '{SPILLWAY}' info --json"], env=CLEAN,
                               capture_output=True, text=True, timeout=HANG_SECONDS)
        machine = json.loads(ended.stdout)
        self.assertEqual(machine["limits"]["address_space_bytes"], 4000000 * 1024)
        self.assertNotEqual(machine["limits"]["spill_range"], "works")
        self.assertTrue(any("ulimit -v" in problem for problem in machine["problems"]))

    def test_wrong_arguments(self):
        self.refused("info", "--yaml", says=["'--yaml'"])
        self.refused("info", "memory:1M", "more", says=["'more'"])
        self.refused("info", "", says=["path is empty"])  # of a variable that is not set
        self.refused("info", "memory:1", says=["too few"])
        self.refused("info", "/no/such/folder/file", says=["/no/such/folder/file"])
        self.refused("info", "/no/such\nfolder/file", says=["/no/such\\x0afolder/file"])
        self.refused("info", "/dev/null", says=["/dev/null", "neither"])
        trace = self.folder / "trace"
        trace.write_text("mine")
        self.refused("info", f"trace:file={trace}:[memory:1M]", says=["overwrite"])
        self.assertEqual(trace.read_text(), "mine")
        self.assertEqual(spillway("info", "--help").returncode, 0)


# What they show of programs that run: tests/e2e/seeing.
class Seeing(Case):
    def test_wrong_arguments(self):
        self.refused("dump", says=["usage: spillway dump PID|COREFILE ADDRESS LENGTH"])
        self.refused("dump", "1", "0x", "8", says=["'0x'", "address"])
        self.refused("dump", str(os.getpid()), "0x100000000000", "8", says=["does not run Spillway"])
        self.refused("top", "-1", says=["'-1'", "--once", "--prometheus"])
        self.refused("top", "\x1b[1m", says=["'\\x1b[1m'"])
        self.refused("top", "99999999999", says=["'99999999999'"])
        self.refused("top", str(os.getpid()), says=["does not run Spillway"])
        for name in ("dump", "top"):
            ended = spillway(name, "--help")
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            self.assertIn(f"usage: spillway {name}", ended.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
