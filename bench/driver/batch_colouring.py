"""Cache-buckets and the table's buckets in OS pages of different colours, beside pages as they come. (cache-aware batch update, section 4.5)"""
import pathlib

import plot
from counting import LINE_BYTES, WAYS
from lockstep import geometric_mean, median, spread

NAME, TITLE = "colouring", "pages of different colours for cache-buckets and table, over pages as they come"
PARTS = {"colouring/misses": f"{TITLE}, simulated", "colouring/time": TITLE, "colouring/lines": "a line of pages of one colour, over one of pages of all"}
PAGE_BYTES = 4096
EIGHTHS = (4, 6, 7)  # of the cache, for cache-buckets
TIMED_EIGHTHS = (4, 6)
BUCKETS = (128, 512)
THOUSANDS = 400
TIMED_THOUSANDS = 200
CPU_CACHES = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")


def colours_of(level, folder=CPU_CACHES):
    """How many colours a cache of the CPU has, and its bytes; None: it is not known."""
    for cache in folder.glob("index*"):
        try:
            if (cache / "level").read_text().strip() == str(level):
                sets, ways = (int((cache / name).read_text()) for name in ("number_of_sets", "ways_of_associativity"))
                return sets * LINE_BYTES // PAGE_BYTES, sets * ways * LINE_BYTES
        except (OSError, ValueError):
            pass
    return None


class Colouring:
    def __init__(self, measured, quick):
        self.measured, self.quick, self.notes = measured, quick, []
        self.lines = None

    def cases(self):
        cases = {}
        for bucket in BUCKETS:
            for eighths in EIGHTHS[:1] if self.quick else EIGHTHS:
                cases[f"{NAME}/misses/{bucket}/{eighths}"] = lambda case, numbers=(bucket, eighths): self.misses(case, *numbers)
        for bucket in BUCKETS:
            for eighths in TIMED_EIGHTHS[:1] if self.quick else TIMED_EIGHTHS:
                cases[f"{NAME}/time/{bucket}/{eighths}"] = lambda case, numbers=(bucket, eighths): self.time(case, *numbers)
        cases[f"{NAME}/lines"] = self.lines_of_colours
        return cases

    def misses(self, case, bucket, eighths):
        """By cachegrind, whose colours are those of virtual addresses."""
        measured = self.measured
        measured.progress(f"batch: counting misses of {case}")
        colours = measured.cache_bytes // WAYS // PAGE_BYTES
        words = {"bucket": bucket, "buckets": round(THOUSANDS * (100 if self.quick else 1000) / measured.shrunk), "cache": (measured.cache_bytes >> 10) * eighths // 8,
                 "colours": colours, "taken": max(colours * eighths // 8, 1)}
        counts, _ = measured.count({placement: [measured.program("colouring"), f"placement={placement}", *(f"{name}={value}" for name, value in words.items())]
                                    for placement in ("coloured", "plain")})
        return {"case": case, "ours": counts["coloured"], "peer": counts["plain"], "ratio": counts["coloured"] / counts["plain"], "spread": 0.0, "unit": "misses"}

    def time(self, case, bucket, eighths):
        """In memory whose colours are those of what the system takes for physical addresses. None: it does not tell them."""
        last, second = colours_of(3), colours_of(2)
        if last is None or second is None:
            return self.without("the system does not tell how large the CPU's caches are")
        self.measured.progress(f"batch: {case}")
        words = {"bucket": bucket, "buckets": TIMED_THOUSANDS * (100 if self.quick else 1000), "cache": (last[1] >> 10) * eighths // 8, "colours": last[0],
                 "taken": last[0] * eighths // 8, "near": min(second[0], last[0]), "turns": self.measured.turns, "seconds": self.measured.seconds}
        told = self.measured.ask("colouring", words)
        if "unavailable" in told:
            return self.without("the system tells physical addresses to root only, or has too little memory of each colour")
        self.lines = told["lines"]
        plain, coloured, huge = (told["placements"][name] for name in ("plain", "coloured", "huge"))
        each = [ours / peer for ours, peer in zip(coloured, plain)]
        return {"case": case, "ours": median(coloured), "peer": median(plain), "ratio": median(each), "spread": spread(each), "unit": "ns", "pairs": len(each),
                "huge": median(huge), "huge_ratio": median([ours / peer for ours, peer in zip(huge, plain)])}

    def without(self, why):
        self.notes = [f"nothing of colouring/time and colouring/lines: {why}"]

    def lines_of_colours(self, case):
        """A line of pages that have one colour, over one of pages that have all: what colours mean here."""
        if self.lines is None:
            self.time(case, BUCKETS[-1], TIMED_EIGHTHS[0])
        if not self.lines or not {"same", "mixed"} <= set(self.lines):
            return None
        return {"case": case, "ours": self.lines["same"], "peer": self.lines["mixed"], "ratio": self.lines["same"] / self.lines["mixed"], "spread": 0.0, "unit": "ns"}


def picture(rows):
    series = {"misses, simulated": {}, "time": {}, "time in large OS pages": {}}
    for row in rows:
        what, _, case = row["case"].partition("/")[2].partition("/")
        if what == "misses":
            series["misses, simulated"][case] = row["ratio"]
        elif what == "time":
            series["time"][case], series["time in large OS pages"][case] = row["ratio"], row["huge_ratio"]
        else:
            series["time"]["lines of one colour"] = row["ratio"]
    cases = list(dict.fromkeys(case for each in series.values() for case in each))
    return plot.bars(f"{NAME}: {TITLE}", "bytes of a bucket, eighths of the cache for cache-buckets; less is better", cases,
                     {name: [each.get(case) for case in cases] for name, each in series.items() if each})


def summarise(rows):
    of = {what: [row["ratio"] for row in rows if row["case"].startswith(f"{NAME}/{what}")] for what in ("misses", "time", "lines")}
    return {f"{NAME}_{what}_ratio": geometric_mean(ratios) for what, ratios in of.items() if ratios}
