"""Programs that do the same work again each time they are asked, and how they are asked.

  program.read(seconds)                     it is there, and has allocated nothing
  data_bytes = workload.begin(ask)          its data, where that stays
  turn = workload.turn(ask)                 the work once: seconds, CPU seconds, and what was found, which is the same in all programs that do it

`ask` takes a line and returns the answer, or None from where the program is no longer there; a turn is None then, too.
"""
import pathlib

from lockstep import Failure

BENCH = pathlib.Path(__file__).resolve().parent.parent


class Turn:
    def __init__(self, seconds, cpu_seconds, found):
        self.seconds, self.cpu_seconds, self.found = float(seconds), float(cpu_seconds), found


class Loaded:
    """Data is loaded once: of `graph` and `selfdriving`."""
    BEFORE, WORK = (), "run\n"  # what is asked before the work of a turn, and for it

    def begin(self, ask):
        line = ask("load\n")
        return None if line is None else int(line.split()[1])

    def turn(self, ask):
        line = ask("run\n")
        return None if line is None else Turn(*line.split())


class Graph(Loaded):
    """A kernel over a graph that is in a file."""
    sources, flags = [BENCH / "graph" / name for name in ("generate.cc", "kernels.cc", "main.cc")], ["-O2", "-std=c++20", "-fopenmp"]

    def __init__(self, path, kernel):
        self.path, self.kernel = path, kernel

    def words(self, threads):
        return ["heap", self.path, self.kernel, threads]


def make_graph(context, program, kind, order, scale, path):
    context.progress(f"making a graph: {kind} 2^{scale}")
    context.output([program, "make", kind, order, scale, path])


class Sort:
    """A sort of records of 100 bytes, which are new each time."""
    # libstdc++'s parallel mode uses what its C++17 has deprecated.
    sources, flags = [BENCH / "sort" / "sort.cc"], ["-O2", "-std=c++20", "-fopenmp", "-Wno-deprecated-declarations"]
    RECORD_BYTES = 100
    BEFORE, WORK = ("fill\n",), "sort\n"

    def __init__(self, way, records):
        self.way, self.records = way, records

    @property
    def records_bytes(self):
        return self.RECORD_BYTES * self.records

    @property
    def data_bytes(self):
        """Of all that it uses."""
        return self.records_bytes * (1 if self.way == "std" else 2)

    def words(self, threads):
        return [self.way, self.records, threads]

    def begin(self, ask):
        return self.data_bytes

    def turn(self, ask):
        if ask("fill\n") is None or (line := ask("sort\n")) is None or (checked := ask("check\n")) is None:
            return None
        order, found = checked.split()
        if order != "right":
            raise Failure(f"sort {self.way} has not sorted its records")
        return Turn(*line.split(), found)


class Pattern(Loaded):
    """Memory used in one way (bench/selfdriving/selfdriving.cc)."""
    sources, flags = [BENCH / "selfdriving" / "selfdriving.cc"], ["-O2", "-std=c++20"]

    def __init__(self, way, mib):
        self.way, self.mib = way, mib

    def words(self, threads):
        return [self.way, self.mib]
