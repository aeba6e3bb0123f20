"""`persist` on the modelled device: the paper's experiments. Everything here is the model's time, not a device's. (Ribbon, section 3)"""
import collections
import json

import plot
from lockstep import Programs, median, row_of, take_turns

STRUCTURES, THREADS = ("hash", "tree", "log", "swap", "store"), (4, 24)
COALESCED = "coalesced"
PAPER_GAIN = {4: (9.3, 17.6), 24: (20.2, 49.8)}  # per cent, mean and most, of all three techniques but the coalescing
PAPER_COALESCED_GAIN = {"": 22, "_least": 18, "_most": 33}
UNIT = "M/s, modelled"
PEER, WAYS = "inline", ("decoupled", "proactive", "auto")
RUN_SECONDS = 120
# A second of the wall is so much less of the device's; trials of auto are as many fences whatever the time, so that it has a faster one.
DILATION, AUTO_DILATION = 4000, 2000
# Of the Governor: seconds of the wall for a sample, longer where it is looked at itself; as many as 3 s have of the 250 ms that it takes otherwise.
SAMPLE_SECONDS, LOOKED_AT_SAMPLE_SECONDS = 0.1, 0.2
SAMPLES_MOST, SAMPLES_AFTER = 12, 24
COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32)
MOST = 32
# Of threads that flush where they stand. (Ribbon, figure 1)
THREAD_COUNTS = (1, 2, 4, 8, 12, 16, 24, 32)
# By what part each writer beyond some makes the media slower, besides the model's own, which is chosen (crowd_factor, src/persist/model/device_model.h).
CROWD_FACTORS, CROWD_THREADS = ("0", "0.03", "0.09"), 24
# What the threads do, and what they do afterwards.
SHIFTS = (("log", "hash", 24), ("tree", "log", 24), ("log", "tree", 4))


