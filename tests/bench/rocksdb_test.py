#!/usr/bin/env python3
"""What `rocksdb` does before and after it has compiled RocksDB, which takes too long here; mixgraph itself is in limited_test.py.  rocksdb_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import shutil
import types
import unittest
import unittest.mock

from bench_case import SPILLWAY, Case

import limited
import rocksdb
from cases import Cases
from lockstep import Failure, Late

LISTED = """\
set(SOURCES
        cache/cache.cc
        db/c.cc
        db/column_family.cc
        tools/ldb_cmd.cc
        utilities/write_batch_with_index/write_batch_with_index.cc)

list(APPEND SOURCES
  utilities/transactions/lock/range/range_tree/lib/util/dbt.cc
  utilities/transactions/lock/range/range_tree/lib/util/memarena.cc)

set(TESTS
        tools/ldb_cmd_test.cc)
"""


class Context:
    """Of a benchmark, as far as it is asked for."""

    def __init__(self, folder):
        self.folder, self.keep, self.storage, self.quick, self.cases, self.pairs = folder, folder / "keep", folder, True, Cases(), 0
        self.spillcc, self.spillcxx = SPILLWAY.with_name("spillcc"), SPILLWAY.with_name("spillc++")
        self.native_cc, self.native_cxx = (shutil.which(name) for name in ("clang-19", "clang++-19"))
        self.commands = []

    def progress(self, text):
        pass

    def build(self, what, command, **keywords):
        words = [str(word) for word in command]
        self.commands.append(words)
        if words[:2] == ["cmake", "--build"]:
            (self.folder / "rocksdb-ours/build").mkdir()
            (self.folder / "rocksdb-ours/build/librocksdb.a").write_text("compiled")


class Sources(Case):
    def test_what_nobody_uses_is_left_out(self):
        text = rocksdb.trimmed(LISTED)
        self.assertEqual(text, LISTED[:LISTED.index("        db/c.cc")] + "        db/column_family.cc\n        utilities/write_batch_with_index/write_batch_with_index.cc)\n\n\nset(TESTS\n"
                         "        tools/ldb_cmd_test.cc)\n")
        for other in (LISTED.replace("set(SOURCES", "set(FILES"), LISTED.replace("list(APPEND SOURCES", "list(APPEND MORE")):
            self.assertRaises(Failure, rocksdb.trimmed, other)

    def test_a_library_is_kept_until_the_compiler_is_another(self):
        source = self.folder / "source"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(LISTED)
        context = Context(self.folder)
        library = rocksdb.Library(context)
        made = library.library("ours", source)
        self.assertEqual(made.read_text(), "compiled")
        configured, built = context.commands
        self.assertIn(f"-DCMAKE_CXX_COMPILER={context.spillcxx}", configured)
        self.assertIn("-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG -fspill-bodies=1", configured)
        self.assertEqual(library.library("ours", source), made)
        self.assertEqual(len(context.commands), 2)
        (made.parent / "made_of").write_text("another compiler")
        library.library("ours", source)
        self.assertEqual(len(context.commands), 4)
        # Natively it is another, and the plugin is part of what tells one from the other.
        self.assertNotEqual(library.made_of("native"), library.made_of("ours"))
        library.sides["ours"] = library.sides["native"]
        self.assertEqual(library.made_of("native"), library.made_of("ours"))


class Contest(limited.Contest):
    """With programs that take no time: a turn of each is a second, but the third one of plain maps, which does not end."""

    def start(self, side, command, **_):
        self.running[side] = types.SimpleNamespace(read=lambda seconds: "started", ask=lambda question, seconds: self.answer(side, question), kill=lambda: None, finish=lambda: None)
        self.asked = []

    def answer(self, side, question):
        self.asked.append((side, question))
        if question != "open\n" and side == "mmap" and len([asked for asked in self.asked if asked[0] == side]) > 3:
            raise Late("mixgraph gave no answer")
        return "1 0.5 found"


class Turns(Case):
    def test_a_peer_that_is_late_is_left_out_and_named(self):
        context = Context(self.folder)
        context.spillway, context.say = SPILLWAY, lambda text: None
        measured = rocksdb.Rocksdb(context)
        measured.made, measured.copy, measured.limits, measured.pairs = {"plain": self.folder}, lambda side: side, True, 3
        (self.folder / "stats.json").write_text(json.dumps({"cache": {"misses": measured.operations, "evictions": 1}, "spill": {"file_maps": 3}}))
        with unittest.mock.patch.multiple(rocksdb, Contest=Contest, plain_bytes=lambda command: 0):
            row, notes = measured.contest("disk/25", 25, 2, {"ours": "ours", "native": "native"})
        self.assertEqual((row["pairs"], row["ratio"], row["native_ratio"], "mmap_ratio" in row), (3, 1, 1, False))
        # Of three turns, and of one that was twice as long.
        self.assertEqual(row["misses"], 1 / 5)
        self.assertEqual(notes, ["disk/25: the mmap program was not done with a turn after 1200 s"])


class Figures(Case):
    def test_a_row_is_over_the_block_cache(self):
        rates = {"ours": [200.0, 100.0, 300.0], "block": [100.0, 50.0, 100.0], "mmap": [100.0, 100.0, 100.0], "native": [400.0, 200.0, 600.0]}
        counted = {"cache": {"misses": 500, "evictions": 7}, "spill": {"file_maps": 3}}
        cpu = {"ours": [6.0, 6.0, 8.0], "block": [3.0, 2.0, 2.0], "mmap": [9.0, 9.0, 9.0], "native": [2.0, 2.0, 2.0]}
        row = rocksdb._row("disk/50", rates, cpu, counted, 1000)
        self.assertEqual((row["cpu_us"], row["cpu_ratio"], row["native_cpu_ratio"]), (6, 3, 3))
        self.assertEqual((row["ours"], row["peer"], row["mmap"], row["ratio"], row["mmap_ratio"], row["native_ratio"]), (200, 100, 100, 2, 2, 0.5))
        self.assertEqual((row["spread"], row["misses"], row["evictions"], row["file_maps"], row["bodies"]), (0.5, 0.5, 7, 3, 1))
        del rates["mmap"]
        self.assertFalse({"mmap", "mmap_ratio"} & set(rocksdb._row("disk/50", rates, cpu, counted, 1000)))
        self.assertEqual(rocksdb._summary([row]), {"disk_50_ratio": 2, "disk_50_mmap_ratio": 2, "disk_50_native_ratio": 0.5})

    def test_memory_and_threads_are_gone_through(self):
        for quick in (False, True):
            measured = rocksdb.Rocksdb(types.SimpleNamespace(quick=quick, pairs=1))
            measured.threads = 2
            self.assertEqual(measured.cases(), {"disk/100": (100, 2), "disk/50": (50, 2), "disk/25": (25, 2), "threads/1": (25, 1), "threads/2": (25, 2), "threads/4": (25, 4)})

    def test_tables_must_have_gone_through_the_cache(self):
        path = self.folder / "stats"

        def counted(file_maps, misses, evictions):
            path.write_text(json.dumps({"cache": {"misses": misses, "evictions": evictions}, "spill": {"file_maps": file_maps}}))
            return path

        self.assertEqual(rocksdb.check_spilled("c", counted(3, 5, 0), evicted=False)["cache"]["misses"], 5)
        rocksdb.check_spilled("c", counted(3, 5, 2), evicted=True)
        for numbers, evicted in (((0, 5, 2), True), ((3, 0, 2), True), ((3, 5, 0), True), ((0, 5, 0), False)):
            self.assertRaises(Failure, rocksdb.check_spilled, "c", counted(*numbers), evicted)


if __name__ == "__main__":
    unittest.main(verbosity=2)
