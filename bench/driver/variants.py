"""How spillcc compiles what is measured: with one body of each function and, where it can, with two as well.

  for side, flags in variants(context).items(): ...      "ours" is first, its body is the instrumented one
  row.update(more_ratios(times, "native"))               columns of the others beside a row of "ours"
"""
import subprocess

from lockstep import median, spread

BODIES = "-fspill-bodies={}"
SATC = "-fspill-translation=satc"


def variants(context):
    """{side: flags of spillcc}. `two_bodies` is there where the compiler has the option."""
    asked = [context.spillcc, BODIES.format(2), "-x", "c", "-fsyntax-only", "/dev/null"]
    if subprocess.run([str(word) for word in asked], stdin=subprocess.DEVNULL, capture_output=True).returncode != 0:
        return {"ours": []}
    return {"ours": [BODIES.format(1)], "two_bodies": [BODIES.format(2)]}


def more_ratios(measured, peer, over="ours"):
    """Columns for all sides but `over` and `peer`: {side_ratio, side_spread}, of turns in `measured` ({side: numbers}), and which
    body ran in `over`."""
    columns = {"bodies": 1}
    for side, values in measured.items():
        if side not in (over, peer):
            ratios = [value / of_peer for value, of_peer in zip(values, measured[peer])]
            columns[side + "_ratio"], columns[side + "_spread"] = median(ratios), spread(ratios)
    return columns
