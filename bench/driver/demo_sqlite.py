"""README's first figure: SQLite, unmodified, in memory with several times more data than its budget. What `make demo` shows, as a benchmark."""
import contextlib
import io

import demo
from lockstep import Failure

DOC = """\
Seconds of SQLite (Debian's source package, unmodified) on an in-memory database that is several times its memory: compiled by spillcc, under `spillway run` within a limit that holds the
budget, what the program takes without data and 16 MiB (ours), over the same natively without any limit (peer). Outputs are equal byte for byte. `limited`: what became of the native program
within ours' limit. One turn of each: the three runs of `make demo`.
"""
MIB = 1 << 20


def row_of(shown, budget_bytes):
    """Of what Demo.main() returns."""
    native, spilled, limited = (shown[name] for name in ("native", "spilled", "limited"))
    return {"case": "sqlite", "ours": spilled.seconds, "peer": native.seconds, "ratio": spilled.seconds / native.seconds, "spread": 0.0, "unit": "s",
            "limited": limited.words() if limited else "no limit can be set here", "data_bytes": shown["data_bytes"], "budget_bytes": budget_bytes, "peak_bytes": spilled.peak_bytes,
            "misses": shown["stats"]["cache"]["misses"], "written_bytes": shown["stats"]["storage"]["write_bytes"]}


def run(context):
    context.cases.chosen(["sqlite"])
    budget_bytes, page, rows = (8 * MIB, "4K", 400_000) if context.quick else (128 * MIB, "32K", 5_000_000)
    folder = (context.keep or context.folder) / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # a table of its own
            shown = demo.Demo(context.spillway.parent.parent, budget_bytes, page, rows, folder, context.storage).main()
    except demo.Failure as failure:
        raise Failure(str(failure), failure.status) from None
    row = row_of(shown, budget_bytes)
    context.say(f"sqlite: {row['ours']:.0f} s, {row['ratio']:.1f} times native's without a limit; native within it: {row['limited']}")
    result = {"parameters": {"budget_bytes": budget_bytes, "page": page, "rows": rows, "storage": str(context.storage), "quick": context.quick}, "rows": [row],
              "summary": {"spilled_seconds": row["ours"], "native_seconds": row["peer"], "spilled_ratio": row["ratio"], "data_over_budget": row["data_bytes"] / budget_bytes}}
    bars = {"title": "SQLite with several times its memory", "subtitle": "time over native's without a limit, less is better", "cases": ["sqlite"], "series": {"spillcc, limited": [row["ratio"]]}}
    return result, bars
