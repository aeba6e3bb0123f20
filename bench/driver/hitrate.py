"""Eviction policies of the set-associative cache by how often they hit, beside fully associative ones and the best possible."""
import gzip
import json
import lzma
import shutil
import statistics
import subprocess
import zlib

import plot
from lockstep import Failure

DOC = """\
Percent of the accesses of a trace that hit, with room for so many pages. Ours is the policy alfu in sets of 16 ways, the peer what
no policy can do better than (opt: Belady's). NAME/WAYS is a policy of sets, the others are fully associative. The figures depend on
the trace, the size and the policy only, not on the machine. `sizes`: zipfleaf by some policies at several sizes.
"""
OURS, PEER = "alfu/16", "opt"
# What a policy loses by sets of 16 ways, where there are a hundred sets: with a few it is luck which pages share one.
BOTH_WAYS = ["lru", "s3fifo"]
LOSS_PAGES_MIN = 1600
PLOTTED = ["lru", "2q", "s3fifo", "s3fifo/16", "nrlfu/16", "alfu/16"]
# Pages; of zipf as many as a 40th and an 11th of the pages that the trace has.
GENERATED = {"zipfleaf": [38589], "zipf": [9928, 36138], "zipfscan": [46723], "zipfshift": [24358], "loop": [202]}
# How they hit by the cache's size, of one of them. (set-associative page cache, figure 6)
BY_SIZE, SIZES_TRACE, SIZES = "sizes", "zipfleaf", [9647, 19294, 38589, 77178]
SIZES_POLICIES = ["lru/8", "lfu/8", "nrlfu/8", OURS, "linux", "lru", "clock", "2q", PEER]
QUICK_DIVISOR = 20
MOST_ACCESSES, QUICK_MOST_ACCESSES = 5_000_000, 200_000
# Of the different pages of a trace from a file. These ones are small, or a loop.
SHARE, LARGE_SHARE = "5%", "20%"
LARGE = {"cloudPhysicsIO", "multi3", "2_pools", "loop"}
FORMATS = {".lis": "arc", ".lirs": "lirs", ".csv": "csv", ".spc": "spc", ".oracleGeneral": "oracle", ".u32": "u32", ".u64": "u64"}
# As ben-manes/caffeine publishes them: binary, which their names do not say.
BINARY = {"orm-busy": "u32", "web12": "u32", "w106": "u32", "scarab-recs": "u64"}
UNPACK = {".gz": lambda path: gzip.open(path), ".xz": lambda path: lzma.open(path)}
TEXT_BYTES = 4096


class Case:
    """A trace and sizes of the cache: one that the program generates by this name, or that a file holds. policies: those that are looked at, else all."""

    def __init__(self, name, generated, sizes, path=None, policies=()):
        self.name, self.generated, self.sizes, self.path, self.policies = name, generated, sizes, path, policies


