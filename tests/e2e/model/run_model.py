#!/usr/bin/env python3
"""Random accesses beside a model (model.c) under each kind of trouble.  run_model.py BIN WORK MODEL.c [KIND...]

SPILLWAY_TEST_SECONDS: for each run (5 for the first kind, 2 for the others); SPILLWAY_TEST_SEEDS: seeds in
chaos mode (3); SPILLWAY_TEST_SEED: the first one (1); SPILLWAY_TEST_FLAGS: for spillcc. Fails when a byte is
wrong, or when less was evicted than shows that pages came and went.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from support import CLEAN, shell_line  # noqa: E402

SECONDS = os.environ.get("SPILLWAY_TEST_SECONDS")
SEEDS = int(os.environ.get("SPILLWAY_TEST_SEEDS", "3"))
FIRST_SEED = int(os.environ.get("SPILLWAY_TEST_SEED", "1"))
MEGABYTES = 64
POLICIES = ("clock", "lru", "2q", "random", "s3fifo", "nrlfu")
THREADS = 4
# A run with less than that proves little: it is repeated, twice as long, up to so many seconds.
EVICTIONS_MIN = 5000
CROSSINGS_MIN = 100
SLOW_SECONDS_MAX = 40


def kinds(work):
    """Kind -> list of (seed, seconds, variables)."""
    frames_256 = {"SPILLWAY_MEMORY": "1060K", "SPILLWAY_STORAGE": str(work)}
    delays = f"fault:seed={FIRST_SEED},read_delay_us=1/20x2000,write_delay_us=1/20x3000,any_delay_polls=1/10x3:[{work}]"
    broken = f"fault:seed={FIRST_SEED},write_short=1/40,write_eio=1/40,write_torn=1/60:[{work}]"
    page_64k = {**frames_256, "SPILLWAY_PAGE": "64K", "SPILLWAY_MEMORY": "16500K"}
    chaos = []
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        page = ("4K", "16K", "8K")[seed % 3]
        chaos.append((seed, 2, {**frames_256, "SPILLWAY_CHAOS": str(seed), "SPILLWAY_PAGE": page}))
    policies = []
    for number, policy in enumerate(POLICIES):
        chosen = {**frames_256, "SPILLWAY_POLICY": policy}
        policies.append((FIRST_SEED, 2, chosen))
        policies.append((FIRST_SEED, 2, {**chosen, "SPILLWAY_CHAOS": str(FIRST_SEED + number)}))
    return {
        "plain": [(FIRST_SEED, 5, frames_256)],
        "chaos": chaos,
        "delays": [(FIRST_SEED, 2, {**frames_256, "SPILLWAY_STORAGE": delays})],
        "broken": [(FIRST_SEED, 2, {**frames_256, "SPILLWAY_STORAGE": broken})],
        "pages": [(FIRST_SEED, 2, page_64k)],
        "policies": policies,
    }


def run(binary, work, kind, seed, seconds, variables):
    arguments = [str(seed), str(seconds), str(THREADS), str(MEGABYTES)]
    stats = work / f"stats-{kind}.json"
    stats.unlink(missing_ok=True)
    variables = {**variables, "SPILLWAY_SPILL_ALL": "1", "SPILLWAY_STATS": str(stats)}
    replay = shell_line(variables, [str(binary), *arguments])
    begin = time.monotonic()
    try:
        ended = subprocess.run([binary, *arguments], env={**CLEAN, **variables}, capture_output=True, text=True,
                               timeout=float(arguments[1]) * 3 + 240)
    except subprocess.TimeoutExpired:
        print(f"{kind}: did not end\nreplay: {replay}")
        return False
    if ended.returncode != 0:
        print(f"{kind}: status {ended.returncode}\n{ended.stdout}{ended.stderr}replay: {replay}")
        return False
    statistics = json.loads(stats.read_text())
    cache = statistics["cache"]
    print(f"{kind} seed {seed}: {ended.stdout.strip()}; {cache['misses']} misses, {cache['evictions']} evictions, "
          f"{cache['hazard_rescues']} hazard rescues, {statistics['spill']['crossings']} crossings, "
          f"{time.monotonic() - begin:.0f} s", flush=True)
    problems = []
    if variables.get("SPILLWAY_POLICY", POLICIES[0]) not in ("auto", statistics["chosen"]["policy"]):
        problems.append(f"the policy was {statistics['chosen']['policy']}")
    if cache["evictions"] < EVICTIONS_MIN:
        problems.append("too few evictions")
    if statistics["spill"]["crossings"] < CROSSINGS_MIN:
        problems.append("too few accesses across pages")
    if problems and seconds * 2 <= SLOW_SECONDS_MAX:
        return run(binary, work, kind, seed, seconds * 2, variables)
    if kind == "broken" and (cache["write_failures"] < 10 or not re.search("cannot write to", ended.stderr)):
        problems.append("write failures did not show")
    if kind != "broken" and ended.stderr:
        problems.append("said " + ended.stderr)
    for problem in problems:
        print(f"{kind}: {problem}\nreplay: {replay}")
    return not problems


def main():
    bin_folder, work, source = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    work.mkdir(parents=True, exist_ok=True)
    chosen = sys.argv[4:] or list(kinds(work))
    binary = work / f"model-{chosen[0]}"
    flags = shlex.split(os.environ.get("SPILLWAY_TEST_FLAGS", ""))
    subprocess.run([bin_folder / "spillcc", "-O2", "-mcx16", "-mavx2", "-pthread", "-w", source, "-o", binary, *flags],
                   check=True, env=CLEAN)
    good = True
    for kind in chosen:
        for seed, seconds, variables in kinds(work)[kind]:
            good = run(binary, work, kind, seed, int(SECONDS or seconds), variables) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
