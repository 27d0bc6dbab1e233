"""A watch over production: days without labels, a judge that is asked only while it is trusted, and steps."""

import csv
import io
import json
from copy import deepcopy
from datetime import date, timedelta

import pytest
from bs4 import BeautifulSoup
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotate.services import rubric_v1
from calibration.judges import baseline
from calibration.models import Alert, Judge, JudgeRun, Verdict, Watch, WatchBatch, WatchJudging
from calibration.rates import rates_of_judge_run
from calibration.reports import build_report
from calibration.watch_series import calendar, onset_of, series_of
from calibration.watches import (
    WatchRefused,
    add_mark,
    check_watches,
    import_batch,
    judge_batch,
    judge_here,
    open_watch,
)
from evalsets.importing import ImportRefused
from evalsets.models import EvalSetVersion
from tests.calibration.labelled import judged, labelled_set, settled
from tests.calibration.test_report import as_now, command

pytestmark = pytest.mark.django_db

SMALL_GATE = {
    "min_targets": 20,
    "min_targets_per_system": 10,
    "min_responses": 10,
    "min_positive": 5,
    "min_negative": 5,
}
DAY = date(2026, 3, 1)
REFUSAL = "I do not know. The documents do not say."


def twenty_four_responses():
    """With gold, and graders who agree throughout."""
    labelled = labelled_set("roles")
    labelled.round.rubric_version = rubric_v1(evalset=labelled.version.evalset)
    labelled.round.save()
    for number in range(24):
        response = labelled.response(f"r{number}", item=labelled.item(f"i{number}"))
        label = "supported" if number % 2 else "unsupported"
        labelled.claim(response, label, label)
    labelled.freeze()
    return labelled


@pytest.fixture(scope="module")
def kept_labelled(kept):
    return kept(twenty_four_responses)


@pytest.fixture
def labelled(db, kept_labelled, settings):
    settings.TRUST_GATE = SMALL_GATE
    return deepcopy(kept_labelled)


@pytest.fixture
def evalset(labelled):
    return labelled.version.evalset


@pytest.fixture
def trusted(labelled):
    """The lexical rule, calibrated on verdicts that equal gold: it runs without a server."""
    said = [(gold.response, gold.claim, gold.label) for gold in settled(labelled)]
    run = judged(labelled, said, name="lexical-baseline")
    Judge.objects.filter(pk=run.judge_id).update(kind=Judge.Kind.LEXICAL, model="")
    Verdict.objects.filter(run=run).update(resolved_model=baseline.LEXICAL_VERSION)
    run = as_now(JudgeRun.objects.get(pk=run.pk))
    report = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    assert report.gate_state == "TRUSTED", report.payload["gate"]["sentence"]
    return run.judge


@pytest.fixture
def watch(labelled):
    return open_watch(version=labelled.version, name="production")


def lines(refused=2, answered=8, *, empty=0, claims=(), start=0):
    """A day: so many refusals, answers and empty responses; every answer with the claims given."""
    texts = [REFUSAL] * refused + ["The ferry leaves at noon."] * answered + [""] * empty
    return "\n".join(
        json.dumps(
            {
                "id": f"p{start + number}",
                "question": f"When does ferry {number} leave?",
                "response": text,
                "context": [{"id": "d1", "text": "The ferry leaves at noon. Dogs travel free."}],
                "claims": [
                    {"id": f"c{place}", "text": claim}
                    for place, claim in enumerate(claims if text and text != REFUSAL else ())
                ],
            }
        )
        for number, text in enumerate(texts)
    ).encode()


def a_day(watch, content=None, *, day=DAY, judge=True):
    batch, imported = import_batch(
        watch=watch, stream=io.BytesIO(content or lines()), filename="day.jsonl", date=day
    )
    if judge:
        judge_here(batch=batch)
    return batch, imported


def by_rate(watch, judge="phrase-matcher"):
    return {series.rate: series for series in series_of(watch) if series.judge == judge}


def url(name, *args):
    return reverse(f"calibration:{name}", args=["roles", 1, *args])


# A day comes in


