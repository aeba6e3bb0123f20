#!/usr/bin/env python3
"""`spillway run` on programs that spillcc did not compile.  preload_test.py BIN WORK SOURCES [unittest arguments]

Each does what it does natively, in a fraction of the memory; what cannot work ends with one line.
"""
import errno
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, NOBODY, become_nobody, copied_for_everybody, fresh, take_paths, temporary_folder  # noqa: E402

BIN, WORK, SOURCES = take_paths(3)
PYTHON = "/usr/bin/python3"  # Debian's, which finds Debian's numpy
MEMBARRIER, USERFAULTFD, IO_URING_SETUP, CLOSE_RANGE = 324, 323, 425, 436


def clang(source, name, *flags):
    subprocess.run(["clang-19", "-O2", "-w", SOURCES / source, "-o", WORK / name, *flags], check=True)
    return WORK / name


def setUpModule():
    fresh(WORK)
    for name in ("stress", "corners", "refuse_calls"):
        clang(f"{name}.c", name)


def run(*command, memory="8M", storage=None, stats=None, before=(), options=(), bin_folder=BIN, **more):
    words = [*before, bin_folder / "spillway", "run", "--memory", memory, "--storage", storage or WORK, *options]
    if stats is not None:
        words += ["--stats", stats]
    return subprocess.run([*map(str, words), "--", *map(str, command)], env=CLEAN, capture_output=True, text=True,
                          timeout=900, **more)


def lives(process):
    """Is there a process with this number, one that has not ended?"""
    try:
        return pathlib.Path("/proc", process, "stat").read_text().rpartition(") ")[2][0] not in "XZ"
    except FileNotFoundError:
        return False


class Preload(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self, WORK)
        self.stats = self.folder / "stats.json"

    def works(self, ended, stdout=None):
        self.assertEqual((ended.returncode, ended.stderr), (0, ""), ended)
        if stdout is not None:
            self.assertEqual(ended.stdout, stdout)
        return ended

    def ends(self, ended, status, *says):
        self.assertEqual(ended.returncode, status, ended)
        for part in says:
            self.assertIn(part, ended.stderr.splitlines()[-1])
        return ended

    def counters(self):
        return json.loads(self.stats.read_text())

    def same_in_little_memory(self, *command, memory, evictions, **more):
        native = subprocess.run(list(map(str, command)), env=CLEAN, capture_output=True, text=True, check=True, **more)
        self.works(run(*command, memory=memory, stats=self.stats, **more), native.stdout)
        counters = self.counters()
        self.assertGreater(counters["cache"]["evictions"], evictions)
        self.assertLessEqual(counters["memory"]["peak_bytes"], int(memory[:-1]) << 20)
        return counters


