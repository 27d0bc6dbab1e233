"""The pages with numbers on them: for whom they open, what they say, and what they never show."""

import csv
import io
import json
import re
import zipfile
from copy import deepcopy
from functools import partial

import pytest
from bs4 import BeautifulSoup
from django.core.management import call_command
from django.urls import reverse

from annotate.material import forget_dimensions
from annotate.models import Assignment, Round
from calibration.facts import report_facts
from calibration.models import CalibrationReport, VerdictSighting
from calibration.reports import build_report
from evalsets.models import EvalSet, Membership
from tests.calibration.labelled import judged, labelled_set, settled
from tests.calibration.test_report import as_now

pytestmark = [pytest.mark.django_db, pytest.mark.once]

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


def sixty_responses(evalset):
    """Of two systems, two claims each, with gold; nearly perfect graders."""
    labelled = labelled_set(evalset=evalset)
    labels = ("supported", "contradicted", "unsupported")
    for number in range(60):
        item = labelled.item(
            f"i{number}",
            strata={"language": "en" if number % 2 else "de"},
            answerable=number % 3 != 0,
            unanswerable_reason="" if number % 3 else "out_of_scope",
        )
        run = labelled.runs[number % 2] if len(labelled.runs) > 1 else labelled.run(f"system {number}")
        response = labelled.response(f"r{number}", item=item, run=run)
        labelled.claim(response, "supported", "supported" if number else "unsupported", gold="supported")
        labelled.claim(response, labels[number % 3], labels[number % 3])
        said = "ANSWERED" if number % 3 or number % 6 == 0 else "REFUSED"
        labelled.verdict_on_response(response, said, said)
    labelled.freeze()
    return labelled


def verdicts_of(labelled, change=lambda number, label: label):
    """The judge says what gold says, changed where asked for."""
    gold = enumerate(settled(labelled))
    return [(row.response, row.claim, change(number, row.label)) for number, row in gold]


def a_trusted_run(labelled):
    run = as_now(judged(labelled, verdicts_of(labelled)))
    assert build_report(judge_run=run, round=labelled.round, dimension="grounding").gate_state == "TRUSTED"
    return run


@pytest.fixture(scope="module")
def kept_labelled(kept):
    return kept(lambda: sixty_responses(EvalSet.objects.create(slug="roles", name="Roles")))


@pytest.fixture
def labelled(db, kept_labelled):
    return deepcopy(kept_labelled)


@pytest.fixture
def evalset(labelled):
    return labelled.version.evalset


@pytest.fixture
def bare(lead):
    """Another eval set of the lead's, with nothing in it yet."""
    made = EvalSet.objects.create(slug="bare", name="Bare")
    Membership.objects.create(person=lead, evalset=made, role="lead")
    return made


@pytest.fixture
def trusted(labelled):
    return a_trusted_run(labelled)


@pytest.fixture
def untrusted(labelled):
    """A judge that calls every fifth claim contradicted: 56 bad of 120, a rate that nothing else here has."""
    wrong = verdicts_of(labelled, lambda number, label: "contradicted" if number % 5 == 0 else label)
    run = as_now(judged(labelled, wrong, name="judge-z"))
    report = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    assert report.gate_state == "NOT_TRUSTED"
    return run


def url(name, *args, of="roles", **query):
    address = reverse(f"calibration:{name}", args=[of, 1, *args])
    return address + ("?" + "&".join(f"{key}={value}" for key, value in query.items()) if query else "")


def pages(run):
    at = (run.number, "grounding")
    return [
        url("agreement"),
        url("rates"),
        url("rates", source=f"judge:{run.judge.name}"),
        url("gold"),
        url("gold_download"),
        url("report", *at),
        url("report_cases", *at, row="supported", column="contradicted"),
        url("kappa_chart", *at, 1, "svg"),
        url("kappa_chart", *at, 1, "csv"),
    ]


def text_of(response):
    return " ".join(BeautifulSoup(response.content, "html.parser").get_text(" ").split())


def test_every_page_opens_for_the_lead_and_for_nobody_else(client, lead, grader_a, stranger, untrusted):
    for address in pages(untrusted):
        client.force_login(lead)
        assert client.get(address).status_code == 200, address
        for person in (grader_a, stranger):
            client.force_login(person)
            assert client.get(address).status_code == 404, address
        client.logout()
        assert client.get(address).status_code == 302, address


def test_every_page_is_closed_to_a_lead_who_still_grades(client, lead, labelled, untrusted):
    Assignment.objects.filter(grader=labelled.graders[0]).update(state="pending")
    labelled.graders[0].person = lead
    labelled.graders[0].save()
    client.force_login(lead)
    for address in pages(untrusted):
        assert client.get(address).status_code == 403, address
    assert client.post(url("build_report", untrusted.number, "grounding")).status_code == 403


