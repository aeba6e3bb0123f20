#!/usr/bin/env python3
"""Programs compiled with -fspill-persist over a stand-in for its runtime.  persist_cc_test.py BUILD WORK [unittest arguments]"""
import functools
import json
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
        report = WORK / "report.json"
        report.unlink(missing_ok=True)
        ended = run("env", f"STAND_IN_REPORT={report}", program, **settings)
        self.assertEqual((ended.returncode, ended.stderr, ended.stdout), (0, "", NATIVE[source]))
        told = json.loads(report.read_text())
        calls = [int(word) for word in re.search(r"^calls (.*)$", ended.stdout, re.M)[1].split()]
        self.assertEqual([told[name] for name in ("flushes", "flushes_ordered", "fences")], calls)
        self.assertGreater(calls[0], 500)
        self.assertEqual(told["outside"], 0)
        return told

    def check(self, source, name, flags, **settings):
        """In all modes. Sampling counts what recording reports; the copy that is made of reports is complete."""
        told = self.reported(compiled(source, name, "-fspill-persist", *flags), source, **settings)
        self.assertEqual((told["stores"], told["samples"]), (0, 0))
        told = self.reported(compiled(source, name, "-fspill-persist=record", *flags), source, **settings)
        self.assertEqual((told["missed_bytes"], told["samples"]), (0, 0))
        self.assertGreater(told["stores"], 5000)
        stores = told["stores"]
        told = self.reported(compiled(source, name, "-fspill-persist=sample", *flags), source, **settings)
        self.assertEqual(told["stores"], 0)
        self.assertGreater(told["samples"], stores // 150)
        # Each thread begins with one; stores of no bytes are counted and not reported.
        self.assertLess(told["samples"], stores // 80)

    def test_without_spilling(self):
        for source in PROGRAMS:
            for name, flags in LEVELS.items():
                with self.subTest(source=source, level=name):
                    self.check(source, name, ["-fno-spill", *flags])
                    needed = run("readelf", "-d", WORK / f"{name}_{source}").stdout
                    self.assertIn("libspillway_persist.so", needed)
                    self.assertNotIn("libspillway.so", needed)

    def test_beside_spilling(self):
        for source in PROGRAMS:
            for name in ("O0", "O2", "lto", "thin"):
                with self.subTest(source=source, level=name):
                    self.check(source, f"spill_{name}", LEVELS[name], memory="4M", spill_all=1, storage=WORK)

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
    unittest.main()