class Programs(Preload):
    def test_numpy_and_lists(self):
        self.same_in_little_memory(PYTHON, SOURCES / "arrays.py", 64, memory="16M", evictions=16 << 8)

    def test_sort(self):
        source = random.Random(7)
        path = self.folder / "lines"
        path.write_text("".join(f"{source.getrandbits(64):020} {'x' * 40}\n" for _ in range(100_000)))
        self.same_in_little_memory("sort", "-S", "16M", path, memory="4M", evictions=4 << 8)

    def test_xz(self):
        path = self.folder / "data"
        source = random.Random(8)
        content = b"".join(source.randbytes(100) * 3 for _ in range(10_000))
        path.write_bytes(content)
        self.works(run("xz", "-6", "-T1", path, memory="32M", stats=self.stats))
        self.assertGreater(self.counters()["cache"]["evictions"], 1000)
        again = subprocess.run(["xz", "-dc", f"{path}.xz"], capture_output=True, check=True).stdout
        self.assertEqual(again, content)
        self.assertFalse(path.exists())
        self.works(run("xz", "-d", f"{path}.xz", memory="4M"))
        self.assertEqual(path.read_bytes(), content)

    def test_a_scan_that_only_reads_writes_nothing(self):
        written, read = [], []
        for scans in (1, 5):
            program = f"import numpy as np\na = np.arange(1 << 22)\nprint([int(a.sum()) for _ in range({scans})][-1])\n"
            self.works(run(PYTHON, "-c", program, stats=self.stats), "8796090925056\n")
            written.append(self.counters()["storage"]["write_bytes"])
            read.append(self.counters()["storage"]["read_bytes"])
        self.assertGreater(read[1] - read[0], 4 * (24 << 20))
        self.assertLess(written[1] - written[0], 3 << 20)
        cache = self.counters()["cache"]
        self.assertLess(cache["misses"], cache["read_aheads"])  # which are no misses

    def test_corners(self):
        native = subprocess.run([WORK / "corners", "native"], check=True, capture_output=True, text=True, cwd=WORK).stdout
        ended = run(WORK / "corners", memory="4M", cwd=WORK)
        self.assertEqual((ended.returncode, ended.stdout), (0, native), ended)
        lines = ended.stderr.splitlines()
        self.assertTrue(lines and all("child of fork" in line or "read-only" in line for line in lines), lines)

    def test_pages_beside_read_only_ones_leave(self):
        source = self.folder / "beside.c"
        source.write_text("#include <string.h>\n#include <sys/mman.h>\nint main(void) {\n  const size_t bytes = 32 << 20;\n"
                          "  char* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
                          "  memset(memory, 1, bytes);\n"
                          "  for (size_t i = 0; i < bytes; i += 32 * 4096)\n    if (mprotect(memory + i, 4096, PROT_READ) != 0) return 1;\n"
                          "  size_t sum = 0;\n  for (size_t i = 0; i < bytes; i += 4096) sum += memory[i];\n"
                          "  return sum == bytes / 4096 ? 0 : 2;\n}\n")
        subprocess.run(["clang-19", "-w", source, "-o", self.folder / "beside"], check=True)
        self.works(run(self.folder / "beside", memory="4M", stats=self.stats))
        self.assertLessEqual(self.counters()["memory"]["peak_bytes"], 4 << 20)

    def test_a_program_with_a_heap_of_its_own(self):
        library = clang("own_heap.c", "libown_heap.so", "-shared", "-fPIC", "-fno-builtin")
        user = clang("own_heap_user.c", "own_heap_user", "-fno-builtin", library)
        self.same_in_little_memory(user, memory="8M", evictions=1000)

    def test_a_daemon_lets_go_of_its_output(self):
        source = self.folder / "daemon.c"
        source.write_text("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint main(void) {\n"
                          "  memset(malloc(32 << 20), 1, 32 << 20);\n  if (fork()) _exit(0);\n  setsid();\n"
                          "  dprintf(1, \"%d\", getpid());\n  for (int i = 0; i < 3; ++i) close(i);\n  sleep(60);\n}\n")
        subprocess.run(["clang-19", "-w", source, "-o", self.folder / "daemon"], check=True)
        ended = run(self.folder / "daemon")  # until nobody holds its pipes
        self.assertTrue(lives(ended.stdout), "it held them until it ended")
        os.kill(int(ended.stdout), signal.SIGKILL)

    def test_the_last_thread_ends_the_program(self):
        # Main's thread leaves before: of the program, and of a child.
        source = self.folder / "last.c"
        source.write_text("#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/wait.h>\n"
                          "#include <unistd.h>\nstatic void at_end(void) { puts(\"end\"); }\n"
                          "static void* work(void* unused) {\n  usleep(200000);\n  puts(\"last\");\n  return unused;\n}\n"
                          "int main(void) {\n  memset(malloc(32 << 20), 1, 32 << 20);\n  atexit(at_end);\n  int status = 0;\n"
                          "  if (fork() != 0) wait(&status);\n  if (status != 0) return 1;\n  alarm(60);\n  pthread_t thread;\n"
                          "  pthread_create(&thread, NULL, work, NULL);\n  pthread_exit(NULL);\n}\n")
        subprocess.run(["clang-19", "-w", source, "-o", self.folder / "last", "-pthread"], check=True)
        self.works(run(self.folder / "last", stats=self.stats), "last\nend\nlast\nend\n")
        self.assertGreater(self.counters()["cache"]["misses"], 0)

    def test_all_threads_change_their_user(self):
        # The C library waits until each thread has done so, also the one that serves faults, and that of a child.
        source = self.folder / "user.c"
        source.write_text("#include <stdlib.h>\n#include <string.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) {\n"
                          "  memset(malloc(32 << 20), 1, 32 << 20);\n  alarm(60);\n  if (setuid(getuid()) != 0) return 1;\n"
                          "  if (fork() == 0) {\n    alarm(60);\n    _exit(setgid(getgid()) == 0 ? 7 : 8);\n  }\n  int status;\n"
                          "  wait(&status);\n  return WIFEXITED(status) ? WEXITSTATUS(status) : 9;\n}\n")
        subprocess.run(["clang-19", "-w", source, "-o", self.folder / "user"], check=True)
        ended = run(self.folder / "user", stats=self.stats)
        self.assertEqual((ended.returncode, ended.stderr), (7, ""), ended)
        self.assertGreater(self.counters()["cache"]["misses"], 0)

    def test_scripts_and_what_they_start(self):
        script = self.folder / "script"
        script.write_text(f"#!/bin/sh\n{PYTHON} -c 'print(len(bytearray(32 << 20)))'\nexec true\n")
        script.chmod(0o755)
        self.works(run(script, options=["--stats", self.folder / "%p.json"]), f"{32 << 20}\n")
        self.assertEqual(len(list(self.folder.glob("*.json"))), 1)  # the shell and true need little

    def test_a_program_that_exports_megabytes_of_names(self):
        source, program = self.folder / "names.c", self.folder / "names"
        names = [f"f{number:x<1000}" for number in range(5000)]
        source.write_text("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n__asm__(\n" +
                          "".join(f'".globl {name}\\n{name}: ret\\n"\n' for name in names) +
                          ");\nint main(void) { memset(malloc(32 << 20), 1, 32 << 20); puts(\"done\"); }\n")
        subprocess.run(["clang-19", "-w", "-rdynamic", source, "-o", program], check=True)
        self.works(run(program, stats=self.stats), "done\n")
        self.assertGreater(self.counters()["cache"]["evictions"], 1000)

    def test_programs_of_spillcc_are_left_alone(self):
        source = self.folder / "program.c"
        source.write_text("#include <stdio.h>\n#include <stdlib.h>\nint main(void) {\n  char* m = malloc(32 << 20);\n"
                          "  for (int i = 0; i < 32 << 20; ++i) m[i] = i;\n  long sum = 0;\n"
                          "  for (int i = 0; i < 32 << 20; ++i) sum += m[i];\n  printf(\"%ld\\n\", sum);\n  free(m);\n}\n")
        program = self.folder / "program"
        subprocess.run([BIN / "spillcc", "-O1", source, "-o", program], check=True, env=CLEAN)
        self.works(run("sh", "-c", f"{program}; exit $?", stats=self.stats), f"{-(1 << 24)}\n")
        self.assertGreater(self.counters()["spill"]["translations_slow"], 1000)


