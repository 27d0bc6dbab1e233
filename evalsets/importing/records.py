"""What a file says, line by line, once it has been checked."""

from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """One frozen input. `stated` names the item fields that the line really had."""

    item_id: str
    question: str | None = None
    strata: dict[str, str] = field(default_factory=dict)
    answerable: bool | None = None
    unanswerable_reason: str = ""
    reference_answer: str | None = None
    expected_documents: list[str] | None = None
    expected_passages: list[str] | None = None
    variant_of: str = ""
    extra: dict = field(default_factory=dict)
    stated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SystemRecord:
    """What was evaluated. `given` is the object of the file; `run` tells two runs of one system apart."""

    given: dict
    fingerprint: str
    run: int = 1

    @property
    def key(self) -> tuple[str, int]:
        return self.fingerprint, self.run


@dataclass(frozen=True, slots=True)
class PassageRecord:
    passage_id: str
    text: str
    title: str | None = None
    document: str | None = None
    extra: dict = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    claim_id: str
    text: str
    source_ids: list[str] = field(default_factory=list)
    decision: bool | None = None
    extra: dict = field(default_factory=dict)
    human_labels: dict[str, str] = field(default_factory=dict)
    judge_labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    response_id: str
    text: str
    system: SystemRecord
    sample: int = 1
    retrieval_query: str | None = None
    passages: list[PassageRecord] = field(default_factory=list)
    claims: list[ClaimRecord] = field(default_factory=list)
    extra: dict = field(default_factory=dict)
    human_labels: dict[str, str] = field(default_factory=dict)
    judge_labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LineRecord:
    """One line: an item, and its response where there is one. `size` is the line's length in characters."""

    line: int
    size: int
    item: ItemRecord
    response: ResponseRecord | None


@dataclass(frozen=True, slots=True)
class LabelRecord:
    """One line of a label file: `item_id` or `response_id` is given, `claim_id` is None for a response."""

    line: int
    item_id: str | None
    response_id: str | None
    claim_id: str | None
    grader: str
    label: str
    dimension: str
