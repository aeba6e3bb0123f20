"""What a benchmark leaves in its folder: NAME.json, NAME.md and NAME.svg."""
import functools
import json
import os
import pathlib
import platform

import plot

ROW_KEYS = ["case", "ours", "peer", "ratio", "spread", "unit"]


def _first(path, key):
    try:
        for line in pathlib.Path(path).read_text().splitlines():
            if line.startswith(key):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return ""


def _text(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return ""


def last_level_cache(folder=pathlib.Path("/sys/devices/system/cpu/cpu0/cache")):
    """Its size in the system's words, "" where it does not tell."""
    found = {_text(index / "level"): _text(index / "size") for index in folder.glob("index*")}
    return found.get(max(found, default=""), "")


def load():
    return [round(value, 2) for value in os.getloadavg()]


def machine():
    """Facts that figures depend on. The load says how far to trust them."""
    return {
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "last_level_cache": last_level_cache(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "transparent_huge_pages": _text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "load_before": load(),
    }


def figure(value):
    """A number as tables show it: three digits that count."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def shown(row, key):
    """What tables show of a row. A spread of one pair, or of what is not measured in pairs, would look like none at all."""
    value = row.get(key, "")
    return "–" if key.endswith("spread") and value == 0 and row.get("pairs", 1) == 1 else figure(value)


def table(rows, keys=None):
    """Lines of Markdown. keys: of the columns, else all that a row has, those first that all benchmarks have."""
    if keys is None:
        found = dict.fromkeys(key for row in rows for key in row)
        keys = [key for key in ROW_KEYS if key in found] + [key for key in found if key not in ROW_KEYS]
    lines = ["| " + " | ".join(keys) + " |", "|" + "|".join("---" if key in ("case", "unit") else "--:" for key in keys) + "|"]
    return lines + ["| " + " | ".join(shown(row, key) for key in keys) + " |" for row in rows]


def markdown(result, doc):
    """`parts` of a result, {name: title}: rows whose case has that name, or begins with it and a slash, are a table of their own, below that title."""
    parts = {name: [row for row in result["rows"] if (row["case"] + "/").startswith(name + "/")] for name in result.get("parts", {})}
    others = [row for row in result["rows"] if not any(row in rows for rows in parts.values())]
    lines = [f"# {result['name']}", "", doc.strip(), ""]
    lines += table(others) if others or not parts else []
    for name, rows in parts.items():
        lines += ["", f"## {name}: {result['parts'][name]}", "", *table(rows)] if rows else []
    lines += ["", "| figure | value |", "|---|--:|"]
    lines += [f"| {key} | {figure(value)} |" for key, value in result["summary"].items()]
    lines += [""] + [f"Note: {note}." for note in result.get("notes", [])]
    machine_words = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in result["machine"].items())
    parameter_words = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in result["parameters"].items())
    lines += ["", f"Machine: {machine_words}.", "", f"Parameters: {parameter_words}.", ""]
    return "\n".join(lines)


def write(folder, result, doc, bars):
    """Writes the three files, each complete or not at all. bars: arguments of plot.bars, with `lines`, those of plot.lines, if there
    is anything over time, and `more`, pictures that follow."""
    result["machine"]["load_after"] = load()
    lines, more = bars.pop("lines", None), bars.pop("more", [])
    pictures = [plot.bars(**bars)] if "cases" in bars else []
    pictures += [] if lines is None else [plot.lines(**lines)]
    picture = functools.reduce(plot.above, pictures + more or [plot.bars(result["name"], "none of these cases has a picture", [], {})])
    # The last one says that the others are there.
    write_files(folder, result["name"], {".md": markdown(result, doc), ".svg": picture, ".json": json.dumps(result, indent=2) + "\n"})


def write_files(folder, name, texts):
    """{suffix: text}: each file complete, or as it was."""
    for suffix, text in texts.items():
        path = folder / (name + suffix)
        part = path.with_name(path.name + ".part")
        part.write_text(text)
        part.replace(path)
