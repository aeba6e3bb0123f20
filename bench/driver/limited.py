"""Programs in memory groups on one kind of device: ours beside what the system itself does with the same limit.

  with Cleanup() as cleanup:
      device = Device(context, cleanup, "zram", room_bytes)        once for all that is measured on it
      with Cleanup() as inner:
          contest = Contest(context, inner, device, limit_bytes)
          contest.start(side, device.run(context, side, budget_bytes, stats, [program, ...]))
          contest.start("swap", [program, ...], swap=True)
          contest.ask("ours", "run\n")

The limit of a group holds a program's data and all else that it takes: limit_of() is the budget for data, what the program takes before it has
data, and SLACK_BYTES for page tables and what the runtime has besides the budget, the same for all sides.
"""
import functools
import json
import os
import pathlib

from device import Contest as FioContest
from devices import file_of, forget, swap_in, swap_on, why_no_zram, zram
from lockstep import Failure, Late, Programs, geometric_mean, median, row_of, spread
from memory_group import MemoryGroup, Unavailable
from variants import more_ratios

MIB = 1 << 20
SLACK_BYTES = 4 * MIB
PAGE_BYTES = 4096
ANSWER_SECONDS = 1200
FIO_SECONDS = 0.5
BEGIN_SECONDS = 15  # about what it takes to begin anew
# Pages that come in from swap at a time: none ahead, which suits random accesses, and as many as the kernel's default is, which suits those in order.
SWAPPED_IN = (1, 8)
# Threads of OpenMP that wait do not spin: there may be fewer CPUs than programs.
OPENMP = {"OMP_WAIT_POLICY": "passive"}


def usable_devices(notes):
    """Which of disk and zram can be measured here; what cannot is named in a note."""
    try:
        MemoryGroup.create(64 * MIB, "bench").remove()
    except Unavailable as reason:
        notes.append(f"nothing measured out of core: no memory limit can be set here ({reason})")
        return []
    if os.geteuid() != 0:
        notes.append("no swap beside ours on the disk: it needs root")
    no_zram = why_no_zram()
    if no_zram:
        notes.append(f"nothing on zram: {no_zram}")
    return ["disk"] if no_zram else ["disk", "zram"]


def plain_bytes(command):
    """The most memory that a program takes before it has data, which it tells by a first line."""
    with Programs() as programs:
        program = programs.start(command)
        program.read(60)
        return program.peak_bytes()


def limit_of(budget_bytes, plain):
    return budget_bytes + plain + SLACK_BYTES


def check_same(case, answers):
    """Of {side: what it found}: all alike."""
    if len(set(answers.values())) != 1:
        raise Failure(f"{case}: results differ: " + ", ".join(f"{side} {answer}" for side, answer in answers.items()))


def check_stats(case, path, data_bytes, resident):
    """The data must have been spilled memory, with nothing evicted or something."""
    counted = json.loads(path.read_text())
    if counted["spill"]["allocated_bytes"] < data_bytes:
        raise Failure(f"{case}: its data was not in spilled memory")
    if resident != (counted["cache"]["evictions"] == 0):
        raise Failure(f"{case}: {counted['cache']['evictions']} pages were evicted")


def resident_summary(rows):
    """Of the rows whose data is resident, for each side: the geometric mean of its ratios, and the worst."""
    summary = {}
    resident = [row for row in rows if row["case"].startswith("resident/")]
    for side in ("", "two_bodies_"):
        own = [row[side + "ratio"] for row in resident if side + "ratio" in row]
        if own:
            summary[f"resident_{side}geomean_ratio"], summary[f"resident_{side}worst_ratio"] = geometric_mean(own), max(own)
    return summary


def resident_row(case, seconds, unit="s"):
    """Of turns {side: CPU seconds}, with the side `native`."""
    return row_of(case, seconds["ours"], seconds["native"], unit, **more_ratios(seconds, "native"))


def limited_row(case, costs, sides, unit="s"):
    """Of turns {side: costs} (seconds; the peers `mmap` and `swap`, as far as there are, and `native`, without a limit): how many times as fast ours is.
    sides: those of spillcc."""
    times = {peer: [theirs / ours for ours, theirs in zip(costs["ours"], costs[peer])] for peer in ("mmap", "swap", "native") if peer in costs}
    # The kernel may have killed all that have as little memory.
    peers = [peer for peer in times if peer != "native"] or ["native"]
    best = min(peers, key=lambda peer: median(times[peer]))
    row = {"case": case, "ours": median(costs["ours"]), "peer": median(costs[best]), "ratio": median(times[best]), "spread": spread(times[best]),
           "unit": unit, "pairs": len(times[best]), "best_peer": best, "bodies": 1, **{f"{peer}_ratio": median(values) for peer, values in times.items()}}
    for side in sides:
        if side != "ours" and side in costs:
            own = [theirs / ours for ours, theirs in zip(costs[side], costs[best])]
            row[side + "_ratio"], row[side + "_spread"] = median(own), spread(own)
    return row


def reckoned(seconds, pairs, waited_seconds):
    """Seconds of so many turns of a peer that was late in one: what it took for those before, and for all from that one on as long as it was waited for."""
    return seconds + [waited_seconds] * (pairs - len(seconds))


def fio_columns(rates, fio_rates):
    """Of pages that ours read a second, and reads of fio."""
    if not fio_rates:
        return {"reads_per_second": median(rates)}
    shares = [rate / fio for rate, fio in zip(rates, fio_rates)]
    return {"reads_per_second": median(rates), "fio_ratio": median(shares), "fio_spread": spread(shares)}


