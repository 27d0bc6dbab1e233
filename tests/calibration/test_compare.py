"""Two system runs: what is refused, what is withheld, and the paired figures against the worked examples."""

import csv
import io
import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse

from annotate.models import Assignment, GoldLabel, Round, RubricVersion
from calibration import stats
from calibration.comparing import Side, comparison, release_note
from calibration.reports import build_report
from evalsets.models import EvalSetVersion, Item, Response, System, SystemRun
from tests.calibration.labelled import judged, labelled_set
from tests.calibration.test_report import as_now
from tests.calibration.test_report_pages import text_of, url

pytestmark = pytest.mark.django_db


def pairs(labelled, counts, *, answerable=True):
    """Items on which (after, before) both refuse, one of them or neither: {(bad, bad): how many}."""
    runs = {name: labelled.run(name) for name in ("before", "after")}
    rows = [pair for pair, n in counts.items() for _ in range(n)]
    items = Item.objects.bulk_create(
        Item(version=labelled.version, item_id=f"i{n}", position=n + 1, question="?", answerable=answerable)
        for n in range(len(rows))
    )
    for name, place in (("after", 0), ("before", 1)):
        responses = Response.objects.bulk_create(
            Response(
                version=labelled.version,
                run=runs[name],
                item=item,
                response_id=f"{name}{item.item_id}",
                position=item.position,
                text="text",
            )
            for item in items
        )
        GoldLabel.objects.bulk_create(
            GoldLabel(
                round=labelled.round,
                response=response,
                dimension="abstention",
                label="REFUSED" if row[place] else "ANSWERED",
                source="agreed",
            )
            for response, row in zip(responses, rows, strict=True)
        )
    return labelled


def side(labelled, run, **changes):
    given = {"source": "gold", "unit": "claim", "round": labelled.round} | changes
    return Side(run=labelled.runs[run], **given)


def test_refusals_are_compared_pair_by_pair_as_in_the_worked_example():
    """EX-MN1: difference .065, [.006075, .123925], exact p .047031; half of 200 pairs apart by 37."""
    labelled = pairs(labelled_set(), {(0, 0): 150, (0, 1): 12, (1, 0): 25, (1, 1): 13})
    found = comparison(before=side(labelled, 0), after=side(labelled, 1))
    rates = {rate["name"]: rate for rate in found["rates"]}
    refusal = rates["over_refusal"]

    assert set(rates) == {"over_refusal", "answer_rate"}
    assert (refusal["before"]["numerator"], refusal["after"]["numerator"]) == (25, 38)
    assert refusal["difference"]["value"] == pytest.approx(0.065)
    assert refusal["difference"]["low"] == pytest.approx(0.006075, abs=1e-6)
    assert refusal["difference"]["high"] == pytest.approx(0.123925, abs=1e-6)
    assert refusal["p"] == pytest.approx(0.047031, abs=1e-6)
    # 2.8016 * sqrt(discordant / n), discordant = 37 / 200.
    assert refusal["minimum_detectable"] == pytest.approx(2.8016 * (37 / 200 / 200) ** 0.5, abs=1e-4)
    assert {rate["name"]: rate["undefined"] for rate in found["undefined"]} == {
        "hallucination": "zero_denominator",
        "contradicted": "zero_denominator",
        "over_answering": "zero_denominator",
    }
    here = next(point for point in refusal["curve"] if point["items"] == 200)
    assert here["difference"] == pytest.approx(refusal["minimum_detectable"])
    assert "verdict" not in found, "no item cannot be answered, so half of the pair is missing"
    note = release_note(found)
    assert "Over-refusal 12.5% to 19.0% (+6.5 points [+0.6, +12.4], p 0.047; not resolvable" in note


def both_classes(evalset=None):
    """Sixty items each way: after refuses everywhere where before answered half of the unanswerable."""
    labelled = labelled_set(evalset=evalset)
    pairs(labelled, {(0, 0): 60})
    for run in labelled.runs[:2]:
        items = [
            labelled.version.items.filter(item_id=f"u{n}").first()
            or labelled.item(f"u{n}", answerable=False, unanswerable_reason="out_of_scope")
            for n in range(20)
        ]
        for n, item in enumerate(items):
            response = labelled.response(f"{run.system}u{n}", item=item, run=run, assigned=False)
            answers = run.system.name == "before" and n < 15
            said = "ANSWERED" if answers else "REFUSED"
            labelled.label(response, None, "abstention", (), said)
    return labelled


def test_the_note_says_between_which_rates_the_difference_of_common_items_lies():
    """Twenty refusals on items that one system alone has; on the others 25 of 200 and 38 of 200."""
    labelled = pairs(labelled_set(), {(0, 0): 150, (0, 1): 12, (1, 0): 25, (1, 1): 13})
    for n in range(20):
        own = labelled.response(
            f"own{n}", item=labelled.item(f"own{n}", answerable=True), run=labelled.runs[0]
        )
        labelled.label(own, None, "abstention", (), "REFUSED")
    found = comparison(before=side(labelled, 0), after=side(labelled, 1))
    refusal = next(rate for rate in found["rates"] if rate["name"] == "over_refusal")

    assert refusal["before"]["value"] == pytest.approx(45 / 220)
    assert refusal["in_common"] == {"before": 25 / 200, "after": 38 / 200}
    assert refusal["difference"]["value"] == pytest.approx(38 / 200 - 25 / 200)
    note = release_note(found)
    assert "Over-refusal 20.5% to 19.0%; on the 200 items in common 12.5% to 19.0% (+6.5 points" in note
    assert "+6.5 points [+0.6 points" in refusal["sentence"]


