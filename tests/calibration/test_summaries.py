"""The one-page report: frozen with a number, readable beside the gold folder, silent about withheld rates."""

import json
import re

import pytest
from bs4 import BeautifulSoup
from django.core.management.base import CommandError
from django.db import DatabaseError, transaction
from django.urls import reverse

from annotate.models import Annotation, Assignment
from calibration import summary_page
from calibration.gold_export import export_gold
from calibration.models import Judge, Summary
from calibration.summaries import NotSummable, as_json, build_summary, has_changed, shown, superseding
from tests.calibration.labelled import labelled_set
from tests.calibration.test_report import command
from tests.calibration.test_report_pages import (  # noqa: F401  (fixtures)
    evalset,
    kept_labelled,
    labelled,
    trusted,
    untrusted,
)

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def url(name, *args):
    return reverse(f"calibration:{name}", args=["roles", 1, *args])


def built(labelled):  # noqa: F811
    return build_summary(version=labelled.version, round=labelled.round)


def numbers_in(figures, path=""):
    """Every number object, by where it stands."""
    if isinstance(figures, dict) and "value" in figures and "level" in figures:
        yield path, figures
    elif isinstance(figures, dict):
        for key, value in figures.items():
            yield from numbers_in(value, f"{path}.{key}")
    elif isinstance(figures, list):
        for place, value in enumerate(figures):
            yield from numbers_in(value, f"{path}[{place}]")


# Frozen, numbered, superseded


def test_the_same_data_make_the_same_report_and_a_change_makes_the_next(labelled):  # noqa: F811
    first = built(labelled)
    assert first.number == 1
    assert built(labelled) == first, "twice is once"
    assert not has_changed(first)
    assert superseding(first) is None

    Annotation.objects.filter(dimension="abstention").first().delete()
    assert has_changed(first)
    before = json.dumps(first.payload, sort_keys=True)
    second = built(labelled)
    assert second.number == 2
    assert superseding(first) == second
    first.refresh_from_db()
    assert json.dumps(first.payload, sort_keys=True) == before, "the old one stays as it was"
    assert as_json(first)["superseded_by"] == 2


def test_a_report_cannot_be_changed_in_the_database(labelled):  # noqa: F811
    made = built(labelled)
    with pytest.raises(DatabaseError), transaction.atomic():
        Summary.objects.filter(pk=made.pk).update(number=9)
    with pytest.raises(DatabaseError), transaction.atomic():
        Summary.objects.filter(pk=made.pk).delete()


def test_a_draft_and_a_round_without_labels_are_refused():
    empty = labelled_set()
    with pytest.raises(NotSummable, match="Freeze"):
        built(empty)
    empty.response("r1")
    empty.freeze()
    with pytest.raises(NotSummable, match="Nobody has labelled"):
        built(empty)


# What it says


def test_its_figures_are_those_of_the_gold_folder(labelled, tmp_path):  # noqa: F811
    """A reviewer with the page and the folder finds each figure under the path that the page names."""
    manifest = export_gold(version=labelled.version, round=labelled.round, out=tmp_path)
    payload = built(labelled).payload
    for key in ("agreement", "rates", "counts"):
        assert payload[key] == json.loads(json.dumps(manifest[key])), key
    assert payload["version"]["content_hash"] == manifest["content_hash"]
    assert payload["rates"]["hallucination"]["numerator"] == 40  # two of three labels of every second claim
    assert payload["rates"]["hallucination"]["denominator"] == 120


def test_no_grader_is_named(labelled, untrusted):  # noqa: F811
    made = json.dumps(as_json(built(labelled)))
    assert "grader 1" in made
    for name in ("ada", "ben"):
        assert not re.search(rf"\b{name}\b", made)


def test_a_trusted_judge_is_quoted_and_an_untrusted_one_is_not(labelled, trusted, untrusted):  # noqa: F811
    judges = {judge["name"]: judge for judge in built(labelled).payload["judges"]}
    good, bad = judges["judge-a"], judges["judge-z"]
    assert good["gates"][0]["state"] == "TRUSTED"
    assert good["rates"]["hallucination"]["numerator"] == 40
    assert bad["gates"][0]["state"] == "NOT_TRUSTED"
    assert "rates" not in bad
    assert 56 not in [number.get("numerator") for _path, number in numbers_in(bad)]