def test_a_day_is_stored_frozen_and_counted(watch):
    batch, imported = a_day(watch, lines(2, 7, empty=1))
    assert imported.counts["responses"] == 10
    assert batch.material.is_frozen
    assert batch.material.content_hash
    day = by_rate(watch)["refused"].days[0]
    assert (day.hits, day.total, day.left_out) == (2, 10, 0), (
        "an empty response is in the total and no refusal"
    )


def test_the_same_file_again_is_the_same_batch_and_another_one_is_refused(watch):
    first, _imported = a_day(watch)
    again, imported = a_day(watch)
    assert again == first
    assert imported is None
    with pytest.raises(ImportRefused) as refused:
        a_day(watch, lines(5, 5))
    assert "another file" in refused.value.problems[0].message
    assert WatchBatch.objects.count() == 1


@pytest.mark.parametrize(
    ("content", "field"),
    [(b'{"id": 3}\n', "id"), (b'{"id": "a", "question": "q"}\n', "response"), (b"not json\n", "")],
)
def test_a_file_with_a_problem_leaves_nothing_behind(watch, content, field):
    with pytest.raises(ImportRefused) as refused:
        a_day(watch, content)
    assert refused.value.problems[0].field == field
    assert not WatchBatch.objects.exists()
    assert not EvalSetVersion.objects.filter(evalset=watch.material).exists()


def test_a_day_that_has_not_been_is_refused(watch):
    with pytest.raises(ImportRefused):
        a_day(watch, day=date.today() + timedelta(days=3))


def test_the_material_is_on_no_page(client, lead, watch):
    a_day(watch)
    client.force_login(lead)
    assert "watch-production" not in client.get("/").content.decode()
    assert client.get(f"/evalsets/{watch.material.slug}/1/").status_code == 404


def test_a_name_is_taken_once(watch, labelled):
    with pytest.raises(WatchRefused, match="already"):
        open_watch(version=labelled.version, name="production")


# The gate


def test_a_trusted_judge_is_asked(labelled, trusted):
    watch = open_watch(version=labelled.version, name="production", judge=trusted)
    claims = ["The ferry leaves at noon.", "Harbour taxes doubled overnight somewhere."]
    a_day(watch, lines(2, 8, claims=claims))
    found = by_rate(watch, "lexical-baseline")
    # Both claims of each of eight answers: the second one's words stand in no passage.
    assert (found["flagged"].days[0].hits, found["flagged"].days[0].total) == (8, 10)
    assert found["unverifiable"].days[0].hits == 0


def test_a_judge_that_is_not_trusted_is_not_asked(labelled, trusted):
    watch = open_watch(version=labelled.version, name="production", judge=trusted)
    Judge.objects.filter(pk=trusted.pk).update(parameters={"changed": True})
    watch.refresh_from_db()
    a_day(watch, lines(claims=["The ferry leaves at noon."]))
    judging = WatchJudging.objects.get(judge=trusted)
    assert judging.gate_state == "STALE"
    assert judging.judge_run is None
    assert "the request changed" in judging.reason
    assert by_rate(watch, "lexical-baseline") == {}
    assert set(by_rate(watch)) == {"refused", "clarify"}, "the baseline needs no gate"


def test_what_it_said_before_is_withheld_when_its_gate_closes(client, lead, labelled, trusted):
    watch = open_watch(version=labelled.version, name="production", judge=trusted)
    a_day(watch, lines(0, 7, claims=["Harbour taxes doubled overnight somewhere."]))
    client.force_login(lead)
    assert by_rate(watch, "lexical-baseline")
    assert "flagged claim" in client.get(url("watch", "production")).content.decode()
    Judge.objects.filter(pk=trusted.pk).update(parameters={"changed": True})
    assert by_rate(watch, "lexical-baseline") == {}
    page = BeautifulSoup(client.get(url("watch", "production")).content, "html.parser").get_text()
    assert "Withheld" in page
    assert "flagged claim" not in page
    told = command("watch_series", "production")
    assert told["withheld"] == [{"judge": "lexical-baseline", "dimension": "grounding", "state": "STALE"}]


