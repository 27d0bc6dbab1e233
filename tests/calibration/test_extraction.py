"""The extraction error: from marks to the figure that stands beside every rate of claims."""

import io
import json

import pytest
from django.core.management import call_command
from django.urls import reverse

from annotate import services
from annotate.models import AuditedResponse, AuditSample, ClaimAudit
from calibration.extraction import extraction_of, with_extraction
from calibration.rates import human_rates
from calibration.reports import build_report
from evalsets.models import Membership
from tests.calibration.labelled import an_adjudicator, judged, labelled_set
from tests.calibration.test_report import trusted_judge

pytestmark = pytest.mark.django_db

# EX-CL1: claims and faulty ones of twelve responses; the clustered interval is the worked example's.
EX_CL1 = [(8, 0), (6, 0), (10, 5), (5, 0), (7, 1), (9, 0), (4, 4), (12, 0), (6, 2), (8, 0), (5, 3), (7, 0)]


def audit(labelled, marks_of, missing=None, number=1):
    """One sample: response -> its marks; `missing` counts by response, 0 unless named."""
    sample = AuditSample.objects.create(
        version=labelled.version, number=number, seed=number, created_by=an_adjudicator()
    )
    sample.runs.set(labelled.runs)
    for position, (response, marks) in enumerate(marks_of.items(), start=1):
        audited = AuditedResponse.objects.create(sample=sample, response=response, position=position)
        for claim, mark in zip(response.claims.filter(parent=None), marks or (), strict=marks is not None):
            services.mark_claim(audited=audited, claim=claim, mark=mark)
        if marks is not None:
            services.finish_audited(
                audited=audited, missing=(missing or {}).get(response, 0), person=an_adjudicator()
            )
    return sample


