"""Instructions in user mode, counted by valgrind: there may be no counters of the hardware.

A program is run twice, with different numbers of operations, so that its start drops out of the difference. Not by callgrind: it keeps a
stack of calls, which a switch of stacks misleads.
"""
import re

from lockstep import Failure


def counting(log, words):
    """The words that run a program under valgrind."""
    return ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", f"--log-file={log}", *words]


def counted(log):
    """What it has counted, once the program has ended."""
    found = re.search(r"I\s+refs:\s+([\d,]+)", log.read_text())
    if not found:
        raise Failure("valgrind did not say how many instructions it counted")
    return int(found[1].replace(",", ""))


def of_one(counts, operations):
    """Of one operation: two counts, and how many operations each was of."""
    return (counts[1] - counts[0]) / (operations[1] - operations[0])
