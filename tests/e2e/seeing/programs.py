"""Programs to look at, for the tests of what a user can see of them.  Wants what its importer is given: BIN WORK [unittest arguments]"""
import array
import os
import pathlib
import resource
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, HANG_SECONDS, environment, fresh, take_paths  # noqa: E402

BIN, WORK = take_paths(2)
SOURCES = pathlib.Path(__file__).resolve().parent
RANGE_BEGIN, RANGE_END, PUBLISHED = 1 << 44, 1 << 45, 0x6fffe000
ADDRESSES = 1 << 47
PAGE = 4096
# A name that JSON has to escape.
LIBRARY = WORK / 'a "quoted" é' / "libforeign.so"


def setUpModule():
    fresh(WORK)
    LIBRARY.parent.mkdir()
    subprocess.run(["clang-19", "-O2", "-shared", "-fPIC", SOURCES / "foreign.c", "-o", LIBRARY], check=True)
    subprocess.run([BIN / "spillcc", "-O2", SOURCES / "faults.c", LIBRARY, "-o", WORK / "faults"], check=True, env=CLEAN)
    (WORK / "none.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([BIN / "spillcc", WORK / "none.c", "-o", WORK / "none"], check=True, env=CLEAN)
    subprocess.run(["clang-19", "-O2", "-c", SOURCES / "foreign.c", "-o", WORK / "foreign.o"], check=True)
    for name, flags in (("live", [LIBRARY]), ("live-static", ["-static", WORK / "foreign.o"])):
        subprocess.run([BIN / "spillcc", "-O2", "-g", "-w", SOURCES / "live.c", *flags, "-o", WORK / name], check=True, env=CLEAN)

def allow_cores():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class Live:
    """A program that runs until the test ends. `words` is what its spilled memory holds."""

    def __init__(self, test, program="live", megabytes=4, cwd=None, **settings):
        settings = {"memory": "1M", "spill_all": 1, "storage": WORK, **settings}
        self.child = subprocess.Popen([WORK / program, str(megabytes)], env=environment(**settings), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, cwd=cwd, preexec_fn=allow_cores if cwd else None)
        test.addCleanup(self.end)
        address, size = self.child.stdout.readline().split()
        self.pid, self.address, self.bytes = self.child.pid, int(address, 16), int(size)
        self.words = array.array("Q", ((i * 0x9e3779b97f4a7c15 + 1) % (1 << 64) for i in range(self.bytes // 8)))
        self.forked = []

    def ask(self, what):
        self.child.stdin.write(what + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().strip()

    def fork(self):
        """The process id of a child that it forked, which runs until the test ends."""
        self.forked.append(int(self.ask("fork")))
        return self.forked[-1]

    def end(self):
        for forked in self.forked:
            os.kill(forked, signal.SIGKILL)
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()

def spillway(*arguments, bin_folder=BIN, **settings):
    return subprocess.run([bin_folder / "spillway", *map(str, arguments)], env=CLEAN, capture_output=True, timeout=HANG_SECONDS, **settings)
