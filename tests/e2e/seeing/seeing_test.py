#!/usr/bin/env python3
"""What a user can see of a spilled program.  seeing_test.py BIN WORK [unittest arguments]

Where it faults (--stats, --verbose).
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

BIN = pathlib.Path(sys.argv.pop(1)).resolve()
WORK = pathlib.Path(sys.argv.pop(1)).resolve()
SOURCES = pathlib.Path(__file__).resolve().parent
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("SPILLWAY_")}
# A name that JSON has to escape.
LIBRARY = WORK / 'a "quoted" é' / "libforeign.so"


def setUpModule():
    shutil.rmtree(WORK, ignore_errors=True)
    LIBRARY.parent.mkdir(parents=True)
    subprocess.run(["clang-19", "-O2", "-shared", "-fPIC", SOURCES / "foreign.c", "-o", LIBRARY], check=True)
    subprocess.run([BIN / "spillcc", "-O2", SOURCES / "faults.c", LIBRARY, "-o", WORK / "faults"], check=True, env=CLEAN)
    (WORK / "none.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([BIN / "spillcc", WORK / "none.c", "-o", WORK / "none"], check=True, env=CLEAN)


class FaultSites(unittest.TestCase):
    def run_faults(self, program, *options):
        stats = WORK / "stats.json"
        stats.unlink(missing_ok=True)
        ended = subprocess.run([BIN / "spillway", "run", "--memory", "1M", "--spill-all", "--storage", WORK, "--stats", stats,
                                *options, "--", program], env=CLEAN, capture_output=True, text=True, timeout=60)
        self.assertEqual((ended.returncode, ended.stdout), (0, f"sum {3 * 500 + 100 * 11}\n"), ended.stderr)
        return json.loads(stats.read_text())["spill"], ended.stderr

    def address_of(self, file, symbol):
        """The first address of the function and the one after it, as nm counts."""
        listed = subprocess.run(["nm", "-S", file], check=True, capture_output=True, text=True).stdout
        begin, size = re.search(rf"^(\w+) (\w+) [Tt] {symbol}$", listed, flags=re.M).groups()
        return int(begin, 16), int(begin, 16) + int(size, 16)

    def test_statistics_name_the_hottest(self):
        spill, _ = self.run_faults(WORK / "faults")
        sites = spill["fault_sites"]
        self.assertEqual(sum(site["count"] for site in sites), spill["faults"])
        hot, cold = sites[0], next(site for site in sites if site["symbol"] == "foreign_cold")
        self.assertEqual(hot["symbol"], "foreign_hot")
        for site in (hot, cold):
            self.assertEqual(site["module"].encode("latin-1").decode(), str(LIBRARY))
            begin, end = self.address_of(LIBRARY, site["symbol"])
            self.assertIn(int(site["offset"], 16), range(begin, end))
            self.assertEqual(site["over"], 0)
        # At most 64 pages of the 600 are mapped at one time.
        self.assertIn(hot["count"], range(3 * 600 - 2 * 64, 3 * 600 + 1))
        self.assertLessEqual(cold["count"], 100)

    def test_verbose_names_the_hottest(self):
        spill, said = self.run_faults(WORK / "faults", "--verbose")
        hot = spill["fault_sites"][0]
        self.assertIn(f"spillway: {hot['count']} of {spill['faults']} faults at libforeign.so+{hot['offset']} (foreign_hot)\n",
                      said)

    def test_a_static_program_names_offsets(self):
        foreign = WORK / "foreign.o"
        subprocess.run(["clang-19", "-O2", "-c", SOURCES / "foreign.c", "-o", foreign], check=True)
        for kind in ("-static", "-static-pie"):
            program = WORK / f"faults{kind}"
            subprocess.run([BIN / "spillcc", "-O2", kind, SOURCES / "faults.c", foreign, "-o", program], check=True, env=CLEAN)
            hot = self.run_faults(program)[0]["fault_sites"][0]
            self.assertEqual((hot["module"], hot["symbol"]), (str(program), ""))
            begin, end = self.address_of(program, "foreign_hot")
            self.assertIn(int(hot["offset"], 16), range(begin, end))

    def test_a_crossing_atomic_faults_where_it_is(self):
        """The runtime maps both pages for it: the site is the program's, not the runtime's."""
        program = WORK / "crossing"
        subprocess.run([BIN / "spillcc", "-O2", SOURCES / "crossing.c", "-o", program], check=True, env=CLEAN)
        stats = WORK / "stats.json"
        subprocess.run([program], check=True, timeout=60,
                       env={**CLEAN, "SPILLWAY_MEMORY": "1M", "SPILLWAY_SPILL_ALL": "1", "SPILLWAY_STORAGE": str(WORK),
                            "SPILLWAY_STATS": str(stats)})
        hot = json.loads(stats.read_text())["spill"]["fault_sites"][0]
        self.assertEqual(hot["module"], str(program))
        begin, end = self.address_of(program, "add_crossing")
        self.assertIn(int(hot["offset"], 16), range(begin, end + 1))

    def test_no_faults_no_sites(self):
        stats = WORK / "stats.json"
        ended = subprocess.run([BIN / "spillway", "run", "--storage", WORK, "--stats", stats, "--verbose", "--", WORK / "none"],
                               env=CLEAN, capture_output=True, text=True, timeout=60)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(json.loads(stats.read_text())["spill"]["fault_sites"], [])
        self.assertNotIn("faults at", ended.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
