"""`kv` on more drives and cores than there are: the store on modelled drives, and a simulation of more. (uDepot, figure 8)

The simulation knows of three things: each get needs a core for some time, then one of the drives, any alike, for as long as a read takes there, of which a drive works on so many at a time; and so many
gets are always under way. It takes one number from what was measured, the CPU time for a get; the rates that were measured say how far it is right. That cores do not get in each other's way is beyond what
two of them can say.

`cores` takes that time from a worker that is busy all the time on modelled drives: they are memory of the process, and no call of the system is in it, as with SPDK. `cores_BACKEND` takes it from the disk, by
that backend, with as many gets at a time as there are: with the kernel's part. No point validates that part: a drive's own driver may cost another time.
"""
import heapq
import random

from kv_contest import RECORDS, make_row, run_program
from lockstep import median, take_turns

MIB = 1 << 20
# A drive: microseconds of a read, and how many it works on at a time. 24 of them do 7.2 million a second; the paper's 24 6.87 million, by SPDK's own benchmark.
DRIVE_US, DRIVE_CHANNELS, PAPER_DRIVES, PAPER_CORES = 80, 24, 24, 20
KEYS, CAPACITY_BYTES = 8 * 1024, 128 * MIB
CASE_SECONDS = 15
OPERATIONS, ROUNDS = 20_000, 10  # that are simulated: in all, or of each that is under way at a time
UNIT, SIMULATED_UNIT = "operations/s, modelled drives", "operations/s, simulated"


class Plan:
    def __init__(self, quick, cpu_count, on_disk):
        workers = [1] if cpu_count < 2 else [1, 2]
        shapes = [(drives, depth) for drives in ((1, 4) if quick else (1, 2, 4)) for depth in ((4, 256) if quick else (1, 4, 16, 64, 256))]
        # {name: (workers, drives, gets at a time)}; the last of a worker's keeps it busy.
        self.measured = {f"drives/{count}/{drives}/{depth}": (count, drives, depth) for count in workers for drives, depth in shapes if depth >= count}
        self.busiest = f"drives/1/{shapes[-1][0]}/{shapes[-1][1]}"
        shapes = [(cores, depth) for cores in ((1, PAPER_CORES) if quick else (1, 2, 5, 10, PAPER_CORES)) for depth in (1, 16, 64, 256, 1024)]
        sources = {"cores": self.busiest, **{f"cores_{backend}": case for backend, case in on_disk.items()}}
        # {name: (the case that a get's CPU time is of, cores, gets at a time)}
        self.simulated = {f"{kind}/{cores}/{depth}": (source, cores, depth) for kind, source in sources.items() for cores, depth in shapes}
        self.operations = OPERATIONS // 4 if quick else OPERATIONS


def device(drives):
    """A stripe of modelled drives in memory."""
    each = f"latency:us={DRIVE_US},channels={DRIVE_CHANNELS}:[memory:{CAPACITY_BYTES // drives // MIB}M]"
    return each if drives == 1 else f"stripe:[{','.join([each] * drives)}]"


