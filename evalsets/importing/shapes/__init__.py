"""Other tools' exports, one module a tool. The order is the order in which a file is tried."""

from evalsets.importing.shapes import (
    argilla,
    deepeval,
    label_studio,
    langfuse,
    langsmith,
    phoenix,
    plain,
    promptfoo,
    ragas,
)
from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape

__all__ = ["HUMAN", "JUDGE", "PLAIN", "SHAPES", "Flat", "Said", "Shape", "shape_of"]

PLAIN = plain.SHAPE
SHAPES = {
    module.SHAPE.name: module.SHAPE
    for module in (
        label_studio,
        argilla,
        promptfoo,
        langsmith,
        deepeval,
        langfuse,
        phoenix,
        ragas,
        plain,
    )
}


def shape_of(record: dict[str, object]) -> Shape:
    """The first shape that recognises a record; a plain table where none does."""
    return next(shape for shape in SHAPES.values() if shape.recognise(record))
