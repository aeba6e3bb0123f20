#!/usr/bin/env python3
"""The grand tour: what this project's pages tell a reader to do, done in a Debian with nothing else in it.  tour_test.py SOURCE WORK

  1 README.md: its commands are typed as they are written, in a clone, in a folder with a program of the reader's own, and on a device. Whoever
    installs is not root, and becomes root by sudo, as the pages say
  2 `make uninstall` leaves the machine as it was, but for what Debian has been asked for; then the same without sudo, in a folder of the reader's own
  3 packages, as docs/install.md has them; with these every page of docs/tutorials, slow parts too, and stores of other formats
  4 `apt-get purge` leaves the machine as it was before 3

Each command is printed with what it says. What README.md has and nobody types here is a failure, but for what NOT_TYPED gives a reason for.
"""
import contextlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tutorials")]
from machine import HOME, call, check, make_machine, need_machine  # noqa: E402
from run_tutorial import Shell, blocks_of, follow_to_its_end, network_of_its_own  # noqa: E402
from support import CLEAN, Skipped, fresh, status_of, take_paths  # noqa: E402

CLONE, OWN, READER = f"{HOME}/spillway", f"{HOME}/own", "reader"
NOT_TYPED = {"make check": "this is one of all tests"}
TUTORIALS = ["out-of-memory", "cache", "storage-code", "caching-research"]  # the last changes the clone
STEPS = ["installing: ", "-- Build files have been written", "fetching ", "building SQLite", "a first look", "same output"]  # of `make demo`
# A client of memcached; the server is what the first line starts.
SERVED = """%s &
for try in {1..300}; do exec 3<>/dev/tcp/127.0.0.1/11211 && break; sleep 0.1; done 2> /dev/null
printf 'set visits 0 0 2\\r\\n41\\r\\nincr visits 1\\r\\nquit\\r\\n' >&3
cat <&3
kill $!
wait $!"""


class Page:
    """The commands of a page, which are given one by one."""

    def __init__(self, machine, path):
        self.machine, self.path, self.text = machine, path, path.read_text()
        lines = [line for block in blocks_of(self.text, True) if block.language == "sh" for line in block.text.splitlines()]
        self.left = [re.sub(r"\s+# .*", "", line) for line in lines if line.strip()]

    def take(self, begin):
        """The one command that begins so."""
        found = [line for line in self.left if line.startswith(begin)]
        check(len(found) == 1, f"{self.path.name} has not one command that begins with '{begin}': {found}")
        self.left.remove(found[0])
        return found[0]

    def type(self, begin, folder=HOME, **keywords):
        return self.machine.type(self.take(begin), folder, **keywords)

    def in_prose(self, begin):
        """The commands of its prose that begin so."""
        return re.findall(rf"`({begin}[^`]*)`", self.text)


@contextlib.contextmanager
def a_device(machine, work):
    """The device that README.md speaks of: a file behind it."""
    file = work / "nvme"
    with open(file, "wb") as empty:
        empty.truncate(1 << 30)
    ended = subprocess.run(["losetup", "--find", "--show", file], capture_output=True, text=True)
    if ended.returncode != 0:
        raise Skipped(f"needs a loop device: {ended.stderr.strip()}")
    loop, node = ended.stdout.strip(), machine.root / "dev/nvme0n1"
    try:
        os.mknod(node, stat.S_IFBLK | 0o600, os.stat(loop).st_rdev)
        yield
    finally:
        node.unlink(missing_ok=True)
        subprocess.run(["losetup", "--detach", loop])
        file.unlink()


@contextlib.contextmanager
def unchanged(machine, meanwhile):
    """Fails if there is more on the machine in the end, or less."""
    before = machine.paths()
    yield
    after = machine.paths()
    check(after == before, f"{meanwhile} leaves {sorted(after - before)}, and takes {sorted(before - after)}")


def clone(source, to):
    """What `git clone` would bring, where there may be no git."""
    shutil.copytree(source, to, ignore=lambda folder, names: [
        name for name in names if name in (".git", "__pycache__") or (pathlib.Path(folder) == source and name.startswith("build"))])