def test_a_model_that_was_not_calibrated_does_not_count(labelled, trusted):
    watch = open_watch(version=labelled.version, name="production", judge=trusted)
    batch, _imported = a_day(watch, lines(claims=["The ferry leaves at noon."]))
    run = batch.judgings.get(judge=trusted).judge_run
    run.verdicts.update(resolved_model="another-model")
    # The gate notices as well: the judge's latest answers came from elsewhere.
    assert by_rate(watch, "lexical-baseline") == {}


def test_a_day_that_is_not_judged_to_its_end_does_not_count(watch):
    a_day(watch, judge=False)
    day = by_rate(watch)["refused"].days[0]
    assert day.total == 0
    assert "not finished" in day.why


def test_more_days_take_no_more_queries(labelled, trusted, django_assert_num_queries):
    watch = open_watch(version=labelled.version, name="production", judge=trusted)
    a_day(watch, lines(claims=["The ferry leaves at noon."]))
    with CaptureQueriesContext(connection) as one_day:
        series_of(watch)
    for number in (1, 2):
        a_day(watch, lines(start=100 * number), day=DAY + timedelta(days=number))
    with django_assert_num_queries(len(one_day)):
        found = series_of(watch)
    assert [(day.hits, day.total) for day in found[0].days] == [(2, 10)] * 3


def test_a_failed_verdict_is_left_out_and_counted(watch):
    batch, _imported = a_day(watch)
    verdict = Verdict.objects.filter(run__watch_judgings__batch=batch, label="REFUSED").first()
    Verdict.objects.filter(pk=verdict.pk).update(state="failed", label="", failure="timeout")
    day = by_rate(watch)["refused"].days[0]
    assert (day.hits, day.total, day.left_out) == (1, 9, 1)


def test_asking_again_asks_only_what_was_not_asked(watch):
    batch, _imported = a_day(watch)
    assert judge_batch(batch=batch) == []
    assert WatchJudging.objects.count() == 1


def test_what_was_asked_cannot_be_rewritten(watch):
    a_day(watch)
    with pytest.raises(DatabaseError), transaction.atomic():
        WatchJudging.objects.update(gate_state="TRUSTED")


# Steps


def series_with(days):
    """A series with these (hits, total) a day, in the rows as an import would leave them."""
    from calibration.stats import step_test
    from calibration.watch_series import Day, Series, calendar

    made = tuple(Day(DAY + timedelta(days=n), hits, total, 0, 0, "") for n, (hits, total) in enumerate(days))
    _first, hits, totals = calendar(made)
    return Series("x:refused", "refused", "x", "x", True, made, (), step_test(hits, totals))


def test_the_step_of_the_worked_example():
    """105 of 700 in seven days against 280 of 2800 in the 28 before: p .000156 and 5.0 points."""
    series = series_with([(10, 100)] * 28 + [(15, 100)] * 7)
    assert series.step.alert
    assert series.step.p == pytest.approx(0.000156, abs=5e-7)
    assert series.step.difference.value == pytest.approx(0.05)
    # With six of the days the last seven hold one old day: 100 of 700 against 280 of 2800, 4.3 points.
    assert onset_of(series, minimum=0.05) == DAY + timedelta(days=34)


def test_a_day_without_a_batch_keeps_its_place():
    from calibration.watch_series import Day

    days = (Day(DAY, 3, 10, 0, 0, ""), Day(DAY + timedelta(days=3), 5, 10, 0, 0, ""))
    assert calendar(days) == (DAY, [3, 0, 0, 5], [10, 0, 0, 10])


def stepped(watch):
    """Four quiet days, then seven on which everything is refused."""
    for number in range(11):
        content = lines(1, 7, start=100 * number) if number < 4 else lines(8, 0, start=100 * number)
        a_day(watch, content, day=DAY + timedelta(days=number))


def test_a_step_is_told_once(watch):
    stepped(watch)
    check_watches()
    alert = Alert.objects.get(key__contains="refused")
    assert "phrase-matcher" in alert.title
    assert "Refusal rate" in alert.title and "Refusal rate" not in alert.translations["de"]["title"]
    assert "The last 7 days against the days before: +" in alert.text
    assert alert.link == url("watch", "production")
    check_watches()
    assert not WatchBatch.objects.filter(checked_at__isnull=True).exists()
    a_day(watch, lines(8, 0, start=5000), day=DAY + timedelta(days=11))
    check_watches()
    assert Alert.objects.filter(key__contains="refused").count() == 1, "the same step, a day later"


