"""Instructions that translation takes, of the loops of `kernels`: counted by valgrind, so equal on every machine."""
import shutil
import subprocess

from counting import counted
from kernels import SOURCES
from lockstep import Failure, geometric_mean
from variants import variants

DOC = """\
Instructions of the loops of `kernels`, all data resident, compiled by spillcc (ours) over the same loops natively (peer).
`per_access`: what ours has more, for each place in an array that a loop loads from or stores to, as its source says.
Counted by valgrind's callgrind over small arrays; the runtime is replaced by a table in which everything is resident, since the addresses of
spilled memory are beyond valgrind's. `bodies`: of each function ours has one, the instrumented one.
"""
FLAGS = ["-std=c++20", "-pthread", "-O2"]
RUNS = (1, 3)
RUN_SECONDS = 120


def _count(context, program, kernel):
    """(instructions of one run, its accesses, what it computed)."""
    log, counts = context.folder / "valgrind", []
    for runs in RUNS:
        words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={log}", program, kernel, "heap", "tiny", 1]
        ended = subprocess.run([str(word) for word in words], input="run\n" * runs + "check\n", capture_output=True, text=True, timeout=RUN_SECONDS)
        if ended.returncode != 0:
            raise Failure(f"{kernel} ended with status {ended.returncode} under valgrind: {ended.stderr.strip()[-200:]}")
        lines = ended.stdout.splitlines()
        counts.append(counted(log))
    results = [line.split()[1] for line in lines[1:-1]] + [lines[-1]]
    return (counts[1] - counts[0]) / (RUNS[1] - RUNS[0]), int(lines[0].split()[2]), results


def run(context):
    if not shutil.which("valgrind"):
        raise Failure("valgrind is not there; install it", 2)
    folder = context.folder
    kernels, main, heap, flat = (SOURCES / file for file in ("kernels.cc", "main.cc", "pages_heap.cc", "flat.cc"))
    context.build("kernels natively", [context.native_cxx, *FLAGS, kernels, main, heap, "-o", folder / "native"])
    # Of two bodies the instrumented one is no other than that of one.
    own = variants(context)["ours"]
    context.build("kernels by spillc++", [context.spillcxx, *FLAGS, *own, "-c", kernels, "-o", folder / "ours.o"])
    context.build("kernels by spillc++", [context.native_cxx, *FLAGS, main, flat, folder / "ours.o", "-o", folder / "ours"])
    # memcpy is the runtime's, of which there is nothing here.
    names = [name for name in context.output([folder / "native", "list"]).split() if not name.startswith("memcpy")]
    names = context.cases.chosen(names)
    rows = []
    for number, name in enumerate(names):
        context.progress(f"instructions {number + 1}/{len(names)}: {name}")
        (ours, accesses, our_results), (native, _, results) = (_count(context, folder / side, name) for side in ("ours", "native"))
        if our_results != results:
            raise Failure(f"{name}: results differ: {our_results}, {results}")
        rows.append({"case": name, "ours": ours, "peer": native, "ratio": ours / native, "spread": 0.0, "unit": "instructions", "bodies": 1,
                     "per_access": (ours - native) / accesses, "accesses": accesses})
        context.say(f"{name:20} ratio {rows[-1]['ratio']:.2f}, {rows[-1]['per_access']:.2f} more for each access")
    each = [row["per_access"] for row in rows]
    result = {
        "parameters": {"flags": " ".join(FLAGS), "runs": RUNS, "quick": context.quick},
        "rows": rows,
        "summary": {"geomean_ratio": geometric_mean([row["ratio"] for row in rows]), "mean_per_access": sum(each) / len(each), "most_per_access": max(each)},
    }
    bars = {"title": "instructions of the kernels", "subtitle": "ratio to native code, less is better", "cases": [row["case"] for row in rows],
            "series": {"spillcc": [row["ratio"] for row in rows]}}
    return result, bars
