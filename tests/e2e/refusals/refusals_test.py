#!/usr/bin/env python3
"""What a spilled program says when it cannot start or go on.  refusals_test.py BIN WORK PROGRAM.c [unittest arguments]

Each ends with one line on standard error that names what is wrong, and with status 2 when it is about
settings, 134 when it happened while the program ran. Users' data is never touched.
"""
import errno
import os
import pathlib
import resource
import shutil
import signal
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, HANG_SECONDS, become_nobody, environment, filtering, fresh, take_paths, temporary_folder  # noqa: E402

BIN, WORK, SOURCE = take_paths(3)
PROGRAM = WORK / "program"


def setUpModule():
    fresh(WORK)
    subprocess.run([BIN / "spillcc", "-O2", "-w", SOURCE, "-o", PROGRAM], check=True, env=CLEAN)


def run(kilobytes=4096, storage=None, memory="1M", preexec_fn=None, **options):
    variables = environment(memory=memory, spill_all=1, storage=storage or WORK, **options)
    return subprocess.run([PROGRAM, str(kilobytes)], env=variables, capture_output=True, text=True, timeout=HANG_SECONDS,
                          preexec_fn=preexec_fn)


class Refusal(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self, WORK)

    def ends(self, ended, status, *says):
        self.assertEqual(ended.returncode, status, ended)
        self.assertNotIn("filled", ended.stdout)
        self.assertRegex(ended.stderr, r"\A(spillway: [^\n]{10,400}\n)+\Z")
        last = ended.stderr.splitlines()[-1]
        for part in says:
            self.assertIn(part, last)
        return ended

    def refused(self, *says, **settings):
        ended = self.ends(run(**settings), 2, *says)
        self.assertEqual(ended.stdout, "")
        self.assertEqual(len(ended.stderr.splitlines()), 1, ended.stderr)

    def works(self, ended):
        self.assertEqual((ended.returncode, ended.stdout), (0, "filled\nend\n"), ended)
        return ended


class Storage(Refusal):
    def test_a_file_with_content_is_kept_byte_for_byte(self):
        precious = self.folder / "precious"
        content = os.urandom(300_000)
        precious.write_bytes(content)
        before = precious.stat()
        self.refused(precious.name, "--storage-overwrite", storage=precious)  # of a long path the beginning is left out
        self.refused(precious.name, storage=f"file:{precious}")
        self.refused(precious.name, storage=f"fault:seed=1:[uring:{precious}]")
        self.assertEqual(precious.read_bytes(), content)
        after = precious.stat()
        self.assertEqual((before.st_mtime_ns, before.st_mode, before.st_size), (after.st_mtime_ns, after.st_mode, after.st_size))
        self.works(run(storage=precious, storage_overwrite=1))
        self.assertNotEqual(precious.stat().st_size, len(content))

    def test_places_that_cannot_be_used(self):
        self.refused("/no/such/folder", storage="/no/such/folder/file")
        self.refused("/dev/null", storage="/dev/null")
        self.refused("/proc", storage="/proc")
        link = self.folder / "link"
        link.symlink_to(self.folder / "nowhere" / "file")
        self.refused(str(link), storage=link)
        socket = self.folder / "pipe"
        os.mkfifo(socket)
        self.refused(str(socket), storage=socket)
        self.refused("'nvme:'", storage="nvme:/x")

    def test_no_permission(self):
        closed = self.folder / "closed"
        closed.mkdir(mode=0o500)
        file = self.folder / "file"
        file.touch(mode=0o400)
        if os.getuid() == 0:
            # The way there must be open to nobody.
            place = temporary_folder(self, "/var/tmp")
            place.chmod(0o755)
            for name in ("closed", "file"):
                shutil.move(self.folder / name, place / name)
            copied = shutil.copy(PROGRAM, place / "program")
            if subprocess.run([copied, "4"], env=CLEAN, preexec_fn=become_nobody, capture_output=True).returncode != 0:
                self.skipTest("nobody cannot reach the library")
            closed, file = place / "closed", place / "file"
            self.refused(str(closed), "permission", storage=closed, preexec_fn=become_nobody)
            self.refused(str(file), "permission", storage=file, preexec_fn=become_nobody)
        else:
            self.refused(str(closed), "permission", storage=closed)
            self.refused(str(file), "permission", storage=file)

    def test_spill_files_are_private_and_gone(self):
        self.works(run(storage=self.folder))
        self.assertEqual(os.listdir(self.folder), [])
        named = self.folder / "new"
        self.works(run(storage=named))
        self.assertFalse(named.exists())
        empty = self.folder / "empty"
        empty.touch(mode=0o600)
        self.works(run(storage=empty))
        self.assertEqual(stat.S_IMODE(empty.stat().st_mode), 0o600)

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        self.refused("ulimit -f", preexec_fn=limit)


