"""What a cell or value of another tool's file can be here: texts, lists, truths, passages and claims."""

import ast
import io
import itertools
import json
import tokenize
from collections.abc import Callable

from evalsets.importing.findings import type_name
from evalsets.importing.mapping import LISTS, TEXTS
from evalsets.importing.strictjson import NotStrictJSON, parse

_TRUTH = {"true": True, "false": False, "yes": True, "no": False, "null": None, "": None}
_PASSAGE_TEXTS = ("text", "page_content", "content", "document.content", "chunk")
_PASSAGE_IDS = ("id", "document.id", "doc_id", "passage_id", "chunk_id")


class BadValue(Exception):
    """A value that cannot be what its column is mapped to; the message is one sentence."""


def said_text(value: object) -> str | None:
    """A label's text; None where it is no single value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value) if isinstance(value, str | int | float) else None


def name_in(value: object) -> str:
    """A person's name or number in a cell; empty where there is none."""
    return "" if value is None or isinstance(value, dict | list) else str(value).strip()


def text_in(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return said_text(value) or ""
    _refuse_conversation(value)
    raise BadValue(f"a text is expected, not {type_name(value)}")


def _question_in(value: object) -> str:
    """A text; a conversation is none, not even where a table holds it as one."""
    if isinstance(value, str) and value.lstrip().startswith("[{"):
        _refuse_conversation(list_in(value))
    return text_in(value)


def _refuse_conversation(value: object) -> None:
    if (
        isinstance(value, list)
        and value
        and all(isinstance(part, dict) and "content" in part for part in value)
    ):
        raise BadValue(f"a conversation of {len(value)} messages stands here; one text is expected")


def truth_in(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word not in _TRUTH:
        raise BadValue("true, false, yes, no or nothing is expected")
    return _TRUTH[word]


def _whole_number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    raise BadValue("a whole number is expected")


def list_in(value: object) -> list | None:
    """A list, or a list written as JSON or as Python prints it; None where it is neither."""
    if isinstance(value, list):
        return value
    if not isinstance(value, str) or not value.lstrip().startswith("["):
        return None
    try:
        found = parse(value)
    except NotStrictJSON:
        found = _as_python_prints(value.strip())
    if not isinstance(found, list) and value.lstrip().startswith(("['", '["')):
        raise BadValue("begins like a list of texts and cannot be read as one: it may be cut off")
    return found if isinstance(found, list) else None


def _as_python_prints(text: str) -> object:
    try:
        found = parse(json.dumps(ast.literal_eval(text)))  # as JSON: tuples are lists, sets are refused
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    # NumPy prints lists without commas; Python then reads neighbouring texts as one.
    if _has_neighbours(text):
        raise BadValue(
            "a list as NumPy prints it, without commas, cannot be told apart: save as JSON Lines or Parquet"
        )
    return found


def object_in(value: object) -> object:
    """The object that a text writes as JSON or as Python prints it; anything else as it is."""
    if not isinstance(value, str) or not value.startswith("{"):
        return value
    try:
        found = parse(value)
    except NotStrictJSON:
        found = _as_python_prints(value)
    return found if isinstance(found, dict) else value


def _has_neighbours(text: str) -> bool:
    tokens = [token.type for token in tokenize.generate_tokens(io.StringIO(text).readline)]
    kinds = [kind for kind in tokens if kind not in (tokenize.NL, tokenize.NEWLINE)]
    return any(one == other == tokenize.STRING for one, other in itertools.pairwise(kinds))


def texts_in(value: object) -> list[str]:
    parts = list_in(value)
    return [text_in(part) for part in ([value] if parts is None else parts)]


def passages_in(value: object, *, before: int = 0) -> list[dict]:
    """Those without an id are numbered, after as many as stood `before` them."""
    parts = list_in(value)
    parts = [value] if parts is None else parts
    return [_passage(part, number) for number, part in enumerate(parts, before + 1)]


def _passage(part: object, number: int) -> dict:
    if isinstance(part, str):
        return {"id": f"p{number}", "text": part}
    if not isinstance(part, dict):
        raise BadValue(
            f"passage {number}: a text or an object with a text is expected, not {type_name(part)}"
        )
    text = next((key for key in _PASSAGE_TEXTS if isinstance(part.get(key), str)), None)
    if text is None:
        raise BadValue(f"passage {number} has no text (looked for: {', '.join(_PASSAGE_TEXTS)})")
    name = next((key for key in _PASSAGE_IDS if part.get(key) not in (None, "")), None)
    made = {key: value for key, value in part.items() if key not in (text, name) and value is not None}
    for key in ("title", "document"):
        if made.get(key) is not None and not isinstance(made[key], str):
            made[f"{key}_given"] = made.pop(key)
    return {"id": text_in(part[name]) if name else f"p{number}", "text": part[text], **made}


def _claims(value: object) -> list[dict]:
    parts = list_in(value)
    if parts is None:
        raise BadValue(f"a list of claims is expected, not {type_name(value)}")
    return [{"text": part} if isinstance(part, str) else part for part in parts]


READERS: dict[str, Callable[[object], object]] = {
    **dict.fromkeys(TEXTS, text_in),
    **dict.fromkeys(LISTS, texts_in),
    "question": _question_in,
    "claims": _claims,
    "answerable": truth_in,
    "sample": _whole_number,
}
