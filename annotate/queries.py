"""Shared reads. A grader's page shows what the blind door lets through and the grader's own rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from django.db.models import Count, F, Q, QuerySet

from annotate import keys
from annotate.access import (
    ShownClaim,
    ShownPassage,
    ShownResponse,
    second_looks_in_the_way,
    shown_to_grader,
)
from annotate.asking import Material, Place, asked, finishing
from annotate.material import PLACE as WITHIN
from annotate.material import as_questions, dimensions_of, drawn_of
from annotate.models import (
    Annotation,
    AnnotationEvent,
    Assignment,
    ClaimSplit,
    Dimension,
    Flag,
    Grader,
    Round,
    Tally,
)
from evalsets.labels import LABELS
from evalsets.prepared import Prepared


def work_of(person):
    """The rounds a person grades in, with their own done and total counts, and what each `waits_for`."""
    rounds = list(
        Round.objects.filter(assignments__grader__person=person)
        .exclude(kind=Round.Kind.IMPORTED)
        .select_related("version__evalset")
        .annotate(
            total=Count("assignments", filter=Q(assignments__grader__person=person)),
            done=Count(
                "assignments",
                filter=Q(assignments__grader__person=person, assignments__state=Assignment.State.DONE),
            ),
        )
        .order_by("-pk")
    )
    has_second_looks = any(round.kind == Round.Kind.SECOND_LOOK for round in rounds)
    for round in rounds:
        round.waits_for = second_looks_in_the_way(person, round) if has_second_looks else []
    return rounds


# The grader's screen

KEPT_BEFORE, KEPT_AFTER = 1, 3  # claims in view before and after the current one
FOLD_FROM = 6_000  # characters of a response


@dataclass(frozen=True)
class Given:
    """What a grader said about a target."""

    label: str = ""
    note: str = ""
    evidence: tuple[int, ...] = ()  # ranks of the passages that decided it


@dataclass
class ShownTarget:
    """One thing to label on the screen, with what this grader has said about it so far."""

    dimension: Dimension
    number: int  # of the claim, or the rank of the passage; 0 for the whole response
    claim: ShownClaim | None
    passage: ShownPassage | None = None
    given: Given = Given()
    taken_back: Given = Given()
    flag: Flag | None = None
    split: ClaimSplit | None = None

    @property
    def key(self) -> str:
        """How a link names it."""
        return target_key(
            self.dimension.name,
            self.claim.pk if self.claim else None,
            self.passage.pk if self.passage else None,
        )

    @property
    def place(self) -> Place:
        return Place(
            self.dimension.name,
            self.claim.pk if self.claim else None,
            self.passage.pk if self.passage else None,
        )

    @property
    def label(self) -> str:
        return self.given.label

    @property
    def hue(self) -> str:
        return hue_of(self.dimension, self.label)

    @property
    def draft(self) -> Given:
        """What its form starts with: the label given, or the one taken back."""
        return self.given if self.given.label else self.taken_back


@dataclass
class Subject:
    """A claim, the whole response or a passage, with everything that is asked of it."""

    targets: list[ShownTarget]

    @property
    def first(self) -> ShownTarget:
        return self.targets[0]

    @property
    def labelled(self) -> list[ShownTarget]:
        return [target for target in self.targets if target.label]


@dataclass(frozen=True)
class Choice:
    """A label that can be chosen for the current target."""

    name: str
    key: str
    definition: str
    hue: str
    is_given: bool
    is_taken_back: bool
    finishes: bool  # nothing of the response is left after it


def hue_of(dimension: Dimension, label: str) -> str:
    """The class that colours a label: its name where we know it, else its place in the rubric."""
    if dimension.name in LABELS:
        return label
    return f"hue-{dimension.label_names.index(label) + 1}" if label in dimension.label_names else ""


def target_key(dimension: str, claim_id: int | None, passage_id: int | None) -> str:
    """Names a target within its response; the dimension may be left out, and is then the first one."""
    return "-".join([dimension, str(claim_id or ""), str(passage_id or "")])


@dataclass
class Progress:
    done: int
    total: int

    @property
    def at(self) -> int:
        """The number of the response being graded."""
        return min(self.done + 1, self.total)


@dataclass
class Screen:
    assignment: Assignment
    response: ShownResponse
    targets: list[ShownTarget]
    current: ShownTarget
    finishing: frozenset[str] = frozenset()  # labels of the current target after which nothing is left

    @property
    def is_long(self) -> bool:
        return len(self.response.text) > FOLD_FROM

    @property
    def label_keys(self) -> list[dict]:
        return keys.as_data(keys.label_keys(self.current.dimension.labels))

    @property
    def choices(self) -> list[Choice]:
        dimension, current = self.current.dimension, self.current
        return [
            Choice(
                name=label["name"],
                key=label["key"],
                definition=label["definition"],
                hue=hue_of(dimension, label["name"]),
                is_given=current.given.label == label["name"],
                is_taken_back=not current.given.label and current.taken_back.label == label["name"],
                finishes=label["name"] in self.finishing,
            )
            for label in dimension.labels
        ]

    # Long lists are folded around the current subject, so that it stays where the eye already is.

    @cached_property
    def subjects(self) -> list[Subject]:
        def subject(target: ShownTarget) -> tuple:
            return (target.claim is None, target.number)

        return [Subject(list(targets)) for _key, targets in groupby(self.targets, key=subject)]

    @cached_property
    def current_subject(self) -> Subject:
        return next(s for s in self.subjects if any(target is self.current for target in s.targets))

    @cached_property
    def _place(self) -> int:
        return next(
            place
            for place, subject in enumerate(self.subjects)
            if any(target is self.current for target in subject.targets)
        )

    @property
    def folded_before(self) -> list[Subject]:
        before = self.subjects[: self._place]
        return before[:-KEPT_BEFORE] if len(before) > KEPT_BEFORE + 1 else []

    @property
    def folded_after(self) -> list[Subject]:
        after = self.subjects[self._place + 1 :]
        return after[KEPT_AFTER:] if len(after) > KEPT_AFTER + 1 else []

    @property
    def before(self) -> list[Subject]:
        return self.subjects[len(self.folded_before) : self._place]

    @property
    def after(self) -> list[Subject]:
        return self.subjects[self._place + 1 : len(self.subjects) - len(self.folded_after)]

    @property
    def cites(self) -> frozenset[int]:
        """Ranks of the passages that the current claim cites."""
        return self.current.claim.cites if self.current.claim else frozenset()

    @property
    def asked_about(self) -> int | None:
        """The rank of the passage that the question is about."""
        return self.current.passage.rank if self.current.passage else None

    @property
    def passages(self) -> list[tuple[ShownPassage, bool, bool]]:
        """Each with whether the current claim cites it and whether it is asked about; those come first."""
        shown = [(p, p.rank in self.cites, p.rank == self.asked_about) for p in self.response.passages]
        return sorted(shown, key=lambda passage: (not passage[2], not passage[1], passage[0].rank))

    @cached_property
    def parts_of_text(self) -> tuple[str, str, str]:
        if self.current.claim is None:
            return self.response.text, "", ""
        earlier = [subject.first.claim.text for subject in self.subjects[: self._place]]
        return parts_around(self.response.text, earlier, self.current.claim.text)

    @property
    def claim_in_text(self) -> str:
        """Where the claim stands in the response, "from-to" as a browser counts; empty if not verbatim."""
        before, claim, _after = (_as_browser_has(part) for part in self.parts_of_text)
        start, length = _utf16_length(before), _utf16_length(claim)
        return f"{start}-{start + length}" if length else ""


def _as_browser_has(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def parts_around(text: str, earlier: list[str], claim: str) -> tuple[str, str, str]:
    """The response before, in and after a claim; no middle if the claim is not there verbatim.

    A short claim ("2.") may stand in several places: the search goes on where the claim before was found.
    """
    start = 0
    for other in earlier:
        if (at := text.find(other, start)) >= 0:
            start = at + len(other)
    at = text.find(claim, start)
    at = text.find(claim) if at < 0 else at
    if at < 0:
        return text, "", ""
    return text[:at], claim, text[at + len(claim) :]


def progress_of(round: Round, grader: Grader) -> Progress:
    return Progress(*(_tally.first(round=round.pk, grader=grader.pk) or (0, 0)))


def next_assignment(
    round: Round, grader: Grader, *, other_than: Assignment | None = None
) -> Assignment | None:
    """The head of the grader's own queue; what somebody else did or skipped has no part in it."""
    assignment = _head.first(round=round.pk, grader=grader.pk, other=other_than.pk if other_than else 0)
    if assignment:
        assignment.round, assignment.grader = round, grader
    return assignment


