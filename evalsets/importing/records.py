"""What a file says, line by line, once it has been checked."""

from msgspec import Struct

ITEM_FIELDS = (
    "question",
    "strata",
    "answerable",
    "unanswerable_reason",
    "reference_answer",
    "expected_documents",
    "expected_passages",
    "variant_of",
)


class ItemRecord(Struct, frozen=True, gc=False):
    """One frozen input. `stated` names the item fields that the line really had."""

    item_id: str
    question: str | None = None
    strata: dict[str, str] = {}
    answerable: bool | None = None
    unanswerable_reason: str = ""
    reference_answer: str | None = None
    expected_documents: list[str] | None = None
    expected_passages: list[str] | None = None
    variant_of: str = ""
    extra: dict = {}
    stated: frozenset[str] = frozenset()


class SystemRecord(Struct, frozen=True, gc=False):
    """What was evaluated. `given` is the object of the file; `run` tells two runs of one system apart."""

    given: dict
    fingerprint: str
    run: int = 1

    @property
    def key(self) -> tuple[str, int]:
        return self.fingerprint, self.run


class PassageRecord(Struct, frozen=True, gc=False):
    passage_id: str
    text: str
    title: str | None = None
    document: str | None = None
    extra: dict = {}


class ClaimRecord(Struct, frozen=True, gc=False):
    claim_id: str
    text: str
    source_ids: list[str] = []
    decision: bool | None = None
    extra: dict = {}
    human_labels: dict[str, str] = {}
    judge_labels: dict[str, str] = {}


class ResponseRecord(Struct, frozen=True, gc=False):
    response_id: str
    text: str
    system: SystemRecord
    sample: int = 1
    retrieval_query: str | None = None
    passages: list[PassageRecord] = []
    claims: list[ClaimRecord] = []
    extra: dict = {}
    human_labels: dict[str, str] = {}
    judge_labels: dict[str, str] = {}


class LineRecord(Struct, frozen=True, gc=False):
    """One line: an item, and its response where there is one. `size` is the line's length in characters."""

    line: int
    size: int
    item: ItemRecord
    response: ResponseRecord | None


class LabelRecord(Struct, frozen=True, gc=False):
    """One line of a label file: `item_id` or `response_id` is given, `claim_id` is None for a response."""

    line: int
    item_id: str | None
    response_id: str | None
    claim_id: str | None
    grader: str
    label: str
    dimension: str