def install_for_oneself(machine):
    """From the folder in which root has installed before."""
    prefix = f"{HOME}/{READER}/local"
    machine.type(f"make install PREFIX=/{prefix}", CLONE, user=READER)
    machine.type(f"/{prefix}/bin/spillway --version", user=READER)
    machine.type(f"make uninstall PREFIX=/{prefix}", CLONE, user=READER)
    left = list((machine.root / prefix).rglob("*"))
    check(not left, f"make uninstall leaves {left}")


def follow_readme(machine, source, work):
    page, installing = Page(machine, source / "README.md"), Page(machine, source / "docs/install.md")
    for begin, reason in NOT_TYPED.items():
        print(f"not typed: {page.take(begin)} ({reason})")
    # Else most of the time of the next command is the network's.
    machine.type("apt-get install -y --download-only --no-install-recommends $(scripts/install-deps.sh --list product)", CLONE, lines=3)
    demo = page.type("make demo", CLONE, lines=60, marks=STEPS)
    check(demo.count("same output") == 2, "the demonstration shows no two equal outputs")
    own = machine.root / OWN
    own.mkdir()
    shutil.copy(HERE / "outgrows.c", own / "program.c")
    (own / "Makefile").write_text("program: program.c\n\t$(CC) -O2 -o $@ $<\n")
    (machine.root / "mnt/nvme").mkdir()
    machine.add_user(READER)
    machine.call("chown", "-R", f"{READER}:", f"/{CLONE}")
    with machine.systemd(), unchanged(machine, "make uninstall"):
        page.type("make product", CLONE, user=READER)
        check("daemon-reload" in machine.told_systemd(), "systemd does not know the unit")
        page.type("make CC=spillcc", OWN)
        page.type("spillway run", OWN)
        with a_device(machine, work):
            page.type("spillway kv make")
            page.type("spillway kv put")
            served = SERVED % page.take("spillway serve")
            answers = call([*network_of_its_own(), *machine.into, "bash", "-c", served], served)
        check("STORED\n42\n" in answers, f"the server answers otherwise: {answers!r}")
        check(not page.left, f"nobody types {page.left}")
        uninstalling, = installing.in_prose("sudo make uninstall")
        machine.type(uninstalling, CLONE, user=READER)
        check(machine.told_systemd() == ["daemon-reload"], "systemd knows a unit that is gone")
        install_for_oneself(machine)


def follow_tutorial(machine, path):
    text = path.read_text()
    folder, work = machine.home / path.stem, fresh(machine.home / f"{path.stem}-commands")
    folder.mkdir()
    before = [*(network_of_its_own() if "spillway serve" in text else []), *machine.words_into(f"{HOME}/{path.stem}")]
    follow_to_its_end(path, Shell(folder, work, {**CLEAN, "LC_ALL": "C.UTF-8"}, before, machine.root), folder, slow=True)


def follow_packages(machine, source):
    page, tutorials = Page(machine, source / "docs/install.md"), [source / f"docs/tutorials/{name}.md" for name in TUTORIALS]
    check(set(tutorials) == set((source / "docs/tutorials").iterdir()), "there are other tutorials")
    for path in tutorials:
        for line in Page(machine, path).in_prose("apt-get install"):
            machine.type(line, answer="y\n")
    page.type("make deb", CLONE)
    with unchanged(machine, "apt-get purge"):
        page.type("sudo apt-get install", CLONE, answer="y\n")
        machine.type("sudo apt-get install ./build/packages/*.deb", CLONE, answer="y\n")
        for path in tutorials:
            follow_tutorial(machine, path)
        machine.type("python3 -B spillway/tests/cli/kv_formats_test.py /usr/bin/spillway")
        purging, = page.in_prose("sudo apt-get purge")
        machine.type(purging, answer="y\n")
    check(not any(name.startswith("spillway") for name in machine.packages()), "packages of ours stay")


def test(source, work):
    need_machine()
    fresh(work)
    try:
        machine = make_machine(work / "root")
        machine.call("apt-get", "install", "-y", "--no-install-recommends", "make", "sudo")
        clone(source, machine.root / CLONE)
        follow_readme(machine, source, work)
        follow_packages(machine, source)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(status_of("tour_test", test, *take_paths(2)))