def test_what_a_side_leaves_out_adds_up_to_its_claims():
    labelled = labelled_set()
    for run in (labelled.run("before"), labelled.run("after")):
        response = labelled.response(str(run), item=labelled.item(str(run)), run=run)
        for label in ("supported", "unsupported", "unverifiable", "unverifiable"):
            labelled.claim(response, label, label, decision=label != "supported")
        labelled.claim(response, "supported", "unsupported", decision=True)
    for unit, counted in (("claim", 2), ("decision", 1)):
        sides = [side(labelled, place, unit=unit) for place in (0, 1)]
        found = comparison(before=sides[0], after=sides[1])
        before = found["rates"][0]["before"]
        assert before["n"] == counted
        assert before["n"] + sum(before["excluded"].values()) == 5
        assert before["excluded"]["unverifiable"] == 2


def test_a_comparison_that_failures_block_names_the_systems_and_counts_all_their_units():
    """50 of 100 failed, and 1 of 100: also where 49 of these are on items that the other does not have."""
    old, new = range(99), range(50)
    nothing = {"items_a": new, "items_b": old, "failed_a": 50, "failed_b": 1, "names": ("new", "old")}
    told = stats.compare_rates([0] * 50, [1] * 50, [0] * 99, [1] * 99, **nothing).blocked
    assert "50.0% of the units of new and on 1.0% of those of old" in told

    # Where 40 of the labelled ones are unverifiable, they were labelled all the same.
    few = [1] * 10 + [0] * 40
    told = stats.compare_rates([0] * 50, few, [0] * 99, [1] * 99, **nothing, asked_a=100, asked_b=100).blocked
    assert "50.0% of the units of new" in told


def test_one_drops_and_the_other_does_not_rise_is_an_improvement_and_back_a_regression():
    labelled = both_classes()
    better = comparison(before=side(labelled, 0), after=side(labelled, 1))
    worse = comparison(before=side(labelled, 1), after=side(labelled, 0))
    assert better["verdict"]["verdict"] == "improvement"
    answering = next(rate for rate in better["rates"] if rate["name"] == "over_answering")
    assert (answering["items"], answering["mcnemar"]["only_second"]) == (20, 15)
    assert answering["p"] == pytest.approx(2 * 0.5**15), "exact McNemar: 15 pairs, all in one direction"
    assert worse["verdict"]["verdict"] == "regression"
    assert "Improvement" in release_note(better)


def test_the_hallucination_rate_of_a_side_is_that_of_the_rates_page():
    labelled = labelled_set()
    for name, labels in (("a", ["unsupported", "supported", "unverifiable"]), ("b", ["supported"] * 2)):
        run = labelled.run(name)
        item = labelled.version.items.first() or labelled.item("i")
        response = labelled.response(name, item=item, run=run)
        for label in labels:
            labelled.claim(response, label, label)
        labelled.response(f"{name} without a claim", run=run)
    claims = comparison(before=side(labelled, 0), after=side(labelled, 1))["rates"][0]
    assert (claims["before"]["numerator"], claims["before"]["denominator"]) == (1, 2)
    sides = [side(labelled, run, unit="response") for run in (0, 1)]
    whole = comparison(before=sides[0], after=sides[1])["rates"][0]
    assert (whole["before"]["numerator"], whole["before"]["denominator"]) == (1, 2)
    assert whole["difference"]["excluded"] == {"only_a": 1, "only_b": 1}


def test_what_would_mislead_is_refused_with_every_reason():
    labelled = pairs(labelled_set(), {(0, 0): 3})
    other = EvalSetVersion.objects.create(evalset=labelled.version.evalset, number=2)
    system = System.objects.create(evalset=other.evalset, name="newer", fingerprint="n")
    newer = SystemRun.objects.create(version=other, system=system, number=1)
    rubric = RubricVersion.objects.create(
        rubric=labelled.round.rubric_version.rubric, number=2, sha256="e" * 64
    )
    round = Round.objects.create(version=other, number=1, kind="first", rubric_version=rubric)
    round.runs.add(newer)

    found = comparison(
        before=side(labelled, 0),
        after=Side(run=newer, source="gold", unit="response", round=round),
    )
    text = " ".join(found["refused"])
    assert set(found) == {"refused"}
    for reason in ("different versions", "different units", "different rubric versions"):
        assert reason in text
    differently = comparison(before=side(labelled, 0), after=side(labelled, 1, source="grader:ada"))
    assert "judged differently: by gold and by grader:ada" in " ".join(differently["refused"])
    same = comparison(before=side(labelled, 0), after=side(labelled, 0))
    assert same["refused"] == ["Both sides are the same system run."]
    labelled.round.runs.remove(labelled.runs[1])
    assert "did not grade" in comparison(before=side(labelled, 0), after=side(labelled, 1))["refused"][0]


