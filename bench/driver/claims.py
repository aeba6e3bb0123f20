"""What the front page claims, and what a run measured of it: claims.toml, which has each row of README's table of figures.

A claim ([[claim]]) is a row: `what`, `figure` and `command` are its cells. Its `parts` say where the numbers come from:

    says       words of `figure`, with the numbers
    benchmark, summary, cases, columns
               whose they are: as `from` of papers.py. Of several values README has the least and the greatest, or one for all
    scale      what those are multiplied by, if README has another unit
    pages      {page: [words]}: other places that say the same; words are exactly those of the page, and numbers may have fewer digits, or more

Numbers of `figure` that are circumstances and no figures are in words of `besides`.
"""
import pathlib
import tomllib

import papers
import report

FILE = pathlib.Path(__file__).resolve().parent / "claims.toml"


def load(file=FILE):
    return tomllib.loads(file.read_text())["claim"]


def measured(part, result):
    """The numbers that a result has of a part of a claim."""
    found = [value for key, value in result["summary"].items() if papers.fits(key, part.get("summary", []))]
    found += [row[column] for row in result["rows"] if papers.fits(row["case"], part.get("cases", [])) for column in part.get("columns", []) if column in row]
    return [part.get("scale", 1) * value for value in found if isinstance(value, (int, float))]


def beside(claims, results, failed):
    """Of each part of each claim {claim, says, source, and either measured, the numbers, or missing, why there are none}."""
    parts = []
    for claim in claims:
        for part in claim["parts"]:
            name = part["benchmark"]
            values = measured(part, results[name]) if name in results else []
            source = f"{name}: {', '.join([*part.get('summary', []), *part.get('cases', [])])}"
            parts.append({"claim": claim["what"], "says": part["says"], "source": source, **({"measured": values} if values else {"missing": papers.why_not(name, results, failed)})})
    return parts


def words_of(part):
    """What was measured of a part that beside() yields, in README's way."""
    if "missing" in part:
        return f"– ({part['missing']})"
    least, most = (report.figure(float(value)) for value in (min(part["measured"]), max(part["measured"])))
    return least if least == most else f"{least} to {most}"