class Model:
    def __init__(self, context, program):
        quick = context.quick
        self.context, self.program = context, program
        self.pairs = context.pairs or (1 if quick else 3)
        self.case_seconds = 40
        self.quick = quick
        self.window = 0.4 if quick else 0.8
        self.settle = {"inline": 0.2, "decoupled": 1.2 if quick else 2.4, "proactive": 0.5, "auto": 14}  # a trial of all threads together, and each one's own
        self.cases, structures = {}, ("log", "store") if quick else STRUCTURES
        for threads in THREADS:
            for structure in structures:
                for way in WAYS[:1] if quick else WAYS:
                    self.cases[f"model/{structure}/{threads}/{way}"] = (structure, threads, way)
            for way in (PEER, "decoupled"):
                self.cases[f"model/{COALESCED}/{threads}/{way}"] = (COALESCED, threads, way)
        self.crowd_cases = {f"crowd/{structure}/{CROWD_THREADS}/{factor}": (structure, factor)
                            for structure in (structures[:1] if quick else structures) for factor in (CROWD_FACTORS[1:2] if quick else CROWD_FACTORS)}
        self.governor_cases = {f"governor/{first}-{then}/{threads}": (first, then, threads) for first, then, threads in (SHIFTS[:1] if quick else SHIFTS)}
        self.counts = COUNTS[2::4] if quick else COUNTS
        self.thread_counts = THREAD_COUNTS[::3] if quick else THREAD_COUNTS
        self.thread_cases = {f"threads/{structure}": structure for structure in (structures[:1] if quick else structures)}
        shifts = [(structure, threads) for first, then, threads in self.governor_cases.values() for structure in (first, then)]
        self.flusher_cases = {f"flushers/{structure}/{threads}": (structure, threads) for structure, threads in shifts}
        self.window_of_count = 0.3 if quick else 0.6
        self.after = 8 if quick else SAMPLES_AFTER
        self.governor_runs = 1 if quick else 3
        self.curves = {}

    def ask(self, words, questions):
        """The last answer to each question of a program that is started for them."""
        with Programs() as programs:
            started = programs.start([self.program, *(f"{name}={value}" for name, value in words.items())])
            answers = [json.loads(started.ask(question + "\n", RUN_SECONDS)) for question in questions]
            started.finish()
        return answers

    def rate(self, structure, threads, way, dilation, more=None, settle=None, window=None):
        """Million operations in a second of the device, and what else there is to say."""
        words = {"structure": structure, "threads": threads, "way": way, "dilation": dilation, "most": MOST, "period": SAMPLE_SECONDS, **(more or {})}
        answer = self.ask(words, [f"run {settle or self.settle[way]}", f"run {window or self.window}"])[-1]
        return answer["operations"] / answer["device_seconds"] / 1e6, answer

    def measure(self, case):
        """Ours is a way; the peer is the program as it is, without a runtime between: it flushes where it stands. Of `coalesced` it is the program whose keys and values lie apart,
        which flushes in the same way."""
        structure, threads, way = self.cases[case]
        return self.gain(case, {"ours": (structure, way), "peer": ("store", way) if structure == COALESCED else (structure, PEER)}, threads, way)

    def by_crowd(self, case):
        """The same of `decoupled`, on a device that becomes slower with its writers by another factor."""
        structure, factor = self.crowd_cases[case]
        return self.gain(case, {"ours": (structure, "decoupled"), "peer": (structure, PEER)}, CROWD_THREADS, "decoupled", {"crowd": factor})

    def gain(self, case, sides, threads, way, more=None):
        """A row of two sides, each a structure and a way."""
        dilation = AUTO_DILATION if way == "auto" else DILATION
        told = {}

        def turn(side):
            self.context.progress(f"persist: {case}, {side}")
            # Both are as old when they are measured: a table that has got fuller has other operations.
            rate, told[side] = self.rate(sides[side][0], threads, sides[side][1], dilation, more, settle=self.settle[way])
            return rate

        rates = take_turns(sides, turn, self.pairs, self.case_seconds)
        row = row_of(case, rates["ours"], rates["peer"], UNIT)
        row |= {"gain_percent": 100 * (row["ratio"] - 1), "flushers": told["ours"]["flushers"], "dirtiness": told["ours"]["dirtiness"], "peer_dirtiness": told["peer"]["dirtiness"]}
        if way == "auto":
            row["ways"] = " ".join(f"{name}:{count}" for name, count in sorted(told["ours"]["ways"].items()))
        self.context.say(f"{case:28} {row['ours']:7.3f} M/s, modelled; the program's own {row['peer']:7.3f}: {row['gain_percent']:+.1f} %")
        return row

    def by_threads(self, case):
        """A row for each number of threads, which all flush where they stand; the peer is one of them."""
        self.context.progress(f"persist: {case}")
        structure = self.thread_cases[case]
        rates = take_turns(self.thread_counts, lambda count: self.rate(structure, count, PEER, DILATION)[0], self.pairs, self.case_seconds)
        rows = [row_of(f"{case}/{count}", own, rates[1], UNIT) for count, own in rates.items()]
        self.context.say(f"{case:28} " + ", ".join(f"{row['case'].rpartition('/')[2]}: {row['ratio']:.2f}" for row in rows) + " times one thread's, modelled")
        return rows

    def by_flushers(self, case):
        """A row for each number of flushers by itself; the peer is the best of them."""
        curve = self.curve(*self.flusher_cases[case])
        best = max(curve.values())
        return [{"case": f"{case}/{count}", "ours": rate, "peer": best, "ratio": rate / best, "spread": 0.0, "unit": UNIT} for count, rate in curve.items()]

    def curve(self, structure, threads):
        """{flushers: million operations}, each number of them by itself."""
        if (structure, threads) not in self.curves:
            name, kept = f"curve/{structure}/{threads}", self.context.kept
            if name not in kept:
                points = []
                for count in self.counts:
                    self.context.progress(f"persist: {structure}/{threads} with {count} flushers")
                    rate, _ = self.rate(structure, threads, "decoupled", DILATION, {"least": count, "most": count, "period": 0}, 0.3, self.window_of_count)
                    points.append((count, rate))
                kept[name] = points
            self.curves[structure, threads] = dict(kept[name])
        return self.curves[structure, threads]

    def governor(self, case):
        """Two rows: where the Governor comes to at first, and after the load is another."""
        first, then, threads = self.governor_cases[case]
        curves = {"first": self.curve(first, threads), "shift": self.curve(then, threads)}
        if case not in self.context.kept:
            self.context.kept[case] = self.governor_rows(case, curves)
        return self.context.kept[case]

    def governor_rows(self, case, curves):
        first, then, threads = self.governor_cases[case]
        reached, settled = {part: [] for part in curves}, {part: [] for part in curves}
        words = {"structure": first, "threads": threads, "way": "decoupled", "dilation": DILATION, "most": MOST, "period": LOOKED_AT_SAMPLE_SECONDS}
        samples = [f"run {LOOKED_AT_SAMPLE_SECONDS}"] * (SAMPLES_MOST + self.after)

        def run(_):
            self.context.progress(f"persist: {case}")
            return self.ask(words, [*samples, f"shift {then}", *samples])

        for answers in take_turns(["ours"], run, self.governor_runs, self.case_seconds)["ours"]:
            for part, begin in (("first", 0), ("shift", len(samples) + 1)):
                after = answers[begin + SAMPLES_MOST:begin + len(samples)]
                counts = collections.Counter(answer["flushers"] for answer in after)
                settled[part].append(counts.most_common(1)[0][0])
                reached[part].append(median([answer["operations"] / answer["device_seconds"] / 1e6 for answer in after]))
        rows = []
        for part, curve in curves.items():
            best = max(curve.values())
            rows.append(row_of(f"{case}/{part}", reached[part], [best] * len(reached[part]), UNIT, flushers=median(settled[part]), best_flushers=max(curve, key=curve.get),
                               flushers_of_runs=" ".join(map(str, settled[part])), by_curve=median([_at(curve, count) / best for count in settled[part]])))
            self.context.say(f"{rows[-1]['case']:28} {rows[-1]['flushers']:g} flushers, the best are {rows[-1]['best_flushers']}; the rate is {rows[-1]['ratio']:.3f} of theirs, "
                             f"by the curve {rows[-1]['by_curve']:.3f}")
        return rows

    def pictures(self, rows):
        shown = [case for case in self.cases if any(row["case"] == case for row in rows)]
        by_name = {row["case"]: row for row in rows}
        pictures = []
        if shown:
            pictures.append(plot.bars("persist: throughput on the modelled device", "over the program's own, modelled, more is better",
                                      [case.removeprefix("model/") for case in shown], {"runtime": [by_name[case]["ratio"] for case in shown]}))
        by_threads = {}
        for row in rows:
            kind, *words = row["case"].split("/")
            if kind == "threads":
                by_threads.setdefault(words[0], []).append((int(words[1]), row["ours"]))
        if by_threads:
            pictures.append(plot.curves("persist: threads that flush where they stand, on the modelled device", "", "threads", by_threads, y_name="million operations a second of the device, modelled"))
        if self.curves:
            pictures.append(plot.curves("persist: flushers on the modelled device", "", "flushers",
                                        {f"{structure}, {threads} threads": list(curve.items()) for (structure, threads), curve in self.curves.items()},
                                        y_name="million operations a second of the device, modelled"))
        return pictures