def test_no_page_has_a_style_attribute_or_a_script(client, lead, trusted):
    client.force_login(lead)
    for address in pages(trusted)[:4] + [
        url("report", trusted.number, "grounding"),
        reverse("calibration:method"),
    ]:
        soup = BeautifulSoup(client.get(address).content, "html.parser")
        assert not soup.find_all(style=True), address
        assert not soup.find_all("style"), address
        assert all(script.get("src") for script in soup.find_all("script")), address
        assert not [tag for tag in soup.find_all(True) if any(name.startswith("on") for name in tag.attrs)]


def test_every_number_leads_to_its_definition(client, lead, trusted):
    client.force_login(lead)
    method = BeautifulSoup(client.get(reverse("calibration:method")).content, "html.parser")
    anchors = {tag["id"] for tag in method.find_all(id=True)}
    for address in pages(trusted)[:3] + [url("report", trusted.number, "grounding")]:
        soup = BeautifulSoup(client.get(address).content, "html.parser")
        wanted = {
            link["href"].partition("#")[2] for link in soup.find_all("a", href=re.compile("^/method/#"))
        }
        assert wanted, address
        assert wanted <= anchors, address


# Agreement


def test_agreement_says_kappa_with_interval_and_n(client, lead, labelled):
    client.force_login(lead)
    text = text_of(client.get(url("agreement")))

    assert "Cohen's kappa 0.98 [0.95, 1.00]" in text
    assert "120 of 120 claims carry the labels of at least two graders, from 60 items" in text
    assert "99.2 %" in text


def test_agreement_names_the_label_to_rewrite(client, lead, bare):
    labelled = labelled_set(evalset=bare)
    response = labelled.response("r1")
    for first, second in (
        [("supported",) * 2] * 4 + [("unsupported", "unverifiable")] + [("unsupported",) * 2] * 3
    ):
        labelled.claim(response, first, second)
    client.force_login(lead)

    assert "Agreement is lowest on unverifiable" in text_of(client.get(url("agreement", of="bare")))


def test_agreement_that_is_undefined_is_said_aloud(client, lead, bare):
    labelled = labelled_set(evalset=bare)
    response = labelled.response("r1")
    for _ in range(5):
        labelled.claim(response, "supported", "supported")
    client.force_login(lead)
    text = text_of(client.get(url("agreement", of="bare")))

    assert "undefined: both used one and the same label" in text
    assert "100.0 %" in text
    assert "nan" not in text.lower().split()


def test_agreement_of_three_graders_is_alpha_with_every_pair(client, lead, bare):
    labelled = labelled_set(evalset=bare, graders=("ada", "ben", "cy"))
    for number in range(12):
        response = labelled.response(f"r{number}")
        label = ("supported", "unsupported")[number % 2]
        labelled.claim(response, label, label, label if number else "unverifiable")
    client.force_login(lead)
    text = text_of(client.get(url("agreement", of="bare")))

    assert "Krippendorff's alpha 0." in text
    for pair in ("ada · ben", "ada · cy", "ben · cy"):
        assert pair in text


def test_agreement_before_anybody_labelled_says_what_to_do(client, lead, bare):
    labelled = labelled_set(evalset=bare)
    labelled.claim(labelled.response("r1"))
    client.force_login(lead)

    assert "Nobody has labelled anything here yet" in text_of(client.get(url("agreement", of="bare")))


def test_a_version_without_a_round_says_what_to_do(client, lead, bare):
    labelled = labelled_set(evalset=bare)
    labelled.round.delete()
    client.force_login(lead)
    for name in ("agreement", "gold"):
        assert "Nobody has labelled anything here yet" in text_of(client.get(url(name, of="bare")))
    assert "no responses yet" in text_of(client.get(url("rates", of="bare")))
    assert client.get(url("gold_download", of="bare")).status_code == 302


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("agreement", {"round": "9"}),
        ("agreement", {"round": "x"}),
        ("agreement", {"dimension": "taste"}),
        ("rates", {"unit": "word"}),
        ("rates", {"source": "judge:nobody"}),
        ("gold", {"round": "-1"}),
    ],
)
def test_a_choice_that_does_not_exist_is_answered_400(client, lead, labelled, name, query):
    client.force_login(lead)
    response = client.get(url(name, **query))
    assert response.status_code == 400
    name, value = next(iter(query.items()))
    assert {"source": "By"}.get(name, name.title()) in text_of(response)
    assert value in text_of(response)


