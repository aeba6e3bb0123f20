"""A Debian in a folder, with nothing else in it, in which tests give commands. Each is printed with what it says.

Needs root, debootstrap, and the mirror of Debian's packages that apt knows here.
"""
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from support import CLEAN, Failure, Skipped  # whoever imports this has the tests' folder in the path

HOME = "home"  # the folder in that Debian where commands are given
# For sh: ROOT FOLDER COMMAND. Mounts are gone when the command is.
INSIDE = f"""export HOME=/{HOME} PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && exec chroot "$0" env -C "/$@\""""
# In place of systemd's: keeps what systemd is told.
SYSTEMCTL = f"""#!/bin/sh
echo "$*" >> /{HOME}/told-systemd
"""


def check(condition, what):
    if not condition:
        raise Failure(what)


def call(command, shown=None, lines=15, answer="", marks=(), seconds=3000):
    """What a command prints, which is shown, the last lines of it, below the command, or what it is shown as. Failure if it fails. `answer` is what it
    is told, on its standard input; of `marks`, texts, it is shown when each was printed first."""
    words = [str(word) for word in command]
    shown = shown or " ".join(words)
    print("$", shown, flush=True)
    begin, printed, times = time.monotonic(), [], {}
    with tempfile.TemporaryFile("w+") as told:
        told.write(answer)
        told.seek(0)
        process = subprocess.Popen(words, env={**CLEAN, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}, stdin=told, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True, errors="replace")
    watchdog = threading.Timer(seconds, process.kill)
    watchdog.start()
    for line in process.stdout:
        printed.append(line.rstrip("\n"))
        for mark in marks:
            if mark in line:
                times.setdefault(mark, time.monotonic() - begin)
    status = process.wait()
    watchdog.cancel()
    last = printed[max(len(printed) - lines, 0):]
    print("\n".join(["..."] * (len(printed) > lines) + last + [f"({time.monotonic() - begin:.1f} s)"]))
    for mark, after in times.items():
        print(f"  after {after:6.1f} s: {mark}")
    sys.stdout.flush()
    check(status == 0, f"{shown} ends with {status}\n" + "\n".join(printed[-100:]))
    return "".join(f"{line}\n" for line in printed)


class Machine:
    def __init__(self, root):
        self.root, self.home = root, root / HOME
        self.into = self.words_into(HOME)

    def words_into(self, folder):
        """The words before a command that is given there, relative to the root."""
        return ["unshare", "--mount", "sh", "-c", INSIDE, str(self.root), folder]

    def call(self, *command, **keywords):
        return call([*self.into, *command], " ".join(map(str, command)), **keywords)

    def add_user(self, name):
        """One who may become root by sudo, which there is."""
        self.call("useradd", "--create-home", "--home-dir", f"/{HOME}/{name}", name)
        rights = self.root / "etc/sudoers.d" / name
        rights.write_text(f"{name} ALL=(ALL) NOPASSWD: ALL\n")
        rights.chmod(0o440)

    def type(self, line, folder=HOME, user=None, **keywords):
        """As into a shell: root's, or that of a user."""
        becomes = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "env", f"HOME=/{HOME}/{user}"] if user else []
        return call([*self.words_into(folder), *becomes, "bash", "-c", line], line, **keywords)

    @contextlib.contextmanager
    def systemd(self):
        """As if it ran meanwhile."""
        runs, program = self.root / "run/systemd/system", self.root / "usr/sbin/systemctl"  # apt's path has no /usr/local
        runs.mkdir(parents=True)
        program.write_text(SYSTEMCTL)
        program.chmod(0o755)
        yield
        runs.rmdir()
        program.unlink()

    def told_systemd(self):
        """The words of each call of systemctl since the last time."""
        told = self.home / "told-systemd"
        lines = told.read_text().splitlines() if told.exists() else []
        told.unlink(missing_ok=True)
        print(f"systemd was told {lines}")
        return lines

    def packages(self):
        return set(self.call("dpkg-query", "-W", "-f", "${Package}\\n", lines=0).split())

    def paths(self):
        """All there is, but for whoever's home it is, what is of the moment, and what apt, dpkg and others keep of their own work."""
        pruned = [f"/{HOME}", "/debs", "/dev", "/proc", "/run", "/sys", "/var/cache", "/var/lib/apt", "/var/lib/dpkg", "/var/log"]
        words = [word for path in pruned for word in ("-path", path, "-o")][:-1]
        return set(self.call("find", "/", "-xdev", "(", *words, ")", "-prune", "-o", "-print", lines=0).splitlines())


def mirrors():
    """[(address, release)] of Debian's own packages, as apt has them here; the release itself first."""
    ended = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE) $(CODENAME)", "Created-By: Packages", "Origin: Debian"],
                           capture_output=True, text=True)
    found = {tuple(line.split()) for line in ended.stdout.splitlines() if len(line.split()) == 2}
    return sorted(found, key=lambda mirror: ("-" in mirror[1], mirror))


def need_machine():
    if os.geteuid() != 0:
        raise Skipped("needs root, for a Debian in a folder")
    for program, package in (("debootstrap", "debootstrap"), ("dpkg-shlibdeps", "dpkg-dev"), ("file", "file"), ("unshare", "util-linux")):
        if shutil.which(program) is None:
            raise Skipped(f"needs apt-get install {package}")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
        raise Skipped("needs mounts of its own: unshare --mount is not permitted here")
    if not mirrors():
        raise Skipped("needs a mirror of Debian's packages that apt knows: apt-get update")


def make_machine(root):
    (address, release), *_ = found = mirrors()
    try:
        call(["debootstrap", "--variant=minbase", release, root, address])
    except Failure as failure:
        if "Failed getting release" in str(failure):
            raise Skipped(f"the mirror of Debian's packages does not answer: {address}") from None
        raise
    (root / "etc/apt/sources.list").write_text("".join(f"deb {address} {release} main\n" for address, release in found))
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    machine = Machine(root)
    machine.call("apt-get", "update")
    return machine
