#!/usr/bin/env python3
"""`spillway persist run` as a user meets it.  persist_run_test.py SPILLWAY SRC_PERSIST [unittest arguments]

Every wrong input ends with exit status 2, nothing on standard output, and one line on standard error; then no program was started.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import CLEAN, HANG_SECONDS, assert_refused, become_nobody, take_paths, temporary_folder  # noqa: E402

SPILLWAY, SRC_PERSIST = take_paths(2)
OPTIONS = re.findall(r'^PERSIST_OPTION\((\w+), "([^"]*)", "([^"]*)",', (SRC_PERSIST / "own/options.inc").read_text(), flags=re.M)
LIBRARY = "libspillway_persist_preload.so"


def persist(*arguments, environment=None, program=SPILLWAY, **keywords):
    return subprocess.run([str(program), "persist", *map(str, arguments)], capture_output=True, text=True, env={**CLEAN, **(environment or {})},
                          timeout=HANG_SECONDS, **keywords)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self)

    def refused(self, *arguments, says=(), **keywords):
        assert_refused(self, persist(*arguments, **keywords), *says)

    def seen(self, *flags, environment=None, **keywords):
        """The variables that a program sees."""
        ended = persist("run", *flags, "--", "env", environment=environment, **keywords)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return dict(line.split("=", 1) for line in ended.stdout.splitlines() if line.startswith(("SPILLWAY_PERSIST_", "LD_PRELOAD=")))


class Persist(Case):
    def test_subcommands(self):
        self.refused(says=["no subcommand", "--help"])
        self.refused("fly", says=["'fly'", "--help"])
        ended = persist("--help")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn("spillway persist run", ended.stdout)

    def test_help_has_all_options(self):
        ended = persist("run", "--help")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertGreater(len(OPTIONS), 5)
        for name, _, argument in OPTIONS:
            self.assertIn(f"--{name} {'' if argument == '0|1' else argument}", ended.stdout)
            self.assertIn(f"variable SPILLWAY_PERSIST_{name.upper()}\n", ended.stdout)
        self.assertRegex(ended.stdout, "default memory, variable SPILLWAY_PERSIST_DOMAIN")


class Run(Case):
    def test_flags_become_variables(self):
        self.assertEqual(set(self.seen()), {"LD_PRELOAD"})
        seen = self.seen("--policy", "epoch", "--flushers=1-2", "--instruction", "clflush", "--domain", "file", "--dirtiness")
        del seen["LD_PRELOAD"]
        self.assertEqual(seen, {"SPILLWAY_PERSIST_POLICY": "epoch", "SPILLWAY_PERSIST_FLUSHERS": "1-2", "SPILLWAY_PERSIST_INSTRUCTION": "clflush",
                                "SPILLWAY_PERSIST_DOMAIN": "file", "SPILLWAY_PERSIST_DIRTINESS": "1"})

    def test_flags_go_before_variables(self):
        variables = {"SPILLWAY_PERSIST_POLICY": "inline", "SPILLWAY_PERSIST_SAMPLE": "8"}
        seen = self.seen("--policy=epoch", environment=variables)
        self.assertEqual((seen["SPILLWAY_PERSIST_POLICY"], seen["SPILLWAY_PERSIST_SAMPLE"]), ("epoch", "8"))

    def test_the_library_is_in_front_of_what_is_preloaded(self):
        alone = self.seen()["LD_PRELOAD"]
        self.assertEqual(alone, str(SPILLWAY.parent.parent / "lib" / LIBRARY))
        self.assertEqual(self.seen(environment={"LD_PRELOAD": alone})["LD_PRELOAD"], f"{alone}:{alone}")

    def test_statistics_are_named_absolutely(self):
        seen = self.seen("--stats", "s%p.json", cwd=self.folder)
        self.assertEqual(seen["SPILLWAY_PERSIST_STATS"], str(self.folder / "s%p.json"))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_program_is_the_process(self):
        self.assertEqual(persist("run", "--", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(persist("run", "sh", "-c", "kill -9 $$").returncode, -9)

    def test_wrong_words(self):
        self.refused("run", says=["no program"])
        self.refused("run", "--", says=["no program"])
        self.refused("run", "--speed", "1", "--", "true", says=["--speed", "--help"])
        self.refused("run", "--policy", says=["--policy", "inline|epoch"])
        self.refused("run", "--policy", "--", "true", says=["--policy", "inline|epoch"])
        for flag, value in (("policy", "fast"), ("instruction", "mov"), ("flushers", "0"), ("flushers", "3-2"), ("domain", "disk"), ("sample", "0"), ("dirtiness", "2")):
            self.refused("run", f"--{flag}={value}", "--", "true", says=[flag, f"'{value}'"])
        self.refused("run", "--dirtiness", "--record", self.folder / "record", "--", "true", says=["together"])
        self.refused("run", "--", "true", environment={"SPILLWAY_PERSIST_SPEED": "1"}, says=["SPILLWAY_PERSIST_SPEED"])
        for option in ("stats", "record"):
            self.refused("run", f"--{option}", "/nowhere/file", "--", "true", says=[option, "/nowhere/file"])

    def test_programs_that_cannot_start(self):
        self.refused("run", "--", "nosuch", says=["'nosuch'", "not found"])
        self.refused("run", "--", self.folder, says=["directory"])
        (self.folder / "text").write_text("")
        self.refused("run", "--", self.folder / "text", says=["not executable"])

    def test_programs_that_nothing_is_preloaded_into(self):
        source = self.folder / "main.c"
        source.write_text("int main(void) { return 0; }\n")
        subprocess.run(["clang-19", "-static", "-o", self.folder / "static", source], check=True)
        self.refused("run", "--", self.folder / "static", says=["statically", "spillcc -fspill-persist"])
        if os.getuid() == 0:
            subprocess.run(["clang-19", "-o", self.folder / "setuid", source], check=True)
            os.chown(self.folder / "setuid", 1, 1)
            os.chmod(self.folder / "setuid", 0o4755)
            self.refused("run", "--", self.folder / "setuid", says=["setuid"])

    def test_the_library_is_missing(self):
        (self.folder / "bin").mkdir()
        shutil.copy(SPILLWAY, self.folder / "bin/spillway")
        self.refused("run", "--", "true", program=self.folder / "bin/spillway", says=[LIBRARY, "install"])

    def test_there_is_no_proc(self):
        without = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
        if subprocess.run([*without, "true"], capture_output=True).returncode != 0:
            self.skipTest("nothing can be mounted here")
        ended = subprocess.run([*without, SPILLWAY, "persist", "run", "--", "true"], capture_output=True, text=True, env=CLEAN, timeout=HANG_SECONDS)
        assert_refused(self, ended, LIBRARY, "mount /proc")


@unittest.skipUnless(os.getuid() == 0, "needs root, to start as somebody else")
class Rights(Case):
    """A program over the library that nobody starts, who may write to one folder."""

    def setUp(self):
        super().setUp()
        self.place = temporary_folder(self, "/var/tmp")
        self.place.chmod(0o755)
        (self.place / "his").mkdir()
        (self.place / "his").chmod(0o777)
        shutil.copy(SPILLWAY.parent.parent / "lib/libspillway_persist.so.0", self.place)
        source = self.folder / "main.c"
        source.write_text("#include <spillway/persist.h>\n#include <stdlib.h>\n"
                          "int main(void) { char line[64]; return spillway_persist(line, 1) == SPILLWAY_PERSIST_OK ? system(\"env\") : 1; }\n")
        self.program = self.place / "program"
        subprocess.run(["clang-19", f"-I{SRC_PERSIST.parents[1]}/include", source, self.place / "libspillway_persist.so.0", f"-Wl,-rpath,{self.place}",
                        "-o", self.program], check=True)

    def started(self, **variables):
        settings = {f"SPILLWAY_PERSIST_{name.upper()}": str(value) for name, value in variables.items()}
        return subprocess.run([self.program], env={**CLEAN, **settings}, preexec_fn=become_nobody, capture_output=True, text=True, timeout=HANG_SECONDS)

    def test_a_setuid_program_takes_no_settings(self):
        stats = self.place / "his/stats.json"
        ended = self.started(stats=stats)
        self.assertEqual((ended.returncode, ended.stderr, stats.exists()), (0, "", True))
        self.assertIn("SPILLWAY_PERSIST_STATS", ended.stdout)
        self.assertEqual(self.started(policy="nonsense").returncode, 2)  # so they are settings
        stats.unlink()
        if os.statvfs(self.place).f_flag & os.ST_NOSUID:
            self.skipTest("no program is setuid here")
        self.program.chmod(0o4755)
        ended = self.started(stats=stats, policy="nonsense")
        self.assertEqual((ended.returncode, ended.stderr, stats.exists()), (0, "", False))
        self.assertNotIn("SPILLWAY_PERSIST_", ended.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
