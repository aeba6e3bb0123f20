#!/usr/bin/env python3
"""A process that changes a file through a page cache is killed, again and again, and bytes of the file are damaged while nobody looks.

  pagecache_crash_test.py BUILD        20 kills; tests/kills.py has variables for more, and others

A process that is started after a kill (page_changer.cc) first checks each page of the file: it must hold what was synced, and then the first so many
of the later changes, each of them whole. A page in which a bit was changed behind its back is refused, and no other is. The device fails now and then;
some processes are killed while they start. The way to the file, the cache's policy and its nodes change from one start to the next.
"""
import fcntl
import os
import pathlib
import select
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from kills import Kills, wait_for_release  # noqa: E402
from support import CLEAN, HANG_SECONDS, Failure, status_of  # noqa: E402

PAGES = 400
PAGE_BYTES = 4096
SCHEMES = ["uring", "aio", "file"]
COUNTS = ["operations", "changes", "syncs", "resizes", "errors", "written_pages", "damaged", "checks"]  # at the beginning of a record (record.h)


def damage(path, generator):
    """Changes a bit in each of some pages that were written; returns their numbers."""
    pages = sorted(generator.sample(range(PAGES), 3))
    damaged = []
    with open(path, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # no write that the killed process had under way is still to come
        for page in pages:
            file.seek(page * PAGE_BYTES)
            content = bytearray(file.read(PAGE_BYTES))
            if any(content):
                content[generator.randrange(PAGE_BYTES)] ^= 1 << generator.randrange(8)
                file.seek(page * PAGE_BYTES)
                file.write(content)
                damaged.append(page)
        file.flush()
        os.fsync(file.fileno())
    return damaged


def life(changer, path, number, generator, is_last):
    """Starts the changer, lets it go on for a while, and kills it; the last one ends by itself. Returns how many pages were damaged before."""
    wait_for_release(path)
    dies_early = number % 5 == 4 and not is_last
    damaged = [] if dies_early or number % 3 != 1 else damage(path, generator)
    device = f"fault:seed={generator.getrandbits(30)},read_eio=1/500,write_eio=1/100,read_split=1/50:[{SCHEMES[number % 3]}:{path}]"
    arguments = [str(changer), device, f"{path}.record", str(generator.getrandbits(30)), *map(str, damaged)]
    with tempfile.TemporaryFile(dir=path.parent) as said:
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, env=CLEAN)
        if dies_early:
            time.sleep(generator.uniform(0, 0.1))
        else:
            select.select([process.stdout], [], [], HANG_SECONDS)
            time.sleep(generator.uniform(0.05, 0.5))
        if not is_last:
            process.kill()
        try:
            output, _ = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Failure(f"start {number}: {' '.join(arguments)} does not end") from None
        said.seek(0)
        text = said.read().decode(errors="replace")
    if process.returncode != (0 if is_last else -9) or not (dies_early or output.startswith(b"ready\n")):
        raise Failure(f"start {number}: {' '.join(arguments)} ended with {process.returncode}: {text}")
    if is_last:
        print(output.decode().splitlines()[-1])
    return len(damaged)


def counts_of(record):
    """What was done in all lives so far."""
    with open(record, "rb") as file:
        return dict(zip(COUNTS, struct.unpack("8Q", file.read(64).ljust(64, b"\0"))))


def test(build):
    kills = Kills(20)
    changer = pathlib.Path(build) / "tests" / "page_changer"
    least = kills.count // 4
    damaged_count, killed = 0, 0
    with kills.folder("pagecache_crash") as folder:
        path, record = folder / "file", folder / "file.record"
        record.touch()

        def done():
            counts = counts_of(record)
            return {"syncs": (counts["syncs"], least), "resizes": (counts["resizes"], least), "errors": (counts["errors"], least),
                    "damaged": (damaged_count, least), "changes": (counts["changes"], 100 * least)}

        with open(path, "wb") as file:
            file.truncate(PAGES * PAGE_BYTES)
        while kills.goes_on(killed, **done()):
            damaged_count += life(changer, path, killed, kills.random, False)
            killed += 1
        damaged_count += life(changer, path, killed, kills.random, True)
        print(kills)
        refused_count = counts_of(record)["damaged"]
        if refused_count != damaged_count:
            raise Failure(f"{refused_count} pages were refused, {damaged_count} are damaged")
        kills.expect(**done())


if __name__ == "__main__":
    sys.exit(status_of("pagecache_crash_test", test, sys.argv[1]))
