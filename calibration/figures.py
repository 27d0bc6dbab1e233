"""Charts, drawn on the server: a Vega-Lite description in, SVG without scripts or style attributes out.

The colours are those of the light theme, so that a downloaded file looks right by itself; in a page, the
style sheet recognises them and puts the theme's own in their place.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from django.http import Http404
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from calibration.levers import Sweep
from evalsets.inert import inert

INK, SOFT, LINE = "#1d1f23", "#596070", "#e0dcd2"
JUDGE, BAR = "#2b5a88", "#b02f1e"
FONT = "system-ui, sans-serif"
# Shades of a confusion table: both said the same, and they did not; the style sheet knows these as well.
SAME = ("#f6f8fa", "#e2e9f0", "#c9d7e4", "#aabfd4")
APART = ("#fdf5f3", "#f6dcd7", "#eec1b8", "#e5a396")
SPARE = {"grid": False, "domainColor": LINE, "tickColor": LINE, "labelColor": SOFT, "titleColor": SOFT}
CONFIG = {
    "background": None,
    "font": FONT,
    "aria": False,
    "view": {"stroke": None},
    "axis": {**SPARE, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
}


def ladder(rows: Iterable[dict[str, Any]], *, bar: float | None) -> dict[str, Any]:
    """Kappas on one scale, one row each with its interval; people in grey, a judge or a label in the accent.

    Each row has `name`, `kind` (people, label or judge) and the number object `kappa`.
    """
    values = _interval_values(rows, "kappa")
    lows = [value["low"] if value["low"] is not None else value["value"] for value in values]
    start = min([0.0, *(round(low - 0.1, 1) for low in lows)])
    x = {
        "type": "quantitative",
        "scale": {"domain": [start, 1.0], "nice": False},
        "title": "kappa",
        "axis": {"values": _ticks(start)},
    }
    return _intervals(values, x, bar)


def share_ladder(rows: Iterable[dict[str, Any]], *, title: str) -> dict[str, Any]:
    """Shares of one kind in one unit, one row each with its interval: `name`, `kind` and `share`."""
    values = _interval_values(rows, "share")
    scale = {"domain": [0, _upper(value[key] for value in values for key in ("high", "value"))]}
    axis = {"format": ".0%", "grid": True, "gridColor": LINE, "tickCount": 5}
    return _intervals(values, {"type": "quantitative", "scale": scale, "title": title, "axis": axis}, None)


def _upper(values: Iterable[float | None]) -> float:
    """The end of an axis of shares: the next tenth above everything on it."""
    highest = max((value for value in values if value is not None), default=1.0)
    return min(1.0, max(1, math.ceil(highest * 10 - 1e-9)) / 10)


def _interval_values(rows: Iterable[dict[str, Any]], field: str) -> list[dict[str, Any]]:
    return [
        {
            "name": row["name"],
            "kind": row["kind"],
            **{key: row[field][key] for key in ("value", "low", "high")},
        }
        for row in rows
        if row[field]["value"] is not None
    ]


def _intervals(values: list[dict[str, Any]], x: dict[str, Any], bar: float | None) -> dict[str, Any]:
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
                    "scale": {"domain": ["people", "label", "judge"], "range": [SOFT, JUDGE, JUDGE]},
                },
            },
        },
    ]
    return {**_chart(values, 300), "height": {"step": 34}, "layer": layers}


def _ticks(start: float) -> list[float]:
    first = round(start * 5) / 5
    return [round(first + 0.2 * step, 1) for step in range(round((1 - first) / 0.2) + 1)]


NAMED = 8  # more systems than these get a number in the plot instead of their name


def pair_plot(systems: Iterable[dict[str, Any]], sweeps: Iterable[Sweep] = ()) -> dict[str, Any]:
    """Over-answering against over-refusal, one point a system with both intervals; better is lower left.

    Systems that differ in one setting alone are connected in the order of its values.
    """
    values = _pair_values(list(systems))
    place = {value["system"]: value for value in values}
    for value in values:
        value["mark"] = str(value["number"]) if len(values) > NAMED else value["system"]
    steps = []
    for line, sweep in enumerate(sweeps):
        for order, (system, setting) in enumerate(sweep.steps):
            if system in place:
                steps.append({**place[system], "line": line, "order": order})
                if len(values) <= NAMED:
                    place[system]["mark"] = f"{sweep.lever} {setting}"
    end = _upper(value[key] for value in values for key in ("answering_high", "refusal_high"))
    scale = {"domain": [0, end], "nice": False}
    percent = {"format": ".0%", "grid": True, "gridColor": LINE, "tickCount": 5}
    x = {"type": "quantitative", "scale": scale, "axis": percent, "title": _("over-answering")}
    y = {"type": "quantitative", "scale": scale, "axis": percent, "title": _("over-refusal")}
    middle = {"x": {**x, "field": "answering_value"}, "y": {**y, "field": "refusal_value"}}
    rule = {"type": "rule", "strokeWidth": 1.5, "color": SOFT}
    spec = _chart(values, 300)
    spec["height"] = 300
    trade = {
        "data": {"values": steps},
        "mark": {"type": "line", "color": JUDGE, "strokeWidth": 1.5},
        "encoding": {
            **middle,
            "detail": {"field": "line", "type": "nominal"},
            "order": {"field": "order", "type": "quantitative"},
        },
    }
    spec["layer"] = [
        {
            "mark": rule,
            "encoding": {**middle, "x": {**x, "field": "answering_low"}, "x2": {"field": "answering_high"}},
        },
        {
            "mark": rule,
            "encoding": {**middle, "y": {**y, "field": "refusal_low"}, "y2": {"field": "refusal_high"}},
        },
        *([trade] if steps else []),
        {"mark": {"type": "circle", "size": 90, "opacity": 1, "color": JUDGE}, "encoding": middle},
        {
            "mark": {
                "type": "text",
                "align": "left",
                "dx": 8,
                "dy": -8,
                "color": INK,
                "fontSize": 12,
                "limit": 180,
            },
            "encoding": {**middle, "text": {"field": "mark"}},
        },
    ]
    return spec


def _pair_values(systems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The systems that have both halves; the number is that of the row in the table beside the plot."""
    halves = {"answering": "over_answering", "refusal": "over_refusal"}
    return [
        {"system": entry["system"], "number": number}
        | {
            f"{half}_{key}": entry["abstention"][rate][key]
            for half, rate in halves.items()
            for key in ("value", "low", "high")
        }
        for number, entry in enumerate(systems, 1)
        if is_pair(entry)
    ]