class Budget(Refusal):
    def test_too_small_and_too_large(self):
        self.refused("1M", "memory:", memory="512K")
        self.refused("memory:", memory="1")
        self.refused("machine", memory="1000T")
        self.refused("--memory", memory="1M", page="2M")
        self.refused("not a size", memory="lots")

    def test_settings(self):
        self.refused("SPILLWAY_NONSENSE", nonsense=1)
        self.refused("power of two", page="12K")
        self.refused("belady", policy="belady")
        self.refused("servers:", servers="many")

    def test_address_space_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        self.refused("ulimit -v", preexec_fn=limit)

    def test_descriptor_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))
        ended = run(preexec_fn=limit)
        if ended.returncode == 0:
            self.works(ended)
        else:
            self.ends(ended, 2, "ulimit -n")

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (128 << 20, 128 << 20))
        self.works(run(memory="32M", page="64K", preexec_fn=limit))
        self.refused("ulimit -f", memory="512M", page="64K", preexec_fn=limit)


def without(call, number):
    """A sandbox: what a program runs before exec, so that the system call fails with this error."""
    names = {"io_uring_setup": 425, "memfd_create": 319, "membarrier": 324, "userfaultfd": 323}
    load, equal, give = 0x20, 0x15, 0x06  # classic BPF: load a word, compare, return
    allow, fail = 0x7FFF0000, 0x00050000
    return filtering((load, 0, 0, 0), (equal, 0, 1, names[call]), (give, 0, 0, fail | number), (give, 0, 0, allow))


class Sandbox(Refusal):
    def test_what_there_is_another_way_for(self):
        for number in errno.EPERM, errno.ENOSYS:
            self.assertEqual(self.works(run(preexec_fn=without("userfaultfd", number))).stderr, "")
            said = self.works(run(preexec_fn=without("io_uring_setup", number))).stderr
            self.assertRegex(said, r"\Aspillway: [^\n]*io_uring: [^\n]*; using (Linux AIO|blocking calls) instead\n\Z")

    def test_what_cannot_be_done_without(self):
        for number in errno.EPERM, errno.ENOSYS:
            says = {errno.EPERM: "not permitted", errno.ENOSYS: "not implemented"}[number]
            self.refused("membarrier", says, "sandbox", preexec_fn=without("membarrier", number))
            self.refused("memory file", says, preexec_fn=without("memfd_create", number))


class Addresses(Refusal):
    def test_a_program_that_lies_where_the_table_must(self):
        source = self.folder / "huge.c"
        source.write_text("static char data[2000 << 20]; int main(int count, char** arguments) { data[count << 20] = 1; "
                          "return data[(count << 20) + 1] + (arguments == 0); }\n")
        program = self.folder / "huge"
        subprocess.run([BIN / "spillcc", "-O1", "-no-pie", "-mcmodel=medium", source, "-o", program], check=True, env=CLEAN)
        self.ends(subprocess.run([program], env=CLEAN, capture_output=True, text=True, timeout=HANG_SECONDS), 2, "mapped there already")


class Device(Refusal):
    def test_a_read_that_fails_names_device_and_page(self):
        ended = self.ends(run(storage=f"fault:read_eio=@50+:[{self.folder}]"), 134, "cannot read page", str(self.folder))
        self.assertRegex(ended.stderr, r"page \d+ from \S*fault\S*:\[.*\].*(EIO|input/output error)")
        self.assertEqual(len(ended.stderr.splitlines()), 1)
        self.assertNotIn("end", ended.stdout)

    def test_writes_that_fail_for_a_while_lose_nothing(self):
        for effect in ("eio", "enospc", "short", "torn"):
            with self.subTest(effect):
                ended = self.works(run(storage=f"fault:seed=7,write_{effect}=1/10:[{self.folder}]"))
                self.assertRegex(ended.stderr, r"\A(spillway: cannot write to [^\n]*; pages stay in memory and are tried again[^\n]*\n){1,2}\Z")

    def test_writes_that_fail_for_good_end_the_program(self):
        self.ends(run(storage=f"fault:write_eio=@5+:[{self.folder}]"), 134, "cannot", str(self.folder))
        self.ends(run(storage=f"fault:write_enospc=@5+:[{self.folder}]"), 134, "storage is full")

    def test_storage_that_is_full(self):
        self.works(run(kilobytes=6000, storage="memory:8M"))
        self.ends(run(kilobytes=20000, storage="memory:8M"), 134, "memory:8M")

    @unittest.skipUnless(os.getuid() == 0, "mounts need root")
    def test_file_system_that_is_full(self):
        place = self.folder / "small"
        place.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=70M", "none", place], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("cannot mount here")
        self.addCleanup(subprocess.run, ["umount", place])
        ended = self.works(run(kilobytes=20 << 10, storage=place))
        self.assertRegex(ended.stderr, r"\Aspillway: [^\n]*this is memory[^\n]*\n\Z")
        ended = self.ends(run(kilobytes=100 << 10, storage=place), 134, "storage is full", str(place))
        self.assertIn("this is memory", ended.stderr.splitlines()[0])
        (place / "filler").write_bytes(bytes(20 << 20))
        ended = run(storage=place)
        self.assertEqual(ended.returncode, 2, ended)
        self.assertIn("M are free", ended.stderr.splitlines()[-1])