def simulate(cores, drives, at_a_time, core_us, operations=OPERATIONS):
    """Gets a second, of the second half of so many."""
    chance = random.Random(1)
    operations = max(operations, ROUNDS * at_a_time)
    ready, free_cores, free_channels = [0.0] * at_a_time, [0.0] * cores, [[0.0] * DRIVE_CHANNELS for _ in range(drives)]
    half_us = 0.0
    for number in range(operations):
        begun = max(heapq.heappop(ready), free_cores[0])
        heapq.heapreplace(free_cores, begun + core_us)
        channels = free_channels[chance.randrange(drives)]
        done = max(begun + core_us, channels[0]) + DRIVE_US
        heapq.heapreplace(channels, done)
        heapq.heappush(ready, done)
        if number == operations // 2:
            half_us = begun
    return (operations - operations // 2 - 1) / (begun - half_us) * 1e6


class Drives:
    """load: the store's load program. turns: of each case that is measured, each of window_seconds. on_disk: {backend: the case of gets by it on the disk}."""

    def __init__(self, context, load, turns, window_seconds, cpu_count, on_disk):
        self.context, self.load, self.turns, self.window_seconds = context, load, turns, window_seconds
        self.plan = Plan(context.quick, cpu_count, on_disk)

    def needs(self):
        """The cases whose CPU time the simulations that are wanted have."""
        return {source for name, (source, *_) in self.plan.simulated.items() if self.context.cases.wants(name)}

    def measure(self, workers, drives, depth):
        """Answers of the load program, one for each turn."""
        words = [self.load, device(drives), "get", "make=1", f"keys={KEYS}", f"capacity={CAPACITY_BYTES}", "grain=4096", f"value={RECORDS['4K'][1]}", f"depth={depth}", "by=tasks",
                 f"workers={workers}", f"seconds={self.window_seconds}"]
        return take_turns(["ours"], lambda _: run_program(words, f"on {drives} modelled drives")[0], self.turns, CASE_SECONDS)["ours"]

    def rows(self, disk_us):
        """Of the cases that are wanted, and of all that was measured for them. disk_us: {case of gets on the disk: CPU time of one}, of those that needs() has."""
        wants, plan, needs = self.context.cases.wants, self.plan, self.needs()
        measured = [name for name in plan.measured if wants(name)]
        needed = [name for name in plan.measured if name in measured or (name == plan.busiest and (measured or name in needs))]
        answers = {}
        for name in needed:
            if name not in self.context.kept:
                self.context.progress(f"kv {name}")
                self.context.kept[name] = self.measure(*plan.measured[name])
            answers[name] = self.context.kept[name]
        rows, core_us_of = [], dict(disk_us)
        if answers:
            core_us_of[plan.busiest] = median([answer["worker_us"] for answer in answers[plan.busiest]])
        for name, own in answers.items():
            core_us = core_us_of[plan.busiest]
            rate = simulate(*plan.measured[name], core_us, plan.operations)
            rows.append({**make_row(name, own, [rate] * len(own)), "unit": UNIT, "core_us": core_us})
            self.context.say(f"{name:24} {rows[-1]['ours']:>11,.5g} gets/s, {rows[-1]['ratio']:.2f} times what is simulated")
        return rows + self.simulated_rows(core_us_of)

    def simulated_rows(self, core_us_of):
        rows, alone = [], {}
        for name, (source, cores, depth) in self.plan.simulated.items():
            if not self.context.cases.wants(name):
                continue
            core_us = core_us_of[source]
            if (source, depth) not in alone:
                alone[source, depth] = simulate(1, PAPER_DRIVES, depth, core_us, self.plan.operations)
            rate = simulate(cores, PAPER_DRIVES, depth, core_us, self.plan.operations)
            rows.append({"case": name, "ours": rate, "peer": alone[source, depth], "ratio": rate / alone[source, depth], "spread": 0.0, "unit": SIMULATED_UNIT, "core_us": core_us})
            self.context.say(f"{name:24} {rate:>11,.5g} gets/s, simulated: {PAPER_DRIVES} drives, {core_us:.2f} us of a core for a get")
        return rows


def summarise(rows):
    """How far the simulation is from what was measured, at worst, by the number of workers; and what it says of the paper's machine."""
    summary = {}
    for row in rows:
        kind, count, *_ = row["case"].split("/")
        if kind == "drives":
            key = f"drives_{count}_workers_over_simulated"
            summary[key + "_least"] = min(summary.get(key + "_least", row["ratio"]), row["ratio"])
            summary[key + "_most"] = max(summary.get(key + "_most", row["ratio"]), row["ratio"])
        else:
            key = f"{kind}_{count}_simulated_per_second"
            summary[key] = max(summary.get(key, 0.0), row["ours"])
    return summary
