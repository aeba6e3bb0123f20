"""Bar charts, lines over time, and curves and dots over numbers, as SVG."""
import html
import math

COLOURS = ["#1f6f8b", "#d9822b", "#8aa399", "#7a4e7e", "#b0413e", "#4c9a4c", "#b59a2c", "#5a6fc0", "#9c6b4e"]
LABEL_WIDTH, CHART_WIDTH, BAR_HEIGHT, GAP, TOP = 240, 560, 11, 9, 76


def _ticks(low, high):
    """Round values of a logarithmic axis, at most about a dozen."""
    values = [factor * 10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
              for factor in (1, 2, 5)]
    return [value for value in values if low <= value <= high]


def bars(title, subtitle, cases, series, reference=1.0):
    """cases: labels; series: {name: values, None where there is none}. Lengths are logarithmic and grow from
    `reference`, where a line stands."""
    known = [value for values in series.values() for value in values if value] or [1.0]
    low, high = min(known + [reference]) / 1.2, max(known + [reference]) * 1.2
    span = math.log(high / low)

    def x(value):
        return LABEL_WIDTH + CHART_WIDTH * math.log(value / low) / span

    group = len(series) * BAR_HEIGHT + GAP
    height = TOP + len(cases) * group + 34
    width = LABEL_WIDTH + CHART_WIDTH + 70
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="12" y="22" font-size="15" font-weight="bold">{html.escape(title)}</text>',
           f'<text x="12" y="40" fill="#555">{html.escape(subtitle)}</text>']
    left = 12
    for colour, name in zip(COLOURS, series):
        out.append(f'<rect x="{left}" y="50" width="9" height="9" fill="{colour}"/>'
                   f'<text x="{left + 15}" y="59">{html.escape(name)}</text>')
        left += 32 + 7 * len(name)
    bottom = TOP + len(cases) * group
    for tick in _ticks(low, high):
        out.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP - 6}" y2="{bottom}" stroke="#e4e4e4"/>'
                   f'<text x="{x(tick):.1f}" y="{bottom + 15}" text-anchor="middle" fill="#555">{tick:g}</text>')
    for i, case in enumerate(cases):
        top = TOP + i * group
        middle = top + len(series) * BAR_HEIGHT / 2 + 4
        out.append(f'<text x="{LABEL_WIDTH - 8}" y="{middle:.1f}" text-anchor="end">{html.escape(case)}</text>')
        for j, (colour, values) in enumerate(zip(COLOURS, series.values())):
            if not values[i]:
                continue
            begin, end = sorted((x(reference), x(values[i])))
            y = top + j * BAR_HEIGHT
            out.append(f'<rect x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="{BAR_HEIGHT - 1}" fill="{colour}"/>'
                       f'<text x="{end + 4:.1f}" y="{y + 9}" font-size="9" fill="#333">{values[i]:.3g}</text>')
    out.append(f'<line x1="{x(reference):.1f}" x2="{x(reference):.1f}" y1="{TOP - 6}" y2="{bottom}" stroke="#333"/>')
    return "\n".join(out + ["</svg>", ""])


def lines(title, seconds, series):
    """Values over time: {name: values}, each value of `seconds[name]` seconds. Linear, from 0."""
    most = max((value for values in series.values() for value in values), default=1) or 1
    last = max((len(values) * seconds[name] for name, values in series.items()), default=1) or 1
    width, height, left, top, bottom = LABEL_WIDTH + CHART_WIDTH + 70, 260, 90, 50, 220

    def place(name, i, value):
        x = left + (width - left - 40) * (i + 0.5) * seconds[name] / last
        return f"{x:.1f},{bottom - (bottom - top) * value / most:.1f}"

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="12" y="22" font-size="15" font-weight="bold">{html.escape(title)}</text>']
    for part in range(5):
        value, y = most * part / 4, bottom - (bottom - top) * part / 4
        out.append(f'<line x1="{left}" x2="{width - 40}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>'
                   f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{value:,.0f}</text>'
                   f'<text x="{left + (width - left - 40) * part / 4:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555">'
                   f'{last * part / 4:.3g} s</text>')
    at = left
    for colour, (name, values) in zip(COLOURS, series.items()):
        out.append(f'<rect x="{at}" y="32" width="9" height="9" fill="{colour}"/><text x="{at + 15}" y="41">{html.escape(name)}</text>')
        at += 32 + 7 * len(name)
        points = " ".join(place(name, i, value) for i, value in enumerate(values))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return "\n".join(out + ["</svg>", ""])


def curves(title, subtitle, x_name, series, dots=()):
    """Values over numbers: {name: [(x, y), ...]}, from 0 on; those whose names are in `dots` are not joined."""
    points = [point for each in series.values() for point in each] or [(1, 1)]
    most_x, most_y = (max(point[axis] for point in points) * 1.05 or 1 for axis in (0, 1))
    width, height, left, top, bottom = LABEL_WIDTH + CHART_WIDTH + 70, 330, 90, 70, 280

    def place(point):
        return left + (width - left - 40) * point[0] / most_x, bottom - (bottom - top) * point[1] / most_y

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="12" y="22" font-size="15" font-weight="bold">{html.escape(title)}</text>',
           f'<text x="12" y="40" fill="#555">{html.escape(subtitle)}</text>',
           f'<text x="{width - 40}" y="{bottom + 32}" text-anchor="end" fill="#555">{html.escape(x_name)}</text>']
    for part in range(5):
        x, y = place((most_x * part / 4, most_y * part / 4))
        out.append(f'<line x1="{left}" x2="{width - 40}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>'
                   f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{most_y * part / 4:.3g}</text>'
                   f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555">{most_x * part / 4:.3g}</text>')
    at = left
    for colour, (name, each) in zip(COLOURS, series.items()):
        out.append(f'<rect x="{at}" y="50" width="9" height="9" fill="{colour}"/><text x="{at + 15}" y="59">{html.escape(name)}</text>')
        at += 32 + 7 * len(name)
        placed = [place(point) for point in sorted(each)]
        if name not in dots:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
    return "\n".join(out + ["</svg>", ""])


def above(first, second):
    """One picture of two, the second below the first."""
    sizes = [[float(word.split('"')[1]) for word in (svg[svg.index(" width="):], svg[svg.index(" height="):])] for svg in (first, second)]
    (width, height), (other_width, other_height) = sizes
    placed = second.replace("<svg ", f'<svg y="{height:g}" ', 1)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{max(width, other_width):g}" height="{height + other_height:g}">\n'
            f"{first}{placed}</svg>\n")