class Link(Refusal):
    def test_objects_of_another_version_or_map_do_not_link(self):
        for name in ("__spillway_abi_table_v0", "__spillway_abi_table_v1_tsan", "__spillway_abi_table_v1_asan"):
            other = self.folder / "other.c"
            other.write_text(f"extern const char {name}[];\n"
                             f"const void* spillway_needs = {name};\nint main(void) {{ return 0; }}\n")
            ended = subprocess.run([BIN / "spillcc", "-fno-spill", other, BIN.parent / "lib/libspillway.so", "-o",
                                    self.folder / "other"], env=CLEAN, capture_output=True, text=True)
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn(name, ended.stderr)

    def test_objects_say_which_version_they_are_of(self):
        subprocess.run([BIN / "spillcc", "-c", "-w", SOURCE, "-o", self.folder / "object.o"], check=True, env=CLEAN)
        names = subprocess.run(["nm", "-u", self.folder / "object.o"], check=True, capture_output=True, text=True).stdout
        self.assertRegex(names, r"__spillway_abi_table_v\d+")
        # So clang alone, without the runtime, cannot link them.
        ended = subprocess.run(["clang-19", self.folder / "object.o", "-o", self.folder / "program"], capture_output=True, text=True)
        self.assertNotEqual(ended.returncode, 0)


@unittest.skipUnless(os.getuid() == 0, "needs root, to start as somebody else")
class Rights(Refusal):
    """Started by nobody, who may not make threads either; linked statically, since nobody may not reach the library."""

    def setUp(self):
        super().setUp()
        self.place = temporary_folder(self, "/var/tmp")
        self.place.chmod(0o755)
        self.program = self.place / "program"
        subprocess.run([BIN / "spillcc", "-O2", "-w", "-static", SOURCE, "-o", self.program], check=True, env=CLEAN)

    def started(self, **settings):
        def without_threads():
            resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
            become_nobody()
        return subprocess.run([self.program, "4096"], env=environment(**settings), preexec_fn=without_threads, capture_output=True, text=True)

    def test_a_setuid_program_takes_no_settings(self):
        settings = {"stats": self.place / "stats.json", "memory": "nonsense", "storage": "/dev/null"}
        self.assertEqual(self.started(**settings).returncode, 2)  # so they are settings
        if os.statvfs(self.place).f_flag & os.ST_NOSUID:
            self.skipTest("no program is setuid here")
        self.program.chmod(0o4755)
        self.works(self.started(**settings))
        self.assertEqual(list(self.place.iterdir()), [self.program])

    def test_no_threads(self):
        self.works(self.started(memory="1M", spill_all=1))


