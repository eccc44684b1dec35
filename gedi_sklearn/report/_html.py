"""The report as one self-contained page."""

from __future__ import annotations

import html
import re
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ._findings import Findings, number

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #111; background: #fff;
  max-width: 46rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; border-top: 1px solid #999; padding-top: 1rem; }
.header { color: #444; font-size: .9rem; margin: 0; }
.verdict { border: 2px solid #111; padding: .4rem .7rem; font-weight: 600; }
svg { width: 100%; max-width: 34rem; height: auto; }
svg text { font: 13px system-ui, sans-serif; fill: #111; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .8rem; }
th, td { border-bottom: 1px solid #ccc; padding: .15rem .5rem; text-align: right;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { text-align: left; }
dt { font-weight: 600; } dl { font-size: .8rem; }
@page { size: A4; margin: 16mm; }
@media print { body { max-width: none; padding: 0; font-size: 11pt; }
  section { break-inside: avoid; } .wide { overflow: visible; } table { font-size: 7.5pt; } }
"""
# What is no character of XML, which the curves are, or cannot be written as UTF-8.
_NO_CHARACTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNDEFINED = "–"
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 540, 250, 76, 92, 14, 46
_COLUMNS = {
    "attribute": "the protected attribute; several names are measured together",
    "indicator, parameter": (
        "gedi and gedi_sd with the degree, didi with the number of groups, binned_didi with the "
        "number of bins, hgr with the method"
    ),
    "value, y_true": "indicator of the predictions and of the original targets",
    "null_mean, null_q95": (
        "mean and 95 % quantile without any dependence; a smaller value is no evidence of a "
        "disparity"
    ),
    "low, high": "confidence interval of the value",
    "upper": "one-sided upper confidence limit",
}
_LEGEND = "<dl>{}</dl>".format(
    "".join(f"<dt>{name}</dt><dd>{meaning}</dd>" for name, meaning in _COLUMNS.items())
)


def render(
    header: list[str],
    said: list[tuple[Findings, list[str]]],
    table: dict[str, list[Any]],
    units: tuple[list[str | None], str | None],
) -> str:
    """Return the page.

    Parameters
    ----------
    header : list of str
        Its first lines.
    said : list of (Findings, list of str)
        Each attribute with its sentences.
    table : dict of str to list
        All indicators.
    units : (list of str or None, str or None)
        Of the attributes and of the targets, for the axes.

    Returns
    -------
    str
    """
    sections = "".join(
        _section(found, lines, unit, units[1])
        for (found, lines), unit in zip(said, units[0], strict=True)
    )
    first = "".join(f'<p class="header">{escape(line)}</p>' for line in header)
    names = ", ".join(found.attribute for found, _ in said)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Fairness report: {escape(names)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Fairness report</h1>{first}{sections}"
        f'<h2>All indicators</h2><div class="wide">{_table(table)}</div>{_LEGEND}</body></html>'
    )


def escape(text: str) -> str:
    """Return text for the page, with a mark in the place of control characters."""
    return html.escape(_NO_CHARACTER.sub("\ufffd", text))


def _section(
    found: Findings, lines: list[str], attribute_unit: str | None, target_unit: str | None
) -> str:
    paragraphs = [f"<p>{escape(line)}</p>" for line in lines]
    if found.asked is not None:
        paragraphs[0] = paragraphs[0].replace("<p>", '<p class="verdict">', 1)
        paragraphs[0] += _bound(found)
    paragraphs.insert(1, _curve(found, attribute_unit, target_unit))
    paragraphs.append(_over_cuts(found))
    return f"<section><h2>{escape(found.attribute)}</h2>{''.join(paragraphs)}</section>"


def _table(table: dict[str, list[Any]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row) + "</tr>"
        for row in zip(*table.values(), strict=True)
    )
    note = f"<p>{_UNDEFINED}: not defined on these rows.</p>" if f">{_UNDEFINED}<" in body else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return _UNDEFINED if np.isnan(value) else number(value)
    return str(value)


class _Series(NamedTuple):
    """A line of a chart: its label, its points, how it is dashed, and whether they have marks.

    The label is at the height of the last point, and of a line without marks at the greatest.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    dashes: str
    has_marks: bool = True

    @property
    def label_height(self) -> float:
        return float(self.y[-1] if self.has_marks else self.y.max())


def _bound(found: Findings) -> str:
    """Draw the share that remains and its interval, with the bound as a line."""
    if found.asked is None or not np.isfinite([found.left, found.low, found.high]).all():
        return ""
    right = 1.1 * max(found.left, found.high, found.asked, 0.1)

    def place(share: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * share / right

    low, high, left, asked = map(place, (found.low, found.high, found.left, found.asked))
    ticks = "".join(
        f'<text x="{place(tick):.1f}" y="62" text-anchor="middle">{tick:.0%}</text>'
        for tick in _ticks(0.0, right)
        if tick <= right
    )
    title = f"Share of the targets' dependence on {found.attribute} that remains"
    return (
        f'<svg viewBox="0 0 {_WIDTH} 90" role="img" aria-label="{escape(title)}">'
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="46" y2="46" stroke="#999"/>'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="30" y2="30" stroke="#111" stroke-width="2"/>'
        f'<circle cx="{left:.1f}" cy="30" r="4.5" fill="#111"/>'
        f'<line x1="{asked:.1f}" x2="{asked:.1f}" y1="16" y2="46" stroke="#111" '
        f'stroke-width="2" stroke-dasharray="4 3"/>'
        f'<text x="{asked:.1f}" y="12" text-anchor="middle">bound</text>{ticks}'
        f'<text x="{_WIDTH / 2}" y="84" text-anchor="middle">{escape(title)}</text></svg>'
    )


def _curve(found: Findings, attribute_unit: str | None, target_unit: str | None) -> str:
    """Draw mean predictions and targets against the attribute."""
    is_number = not isinstance(found.at[0], str)
    x = np.array(found.at if is_number else range(len(found.at)), dtype=float)
    pairs = [("targets", found.mean_true, "6 4"), ("predictions", found.mean, "none")]
    if not found.has_predictions:
        pairs = pairs[:1]
    series = [_Series(label, x, np.array(values), dashes) for label, values, dashes in pairs]
    groups = None if is_number else [_short(name) for name in found.at]
    across = found.attribute + ("" if attribute_unit is None else f" ({attribute_unit})")
    unit = "" if target_unit is None else f" ({target_unit})"
    return _chart(series, f"mean{unit}", across, groups)


def _over_cuts(found: Findings) -> str:
    """Draw what the attribute explains of the share of rows above a cut, against that share."""
    cuts = found.cuts
    if cuts is None:
        return ""
    what = "predictions" if found.has_predictions else "targets"
    of = [(what, cuts.rates, cuts.values, "none")]
    if len(cuts.rates_true) > 1 and found.has_predictions:
        of.insert(0, ("targets", cuts.rates_true, cuts.values_true, "6 4"))
    of.append(("chance", [0.0, 1.0], [100 * cuts.null_q95] * 2, "1 3"))
    series = [_Series(name, np.array(x), np.array(y), how, False) for name, x, y, how in of]
    return _chart(series, f"points explained by {found.attribute}", "share of rows above the cut")


def _chart(
    series: list[_Series], upwards: str, across: str, groups: list[str] | None = None
) -> str:
    """Draw series, told apart by dashes and marks; of groups there are marks alone."""
    x, heights = (np.concatenate([own[j] for own in series]) for j in (1, 2))
    ticks = _ticks(float(heights.min()), float(heights.max()))
    low, high = min(ticks[0], heights.min()), max(ticks[-1], heights.max())

    # Groups stand away from the edges.
    left, right = (x.min(), x.max()) if groups is None else (-0.5, len(groups) - 0.5)

    def place_x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - left) / ((right - left) or 1.0)

    def place_y(value: float) -> float:
        return (
            _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - low) / ((high - low) or 1.0)
        )

    parts = []
    for tick in ticks:
        y = place_y(tick)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{number(tick)}</text>'
        )
    marks = (
        [(tick, number(tick)) for tick in _ticks(x.min(), x.max())]
        if groups is None
        else list(enumerate(groups))[:: 1 + len(groups) // 9]
    )
    for value, label in marks:
        if x.min() <= value <= x.max():
            parts.append(
                f'<text x="{place_x(value):.1f}" y="{_HEIGHT - _BOTTOM + 18}" '
                f'text-anchor="middle">{escape(label)}</text>'
            )
    ends = _apart([place_y(own.label_height) for own in series])
    for own, end in zip(series, ends, strict=True):
        points = [(place_x(a), place_y(b)) for a, b in zip(own.x, own.y, strict=True)]
        color = "#777" if own.dashes != "none" and len(series) > 1 else "#111"
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        if groups is None:
            parts.append(
                f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2" '
                f'stroke-dasharray="{own.dashes}"/>'
            )
        parts += [
            f'<rect x="{a - 3:.1f}" y="{b - 3:.1f}" width="6" height="6" fill="#fff" '
            f'stroke="{color}"/>'
            if own.dashes != "none"
            else f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5" fill="{color}"/>'
            for a, b in points
            if own.has_marks
        ]
        parts.append(f'<text x="{_WIDTH - _RIGHT + 10}" y="{end + 4:.1f}">{own.label}</text>')
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts.append(
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 6}" text-anchor="middle">'
        f'{escape(across)}</text><text transform="translate(12 {middle}) rotate(-90)" '
        f'text-anchor="middle">{escape(upwards)}</text>'
    )
    title = f"{upwards}, by {across}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return about four round numbers that span an interval."""
    width = (high - low) or abs(high) or 1.0
    step = 10 ** np.floor(np.log10(width / 3))
    step *= next(factor for factor in (1, 2, 5, 10) if width / (factor * step) <= 4)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return [float(k * step) for k in np.arange(first, last + 1)]


def _apart(ends: list[float]) -> list[float]:
    """Move labels apart where they would cover each other, from the lowest on the page upwards."""
    placed, order = list(ends), np.argsort(ends)[::-1]
    for below, own in pairwise(order):
        placed[own] = min(placed[own], placed[below] - 15)
    return placed


def _short(label: str) -> str:
    return label if len(label) <= 12 else label[:11] + "…"