def test_the_rates_of_a_judge_are_withheld_again_when_its_gate_closes(labelled, trusted):  # noqa: F811
    made = built(labelled)
    assert "hallucination" in shown(made)["judges"][0]["rates"]
    Judge.objects.filter(pk=trusted.judge_id).update(model="model-y")
    withheld = shown(made)["judges"][0]["rates"]
    assert set(withheld) == {"withheld"}
    assert withheld["withheld"]["state"] == "STALE"
    assert "hallucination" in made.payload["judges"][0]["rates"], "what is stored is not touched"
    assert has_changed(made)


@pytest.mark.parametrize(
    ("then", "now", "stands"),
    [
        (("TRUSTED", "TRUSTED"), ("TRUSTED", "TRUSTED"), True),
        (("TRUSTED", "NOT_TRUSTED"), ("TRUSTED", "TRUSTED"), True),
        (("INSUFFICIENT", "INSUFFICIENT"), ("TRUSTED", "TRUSTED"), True),
        (("TRUSTED", "TRUSTED"), ("TRUSTED", "NOT_TRUSTED"), False),
        # Only together now: what the page shows of each by itself is withheld.
        (("TRUSTED", "TRUSTED"), ("INSUFFICIENT", "INSUFFICIENT"), False),
        # The rate over both less the page's rate over the first would be that of the second.
        (("INSUFFICIENT", "UNCALIBRATED"), ("INSUFFICIENT", "INSUFFICIENT"), False),
    ],
)
def test_an_old_page_tells_nothing_of_a_system_that_is_withheld_now(labelled, trusted, then, now, stands):  # noqa: F811
    _report_with(trusted, labelled.round, then)
    made = built(labelled)
    assert "hallucination" in shown(made)["judges"][0]["rates"]
    _report_with(trusted, labelled.round, now)
    assert ("hallucination" in shown(made)["judges"][0]["rates"]) is stands


def _report_with(run, round, states):
    """A report like the first one, with these states of its systems."""
    first = run.reports.earliest("number")
    payload = json.loads(json.dumps(first.payload))
    for entry, state in zip(payload["per_system"], states, strict=True):
        entry["gate"]["state"] = state
    run.reports.create(
        round=round,
        dimension="grounding",
        number=run.reports.count() + 1,
        gate_state="TRUSTED",
        payload=payload,
    )


def test_its_limits_are_said_in_plain_words(labelled):  # noqa: F811
    said = " ".join(as_json(built(labelled))["limits"])
    assert "No judge is trusted here" in said
    assert "Nobody has checked how the claims were extracted" in said
    assert "60 inputs" in said


def test_kappa_with_incomplete_gold_is_shown_beside_what_the_gate_went_by():
    kappa = {"value": 0.89, "low": 0.86, "high": 0.92, "flags": ["gold_incomplete"]}
    by_graders = {"name": "judge_agreement", "passed": True, "value": 0.782, "estimate": 0.814}
    gate = {"cohen_kappa": kappa, "conditions": [by_graders], "dimension": "grounding"}
    assert summary_page._by_graders(gate) == by_graders
    assert summary_page._by_graders(gate | {"cohen_kappa": kappa | {"flags": []}}) is None
    assert summary_page._by_graders(gate | {"cohen_kappa": None}) is None
    assert summary_page._name_in_ladder({"name": "j"}, gate) == "j: grounding, settled only"


def test_a_judge_closed_on_a_system_is_named_with_its_dimension():
    """Closed on beta in grounding and on alpha in abstention: neither is left out of the other's rates."""
    closed = {"same_family": [], "state": "TRUSTED"}
    gates = [
        closed | {"dimension": "grounding", "closed_systems": ["beta"]},
        closed | {"dimension": "abstention", "closed_systems": ["alpha"]},
    ]
    said = list(summary_page._limits_of_judges({"judges": [{"name": "j", "rates": {}, "gates": gates}]}))
    assert said == [
        "grounding: j is not trusted on beta; its rates leave them out.",
        "abstention: j is not trusted on alpha; its rates leave them out.",
    ]


def test_undecided_claims_are_a_limit():
    labelled = labelled_set()  # noqa: F811
    for number in range(4):
        response = labelled.response(f"r{number}")
        labelled.claim(response, "supported", "supported" if number else "unsupported")
    labelled.freeze()
    made = as_json(built(labelled))
    assert made["limits"][0].startswith("On 1 claim the graders differ")
    # Wherever the undecided claim falls: 0 or 1 of 4.
    assert made["rates"]["hallucination"]["worst_case"] == {"low": 0.0, "high": 0.25}
    assert "25.0" in made["limits"][1]


