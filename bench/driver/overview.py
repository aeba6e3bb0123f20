"""The report of all benchmarks: first README's figures beside those of this run, with a mark on each that is another one, then the papers', then each benchmark with its table and its plot. One page that needs nothing else, and the same as
Markdown and JSON."""
import collections
import html
import json
import re

import claims
import papers
import plot
import report

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222 }
h1, h2, h3 { line-height: 1.2 } h2 { margin-top: 2.2em; border-bottom: 1px solid #ccc }
table { border-collapse: collapse; margin: .7em 0; font-size: 13px } th, td { border: 1px solid #ddd; padding: 2px 8px; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums } th { background: #f3f3f3 }
code { background: #f3f3f3; padding: 0 3px } svg { max-width: 100%; height: auto } summary { cursor: pointer; color: #1f6f8b } nav { columns: 4 }
.measured { color: #2d7a2d } .part { color: #6f7a12 } .simulated { color: #9a6a00 } .missing, .not { color: #b0413e } .found { color: #555 } tr.off { background: #fbe3e0 }
"""
TABLE_ROWS = 40  # of a figure, in the page: the others are in the benchmark's own table


def _columns(rows):
    return list(dict.fromkeys(key for row in rows for key in row))


def _words(text):
    """As in Markdown: `code`."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text))


def _html_table(rows, most=None, marked=()):
    """marked: {number of a row: its id}, in another colour."""
    columns = _columns(rows)
    lines = ["<table><tr>" + "".join(f"<th>{html.escape(str(column))}</th>" for column in columns) + "</tr>"]
    for number, row in enumerate(rows[:most]):
        cells = [(row.get(column, ""), report.shown(row, column)) for column in columns]
        lines.append((f'<tr class=off id="{marked[number]}">' if number in marked else "<tr>") + "".join(f'<td{" class=number" if isinstance(value, (int, float)) else ""}>{html.escape(text)}</td>' for value, text in cells) + "</tr>")
    more = f"<p>and {len(rows) - most} more rows</p>" if most and len(rows) > most else ""
    return "\n".join(lines) + "</table>" + more


def _markdown_table(rows):
    return report.table(rows, _columns(rows))


def _covered(all_papers, results, failed):
    """[(paper, [(figure, state, tables, reason)])], and of each paper how many figures of each state there are."""
    covered = [(paper, [(figure, *papers.state(figure, results, failed)) for figure in paper["figure"]]) for paper in all_papers]
    return covered, [papers.counted((figure["name"], state) for figure, state, _, _ in figures) for _, figures in covered]


def _curves(figure, results):
    """A picture of each of the figure's plots that has lines in these results; and {benchmark: patterns of the cases that are in one}."""
    pictures, in_one = [], {}
    for drawn in figure.get("plots", []):
        series = papers.curves_of(drawn, results[drawn["benchmark"]]) if drawn["benchmark"] in results else {}
        if series:
            in_one.setdefault(drawn["benchmark"], []).extend(drawn["cases"])
            pictures.append(plot.curves(figure["name"], drawn.get("title", ""), drawn["x"], series, y_name=drawn["y"], logarithmic=drawn.get("logarithmic", "")))
    return pictures, in_one


def _bars(name, rows, less, in_curves):
    """Of a figure's rows, if they have ratios; of as many as the page shows. in_curves: patterns of cases that need none."""
    shown = [row for row in rows[:TABLE_ROWS] if "case" in row and not papers.fits(row["case"], in_curves)]
    series = {f"{column}: {'less' if column in less else 'more'} is better": [row.get(column) for row in shown] for column in _columns(shown) if column.endswith("ratio")}
    return plot.bars(name, "ratios of the rows below", [row["case"] for row in shown], series) if series else ""


def _counted(counts):
    """counts: of each paper."""
    counts = sum(counts, collections.Counter())
    return f"Of {counts.total()} figures and tables of the papers: " + ", ".join(f"{counts[state]} {state}" for state in papers.STATES if counts[state]) + "."


def _claimed(parts):
    """A row for each part of each claim, which is named once."""
    are_compared = any("verdict" in part for part in parts)
    return [{"claim": "" if before and before["claim"] == part["claim"] else part["claim"], "README": part["says"], "this run": claims.words_of(part),
             **({"here it is": part.get("verdict", "")} if are_compared else {}), "figures of": part["source"]} for before, part in zip([None, *parts], parts)]


def _off(parts):
    """{number of a part that was compared and is not as README says: its id in the report}"""
    return {number: f"claim-{number + 1}" for number, part in enumerate(parts) if part.get("verdict", claims.AS_SAID) != claims.AS_SAID}


def _check(parts):
    """How many parts of claims were compared, and how many of these are off."""
    return {"compared": sum("verdict" in part for part in parts), "off": len(_off(parts))}


def _checked(run, parts, link):
    """The check in words. link(id, text): to a part that is off."""
    if run["made_by"]["quick"]:
        return "A quick run is no check of README's figures: data is small, and turns are few."
    check = _check(parts)
    links = "; ".join(link(name, f"{parts[number]['claim']}: {parts[number]['says']}, here {parts[number]['verdict']}") for number, name in _off(parts).items())
    return (f"{check['off']} of {check['compared']} claims {'is' if check['off'] == 1 else 'are'} not what was measured here{': ' if links else ''}{links}; "
            f"{len(parts) - check['compared']} were not compared.")


CLAIMS_HEAD = "README's figures, and this run's"


def _page(run, names, results, failed, claimed, covered, counts, pictures, explain):
    machine = next((result["machine"] for result in results.values()), {})
    out = ["<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'><title>Spillway: all benchmarks</title>", f"<style>{STYLE}</style>",
           "<h1>Spillway: all benchmarks</h1>",
           f"<p>{len(results)} of {len(names)} benchmarks measured{', with --quick: small data, few turns' if run['made_by']['quick'] else ''}; written {html.escape(run['written'])}. "
           f"{_counted(counts)}</p>",
           "<p>" + _checked(run, claimed, lambda name, text: f'<a href="#{name}">{html.escape(text)}</a>') + "</p>",
           f"<h2>{CLAIMS_HEAD}</h2>", "<p>README names the machine that its figures are of. Ratios of another one may be others; where there are several values, they are the least and the greatest. "
           f"What is up to {claims.TOLERANCE:.0%} beyond what README says is as said.</p>",
           _html_table(_claimed(claimed), marked=_off(claimed)),
           _html_table([{"machine": key.replace("_", " "), "is": value if isinstance(value, (int, float)) else str(value)} for key, value in machine.items() if not key.startswith("load")]),
           "<nav>" + "<br>".join(f'<a href="#{name}">{name}</a>' for name in names) + "</nav>"]
    if failed:
        out += ["<h2>Not measured</h2>", _html_table([{"benchmark": name, "because": reason} for name, reason in failed.items()])]
    out += ["<h2>Figures and tables of the papers</h2>",
            _html_table([{"paper": paper["title"], **{state: count[state] for state in papers.STATES}} for (paper, _), count in zip(covered, counts)])]
    for paper, figures in covered:
        out.append(f"<h2>{html.escape(paper['title'])} <small>({html.escape(paper['where'])})</small></h2>")
        for figure, state, tables, reason in figures:
            out += [f"<h3>{html.escape(figure['name'])} <small class='{state}'>{state}</small></h3>", f"<p>It shows {_words(figure['shows'])}.</p>", f"<p class=found>The paper: {_words(figure['found'])}.</p>",
                    f"<p>Here: {_words(figure['note'])}</p>"]
            out += [f"<p class=missing>{html.escape(reason)}</p>"] if reason else []
            out += [f"<p>Note: {html.escape(note)}.</p>" for note in papers.notes_of(figure, results)]
            curves, in_curves = _curves(figure, results)
            out += curves
            for benchmark, rows, less in tables:
                out.append(_bars(figure["name"], rows, less, in_curves.get(benchmark, [])))
                out.append(f'<details><summary>{len(rows)} rows of {benchmark}</summary>{_html_table(rows, most=TABLE_ROWS)}<a href="#{benchmark}">all of {benchmark}</a></details>')
    for name in names:
        out.append(f'<h2 id="{name}">{name}</h2>')
        if name not in results:
            out.append(f"<p class=missing>not measured: {html.escape(failed.get(name, 'not run yet'))}</p>")
            continue
        result = results[name]
        out += [f"<p>{_words(' '.join(explain(name).split()))}</p>", pictures[name], _html_table([{"figure": key, "value": value} for key, value in result["summary"].items()]),
                f"<details><summary>{len(result['rows'])} rows</summary>{_html_table(result['rows'])}</details>"]
        out += [f"<p>Note: {html.escape(str(note))}.</p>" for note in result.get("notes", [])]
        out.append(f"<p class=found>Load before {result['machine'].get('load_before')}, after {result['machine'].get('load_after')}; {result['parameters'].get('seconds', '?')} s.</p>")
    return "\n".join(out) + "\n</html>\n"


def _markdown(run, names, results, failed, claimed, covered, counts):
    rows = _claimed(claimed)
    for number, name in _off(claimed).items():
        rows[number]["README"] = f'<a id="{name}"></a>**{rows[number]["README"]}**'
    lines = ["# Spillway: all benchmarks", "", f"{len(results)} of {len(names)} benchmarks measured{', with `--quick`' if run['made_by']['quick'] else ''}; written {run['written']}. "
             f"{_counted(counts)}", "", _checked(run, claimed, lambda name, text: f"[{text}](#{name})"), "",
             f"## {CLAIMS_HEAD}", "", *_markdown_table(rows), ""]
    if failed:
        lines += ["## Not measured", "", *_markdown_table([{"benchmark": name, "because": reason} for name, reason in failed.items()]), ""]
    for paper, figures in covered:
        lines += [f"## {paper['title']} ({paper['where']})", ""]
        for figure, state, tables, reason in figures:
            lines += [f"### {figure['name']}: {state}", "", f"It shows {figure['shows']}.", "", f"The paper: {figure['found']}.", "", f"Here: {figure['note']}", "", *([reason, ""] if reason else [])]
            lines += [line for note in papers.notes_of(figure, results) for line in (f"Note: {note}.", "")]
            for benchmark, rows, less in tables:
                lines += [f"Of [{benchmark}]({benchmark}.md){'; less is better: ' if less else ''}{', '.join(less)}:", "", *_markdown_table(rows), ""]
    lines += ["## Benchmarks", ""]
    for name in names:
        if name in results:
            lines += [f"### [{name}]({name}.md)", "", *_markdown_table([{"figure": key, "value": value} for key, value in results[name]["summary"].items()]), ""]
    return "\n".join(lines)


def write(folder, run, names, results, failed, all_claims, all_papers, explain):
    """run: {made_by, written}. names: of all benchmarks. results, failed: what was measured of them, and why others were not. The plots are read from `folder`; explain(name): what one is."""
    is_check = not run["made_by"]["quick"]
    claimed = claims.beside(all_claims, results, failed, is_check)
    covered, counts = _covered(all_papers, results, failed)
    pictures = {name: (folder / f"{name}.svg").read_text() for name in results}
    facts = {**run, "check": _check(claimed) if is_check else None, "failed": failed, "claims": claimed, "figures": dict(sum(counts, collections.Counter())), "summary": {name: result["summary"] for name, result in results.items()},
             "papers": [{"title": paper["title"], "figures": [{"name": figure["name"], "state": state, "from": [{"benchmark": benchmark, "rows": rows} for benchmark, rows, _ in tables], **({"missing": reason} if reason else {})}
                                                             for figure, state, tables, reason in figures]} for paper, figures in covered]}
    report.write_files(folder, "report", {".html": _page(run, names, results, failed, claimed, covered, counts, pictures, explain), ".md": _markdown(run, names, results, failed, claimed, covered, counts),
                                          ".json": json.dumps(facts, indent=2) + "\n"})
