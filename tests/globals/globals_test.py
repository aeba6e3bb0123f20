#!/usr/bin/env python3
"""Spilled globals across objects, libraries and linkers.  globals_test.py BIN WORK [unittest arguments]"""
import functools
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import built_in, fresh, run_in, take_paths  # noqa: E402

BIN, WORK = take_paths(2)
SOURCE = pathlib.Path(__file__).resolve().parent
SPILLED = ["-fspill-globals=4K"]
run, built = functools.partial(run_in, WORK), functools.partial(built_in, WORK)


def setUpModule():
    fresh(WORK)


class Globals(unittest.TestCase):
    def spilled(self, *command, least_bytes, evictions=100, **settings):
        """What the program prints with a small budget; so much of its globals was spilled when it ended."""
        stats = WORK / "stats.json"
        stats.unlink(missing_ok=True)
        ended = run(*command, **{"memory": "1M", "spill_all": 1, "storage": WORK, "stats": stats, **settings})
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended.stdout)
        told = json.loads(stats.read_text())
        self.assertGreaterEqual(told["spill"]["globals_bytes"], least_bytes)
        self.assertGreaterEqual(told["cache"]["evictions"], evictions)
        return ended.stdout, told

    def link(self, c, cxx, ours, flags, name):
        """One program of objects of every kind; of them foreign.o is always clang's."""
        objects = []
        for source in ("main.cc", "second.cc", "other.c"):
            objects.append(built(cxx if source.endswith("cc") else c, "-O1", *ours, *flags, "-c", SOURCE / source, "-o",
                                 f"{name}_{source}.o", "-Wno-unused-command-line-argument"))
        plain = [flag for flag in flags if not flag.startswith(("-flto", "-Wl", "-fuse"))]
        objects.append(built("clang-19", "-O1", *plain, "-c", SOURCE / "foreign.c", "-o", f"{name}_foreign.o",
                             "-Wno-unused-command-line-argument"))
        library = built(c, "-O1", *ours, "-fPIC", "-shared", SOURCE / "library.c", "-o", f"lib{name}.so")
        return built(cxx, "-O1", *ours, *flags, *objects, library, f"-Wl,-rpath,{WORK}", "-o", name)

    def test_objects_of_every_kind_share_their_globals(self):
        expected = run(self.link("clang-19", "clang++-19", [], [], "native")).stdout
        self.assertIn("early 3 77 99", expected)
        for name, flags in {"bfd": ["-fuse-ld=bfd"], "lld": ["-fuse-ld=lld"], "fixed": ["-fno-pie", "-no-pie"],
                            "sections": ["-fdata-sections", "-ffunction-sections", "-Wl,--gc-sections"],
                            "lto": ["-flto"], "thin": ["-flto=thin"]}.items():
            with self.subTest(name):
                program = self.link(BIN / "spillcc", BIN / "spillc++", SPILLED, flags, name)
                # Of main.cc, second.cc, other.c and library.c; 320,000 bytes each.
                out, told = self.spilled(program, least_bytes=4 * 323584)
                self.assertEqual(out, expected)
                self.assertGreaterEqual(told["spill"]["faults"], 1)  # foreign.c on of_main
                for seed, page in enumerate(("4K", "16K", "64K"), 1):
                    out, _ = self.spilled(program, least_bytes=0, evictions=1, chaos=seed, page=page)
                    self.assertEqual(out, expected)

    def test_a_global_that_nobody_uses_is_dropped_with_its_record(self):
        source = WORK / "unused.c"
        source.write_text("char unused[100000]; char used[100000];\nint main(int n, char** v) { return used[n * 2]; }\n")
        program = built(BIN / "spillcc", "-O1", *SPILLED, "-fdata-sections", "-Wl,--gc-sections", "-fuse-ld=lld", source, "-o",
                        "unused")
        self.assertNotIn("unused", run("nm", program).stdout.replace("spillway", ""))
        _, told = self.spilled(program, least_bytes=102400, evictions=0)
        self.assertEqual(told["spill"]["globals_bytes"], 102400)

    def test_libraries_come_and_go(self):
        plugin = built("clang-19", "-O1", "-fPIC", "-shared", SOURCE / "plugin.c", "-o", "native_plugin.so")
        native = built("clang-19", "-O1", "-pthread", SOURCE / "loader.c", "-o", "native_loader")
        expected = run(native, plugin).stdout
        self.assertEqual(expected.count("begin 2 3 0"), 4)
        self.assertEqual(expected.count("262144 5"), 4)
        plugin = built(BIN / "spillcc", "-O1", *SPILLED, "-fPIC", "-shared", SOURCE / "plugin.c", "-o", "plugin.so")
        ours = built(BIN / "spillcc", "-O1", "-pthread", SOURCE / "loader.c", "-o", "loader")
        for chaos in (0, 1, 2):
            with self.subTest(chaos=chaos):
                out, told = self.spilled(ours, plugin, least_bytes=0, chaos=chaos)
                self.assertEqual(out, expected)
                self.assertEqual(told["spill"]["globals_bytes"], 0)

    def test_globals_above_the_frames_stay(self):
        # Without randomised addresses libraries lie right below the stack.
        program = self.link(BIN / "spillcc", BIN / "spillc++", SPILLED, [], "above")
        expected = run(self.link("clang-19", "clang++-19", [], [], "native_above")).stdout
        out, told = self.spilled("setarch", "-R", program, least_bytes=3 * 323584, evictions=0, memory="512M")
        self.assertEqual(out, expected)
        self.assertGreaterEqual(told["spill"]["globals_left_bytes"], 323584)


if __name__ == "__main__":
    unittest.main(verbosity=2)
