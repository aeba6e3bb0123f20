"""The server with ten times as much data as memory, for minutes: what it does second by second, how much memory it has, and its tail beside
fio's, in turns, each as long: at three quarters of what it does, with as many I/Os a second, since at what a disk can do at most its own tail
is another at each rate."""
import statistics
import threading
import time

from device import ENGINES, FIO
from devices import file_of, fill_random
from kv_contest import run_program
from lockstep import spread

CONNECTIONS = 16
RECORD_BYTES = 1536  # a value of 1 KiB with its header and key, in whole grains
WATCH_SECONDS = 0.1
PART = 0.75  # of its rate, for tails


class Memory:
    """The most that the server has, looked at all the time."""

    def __init__(self, server):
        self.server, self.most = server, 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        self.thread.join()

    def _watch(self):
        while not self.ends.wait(WATCH_SECONDS):
            self.most = max(self.most, self.server.resident_bytes())


def _fio(place, size_bytes, reads, writes, seconds):
    """p99.9 and the longest of I/Os at these rates, in microseconds."""
    words = [*FIO, *ENGINES["uring"], "--rw=randrw", f"--bs={RECORD_BYTES}", "--blockalign=512", f"--iodepth={CONNECTIONS}", f"--filename={place}",
             f"--size={size_bytes}", "--time_based", f"--runtime={round(seconds * 1000)}ms", "--unified_rw_reporting=mixed",
             f"--rate_iops={max(1, round(reads))},{max(1, round(writes))}", "--rate_process=poisson"]
    told = run_program(words, "overload")[0]["jobs"][0]["mixed"]["clat_ns"]
    return told["percentile"]["99.900000"] / 1e3, told["max"] / 1e3


def _tail(told):
    """p99.9 and the longest of requests, in microseconds."""
    return told["latency_ns"]["p999"] / 1e3, told["latency_ns"]["max"] / 1e3


def measure(context, cleanup, server, plan):
    """`server` has been filled with ten times its memory. A row, and its requests in each second."""
    place = file_of(cleanup, context.folder / "fio", plan.overload_data_bytes)
    fill_random(place, plan.overload_data_bytes)
    per_second, ours, fio, rates, busy = [], [], [], [], []

    def turn(**words):
        return server.ask("run", connections=CONNECTIONS, pipeline=1, sets=0.1, seconds=plan.overload_window_seconds, keys=plan.overload_keys, **words)

    with Memory(server) as memory:
        ends = time.monotonic() + plan.overload_seconds
        while time.monotonic() < ends:
            context.progress(f"server overload: {ends - time.monotonic():.0f} s left")
            told = turn(interval=1)
            per_second += told["series"]
            rates.append(told["per_second"])
            busy.append(_tail(told))
            before = server.reads()
            told = turn(rate=PART * rates[-1])
            reads = (server.reads() - before) / plan.overload_window_seconds
            ours.append(_tail(told))
            fio.append(_fio(place, plan.overload_data_bytes, reads, 0.1 * told["per_second"], plan.overload_window_seconds))
    ratios = [one[0] / other[0] for one, other in zip(ours, fio)]
    row = {"case": "overload", "ours": statistics.median(one[0] for one in ours), "peer": statistics.median(one[0] for one in fio),
           "ratio": statistics.median(ratios), "spread": spread(ratios), "unit": "us",
           "max_us": max(one[1] for one in ours), "peer_max_us": max(one[1] for one in fio), "rate": statistics.median(rates),
           "rate_least": min(rates), "busy_p999_us": statistics.median(one[0] for one in busy), "busy_max_us": max(one[1] for one in busy),
           "resident_bytes": memory.most, "memory_share": memory.most / plan.overload_memory_bytes}
    return row, per_second