class Device:
    """Where ours spills, where data is mapped from, and swap space."""

    def __init__(self, context, cleanup, name, room_bytes):
        self.name, self.cleanup, self.room_bytes = name, cleanup, room_bytes
        self.spill = {}  # a zram device is one program's
        if name == "zram":
            self.mapped, swap = (zram(cleanup, room_bytes) for _ in range(2))
        else:
            self.mapped = file_of(cleanup, context.folder / "mapped", room_bytes)
            swap = file_of(cleanup, context.folder / "swap", room_bytes) if os.geteuid() == 0 else None
        self.has_swap = swap is not None
        if self.has_swap:
            swap_on(cleanup, swap)

    def run(self, context, side, budget_bytes, stats, command):
        """The command for this program of ours, of which one runs at a time."""
        storage = ["--storage", context.storage]
        if self.name == "zram":
            if side not in self.spill:
                self.spill[side] = zram(self.cleanup, self.room_bytes)
            storage = ["--storage", self.spill[side], "--storage-overwrite"]
        return [context.spillway, "run", "--memory", f"{budget_bytes >> 10}K", *storage, "--stats", stats, "--", *command]


class FioPlan:
    def __init__(self, data_bytes):
        self.data_bytes, self.window_seconds = data_bytes, FIO_SECONDS


class Fio:
    """fio's reads of 4 KiB at random from what is mapped: as in `random`, in the way that was the fastest in a turn of each."""

    def __init__(self, place, data_bytes, depths):
        self.contest = FioContest(None, FioPlan(data_bytes), place)
        turns = [(side, ("uring", "read", "4K", depth)) for depth in depths for side in ("one", "batch")]
        self.best = max(turns, key=lambda turn: self.contest.turn(*turn).rate)

    def rate(self):
        return self.contest.turn(*self.best).rate


class Contest:
    """Programs that are alive at the same time, each in a group with this limit. A peer is waited for so many seconds."""

    PEERS = ("mmap", "swap")

    def __init__(self, context, cleanup, device, limit_bytes, peer_seconds=ANSWER_SECONDS):
        self.context, self.cleanup, self.device, self.limit_bytes, self.peer_seconds = context, cleanup, device, limit_bytes, peer_seconds
        self.programs = cleanup.enter_context(Programs())
        self.programs.environment.update(OPENMP)
        self.running, self.groups, self.notes = {}, {}, []
        self.late = set()  # peers that were waited for in vain
        self.swapped_in = {}  # of each that is swapped: pages that come in at a time
        if device is not None:
            forget(device.mapped)

    def start(self, side, command, swap=False, limited=True, more_bytes=0):
        """Maybe once more, after it was late. more_bytes: what the limit of this one is higher by."""
        if limited and side not in self.groups:
            group = self.cleanup.acquire(lambda: MemoryGroup.create(self.limit_bytes + more_bytes, f"bench-{side}"), MemoryGroup.remove)
            if swap:
                # Else the kernel kills who waits for what is being written to swap, as if there were no room.
                group.forbid_kills()
            else:
                group.forbid_swap()
            self.groups[side] = group
        if swap:
            self.swapped_in.setdefault(side, SWAPPED_IN[0])
        program = self.programs.start(command, self.groups.get(side))
        self.cleanup.callback(program.kill)
        self.running[side] = program
        self.late.discard(side)
        return program

    def ask(self, side, question, seconds=None):
        """The answer; None, and a note, from where a peer is late, or the kernel has killed it, as it may where its reclaim does not keep up. seconds: that a peer is waited for, if it is no turn."""
        if side not in self.running:
            return None
        if side in self.swapped_in:
            swap_in(self.swapped_in[side])
        try:
            return self.running[side].ask(question, seconds or (self.peer_seconds if side in self.PEERS else ANSWER_SECONDS))
        except Failure as failure:
            is_late = isinstance(failure, Late)
            if side not in self.PEERS or not (is_late or "signal 9" in str(failure)):
                raise
        if is_late:
            self.late.add(side)
        else:
            self.notes.append(f"the kernel killed the {side} program for lack of memory")
        self.running.pop(side).kill()
        return None

    def choose(self, side, ways, turn, begin_anew=None):
        """Of ways in which a peer may work, {name: what makes it work so}, the one by which it was faster in a turn of each, which it then has; "" where it was done with none.
        turn(): its seconds, None where it was not done. begin_anew(): after it was late; with it a way is not waited for much longer than another one took."""
        took, waited_seconds = {}, self.peer_seconds
        for name, make in ways.items():
            if begin_anew and side in self.late:
                begin_anew()
            make()
            if begin_anew and took:
                self.peer_seconds = min(waited_seconds, max(BEGIN_SECONDS, min(took.values())))
            seconds = turn()
            self.peer_seconds = waited_seconds
            if seconds is not None:
                took[name] = seconds
        if not took:
            return ""
        if begin_anew and side in self.late:
            begin_anew()
        best = min(took, key=took.get)
        ways[best]()
        return best

    def ways_to_swap(self):
        """Those of the side `swap`, for choose()."""
        return {pages: functools.partial(self.swapped_in.update, swap=pages) for pages in SWAPPED_IN}

    def left_out(self):
        """Notes of the peers that are no longer there: those that the kernel has killed, and those that were late."""
        return self.notes + [f"the {side} program was not done with a turn after {self.peer_seconds} s" for side in sorted(self.late)]

    def asking(self, side):
        """ask, of one side (workloads.py)."""
        return lambda question: self.ask(side, question)

    def read_bytes(self, side):
        """What the program's process has read from devices so far."""
        for line in pathlib.Path(f"/proc/{self.running[side].process.pid}/io").read_text().splitlines():
            if line.startswith("read_bytes:"):
                return int(line.split()[1])
        raise Failure("the kernel does not tell what a process reads")

    def finish(self):
        for program in self.running.values():
            program.finish()
