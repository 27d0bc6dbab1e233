"""From the fields of one line to records."""

from collections.abc import Iterable, Mapping

from evalsets.hashing import fingerprint
from evalsets.importing.findings import Findings, shown, type_name
from evalsets.importing.jsonl import Row
from evalsets.importing.records import (
    ITEM_FIELDS,
    ClaimRecord,
    ItemRecord,
    LineRecord,
    PassageRecord,
    ResponseRecord,
    SystemRecord,
)
from evalsets.labels import ABSTENTION, GROUNDING, UNANSWERABLE_REASONS
from evalsets.text import is_blank

LONGEST_ID = 500
LONGEST_NAME = 200
LARGEST_SAMPLE = 2_000_000_000
NUL_SHOWN, NUL_PLACES = "\u2400", "nul_at"
KEPT_WHOLE = ("source_dataset", "source_ref", "original", "meta")
KNOWN_FIELDS = (
    "id",
    "item_id",
    *ITEM_FIELDS,
    "stratum",
    "item_extra",
    "context",
    "response",
    "system",
    "run",
    "retrieval_query",
    "sample",
    "claims",
    "response_labels",
    "response_judge_labels",
    *KEPT_WHOLE,
)
_OF_RESPONSE = ("context", "system", "run", "retrieval_query", "sample")
_SYSTEM_TEXTS = {"name": 300, "model": 300, "provider": 300, "family": 300, "date": 100}
_SYSTEM_KEYS = {*_SYSTEM_TEXTS, "settings"}
_PASSAGE_TEXTS = ("text", "title", "document")
_PASSAGE_KEYS = {"id", *_PASSAGE_TEXTS}
_CLAIM_KEYS = {"id", "text", "source_ids", "decision", "human_labels", "judge_labels", "original", "meta"}


class Line:
    """The problems of one line; `bad` once there is one."""

    def __init__(self, number: int, findings: Findings):
        self.number, self.findings, self.bad = number, findings, False

    def problem(self, where: str, message: str, *value: object) -> None:
        self.bad = True
        self.findings.problem(self.number, where, message, *value)

    def notice(self, text: str) -> None:
        self.findings.notice(text, self.number)


def record_of(row: Row, findings: Findings, *, items_known: bool = False) -> LineRecord | None:
    """The checked record of one line, or None when the line has problems.

    Parameters
    ----------
    row : Row
        The fields as they stood in the file.
    findings : Findings
        Gets every problem of the line (not the first one only) and the notices.
    items_known : bool
        True when the items are frozen already: the line then need not repeat their fields, but must have a
        response.

    Returns
    -------
    LineRecord or None
        `None` never stands for an empty line: those are skipped earlier.
    """
    line, fields = Line(row.line, findings), row.fields
    if fields.get("context"):
        fields = fields | {"context": _with_visible_nul(line, fields["context"])}
    identifier = identifier_of(line, "id", fields.get("id"), "id" in fields)
    has_response = "response" in fields
    item_id = identifier
    if fields.get("item_id") is not None:
        item_id = identifier_of(line, "item_id", fields["item_id"], True)
    meta = _meta(line, fields)
    if has_response:
        extra = _object(line, "item_extra", fields.get("item_extra"))
        item = _item(line, fields, item_id, extra, items_known)
        response = _response(line, fields, identifier, meta)
    else:
        _refuse_what_needs_a_response(line, fields, identifier, item_id, items_known)
        kept = {key: fields[key] for key in (*_OF_RESPONSE, *KEPT_WHOLE[:-1]) if key in fields}
        item = _item(line, fields, item_id, kept | meta, items_known)
        response = None
    return None if line.bad else LineRecord(row.line, row.size, item, response)


def identifier_of(line: Line, where: str, value: object, present: bool = True) -> str:
    if not present:
        line.problem(where, "missing; it is required")
    elif not isinstance(value, str):
        line.problem(where, f"a string is expected, not {type_name(value)}", value)
    elif is_blank(value):
        line.problem(where, "empty; an id is required", value)
    elif value != value.strip():
        line.problem(where, "has white space around it; ids are compared exactly", repr(value))
    elif len(value) > LONGEST_ID:
        line.problem(where, f"longer than {LONGEST_ID} characters", value)
    else:
        return value
    return ""


