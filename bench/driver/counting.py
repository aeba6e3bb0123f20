"""Instructions in user mode, and misses of a cache, counted by valgrind: there may be no counters of the hardware.

A program is run twice, with different numbers of operations, so that its start drops out of the difference. Not by callgrind: it keeps a
stack of calls, which a switch of stacks misleads.
"""
import re

from lockstep import Failure

WAYS, LINE_BYTES = 16, 64  # of the cache that is simulated


def counting(log, words, cache_bytes=0):
    """The words that run a program under valgrind, with a last-level cache of so many bytes, a power of two, if its misses are wanted."""
    simulation = ["--cache-sim=yes", f"--LL={cache_bytes},{WAYS},{LINE_BYTES}"] if cache_bytes else ["--cache-sim=no"]
    return ["valgrind", "--tool=cachegrind", *simulation, "--cachegrind-out-file=/dev/null", f"--log-file={log}", *words]


def counted(log, what=r"I\s+refs"):
    """What it has counted, once the program has ended."""
    found = re.search(rf"{what}:\s+([\d,]+)", log.read_text())
    if not found:
        raise Failure("valgrind did not say what it counted")
    return int(found[1].replace(",", ""))


def missed(log):
    """How often data was not in the last-level cache."""
    return counted(log, r"LLd misses")


def of_one(counts, operations):
    """Of one operation: two counts, and how many operations each was of."""
    return (counts[1] - counts[0]) / (operations[1] - operations[0])
