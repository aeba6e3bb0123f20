#!/usr/bin/env python3
"""Programs compiled with -fspill-persist over a stand-in for its runtime.  persist_cc_test.py BUILD WORK [unittest arguments]

Each program, level and mode of -fspill-persist comes with each of the others in the slow tier (SPILLWAY_TEST_LONG); else each mode of each program with some levels, so that each
level has each mode with one of the programs.
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import SKIPPED, built_in, fresh, run_in, take_paths  # noqa: E402

BUILD, WORK = take_paths(2)
SOURCE = pathlib.Path(__file__).resolve().parent
BIN = WORK / "tree" / "bin"
run, built = functools.partial(run_in, WORK), functools.partial(built_in, WORK)
PROGRAMS = ("forms.c", "structures.cc")
NATIVE = {}  # what each program prints, by its source
IS_LONG = "SPILLWAY_TEST_LONG" in os.environ
POOL = concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0)))
MODES = ("flush", "record", "sample")
LEVELS = {"O0": ["-O0"], "O2": ["-O2"], "wide": ["-O3", "-march=x86-64-v3"], "lto": ["-O2", "-flto"],
          "thin": ["-O2", "-flto=thin"], "thinO0": ["-O0", "-flto=thin"]}


def setUpModule():
    fresh(WORK)
    BIN.mkdir(parents=True)
    library = WORK / "tree" / "lib"
    library.mkdir()
    for name in ("spillcc", "spillc++"):  # not links, which would lead back to the build's libraries
        shutil.copy(BUILD / "bin" / name, BIN)
    for path in (BUILD / "lib").iterdir():
        if path.name != "libspillway_persist.so":
            (library / path.name).symlink_to(path)
    built("clang-19", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", SOURCE / "stand_in.c", "-o",
          library / "libspillway_persist.so")
    for source in PROGRAMS:
        compiler = "clang++-19" if source.endswith("cc") else "clang-19"
        program = built(compiler, "-w", "-O1", "-pthread", SOURCE / source, "-o", f"native_{source}")
        NATIVE[source] = run(program).stdout
        assert "region" in NATIVE[source]


def compiled(source, name, *flags):
    compiler = BIN / ("spillc++" if source.endswith("cc") else "spillcc")
    return built(compiler, "-w", "-pthread", "-mllvm", "-spill-verify", *flags, SOURCE / source, "-o", f"{name}_{source}")


class PersistCc(unittest.TestCase):
    def reported(self, program, source, **settings):
        """What the stand-in says of a run that printed the same as natively, with the calls that it foretold."""
        report = WORK / f"{program.name}.json"
        report.unlink(missing_ok=True)
        ended = run("env", f"STAND_IN_REPORT={report}", program, **settings)
        self.assertEqual((ended.returncode, ended.stderr, ended.stdout), (0, "", NATIVE[source]))
        told = json.loads(report.read_text())
        calls = [int(word) for word in re.search(r"^calls (.*)$", ended.stdout, re.M)[1].split()]
        self.assertEqual([told[name] for name in ("flushes", "flushes_ordered", "fences")], calls)
        self.assertGreater(calls[0], 500)
        self.assertEqual(told["outside"], 0)
        return told

    def check(self, source, name, mode, flags, settings):
        """The copy that is made of reports is complete. Returns what the stand-in says."""
        option = "-fspill-persist" if mode == "flush" else f"-fspill-persist={mode}"
        told = self.reported(compiled(source, f"{name}_{mode}", option, *flags), source, **settings)
        if mode != "sample":
            self.assertEqual(told["samples"], 0)
        if mode != "record":
            self.assertEqual(told["stores"], 0)
        else:
            self.assertEqual(told["missed_bytes"], 0)
            self.assertGreater(told["stores"], 5000)
        return told

    def check_all(self, levels, prefix, flags, **settings):
        """Modes and levels of both programs, side by side."""
        jobs = {}
        for number, source in enumerate(PROGRAMS):
            for at, level in enumerate(levels):
                for mode in MODES:
                    # Sampling is compared with recording, and so comes with it.
                    is_pair = (at + number) % 2 == 0
                    if IS_LONG or (is_pair if mode != "flush" else not is_pair):
                        jobs[source, level, mode] = POOL.submit(self.check, source, prefix + level, mode, [*flags, *LEVELS[level]], settings)
        told = {}
        for (source, level, mode), job in jobs.items():
            with self.subTest(source=source, level=level, mode=mode):
                told[source, level, mode] = job.result()
                if mode == "sample":
                    stores = told[source, level, "record"]["stores"]
                    self.assertGreater(told[source, level, mode]["samples"], stores // 150)
                    # Each thread begins with one; stores of no bytes are counted and not reported.
                    self.assertLess(told[source, level, mode]["samples"], stores // 80)
        self.assertEqual({(level, mode) for _, level, mode in told}, {(level, mode) for level in levels for mode in MODES})
        return [WORK / f"{prefix}{level}_{mode}_{source}" for source, level, mode in told]

    def test_without_spilling(self):
        for program in self.check_all(LEVELS, "", ["-fno-spill"]):
            needed = run("readelf", "-d", program).stdout
            self.assertIn("libspillway_persist.so", needed)
            self.assertNotIn("libspillway.so", needed)

    def test_beside_spilling(self):
        self.check_all(("O0", "O2", "lto", "thin"), "spill_", [], memory="4M", spill_all=1, storage=WORK)

    def test_masked_stores(self):
        if "avx512vl" not in pathlib.Path("/proc/cpuinfo").read_text():
            self.skipTest("this processor has no avx512vl")
        program = compiled("forms.c", "avx512", "-fno-spill", "-fspill-persist=record", "-O3", "-march=x86-64-v4")
        self.assertEqual(self.reported(program, "forms.c")["missed_bytes"], 0)

    def test_sanitizers(self):
        for sanitizer in ("address", "thread", "undefined"):
            with self.subTest(sanitizer):
                program = compiled("structures.cc", sanitizer, "-fno-spill", "-fspill-persist=sample", "-O1",
                                   f"-fsanitize={sanitizer}", "-fno-sanitize=vptr")
                self.assertGreater(self.reported(program, "structures.cc")["samples"], 50)

    def test_each_function_is_done_once(self):
        text = built(BIN / "spillcc", "-fno-spill", "-fspill-persist=record", "-w", "-O2", "-S", "-emit-llvm", SOURCE / "forms.c",
                     "-o", "twice.ll")
        program = built(BIN / "spillcc", "-fno-spill", "-fspill-persist=record", "-O2", text, "-o", "twice")
        self.assertEqual(self.reported(program, "forms.c")["missed_bytes"], 0)

    def test_what_needs_no_call(self):
        for number, (level, flags) in enumerate(LEVELS.items()):
            spills = number % 2 != 0 and level != "wide"
            with self.subTest(level=level, spills=spills):
                program = compiled("direct.c", f"direct_{level}", "-fspill-persist" + ("=sample" if number % 3 == 0 else ""), *flags, *([] if spills else ["-fno-spill"]))
                self.assertEqual(run(program).stdout, "direct\n")

    def test_libraries(self):
        """A program and a library of whose flushes each waits for the other's fence."""
        (WORK / "line.c").write_text('void flush(char* p) { __asm__ volatile("clwb %0" : "+m"(*(volatile char*)p)); }\n')
        (WORK / "main.c").write_text(f'#include "{SOURCE}/region.h"\nvoid flush(char*);\n'
                                     'int main(void) { map_region(); for (int i = 0; i < 1000; ++i) flush(REGION);\n'
                                     '__asm__ volatile("sfence" ::: "memory"); expected.flushes = 1000; expected.fences = 1;\n'
                                     'print_region(); }\n')
        ours = [BIN / "spillcc", "-fno-spill", "-fspill-persist", "-O2"]
        library = built(*ours, "-fPIC", "-shared", WORK / "line.c", "-o", "libline.so")
        NATIVE["main.c"] = run(built("clang-19", WORK / "main.c", library, f"-Wl,-rpath,{WORK}", "-o", "native_main")).stdout
        self.reported(built(*ours, WORK / "main.c", library, f"-Wl,-rpath,{WORK}", "-o", "main"), "main.c")


if __name__ == "__main__":
    if "clwb" not in pathlib.Path("/proc/cpuinfo").read_text():
        print("this processor has no clwb")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
