"""What changed in an edited gold set, for a reader; and the changes that somebody takes over as decisions."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from annotate import services as annotate
from annotate.disagreement_kinds import target_in_address
from annotate.models import Adjudication, Annotation, GoldLabel, Round
from annotate.services.targets import Target
from calibration.gold_compare import Change, Comparison
from calibration.gold_records import utc
from calibration.measures import Figures
from evalsets.importing import Findings
from evalsets.models import Claim, Passage, Response

MOST_LISTED = 500

# What is told of it


def listed(comparison: Comparison) -> Figures:
    """The comparison as data, the lists up to `MOST_LISTED` of each kind."""
    version, given, unusable = comparison.version, comparison.given, comparison.unusable
    lists = {
        "changed": described(comparison.changed[:MOST_LISTED], comparison.round),
        "new": described(comparison.new[:MOST_LISTED], comparison.round),
        "missing": _missing(comparison.missing[:MOST_LISTED], comparison.round),
    }
    return {
        "evalset": version.evalset.slug,
        "version": version.number,
        "content_hash": version.content_hash,
        "round": comparison.round.number,
        "file": {"name": given.name, "sha256": given.sha256, "edited": given.edited},
        "counts": comparison.counts,
        "moves": [
            {"dimension": dimension, "from": before, "to": after, "n": n}
            for dimension, before, after, n in comparison.moves
        ],
        **lists,
        "unusable": [problem.as_json() for problem in unusable.problems],
        "not_listed": {name: comparison.counts[name] - len(found) for name, found in lists.items()}
        | {"unusable": unusable.left_out},
        "differing": dict(comparison.differing),
        "notices": comparison.notices,
    }


def described(changes: Sequence[Change], round: Round) -> list[Figures]:
    """Each change with what the target says, what was said of it, and who decided it before."""
    about = _About([change.place for change in changes], round)
    return [
        {
            "line": change.line,
            **about.target(change.place),
            "from": change.before,
            "to": change.after,
            **about.gold(change.place),
            "why_no_gold": change.why or None,
            "can_be_taken": change.can_be_taken,
        }
        for change in changes
    ]


def _missing(places: Sequence[Target], round: Round) -> list[Figures]:
    about = _About(places, round)
    return [about.target(place) | {"label": about.held[place].label} | about.gold(place) for place in places]


class _About:
    """What is known of some targets, read at once."""

    def __init__(self, places: Sequence[Target], round: Round):
        self.responses = Response.objects.select_related("item").in_bulk(
            {place.response_id for place in places}
        )
        self.claims = Claim.objects.in_bulk({place.claim_id for place in places if place.claim_id})
        self.passages = Passage.objects.in_bulk({place.passage_id for place in places if place.passage_id})
        about: Any = {"round": round, "response__in": self.responses}
        self.held = {
            _place_of(gold): gold
            for gold in GoldLabel.objects.filter(**about).select_related("adjudication__by")
        }
        self.said: dict[Target, list[Figures]] = {}
        for one in Annotation.objects.filter(**about).select_related("grader").order_by("grader__number"):
            self.said.setdefault(_place_of(one), []).append({"grader": one.grader.name, "label": one.label})

    def target(self, place: Target) -> Figures:
        response = self.responses[place.response_id]
        claim = self.claims[place.claim_id] if place.claim_id else None
        passage = self.passages[place.passage_id] if place.passage_id else None
        return {
            "dimension": place.dimension,
            "target": target_in_address(place.response_id, place.claim_id, place.passage_id),
            "response_id": response.response_id,
            "claim_id": claim.claim_id if claim else None,
            "passage": {"id": passage.passage_id, "rank": passage.rank} if passage else None,
            "question": response.item.question,
            "text": claim.text if claim else response.text,
        }

    def gold(self, place: Target) -> Figures:
        gold = self.held.get(place)
        decided = gold.adjudication if gold else None
        return {
            "source": gold.source if gold else None,
            "settled_at": utc(gold.updated_at) if gold else None,
            "decided_by": decided.by.get_username() if decided else None,
            "decided_for": decided.reason if decided else None,
            "labels": self.said.get(place, []),
        }


def _place_of(row: Annotation | GoldLabel) -> Target:
    return Target(row.dimension, row.response_id, row.claim_id, row.passage_id)


# Taking over


def changes_on(comparison: Comparison, lines: Iterable[int] | None) -> list[Change]:
    """The changes on some lines of the file; without lines, all that can be taken over."""
    if lines is None:
        return comparison.to_take
    by_line = {change.line: change for change in comparison.changes}
    findings = Findings()
    for line in (wanted := sorted(set(lines))):
        if line not in by_line:
            findings.problem(line, "line", _("there is no change on this line"))
    findings.raise_if_refused()
    return [by_line[line] for line in wanted]


@transaction.atomic
def take_over(
    *, round: Round, changes: Sequence[Change], origin: str, note: str = "", judge_seen: bool, person
) -> list[Adjudication]:
    """Each change as a decision of the log, all or none; `origin` says which file it is from.

    Raises
    ------
    ImportRefused
        With the line of every change that cannot be taken over, because other gold holds by now or somebody
        has yet to label the target.
    """
    findings, made = Findings(), []
    places = [change.place for change in changes]
    responses = Response.objects.in_bulk({place.response_id for place in places})
    claims = Claim.objects.in_bulk({place.claim_id for place in places if place.claim_id})
    passages = Passage.objects.in_bulk({place.passage_id for place in places if place.passage_id})
    for change in changes:
        place = change.place
        words = _("{file}, line {line}").format(file=origin, line=change.line)
        try:
            decision = annotate.take_over_gold(
                round=round,
                response=responses[place.response_id],
                claim=claims[place.claim_id] if place.claim_id else None,
                passage=passages[place.passage_id] if place.passage_id else None,
                dimension=place.dimension,
                label=change.after,
                instead_of=change.before,
                note=f"{note}\n{words}" if note else words,
                person=person,
                judge_seen=judge_seen,
            )
        except annotate.Refused as refused:
            findings.problem(change.line, "label", str(refused), change.after)
        else:
            made.append(decision)
    findings.raise_if_refused()
    return made
