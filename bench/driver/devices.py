"""Devices and swap space for one measurement, gone afterwards whatever happens.

  with Cleanup() as cleanup:
      device = zram(cleanup, bytes)          /dev/zramN, empty
      swap_on(cleanup, device)
"""
import contextlib
import mmap
import os
import pathlib
import signal
import stat
import subprocess
import time

from lockstep import Failure

SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
CONTROL = pathlib.Path("/sys/class/zram-control")
CLUSTER = pathlib.Path("/proc/sys/vm/page-cluster")


class Cleanup(contextlib.ExitStack):
    """An ExitStack that no signal interrupts: neither between taking and noting what to release, nor while releasing."""

    def acquire(self, take, release):
        """take() and from then on release(what take() returned)."""
        old = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            taken = take()
            self.callback(release, taken)
            return taken
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)

    def __exit__(self, *what):
        old = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            return super().__exit__(*what)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _tool(*words):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{words[0]} failed: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")


def why_no_zram():
    """"" where zram devices can be made."""
    if os.geteuid() != 0:
        return "zram needs root"
    return "" if (CONTROL / "hot_add").exists() else "the kernel has no zram"


def _remove_zram(number):
    block = pathlib.Path(f"/sys/block/zram{number}")
    for _ in range(50):  # whoever held it may still be ending
        try:
            (block / "reset").write_text("1")
            (CONTROL / "hot_remove").write_text(str(number))
            return
        except OSError:
            time.sleep(0.1)
    print(f"spillway: /dev/zram{number} could not be removed; it is busy", flush=True)


def zram(cleanup, size_bytes):
    number = cleanup.acquire(lambda: int((CONTROL / "hot_add").read_text()), _remove_zram)
    block = pathlib.Path(f"/sys/block/zram{number}")
    (block / "disksize").write_text(str(size_bytes))
    device = pathlib.Path(f"/dev/zram{number}")
    if not device.exists():  # no devtmpfs
        major, minor = map(int, (block / "dev").read_text().split(":"))
        cleanup.acquire(lambda: os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(major, minor)) or device,
                        lambda made: made.unlink(missing_ok=True))
    return device


def swap_in(pages):
    """So many pages come in from swap at a time, a power of two: the one that is asked for, and those beside it."""
    CLUSTER.write_text(str(pages.bit_length() - 1))


def swap_on(cleanup, place):
    """Swap on a device or file. Pages come in one at a time, until somebody says otherwise."""
    def take_cluster():
        before = CLUSTER.read_text()
        swap_in(1)
        return before

    _tool("mkswap", place)
    cleanup.acquire(take_cluster, CLUSTER.write_text)
    cleanup.acquire(lambda: _tool("swapon", place) or place, lambda taken: _tool("swapoff", taken))


def file_of(cleanup, path, size_bytes):
    """A new file of this size, all of it on the disk's blocks."""
    def take():
        with open(path, "xb") as file:
            os.fchmod(file.fileno(), 0o600)
        return path

    cleanup.acquire(take, lambda taken: taken.unlink(missing_ok=True))
    with open(path, "r+b") as file:
        os.posix_fallocate(file.fileno(), 0, size_bytes)
    return path


def fill_random(place, size_bytes):
    """Random data, past the page cache: what is read is there, and nothing compresses it."""
    part = mmap.mmap(-1, 4 << 20)
    descriptor = os.open(place, os.O_WRONLY | os.O_DIRECT)
    try:
        for at in range(0, size_bytes, len(part)):
            part[:] = os.urandom(len(part))
            if os.pwrite(descriptor, part, at) != len(part):
                raise Failure(f"{place} is full")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def forget(path):
    """Leaves nothing of this file or device in the kernel's page cache, so that who maps or reads it does so within its own limit: what is left of a group that was removed, or of who wrote it, is
    charged to others."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
