"""The picture of a watch: one panel a series, with intervals, 3-sigma limits and what happened when."""

import csv
import io
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from django.utils.translation import gettext as _

from calibration.figures import BAR, CONFIG, INK, JUDGE, LINE, SOFT
from calibration.models import WatchMark
from calibration.watch_series import Series
from evalsets.inert import inert

WIDTH, HEIGHT = 640, 110
DATES = 8  # on the axis; of fewer days than these each has its own


def time_series(series: Iterable[Series], marks: Sequence[WatchMark]) -> dict[str, Any]:
    """Panels over one time axis. All count responses, so that they may stand under each other."""
    drawn = [one for one in series if one.points]
    days = [first.isoformat() for one in drawn for first, _last, _point in one.points]
    ends = [last.isoformat() for one in drawn for _first, last, _point in one.points]
    domain = [min(days), max(ends)] if days else []
    happened = [
        {"day": mark.date.isoformat(), "text": mark.text}
        for mark in marks
        if domain and domain[0] <= mark.date.isoformat() <= domain[1]
    ]
    return {
        "config": CONFIG,
        "padding": {"left": 12, "right": 24, "top": 6, "bottom": 4},
        "vconcat": [_panel(one, happened, domain) for one in drawn],
    }


def _panel(series: Series, marks: list[dict[str, Any]], domain: list[str]) -> dict[str, Any]:
    values = [
        {
            "day": last.isoformat(),
            "value": point.share.value,
            "low": point.share.low,
            "high": point.share.high,
            "lower": point.lower,
            "upper": point.upper,
        }
        for _first, last, point in series.points
    ]
    first, last = map(date.fromisoformat, domain)
    ticks = "day" if (last - first).days < DATES else DATES  # not one every few hours
    axis = {"title": None, "format": "%-d %b", "tickCount": ticks, "labelOverlap": True}
    x = {"field": "day", "type": "temporal", "scale": {"domain": domain}, "axis": axis}
    y = {
        "type": "quantitative",
        "axis": {"format": ".0%", "tickCount": 4, "title": None, "grid": True, "gridColor": LINE},
        "scale": {"zero": True, "nice": True},
    }
    limit = {"type": "line", "strokeDash": [2, 3], "strokeWidth": 1, "color": SOFT}
    layers: list[dict[str, Any]] = [
        {"mark": limit, "encoding": {"x": x, "y": {**y, "field": "lower"}}},
        {"mark": limit, "encoding": {"x": x, "y": {**y, "field": "upper"}}},
        {
            "mark": {"type": "rule", "color": SOFT, "strokeWidth": 1.5},
            "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "line", "color": JUDGE, "strokeWidth": 1.5},
            "encoding": {"x": x, "y": {**y, "field": "value"}},
        },
        {
            "mark": {"type": "circle", "size": 40, "opacity": 1, "color": JUDGE},
            "encoding": {"x": x, "y": {**y, "field": "value"}},
        },
    ]
    if marks:
        layers += _marks(marks, x)
    title = {"text": series.name, "anchor": "start", "fontSize": 12, "color": INK, "fontWeight": "normal"}
    return {
        "data": {"values": values},
        "title": title,
        "width": WIDTH,
        "height": HEIGHT,
        "layer": layers,
    }


def _marks(marks: list[dict[str, Any]], x: dict[str, Any]) -> list[dict[str, Any]]:
    data = {"values": marks}
    words = {"type": "text", "align": "left", "dx": 3, "fontSize": 11, "color": SOFT, "limit": 120}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "color": BAR, "strokeDash": [4, 4]},
            "encoding": {"x": x},
        },
        {
            "data": data,
            "mark": words,
            "encoding": {"x": x, "y": {"value": 8}, "text": {"field": "text"}},
        },
    ]


def series_described(series: Iterable[Series]) -> str:
    """The picture in words: each series with its first and its last point."""
    words = []
    for one in series:
        known = [point for _first, _last, point in one.points if point.share.value is not None]
        if known:
            words.append(
                _("{series}: from {first} to {last}").format(
                    series=one.name,
                    first=f"{known[0].share.value:.0%}",
                    last=f"{known[-1].share.value:.0%}",
                )
            )
    return "; ".join(words)


def series_csv(series: Iterable[Series]) -> str:
    """Each day of each series, with its count, its interval and why it does not count."""
    out = io.StringIO()
    writer = csv.writer(out)
    counted = ["hits", "responses", "share", "low", "high", "left_out", "without_claims"]
    writer.writerow(["series", "day", *counted, "why"])
    for one in series:
        for day, share in zip(one.days, one.shares, strict=True):
            numbers = [share.value, share.low, share.high] if share else ["", "", ""]
            writer.writerow(
                [
                    inert(one.key),
                    day.date.isoformat(),
                    day.hits,
                    day.total,
                    *numbers,
                    day.left_out,
                    day.without_claims,
                    inert(day.why),
                ]
            )
    return out.getvalue()


def mdd_curve(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The smallest difference that a set of each size would show: through the judge, and by people."""
    values = [
        {"n": row["n"], "value": row[key], "kind": kind}
        for kind, key in (("judge", "mdd"), ("people", "by_people"))
        for row in rows
        if row[key] is not None
    ]
    axis = {"title": None, "grid": True, "gridColor": LINE}
    on_x = {**axis, "values": [100, 200, 500, 1000, 2000, 5000, 10000], "format": "~s"}
    x = {"field": "n", "type": "quantitative", "scale": {"type": "log"}, "axis": on_x}
    y = {"field": "value", "type": "quantitative", "axis": {**axis, "format": ".0%"}}
    colour = {
        "field": "kind",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": ["judge", "people"], "range": [JUDGE, SOFT]},
    }
    mark = {"type": "line", "point": True, "strokeWidth": 2}
    encoding = {"x": x, "y": y, "color": colour}
    return {
        "config": CONFIG,
        "padding": {"left": 12, "right": 24, "top": 6, "bottom": 4},
        "data": {"values": values},
        "width": 420,
        "height": 220,
        "mark": mark,
        "encoding": encoding,
    }


def mdd_described(rows: Iterable[dict[str, Any]]) -> str:
    return "; ".join(f"{row['n']}: {row['mdd']:.1%}" for row in rows if row["mdd"] is not None)
