"""What a shape is: another tool's record, laid flat so that its columns can be mapped onto ours."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from evalsets.importing.cellvalues import object_in

HUMAN, JUDGE = "human", "judge"


@dataclass(frozen=True, slots=True)
class Said:
    """One label that a record holds: who gave it, to which question, in the tool's own words.

    Attributes
    ----------
    question : str
        What the tool calls the question, score, metric or assertion.
    value : object
        The label as it stood there; a list where the tool let several be chosen.
    kind : str
        `HUMAN` or `JUDGE`.
    name : str
        The grader or judge; empty where the tool does not say.
    """

    question: str
    value: object
    kind: str = HUMAN
    name: str = ""


@dataclass(frozen=True, slots=True)
class Flat:
    """A record with its values by column name, and what was said of it.

    Attributes
    ----------
    columns : dict
        Value by column.
    said : list of Said
        The labels of the record.
    told : list of str
        What reading it left out or took for granted, in words that follow a number: each is counted.
    """

    columns: dict[str, object]
    said: list[Said] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shape:
    """One tool's export.

    Attributes
    ----------
    name : str
        What `--format` calls it.
    title : str
        For people.
    recognise : callable
        Whether a record (its first one) looks like this tool's.
    flatten : callable
        The record's columns and labels; raises `BadValue` where they cannot be told apart.
    suggest : mapping
        Column to field, where the general rule of names would guess wrong or not at all.
    points_at : mapping
        In a file of labels: the column that names the response, item or claim.
    cannot_carry : tuple of str
        What this product keeps and the shape has no place for.
    lists : tuple of tuple of str
        Where the records are inside one JSON document, as keys from the outside in.
    beside : tuple of tuple of str
        Lists of such a document that are not read: what they hold is counted.
    """

    name: str
    title: str
    recognise: Callable[[Mapping[str, object]], bool]
    flatten: Callable[[Mapping[str, object]], Flat]
    suggest: Mapping[str, str] = field(default_factory=dict)
    points_at: Mapping[str, str] = field(default_factory=dict)
    cannot_carry: tuple[str, ...] = ()
    lists: tuple[tuple[str, ...], ...] = ()
    beside: tuple[tuple[str, ...], ...] = ()


def spread(value: object, prefix: str = "") -> dict[str, object]:
    """The parts of an object as `prefix.key` columns, and those of objects in it; anything else as it is."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    parts: dict[str, object] = {}
    for key, part in value.items():
        parts |= spread(part, f"{prefix}.{key}" if prefix else str(key))
    return parts


def with_objects(record: Mapping[str, object], columns: Collection[str]) -> dict[str, object]:
    """The record with the objects that these columns hold as text: as JSON, or as Python prints them."""
    return {column: object_in(value) if column in columns else value for column, value in record.items()}


def without(record: Mapping[str, object], names: Collection[str]) -> dict[str, object]:
    return {key: value for key, value in record.items() if key not in names}


def each(value: object) -> list[Mapping[str, object]]:
    """The objects of a list; nothing where it is no list."""
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """A name or id as text; empty where there is none."""
    return "" if value is None or isinstance(value, bool | list | dict) else str(value)
