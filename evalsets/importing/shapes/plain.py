"""A table with a header: a spreadsheet, or JSON objects that no tool's shape fits."""

from evalsets.importing.shapes.base import Flat, Shape, spread

SHAPE = Shape(
    name="table",
    title="a plain table",
    recognise=lambda _record: True,
    flatten=lambda record: Flat(spread(record)),
    cannot_carry=("what a column means: say it below",),
)