def _text(line: Line, where: str, value: object, *, longest: int | None = None) -> str | None:
    if value is None or isinstance(value, str):
        if longest and value and len(value) > longest:
            line.problem(where, f"longer than {longest} characters", value)
        return value
    line.problem(where, f"a string is expected, not {type_name(value)}", value)
    return None


def _truth(line: Line, where: str, value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    line.problem(where, f"true, false or null is expected, not {type_name(value)}", value)
    return None


def _object(line: Line, where: str, value: object) -> dict:
    if value is None or isinstance(value, dict):
        return value or {}
    line.problem(where, f"an object is expected, not {type_name(value)}", value)
    return {}


def _list(line: Line, where: str, value: object) -> list:
    if value is None or isinstance(value, list):
        return value or []
    line.problem(where, f"a list is expected, not {type_name(value)}", value)
    return []


def _texts(line: Line, where: str, value: object) -> list[str] | None:
    if value is None:
        return None
    texts = _list(line, where, value)
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            line.problem(f"{where}[{index}]", f"a string is expected, not {type_name(text)}", text)
    return texts


def _whole_number(line: Line, where: str, value: object) -> int:
    if value is None:
        return 1
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= LARGEST_SAMPLE:
        return value
    line.problem(where, "a whole number from 1 is expected", value)
    return 1


def _meta(line: Line, fields: Mapping[str, object]) -> dict:
    """`meta` as given, with the keys that nobody knows added; empty when there is neither."""
    unknown = {key: value for key, value in fields.items() if key not in KNOWN_FIELDS}
    for key in unknown:
        line.notice(f'The key "{shown(key)}" is not known; it is kept in "meta".')
    if not unknown:
        return {"meta": fields["meta"]} if "meta" in fields else {}
    given = _object(line, "meta", fields.get("meta"))
    for key in unknown.keys() & given.keys():
        line.problem("meta", f"has a key {shown(key)!r} already, and there is one beside it", given[key])
    return {"meta": given | unknown}


def _item(line: Line, fields: Mapping[str, object], item_id: str, extra: dict, known: bool) -> ItemRecord:
    if "question" not in fields and not known:
        line.problem("question", "missing; null says that the prompt is not known")
    question = _text(line, "question", fields.get("question"))
    if question is None and "question" in fields:
        line.notice("The question is null: the prompt is not known.")
    stated = {name for name in ITEM_FIELDS if name in fields}
    if "stratum" in fields:
        stated.add("strata")
    if "item_extra" in fields:
        stated.add("extra")
    answerable = _truth(line, "answerable", fields.get("answerable"))
    variant_of = fields.get("variant_of")
    return ItemRecord(
        item_id=item_id,
        question=question,
        strata=_strata(line, fields),
        answerable=answerable,
        unanswerable_reason=_reason(line, fields.get("unanswerable_reason"), fields.get("answerable")),
        reference_answer=_text(line, "reference_answer", fields.get("reference_answer")),
        expected_documents=_texts(line, "expected_documents", fields.get("expected_documents")),
        expected_passages=_texts(line, "expected_passages", fields.get("expected_passages")),
        variant_of="" if variant_of is None else identifier_of(line, "variant_of", variant_of),
        extra=extra,
        stated=frozenset(stated),
    )


def _strata(line: Line, fields: Mapping[str, object]) -> dict[str, str]:
    strata = dict(_object(line, "strata", fields.get("strata")))
    for name, value in strata.items():
        if not isinstance(value, str):
            line.problem(f"strata.{name}", f"a string is expected, not {type_name(value)}", value)
        if is_blank(name):
            line.problem("strata", "a stratum has no name", strata)
    stratum = _text(line, "stratum", fields.get("stratum"))
    if stratum is not None and strata.setdefault("stratum", stratum) != stratum:
        line.problem("stratum", "differs from strata.stratum", stratum)
    return strata


def _reason(line: Line, reason: object, answerable: object) -> str:
    if reason is None:
        return ""
    if not isinstance(reason, str) or reason not in UNANSWERABLE_REASONS:
        allowed = ", ".join(UNANSWERABLE_REASONS)
        line.problem("unanswerable_reason", f"one of {allowed} or null is expected", reason)
    elif answerable is not False:
        line.problem("unanswerable_reason", "only allowed where answerable is false", reason)
    else:
        return reason
    return ""


def _refuse_what_needs_a_response(
    line: Line, fields: Mapping[str, object], identifier: str, item_id: str, items_known: bool
) -> None:
    if items_known:
        line.problem("response", "missing; this import adds responses only")
    if item_id != identifier:
        line.problem("item_id", "differs from id, but without a response the id is the item's", item_id)
    if "item_extra" in fields:
        line.problem("item_extra", "only allowed beside a response", fields["item_extra"])
    for key in ("claims", "response_labels", "response_judge_labels"):
        if fields.get(key):
            line.problem(key, "not allowed where there is no response", fields[key])
    _passages(line, fields.get("context"))
    system_of(line, fields.get("system"), 1)
    _whole_number(line, "sample", fields.get("sample"))
    _whole_number(line, "run", fields.get("run"))
    _text(line, "retrieval_query", fields.get("retrieval_query"))


def _response(line: Line, fields: Mapping[str, object], identifier: str, meta: dict) -> ResponseRecord:
    text = _text(line, "response", fields["response"])
    if fields["response"] is None:
        line.notice("The response is null; it is stored as an empty response.")
    passages = _passages(line, fields.get("context"))
    claims = _claims(line, fields.get("claims"), {passage.passage_id for passage in passages})
    human = _labels(line, "response_labels", fields.get("response_labels"), ABSTENTION)
    judge = _labels(line, "response_judge_labels", fields.get("response_judge_labels"), ABSTENTION)
    if is_blank(text or "") and (human or judge):
        line.notice("Labels of an empty response were left out: it is recorded as EMPTY, not labelled.")
        human, judge = {}, {}
    return ResponseRecord(
        response_id=identifier,
        text=text or "",
        system=system_of(line, fields.get("system"), _whole_number(line, "run", fields.get("run"))),
        sample=_whole_number(line, "sample", fields.get("sample")),
        retrieval_query=_text(line, "retrieval_query", fields.get("retrieval_query")),
        passages=passages,
        claims=claims,
        extra={key: fields[key] for key in KEPT_WHOLE[:-1] if key in fields} | meta,
        human_labels=human,
        judge_labels=judge,
    )


def system_of(line: Line, value: object, run: int) -> SystemRecord:
    given = _object(line, "system", value)
    for key, longest in _SYSTEM_TEXTS.items():
        _text(line, f"system.{key}", given.get(key), longest=longest)
    _object(line, "system.settings", given.get("settings"))
    for key in [key for key in given if key not in _SYSTEM_KEYS]:
        line.notice(f'The key "system.{shown(key)}" is not known; it is kept with the system.')
    return SystemRecord(given=given, fingerprint=fingerprint(given), run=run)


def _passages(line: Line, value: object) -> list[PassageRecord]:
    passages: list[PassageRecord] = []
    seen: set[str] = set()
    for index, given in enumerate(_list(line, "context", value)):
        where = f"context[{index}]"
        if not isinstance(given, dict):
            line.problem(where, f"an object with id and text is expected, not {type_name(given)}", given)
            continue
        passage_id = identifier_of(line, f"{where}.id", given.get("id"), "id" in given)
        if passage_id and passage_id in seen:
            line.problem(f"{where}.id", f"the passage id {shown(passage_id)!r} stands twice", passage_id)
        seen.add(passage_id)
        passages.append(
            PassageRecord(
                passage_id=passage_id,
                text=_required_text(line, f"{where}.text", given),
                title=_text(line, f"{where}.title", given.get("title")),
                document=_text(line, f"{where}.document", given.get("document")),
                extra=_unknown(line, "context", given, _PASSAGE_KEYS),
            )
        )
    return passages


def _with_visible_nul(line: Line, context: object) -> object:
    """The passages with each NUL shown as U+2400 and its places kept, since no database column can hold it.

    Passages are other people's text, as served, and NUL does occur in them; `restored` gives it back.
    """
    if not isinstance(context, list):
        return context
    return [
        _marked(line, index, given) if isinstance(given, dict) else given
        for index, given in enumerate(context)
    ]


def _marked(line: Line, index: int, given: dict) -> dict:
    if NUL_PLACES in given:
        line.problem(f"context[{index}].{NUL_PLACES}", "this key is kept for our own use", given[NUL_PLACES])
    places = {
        key: [place for place, character in enumerate(given[key]) if character == "\0"]
        for key in _PASSAGE_TEXTS
        if isinstance(given.get(key), str) and "\0" in given[key]
    }
    if not places:
        return given
    line.notice(
        "A passage holds NUL characters, which cannot be stored: shown as \u2400, exported as they were."
    )
    return given | {key: given[key].replace("\0", NUL_SHOWN) for key in places} | {NUL_PLACES: places}


def restored(passage: dict) -> dict:
    """The passage as the file had it, from what `_with_visible_nul` made of it."""
    whole = {key: value for key, value in passage.items() if key != NUL_PLACES}
    for key, places in passage.get(NUL_PLACES, {}).items():
        characters = list(whole[key])
        for place in places:
            characters[place] = "\0"
        whole[key] = "".join(characters)
    return whole


def _required_text(line: Line, where: str, given: Mapping[str, object]) -> str:
    if "text" not in given:
        line.problem(where, "missing; it is required")
    elif not isinstance(given["text"], str):
        line.problem(where, f"a string is expected, not {type_name(given['text'])}", given["text"])
    else:
        return given["text"]
    return ""


def _unknown(line: Line, where: str, given: Mapping[str, object], known: set[str]) -> dict:
    unknown = {key: value for key, value in given.items() if key not in known}
    for key in unknown.keys() - {NUL_PLACES}:
        line.notice(f'The key "{where}.{shown(key)}" is not known; it is kept and exported again.')
    return unknown


def _claims(line: Line, value: object, served: set[str]) -> list[ClaimRecord]:
    claims: list[ClaimRecord] = []
    seen: set[str] = set()
    for index, given in enumerate(_list(line, "claims", value)):
        where = f"claims[{index}]"
        if not isinstance(given, dict):
            line.problem(where, f"an object with id and text is expected, not {type_name(given)}", given)
            continue
        claim_id = identifier_of(line, f"{where}.id", given.get("id"), "id" in given)
        if claim_id and claim_id in seen:
            line.problem(f"{where}.id", f"the claim id {shown(claim_id)!r} stands twice", claim_id)
        seen.add(claim_id)
        text = _required_text(line, f"{where}.text", given)
        if isinstance(given.get("text"), str) and is_blank(text):
            line.problem(f"{where}.text", f"claim {shown(claim_id)!r} has no text", text)
        claims.append(
            ClaimRecord(
                claim_id=claim_id,
                text=text,
                source_ids=_cited(line, where, given.get("source_ids"), served, claim_id),
                decision=_truth(line, f"{where}.decision", given.get("decision")),
                extra={key: given[key] for key in ("original", "meta") if key in given}
                | _unknown(line, "claims", given, _CLAIM_KEYS),
                human_labels=_labels(line, f"{where}.human_labels", given.get("human_labels"), GROUNDING),
                judge_labels=_labels(line, f"{where}.judge_labels", given.get("judge_labels"), GROUNDING),
            )
        )
    return claims


def _cited(line: Line, where: str, value: object, served: set[str], claim_id: str) -> list[str]:
    cited = _texts(line, f"{where}.source_ids", value) or []
    for source in cited:
        if isinstance(source, str) and source not in served:
            line.problem(
                f"{where}.source_ids",
                f"claim {shown(claim_id)!r} cites the passage {shown(source)!r}, which was not served",
                source,
            )
    return cited


def _labels(line: Line, where: str, value: object, allowed: tuple[str, ...]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for name, label in _object(line, where, value).items():
        if label is None:
            continue
        place = f"{where}.{shown(name)}"
        check_name(line, place, name)
        folded = fold_label(label, allowed)
        if folded is None:
            line.problem(place, f"{shown(name)} gave a label that is not one of {', '.join(allowed)}", label)
            continue
        if folded != label:
            line.notice(f'The label "{shown(label)}" was read as "{folded}".')
        labels[name] = folded
    return labels


def fold_label(label: object, allowed: Iterable[str]) -> str | None:
    """The label as it is written here, whatever its case and outer space; None when it is not one of them."""
    if not isinstance(label, str):
        return None
    wanted = label.strip().casefold()
    return next((name for name in allowed if name.casefold() == wanted), None)


def check_name(line: Line, where: str, name: object) -> None:
    """A grader's or judge's name: not empty, no outer space, not too long."""
    if not isinstance(name, str) or is_blank(name):
        line.problem(where, "a name is expected", name)
    elif name != name.strip():
        line.problem(where, "the name has white space around it", repr(name))
    elif len(name) > LONGEST_NAME:
        line.problem(where, f"the name is longer than {LONGEST_NAME} characters", name)