def test_names_from_outside_stay_text(client, lead, bare):
    labelled = labelled_set(evalset=bare, graders=(HOSTILE, f"ben {HOSTILE}"))
    run = labelled.run(HOSTILE)
    verdicts = []
    for number in range(12):
        item = labelled.item(f"i{number}", strata={HOSTILE: HOSTILE}, answerable=bool(number % 2))
        response = labelled.response(f"{number} {HOSTILE}", item=item, run=run, text=HOSTILE)
        label = ("supported", "unsupported")[number % 2]
        claim = labelled.claim(response, label, label)
        labelled.verdict_on_response(response, "ANSWERED", "ANSWERED")
        verdicts.append((response, claim, "supported"))
    labelled.freeze()
    run = judged(labelled, verdicts, name=HOSTILE)
    build_report(judge_run=run, round=labelled.round, dimension="grounding")
    client.force_login(lead)
    of_bare = partial(url, of="bare")
    addresses = [
        of_bare("agreement"),
        of_bare("rates"),
        of_bare("gold"),
        of_bare("report", run.number, "grounding"),
        of_bare("report_cases", run.number, "grounding", row="unsupported", column="supported"),
    ]
    for address in addresses:
        page = client.get(address).content.decode()
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address
    chart = client.get(of_bare("kappa_chart", run.number, "grounding", 1, "svg")).content.decode()
    assert "<script>" not in chart


# Reports


def test_a_report_shows_the_gate_first_and_every_condition(client, lead, untrusted):
    client.force_login(lead)
    text = text_of(client.get(url("report", untrusted.number, "grounding")))

    assert text.index("Not trusted") < text.index("Conditions")
    for words in ("Same instrument as calibrated", "Valid verdicts", "Graders agree", "≥ 98.0", "✗ fails"):
        assert words in text
    assert "Most costly:" in text
    assert "system 0" in text
    assert "language en" in text


def test_an_untrusted_judge_shows_its_rate_nowhere(client, lead, untrusted, tmp_path):
    """56 of its 120 verdicts are bad: neither the share nor the counts may be read anywhere."""
    bad = untrusted.verdicts.filter(label__in=("contradicted", "unsupported")).count()
    checkable = untrusted.verdicts.exclude(label="unverifiable").count()
    rate = bad / checkable
    assert (bad, checkable) == (56, 120)
    forbidden = [f"{rate:.1%}"[:-1], f"{100 * rate:.1f}\u202f%", repr(rate)[:8], f"{bad} of {checkable}"]
    client.force_login(lead)
    shown = [client.get(address) for address in pages(untrusted) if "download" not in address]
    for response in shown:
        for trace in forbidden:
            assert trace not in response.content.decode(), response.request["PATH_INFO"]
    for command in (
        ("calibration_report", "roles@1", "--judge", "judge-z"),
        ("rates", "roles@1", "--source", "judge:judge-z"),
    ):
        out = io.StringIO()
        call_command(*command, "--json", stdout=out)
        assert "withheld" in out.getvalue()
        for trace in forbidden[2:]:
            assert trace not in out.getvalue()
    out = io.StringIO()
    call_command("rates", "roles@1", "--source", "judge:judge-z", "--json", stdout=out)
    assert set(json.loads(out.getvalue())) == {"version", "source", "unit", "withheld"}


def test_a_trusted_judge_shows_its_rate(client, lead, trusted):
    client.force_login(lead)
    text = text_of(client.get(url("report", trusted.number, "grounding")))
    assert "Trusted" in text
    assert "33.3 %" in text
    assert "33.3 %" in text_of(client.get(url("rates", source="judge:judge-a")))


def test_a_report_is_built_by_a_button_and_twice_is_once(client, lead, labelled):
    run = as_now(judged(labelled, verdicts_of(labelled)))
    client.force_login(lead)
    before = text_of(client.get(url("report", run.number, "grounding")))
    assert "Uncalibrated" in before
    assert "Build the report" in before
    for _ in range(2):
        response = client.post(url("build_report", run.number, "grounding"), {"round": 1}, follow=True)
        assert "Report 1 is built." in text_of(response)
    assert CalibrationReport.objects.get().created_by == lead


def test_building_needs_a_post_and_a_round_that_exists(client, lead, labelled, stranger):
    run = judged(labelled, verdicts_of(labelled))
    address = url("build_report", run.number, "grounding")
    client.force_login(lead)
    assert client.get(address).status_code == 405
    assert "There is no such grading round" in text_of(client.post(address, {"round": 7}, follow=True))
    client.force_login(stranger)
    assert client.post(address, {"round": 1}).status_code == 404
    assert not CalibrationReport.objects.exists()


