"""The figures and tables of the thesis's chapter 4, from cases that are measured here. (cache-aware batch update, sections 4.6 to 4.12)

A figure is its title, its rows, each by a function of its case's numbers, and a picture of its rows.
"""
import plot
from batch_load import DIRECT, OURS, PEER
from lockstep import geometric_mean, median, spread

PARTS = {
    "figure4.3": "base cost of an update, cycles of a thread",
    "table4.3": "updates a second with three organisations of cache-buckets",
    "table4.4": "misses of an update with three organisations of cache-buckets, simulated",
    "figure4.4": "cost of an update by the size of buckets, cycles of a thread",
    "figure4.5": "updates a second by the number of buckets",
    "figure4.6": "misses of an update by the number of buckets, simulated",
    "figure4.7": "relative misses, simulated, beside equation 3.4",
    "figure4.8": "updates a second, all factors",
    "figure4.9": "misses of an update, all factors, simulated",
    "table4.5": "cycles of an update of a thread by its misses, a line through all sizes of tables",
}
MIDDLE_RECORD, MIDDLE_BUCKET, LARGE_BUCKET = 16, 256, 512
CELLS = {"few_large": 1024, "medium": 512, "many_small": 256}  # bytes of a cache-bucket
COST_BUCKETS = (64, 128, 256, 384, 512)
THESIS_MISSES, THESIS_SAVED_PERCENT = (4, 11), (20, 50)  # of the baseline, and by cache-buckets, as the hardware counts them, with the middle record (section 4.12)


def regress(points):
    """Intercept and slope of the line with the least squares, and the share of the values' variance that it explains."""
    count = len(points)
    mean_x, mean_y = (sum(point[axis] for point in points) / count for axis in (0, 1))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    intercept = mean_y - slope * mean_x
    rest, all_of_it = sum((y - intercept - slope * x) ** 2 for x, y in points), sum((y - mean_y) ** 2 for _, y in points)
    return intercept, slope, 1 - rest / all_of_it


def _row(case, ours, peer, unit, **more):
    """Of values of the same turns."""
    each = [one / other for one, other in zip(ours, peer)]
    return {"case": case, "ours": median(ours), "peer": median(peer), "ratio": median(each), "spread": spread(each), "unit": unit, "pairs": len(each), **more}


def _over(name, ours, others):
    """Columns of a row: ours over another's of the same turns."""
    each = [one / other for one, other in zip(ours, others)]
    return {f"{name}_ratio": median(each), f"{name}_spread": spread(each)}