class Stress(Preload):
    def stress(self, storage=None, seconds=3, **more):
        seed = os.environ.get("SPILLWAY_TEST_SEED", random.SystemRandom().randrange(1 << 30))
        return run(WORK / "stress", 16, seconds, seed, memory="4M", storage=storage, stats=self.stats, **more)

    def test_plain(self):
        names = ("evictions", "unchanged", "writebacks", "rescues", "discards", "read_aheads")
        for seconds in (3, 6, 12, 24):  # less is done where the machine is busy
            self.works(self.stress(seconds=seconds))
            counters = self.counters()["cache"]
            if all(counters[name] > 0 for name in names):
                break
        for name in names:
            self.assertGreater(counters[name], 0, name)

    def test_writes_that_fail_for_a_while_lose_nothing(self):
        for effect in ("eio", "short", "torn"):
            ended = self.stress(f"fault:seed=7,write_{effect}=1/10:[{self.folder}]")
            self.assertEqual(ended.returncode, 0, ended)
            self.assertRegex(ended.stderr, r"\A(spillway: cannot write to [^\n]*; pages stay in memory and are tried again\n){1,40}\Z")

    def test_storage_that_fails_for_good(self):
        self.ends(self.stress(f"fault:read_eio=@50+:[{self.folder}]"), 134, "cannot read page", "input/output error")
        self.ends(self.stress(f"fault:write_eio=@5+:[{self.folder}]"), 134, "no page can leave memory", "input/output error")
        self.ends(self.stress("memory:4M"), 134, "storage is full: ", "; no page can leave memory, give more room with --storage")

    def has_spilled(self, process):
        """Does a thread of it have a file of the folder open that something lies in?"""
        try:
            return any(os.readlink(path).startswith(f"{self.folder}/") and os.stat(path).st_blocks > 0
                       for path in pathlib.Path("/proc", str(process.pid)).glob("task/*/fd/*"))
        except (FileNotFoundError, ProcessLookupError):  # closed meanwhile
            return False

    def test_killed_it_leaves_nothing(self):
        child = subprocess.Popen([BIN / "spillway", "run", "--memory", "4M", "--storage", self.folder, "--", WORK / "stress",
                                  "16", "60", "1"], env=CLEAN)
        for cleanup in (child.wait, child.kill):
            self.addCleanup(cleanup)
        while not self.has_spilled(child):
            self.assertIsNone(child.poll(), "it has ended, and has spilled nothing")
            time.sleep(0.05)
        child.send_signal(signal.SIGKILL)
        self.assertEqual(child.wait(), -signal.SIGKILL)
        self.assertEqual(list(self.folder.iterdir()), [])


