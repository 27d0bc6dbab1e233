"""The control chart of a judge's repeated runs, as a picture, in words and as numbers."""

import csv
import io
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _

from calibration.figures import BAR, CONFIG, INK, JUDGE, SOFT
from calibration.stats.drift import ChartedShare
from evalsets.inert import inert

Rows = list[dict[str, Any]]


def rows_of(runs: Sequence[str], points: Sequence[ChartedShare]) -> Rows:
    """Name of each run with its share and the limits that were set by the runs before it."""
    return [
        {
            "run": name,
            "share": point.share.as_dict(),
            "centre": point.centre,
            "lower": point.lower,
            "upper": point.upper,
            "outside": point.outside,
        }
        for name, point in zip(runs, points, strict=True)
    ]


def control_chart(rows: Rows, title: str) -> dict[str, Any]:
    values = [
        {
            "run": row["run"],
            "value": row["share"]["value"],
            "low": row["share"]["low"],
            "high": row["share"]["high"],
            "lower": row["lower"],
            "upper": row["upper"],
            "centre": row["centre"],
            "state": "outside" if row["outside"] else "inside",
        }
        for row in rows
        if row["share"]["value"] is not None
    ]
    x = {
        "field": "run",
        "type": "nominal",
        "sort": None,
        "title": None,
        "axis": {"labelColor": INK, "labelAngle": 0, "labelLimit": 90, "ticks": False, "labelPadding": 6},
    }
    y = {
        "type": "quantitative",
        "title": title,
        "scale": {"zero": False, "nice": True},
        "axis": {"format": ".0%", "tickCount": 5},
    }
    limit = {"type": "tick", "thickness": 2, "size": 44, "color": BAR}
    limited = [{"filter": "datum.lower != null"}]
    return {
        "data": {"values": values},
        "padding": {"left": 24, "right": 12, "top": 6, "bottom": 4},
        "config": CONFIG,
        "width": {"step": 76},
        "height": 200,
        "layer": [
            {"mark": limit, "transform": limited, "encoding": {"x": x, "y": {**y, "field": "lower"}}},
            {"mark": limit, "transform": limited, "encoding": {"x": x, "y": {**y, "field": "upper"}}},
            {
                "mark": {"type": "tick", "thickness": 1, "size": 44, "color": SOFT},
                "transform": limited,
                "encoding": {"x": x, "y": {**y, "field": "centre"}},
            },
            {
                "mark": {"type": "line", "strokeWidth": 1.5, "color": SOFT},
                "encoding": {"x": x, "y": {**y, "field": "value"}},
            },
            {
                "mark": {"type": "circle", "size": 90, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "value"},
                    "color": {
                        "field": "state",
                        "type": "nominal",
                        "legend": None,
                        "scale": {"domain": ["inside", "outside"], "range": [JUDGE, BAR]},
                    },
                },
            },
        ],
    }


def described(rows: Rows, title: str) -> str:
    parts = []
    for row in rows:
        value = row["share"]["value"]
        if value is None:
            parts.append(_("{run} undefined").format(run=row["run"]))
        elif row["lower"] is None:
            parts.append(_("{run} {value:.1%}").format(run=row["run"], value=value))
        else:
            where = _("outside") if row["outside"] else _("inside")
            parts.append(
                _("{run} {value:.1%}, {where} {lower:.1%} to {upper:.1%}").format(
                    run=row["run"], value=value, where=where, lower=row["lower"], upper=row["upper"]
                )
            )
    return f"{title}: {'; '.join(parts)}"


def chart_csv(rows: Rows) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(
        ["run", "share", "low", "high", "hits", "n", "centre", "lower_limit", "upper_limit", "outside"]
    )
    for row in rows:
        share = row["share"]
        writer.writerow(
            [
                inert(row["run"]),
                *(share[key] for key in ("value", "low", "high", "numerator", "denominator")),
                *(row[key] for key in ("centre", "lower", "upper")),
                int(row["outside"]),
            ]
        )
    return out.getvalue()