def test_a_quiet_watch_tells_nothing(watch):
    for number in range(9):
        a_day(watch, lines(2, 8, start=100 * number), day=DAY + timedelta(days=number))
    check_watches()
    assert not Alert.objects.exists()


# The pages and commands


def file_of(content=None):
    return SimpleUploadedFile("day.jsonl", content or lines())


def test_the_lead_opens_a_watch_and_adds_a_day(client, lead, labelled):
    client.force_login(lead)
    opened = client.post(url("watches"), {"name": "production", "judge": "", "points": "5"})
    assert opened.url == url("watch", "production")
    assert "No day has been imported" in client.get(opened.url).content.decode()
    given = {"date": "2026-03-01", "file": file_of()}
    answer = client.post(url("add_batch", "production"), given, follow=True)
    assert "10 responses" in answer.content.decode()
    judge_here(batch=WatchBatch.objects.get())
    soup = BeautifulSoup(client.get(opened.url).content, "html.parser")
    assert soup.find("svg")
    assert "baseline" in soup.get_text()
    assert "20.0" in soup.get_text()
    assert not soup.find_all(style=True)
    assert client.post(url("watches"), {"name": "production", "points": "5"}).status_code == 422


def test_a_refused_file_is_told_with_its_line(client, lead, watch):
    client.force_login(lead)
    given = {"date": "2026-03-01", "file": file_of(b'{"id": 3}\n')}
    answer = client.post(url("add_batch", "production"), given)
    assert answer.status_code == 422
    assert "Refused:" in answer.content.decode()
    assert "id" in answer.content.decode()
    assert client.post(url("add_batch", "production"), {"date": "2026-03-01"}).status_code == 422


def test_a_mark_is_drawn_and_removed(client, lead, watch):
    a_day(watch)
    client.force_login(lead)
    for _twice in range(2):
        client.post(url("watch_mark", "production"), {"date": "2026-03-01", "text": "deploy <7>"})
    mark = watch.marks.get()
    assert "deploy &lt;7&gt;" in client.get(url("watch", "production")).content.decode()
    client.post(url("watch_unmark", "production", mark.pk))
    assert not watch.marks.exists()
    assert client.post(url("watch_mark", "production"), {"date": "x"}).status_code == 422


def test_the_series_can_be_taken_away(client, lead, watch):
    client.force_login(lead)
    assert client.get(url("watch_chart", "production", "png")).status_code == 404, "nothing to draw"
    a_day(watch)
    add_mark(watch=watch, date=DAY, text="deploy")
    rows = list(
        csv.DictReader(io.StringIO(client.get(url("watch_chart", "production", "csv")).content.decode()))
    )
    assert (rows[0]["hits"], rows[0]["responses"], float(rows[0]["share"])) == ("2", "10", 0.2)
    # Wilson for 2 of 10, as statsmodels' proportion_confint(2, 10, method="wilson") gives it.
    assert float(rows[0]["low"]) == pytest.approx(0.056682, abs=1e-6)
    assert client.get(url("watch_chart", "production", "png")).content.startswith(b"\x89PNG")
    assert b"<svg" in client.get(url("watch_chart", "production", "svg")).content


@pytest.mark.once
def test_each_of_a_few_days_stands_once_on_the_axis(client, lead, watch):
    for day in (DAY, DAY + timedelta(days=1)):
        a_day(watch, lines(refused=20, answered=40, start=day.day * 100), day=day)
    client.force_login(lead)
    soup = BeautifulSoup(client.get(url("watch_chart", "production", "svg")).content, "html.parser")
    dates = [text.get_text() for text in soup.find_all("text") if text.get_text().endswith(" Mar")]
    assert dates == ["1 Mar", "2 Mar"] * 2  # of refusals and of asking back


def test_for_other_roles_it_does_not_exist(client, grader_a, stranger, watch):
    for person in (grader_a, stranger):
        client.force_login(person)
        for address in (url("watches"), url("watch", "production"), url("watch_chart", "production", "csv")):
            assert client.get(address).status_code == 404
        for name in ("add_batch", "judge_batches", "watch_mark"):
            assert client.post(url(name, "production")).status_code == 404