def test_a_report_says_when_labels_have_changed_since(client, lead, labelled, trusted):
    client.force_login(lead)
    address = url("report", trusted.number, "grounding")
    assert "have changed since" not in text_of(client.get(address))
    trusted.verdicts.filter(pk=trusted.verdicts.first().pk).update(label="unverifiable")
    assert "have changed since" in text_of(client.get(address))


def test_an_older_report_can_be_read_again(client, lead, labelled, trusted):
    trusted.verdicts.filter(pk=trusted.verdicts.first().pk).update(label="unverifiable")
    build_report(judge_run=trusted, round=labelled.round, dimension="grounding")
    client.force_login(lead)
    assert "Calibration report 1" in text_of(client.get(url("report", trusted.number, "grounding", report=1)))
    assert "Calibration report 2" in text_of(client.get(url("report", trusted.number, "grounding")))
    assert client.get(url("report", trusted.number, "grounding", report=9)).status_code == 404


@pytest.mark.parametrize("state", ["NOT_TRUSTED", "TRUSTED"])
def test_an_older_report_shows_no_rate_beside_a_later_one(client, lead, labelled, trusted, state):
    first = trusted.reports.get()
    client.force_login(lead)
    address = url("report", trusted.number, "grounding", report=1)
    assert "By system and stratum" in text_of(client.get(address))
    assert "hallucination" in report_facts(first)["rates"]
    type(first).objects.create(
        judge_run=trusted,
        round=labelled.round,
        dimension="grounding",
        number=2,
        gate_state=state,
        payload=first.payload,
    )
    page = text_of(client.get(address))
    assert "a later report has been built: number 2" in page
    assert "By system and stratum" not in page and "Every condition holds" not in page
    facts = report_facts(first)
    assert facts["gate"]["state"] == facts["rates"]["withheld"]["state"] == state
    assert set(facts["rates"]) == {"withheld"} and facts["corrected"] is None


def test_a_dimension_that_was_not_judged_has_no_report(client, lead, trusted):
    client.force_login(lead)
    assert client.get(url("report", trusted.number, "abstention")).status_code == 404
    assert client.get(url("report", 99, "grounding")).status_code == 404


def test_the_chart_can_be_downloaded(client, lead, trusted):
    client.force_login(lead)
    at = (trusted.number, "grounding", 1)
    assert client.get(url("kappa_chart", *at, "svg"))["Content-Type"] == "image/svg+xml"
    assert client.get(url("kappa_chart", *at, "png")).content.startswith(b"\x89PNG")
    rows = list(csv.DictReader(io.StringIO(client.get(url("kappa_chart", *at, "csv")).content.decode())))
    assert [row["between"] for row in rows] == [
        "ada and ben",
        "judge and ada",
        "judge and ben",
        "judge and gold",
    ]
    assert client.get(url("kappa_chart", *at, "exe")).status_code == 404


def test_the_cases_behind_a_cell_can_be_read(client, lead, untrusted):
    client.force_login(lead)
    at = (untrusted.number, "grounding")
    text = text_of(client.get(url("report_cases", *at, row="supported", column="contradicted")))
    assert "Gold says supported, judge-z says contradicted" in text
    assert "claim 1" in text
    assert client.get(url("report_cases", *at, row="supported", column="odd")).status_code == 400


# Rates and gold


def test_rates_stand_apart_by_system_and_name_their_unit(client, lead, labelled):
    client.force_login(lead)
    text = text_of(client.get(url("rates")))
    assert "Hallucination rate of claims 33.3 %" in text
    assert "pool 2 systems" in text
    assert "over-answering" in text
    assert "out of scope" in text
    response_unit = text_of(client.get(url("rates", unit="response")))
    assert "Responses with a bad claim" in response_unit


def test_claims_without_gold_are_named_beside_the_rate(client, lead, labelled):
    labelled.round.gold.filter(dimension="grounding").first().delete()
    client.force_login(lead)
    assert "Claims without a label are in no rate: 1 " in text_of(client.get(url("rates")))


def test_the_gold_page_counts_and_hands_out_the_files(client, lead, labelled):
    client.force_login(lead)
    text = text_of(client.get(url("gold")))
    assert "120 of 120 settled" in text
    archive = io.BytesIO(b"".join(client.get(url("gold_download")).streaming_content))
    manifest = json.loads(zipfile.ZipFile(archive).read("manifest.json"))
    assert manifest["counts"]["grounding"]["gold"] == 120