def assignment_at(round: Round, grader: Grader, response_id: int) -> Assignment:
    assignment = Assignment.objects.select_related("response__item").get(
        round=round, grader=grader, response=response_id
    )
    assignment.round, assignment.grader = round, grader
    return assignment


def state_of(assignment: Assignment) -> str:
    """As it is now."""
    return Assignment.objects.values_list("state", flat=True).get(pk=assignment.pk)


def following_of(assignment: Assignment) -> int | None:
    """What comes after it in the grader's own queue: the id of an assignment."""
    return _following.first(round=assignment.round_id, grader=assignment.grader_id, other=assignment.pk)


def _queue(round: int, grader: int, other: int):
    queue = Assignment.objects.filter(round=round, grader=grader, state=Assignment.State.PENDING)
    return queue.exclude(pk=other).order_by("skips", "order")[:1]


_head = Prepared(
    lambda round, grader, other: _queue(round, grader, other).select_related("response__item"),
    round=int,
    grader=int,
    other=int,
)
_following = Prepared(
    lambda round, grader, other: _queue(round, grader, other).values_list("pk", flat=True),
    round=int,
    grader=int,
    other=int,
)
_tally = Prepared(
    lambda round, grader: Tally.objects.filter(round=round, grader=grader).values_list("done", "total"),
    round=int,
    grader=int,
)


