"""What the tests of adjudication share: addresses, the queue, and a decision."""

from django.urls import reverse

from annotate import services
from annotate.disagreement_kinds import Wanted
from annotate.disagreements import DisagreementQueue
from evalsets.models import Item
from tests.annotate.worlds import claim_of, response_of


def url(round, name, *more):
    place = [round.version.evalset.slug, round.version.number]
    if name not in ("disagreements", "decisions", "decisions_csv"):
        place.append(round.number)
    if name == "adjudicate":
        more = more or ("grounding", claim_of(round, 6).pk)
    return reverse(f"annotate:{name}", args=[*place, *more])


def disagreements(round, **wanted):
    return list(DisagreementQueue(round, Wanted(**{"status": "", **wanted})))


def positions(found):
    return [Item.objects.get(responses=d.response_id).position for d in found]


def decision(page, **fields):
    """The fields of the decision form on the page."""
    return {
        "label": "contradicted",
        "reason": "edge_case",
        "note": "",
        "seen": page.select_one("#decision [name=seen]")["value"],
        **fields,
    }


def adjudicate(round, position, label, person, claim=None, dimension=None, **more):
    claim = claim_of(round, position) if claim is None else claim
    return services.adjudicate(
        round=round,
        response=response_of(round, position),
        claim=claim or None,
        dimension=dimension or ("grounding" if claim else "abstention"),
        label=label,
        reason="edge_case",
        person=person,
        **more,
    )