def pair_csv(systems: Iterable[dict[str, Any]], settings: Mapping[str, str]) -> str:
    """Both rates of every system, its settings beside them; where there is no number, the reason."""
    out = io.StringIO()
    writer = csv.writer(out)
    parts = ("value", "low", "high", "numerator", "denominator", "undefined")
    rates = ("over_answering", "over_refusal")
    writer.writerow(["system", "settings", *(f"{rate}_{part}" for rate in rates for part in parts)])
    for entry in systems:
        abstention = entry.get("abstention", {})
        nothing = {"undefined": "withheld"} if "withheld" in abstention else {}
        cells = [abstention.get(rate, nothing).get(part, "") for rate in rates for part in parts]
        writer.writerow([inert(entry["system"]), inert(settings.get(entry["system"], "")), *cells])
    return out.getvalue()


def share_rows(groups: Iterable[dict[str, Any]], rate: str) -> list[dict[str, Any]]:
    """Rows for `share_ladder`: one rate of every group of which it is asked, undefined or not."""
    return [
        {"name": f"{group['name']}: {group['value']}", "kind": "people", "share": number, "n": number["n"]}
        for group in groups
        if (number := rate_of(group, rate)) is not None
    ]


def drawn_rows(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the rows that a picture has a place for: an undefined share stands in the CSV only."""
    return [row for row in rows if row["share"]["value"] is not None]


def people_rows(compared: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for `share_ladder`: of each system what people say, and under it what the judge says."""
    rows = []
    for entry in compared:
        for kind, words in (("people", _("people")), ("judge", _("judge"))):
            rows.append({"name": f"{entry['system']} · {words}", "kind": kind, "share": entry[kind]})
    return rows


def rate_of(figures: dict[str, Any], rate: str) -> dict[str, Any] | None:
    """A rate by its name, wherever it stands: of claims, or within abstention; None where it is withheld."""
    abstention = figures.get("abstention") or {}
    found = figures.get(rate) if rate in figures else abstention.get(rate)
    return found if found and "withheld" not in found else None


def shares_described(rows: Iterable[dict[str, Any]]) -> str:
    """The shares in words, for those who do not see the picture."""
    return "; ".join(
        f"{row['name']} {row['share']['value']:.1%}"
        + ("" if row["share"]["low"] is None else f", {row['share']['low']:.1%} – {row['share']['high']:.1%}")
        for row in rows
        if row["share"]["value"] is not None
    )


def share_csv(rows: Iterable[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    parts = ("value", "low", "high", "numerator", "denominator", "n", "clusters")
    writer.writerow(["name", "rate", "unit", *parts, "undefined"])
    for row in rows:
        share = row["share"]
        cells = [share.get(part, "") for part in parts]
        undefined = share.get("undefined", "")
        writer.writerow([inert(row["name"]), inert(share["label"]), share["unit"], *cells, undefined])
    return out.getvalue()


def power_curve(rate: dict[str, Any]) -> dict[str, Any]:
    """The smallest difference a set of so many items shows with power .8; the dot is this set."""
    values = [{**point, "points": 100 * point["difference"]} for point in rate["curve"]]
    here = [value for value in values if value["items"] == rate["items"]]
    axis = {"grid": True, "gridColor": LINE, "tickCount": 5}
    x = {
        "field": "items",
        "type": "quantitative",
        "scale": {"type": "log"},
        "title": _("items"),
        "axis": {**axis, "values": [30, 100, 300, 1000, 5000], "format": "d"},
    }
    y = {"field": "points", "type": "quantitative", "title": _("points of a percentage"), "axis": axis}
    encoding = {"x": x, "y": y}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "line", "color": JUDGE, "strokeWidth": 1.5}, "encoding": encoding},
        {
            "data": {"values": here},
            "mark": {"type": "circle", "size": 90, "opacity": 1, "color": JUDGE},
            "encoding": encoding,
        },
    ]
    if (seen := rate["difference"]["value"]) is not None:
        layers.append(
            {
                "data": {"values": [{"points": abs(100 * seen)}]},
                "mark": {"type": "rule", "color": BAR, "strokeDash": [4, 4]},
                "encoding": {"y": y},
            }
        )
    return {**_chart(values, 300), "height": 180, "layer": layers}


