#!/usr/bin/env python3
"""What a user can see of a spilled program.  seeing_test.py BIN WORK [unittest arguments]

Where it faults (--stats, --verbose), what its memory holds (spillway dump), the same in gdb. What it does: top_test.py.
"""
import array
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import unittest

from programs import ADDRESSES, BIN, LIBRARY, PAGE, PUBLISHED, RANGE_END, SOURCES, WORK, Live, allow_cores, setUpModule, spillway  # noqa: F401
from support import CLEAN, HANG_SECONDS, NOBODY, ONE_LINE, copied_for_everybody, environment, fresh


class FaultSites(unittest.TestCase):
    def run_faults(self, program, *options):
        stats = WORK / "stats.json"
        stats.unlink(missing_ok=True)
        ended = subprocess.run([BIN / "spillway", "run", "--memory", "1M", "--spill-all", "--storage", WORK, "--stats", stats,
                                *options, "--", program], env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS)
        self.assertEqual((ended.returncode, ended.stdout), (0, f"sum {3 * 500 + 100 * 11}\n"), ended.stderr)
        return json.loads(stats.read_bytes())["spill"], ended.stderr

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
            self.assertEqual(site["module"], str(LIBRARY))
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

    def test_verbose_sums_up(self):
        program = WORK / "sums"
        # It ends when nothing is written any more: what the background evicts and writes is not counted between the statistics and the message.
        program.with_suffix(".c").write_text("""#include <stdlib.h>
            #include <sys/resource.h>
            #include <unistd.h>
            static long written(void) {
              struct rusage usage;
              return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_oublock : 0;
            }
            int main(int argc, char** arguments) {
              const long bytes = atol(arguments[1]) << 20;
              volatile char* memory = malloc(bytes);
              for (long i = 0; i < bytes; i += 64) memory[i] = (char)i;
              long before;
              do {
                before = written();
                usleep(200000);
              } while (written() != before);
              return argc != 2 || memory[bytes - 64] != (char)(bytes - 64);
            }""")
        subprocess.run([BIN / "spillcc", "-O2", "-fspill-bodies=2", program.with_suffix(".c"), "-o", program], check=True, env=CLEAN)
        # 8M are too few for native bodies, which run while 40M last.
        for budget, megabytes, native in (("8M", 24, None), ("40M", 8, ("to the end", 0)), ("40M", 96, ("until memory was full", 1))):
            with self.subTest(budget=budget, megabytes=megabytes):
                stats = WORK / "stats.json"
                ended = subprocess.run([BIN / "spillway", "run", "--memory", budget, "--storage", WORK, "--stats", stats, "--verbose", "--",
                                        program, str(megabytes)], env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS)
                self.assertEqual(ended.returncode, 0, ended.stderr)
                told = json.loads(stats.read_text())
                cache, storage, spill = told["cache"], told["storage"], told["spill"]
                line = re.search(rf"^spillway: budget {budget}, peak (\d+)M; misses (\d+), evictions (\d+), read (\d+)M, written (\d+)M on "
                                 rf"\w+:{re.escape(str(WORK))}\b.*; faults (\d+), slow translations (\d+)$", ended.stderr, re.M)
                self.assertIsNotNone(line, ended.stderr)
                self.assertEqual([int(number) for number in line.groups()],
                                 [told["memory"]["peak_bytes"] >> 20, cache["misses"], cache["evictions"], storage["read_bytes"] >> 20,
                                  storage["write_bytes"] >> 20, spill["faults"], spill["translations_slow"]])
                if native is None:
                    self.assertNotIn("native bodies ran", ended.stderr)
                    self.assertGreater(cache["evictions"], 1000)
                    self.assertNotEqual(cache["evictions"], cache["misses"])  # what was mixed up would not be seen
                    continue
                end, number = native
                self.assertEqual(spill["native_end"], number)
                self.assertIn(f"spillway: native bodies ran for {spill['native_ms']} ms, {end}; {cache['regions_mapped']} regions of 2M, "
                              f"{cache['regions_unmapped']} of them unmapped again\n", ended.stderr)

    def test_a_static_program_names_offsets(self):
        for kind in ("-static", "-static-pie"):
            program = WORK / f"faults{kind}"
            subprocess.run([BIN / "spillcc", "-O2", kind, SOURCES / "faults.c", WORK / "foreign.o", "-o", program], check=True, env=CLEAN)
            hot = self.run_faults(program)[0]["fault_sites"][0]
            self.assertEqual((hot["module"], hot["symbol"]), (str(program), ""))
            begin, end = self.address_of(program, "foreign_hot")
            self.assertIn(int(hot["offset"], 16), range(begin, end))

    def test_a_crossing_atomic_faults_where_it_is(self):
        """The runtime maps both pages for it: the site is the program's, not the runtime's."""
        program = WORK / "crossing"
        subprocess.run([BIN / "spillcc", "-O2", SOURCES / "crossing.c", "-o", program], check=True, env=CLEAN)
        stats = WORK / "stats.json"
        subprocess.run([program], check=True, timeout=HANG_SECONDS, env=environment(memory="1M", spill_all=1, storage=WORK, stats=stats))
        hot = json.loads(stats.read_text())["spill"]["fault_sites"][0]
        self.assertEqual(hot["module"], str(program))
        begin, end = self.address_of(program, "add_crossing")
        self.assertIn(int(hot["offset"], 16), range(begin, end + 1))

    def test_no_faults_no_sites(self):
        stats = WORK / "stats.json"
        ended = subprocess.run([BIN / "spillway", "run", "--storage", WORK, "--stats", stats, "--verbose", "--", WORK / "none"],
                               env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(json.loads(stats.read_text())["spill"]["fault_sites"], [])
        self.assertNotIn("faults at", ended.stderr)

def dumped_core(test, kinds=None, **settings):
    """A program that worked and was ended by SIGABRT, and the core file that the kernel wrote, of those kinds of memory."""
    with open("/proc/sys/kernel/core_pattern") as pattern:
        name = pattern.read().strip()
    if name.startswith(("|", "/")):
        test.skipTest(f"core files go to '{name}': as root, echo core > /proc/sys/kernel/core_pattern")
    folder = fresh(WORK / "cores")
    live = Live(test, cwd=folder, **settings)
    live.ask("work")
    if kinds is not None:
        pathlib.Path(f"/proc/{live.pid}/coredump_filter").write_text(hex(kinds))
    os.kill(live.pid, signal.SIGABRT)
    live.child.wait(timeout=HANG_SECONDS)
    [core] = folder.iterdir()
    return live, core


def copy_core(core, path):
    # It is mostly holes, gigabytes of them.
    subprocess.run(["cp", "--sparse=always", core, path], check=True)


def bytes_in_core(core):
    """Places in the file where there are bytes, not holes: of each 4096 one."""
    places = []
    with open(core, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        at = 0
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing but holes
                break
            hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            places += range(at, hole, PAGE)
            at = hole
    return places


def place_in_core(core, address):
    """Where in the file this address lies."""
    with open(core, "rb") as file:
        head = file.read(64)
        begin, count = struct.unpack_from("Q", head, 32)[0], struct.unpack_from("H", head, 56)[0]
        file.seek(begin)
        for kind, _, offset, start, _, size, *_ in struct.iter_unpack("IIQQQQQQ", file.read(56 * count)):
            if kind == 1 and start <= address < start + size:
                return offset + address - start
    raise AssertionError(f"{core} has nothing at {address:#x}")

class Dump(unittest.TestCase):
    def dump(self, live, offset, length, *options):
        ended = spillway("dump", live.pid, hex(live.address + offset), length, *options)
        self.assertEqual((ended.returncode, ended.stderr), (0, b""))
        return ended.stdout

    def assert_all(self, live):
        self.assertTrue(self.dump(live, 0, live.bytes, "--raw") == live.words.tobytes())

    def refused(self, *arguments, says, **settings):
        ended = spillway("dump", *arguments, **settings)
        self.assertEqual((ended.returncode, ended.stdout), (2, b""), ended)
        self.assertRegex(ended.stderr.decode(), ONE_LINE)
        self.assertIn(says, ended.stderr.decode())

    def test_in_memory_and_on_storage(self):
        # A quarter of it is in memory.
        for settings in ({}, {"page": "64K"}, {"page": "2M", "memory": "20M", "megabytes": 60}, {"storage": "memory:64M"},
                         {"storage": f"fault:seed=1,read_eio=1/1000000:[{WORK}]"}, {"storage": f"file:{WORK}"},
                         {"chaos": 3}, {"chaos": 4, "page": "16K"}, {"program": "live-static"}):
            with self.subTest(settings):
                self.assert_all(Live(self, **settings))

    def test_storage_that_only_the_process_can_read(self):
        live = Live(self, storage=f"encrypt:[{WORK}]")
        said = set()
        for at in range(0, live.bytes, 64 * PAGE):
            ended = spillway("dump", live.pid, hex(live.address + at), PAGE, "--raw")
            if ended.returncode == 0:
                self.assertTrue(ended.stdout == live.words.tobytes()[at : at + PAGE])
            else:
                said.add(ended.stderr.decode().split(": ", 1)[1].split(" from ")[1])
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said.pop(), r"\Aencrypt:\[.*\]: only the process itself can read there\n\Z")

    def test_hexadecimal(self):
        live = Live(self)
        # Lines begin where it is asked to, and go on across a page's edge; the last is short.
        begin = PAGE - 20
        bytes_ = live.words.tobytes()[begin : begin + 39]
        lines = []
        for at in range(0, 39, 16):
            piece = bytes_[at : at + 16]
            halves = [" ".join(f"{byte:02x}" for byte in half).ljust(23) for half in (piece[:8], piece[8:])]
            text = "".join(chr(byte) if 0x20 <= byte < 0x7f else "." for byte in piece)
            lines.append(f"{live.address + begin + at:012x}  {halves[0]}  {halves[1]}  |{text}|\n")
        self.assertEqual(self.dump(live, begin, 39).decode(), "".join(lines))
        self.assertEqual(self.dump(live, begin, "0x27").decode(), "".join(lines))
        ended = spillway("dump", live.pid, live.address, "1K", "--raw")
        self.assertEqual(ended.stdout, live.words.tobytes()[:1024])

    def test_while_threads_work(self):
        for settings in ({}, {"chaos": 5}, {"page": "16K"}):
            with self.subTest(settings):
                live = Live(self, megabytes=3, **settings)
                live.ask("work")
                for _ in range(8):
                    got = array.array("Q", self.dump(live, 0, live.bytes, "--raw"))
                    for at in range(511, len(got), 512):
                        got[at] = live.words[at]
                    self.assertTrue(got == live.words)
                self.assertEqual(live.ask("rest"), "done")

    def test_a_stopped_program(self):
        live = Live(self)
        live.ask("work")
        os.kill(live.pid, signal.SIGSTOP)
        first = self.dump(live, 0, live.bytes, "--raw")
        self.assertEqual(first[:PAGE - 8], live.words.tobytes()[:PAGE - 8])
        self.assertTrue(first == self.dump(live, 0, live.bytes, "--raw"))
        os.kill(live.pid, signal.SIGCONT)
        self.assertEqual(live.ask("rest"), "done")

    def test_wrong_addresses(self):
        live = Live(self)
        end = live.address + live.bytes
        self.refused(live.pid, "0x1000", 8, says="0x1000 is not spilled memory")
        self.refused(live.pid, hex(RANGE_END - 8), 16, says="0x200000000000 is not spilled memory")
        self.refused(live.pid, hex(RANGE_END - PAGE), 8, says=f"nothing is allocated at {RANGE_END - PAGE:#x}")
        self.refused(live.pid, hex(end - 8), "1G", says=f"nothing is allocated at ")
        self.assertEqual(live.ask("free"), "done")
        self.refused(live.pid, hex(live.address + 24), 8, says=f"nothing is allocated at {live.address + 24:#x}")

    def test_a_spilled_global(self):
        (WORK / "global.c").write_text("#include <stdio.h>\n#include <unistd.h>\nchar data[1 << 20];\n"
                                       'int main(void) { data[1] = 7; printf("%p\\n", (void *)data); fflush(stdout); return pause(); }\n')
        subprocess.run([BIN / "spillcc", "-fspill-globals", WORK / "global.c", "-o", WORK / "global"], check=True, env=CLEAN)
        program = subprocess.Popen([WORK / "global"], env=environment(storage=WORK), stdout=subprocess.PIPE, text=True)
        for cleanup in (program.stdout.close, program.wait, program.kill):
            self.addCleanup(cleanup)
        address = program.stdout.readline().strip()
        self.assertEqual(spillway("dump", program.pid, address, 2, "--raw").stdout, b"\0\7")
        for length in ("2M", hex((1 << 64) - 1)):  # behind it, and behind all addresses
            self.refused(program.pid, address, length, says="nothing is allocated at ")

    def test_wrong_words(self):
        live = Live(self)
        self.refused(says="usage: spillway dump PID|COREFILE ADDRESS LENGTH")
        self.refused(live.pid, live.address, says="usage:")
        self.refused(live.pid, live.address, 8, 9, says="usage:")
        self.refused(live.pid, live.address, 8, "--row", says="no option '--row'")
        self.refused("12x", live.address, 8, says="'12x' is neither a process id nor a core file")
        self.refused(0, live.address, 8, says="'0' is not a process id")
        self.refused(live.pid, "0x12g", 8, says="'0x12g' is not an address")
        self.refused(live.pid, "", 8, says="'' is not an address")
        self.refused(live.pid, live.address, "many", says="'many' is not a size")
        self.refused(live.pid, live.address, 0, says="LENGTH is 0")

    def test_wrong_processes(self):
        live = Live(self)
        with open("/proc/sys/kernel/pid_max") as limit:
            self.refused(int(limit.read()) + 5, live.address, 8, says="there is no process")
        self.refused(os.getpid(), live.address, 8, says="does not run Spillway")
        self.refused(live.fork(), live.address, 8, says="is a child of fork")
        zombie = subprocess.Popen(["true"])
        os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        self.refused(zombie.pid, live.address, 8, says="has no memory")
        zombie.wait()
        with open(f"/proc/{live.pid}/mem", "wb", buffering=0) as memory:
            memory.seek(PUBLISHED + 8)
            memory.write(struct.pack("Q", 12345))
        self.refused(live.pid, live.address, 8, says="runs another version of Spillway")

    @unittest.skipIf(os.getuid() != 0, "needs root to become somebody else")
    def test_not_ours(self):
        live = Live(self)
        self.refused(live.pid, live.address, 8, says="may not be looked at", user=NOBODY, group=NOBODY,
                     bin_folder=copied_for_everybody(self, BIN))

    def test_core_files(self):
        """Of a core that the kernel writes: what was in memory, and all of it where storage was memory too."""
        for settings in ({}, {"page": "16K"}, {"storage": "memory:64M"}, {"program": "live-static"}):
            with self.subTest(settings):
                live, core = dumped_core(self, megabytes=2, **settings)
                found = 0
                asked = range(0, live.bytes, 4 * PAGE)
                for at in asked:
                    ended = spillway("dump", core, hex(live.address + at), PAGE - 8, "--raw")
                    if ended.returncode == 0:
                        found += 1
                        self.assertTrue(ended.stdout == live.words.tobytes()[at : at + PAGE - 8])
                    else:
                        self.assertEqual(ended.returncode, 1)
                        self.assertRegex(ended.stderr.decode(), r"\Aspillway: 0x\w+ was on storage, which ended [^\n]+\n\Z")
                self.assertGreater(found, len(asked) // 20)
                if "storage" in settings:
                    self.assertEqual(found, len(asked))
                else:  # half of it has room in memory
                    self.assertLess(found, len(asked))
                self.refused(core, "0x1000", 8, says="is not spilled memory")
                # The frames are in it once, though mapped twice: cache, metadata and what the program has besides.
                self.assertLess(core.stat().st_blocks * 512, 24 << 20)

    def test_core_files_without_frames(self):
        live, core = dumped_core(self, kinds=1, megabytes=2)  # private memory only
        said = {spillway("dump", core, hex(live.address + at), 8).stderr.decode().split(":")[-1] for at in range(0, live.bytes, 16 * PAGE)}
        self.assertIn(" /proc/PID/coredump_filter left that memory out\n", said)

    def test_wrong_core_files(self):
        live, core = dumped_core(self, megabytes=1)
        where = hex(live.address)
        for path, says in ((WORK / "live", "is neither a process id nor a core file"), (WORK, "is neither"),
                           (WORK / "nowhere", "is neither"), ("/dev/zero", "is neither")):
            self.refused(path, where, 8, says=says)
        os.mkfifo(WORK / "pipe")  # nobody will ever write to it
        self.refused(WORK / "pipe", where, 8, says="is neither a process id nor a core file")
        # A program that does not run Spillway.
        folder = WORK / "stranger"
        folder.mkdir()
        stranger = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, cwd=folder, preexec_fn=allow_cores)
        os.kill(stranger.pid, signal.SIGABRT)
        stranger.wait(timeout=HANG_SECONDS)
        stranger.stdin.close()
        [other] = folder.iterdir()
        self.refused(other, where, 8, says="is not of a program that runs Spillway")
        # A runtime of another build; an impossible map; pieces that overlap.
        at_published = place_in_core(core, PUBLISHED)
        with open(core, "rb") as file:
            file.seek(at_published)
            words = struct.unpack("128Q", file.read(1024))
        page_bytes = PUBLISHED + 8 * (words.index(ADDRESSES) + 1)  # the cache is of all addresses
        for address, word, says in ((PUBLISHED + 8, 12345, "is of another version of Spillway"),
                                    (page_bytes, 0, "it is garbled"), (page_bytes, 4097, "it is garbled")):
            with self.subTest(says=says, word=word):
                changed = WORK / "changed"
                copy_core(core, changed)
                with open(changed, "r+b") as file:
                    file.seek(place_in_core(core, address))
                    file.write(struct.pack("Q", word))
                self.refused(changed, where, 8, says=says)
        copy_core(core, changed)
        with open(changed, "r+b") as file:
            third = struct.unpack_from("Q", file.read(64), 32)[0] + 2 * 56
            file.seek(third + 16)
            file.write(struct.pack("Q", PUBLISHED + 8))
        self.refused(changed, where, 8, says="its pieces overlap")

    def test_core_files_cut_short(self):
        """Whatever is left of it: the page's bytes, that it was on storage, or that the file was cut short."""
        live, core = dumped_core(self, megabytes=1)
        # Two pages that were in memory, and two on storage: which these are depends on how far the program came.
        whole = {}
        for page in range(live.address, live.address + live.bytes, live.bytes // 64):
            ended = spillway("dump", core, hex(page), 64, "--raw")
            if [other.returncode for other in whole.values()].count(ended.returncode) < 2:
                whole[page] = ended
            if len(whole) == 4:
                break
        outcomes = sorted(ended.returncode for ended in whole.values())
        self.assertEqual(outcomes, [0, 0, 1, 1])
        random_ = random.Random(1)
        places = bytes_in_core(core)
        cut = WORK / "cut"
        copy_core(core, cut)
        with open(cut, "r+b") as file:
            lengths = [random_.choice(places) + random_.randrange(PAGE) for _ in range(30)] + [core.stat().st_size - 1, 100, 64, 63, 1, 0]
            for length in sorted(lengths, reverse=True):
                file.truncate(length)
                for page, expected in whole.items():
                    ended = spillway("dump", cut, hex(page), 64, "--raw")
                    with self.subTest(length=length, page=hex(page)):
                        if ended.returncode == 2:
                            outcomes.append(2)
                            self.assertEqual(ended.stdout, b"")
                            self.assertRegex(ended.stderr.decode(), r"\Aspillway: [^\n]*(was cut short|is neither)[^\n]*\n\Z")
                        else:
                            self.assertEqual((ended.returncode, ended.stdout, ended.stderr),
                                             (expected.returncode, expected.stdout, expected.stderr))
        self.assertGreater(outcomes.count(2), len(lengths) // 2)

    def test_garbled_core_files(self):
        """Words of the headers and of the published page are anything: it ends with one line, never by a signal."""
        live, core = dumped_core(self, megabytes=1)
        random_ = random.Random(2)
        published = place_in_core(core, PUBLISHED)
        garbled = WORK / "garbled"
        copy_core(core, garbled)
        with open(garbled, "r+b") as file:
            headers = struct.unpack_from("Q", file.read(64), 32)[0]
            places = [*range(0, 64, 8), *(headers + 8 * random_.randrange(7 * 40) for _ in range(30)),
                      *range(published, published + 1024, 8)]
            for place in places:
                file.seek(place)
                kept = file.read(8)
                for word in (random_.choice((0, 2**64 - 1, random_.randrange(2**64))),
                             int.from_bytes(kept, "little") ^ 1 << random_.randrange(64)):
                    file.seek(place)
                    file.write(word.to_bytes(8, "little"))
                    file.flush()
                    ended = spillway("dump", garbled, hex(live.address + random_.randrange(live.bytes)), 1)
                    with self.subTest(place=place, word=hex(word)):
                        self.assertIn(ended.returncode, (0, 1, 2))
                        if ended.returncode:
                            self.assertRegex(ended.stderr.decode(), ONE_LINE)
                file.seek(place)
                file.write(kept)

    def test_output_that_cannot_be_written(self):
        live = Live(self)
        with open("/dev/full", "wb") as full:
            ended = subprocess.run([BIN / "spillway", "dump", str(live.pid), hex(live.address), "64K"], env=CLEAN, stdout=full,
                                   stderr=subprocess.PIPE, timeout=HANG_SECONDS)
        self.assertEqual((ended.returncode, ended.stderr), (1, b"spillway: cannot write to standard output\n"))

class Gdb(unittest.TestCase):
    """The helper, in a gdb that stopped the program, and on its core file."""

    def gdb(self, *what, commands):
        script = ["set debuginfod enabled off", f"source {BIN.parent}/share/spillway/spillway-gdb.py", *commands]
        options = [word for command in script for word in ("-ex", command)]
        ended = subprocess.run(["gdb", "-nx", "-batch", *map(str, what), *options], env=CLEAN, capture_output=True, text=True,
                               timeout=HANG_SECONDS)
        return ended.stdout, ended.stderr

    def check(self, live, *what):
        at = live.bytes // 8 - 600
        out, err = self.gdb(*what, commands=[
            "print $spilled(words)", f"print $spilled((uint64_t (*)[600])(words + {at}))[3]", f"spill-dump words+{at} 8",
            "print $spilled(count)", "print $spilled((void *)words)", f"print $spilled((int *){RANGE_END - PAGE})",
            "spill-dump words", "print $spilled(&count)", "show spillway-program"])
        self.assertIn(f"$1 = {live.words[0]}\n$2 = {live.words[at + 3]}\n", out, err)
        self.assertIn(f"{live.address + 8 * at:012x}  {live.words[at].to_bytes(8, 'little').hex(' ')}", out)
        self.assertIn("$spilled wants a pointer, not size_t", err)
        self.assertIn("what the pointer points to: cast it", err)
        self.assertIn(f"spillway: nothing is allocated at {RANGE_END - PAGE:#x}", err)
        self.assertIn("spill-dump ADDRESS LENGTH", err)
        self.assertIn(f"$3 = {live.bytes // 8}\n", out)
        self.assertIn(f"Spilled memory is read by {BIN}/spillway.", out)

    def test_a_process(self):
        live = Live(self)
        self.check(live, "-p", live.pid)
        self.assertEqual(live.ask("foreign"), "done")

    def test_a_core_file(self):
        live, core = dumped_core(self, megabytes=2, storage="memory:64M")
        self.check(live, WORK / "live", core)

    def test_nothing_to_look_at(self):
        out, err = self.gdb(commands=["print $spilled((int *)4096)", "set spillway-program /nowhere/spillway",
                                      "spill-dump 4096 8"])
        self.assertIn("no program is running, and there is no core file", err)


if __name__ == "__main__":
    unittest.main(verbosity=2)
