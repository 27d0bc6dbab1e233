"""JSON as the standard has it, and as both databases can store it."""

import json
import math
import re

from evalsets.importing.findings import shown

MAX_DEPTH = 64
_SPACE = " \t\r\n"
_LITERALS = ("true", "false", "null")
PASSAGE_TEXT = re.compile(r"(context)?\[\d+\]\.(text|title|document)")
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotStrictJSON(ValueError):
    """The text is not JSON, or holds something that cannot be stored.

    Attributes
    ----------
    where : str
        The place inside the value, such as ``claims[0].text``; empty when it is not known.
    value : str
        What stood there, shortened.
    """

    def __init__(self, message: str, where: str = "", value: str = ""):
        self.where, self.value = where, value
        super().__init__(message)


def parse(text: str, *, nul_allowed: re.Pattern | None = None) -> object:
    """The value of a JSON text.

    Parameters
    ----------
    text : str
        Without lone surrogates of its own (it was decoded from UTF-8).
    nul_allowed : pattern, optional
        Places (such as ``context[0].text``) where a NUL is let through.

    Returns
    -------
    object
        Only finite numbers, at most `MAX_DEPTH` levels, each key of an object once, no
        lone surrogate, and NUL only where it is allowed.

    Raises
    ------
    NotStrictJSON
        With the reason and, where it is known, the place.
    """
    try:
        value, finite = _decoded(text.strip(_SPACE))
    except RecursionError:
        raise NotStrictJSON(f"nested more than {MAX_DEPTH} levels deep") from None
    except json.JSONDecodeError as error:
        raise NotStrictJSON(_told(error, text), value=shown(text)) from None
    except NotStrictJSON:
        raise
    except ValueError as error:  # a whole number of thousands of digits
        raise NotStrictJSON(f"a number cannot be read: {error}") from None
    if text.count("[") + text.count("{") > MAX_DEPTH or "\\u" in text or not finite:
        refuse_unstorable(value, nul_allowed)
    return value


def _decoded(text: str) -> tuple[object, bool]:
    try:
        return _decoder.decode(text), True
    except _NotFinite:  # read it again, to find the place
        return json.loads(text), False


def _told(error: json.JSONDecodeError, text: str) -> str:
    rest = text.strip(_SPACE)[error.pos :]
    if any(word.startswith(rest) for word in _LITERALS) or error.msg.startswith("Unterminated string"):
        return f"not complete JSON: it is cut off ({error.msg}, column {error.colno})"
    return f"not JSON: {error.msg} (column {error.colno})"


def _object(pairs: list[tuple[str, object]]) -> dict:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise NotStrictJSON(f"the key {shown(key)!r} stands twice in one object", where=shown(key))
            seen.add(key)
    return made


class _NotFinite(Exception):
    """NaN, Infinity or a number too large to be told from it."""


def _refuse_constant(_name: str) -> object:
    raise _NotFinite


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _NotFinite
    return number


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite)


def refuse_unstorable(value: object, nul_allowed: re.Pattern | None = None) -> None:
    """Refuse what neither database can store, wherever in a value it is; parameters and errors as `parse`."""
    stack: list[tuple[str, object, int]] = [("", value, 1)]
    while stack:
        where, found, depth = stack.pop()
        if isinstance(found, str):
            may_hold_nul = nul_allowed is not None and nul_allowed.fullmatch(where)
            refuse_unstorable_text(found.replace("\0", "") if may_hold_nul else found, where)
        elif isinstance(found, float) and not math.isfinite(found):
            raise NotStrictJSON("not a JSON number: NaN, Infinity or too large", shown(where), shown(found))
        elif isinstance(found, dict | list):
            if depth > MAX_DEPTH:
                raise NotStrictJSON(f"nested more than {MAX_DEPTH} levels deep", shown(where))
            if isinstance(found, dict):
                for key in found:
                    refuse_unstorable_text(key, where or "a key")
                prefix = f"{where}." if where else ""
                stack += [(prefix + key, part, depth + 1) for key, part in found.items()]
            else:
                stack += [(f"{where}[{index}]", part, depth + 1) for index, part in enumerate(found)]


def refuse_unstorable_text(text: str, where: str) -> None:
    """NUL cannot be stored by PostgreSQL, a lone surrogate cannot be encoded at all.

    Raises
    ------
    NotStrictJSON
        With the position, in code points from 1.
    """
    if "\0" in text:
        raise NotStrictJSON(
            f"holds a NUL character (character {text.index(chr(0)) + 1}), which cannot be stored",
            where,
            shown(text),
        )
    if not text.isascii() and (found := _SURROGATE.search(text)):
        raise NotStrictJSON(
            f"holds half a surrogate pair (character {found.start() + 1}), which is not text",
            where,
            shown(text),
        )