# The pages


def test_the_lead_builds_it_and_reads_it(client, lead, labelled, trusted):  # noqa: F811
    client.force_login(lead)
    assert "None has been built" in client.get(url("summaries")).content.decode()
    made = client.post(url("build_summary"), {"round": 1}, follow=True)
    assert made.redirect_chain[-1][0] == url("summary", 1)
    soup = BeautifulSoup(made.content, "html.parser")
    text = " ".join(soup.get_text(" ").split())
    for words in (labelled.version.content_hash, "40 of 120", "judge-a", "recompute DIR", "grader 1 ("):
        assert words in text
    assert soup.find("svg"), "a picture that needs no script"
    assert not soup.find_all(style=True)
    assert not soup.find_all("style")
    again = client.post(url("build_summary"), {"round": 1}, follow=True)
    assert again.redirect_chain[-1][0] == url("summary", 1), "a double submit builds no second one"
    assert Summary.objects.count() == 1


def test_the_file_needs_nothing_else(client, lead, labelled):  # noqa: F811
    built(labelled)
    client.force_login(lead)
    answer = client.get(url("summary_file", 1))
    assert 'filename="one-page-report-roles-1-1.html"' in answer["Content-Disposition"]
    soup = BeautifulSoup(answer.content, "html.parser")
    assert not soup.find_all("link")
    assert not soup.find_all("script")
    assert not soup.find_all("img")
    assert "@page" in soup.find("style").string
    assert labelled.version.content_hash in soup.get_text()


def test_the_json_holds_what_the_page_shows(client, lead, labelled, trusted):  # noqa: F811
    built(labelled)
    client.force_login(lead)
    answer = client.get(url("summary_json", 1)).json()
    assert answer["report"] == 1
    assert answer["rates"]["hallucination"]["value"] == pytest.approx(40 / 120)
    assert answer["commands"]["agreement"] == "agreement roles@1 --round 1"


def test_an_old_report_says_what_superseded_it(client, lead, labelled):  # noqa: F811
    built(labelled)
    Annotation.objects.filter(dimension="abstention").first().delete()
    client.force_login(lead)
    assert "have changed since this report" in client.get(url("summary", 1)).content.decode()
    built(labelled)
    page = client.get(url("summary", 1)).content.decode()
    assert "Superseded by" in page
    assert url("summary", 2) in page


def addresses():
    return [url("summaries"), url("summary", 1), url("summary_file", 1), url("summary_json", 1)]


def test_for_other_roles_it_does_not_exist(client, lead, grader_a, stranger, labelled):  # noqa: F811
    built(labelled)
    for person, status in ((lead, 200), (grader_a, 404), (stranger, 404)):
        client.force_login(person)
        for address in addresses():
            assert client.get(address).status_code == status, address
    assert client.post(url("build_summary"), {"round": 1}).status_code == 404
    client.force_login(lead)
    assert client.get(url("summary", 7)).status_code == 404
    assert client.get(url("build_summary")).status_code == 405


def test_it_is_closed_to_a_lead_who_still_grades(client, lead, labelled):  # noqa: F811
    built(labelled)
    Assignment.objects.filter(grader=labelled.graders[0]).update(state="pending")
    labelled.graders[0].person = lead
    labelled.graders[0].save()
    client.force_login(lead)
    for address in addresses():
        assert client.get(address).status_code == 403, address
    assert client.post(url("build_summary"), {"round": 1}).status_code == 403


def test_a_round_that_is_not_there_is_refused(client, lead, labelled):  # noqa: F811
    client.force_login(lead)
    answer = client.post(url("build_summary"), {"round": 9}, follow=True)
    assert "no such grading round" in answer.content.decode()
    assert not Summary.objects.exists()


def test_the_command_gives_the_same_number_while_nothing_changes(labelled, trusted):  # noqa: F811
    first = command("one_page_report", "roles@1")
    assert first["report"] == command("one_page_report", "roles@1")["report"] == 1
    assert first["judges"][0]["gates"][0]["state"] == "TRUSTED"
    with pytest.raises(CommandError, match="no round 5"):
        command("one_page_report", "roles@1", "--round", "5")
