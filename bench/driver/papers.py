"""The figures and tables of the papers that Spillway builds on, and which benchmark makes them again: papers/*.toml.

A file is a paper: `title`, `where` it was published, its `order` in the report, and of each figure ([[figure]])

    name    "Figure 9"; if it has several entries "Figure 9, " and what this one is of. "Beside figure 9, " and so on is something else, which says a little of it
    shows   what it plots, and of what machine and data
    found   what the paper reports
    how     "measured", "measured in part" where something of what it shows is not, "simulated", or "not measured"
    note    how what is measured here differs from it, and what is missing; by which model it is simulated, and at which points that was compared with what was measured
    from    [{benchmark, cases, columns, less, summary}]: the rows that show it: patterns of their names, as of a shell, and which columns of them (spreads of ratios, pairs and units need
            not be named); less: patterns of the ratios of which less is better, more is of others; and patterns of figures of the benchmark's summary, if it needs any. Not where it
            is not measured
    plots   [{benchmark, cases, part, x, y, lines, title, logarithmic}]: curves, if it has any. Of these cases part `part` of the name, between slashes, is a number, what `x` says, and its
            column of `lines`, {column: label}, a value, what `y` says; other parts tell lines apart. logarithmic: axes, "x", "y" or "xy". Without it the report draws bars of ratios
"""
import collections
import fnmatch
import pathlib
import re
import tomllib

FOLDER = pathlib.Path(__file__).resolve().parent / "papers"
STATES = ("measured", "measured in part", "simulated", "not measured", "missing")
HOW = STATES[:-1]


def load(folder=FOLDER):
    """All papers, in the order of the report."""
    return sorted((tomllib.loads(path.read_text()) for path in folder.glob("*.toml")), key=lambda paper: paper["order"])


def fits(name, patterns):
    """Whether a name of a case or a figure is meant by one of these patterns."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def columns_of(source):
    """Of one of `from`: those that are named, behind each ratio its spread, the number of pairs, and the unit if one of them has it."""
    named = [name for column in source["columns"] for name in (column, *([column.removesuffix("ratio") + "spread"] if column.endswith("ratio") else []))]
    return dict.fromkeys(["case", *named, "pairs", *(["unit"] if {"ours", "peer"} & set(named) else [])])


def tables_of(source, result):
    """Of one of `from`, [(benchmark, rows, names of ratios of which less is better)]: the rows that a run left, with their columns as far as they have them; and what is named of the summary. Tables without rows are none."""
    columns = columns_of(source)
    rows = [{key: row[key] for key in columns if key in row} for row in result["rows"] if fits(row["case"], source["cases"])]
    figures = [{"figure": key, "value": value} for key, value in result["summary"].items() if fits(key, source.get("summary", []))]
    less = [column for column in source["columns"] if column.endswith("ratio") and fits(column, source.get("less", []))]
    return [(source["benchmark"], table, less) for table in (rows, figures) if table]


def curves_of(drawn, result):
    """Of one of `plots`: {name of a line: [(x, y)]} of the rows that a run left, of lines with two points at least."""
    rows = [(row["case"].split("/"), row) for row in result["rows"] if fits(row["case"], drawn["cases"])]
    names = [parts[:drawn["part"]] + parts[drawn["part"] + 1:] for parts, _ in rows]
    varying = [at for at in range(min(map(len, names), default=0)) if len({name[at] for name in names}) > 1]
    curves = {}
    for (parts, row), name in zip(rows, names):
        for column, label in drawn["lines"].items():
            if isinstance(row.get(column), (int, float)):
                words = [name[at] for at in varying] + ([label] if len(drawn["lines"]) > 1 or not varying else [])
                curves.setdefault(", ".join(words), []).append((float(re.match(r"[\d.]+", parts[drawn["part"]])[0]), row[column]))
    return {name: points for name, points in curves.items() if len(points) > 1}


def why_not(name, results, failed):
    """Why a benchmark left nothing of a figure."""
    if name in failed:
        return f"{name}: {failed[name]}"
    return f"{name} did not measure these cases in this run" if name in results else f"{name} was not run"


def state(figure, results, failed):
    """What there is of a figure in these results: (its state in a word or two, its tables, why something is missing)."""
    if figure["how"] == "not measured":
        return "not measured", [], ""
    tables, reasons = [], []
    for source in figure["from"]:
        name = source["benchmark"]
        found = tables_of(source, results[name]) if name in results else []
        tables += found
        if not found:
            reasons.append(why_not(name, results, failed))
    how = "measured in part" if reasons and figure["how"] == "measured" else figure["how"]
    return (how if tables else "missing"), tables, "; ".join(reasons)


def notes_of(figure, results):
    """What the figure's benchmarks note of its cases ("CASE: text"), those with the same text together, and what they note of no case."""
    noted = {}
    for source in figure.get("from", []):
        result = results.get(source["benchmark"], {})
        cases = {row["case"] for row in result.get("rows", [])}
        for note in map(str, result.get("notes", [])):
            case, _, text = note.partition(": ")
            if case not in cases:
                noted.setdefault(note, {})
            elif fits(case, source["cases"]):
                noted.setdefault(text, {})[case] = None
    return [f"{', '.join(found)}: {text}" if found else text for text, found in noted.items()]


def counted(entries):
    """How many figures and tables of a paper are in each state, of [(name of an entry, its state)]: numbers of the text and what is beside a figure are none. 5a is of figure 5."""
    states = {}
    for name, found in entries:
        if begins := re.match(r"(Figure|Tables?) [\d.]*\d", name):
            states.setdefault(begins[0], set()).add(found)
    return collections.Counter("measured in part" if "measured" in found and len(found) > 1 else min(found, key=STATES.index) for found in states.values())
