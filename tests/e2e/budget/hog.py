"""Takes memory, 2 MiB at a time, while it reads a file again and again.  hog.py FILE MEGABYTES"""
import os
import sys
import time

# What is in the page cache already is another group's.
with open(sys.argv[1], "rb") as file:
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
kept = []
while True:
    if len(kept) * 2 < int(sys.argv[2]):
        kept.append(bytearray(b"x") * (2 << 20))
    with open(sys.argv[1], "rb") as file:
        while file.read(1 << 20):
            pass
    time.sleep(0.05)