class Figures:
    def __init__(self, measured, records, buckets, thousands, threads, large):
        self.measured, self.records, self.buckets, self.thousands, self.threads, self.large = measured, records, buckets, thousands, threads, large
        self.points = {}  # of table 4.5

    def cases(self):
        """{case: what makes its row}, in the order in which they are shown."""
        middle = self.thousands[min(1, len(self.thousands) - 1)]
        shapes = [(record, bucket, many) for record in self.records for bucket in self.buckets for many in self.thousands]
        curve = [each for each in shapes if each[0] == MIDDLE_RECORD]
        ends = [each for each in shapes if each[1] in (self.buckets[0], self.buckets[-1])]
        cases = {}

        def add(name, make, *numbers):
            cases[name] = lambda: make(name, *numbers)

        for record in self.records:
            for threads in self.threads:
                add(f"figure4.3/{record}/{threads}", self.base_cost, record, threads)
        for organisation in CELLS:
            for threads in self.threads:
                add(f"table4.3/{organisation}/{threads}", self.organisation, organisation, MIDDLE_RECORD, LARGE_BUCKET, middle, threads)
        for cell in CELLS.values():
            add(f"table4.4/{cell}", self.misses, MIDDLE_RECORD, LARGE_BUCKET, middle, cell)
        for threads in self.threads:
            for bucket in COST_BUCKETS:
                add(f"figure4.4/{bucket}/{threads}", self.cost, MIDDLE_RECORD, bucket, middle, threads)
        for record, bucket, many in curve + [(MIDDLE_RECORD, MIDDLE_BUCKET, many) for many in self.large]:
            add(f"figure4.5/{bucket}/{many}k", self.throughput, record, bucket, many, 1)
        for name in ("figure4.6", "figure4.7"):
            for record, bucket, many in curve:
                add(f"{name}/{bucket}/{many}k", self.misses, record, bucket, many)
        for record, bucket, many in ends:
            for threads in self.threads:
                add(f"figure4.8/{record}/{bucket}/{many}k/{threads}", self.throughput, record, bucket, many, threads)
        for record, bucket, many in ends:
            add(f"figure4.9/{record}/{bucket}/{many}k", self.misses, record, bucket, many)
        for record in self.records:
            for threads in self.threads:
                add(f"table4.5/{record}/{threads}", self.regression, record, threads)
        return cases

    @staticmethod
    def cycles(told, engine):
        """By the CPU's clock, of a thread: what others have of the CPU meanwhile is not in it."""
        return [ns / told["ns_per_cycle"] for ns in told["cpu"][engine]]

    def base_cost(self, case, record, threads):
        told = self.measured.base_costs(record, threads)
        row = _row(case, self.cycles(told, OURS), self.cycles(told, PEER), "cycles")
        return {**row, "more": row["ours"] - row["peer"]}

    def cost(self, case, record, bucket, thousands, threads):
        told = self.measured.costs(record, bucket, thousands, threads)
        ours, peer, direct = (self.cycles(told, engine) for engine in (OURS, PEER, DIRECT))
        return {**_row(case, ours, peer, "cycles"), **_over(DIRECT, ours, direct)}

    def throughput(self, case, *numbers):
        told = self.measured.costs(*numbers)["engines"]
        ours, peer, direct = ([1e3 / ns for ns in told[engine]] for engine in (OURS, PEER, DIRECT))
        return {**_row(case, ours, peer, "M/s"), **_over(DIRECT, ours, direct)}

    def organisation(self, case, organisation, *numbers):
        told = self.measured.organisations(*numbers, list(CELLS.values()))
        times, of_few_large = told[CELLS[organisation]], told[CELLS["few_large"]]
        ours, peer, few_large = ([1e3 / ns for ns in all_times] for all_times in (times[OURS], times[PEER], of_few_large[OURS]))
        return {**_row(case, ours, peer, "M/s"), **_over("few_large", ours, few_large)}

    def misses(self, case, *numbers):
        ours, peer, model = self.measured.misses(*numbers)
        return _row(case, [ours], [peer], "misses", model=model)

    def regression(self, case, record, threads):
        points = {OURS: [], PEER: []}
        for bucket in self.buckets:
            for many in self.thousands:
                told = self.measured.costs(record, bucket, many, threads)
                ours, peer, _ = self.measured.misses(record, bucket, many)
                for engine, missed in ((OURS, ours), (PEER, peer)):
                    # Tables are beside each other here, not turns: whoever shares the machine makes some slower.
                    points[engine].append((missed, min(self.cycles(told, engine))))
        self.points[case] = points
        row = _row(case, *([cycles for _, cycles in points[engine]] for engine in (OURS, PEER)), "cycles")
        for engine, prefix in ((OURS, ""), (PEER, "peer_")):
            base, slope, explained = regress(points[engine])
            row |= {prefix + "base_cycles": base, prefix + "miss_cycles": slope,
                    prefix + "misses_share": median([slope * missed / cycles for missed, cycles in points[engine]]), prefix + "explained": explained}
        return row

    def picture(self, name, rows):
        title, labels = f"{name}: {PARTS[name]}", [row["case"].partition("/")[2] for row in rows]
        if name in ("figure4.3", "table4.3", "table4.4"):
            return plot.bars(title, f"over the baseline's, {rows[0]['unit']}", labels, {"cache-buckets": [row["ratio"] for row in rows]})
        if name == "figure4.8":
            return _bars_by_threads(title, rows)
        if name == "figure4.9":
            return plot.bars(title, "over the baseline's, less is better", labels,
                             {"simulated": [row["ratio"] for row in rows], "equation 3.4": [row["model"] for row in rows]})
        if name == "table4.5":
            return _scattered(title, self.points)
        return _curved(title, name, rows)