class Surroundings(Refusal):
    def test_a_folder_for_temporary_files_that_is_not_there(self):
        variables = {"SPILLWAY_MEMORY": "1M", "SPILLWAY_SPILL_ALL": "1", "TMPDIR": "/nonexistent"}
        ended = self.works(subprocess.run([PROGRAM, "4096"], env={**CLEAN, **variables}, capture_output=True, text=True))
        self.assertEqual(ended.stderr, "")

    @unittest.skipUnless(os.getuid() == 0, "mounts need root")
    def test_no_proc(self):
        if subprocess.run(["unshare", "--mount", "umount", "-l", "/proc"], capture_output=True).returncode != 0:
            self.skipTest("/proc cannot be taken away here")
        script = 'umount -l /proc && exec "$0" 4096'
        variables = {"SPILLWAY_SPILL_ALL": "1", "SPILLWAY_STORAGE": str(WORK)}
        ended = subprocess.run(["unshare", "--mount", "sh", "-c", script, PROGRAM], env={**CLEAN, **variables}, capture_output=True, text=True)
        self.works(ended)

    def test_another_malloc_comes_first(self):
        source = self.folder / "heap.c"
        source.write_text("""
#include <stddef.h>
static char pool[8 << 20];
static size_t used;
void* malloc(size_t bytes) { return pool + __atomic_fetch_add(&used, (bytes + 15) & ~(size_t)15, __ATOMIC_SEQ_CST); }
void* calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
void* realloc(void* block, size_t bytes) { return malloc(bytes); }
void free(void* block) { }
""")
        heap = self.folder / "heap.so"
        subprocess.run(["clang-19", "-w", "-O1", "-fPIC", "-shared", source, "-o", heap], check=True)
        ended = self.ends(subprocess.run([PROGRAM, "4096"], env={**CLEAN, "LD_PRELOAD": str(heap)}, capture_output=True, text=True), 2, str(heap))
        self.assertEqual(ended.stdout, "")
        # One that hands on to the next may stay.
        source.write_text("""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
void* malloc(size_t bytes) { return ((void* (*)(size_t))dlsym(RTLD_NEXT, "malloc"))(bytes); }
void free(void* block) { ((void (*)(void*))dlsym(RTLD_NEXT, "free"))(block); }
""")
        subprocess.run(["clang-19", "-w", "-O1", "-fPIC", "-shared", source, "-o", heap], check=True)
        self.works(subprocess.run([PROGRAM, "4096"], env={**CLEAN, "LD_PRELOAD": str(heap)}, capture_output=True, text=True))


class Library(Refusal):
    """A library that spillcc compiled, in programs that clang linked: the C library comes before the runtime."""

    def setUp(self):
        super().setUp()
        runtime = BIN.parent / "lib/libspillway.so"
        (self.folder / "library.c").write_text("#include <stdlib.h>\n#include <string.h>\n"
                                               "char* make(size_t n) { return memset(malloc(n), 7, n); }\n")
        (self.folder / "main.c").write_text("""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
char* make(size_t n);
int main(int count, char** arguments) {
  void* library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : 0;
  if (count > 1 && library == 0) return puts(dlerror()), 1;
  char* (*f)(size_t) = library ? (char* (*)(size_t))dlsym(library, "make") : 0;
#ifndef OPENS
  f = make;
#endif
  char* bytes = f(8 << 20);
  int right = bytes[5 << 20] == 7 && (size_t)bytes >> 44 == 1;
  free(bytes);
  return puts(right ? "right" : "wrong"), 0;
}
""")
        self.library = self.folder / "liblibrary.so"
        self.preload = {**CLEAN, "SPILLWAY_MEMORY": "4M", "SPILLWAY_SPILL_ALL": "1", "LD_PRELOAD": str(runtime)}
        subprocess.run([BIN / "spillcc", "-O2", "-fPIC", "-shared", self.folder / "library.c", "-o", self.library], check=True, env=CLEAN)

    def link(self, name, *options):
        program = self.folder / name
        subprocess.run(["clang-19", self.folder / "main.c", "-o", program, *options], check=True)
        return program

    def test_linked_without_spillcc(self):
        program = self.link("linked", f"-L{self.folder}", "-llibrary", f"-Wl,-rpath,{self.folder}", "-Wl,--allow-shlib-undefined")
        for command in ([program], [BIN / "spillway", "run", "--", program]):
            ended = self.ends(subprocess.run(command, env=CLEAN, capture_output=True, text=True), 2, "LD_PRELOAD=", "libspillway.so")
            self.assertEqual(ended.stdout, "")
        ended = subprocess.run([program], env=self.preload, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended)

    def test_opened_by_a_program_that_spillcc_did_not_link(self):
        program = self.link("opens", "-DOPENS")
        ended = subprocess.run([program, self.library], env=CLEAN, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1, ended)
        self.assertIn("static TLS", ended.stdout)
        ended = subprocess.run([program, self.library], env=self.preload, capture_output=True, text=True)
        self.assertEqual((ended.returncode, ended.stdout), (0, "right\n"), ended)