def power_described(rate: dict[str, Any]) -> str:
    return "; ".join(
        _("{n} items: {points:.1f} points").format(n=point["items"], points=100 * point["difference"])
        for point in rate["curve"]
    )


def power_csv(rate: dict[str, Any]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["rate", "unit", "items", "difference"])
    for point in rate["curve"]:
        writer.writerow([inert(rate["label"]), rate["unit"], point["items"], point["difference"]])
    return out.getvalue()


def heat_map(confusion: dict[str, Any]) -> dict[str, Any]:
    """A confusion table as a picture: one shade where both said the same, another where they did not.

    A disagreement is shaded by its share of all disagreements, so that the costly ones are seen at once.
    """
    labels, table = confusion["labels"], confusion["table"]
    together = sum(table[place][place] for place in range(len(labels)))
    apart = sum(map(sum, table)) - together
    values = [
        {
            "row": row,
            "column": column,
            "n": table[i][j],
            "shade": _shade(table[i][j], together if i == j else apart, SAME if i == j else APART),
        }
        for i, row in enumerate(labels)
        for j, column in enumerate(labels)
    ]
    shades = ["none", *SAME, *APART]
    axis = {"labelColor": INK, "labelLimit": 130, "ticks": False, "domain": False, "labelAngle": 0}
    x = {
        "field": "column",
        "type": "nominal",
        "sort": labels,
        "title": confusion["columns"],
        "axis": {**axis, "orient": "top"},
    }
    y = {"field": "row", "type": "nominal", "sort": labels, "title": confusion["rows"], "axis": axis}
    spec = _chart(values, 96 * len(labels))
    spec["height"] = 46 * len(labels)
    spec["layer"] = [
        {
            "mark": {"type": "rect", "stroke": LINE},
            "encoding": {
                "x": x,
                "y": y,
                "color": {
                    "field": "shade",
                    "type": "nominal",
                    "legend": None,
                    "scale": {"domain": shades, "range": ["transparent", *SAME, *APART]},
                },
            },
        },
        {
            "mark": {"type": "text", "color": INK, "fontSize": 14},
            "encoding": {"x": x, "y": y, "text": {"field": "n"}},
        },
    ]
    return spec


