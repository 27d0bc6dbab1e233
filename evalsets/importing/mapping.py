"""Which column of a file is which field here, and which of its labels which of ours: said, never guessed.

A mapping is plain data, so that a page can send it, a command can read it from a file and a log can keep it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evalsets.importing.findings import Findings, shown
from evalsets.importing.validate import LONGEST_NAME
from evalsets.labels import LABELS

KEEP, LEAVE_OUT, LABEL, GRADER = "meta", "-", "label", "grader"
TEXTS = (
    "id",
    "item_id",
    "question",
    "response",
    "reference_answer",
    "retrieval_query",
    "unanswerable_reason",
    "variant_of",
    "claim",
    "claim_id",
)
LISTS = ("expected_documents", "expected_passages", "context_ids", "claim.source_ids")
SYSTEM = tuple(f"system.{name}" for name in ("name", "model", "provider", "family", "date"))
OTHERS = ("context", "claims", "answerable", "sample", "claim.decision")
# Fields that one column fills, at most; further columns of `context` hold further passages.
SINGLE = (*TEXTS, *OTHERS, *LISTS, *SYSTEM, GRADER)
# Fields that many columns may fill, each under a name of its own.
NAMED = ("strata.", "system.settings.")
MANY = (KEEP, LEAVE_OUT, LABEL)
SEVERAL = (*MANY, "context")
POINTERS = ("item", "response", "claim")


@dataclass(frozen=True)
class LabelRule:
    """What the labels of one question become.

    Attributes
    ----------
    dimension : str
        One of ours; `LEAVE_OUT` leaves the whole question out.
    values : mapping of str to str
        Their label to ours, or to `LEAVE_OUT`. A label that is not in it is a problem of its line.
    name : str
        The grader (or judge) of all of them, where the file does not say.
    """

    dimension: str
    values: Mapping[str, str] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True)
class ColumnMap:
    """How a file is to be read.

    Attributes
    ----------
    shape : str
        Name of the shape (see `evalsets.importing.shapes`); "" finds it.
    columns : mapping of str to str, or None
        Column to field; None takes what is suggested. A column that is not in it is kept in `meta`.
    labels : mapping of str to LabelRule, or None
        Question to rule. None: nothing was said about labels, so they are counted and left out.
    names : mapping of str to str
        Name in the file (a user's number, say) to the name of the grader or judge here.
    """

    shape: str = ""
    columns: Mapping[str, str] | None = None
    labels: Mapping[str, LabelRule] | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict:
        return {
            "format": self.shape,
            "columns": None if self.columns is None else dict(self.columns),
            "labels": None
            if self.labels is None
            else {
                question: {"dimension": rule.dimension, "name": rule.name, "values": dict(rule.values)}
                for question, rule in self.labels.items()
            },
            "names": dict(self.names),
        }


def mapping_of(given: object, findings: Findings) -> ColumnMap:
    """A mapping from its JSON form; whatever is wrong with it is a problem."""
    if not isinstance(given, Mapping):
        findings.problem(None, "map", "an object with format, columns, labels and names is expected", given)
        return ColumnMap()
    for key in given.keys() - {"format", "columns", "labels", "names"}:
        findings.problem(None, f"map: {key}", "format, columns, labels or names is expected", key)
    columns = _texts(given.get("columns"), "columns", findings)
    names = _texts(given.get("names"), "names", findings) or {}
    labels = given.get("labels")
    if labels is not None and not isinstance(labels, Mapping):
        findings.problem(None, "map: labels", "an object of questions is expected", labels)
        labels = None
    rules = (
        None
        if labels is None
        else {
            question: rule
            for question, part in labels.items()
            if (rule := _rule(question, part, findings)) is not None
        }
    )
    shape = given.get("format") or ""
    return ColumnMap(shape if isinstance(shape, str) else "", columns, rules, names)


def _texts(given: object, where: str, findings: Findings) -> dict[str, str] | None:
    if given is None:
        return None
    if isinstance(given, Mapping) and all(isinstance(part, str) for part in given.values()):
        return dict(given)
    findings.problem(None, f"map: {where}", "an object of texts is expected", given)
    return None


def _rule(question: str, given: object, findings: Findings) -> LabelRule | None:
    if given == LEAVE_OUT:
        return LabelRule(LEAVE_OUT)
    where = f"map: labels: {question}"
    if not isinstance(given, Mapping) or not isinstance(given.get("values", {}), Mapping):
        findings.problem(None, where, 'an object with dimension and values, or "-", is expected', given)
        return None
    name, values = given.get("name") or "", dict(given.get("values") or {})
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        findings.problem(None, where, f"a name of at most {LONGEST_NAME} characters is expected", name)
        return None
    # What nobody decided yet (null in a suggestion) stays undecided: each such label is a problem.
    decided = {value: ours for value, ours in values.items() if ours}
    return LabelRule(str(given.get("dimension") or ""), decided, name)


def check_mapping(mapping: ColumnMap, findings: Findings, *, items_known: bool = False) -> None:
    """Say what is wrong with a mapping by itself, before any record is read."""
    filled: dict[str, str] = {}
    for column, target in (mapping.columns or {}).items():
        if not is_target(target):
            findings.problem(None, shown(column), f"there is no field {shown(target)!r}", target)
        elif target not in SEVERAL:
            first = filled.setdefault(target, column)
            if first != column:
                message = f"two columns are to be {target}: {shown(first)!r} and {shown(column)!r}"
                findings.problem(None, shown(column), message, target)
    targets = set((mapping.columns or {}).values())
    if mapping.columns is not None and not items_known and "question" not in targets:
        findings.problem(None, "question", "no column is the question: choose one")
    if targets & {"claim"} and "id" not in targets:
        findings.problem(
            None,
            "id",
            "with a claim a row, a column must say which response the rows belong to: choose the id",
        )
    check_rules(mapping, findings)


def check_rules(mapping: ColumnMap, findings: Findings) -> None:
    """Say what is wrong with what the mapping makes of labels."""
    for question, rule in (mapping.labels or {}).items():
        _check_rule(question, rule, findings)


def _check_rule(question: str, rule: LabelRule, findings: Findings) -> None:
    if rule.dimension == LEAVE_OUT:
        return
    if rule.dimension not in LABELS:
        message = f'one of {", ".join(LABELS)}, or "-" to leave its labels out, is expected'
        findings.problem(None, shown(question), message, rule.dimension)
        return
    for value, ours in rule.values.items():
        if ours != LEAVE_OUT and ours not in LABELS[rule.dimension]:
            message = f"{shown(value)!r} is to be a label that {rule.dimension} does not have"
            findings.problem(None, shown(question), message, ours)


def is_target(target: str) -> bool:
    named = any(target.startswith(prefix) and target != prefix for prefix in NAMED)
    return target in SINGLE or target in MANY or named


_WORD = re.compile(r"[^a-z0-9]+")
_SYNONYMS = {
    "id": "id response_id record_id example_id sample_id uid uuid",
    "item_id": "item_id question_id query_id",
    "question": "question user_input query prompt user_query instruction input user_question user_message",
    "response": "response answer actual_output model_output output completion prediction model_answer "
    "generated_answer assistant_message model_response llm_answer bot_answer",
    "reference_answer": "reference_answer reference ground_truth expected_output expected_answer gold_answer "
    "ideal_answer correct_answer expected reference_output golden_answer",
    "context": "context contexts retrieved_contexts retrieval_context passages documents sources "
    "retrieved_documents retrieved_passages retrieved_chunks chunks",
    "context_ids": "context_ids retrieved_context_ids passage_ids document_ids",
    "claim": "claim claim_text statement",
    "claim_id": "claim_id statement_id",
    "claims": "claims statements",
    "answerable": "answerable is_answerable",
    "unanswerable_reason": "unanswerable_reason",
    "expected_documents": "expected_documents",
    "expected_passages": "expected_passages reference_context_ids",
    "system.model": "model model_name model_id llm system_model",
    "system.name": "system system_name",
    "system.provider": "provider system_provider",
    "retrieval_query": "retrieval_query search_query",
    "strata.stratum": "stratum",
    "strata.language": "language lang locale",
    "strata.question_type": "question_type category",
    "sample": "sample",
}
_BY_NAME = {name: target for target, names in _SYNONYMS.items() for name in names.split()}


def suggested(columns: Iterable[str], own: Mapping[str, str]) -> dict[str, str]:
    """A field for each column: the shape's own rule first, then by name; each field once; else kept in meta.

    Nothing is ever suggested to be a label: what a label means only people know.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    columns = list(columns)
    for rule in (own.get, named_field, _by_last_word):
        for column in columns:
            target = rule(column) if column not in found else None
            if target is None or (target in taken and target not in MANY):
                continue
            found[column] = target
            taken.add(target)
    return {column: found.get(column, KEEP) for column in columns}


def overruled(columns: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
    """The columns with some told anew; a field that is told of one column is taken from every other."""
    single = {target for target in told.values() if target not in MANY}
    kept = {column: KEEP if target in single else target for column, target in columns.items()}
    return kept | dict(told)


def named_field(column: str) -> str | None:
    """The field that a column means by its whole name, where it means one."""
    if is_target(column) and column not in MANY:
        return column
    return _BY_NAME.get(_WORD.sub("_", _snake(column)).strip("_"))


def _by_last_word(column: str) -> str | None:
    """`inputs.question` and `input_question` are the question; `metadata.model` need not be the model."""
    parts = re.match(r"(?:inputs?|vars|data|fields)[._](.+)", column)
    return named_field(parts.group(1)) if parts else None


def _snake(column: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", column).lower()