def ex_cl1():
    labelled = labelled_set()
    marks = {}
    for number, (claims, bad) in enumerate(EX_CL1):
        response = labelled.response(f"r{number}")
        for _ in range(claims):
            labelled.claim(response, "supported", "supported")
        marks[response] = ["badly_split"] * (bad - bad // 2) + ["not_in_response"] * (bad // 2)
        marks[response] += ["well_split"] * (claims - bad)
    return labelled, marks


def rates_with(labelled):
    rates = human_rates(version=labelled.version, round=labelled.round, source="gold", unit="claim")
    return with_extraction(rates, labelled.runs)


def test_the_error_has_the_interval_of_its_items_and_its_kinds_add_up():
    labelled, marks = ex_cl1()
    audit(labelled, marks, missing={next(iter(marks)): 6})
    found = extraction_of(labelled.runs)
    error = found["error"]
    assert (error["numerator"], error["denominator"], error["clusters"]) == (15, 87, 12)
    assert (error["low"], error["high"]) == pytest.approx((0.064185, 0.387559), abs=1e-6)
    assert found["by_fault"]["badly_split"]["numerator"] == 9
    assert found["by_fault"]["not_in_response"]["numerator"] == 6
    assert found["marks"] == {"well_split": 72, "badly_split": 9, "not_in_response": 6}
    assert found["missed_per_response"]["value"] == 0.5
    assert found["responses_audited"] == found["responses"] == 12


def test_what_nobody_audited_is_said_and_is_no_number():
    labelled, _marks = ex_cl1()
    found = extraction_of(labelled.runs)
    assert found["error"]["value"] is None
    assert found["error"]["undefined"] == found["missed_per_response"]["undefined"] == "not_audited"
    assert "nobody has checked" in found["sentence"]


def test_an_unfinished_response_does_not_count_and_is_counted_as_waiting():
    labelled, marks = ex_cl1()
    waiting = list(marks)[2]
    sample = audit(labelled, marks | {waiting: None})
    half_done = AuditedResponse.objects.get(sample=sample, response=waiting)
    ClaimAudit.objects.create(audited=half_done, claim=waiting.claims.first(), mark="badly_split")
    found = extraction_of(labelled.runs)
    assert (found["error"]["numerator"], found["error"]["denominator"]) == (10, 77)
    assert found["error"]["excluded"] == {"not_audited": 10}
    assert (found["responses_audited"], found["responses_waiting"]) == (11, 1)


def test_the_latest_finished_audit_of_a_response_counts_once():
    labelled, marks = ex_cl1()
    audit(labelled, marks)
    response = list(marks)[2]
    audit(labelled, {response: ["well_split"] * 10}, number=2)
    audit(labelled, {response: None}, number=3)
    found = extraction_of(labelled.runs)
    assert (found["error"]["numerator"], found["error"]["denominator"]) == (10, 87)
    assert found["responses_waiting"] == 0


def test_systems_and_strata_stand_apart():
    labelled = labelled_set()
    marks = {}
    for name, mark in (("careful", "well_split"), ("loose", "not_in_response")):
        run = labelled.run(name)
        item = labelled.item(f"of {name}", strata={"type": name})
        response = labelled.response(f"r {name}", item=item, run=run)
        labelled.claim(response, "supported", "supported")
        marks[response] = [mark]
    unseen = labelled.run("unseen")
    labelled.claim(labelled.response("u", run=unseen), "supported", "supported")
    audit(labelled, marks)
    rates = rates_with(labelled)
    assert [entry["extraction"]["error"]["value"] for entry in rates["per_system"]] == [0.0, 1.0, None]
    assert rates["per_system"][2]["extraction"]["error"]["undefined"] == "not_audited"
    by_stratum = {entry["value"]: entry["extraction"]["error"]["value"] for entry in rates["per_stratum"]}
    assert by_stratum == {"careful": 0.0, "loose": 1.0}


def test_parts_of_a_split_are_no_extracted_claims():
    labelled = labelled_set()
    response = labelled.response("r")
    parent = labelled.claim(response, "unsupported", "supported")
    for label in ("supported", "unsupported"):
        labelled.claim(response, gold=label, parent=parent)
    audit(labelled, {response: ["badly_split"]})
    assert extraction_of(labelled.runs)["error"]["denominator"] == 1


def command(*args, json_too=True):
    out = io.StringIO()
    call_command(*args, *(["--json"] if json_too else []), stdout=out)
    return json.loads(out.getvalue()) if json_too else out.getvalue()


def test_the_command_gives_it_beside_the_rate_in_json_and_words():
    labelled, marks = ex_cl1()
    assert command("rates", "set@1")["extraction"]["error"]["undefined"] == "not_audited"
    assert "nobody has checked" in command("rates", "set@1", json_too=False)
    audit(labelled, marks)
    shown = command("rates", "set@1")
    assert shown["extraction"]["error"]["numerator"] == 15
    assert shown["per_system"][0]["extraction"]["error"]["numerator"] == 15
    assert "Extraction error: 15 of 87 claims, 17.2%" in command("rates", "set@1", json_too=False)


def test_a_withheld_judge_gives_the_reason_and_nothing_else():
    labelled, marks = ex_cl1()
    audit(labelled, marks)
    judged(labelled, [])
    shown = command("rates", "set@1", "--source", "judge:judge-a")
    assert "withheld" in shown and "extraction" not in shown


def audit_first_response(labelled):
    response = labelled.runs[0].responses.first()
    n = response.claims.count()
    audit(labelled, {response: ["not_in_response"] + ["well_split"] * (n - 1)})
    return n


def test_a_trusted_judges_rates_carry_it_too(reader):
    labelled, run = trusted_judge()
    report = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    assert report.payload["rates"]["extraction"]["error"]["undefined"] == "not_audited"
    n = audit_first_response(labelled)
    again = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    assert again.number == report.number + 1  # the report of before stays as it was
    for rates in (again.payload["rates"], again.payload["gold_rates"]):
        assert (rates["extraction"]["error"]["numerator"], rates["extraction"]["error"]["denominator"]) == (
            1,
            n,
        )
    shown = command("rates", "set@1", "--source", "judge:judge-a")
    assert shown["extraction"]["error"]["denominator"] == n
    shown = command("calibration_report", "set@1", "--judge", "judge-a")
    assert shown["rates"]["extraction"]["error"]["denominator"] == n
    page = reader(labelled, "report", run.number, "grounding")
    assert f"1 of {n} claims" in page and "1 response audited" in page


def test_beside_gold_where_the_judge_is_withheld(reader):
    labelled, marks = ex_cl1()
    run = judged(
        labelled, [(response, claim, "supported") for response in marks for claim in response.claims.all()]
    )
    audit(labelled, marks)
    build_report(judge_run=run, round=labelled.round, dimension="grounding")
    page = reader(labelled, "report", run.number, "grounding")
    assert "15 of 87 claims" in page
    assert "rates are withheld" in page


def test_what_a_judge_is_not_trusted_on_is_not_in_the_error_of_the_rest():
    labelled = labelled_set()
    marks = {}
    for name, mark in (("open", "well_split"), ("closed", "not_in_response")):
        response = labelled.response(f"r {name}", run=labelled.run(name))
        labelled.claim(response, "supported", "supported")
        marks[response] = [mark]
    audit(labelled, marks)
    rates = {
        "hallucination": {},
        "systems": ["open", "closed"],
        "left_out_systems": {"grounding": [{"system": "closed"}]},
        "per_system": [{"system": "open"}, {"system": "closed"}],
        "per_stratum": [],
    }
    found = with_extraction(rates, labelled.runs)
    assert found["extraction"]["error"]["value"] == 0.0
    assert [entry["extraction"]["error"]["value"] for entry in found["per_system"]] == [0.0, 1.0]


@pytest.fixture
def reader(client, django_user_model):
    def read(labelled, name, *more):
        evalset = labelled.version.evalset
        person = django_user_model.objects.create_user("lea")
        Membership.objects.create(person=person, evalset=evalset, role="lead")
        client.force_login(person)
        return client.get(reverse(f"calibration:{name}", args=[evalset.slug, 1, *more])).content.decode()

    return read


def test_the_rates_page_says_not_audited(reader):
    labelled, _marks = ex_cl1()
    assert "<strong>not audited</strong>" in reader(labelled, "rates")


def test_the_rates_page_shows_it_beside_the_rate(reader):
    labelled, marks = ex_cl1()
    audit(labelled, marks)
    page = reader(labelled, "rates")
    assert "15 of 87 claims" in page and "12 responses audited" in page and "17.2" in page
    assert "not audited" not in page


def test_the_result_page_says_what_counts(reader):
    labelled, marks = ex_cl1()
    audit(labelled, marks)
    page = reader(labelled, "extraction")
    assert "12 responses of 12 were audited" in page
    assert "badly split" in page and "not in the response" in page and "well split" in page


def test_the_result_page_of_nothing_says_so(reader):
    labelled, _marks = ex_cl1()
    assert "Not audited: nobody has drawn a sample yet." in reader(labelled, "extraction")


def test_the_number_of_queries_does_not_grow_with_the_sample(django_assert_max_num_queries):
    labelled, marks = ex_cl1()
    audit(labelled, marks)
    with django_assert_max_num_queries(8):
        extraction_of(labelled.runs)
