"""Canonical content hashes: the same on every database, and again after export and import.

Everything here works on plain values. Texts are hashed code point by code point (nothing is normalised), keys
are sorted by code point, positions and database keys are left out, null differs from the empty string.
"""

import hashlib
import json
from collections.abc import Iterable
from decimal import Context, Decimal
from typing import Any

_EXACT = 2**53
_PLENTY = Context(prec=10_000)


def canonical_json(value: object) -> str:
    """One text for one value: sorted keys, no spaces, no escapes that are not needed.

    Parameters
    ----------
    value : object
        What JSON can hold, with finite numbers.

    Returns
    -------
    str
        Equal for values that are equal as JSON. ``1``, ``1.0`` and ``1e0`` are one number: a database may
        give back any of them.
    """
    return _encode(_plain_numbers(value))


_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _plain_numbers(value: object) -> object:
    if type(value) is str or value is None:
        return value
    if isinstance(value, dict):
        return {key: part if type(part) is str else _plain_numbers(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [part if type(part) is str else _plain_numbers(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if value == int(value) and abs(value) < _EXACT:
        return int(value)
    # NUL never occurs in stored text, so this cannot be mistaken for an object of the file.
    return {"\0number": str(Decimal(repr(value)).normalize(_PLENTY))}


def fingerprint(value: object) -> str:
    """SHA-256 of the canonical JSON of a value, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def set_hash(entries: Iterable[tuple[str, object]]) -> str:
    """One hash over many named values, whatever their order.

    Parameters
    ----------
    entries : iterable of (str, object)
        Each with its own name; taken in one at a time, of which only a digest is kept.

    Returns
    -------
    str
        SHA-256 over the lines ``<digest of the entry>`` sorted by name (code points).
    """
    digests = sorted((name, fingerprint([name, value])) for name, value in entries)
    whole = hashlib.sha256()
    for _name, digest in digests:
        whole.update(digest.encode("ascii") + b"\n")
    return whole.hexdigest()


def item_content(item: Any) -> dict:
    """What of an item goes into the hash: everything that a file can say about it."""
    return {
        "item_id": item.item_id,
        "question": item.question,
        "strata": item.strata,
        "answerable": item.answerable,
        "unanswerable_reason": item.unanswerable_reason,
        "reference_answer": item.reference_answer,
        "expected_documents": item.expected_documents,
        "expected_passages": item.expected_passages,
        "variant_of": item.variant_of,
        "extra": item.extra,
    }


def response_content(response: Any, *, item_id: str, passages: Iterable, claims: Iterable) -> dict:
    """What of a response goes into its run's hash.

    Parameters
    ----------
    response : Response
        One output.
    item_id : str
        The item it answers.
    passages : iterable of Passage
        In rank order.
    claims : iterable of Claim
        In order, without the parts of split claims: a split is an overlay that moves no hash.
    """
    return {
        "response_id": response.response_id,
        "item_id": item_id,
        "sample": response.sample,
        "text": response.text,
        "retrieval_query": response.retrieval_query,
        "extra": response.extra,
        "passages": [
            [passage.passage_id, passage.title, passage.document, passage.text, passage.extra]
            for passage in passages
        ],
        "claims": [
            [claim.claim_id, claim.text, claim.source_ids, claim.decision, claim.extra] for claim in claims
        ],
    }
