"""One target as the lead decides on it: everything said about it, and what was decided so far."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404

from annotate.asking import CITATION, CLAIM, PASSAGE, RESPONSE
from annotate.disagreement_kinds import target_in_address
from annotate.models import Adjudication, Annotation, ClaimSplit, Dimension, Flag, Round
from annotate.queries import RUSHED, hue_of, parts_around
from annotate.services.adjudication import check_ready
from annotate.services.targets import Refused, checked_target
from annotate.splits import parts_that_count
from evalsets.models import Claim, EvalSetVersion, Passage, Response


@dataclass(frozen=True)
class Voice:
    """What one grader said about a target, as "Grader 1" or "Grader 2"."""

    number: int
    annotation: Annotation
    flag: Flag | None
    hue: str

    @property
    def rushed(self) -> bool:
        return self.annotation.milliseconds is not None and self.annotation.milliseconds < RUSHED

    @property
    def seconds(self) -> float | None:
        return None if self.annotation.milliseconds is None else self.annotation.milliseconds / 1000


@dataclass(frozen=True)
class ShownPassage:
    passage: Passage
    cited: bool
    asked_about: bool
    marked_by: list[int]  # numbers of the graders whom it decided


class Case:
    """A target of a round, named as in an address; 404 for what the round does not ask about."""

    def __init__(self, version: EvalSetVersion, round_number: int, dimension: str, target: str) -> None:
        self.round = get_object_or_404(
            Round.objects.select_related("version__evalset", "rubric_version__rubric"),
            version=version,
            number=round_number,
        )
        self.dimension = get_object_or_404(
            Dimension, rubric_version=self.round.rubric_version, name=dimension
        )
        self.claim: Claim | None = None
        self.passage: Passage | None = None
        self._find(*_ids(self.dimension.target, target))
        self.target: dict[str, Any] = {
            "round": self.round,
            "response": self.response,
            "claim": self.claim,
            "passage": self.passage,
            "dimension": dimension,
        }

    def _find(self, first: int, second: int) -> None:
        responses = Response.objects.filter(run__in=self.round.runs.all()).select_related("item")
        kind = self.dimension.target
        if kind == RESPONSE:
            self.response = get_object_or_404(responses, pk=first)
            return
        if kind in (CLAIM, CITATION):
            claims = Claim.objects.select_related("parent")
            self.claim = get_object_or_404(claims, pk=first, response__in=responses)
        if kind in (PASSAGE, CITATION):
            passages = Passage.objects.filter(response__in=responses)
            self.passage = get_object_or_404(passages, pk=second or first)
        whole = self.claim or self.passage
        assert whole is not None
        if self.claim and self.passage and self.claim.response_id != self.passage.response_id:
            raise Http404
        self.response = responses.get(pk=whole.response_id)

    @property
    def whole(self) -> Claim | None:
        """The claim that graders saw: of a part, the one that was split."""
        return self.claim.parent if self.claim and self.claim.parent_id else self.claim

    @property
    def address(self) -> str:
        return target_in_address(self.response.pk, _pk(self.claim), _pk(self.passage))

    @property
    def place(self) -> tuple[str, int, int | None, int | None]:
        """Where the queue has it: a part of a split claim stands with the claim."""
        return self.dimension.name, self.response.pk, _pk(self.whole), _pk(self.passage)

    @cached_property
    def obstacle(self) -> str:
        """Why it cannot be seen and decided yet."""
        try:
            target, asked_of = checked_target(
                self.round, self.response, self.claim, self.dimension.name, self.passage, may_be_part=True
            )
            check_ready(self.round, target, asked_of, self.claim)
        except Refused as refused:
            return str(refused)
        return ""

    @cached_property
    def voices(self) -> list[Voice]:
        """In an order drawn once for each target, so that Grader 1 is now one person and now the other."""
        whole, passage = self.whole, self.passage
        said = list(
            Annotation.objects.filter(
                round=self.round,
                response=self.response,
                claim=whole,
                passage=passage,
                dimension=self.dimension.name,
            )
            .select_related("grader")
            .order_by("grader__number")
        )
        drawn_for = [self.round.seed, self.dimension.name, whole.pk if whole else self.response.pk]
        Random(":".join(map(str, drawn_for + ([passage.pk] if passage else [])))).shuffle(said)
        flags = {
            flag.grader_id: flag
            for flag in Flag.objects.filter(round=self.round, response=self.response, claim=whole)
        }
        return [
            Voice(number, a, flags.get(a.grader_id), hue_of(self.dimension, a.label))
            for number, a in enumerate(said, start=1)
        ]

    @property
    def fingerprint(self) -> str:
        """Of the labels on the page, so that a decision is about what was seen."""
        said = sorted((v.annotation.grader_id, v.annotation.label) for v in self.voices)
        return hashlib.sha256(repr(said).encode()).hexdigest()

    @cached_property
    def log(self) -> list[Adjudication]:
        """The latest first."""
        entries: QuerySet[Adjudication] = Adjudication.objects.filter(**self.target)
        return list(entries.select_related("by", "revoked_by").order_by("-pk"))

    @property
    def standing(self) -> Adjudication | None:
        """The decision that holds."""
        return next(
            (entry for entry in self.log if not entry.revokes_id and not hasattr(entry, "revoked_by")), None
        )

    @cached_property
    def splits(self) -> list[ClaimSplit]:
        return list(self.claim.splits.filter(round=self.round)) if self.claim else []

    @property
    def is_split(self) -> bool:
        return self.standing_split is not None

    @property
    def standing_split(self) -> ClaimSplit | None:
        return next((split for split in self.splits if split.state == ClaimSplit.State.ACCEPTED), None)

    @property
    def can_be_split(self) -> bool:
        is_whole = self.claim is not None and not self.claim.parent_id
        return is_whole and self.dimension.name == "grounding" and not self.is_split

    @property
    def is_withdrawn(self) -> bool:
        """A part of a split that was taken back."""
        return self.claim is not None and hasattr(self.claim, "withdrawal")

    @cached_property
    def parts(self) -> list[Claim]:
        return list(parts_that_count().filter(parent=self.claim)) if self.claim else []

    @cached_property
    def _claims(self) -> dict[int, str]:
        return dict(self.response.claims.filter(parent__isnull=True).values_list("pk", "text"))

    @property
    def number(self) -> int:
        """Of the claim among those of its response; 0 for what is not about a claim."""
        return list(self._claims).index(self.whole.pk) + 1 if self.whole else 0

    def parts_of_text(self) -> tuple[str, str, str]:
        if self.claim is None:
            return self.response.text, "", ""
        earlier = list(self._claims.values())[: self.number - 1]
        return parts_around(self.response.text, earlier, self.claim.text)

    def passages(self) -> list[ShownPassage]:
        """What is asked about, then what the claim cites, then the rest; whom each passage decided."""
        cites = set(self.claim.source_ids) if self.claim else set()
        shown = [
            ShownPassage(
                passage=passage,
                cited=passage.passage_id in cites,
                asked_about=passage == self.passage,
                marked_by=[v.number for v in self.voices if passage.rank in v.annotation.evidence],
            )
            for passage in self.response.passages.all()
        ]
        return sorted(shown, key=lambda s: (not s.asked_about, not s.cited, s.passage.rank))


def _pk(row: Claim | Passage | None) -> int | None:
    return row.pk if row else None


def _ids(kind: str, target: str) -> tuple[int, int]:
    """The ids in an address: one, or claim and passage of a citation."""
    ids = target.split("-")
    if len(ids) != (2 if kind == CITATION else 1) or not all(i.isdecimal() and len(i) < 19 for i in ids):
        raise Http404
    return int(ids[0]), int(ids[1]) if len(ids) == 2 else 0