def _shade(count: int, whole: int, shades: tuple[str, ...]) -> str:
    if not count or not whole:
        return "none"
    share = count / whole
    return shades[3 if share >= 0.4 else 2 if share >= 0.2 else 1 if share >= 0.08 else 0]


def confusion_described(confusion: dict[str, Any]) -> str:
    """The picture in words: what both said, and the disagreements, the most frequent first."""
    labels, table = confusion["labels"], confusion["table"]
    same = ", ".join(f"{label} {table[i][i]}" for i, label in enumerate(labels))
    apart = sorted(
        (
            (table[i][j], row, column)
            for i, row in enumerate(labels)
            for j, column in enumerate(labels)
            if i != j and table[i][j]
        ),
        key=lambda cell: -cell[0],
    )
    differ = "; ".join(
        _("{row} by {rows} and {column} by {columns}: {n}").format(
            row=row, column=column, n=n, rows=confusion["rows"], columns=confusion["columns"]
        )
        for n, row, column in apart
    )
    return _("Same label: {same}. Different: {differ}.").format(same=same, differ=differ or _("nowhere"))


def confusion_csv(confusion: dict[str, Any]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(
        [inert(f"{confusion['rows']} / {confusion['columns']}"), *map(inert, confusion["labels"])]
    )
    for label, counts in zip(confusion["labels"], confusion["table"], strict=True):
        writer.writerow([inert(label), *counts])
    return out.getvalue()


def agreement_rows(agreement: dict[str, Any], *, shown: int | None = None) -> list[dict[str, Any]]:
    """Agreement as a whole, then of each label, pair of graders, system and stratum, on one scale.

    Of pairs, systems and strata the `shown` with the most targets: a picture has room for no more.
    """
    measure = agreement["headline"]["measure"]
    rows = [_rung(_("all"), "people", agreement["headline"]["number"])]
    rows += [
        _rung(entry["label"], "label", entry.get("kappa") or entry["krippendorff_alpha"])
        for entry in agreement["per_label"]
    ]
    if len(agreement["graders"]) > 2:
        pairs = sorted(agreement["pairs"], key=lambda pair: -pair["n"])[:shown]
        rows += [_rung(f"{pair['a']} · {pair['b']}", "people", pair["cohen_kappa"]) for pair in pairs]
    systems, strata = agreement["per_system"], agreement["per_stratum"]
    if len(systems) > 1:
        rows += [
            _rung(_("system {name}").format(name=group["value"]), "people", group[measure])
            for group in sorted(systems, key=lambda group: -group["n"])[:shown]
        ]
    largest = sorted(strata, key=lambda group: -group["n"])[:shown]
    rows += [_rung(f"{group['name']}: {group['value']}", "people", group[measure]) for group in largest]
    return rows


def is_pair(entry: dict[str, Any]) -> bool:
    """Whether a system has both halves of the pair, and neither is withheld."""
    abstention = entry.get("abstention", {})
    return all(
        abstention.get(name, {}).get("value") is not None for name in ("over_answering", "over_refusal")
    )


def pairs_described(systems: Iterable[dict[str, Any]]) -> str:
    return "; ".join(
        f"{entry['system']}: over-answering {entry['abstention']['over_answering']['value']:.0%}, "
        f"over-refusal {entry['abstention']['over_refusal']['value']:.0%}"
        for entry in systems
    )


def _chart(values: list[dict[str, Any]], width: int) -> dict[str, Any]:
    # Names may be wider than in the fonts measured here.
    padding = {"left": 24, "right": 12, "top": 6, "bottom": 4}
    return {"data": {"values": values}, "padding": padding, "width": width, "config": CONFIG}


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


# Vega gives some groups of marks a role without a name, whatever it was told of ARIA.
NAMELESS = re.compile(r'(<g [^>]*?) role="graphics-\w+" aria-roledescription="[^"]*"')


def inline_svg(spec: dict[str, Any], label: str) -> SafeString:
    """For a page: an image with a name, its size left to the style sheet."""
    drawn = NAMELESS.sub(r"\1", svg(spec)).replace(
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


def as_file(spec: dict[str, Any], numbers: str, kind: str) -> tuple[str | bytes, str]:
    """A picture as SVG or PNG, or its numbers as CSV, with the content type; 404 for another kind."""
    if kind == "svg":
        return svg(spec), "image/svg+xml"
    if kind == "png":
        return png(spec), "image/png"
    if kind == "csv":
        return numbers, "text/csv; charset=utf-8"
    raise Http404


def ladder_rows(agreement: dict[str, Any], *, graders_shown: int = 6) -> list[dict[str, Any]]:
    """The graders among themselves, then the judge with each of them, then the judge with gold."""
    people = [pair for pair in agreement["pairs"] if pair["b_kind"] == "grader"]
    with_judge = [pair for pair in agreement["pairs"] if pair["b_kind"] == "judge"]
    graders = sorted((pair for pair in with_judge if pair["a_kind"] == "grader"), key=lambda pair: -pair["n"])
    rows = []
    if len(people) == 1:
        pair = people[0]
        rows.append(_rung(f"{pair['a']} and {pair['b']}", "people", pair["cohen_kappa"]))
    elif people:
        rows.append(_rung(_("all graders (alpha)"), "people", agreement["krippendorff_alpha"]))
    rows += [
        _rung(_("judge and {name}").format(name=pair["a"]), "judge", pair["cohen_kappa"])
        for pair in graders[:graders_shown]
    ]
    rows += [
        _rung(_("judge and gold"), "judge", pair["cohen_kappa"])
        for pair in with_judge
        if pair["a_kind"] == "gold"
    ]
    return rows


def ladder_csv(rows: Iterable[dict[str, Any]]) -> str:
    """The numbers of the ladder; names that a spreadsheet would run are made inert."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["between", "kind", "kappa", "low", "high", "n", "items", "undefined"])
    for row in rows:
        kappa = row["kappa"]
        numbers = [kappa[key] for key in ("value", "low", "high", "n", "clusters")]
        writer.writerow([inert(row["name"]), row["kind"], *numbers, kappa.get("undefined", "")])
    return out.getvalue()


def _rung(name: str, kind: str, kappa: dict[str, Any]) -> dict[str, Any]:
    return {"name": str(name), "kind": kind, "kappa": kappa}