class Refusals(Preload):
    def test_programs_that_it_cannot_work_in(self):
        source = self.folder / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        static = clang(source, "static", "-static")
        self.ends(run(static), 2, str(static), "linked statically", "--preload=0")
        ended = run(static, options=["--preload=0"])
        self.ends(ended, 0, "was not built by spillcc")
        source.write_text("void _start(void) { for (;;) {} }\n")
        short = clang(source, "short", "-m32", "-static", "-nostdlib", "-fuse-ld=lld")
        self.ends(run(short), 2, str(short), "32-bit")

    @unittest.skipUnless(os.getuid() == 0, "needs root")
    def test_setuid(self):
        program = temporary_folder(self, "/var/tmp") / "program"
        shutil.copy("/bin/true", program)
        os.chown(program, NOBODY, NOBODY)
        program.chmod(0o4755)
        self.ends(run(program), 2, str(program), "setuid")
        program.chmod(0o2755)
        self.ends(run(program), 2, str(program), "setgid")

    def under(self, error, numbers, *command, **more):
        return run(*command, before=[WORK / "refuse_calls", error, ",".join(map(str, numbers))], **more)

    def without_ring(self, ended):
        self.assertEqual(ended.returncode, 0, ended)
        self.assertRegex(ended.stderr, r"\A(spillway: [^\n]*io_uring: [^\n]*; using (Linux AIO|blocking calls) instead\n)?\Z")

    def test_sandboxes(self):
        # Without userfaultfd it runs natively, and says so.
        program = (PYTHON, "-c", "print(len(bytearray(32 << 20)))")
        ended = self.under(errno.ENOSYS, [USERFAULTFD], *program)
        self.assertEqual((ended.returncode, ended.stdout), (0, f"{32 << 20}\n"), ended)
        self.assertRegex(ended.stderr, r"\Aspillway: [^\n]*was not built by spillcc, and not spilled without it, since "
                                       r"[^\n]*userfaultfd[^\n]*\n\Z")
        # Where the call is forbidden its device may do.
        ended = self.under(errno.EPERM, [USERFAULTFD], *program)
        self.assertEqual((ended.returncode, ended.stdout), (0, f"{32 << 20}\n"), ended)
        self.assertRegex(ended.stderr, r"\A(spillway: [^\n]*/dev/userfaultfd\S*[^\n]*\n)?\Z")
        for error in (errno.EPERM, errno.ENOSYS):  # the others it does without
            self.without_ring(self.under(error, [IO_URING_SETUP, MEMBARRIER, CLOSE_RANGE], WORK / "stress", 16, 1, 5,
                                         memory="4M", stats=self.stats))
            self.assertGreater(self.counters()["cache"]["evictions"], 1000)

    @unittest.skipUnless(os.getuid() == 0, "needs root")
    def test_a_user_who_may_not(self):
        setting = pathlib.Path("/proc/sys/vm/unprivileged_userfaultfd")
        if not setting.exists() or setting.read_text().strip() != "0":
            self.skipTest("everybody may")
        ended = run("true", storage="/var/tmp", preexec_fn=become_nobody, bin_folder=copied_for_everybody(self, BIN))
        self.ends(ended, 0, "vm.unprivileged_userfaultfd")


if __name__ == "__main__":
    unittest.main(verbosity=2)
