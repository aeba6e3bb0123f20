"""What the front page claims, and what a run measured of it: claims.toml, which has each row of README's table of figures.

A claim ([[claim]]) is a row: `what`, `figure` and `command` are its cells. Its `parts` say where the numbers come from:

    says       words of `figure`, with the numbers
    benchmark, summary, cases, columns
               whose they are: as `from` of papers.py. Of several values README has the least and the greatest, or one for all
    scale      what those are multiplied by, if README has another unit
    cpu        a word of the processor's name, if the claim says that these are of such a one: they are not compared with those of others
    pages      {page: [words]}: other places that say the same; words are exactly those of the page, and numbers may have fewer digits, or more

Numbers of `figure` that are circumstances and no figures are in words of `besides`.
"""
import pathlib
import re
import tomllib

import papers
import report

FILE = pathlib.Path(__file__).resolve().parent / "claims.toml"
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
TOLERANCE = 0.1  # what figures differ by from one run to the next, as a part of them
AS_SAID = "as said"


def load(file=FILE):
    return tomllib.loads(file.read_text())["claim"]


def numbers(text):
    """Those in a text, with the digits that they have there."""
    return [number.replace(",", "") for number in NUMBER.findall(text)]


def decimals(number):
    """How many digits it has behind the point."""
    return len(number.partition(".")[2])


def verdict(says, values):
    """What these values are beside the range that words say, or the one number: AS_SAID, less, more, or both. TOLERANCE beyond what would be rounded to the ends is as said."""
    ends = [(float(number), 0.5 * 10 ** -decimals(number)) for number in numbers(says)]
    least, most = min(end - half for end, half in ends), max(end + half for end, half in ends)
    beyond = [word for word, is_beyond in (("less", min(values) < (1 - TOLERANCE) * least), ("more", max(values) > (1 + TOLERANCE) * most)) if is_beyond]
    return " and ".join(beyond) or AS_SAID


def measured(part, result):
    """The numbers that a result has of a part of a claim."""
    found = [value for key, value in result["summary"].items() if papers.fits(key, part.get("summary", []))]
    found += [row[column] for row in result["rows"] if papers.fits(row["case"], part.get("cases", [])) for column in part.get("columns", []) if column in row]
    return [part.get("scale", 1) * value for value in found if isinstance(value, (int, float))]


def beside(claims, results, failed, is_check):
    """Of each part of each claim {claim, says, source, and either measured, the numbers, or missing, why there are none}; and the verdict on what was measured, where there can be one.
    is_check: whether these results can tell at all."""
    parts = []
    for claim in claims:
        for part in claim["parts"]:
            name = part["benchmark"]
            values = measured(part, results[name]) if name in results else []
            source = f"{name}: {', '.join([*part.get('summary', []), *part.get('cases', [])])}"
            found = {"measured": values} if values else {"missing": papers.why_not(name, results, failed)}
            if is_check and values and part.get("cpu", "") in results[name]["machine"]["cpu"]:
                found["verdict"] = verdict(part["says"], values)
            parts.append({"claim": claim["what"], "says": part["says"], "source": source, **found})
    return parts


def words_of(part):
    """What was measured of a part that beside() yields, in README's way."""
    if "missing" in part:
        return f"– ({part['missing']})"
    least, most = (report.figure(float(value)) for value in (min(part["measured"]), max(part["measured"])))
    return least if least == most else f"{least} to {most}"
