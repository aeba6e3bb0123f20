"""All benchmarks, one after the other, and one report of them: report.html, report.md and report.json.

What cannot be measured on this machine is in the report with its reason, and does not stop the others. The report is written anew before each benchmark, so that whatever
ends the run leaves one of what there is.
"""
import datetime
import time
import traceback

import claims
import kept
import overview
import papers
from lockstep import Failure

# Seconds that each takes, in full and with --quick: what the time left is reckoned from until one was measured here. Two cores, a disk of some 100,000 reads a second, what --keep can have is there.
SECONDS = {
    "batch": (1350, 90), "batch-stored": (220, 20), "breakdown": (2000, 90), "delegation": (150, 20), "demo": (180, 65), "device": (430, 35), "encrypt": (170, 15), "fibers": (130, 20), "graph": (5200, 120), "hitrate": (200, 5),
    "indirect": (250, 40), "instructions": (25, 25), "kernels": (590, 60), "kv": (950, 65), "kv-index": (520, 10), "kv-restart": (260, 6), "micro": (820, 45), "pagecache": (770, 95),
    "persist": (1050, 40), "persist-programs": (160, 20), "programs": (1000, 130), "random": (420, 80), "rocksdb": (700, 420), "selfdriving": (600, 150), "server": (220, 15),
    "sort": (900, 25), "speedtest1": (230, 175), "switch": (80, 12), "tasks": (75, 15), "ycsb": (1150, 110),
}


def _long(seconds):
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Everything:
    """names: of the benchmarks, in order. measure(name, made_by): measures one, and leaves NAME.json, with made_by, NAME.md and NAME.svg in `out`; raises Failure if it cannot be
    done. explain(name): what it is, as Markdown."""

    def __init__(self, context, names, out, measure, explain, resume):
        self.context, self.names, self.out, self.measure, self.explain, self.resume = context, names, out, measure, explain, resume
        self.made_by = kept.made_by(context)
        self.failed = {}

    def result(self, name):
        """What is there of the same build and options, of this run or another one that measured all of it, or None."""
        return kept.of_same(self.out / f"{name}.json", self.made_by)

    def expected(self, name):
        return SECONDS[name][1 if self.context.quick else 0]

    def run(self):
        """Returns the exit status: 1 if something was not measured."""
        left = [name for name in self.names if not (self.resume and self.result(name))]
        if len(left) < len(self.names):
            self.context.say(f"{len(self.names) - len(left)} of {len(self.names)} benchmarks are kept of the last run")
        began, expected = time.monotonic(), 0.0
        for number, name in enumerate(left):
            self.write()
            # As much faster or slower than expected as those before it were.
            scale = (time.monotonic() - began) / expected if expected else 1.0
            to_come = sum(self.expected(other) for other in left[number:])
            self.context.say(f"[{number + 1} of {len(left)}] {name}, some {_long(scale * self.expected(name))}; all of them {_long(scale * to_come)}")
            self.one(name)
            expected += self.expected(name)
        self.write()
        print(f"all: written to {self.out / 'report'}.html, .md, .json", flush=True)
        return 1 if self.failed else 0

    def one(self, name):
        for suffix in (".json", ".md", ".svg"):
            (self.out / (name + suffix)).unlink(missing_ok=True)  # of another build or other options
        try:
            self.measure(name, self.made_by)
        except Failure as failure:
            if failure.status > 128:  # a signal: nobody wants the others
                raise
            self.failed[name] = str(failure)
        except Exception as error:  # a defect of one benchmark must not cost the night of the others
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.failed[name] = f"{type(error).__name__} in {where.filename.rsplit('/', 1)[-1]}, line {where.lineno}: {error}"
        if name in self.failed:
            self.context.say(f"{name}: not measured: {self.failed[name]}")

    def write(self):
        results = {name: result for name in self.names if (result := self.result(name))}
        overview.write(self.out, {"made_by": self.made_by, "written": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}, self.names, results, self.failed, claims.load(), papers.load(), self.explain)