def test_another_eval_sets_version_is_not_reached_by_its_number(client, lead, labelled):
    other = EvalSet.objects.create(slug="other", name="Other")
    labelled_set("other", evalset=other)
    client.force_login(lead)
    assert client.get("/evalsets/other/1/agreement/").status_code == 404


def test_a_second_round_is_shown_when_asked_for(client, lead, labelled):
    Round.objects.create(
        version=labelled.version,
        number=2,
        rubric_version=labelled.round.rubric_version,
        kind="second_look",
        second_look_of=labelled.round,
    )
    client.force_login(lead)
    assert "round 2, second look" in text_of(client.get(url("agreement", round=2))).lower()


# Verdicts that were seen


@pytest.mark.parametrize("name", ["verdicts", "report_cases", "export_version"])
def test_what_is_decided_after_a_look_at_verdicts_does_not_count_for_the_judge(
    client, lead, labelled, untrusted, name
):
    client.force_login(lead)
    address = {
        "verdicts": url("verdicts", untrusted.number),
        "report_cases": url(
            "report_cases", untrusted.number, "grounding", row="supported", column="contradicted"
        ),
        "export_version": url("export_version", labels=1),
    }[name]
    assert client.get(address).status_code == 200
    assert VerdictSighting.objects.get().person == lead
    before = build_report(judge_run=untrusted, round=labelled.round, dimension="grounding")
    target = untrusted.verdicts.filter(label="contradicted", claim__gold__label="supported").first()
    decision = labelled.round.adjudications.create(
        response=target.response,
        claim=target.claim,
        dimension="grounding",
        label=target.label,
        reason="other",
        by=lead,
    )
    target.claim.gold.update(label=target.label, source="adjudicated", adjudication=decision)

    after = build_report(judge_run=untrusted, round=labelled.round, dimension="grounding")

    assert after.payload["evidence"]["gold_saw_judge"] == 1
    assert after.payload["gate"]["conditions"] == before.payload["gate"]["conditions"]
    text = text_of(client.get(url("report", untrusted.number, "grounding")))
    assert "One gold label was decided by somebody who had looked at verdicts before" in text


def test_gold_decided_on_the_page_after_a_look_leaves_both_numbers(client, lead, labelled, untrusted):
    """The judge calls a claim contradicted where gold says supported; after a look the lead follows it."""
    client.force_login(lead)
    asked = labelled.round.rubric_version.dimensions.filter(name="grounding")
    asked.update(labels=[{"name": name, "key": key, "definition": "", "examples": []} for key, name in (
        ("1", "supported"), ("2", "contradicted"), ("3", "unsupported"), ("4", "unverifiable")
    )])  # fmt: skip
    forget_dimensions()
    before = build_report(judge_run=untrusted, round=labelled.round, dimension="grounding")
    verdict = untrusted.verdicts.filter(label="contradicted", claim__gold__label="supported").first()
    assert client.get(url("report_cases", untrusted.number, "grounding")).status_code == 200
    place = reverse("annotate:adjudicate", args=["roles", 1, 1, "grounding", verdict.claim.pk])
    page = BeautifulSoup(client.get(place).content, "html.parser")
    decided = client.post(
        place,
        {
            "label": verdict.label,
            "reason": "edge_case",
            "note": "",
            "seen": page.select_one("#decision [name=seen]")["value"],
        },
    )
    assert decided.status_code == 302
    gold = labelled.round.gold.get(claim=verdict.claim)
    assert (gold.label, gold.source, gold.adjudication.judge_seen) == ("contradicted", "adjudicated", False)

    after = build_report(judge_run=untrusted, round=labelled.round, dimension="grounding")
    kappa = next(p["cohen_kappa"] for p in before.payload["agreement"]["pairs"] if p["a_kind"] == "gold")
    own = next(p["cohen_kappa"] for p in after.payload["agreement"]["pairs"] if p["a_kind"] == "gold")
    revised = after.payload["revised"]
    assert own["value"] == kappa["value"], "what held before the look stands in"
    assert (revised["changed"], revised["cohen_kappa"]["value"] > own["value"]) == (1, True)
    text = text_of(client.get(url("report", untrusted.number, "grounding")))
    assert "With gold as decided with verdicts in view (1 label changed) κ would be" in text
    rates = client.get(url("rates")).context["figures"]
    assert rates["counts"]["contradicted"] == 21, "gold itself is the decision, for people's own rates"


def test_looking_at_a_file_without_labels_or_at_a_report_is_no_look_at_verdicts(client, lead, untrusted):
    client.force_login(lead)
    for address in (url("export_version"), url("report", untrusted.number, "grounding"), url("rates")):
        assert client.get(address).status_code == 200
    assert not VerdictSighting.objects.exists()
