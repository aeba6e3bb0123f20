"""A memory limit for one command: a control group of version 1 or 2, removed afterwards.

  group = MemoryGroup.create(limit_bytes)      raises Unavailable with the reason
  subprocess.Popen(..., preexec_fn=group.enter)
  group.peak_bytes(), group.kills()
  group.remove()
"""
import os
import pathlib
import signal
import subprocess
import threading
import time

PAGE_BYTES = 4096
RETRY_SECONDS = 0.01
RETRIES_MOST = 1000  # one after the other, of which none has found memory


class Unavailable(Exception):
    pass


def _own_groups():
    """Controllers -> path of this process's group; "" is version 2."""
    groups = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        groups[controllers] = path
    return groups


def _mount_points():
    """(version 1 memory mount, version 2 mount), each None when there is none."""
    memory = unified = None
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, options = line.split()[:4]
        if kind == "cgroup" and "memory" in options.split(","):
            memory = pathlib.Path(folder)
        elif kind == "cgroup2":
            unified = pathlib.Path(folder)
    return memory, unified


def _ancestors(mount, path):
    """The folder of `path` under `mount`, then its parents up to the mount itself."""
    folder = mount / path.lstrip("/")
    while True:
        if folder.is_dir():
            yield folder
        if folder == mount or mount not in folder.parents:
            return
        folder = folder.parent


def _candidates():
    """(folder that may hold our group, version), the likeliest first."""
    memory, unified = _mount_points()
    own = _own_groups()
    if memory is not None:
        for folder in _ancestors(memory, own.get("memory", "/")):
            yield folder, 1
    if unified is not None:
        for folder in _ancestors(unified, own.get("", "/")):
            # Processes may not stand beside groups, so it is a parent that passes the controller on.
            if "memory" in (folder / "cgroup.subtree_control").read_text().split():
                yield folder, 2


class MemoryGroup:
    FILES = {
        1: {"limit": "memory.limit_in_bytes", "usage": "memory.usage_in_bytes", "peak": "memory.max_usage_in_bytes",
            "kills": "memory.oom_control", "swap": "memory.swappiness"},
        2: {"limit": "memory.max", "usage": "memory.current", "peak": "memory.peak", "kills": "memory.events",
            "swap": "memory.swap.max"},
    }

    def __init__(self, folder, version, limit_bytes):
        self.folder = folder
        self.version = version
        self.limit_bytes = limit_bytes
        self.seen_bytes = 0
        self.retries, self.is_removed = None, threading.Event()

    @classmethod
    def create(cls, limit_bytes, name="demo"):
        """name tells apart the groups that one process has at the same time."""
        reason = "there is no memory controller"
        for parent, version in _candidates():
            folder = parent / f"spillway-{name}-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError as error:
                reason = f"{parent}: {error.strerror}"
                continue
            group = cls(folder, version, limit_bytes)
            try:
                group._file("limit").write_text(str(limit_bytes))
                subprocess.run(["true"], preexec_fn=group.enter, check=True)
                return group
            except (OSError, subprocess.SubprocessError) as error:
                reason = f"{folder}: {error}"
                group.remove()
        raise Unavailable(reason)

    def _file(self, what):
        return self.folder / self.FILES[self.version][what]

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def forbid_swap(self):
        self._file("swap").write_text("0")

    def forbid_kills(self):
        """A process that finds no memory is killed only after ten seconds of retries, where the kernel can wait so long: in groups of version 1. Returns whether it can."""
        if self.version == 1:
            self._file("kills").write_text("1")
            self.retries = threading.Thread(target=self._retry, daemon=True)
            self.retries.start()
        return self.version == 1

    def _retry(self):
        # The kernel gives up early while pages that are to leave memory are still being written. A higher limit wakes the processes that wait then.
        retries = 0
        while retries < RETRIES_MOST and not self.is_removed.wait(RETRY_SECONDS):
            retries = retries + 1 if "under_oom 1" in self._file("kills").read_text().splitlines() else 0
            if retries > 0:
                self._file("limit").write_text(str(int(self._file("limit").read_text()) + PAGE_BYTES))
                try:
                    self._file("limit").write_text(str(self.limit_bytes))
                except OSError:  # all of it is taken
                    pass
        self._file("kills").write_text("0")

    def usage_bytes(self):
        usage = int(self._file("usage").read_text())
        self.seen_bytes = max(self.seen_bytes, usage)
        return usage

    def peak_bytes(self):
        try:
            return int(self._file("peak").read_text())
        except OSError:  # version 2 before Linux 5.19
            return self.seen_bytes

    def kills(self):
        """How many processes of the group the kernel killed for lack of memory."""
        for line in self._file("kills").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
        return 0

    def remove(self):
        self.is_removed.set()
        if self.retries:
            self.retries.join()
        for _ in range(50):
            try:
                for process in (self.folder / "cgroup.procs").read_text().split():
                    os.kill(int(process), signal.SIGKILL)
            except OSError:
                pass
            try:
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.1)