def test_it_is_closed_to_a_lead_who_still_grades(client, lead, labelled, watch):
    from annotate.models import Assignment

    Assignment.objects.filter(grader=labelled.graders[0]).update(state="pending")
    labelled.graders[0].person = lead
    labelled.graders[0].save()
    client.force_login(lead)
    assert client.get(url("watch", "production")).status_code == 403


def test_the_command_imports_a_day(labelled, tmp_path):
    path = tmp_path / "day.jsonl"
    path.write_bytes(lines())
    with pytest.raises(CommandError):
        call_command(
            "import_watch", str(path), "--watch", "nowhere", "--date", "2026-03-01", stdout=io.StringIO()
        )
    out = command("import_watch", str(path), "--watch", "live", "--date", "2026-03-01", "--of", "roles@1")
    assert out["counts"]["responses"] == 10
    assert out["judged"][0]["run_state"] == "complete"
    again = command("import_watch", str(path), "--watch", "live", "--date", "2026-03-01")
    assert again["state"].startswith("was there already")
    assert Watch.objects.get().name == "live"
    with pytest.raises(CommandError, match="is not a day"):
        call_command("import_watch", str(path), "--watch", "live", "--date", "March", stdout=io.StringIO())


def test_a_response_without_claims_is_not_flagged_and_counted(labelled, trusted):
    watch = open_watch(version=labelled.version, name="production", judge=trusted)
    a_day(watch, lines(2, 7, empty=1, claims=["The ferry leaves at noon."]))
    flagged = by_rate(watch, judge="lexical-baseline")["flagged"]
    assert (flagged.days[0].hits, flagged.days[0].total, flagged.days[0].without_claims) == (0, 10, 3)
    assert flagged.shares[0].excluded == {}
    assert by_rate(watch)["refused"].days[0].without_claims == 0


def test_the_claim_series_are_the_rates_of_responses(labelled, trusted):
    """By hand: 4 of 10 flagged, three of them without a claim; one claim failed: 3 of the other 9."""
    watch = open_watch(version=labelled.version, name="production", judge=trusted)
    a_day(watch, lines(2, 7, empty=1, claims=["Dragons breathe purple fire."]))
    run = JudgeRun.objects.get(watch_judgings__batch__watch=watch, judge=trusted)
    verdicts = list(run.verdicts.order_by("pk"))
    for verdict, label in zip(
        verdicts, ["unsupported"] * 4 + ["unverifiable"] * 2 + ["supported"], strict=True
    ):
        Verdict.objects.filter(pk=verdict.pk).update(label=label)
    for flagged, unverifiable, n in [(4, 2, 10), (3, 2, 9)]:
        series = by_rate(watch, judge="lexical-baseline")
        counts = {name: (one.days[0].hits, one.days[0].total) for name, one in series.items()}
        assert counts == {"flagged": (flagged, n), "unverifiable": (unverifiable, n)}
        rates = rates_of_judge_run(
            judge_run=run, dimension="grounding", unit="response", runs=run.system_runs.all()
        )
        assert rates["hallucination"]["value"] == series["flagged"].shares[0].value == flagged / n
        assert rates["unverifiable_share"]["value"] == series["unverifiable"].shares[0].value
        Verdict.objects.filter(pk=verdicts[0].pk).update(state="failed", label="", failure="timeout")
    assert series["flagged"].days[0].left_out == 1


def test_the_page_says_what_each_share_of_a_day_rests_on(client, lead, labelled, trusted):
    watch = open_watch(version=labelled.version, name="production", judge=trusted)
    a_day(watch, lines(2, 7, empty=1, claims=["The ferry leaves at noon."]))
    client.force_login(lead)
    page = BeautifulSoup(client.get(url("watch", "production")).content, "html.parser")
    cells = [" ".join(cell.get_text(" ").split()) for cell in page.select("td.num")]
    assert any("2 of 10" in cell for cell in cells), cells
    assert any("of 10 · 3 of these without a claim" in cell for cell in cells), cells
