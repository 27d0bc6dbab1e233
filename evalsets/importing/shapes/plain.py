"""A table with a header: a spreadsheet, or JSON objects that no tool's shape fits."""

from collections.abc import Mapping

from evalsets.importing.shapes.base import Flat, Shape, spread


def _flatten(record: Mapping[str, object]) -> Flat:
    return Flat(spread(record, ""))


SHAPE = Shape(
    name="table",
    title="a plain table",
    recognise=lambda _record: True,
    flatten=_flatten,
    cannot_carry=("what a column means: say it below",),
)