def generated(context):
    for name, sizes in GENERATED.items():
        if context.quick and name != "loop":
            yield Case(name, f"{name}/{QUICK_DIVISOR}", [str(size // QUICK_DIVISOR) for size in sizes])
        else:
            yield Case(name, name, [str(size) for size in sizes])
    divisor = QUICK_DIVISOR if context.quick else 1
    yield Case(BY_SIZE, f"{SIZES_TRACE}/{divisor}", [str(size // divisor) for size in SIZES], policies=SIZES_POLICIES)


def from_folder(folder):
    """One for each file. One that is also generated is that of the folder."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("README"))
    except OSError as error:
        raise Failure(f"cannot read {folder}: {error.strerror}; give a folder of traces with --traces", 2) from None
    names = [path.name.partition(".")[0] for path in paths]
    for name, path in zip(names, paths):
        yield Case(name if names.count(name) == 1 else path.name, None, [LARGE_SHARE if name in LARGE else SHARE], path)


def unpacked(path, folder):
    """The file, or what it holds when it is packed."""
    if path.suffix not in [*UNPACK, ".zst"]:
        return path
    to = folder / path.stem
    try:
        with open(to, "wb") as out:
            if path.suffix == ".zst":
                subprocess.run(["zstd", "-dcq", str(path)], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, check=True)
            else:
                with UNPACK[path.suffix](path) as packed:
                    shutil.copyfileobj(packed, out)
    except FileNotFoundError:
        raise Failure("zstd is not there; install it", 2) from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error, subprocess.CalledProcessError) as error:
        raise Failure(f"{path} cannot be unpacked: {getattr(error, 'stderr', b'').decode(errors='replace').strip() or error}", 2) from None
    return to


def format_of(path):
    """By the name; .trace and .txt are text, a number in a line, or known. None: nothing says."""
    if path.suffix in FORMATS:
        return FORMATS[path.suffix]
    if ".oracleGeneral" in path.suffixes:
        return "oracle"
    if path.suffix not in (".trace", ".txt"):
        return None
    try:
        with open(path, "rb") as file:
            begin = file.read(TEXT_BYTES)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", 2) from None
    return "lirs" if all(byte in b"\r\n\t *" or 0x30 <= byte <= 0x39 for byte in begin) else BINARY.get(path.stem)


def replay(context, case, trace):
    """{size: {policy: percent}}, and the accesses and pages of the trace."""
    program = context.spillway.parent.parent / "libexec/spillway/hitrate"
    if not program.exists():
        raise Failure(f"{program} is not there; build or install Spillway completely", 2)
    context.progress(f"hitrate: {case.name}")
    most = QUICK_MOST_ACCESSES if context.quick else MOST_ACCESSES
    done = subprocess.run([str(program), trace, str(most), ",".join(case.sizes), ",".join(case.policies) or "all"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        words = (done.stderr.strip().splitlines() or [f"hitrate: ended with status {done.returncode}"])[-1].removeprefix("hitrate: ")
        if case.path:  # what was unpacked is gone when this is read
            words = words.replace(trace.partition(":")[2], str(case.path))
        raise Failure(words, 2 if done.returncode == 2 else 1)
    answer = json.loads(done.stdout)
    rates = {}
    for result in answer["results"]:
        rates.setdefault(result["size"], {})[result["policy"]] = 100 * result["hits"] / answer["accesses"]
    return rates, answer["accesses"], answer["pages"]


def rows_of(context, case, notes):
    """One for each size."""
    if case.generated:
        rates, accesses, pages = replay(context, case, case.generated)
    else:
        file = unpacked(case.path, context.folder)
        form = format_of(file)
        if form is None:
            notes.append(f"{case.path.name} is left out: nothing says what format it has; name it {', '.join(FORMATS)}")
            return
        rates, accesses, pages = replay(context, case, f"{form}:{file}")
        if file != case.path:
            file.unlink()
    for size, of_size in rates.items():
        ours, peer = of_size[OURS], of_size[PEER]
        yield {"case": f"{case.name}/{size}", "ours": ours, "peer": peer, "ratio": ours / peer if peer else 1.0, "spread": 0.0,
               "unit": "%", "size": size, "accesses": accesses, "pages": pages, "rates": of_size}


def summarise(rows):
    """Means over the cases, the better policy first; what sets cost at their worst; and two that the paper compares."""
    rates = [row["rates"] for row in rows]
    means = {policy: statistics.fmean(of_case[policy] for of_case in rates) for policy in rates[0]}
    summary = {f"mean_{policy}": round(means[policy], 2) for policy in sorted(means, key=means.get, reverse=True)}
    large = [row["rates"] for row in rows if row["size"] >= LOSS_PAGES_MIN]
    for policy in BOTH_WAYS if large else []:
        summary[f"worst_loss_16_{policy}"] = round(max(of_case[policy] - of_case[f"{policy}/16"] for of_case in large), 2)
    for row in rows:
        if row["case"].startswith("zipfleaf/"):
            summary |= {f"zipfleaf_{policy}": round(row["rates"][policy], 2) for policy in ("nrlfu/8", "lru/8")}
    return summary


def by_size(rows):
    """A picture of the rows of that case."""
    series = {policy: [(row["size"], row[policy]) for row in rows] for policy in SIZES_POLICIES}
    return plot.curves("hitrate: by the size of the cache", f"{SIZES_TRACE}; NAME/WAYS is of sets, {PEER} the best possible", "pages in the cache", series, y_name="percent of the accesses that hit",
                       logarithmic="x")


def run(context):
    cases = {case.name: case for case in generated(context)}
    if context.traces:
        cases |= {case.name: case for case in from_folder(context.traces)}
    wanted = [cases[name] for name in context.cases.chosen(cases)]
    notes, rows = [], []
    for case in wanted:
        for row in rows_of(context, case, notes):
            rows.append(row)
            context.say(f"{row['case']:24} {OURS} {row['ours']:5.1f}  lru {row['rates']['lru']:5.1f}  {PEER} {row['peer']:5.1f}")
    if not rows:
        raise Failure(f"hitrate: {notes[0]}", 2)
    of_sizes = [row for row in rows if row["case"].startswith(BY_SIZE + "/")]
    compared = [row for row in rows if row not in of_sizes]
    summary = summarise(compared) if compared else {}
    shares = {policy: [row["rates"][policy] / row["peer"] if row["peer"] else None for row in compared] for policy in PLOTTED}
    for row in rows:
        row.update({policy: round(rate, 2) for policy, rate in row.pop("rates").items()})
    result = {
        "parameters": {"most_accesses": QUICK_MOST_ACCESSES if context.quick else MOST_ACCESSES, "quick": context.quick,
                       "traces": str(context.traces or "generated")},
        "rows": rows, "summary": summary, "notes": notes,
    }
    bars = {"title": "hitrate: accesses that hit", "subtitle": "of those that hit with the best possible policy, more is better",
            "cases": [row["case"] for row in compared], "series": shares}
    if of_sizes:
        bars["more"] = [by_size(of_sizes)]
    return result, bars
