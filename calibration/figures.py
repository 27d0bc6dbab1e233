"""Charts, drawn on the server: a Vega-Lite description in, SVG without scripts or style attributes out.

The colours are those of the light theme, so that a downloaded file looks right by itself; in a page, the
style sheet recognises them and puts the theme's own in their place.
"""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

INK, SOFT, LINE = "#1d1f23", "#596070", "#e0dcd2"
JUDGE, BAR = "#2b5a88", "#b02f1e"
FONT = "system-ui, sans-serif"
SPARE = {"grid": False, "domainColor": LINE, "tickColor": LINE, "labelColor": SOFT, "titleColor": SOFT}
CONFIG = {
    "background": None,
    "font": FONT,
    "aria": False,
    "view": {"stroke": None},
    "axis": {**SPARE, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
}


def ladder(rows: Iterable[dict[str, Any]], *, bar: float | None) -> dict[str, Any]:
    """Kappas on one scale, one row each with its interval; people in grey, the judge in the accent.

    Each row has `name`, `kind` (people or judge) and the number object `kappa`.
    """
    values = [
        {
            "name": row["name"],
            "kind": row["kind"],
            "value": row["kappa"]["value"],
            "low": row["kappa"]["low"],
            "high": row["kappa"]["high"],
        }
        for row in rows
        if row["kappa"]["value"] is not None
    ]
    lows = [value["low"] if value["low"] is not None else value["value"] for value in values]
    start = min([0.0, *(round(low - 0.1, 1) for low in lows)])
    scale = {"domain": [start, 1.0], "nice": False}
    x = {"type": "quantitative", "scale": scale, "title": "kappa", "axis": {"values": _ticks(start)}}
    layers: list[dict[str, Any]] = []
    if bar is not None:
        layers.append(
            {
                "data": {"values": [{"bar": bar}]},
                "mark": {"type": "rule", "color": BAR, "strokeDash": [4, 4]},
                "encoding": {"x": {**x, "field": "bar"}},
            }
        )
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    axis = {"labelColor": INK, "labelLimit": 190, "ticks": False, "domain": False, "labelPadding": 8}
    layers += [
        {
            "mark": {"type": "rule", "strokeWidth": 2, "color": INK},
            "encoding": {"y": {**y, "axis": axis}, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
        },
        {
            "mark": {"type": "circle", "size": 90, "opacity": 1},
            "encoding": {
                "y": {**y, "axis": axis},
                "x": {**x, "field": "value"},
                "color": {
                    "field": "kind",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"domain": ["people", "judge"], "range": [SOFT, JUDGE]},
                },
            },
        },
    ]
    return {
        "data": {"values": values},
        "width": 300,
        "height": {"step": 34},
        "config": CONFIG,
        "layer": layers,
    }


def _ticks(start: float) -> list[float]:
    first = round(start * 5) / 5
    return [round(first + 0.2 * step, 1) for step in range(round((1 - first) / 0.2) + 1)]


def described(rows: Iterable[dict[str, Any]], bar: float | None) -> str:
    """The ladder in words, for those who do not see it."""
    parts = []
    for row in rows:
        kappa = row["kappa"]
        if kappa["value"] is None:
            parts.append(f"{row['name']} undefined")
        elif kappa["low"] is None:
            parts.append(f"{row['name']} {kappa['value']:.2f}")
        else:
            parts.append(f"{row['name']} {kappa['value']:.2f} from {kappa['low']:.2f} to {kappa['high']:.2f}")
    if bar is not None:
        parts.append(f"bar at {bar:.2f}")
    return "; ".join(parts)


def inline_svg(spec: dict[str, Any], label: str) -> SafeString:
    """For a page: an image with a name, its size left to the style sheet."""
    drawn = svg(spec).replace(
        "<svg ", f'<svg role="img" aria-label="{escape(label)}" class="chart" focusable="false" ', 1
    )
    return mark_safe(drawn.replace(' class="marks"', "", 1))


def svg(spec: dict[str, Any]) -> str:
    return _svg(json.dumps(spec))


@lru_cache(maxsize=256)
def _svg(spec: str) -> str:
    import vl_convert

    return vl_convert.vegalite_to_svg(spec)


def png(spec: dict[str, Any]) -> bytes:
    import vl_convert

    return vl_convert.vegalite_to_png(json.dumps({**spec, "background": "white"}), scale=2)