def screen_of(assignment: Assignment, target: str = "", given: Mapping[Place, Given] | None = None) -> Screen:
    """The screen for one own assignment, at the named target or at the first that has no label.

    `given`: what the grader has said of it, where that has just been read.
    """
    response = shown_to_grader(assignment)
    round = assignment.round
    dimensions = {dimension.name: dimension for dimension in dimensions_of(round.rubric_version)}
    questions, material = as_questions(list(dimensions.values())), _material(response)
    drawn = drawn_of(round, assignment.response_id)
    given = _given(assignment) if given is None else given
    labels = {place: said.label for place, said in given.items()}
    places = asked(questions, material, labels, drawn)
    targets = _targets(assignment, response, dimensions, places, given)
    current = next((t for t in targets if target and t.key.endswith(target)), None)
    current = current or next((t for t in targets if not t.label), targets[-1])
    last = finishing(questions, material, labels, current.place, current.dimension.label_names, drawn)
    return Screen(assignment, response, targets, current, last)


def _given(assignment: Assignment) -> dict[Place, Given]:
    return _as_given(_labels(**_own(assignment)))


def _as_given(rows: Sequence[Sequence]) -> dict[Place, Given]:
    return {Place(*place): Given(label, note, tuple(evidence)) for *place, label, note, evidence in rows}


def _own(assignment: Assignment) -> dict[str, int]:
    return {
        "round": assignment.round_id,
        "grader": assignment.grader_id,
        "response": assignment.response_id,
    }


def _prepared_own(make: Callable[..., QuerySet]) -> Prepared:
    return Prepared(make, round=int, grader=int, response=int)


_labels = _prepared_own(
    lambda **own: Annotation.objects.filter(**own).values_list(*WITHIN, "label", "note", "evidence")
)
_taken_back = _prepared_own(
    lambda **own: (
        AnnotationEvent.objects.filter(**own, action=AnnotationEvent.Action.TAKEN_BACK)
        .order_by("pk")
        .values_list(*WITHIN, "label", "note", "evidence")
    )
)
_flags = _prepared_own(lambda **own: Flag.objects.filter(**own))
_splits = _prepared_own(
    lambda round, grader, response: ClaimSplit.objects.filter(
        round=round, grader=grader, claim__response=response
    )
)


def _targets(
    assignment: Assignment,
    response: ShownResponse,
    dimensions: Mapping[str, Dimension],
    places: Sequence[Place],
    given: Mapping[Place, Given],
) -> list[ShownTarget]:
    own = _own(assignment)
    taken_back = _as_given(_taken_back(**own))
    flags = {flag.claim_id: flag for flag in _flags(**own)}
    splits = {split.claim_id: split for split in _splits(**own)}
    claims = {claim.pk: (number, claim) for number, claim in enumerate(response.claims, start=1)}
    passages = {passage.pk: passage for passage in response.passages}

    def number(place: Place) -> int:
        if place.claim:
            return claims[place.claim][0]
        return passages[place.passage].rank if place.passage else 0

    return [
        ShownTarget(
            dimension=dimensions[place.dimension],
            number=number(place),
            claim=claims[place.claim][1] if place.claim else None,
            passage=passages[place.passage] if place.passage else None,
            given=given.get(place, Given()),
            taken_back=taken_back.get(place, Given()),
            flag=flags.get(place.claim),
            split=splits.get(place.claim) if place.claim else None,
        )
        for place in places
    ]


def _material(response: ShownResponse) -> Material:
    pk_of = {passage.rank: passage.pk for passage in response.passages}
    return Material(
        claims={claim.pk: [pk_of[rank] for rank in sorted(claim.cites)] for claim in response.claims},
        passages=list(pk_of.values()),
        is_empty=response.is_empty,
    )


def recent_labels(round: Round, grader: Grader, limit: int = 10) -> list[Annotation]:
    """The grader's own latest labels, each with its `hue`, `assignment_id` and `target_key`."""
    own_slot = Q(response__assignments__round=round, response__assignments__grader=grader)
    recent = list(
        Annotation.objects.filter(own_slot, round=round, grader=grader)
        .annotate(assignment_id=F("response__assignments__pk"))
        .select_related("claim", "passage", "response__item")
        .only(
            "label",
            "dimension",
            "response_id",
            "passage__rank",
            "claim__text",
            "response__item__question",
            "updated_at",
        )
        .order_by("-updated_at", "-pk")[:limit]
    )
    dimensions = {dimension.name: dimension for dimension in dimensions_of(round.rubric_version)}
    for annotation in recent:
        annotation.hue = hue_of(dimensions[annotation.dimension], annotation.label)
        annotation.target_key = target_key(annotation.dimension, annotation.claim_id, annotation.passage_id)
    return recent


# The lead's pages

RUSHED = 2000  # milliseconds; a label given faster is marked for the lead
