"""What changed between two contents of a rubric, as text: word by word where a text was rewritten.

Pure. Dimensions and labels are matched by name, cases by their response and claim, whatever their place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

SAME, ADDED, REMOVED, LEFT_OUT = "same", "added", "removed", "left_out"
Piece = tuple[str, str]  # one of the four, and the text; of what is left out, how many lines


@dataclass(frozen=True)
class Change:
    """One entry of a rubric that is not as it was: `where` names it from the outside in."""

    where: tuple[str, ...]
    kind: str  # added, removed, changed or moved
    pieces: tuple[Piece, ...] = ()


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    return [
        *_text(("decisions",), before["decisions"], after["decisions"]),
        *_text(("reference_based",), _yes_no(before["reference_based"]), _yes_no(after["reference_based"])),
        *_listed(("dimensions",), before["dimensions"], after["dimensions"], _name, _dimension),
        *_listed(("warm_up_cases",), before["warm_up_cases"], after["warm_up_cases"], _case_name, _case),
    ]


def words_changed(before: str, after: str) -> tuple[Piece, ...]:
    """The two texts as one, in pieces; unchanged lines further off are only counted."""
    old, new = before.splitlines(), after.splitlines()
    pieces: list[Piece] = []
    for operation, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if operation == "equal":
            pieces.append((LEFT_OUT, str(i2 - i1)))
        else:
            pieces += _words("\n".join(old[i1:i2]), "\n".join(new[j1:j2]))
    return tuple(pieces)


def _words(before: str, after: str) -> Iterator[Piece]:
    old, new = _tokens(before), _tokens(after)
    for operation, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if operation == "equal":
            yield SAME, "".join(old[i1:i2])
            continue
        if i2 > i1:
            yield REMOVED, "".join(old[i1:i2])
        if j2 > j1:
            yield ADDED, "".join(new[j1:j2])


def _tokens(text: str) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]", text)


def _text(where: tuple[str, ...], before: str, after: str) -> Iterator[Change]:
    if before != after:
        yield Change(where, "changed", words_changed(before, after))


def _listed(where, before: Sequence[Any], after: Sequence[Any], name_of, compare) -> Iterator[Change]:
    """Entries by name: gone, new, rewritten, or in another order."""
    old = {name_of(entry): entry for entry in before}
    new = {name_of(entry): entry for entry in after}
    for name, entry in old.items():
        if name not in new:
            yield Change((*where, name), "removed", ((REMOVED, _whole(entry)),))
    for name, entry in new.items():
        if name not in old:
            yield Change((*where, name), "added", ((ADDED, _whole(entry)),))
        else:
            yield from compare((*where, name), old[name], entry)
    stayed = [name for name in old if name in new]
    now = [name for name in new if name in old]
    if stayed != now:
        yield Change(where, "moved", ((REMOVED, ", ".join(stayed)), (ADDED, ", ".join(now))))


def _dimension(where, before, after) -> Iterator[Change]:
    for part in ("target", "question"):
        yield from _text((*where, part), before[part], after[part])
    yield from _text((*where, "asked_when"), _when(before), _when(after))
    yield from _listed((*where, "labels"), before["labels"], after["labels"], _name, _label)


def _label(where, before, after) -> Iterator[Change]:
    for part in ("key", "definition"):
        yield from _text((*where, part), before[part], after[part])
    for example in before["examples"]:
        if example not in after["examples"]:
            yield Change((*where, "example"), "removed", ((REMOVED, example),))
    for example in after["examples"]:
        if example not in before["examples"]:
            yield Change((*where, "example"), "added", ((ADDED, example),))


def _case(where, before, after) -> Iterator[Change]:
    for part in ("question", "label", "explanation"):
        yield from _text((*where, part), before[part], after[part])
    yield from _text((*where, "passages"), "\n".join(before["passages"]), "\n".join(after["passages"]))


def _name(entry) -> str:
    return entry["name"]


def _case_name(case) -> str:
    """Two cases may share a response; what is asked of which part of it tells them apart."""
    return f"{case['dimension']}: {case['claim'] or case['response']}"


def _when(dimension) -> str:
    when = dimension["asked_when"]
    return f"{when['dimension']}: {', '.join(when['labels'])}" if when else ""


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"


def _whole(entry: Mapping[str, Any]) -> str:
    """A dimension, a label or a case as lines of text."""
    lines = []
    for name, value in entry.items():
        if name == "labels":
            lines += [f"{label['key']} {label['name']}: {label['definition']}" for label in value]
        elif name == "asked_when":
            lines += [_when(entry)] if value else []
        elif isinstance(value, list):
            lines += value
        elif value and name != "name":
            lines.append(str(value))
    return "\n".join(lines)