class Loops(Refusal):
    """What the body of a parallel_for may not do (spillway/task.h)."""

    def setUp(self):
        super().setUp()
        source = self.folder / "loops.cc"
        source.write_text("""
#include <spillway/task.h>
#include <pthread.h>
#include <vector>
__attribute__((noinline)) int sink(int depth, const char* above) {
  char frame[4096];
  frame[0] = static_cast<char>(depth + *above);
  asm volatile("" : : "r"(frame) : "memory");
  return depth == 0 ? frame[0] : sink(depth - 1, frame) + frame[0];
}
int main(int count, char** arguments) {
  std::vector<int> numbers(1 << 20);
  spillway::parallel_for(0, 100, [&](int i) {
    numbers[i * 10000] = i;
    if (i != 50) return;
    if (arguments[1][0] == 'e') pthread_exit(nullptr);
    if (arguments[1][0] == 'd') numbers[0] = sink(1000, "a");
    if (arguments[1][0] == 't') throw 1;
  });
}
""")
        self.program = self.folder / "loops"
        include = pathlib.Path(__file__).resolve().parents[3] / "include"
        subprocess.run([BIN / "spillc++", "-O1", f"-I{include}", source, "-o", self.program], check=True, env=CLEAN)

    def run_loop(self, what):
        return subprocess.run([self.program, what], env=environment(memory="4M", spill_all=1, storage=WORK), capture_output=True,
                              text=True, timeout=120)

    def test_a_body_does_not_end_its_thread(self):
        self.ends(self.run_loop("exit"), 134, "pthread_exit", "return from the body")

    def test_a_body_that_needs_more_than_its_stack(self):
        self.ends(self.run_loop("deep"), -signal.SIGSEGV, "has used more than its stack of 64K")

    def test_an_exception_does_not_leave_a_body(self):
        self.assertEqual(self.run_loop("throw").returncode, -signal.SIGABRT)


class Contexts(Refusal):
    """What a thread has left goes on there, and outside of the handlers that it was not left in."""

    def setUp(self):
        super().setUp()
        source = self.folder / "contexts.c"
        source.write_text("""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
static ucontext_t *inside, *outside;
static int* numbers;
static char stack[1 << 16];
static void body(void) {
  for (int i = 1; i < 4; ++i) {
    numbers[i << 16] = i;
    swapcontext(inside, outside);
  }
}
static void* begin(void* unused) {
  swapcontext(outside, inside);
  return unused;
}
static void change(int number) { begin(NULL); }
int main(int count, char** arguments) {
  static ucontext_t plain[2];
  ucontext_t* spilled = calloc(2, sizeof *spilled);
  pthread_t thread;
  numbers = calloc(4 << 16, sizeof *numbers);
  inside = arguments[1][0] == 's' ? &spilled[0] : &plain[0];
  outside = arguments[1][0] == 's' ? &spilled[1] : &plain[1];
  getcontext(inside);
  inside->uc_stack.ss_sp = stack;
  inside->uc_stack.ss_size = sizeof stack;
  makecontext(inside, body, 0);
  if (arguments[2][0] == 'h') begin(NULL);
  else if (pthread_create(&thread, 0, begin, 0) == 0) pthread_join(thread, 0);
  printf("%d\\n", numbers[1 << 16]);
  fflush(stdout);
  if (arguments[2][0] == 's') setcontext(inside);
  if (arguments[2][0] == 'h') signal(SIGUSR1, change), raise(SIGUSR1);
  swapcontext(outside, inside);
  return puts("filled"), 0;
}
""")
        self.program = self.folder / "contexts"
        subprocess.run([BIN / "spillcc", "-O1", source, "-o", self.program], check=True, env=CLEAN)

    def end_where(self, call, *says):
        for kind in ("plain", "spilled"):
            with self.subTest(f"{kind}, {call}"):
                ended = subprocess.run([self.program, kind, call], env=environment(memory="4M", spill_all=1, storage=WORK), capture_output=True,
                                       text=True, timeout=HANG_SECONDS)
                self.ends(ended, 134, *says)
                self.assertEqual(ended.stdout, "1\n")

    def test_another_thread_does_not_go_on_with_them(self):
        for call in ("setcontext", "exchange"):
            self.end_where(call, "a context that one thread has left")

    def test_a_handler_does_not_change_to_them(self):
        self.end_where("handler", "a signal handler changes to a context")


class Started(Refusal):
    def test_by_spillway_run_nothing_is_said(self):
        ended = self.works(subprocess.run([BIN / "spillway", "run", "--memory", "64M", "--", PROGRAM, "4096"], env=CLEAN,
                                          capture_output=True, text=True, timeout=HANG_SECONDS))
        self.assertEqual(ended.stderr, "")


if __name__ == "__main__":
    unittest.main(verbosity=2)