def _at(curve, count):
    """Between the numbers of flushers that were measured, on the line through them."""
    below, above = max(n for n in curve if n <= max(count, min(curve))), min(n for n in curve if n >= min(count, max(curve)))
    if below == above:
        return curve[below]
    return curve[below] + (curve[above] - curve[below]) * (count - below) / (above - below)


def summarise(rows):
    summary = {}
    for threads in THREADS:
        for way in WAYS:
            gains = [row["gain_percent"] for row in rows if row["case"].startswith("model/") and row["case"].endswith(f"/{threads}/{way}")
                     and f"/{COALESCED}/" not in row["case"]]
            if gains:
                summary[f"modelled_{way}_gain_percent_{threads}"] = sum(gains) / len(gains)
                summary[f"modelled_{way}_gain_percent_{threads}_least"] = min(gains)
                summary[f"modelled_{way}_gain_percent_{threads}_most"] = max(gains)
        if any(key.endswith(f"_{threads}") for key in summary):
            summary[f"paper_gain_percent_{threads}"], summary[f"paper_gain_percent_{threads}_most"] = PAPER_GAIN[threads]
        for factor in CROWD_FACTORS:
            gains = [row["gain_percent"] for row in rows if row["case"].startswith("crowd/") and row["case"].endswith(f"/{threads}/{factor}")]
            if gains:
                summary[f"modelled_decoupled_gain_percent_{threads}_crowd_{factor}"] = sum(gains) / len(gains)
        for way in (PEER, "decoupled"):
            for row in rows:
                if row["case"] == f"model/{COALESCED}/{threads}/{way}":
                    summary[f"modelled_{COALESCED}_{way}_gain_percent_{threads}"] = row["gain_percent"]
    if any(COALESCED in key for key in summary):
        summary |= {f"paper_coalesced_gain_percent{end}": gain for end, gain in PAPER_COALESCED_GAIN.items()}
    for part in ("first", "shift"):
        reached = [row for row in rows if row["case"].startswith("governor/") and row["case"].endswith("/" + part)]
        if reached:
            summary[f"modelled_governor_{part}_over_best_least"] = min(row["ratio"] for row in reached)
            summary[f"modelled_governor_{part}_by_curve_least"] = min(row["by_curve"] for row in reached)
    return summary
