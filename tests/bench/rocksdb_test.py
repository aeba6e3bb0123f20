#!/usr/bin/env python3
"""What `rocksdb` does before and after it has compiled RocksDB, which takes too long here; mixgraph itself is in limited_test.py.  rocksdb_test.py SPILLWAY [unittest arguments]

Times are never looked at.
"""
import json
import shutil
import types
import unittest

from bench_case import SPILLWAY, Case

import rocksdb
from cases import Cases
from lockstep import Failure

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


class Figures(Case):
    def test_a_row_is_over_the_block_cache(self):
        rates = {"ours": [200.0, 100.0, 300.0], "block": [100.0, 50.0, 100.0], "mmap": [100.0, 100.0, 100.0], "native": [400.0, 200.0, 600.0]}
        counted = {"cache": {"misses": 500, "evictions": 7}, "spill": {"file_maps": 3}}
        cpu = {"ours": [6.0, 6.0, 8.0], "block": [3.0, 2.0, 2.0], "mmap": [9.0, 9.0, 9.0], "native": [2.0, 2.0, 2.0]}
        row = rocksdb._row("disk/50", rates, cpu, counted, 1000)
        self.assertEqual((row["cpu_us"], row["cpu_ratio"], row["native_cpu_ratio"]), (6, 3, 3))
        self.assertEqual((row["ours"], row["peer"], row["ratio"], row["mmap_ratio"], row["native_ratio"]), (200, 100, 2, 2, 0.5))
        self.assertEqual((row["spread"], row["misses"], row["evictions"], row["file_maps"], row["bodies"]), (0.5, 0.5, 7, 3, 1))
        del rates["mmap"]
        self.assertNotIn("mmap_ratio", rocksdb._row("disk/50", rates, cpu, counted, 1000))
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