# A judge


@pytest.fixture
def two_systems(evalset):
    """Two systems of 55 responses, two claims each; a judge that says nearly always what gold says."""
    labelled = labelled_set(evalset=evalset)
    verdicts = []
    items = [labelled.item(f"i{n}") for n in range(55)]
    for name in ("before", "after"):
        run = labelled.run(name)
        for n, item in enumerate(items):
            response = labelled.response(f"{name}{n}", item=item, run=run)
            for label in ("supported", ("supported", "contradicted", "unsupported")[n % 3]):
                claim = labelled.claim(response, label, label)
                verdicts.append((response, claim, label))
    return labelled, as_now(judged(labelled, verdicts))


def test_a_judge_compares_only_once_it_is_trusted_on_both(two_systems):
    labelled, run = two_systems
    sides = {
        "before": side(labelled, 0, source="judge:judge-a"),
        "after": side(labelled, 1, source="judge:judge-a"),
    }
    closed = comparison(**sides)
    assert closed["withheld"]["grounding"]["state"] == "UNCALIBRATED"
    assert "rates" not in closed

    report = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    assert report.gate_state == "TRUSTED"
    found = comparison(**sides)
    (hallucination, _contradicted) = found["rates"]
    assert hallucination["difference"]["value"] == 0
    assert found["errors"]["grounding"]["equal"] is True

    payload = json.loads(json.dumps(report.payload))
    payload["per_system"][1]["gate"]["state"] = "NOT_TRUSTED"
    type(report).objects.create(
        judge_run=run,
        round=labelled.round,
        dimension="grounding",
        number=2,
        gate_state="TRUSTED",
        payload=payload,
    )
    again = comparison(**sides)
    assert again["withheld"]["grounding"]["state"] == "NOT_TRUSTED"
    assert "rates" not in again


@pytest.mark.parametrize(("equal", "words"), [(True, "errors was found"), (None, "could not be tested")])
def test_the_page_says_whether_the_judges_errors_were_compared(
    client, lead, two_systems, monkeypatch, equal, words
):
    labelled, run = two_systems
    build_report(judge_run=run, round=labelled.round, dimension="grounding")
    monkeypatch.setattr("calibration.comparing._errors", lambda *_of: {"equal": equal, "sentence": ""})
    client.force_login(lead)
    page = text_of(client.get(asked(source_before="judge:judge-a")))
    told = {
        "errors was found": "errors was found" in page,
        "could not be tested": "could not be tested" in page,
    }
    assert [said for said, there in told.items() if there] == [words]


# Doors


@pytest.fixture
def on_the_page(evalset):
    return both_classes(evalset)


def asked(**query):
    return url("compare", **({"before": "1:1", "after": "1:2"} | query))


def test_the_page_gives_the_verdict_the_note_and_the_command(client, lead, on_the_page):
    client.force_login(lead)
    assert client.get(url("compare")).status_code == 200
    page = text_of(client.get(asked()))
    assert "Improvement" in page and "after against before on roles@1, by gold" in page
    assert "15 of 20 · 20 items" in page, "what each side's rate rests on"
    assert "Hallucination rate of claims: undefined" in page
    assert "compare roles@1 --before 1:1 --after 1:2 --json" in page
    refused = text_of(client.get(asked(unit_after="response")))
    assert "Not compared" in refused and "different units" in refused and "Improvement" not in refused
    assert client.get(asked(after="9:9")).status_code == 400


def test_the_picture_of_what_the_set_can_show_can_be_taken_away(client, lead, on_the_page):
    client.force_login(lead)
    address = reverse("calibration:compare_chart", args=["roles", 1, "over_answering", "csv"])
    answer = client.get(address + "?before=1:1&after=1:2")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert {"20", "100"} <= {row["items"] for row in rows}
    assert client.get(address.replace(".csv", ".svg") + "?before=1:1&after=1:2").status_code == 200
    assert client.get(address + "?before=1:1&after=1:1").status_code == 404


def test_the_comparison_is_for_leads_who_do_not_grade(client, lead, grader_a, stranger, on_the_page):
    for person in (grader_a, stranger):
        client.force_login(person)
        assert client.get(asked()).status_code == 404
    labelled = on_the_page
    labelled.graders[0].person = lead
    labelled.graders[0].save()
    response = labelled.version.responses.first()
    Assignment.objects.create(
        round=labelled.round, response=response, grader=labelled.graders[0], slot=1, order=1, state="pending"
    )
    client.force_login(lead)
    assert client.get(asked()).status_code == 403


def test_the_command_prints_the_same_figures():
    both_classes()
    out = io.StringIO()
    call_command("compare", "set@1", "--before", "1:1", "--after", "1:2", "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert found["verdict"]["verdict"] == "improvement"
    with pytest.raises(CommandError, match="--after"):
        call_command("compare", "set@1", "--before", "1:1", "--after", "1:9", stdout=out)