def _threads(count):
    return f"{count} thread" + "s" * (count != "1")


def _bars_by_threads(title, rows):
    """A bar for each number of threads, with which cases end."""
    series = {}
    for row in rows:
        case, _, threads = row["case"].partition("/")[2].rpartition("/")
        series.setdefault(_threads(threads), {})[case] = row["ratio"]
    cases = list(dict.fromkeys(case for each in series.values() for case in each))
    return plot.bars(title, "over the baseline's, more is better", cases, {threads: [each.get(case) for case in cases] for threads, each in series.items()})


def _curved(title, name, rows):
    series = {}

    def add(curve, x, y):
        series.setdefault(curve, []).append((x, y))

    for row in rows:
        first, last = row["case"].split("/")[1:]
        if name == "figure4.4":
            add(f"cache-buckets, {_threads(last)}", int(first), row["ours"])
            add(f"baseline, {_threads(last)}", int(first), row["peer"])
        else:
            add(f"{first} bytes", int(last.removesuffix("k")), row["ratio"])
            if name == "figure4.7":
                add(f"{first} bytes, equation 3.4", int(last.removesuffix("k")), row["model"])
    x_name = "bytes of a bucket" if name == "figure4.4" else "thousand buckets"
    return plot.curves(title, "", x_name, series, y_name="cycles of an update" if name == "figure4.4" else "times the baseline's", logarithmic="x" if name == "figure4.5" else "")


def _scattered(title, points):
    """Of the first case: a dot for each table, and the lines through them."""
    case, engines = next(iter(points.items()))
    series = {}
    for engine, label in ((OURS, "cache-buckets"), (PEER, "baseline")):
        base, slope, _ = regress(engines[engine])
        series[label] = engines[engine]
        series[f"{label}: {base:.0f} + {slope:.0f} a miss"] = [(x, base + slope * x) for x in (f(x for x, _ in engines[engine]) for f in (min, max))]
    return plot.curves(title, f"{case}; a dot for each table", "misses of an update, simulated", series, dots=("cache-buckets", "baseline"), y_name="cycles of an update")


def summarise(rows):
    of = {name: [row for row in rows if row["case"].startswith(name + "/")] for name in PARTS}
    summary = {}
    if of["figure4.3"]:
        summary["base_cost_more_cycles"] = median([row["more"] for row in of["figure4.3"]])
    if of["figure4.8"]:
        for key, column in (("throughput", "ratio"), ("throughput_direct", "direct_ratio")):
            ratios = [row[column] for row in of["figure4.8"]]
            summary |= {f"{key}_ratio_most": max(ratios), f"{key}_ratio_least": min(ratios)}
    if of["figure4.6"]:
        ranges = {"thesis_baseline_misses": THESIS_MISSES, "simulated_baseline_misses": [row["peer"] for row in of["figure4.6"]],
                  "thesis_misses_saved_percent": THESIS_SAVED_PERCENT, "simulated_misses_saved_percent": [100 * (1 - row["ratio"]) for row in of["figure4.6"]]}
        summary |= {f"{key}_{end}": of_range(values) for key, values in ranges.items() for end, of_range in (("least", min), ("most", max))}
    if of["figure4.9"]:
        summary |= {"misses_ratio_least": min(row["ratio"] for row in of["figure4.9"])}
    if of["figure4.7"]:
        summary["figure4.7_misses_over_model"] = geometric_mean([row["ratio"] / row["model"] for row in of["figure4.7"]])
    return summary
