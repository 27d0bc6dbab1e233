"""Decisions afterwards: taken back by a further entry, and all of them in the log."""

import csv
import io

import pytest

from annotate import services
from annotate.models import Adjudication, GoldLabel
from tests.annotate.deciding import adjudicate, disagreements, url
from tests.annotate.pages import soup
from tests.annotate.worlds import claim_of, say

# Taking a decision back


def test_revoke_restores_what_the_labels_say(round, as_, lead, grader_a, grader_b):
    for person in (grader_a, grader_b):
        say(round, person, 6, "supported", "ANSWERED")
    entry = adjudicate(round, 6, "contradicted", lead)
    gold = GoldLabel.objects.get(claim=claim_of(round, 6))
    assert (gold.label, gold.source) == ("contradicted", "adjudicated")
    as_(lead).post(url(round, "revoke", entry.pk), {"note": "wrong key"})
    gold = GoldLabel.objects.get(claim=claim_of(round, 6))
    assert (gold.label, gold.source, gold.adjudication) == ("supported", "agreed", None)
    further = Adjudication.objects.get(revokes=entry)
    assert (further.by, further.note, further.reason) == (lead, "wrong key", "revoked")
    assert Adjudication.objects.count() == 2


def test_revoke_leaves_a_disagreement_to_decide_again(split_over_six, lead):
    entry = adjudicate(split_over_six, 6, "contradicted", lead)
    assert [d.status for d in disagreements(split_over_six)] == ["done"]
    services.revoke(adjudication=entry, person=lead)
    assert not GoldLabel.objects.exists()
    assert [d.status for d in disagreements(split_over_six)] == ["pending"]


def test_revoke_restores_the_decision_before(split_over_six, lead):
    first = adjudicate(split_over_six, 6, "contradicted", lead)
    second = adjudicate(split_over_six, 6, "unverifiable", lead)
    services.revoke(adjudication=second, person=lead)
    gold = GoldLabel.objects.get()
    assert (gold.label, gold.adjudication) == ("contradicted", first)
    services.revoke(adjudication=first, person=lead)
    assert not GoldLabel.objects.exists()


def test_revoke_takes_back_only_what_holds_and_only_once(split_over_six, as_, lead):
    first = adjudicate(split_over_six, 6, "contradicted", lead)
    second = adjudicate(split_over_six, 6, "unverifiable", lead)
    with pytest.raises(services.Conflict, match="Another decision holds"):
        services.revoke(adjudication=first, person=lead)
    services.revoke(adjudication=second, person=lead)
    answer = as_(lead).post(url(split_over_six, "revoke", second.pk), follow=True)
    assert "Another decision holds" in answer.content.decode()
    assert Adjudication.objects.filter(revokes__isnull=False).count() == 1


def test_labels_stay_final_after_a_decision_was_taken_back(split_over_six, lead, grader_a):
    services.revoke(adjudication=adjudicate(split_over_six, 6, "contradicted", lead), person=lead)
    with pytest.raises(services.Conflict):
        say(split_over_six, grader_a, 6, "unsupported")


def test_part_of_a_split_claim_is_decided_anew_not_taken_back(round, lead, grader_a, grader_b):
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "supported")
    made = services.split_claim(
        round=round,
        claim=claim_of(round, 4),
        parts=[("Dogs.", "supported"), ("Leads.", "unsupported")],
        person=lead,
    )
    with pytest.raises(services.Conflict, match="decide it anew"):
        services.revoke(adjudication=made[0], person=lead)
    anew = adjudicate(round, 4, "contradicted", lead, claim=made[0].claim)
    services.revoke(adjudication=anew, person=lead)
    assert GoldLabel.objects.get(claim=made[0].claim).label == "supported"


# The log


def test_log_has_every_entry_in_order_and_says_what_was_taken_back(split_over_six, as_, lead):
    first = adjudicate(split_over_six, 6, "contradicted", lead, note="see <b>p2</b>")
    services.revoke(adjudication=first, person=lead)
    adjudicate(split_over_six, 6, "unverifiable", lead)
    rows = [
        row.get_text(" ", strip=True)
        for row in soup(as_(lead).get(url(split_over_six, "decisions"))).select("tbody tr")
    ]
    assert len(rows) == 3
    assert "see <b>p2</b>" in rows[0]
    assert "taken back by entry 2" in rows[0]
    assert "takes entry 1 back" in rows[1]
    assert "unverifiable" in rows[2]
    for row in rows:
        assert "grader_a" in row
        assert "grader_b" in row
        assert "rubric Standard 1" in row or "round 1, rubric" in row


def test_log_as_csv_is_inert_and_complete(split_over_six, as_, lead):
    adjudicate(split_over_six, 6, "contradicted", lead, note="=1+1")
    answer = as_(lead).get(url(split_over_six, "decisions_csv"))
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert len(rows) == 1
    row = rows[0]
    assert row["labels"] == "grader_a: supported; grader_b: contradicted"
    assert (row["by"], row["decision"], row["note"], row["response_id"]) == (
        "lead",
        "contradicted",
        "'=1+1",
        "response-6",
    )
    assert row["at"].endswith("Z")


def test_log_of_parts_says_what_was_said_of_the_claim(round, as_, lead, grader_a, grader_b):
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "supported")
    parts = [("Dogs.", "supported"), ("Leads.", "unsupported")]
    services.split_claim(round=round, claim=claim_of(round, 4), parts=parts, person=lead)
    rows = soup(as_(lead).get(url(round, "decisions"))).select("tbody tr")
    assert len(rows) == 2
    assert all("unsupported" in row.select("td")[3].get_text() for row in rows)


@pytest.mark.parametrize("name", ["decisions", "decisions_csv", "revoke", "split_claim"])
def test_others_find_nothing(split_over_six, as_, lead, grader_a, stranger, name):
    entry = adjudicate(split_over_six, 6, "contradicted", lead)
    more = {"revoke": [entry.pk], "split_claim": [claim_of(split_over_six, 6).pk]}.get(name, [])
    place = url(split_over_six, name, *more)
    for person in (grader_a, stranger):
        client = as_(person)
        answer = client.post(place) if more else client.get(place)
        assert answer.status_code == 404
    assert Adjudication.objects.count() == 1


def test_decisions_of_another_version_are_not_found(split_over_six, as_, lead):
    assert as_(lead).post(url(split_over_six, "revoke", 999)).status_code == 404
