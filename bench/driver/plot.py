"""Bar charts, lines over time, and curves and dots over numbers, as SVG."""
import html
import itertools
import math

COLOURS = ["#1f6f8b", "#d9822b", "#8aa399", "#7a4e7e", "#b0413e", "#4c9a4c", "#b59a2c", "#5a6fc0", "#9c6b4e"]
LABEL_WIDTH, CHART_WIDTH, BAR_HEIGHT, GAP = 240, 560, 11, 9
WIDTH = LABEL_WIDTH + CHART_WIDTH + 70
TITLE_HEIGHT, LEGEND_LINE, LETTER = 50, 16, 7  # pixels; a letter's is a mean
TICKED_MOST = 9  # numbers that an axis names each of


def _ticks(low, high):
    """Round values of a logarithmic axis, at most about a dozen."""
    values = [factor * 10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
              for factor in (1, 2, 5)]
    return [value for value in values if low <= value <= high]


def _round_ticks(most):
    """Round values of an axis from 0 on, at most seven."""
    steps = 6
    power = 10.0 ** math.floor(math.log10(most / steps))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power * steps >= most)
    return [step * i for i in range(math.floor(most / step + 1e-9) + 1)]


def _short(value):
    """A number on an axis: 12k, 3.5M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _svg(width, height, attributes=""):
    """Its opening tag; with a view box, so that a page may show it smaller."""
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" {attributes}>'


def _opened(title, subtitle, height):
    return [_svg(WIDTH, height, 'font-family="sans-serif" font-size="11"'),
            f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
            f'<text x="12" y="22" font-size="15" font-weight="bold">{html.escape(title)}</text>',
            f'<text x="12" y="40" fill="#555">{html.escape(subtitle)}</text>']


def _legend(names, left=12):
    """Names below the title with their colours, in as many lines as they need, and how high they are."""
    out, x, y = [], left, TITLE_HEIGHT
    for colour, name in zip(itertools.cycle(COLOURS), names):
        width = 32 + LETTER * len(name)
        if x > left and x + width > WIDTH:
            x, y = left, y + LEGEND_LINE
        out.append(f'<rect x="{x}" y="{y}" width="9" height="9" fill="{colour}"/><text x="{x + 15}" y="{y + 9}">{html.escape(name)}</text>')
        x += width
    return out, y + LEGEND_LINE - TITLE_HEIGHT


def bars(title, subtitle, cases, series, reference=1.0):
    """cases: labels; series: {name: values, None where there is none}. Lengths are logarithmic and grow from
    `reference`, where a line stands."""
    known = [value for values in series.values() for value in values if value] or [1.0]
    low, high = min(known + [reference]) / 1.2, max(known + [reference]) * 1.2
    span = math.log(high / low)

    def x(value):
        return LABEL_WIDTH + CHART_WIDTH * math.log(value / low) / span

    names, legend_height = _legend(series)
    first = TITLE_HEIGHT + legend_height + 10
    group = len(series) * BAR_HEIGHT + GAP
    bottom = first + len(cases) * group
    out = _opened(title, subtitle, bottom + 34) + names
    for tick in _ticks(low, high):
        out.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{first - 6}" y2="{bottom}" stroke="#e4e4e4"/>'
                   f'<text x="{x(tick):.1f}" y="{bottom + 15}" text-anchor="middle" fill="#555">{tick:g}</text>')
    for i, case in enumerate(cases):
        top = first + i * group
        middle = top + len(series) * BAR_HEIGHT / 2 + 4
        out.append(f'<text x="{LABEL_WIDTH - 8}" y="{middle:.1f}" text-anchor="end">{html.escape(case)}</text>')
        for j, (colour, values) in enumerate(zip(itertools.cycle(COLOURS), series.values())):
            if not values[i]:
                continue
            begin, end = sorted((x(reference), x(values[i])))
            y = top + j * BAR_HEIGHT
            out.append(f'<rect x="{begin:.1f}" y="{y}" width="{max(end - begin, 1):.1f}" height="{BAR_HEIGHT - 1}" fill="{colour}"/>'
                       f'<text x="{end + 4:.1f}" y="{y + 9}" font-size="9" fill="#333">{values[i]:.3g}</text>')
    out.append(f'<line x1="{x(reference):.1f}" x2="{x(reference):.1f}" y1="{first - 6}" y2="{bottom}" stroke="#333"/>')
    return "\n".join(out + ["</svg>", ""])


def lines(title, seconds, series):
    """Values over time: {name: values}, each value of `seconds[name]` seconds. Linear, from 0."""
    return curves(title, "", "seconds", {name: [((i + 0.5) * seconds[name], value) for i, value in enumerate(values)] for name, values in series.items()}, dots=None)


class _Axis:
    """Where numbers lie between two ends in the picture: from 0 on, or by their logarithms."""

    def __init__(self, numbers, begin, end, is_logarithmic):
        self.begin, self.end = begin, end
        self.is_logarithmic = is_logarithmic and min(numbers) > 0
        self.low, self.high = 0.0, max(numbers) * 1.05 or 1.0
        self.ticks = _round_ticks(self.high)
        if self.is_logarithmic:
            self.low, self.high = min(numbers) / 1.15, max(numbers) * 1.15
            named = sorted(set(numbers))
            self.ticks = named if len(named) <= TICKED_MOST else _ticks(self.low, self.high)

    def at(self, number):
        part = math.log(number / self.low) / math.log(self.high / self.low) if self.is_logarithmic else number / self.high
        return self.begin + (self.end - self.begin) * part


def curves(title, subtitle, x_name, series, dots=(), y_name="", logarithmic=""):
    """Values over numbers: {name: [(x, y), ...]}. Axes begin at 0; those that are named in `logarithmic`, "x", "y" or "xy", are logarithmic if all of their numbers are positive. Points of names in
    `dots` are not joined; None: points are joined, and are no dots. y_name: what the values are, and their unit."""
    points = [point for each in series.values() for point in each] or [(1, 1)]
    names, legend_height = _legend(series)
    left, right, top = 90, WIDTH - 40, TITLE_HEIGHT + legend_height + 24
    bottom = top + 210
    x_axis = _Axis([x for x, _ in points], left, right, "x" in logarithmic)
    y_axis = _Axis([y for _, y in points], bottom, top, "y" in logarithmic)
    out = _opened(title, subtitle, bottom + 50) + names
    out += [f'<text x="{right}" y="{bottom + 34}" text-anchor="end" fill="#555">{html.escape(x_name)}</text>', f'<text x="12" y="{top - 10}" fill="#555">{html.escape(y_name)}</text>']
    for tick in x_axis.ticks:
        x = x_axis.at(tick)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" stroke="#f0f0f0"/><text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555">{_short(tick)}</text>')
    for tick in y_axis.ticks:
        y = y_axis.at(tick)
        out.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/><text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#555">{_short(tick)}</text>')
    for colour, (name, each) in zip(itertools.cycle(COLOURS), series.items()):
        placed = [(x_axis.at(x), y_axis.at(y)) for x, y in sorted(each)]
        if dots is None or name not in dots:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if dots is not None:
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
    return "\n".join(out + ["</svg>", ""])


def above(first, second):
    """One picture of two, the second below the first."""
    sizes = [[float(word.split('"')[1]) for word in (svg[svg.index(" width="):], svg[svg.index(" height="):])] for svg in (first, second)]
    (width, height), (other_width, other_height) = sizes
    placed = second.replace("<svg ", f'<svg y="{height:g}" ', 1)
    return f"{_svg(max(width, other_width), height + other_height)}\n{first}{placed}</svg>\n"
