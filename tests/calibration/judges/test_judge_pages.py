"""The lead's pages about judges: who may open them, what they do, and what they withhold."""

from decimal import Decimal

import pytest
from django.urls import reverse

from annotate.models import Assignment, Grader, Round
from annotate.services import rubric_v1
from calibration import work
from calibration.models import Judge, JudgeRun, Verdict, WorkerSighting
from calibration.services import run_inline, start_run

pytestmark = [pytest.mark.django_db, pytest.mark.once]

FORM = {
    "name": "gpt",
    "model": "gpt-x",
    "base_url": "https://api.example.org/v1",
    "provider": "Example",
    "family": "llama",
    "api_key_variable": "EXAMPLE_API_KEY",
    "prompt_version": "1",
    "temperature": "0",
    "max_tokens": "500",
    "concurrency": "3",
}


def path(name, version, *arguments):
    return reverse(f"calibration:{name}", args=[version.evalset.slug, version.number, *arguments])


@pytest.fixture
def run(judge, version):
    return start_run(judge=judge, version=version)


@pytest.fixture
def failed_run(run, server, no_waiting):
    server.script("refusing", "truncated")
    return run_inline(run=run)


GETS = [
    "judges",
    "new_judge",
    "judge_prices",
    "confirm_judge_run",
    "judge_run",
    "judge_run_progress",
    "verdicts",
]
POSTS = ["new_judge", "judge_prices", "start_judge_run", "stop_judge_run", "resume_judge_run"]
OF_A_RUN = {"judge_run", "judge_run_progress", "verdicts", "stop_judge_run", "resume_judge_run"}


def arguments_of(name, run):
    if name == "judge_prices":
        return [run.judge.pk]
    return [run.number] if name in OF_A_RUN else []


@pytest.mark.parametrize("who", ["grader_a", "stranger"])
@pytest.mark.parametrize(("method", "name"), [*(("get", n) for n in GETS), *(("post", n) for n in POSTS)])
def test_only_a_lead_finds_these_pages(client, version, run, request, who, method, name):
    client.force_login(request.getfixturevalue(who))
    assert getattr(client, method)(path(name, version, *arguments_of(name, run))).status_code == 404
    run.refresh_from_db()
    assert (run.state, JudgeRun.objects.count(), Judge.objects.count()) == ("running", 1, 1)


@pytest.mark.parametrize("name", sorted(set(POSTS) - {"new_judge", "judge_prices"}))
def test_get_where_post_is_due(client, version, run, lead, name):
    client.force_login(lead)
    assert client.get(path(name, version, *arguments_of(name, run))).status_code == 405


@pytest.mark.parametrize("name", GETS)
def test_a_lead_who_still_grades_is_locked_out(client, version, run, lead, name):
    round = Round.objects.create(
        version=version, number=1, rubric_version=rubric_v1(evalset=version.evalset), state=Round.State.OPEN
    )
    grader = Grader.objects.create(evalset=version.evalset, name="lead", person=lead, number=1)
    response = version.responses.first()
    Assignment.objects.create(round=round, response=response, grader=grader, slot=1, order=1)
    client.force_login(lead)
    answer = client.get(path(name, version, *arguments_of(name, run)))
    assert answer.status_code == 403
    assert "fake" not in answer.content.decode()


def test_a_run_of_another_version_does_not_exist(client, version, lead):
    client.force_login(lead)
    assert client.get(path("judge_run", version, 77)).status_code == 404


# Adding a judge


def test_add_judge(client, version, lead):
    client.force_login(lead)
    answer = client.post(path("new_judge", version), FORM)
    assert answer.status_code == 302
    judge = Judge.objects.get(name="gpt")
    assert judge.parameters == {"temperature": 0.0, "max_tokens": 500, "concurrency": 3}
    assert (judge.model, judge.base_url, judge.api_key_variable) == (
        "gpt-x",
        "https://api.example.org/v1",
        "EXAMPLE_API_KEY",
    )
    assert judge.created_by == lead


def test_add_judge_twice(client, version, lead):
    client.force_login(lead)
    client.post(path("new_judge", version), FORM)
    again = client.post(path("new_judge", version), {**FORM, "model": "other"})
    assert again.status_code == 400
    assert Judge.objects.get(name="gpt").model == "gpt-x"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_url", "ftp://example.org"),
        ("base_url", "file:///etc/passwd"),
        ("base_url", "javascript:alert(1)"),
        ("base_url", "example.org/v1"),
        ("base_url", "http://"),
        ("base_url", "http://[::1"),
        ("base_url", "http://example.org:99999999/v1"),
        ("base_url", "https://user:secret@example.org/v1"),
        ("base_url", "https://example.org/v1?key=secret"),
        ("api_key_variable", "SECRET_KEY"),
        ("api_key_variable", "sk-123456"),
        ("name", ""),
        ("name", "lexical-baseline"),
        ("model", ""),
        ("temperature", "3"),
        ("temperature", "NaN"),
        ("max_tokens", "0"),
        ("concurrency", "0"),
        ("prompt_version", "99"),
        ("price_completion", "-1"),
        ("reasoning_effort", "huge"),
    ],
)
def test_add_judge_with_bad_input(client, version, lead, field, value):
    client.force_login(lead)
    answer = client.post(path("new_judge", version), {**FORM, field: value})
    assert answer.status_code == 400
    assert answer.context["form"].errors[field]
    assert not Judge.objects.filter(kind=Judge.Kind.OPENAI).exists()


def test_a_judge_of_a_systems_own_family_is_warned_about(client, version, lead):
    client.force_login(lead)
    answer = client.post(path("new_judge", version), {**FORM, "family": "Alpaca"}, follow=True)
    assert "same model family as system 1" in answer.content.decode()
    page = client.get(path("confirm_judge_run", version), {"judge": "gpt", "repeats": 1}).content.decode()
    assert "same model family as system 1" in page


# Starting


def test_the_number_of_calls_is_said_before_the_start(client, version, lead, judge):
    client.force_login(lead)
    page = client.get(path("confirm_judge_run", version), {"judge": "fake", "repeats": 2}).content.decode()
    assert "<strong>18 calls</strong>" in page
    assert not JudgeRun.objects.exists()


def test_what_a_run_would_take_is_said_before_the_start(client, version, lead, judge):
    client.force_login(lead)
    prices = {"price_prompt": "1000", "price_completion": "1000", "currency": "EUR"}
    assert client.post(path("judge_prices", version, judge.pk), prices).status_code == 302
    page = client.get(path("confirm_judge_run", version), {"judge": "fake", "repeats": 1})
    estimate = page.context["form"].estimate
    assert (estimate.calls, estimate.completion_tokens, estimate.minutes) == (9, 540, None)
    assert estimate.cost == Decimal(estimate.tokens) / 1000
    assert f"about {estimate.prompt_tokens} in, 540 out" in page.content.decode()
    assert "rule of thumb" in page.content.decode()


def test_the_estimate_is_reckoned_from_earlier_calls_and_the_cache(client, version, lead, judge, run):
    run_inline(run=run)
    client.force_login(lead)
    asked = {"judge": "fake", "repeats": 2, "use_cache": "on"}
    estimate = client.get(path("confirm_judge_run", version), asked).context["form"].estimate
    assert (estimate.from_cache, estimate.calls, estimate.measured_calls) == (9, 9, 9)
    assert estimate.completion_tokens == 90  # ten for each, as before
    assert 700 < estimate.prompt_tokens < 1100  # a hundred for each call of about the same length
    assert estimate.seconds > 0


def test_what_comes_from_the_servers_cache_is_cheaper_on_every_page(client, version, lead, judge, server):
    client.force_login(lead)
    prices = {"price_prompt": "1000", "price_cached": "100", "price_completion": "1000", "currency": "EUR"}
    client.post(path("judge_prices", version, judge.pk), prices)
    judge.refresh_from_db()
    assert (
        client.get(path("judge_prices", version, judge.pk)).context["form"]["price_cached"].value() == "100"
    )
    server.default = "caching"
    run = run_inline(run=start_run(judge=judge, version=version))
    page = client.get(path("judge_run", version, run.number)).content.decode()
    assert "900 in, 90 out (720 in from the server's cache)" in page
    assert "0.342000 EUR" in page
    asked = {"judge": "fake", "repeats": 2}
    estimate = client.get(path("confirm_judge_run", version), asked).context["form"].estimate
    assert estimate.cached_tokens == round(0.8 * estimate.prompt_tokens)
    dear = estimate.tokens - estimate.cached_tokens
    assert estimate.cost == (Decimal(dear) + Decimal(estimate.cached_tokens) / 10) / 1000


def test_start_with_a_budget_and_go_on_with_a_larger_one(client, version, lead, judge):
    client.force_login(lead)
    client.post(path("start_judge_run", version), {"judge": "fake", "repeats": 1, "budget_calls": "2"})
    run = run_inline(run=JudgeRun.objects.get())
    assert run.stop_reason == "budget"
    page = client.get(path("judge_run", version, run.number)).content.decode()
    assert "Resume with this budget" in page
    client.post(path("resume_judge_run", version, run.number), {"budget_calls": "no"})
    run.refresh_from_db()
    assert run.state == "stopped"
    client.post(path("resume_judge_run", version, run.number), {"budget_calls": "50"})
    run.refresh_from_db()
    assert (run.state, run.budget_calls) == ("running", 50)


@pytest.mark.parametrize(
    "wrong",
    [
        {"price_prompt": "1"},
        {"price_prompt": "-1", "price_completion": "1"},
        {"price_cached": "1"},
        {"price_prompt": "1", "price_completion": "1", "price_cached": "-1"},
        {"currency": "euro"},
    ],
)
def test_prices_with_bad_input(client, version, lead, judge, wrong):
    client.force_login(lead)
    assert client.post(path("judge_prices", version, judge.pk), wrong).status_code == 400
    judge.refresh_from_db()
    assert judge.prices == {}


def test_start_judge_run(client, version, lead, judge):
    client.force_login(lead)
    asked = {"judge": "fake", "repeats": 1, "dimensions": ["grounding"], "system_runs": ["1"]}
    answer = client.post(path("start_judge_run", version), asked)
    run = JudgeRun.objects.get()
    assert answer.url == path("judge_run", version, run.number)
    assert (run.dimensions, run.created_by, run.use_cache) == (["grounding"], lead, False)


def test_start_judge_run_twice(client, version, lead, judge):
    client.force_login(lead)
    for _time in range(2):
        answer = client.post(path("start_judge_run", version), {"judge": "fake", "repeats": 1}, follow=True)
    assert "still under way" in answer.content.decode()
    assert JudgeRun.objects.count() == 1


def test_start_a_built_in_judge(client, version, lead):
    client.force_login(lead)
    client.post(path("start_judge_run", version), {"judge": "phrase-matcher", "repeats": 1})
    assert JudgeRun.objects.get().dimensions == ["abstention"]


@pytest.mark.parametrize(
    "changes",
    [
        {"judge": "nobody"},
        {"judge": "lexical-baseline", "dimensions": ["abstention"]},
        {"dimensions": ["colour"]},
        {"system_runs": ["9"]},
        {"repeats": "0"},
        {"repeats": "many"},
    ],
)
@pytest.mark.parametrize(("method", "name"), [("get", "confirm_judge_run"), ("post", "start_judge_run")])
def test_start_judge_run_with_bad_input(client, version, lead, judge, changes, method, name):
    client.force_login(lead)
    asked = {"judge": "fake", "repeats": 1, **changes}
    assert getattr(client, method)(path(name, version), asked).status_code == 400
    assert not JudgeRun.objects.exists()


# Watching


def test_progress_counts_and_says_that_nobody_works(client, version, lead, run):
    client.force_login(lead)
    page = client.get(path("judge_run_progress", version, run.number)).content.decode()
    assert "0 of 9" in page
    assert "No worker was seen for 30 seconds" in page
    assert 'hx-trigger="every 2s"' in page
    WorkerSighting.objects.create(name="w", seen_at=run.created_at)
    assert "No worker" not in client.get(path("judge_run_progress", version, run.number)).content.decode()


def test_a_finished_run_is_not_asked_after_again(client, version, lead, failed_run):
    client.force_login(lead)
    page = client.get(path("judge_run", version, failed_run.number)).content.decode()
    assert "complete with 2 failures" in page
    assert "hx-trigger" not in page
    assert "http-equiv" not in page
    assert "the judge refused" in page
    assert "answer cut short" in page
    assert "fake-judge-2026-01-01" in page


def test_a_model_that_changed_under_its_name_is_warned_about(client, version, lead, run, server):
    server.script("other_model")
    run_inline(run=run)
    client.force_login(lead)
    page = client.get(path("judge_run", version, run.number)).content.decode()
    assert "fake-judge-2026-01-01, fake-judge-2026-09-09" in page
    assert "More than one model answered under this name" in page


def test_a_run_that_stopped_by_itself_says_why(client, version, lead, run, server, monkeypatch):
    monkeypatch.setattr(work, "FIRST_CALLS", 3)
    server.default = "unauthorized"
    run_inline(run=run)
    client.force_login(lead)
    page = client.get(path("judge_run", version, run.number)).content.decode()
    assert "3 calls in a row failed alike (key missing or refused)" in page
    assert "Incorrect API key provided" in page


def test_a_run_without_budget_says_so(client, version, lead, run, server):
    JudgeRun.objects.filter(pk=run.pk).update(budget_calls=2)
    run_inline(run=run)
    client.force_login(lead)
    page = client.get(path("judge_run", version, run.number)).content.decode()
    assert "The budget is used up (calls: 2 of 2)" in page


def test_the_page_works_without_javascript(client, version, lead, run):
    client.force_login(lead)
    page = client.get(path("judge_run", version, run.number)).content.decode()
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page


def test_the_pages_tell_no_label_shares(client, version, lead, judge, server):
    run = start_run(judge=judge, version=version)
    work.work_through(run_id=run.pk)
    assert set(run.verdicts.values_list("label", flat=True)) == {"supported", "REFUSED"}
    client.force_login(lead)
    for name in ("judges", "judge_run", "judge_run_progress"):
        page = client.get(path(name, version, *arguments_of(name, run))).content.decode()
        assert "supported" not in page
        assert "REFUSED" not in page


def test_stop_and_resume(client, version, lead, run):
    client.force_login(lead)
    client.post(path("stop_judge_run", version, run.number))
    run.refresh_from_db()
    assert run.state == JudgeRun.State.STOPPED
    assert "Resume" in client.get(path("judge_run", version, run.number)).content.decode()
    client.post(path("stop_judge_run", version, run.number))  # twice is once
    client.post(path("resume_judge_run", version, run.number))
    run.refresh_from_db()
    assert run.state == JudgeRun.State.RUNNING


def test_retry_failed(client, version, lead, failed_run):
    client.force_login(lead)
    answer = client.post(path("resume_judge_run", version, failed_run.number), {"retry_failed": "1"})
    assert answer.status_code == 302
    assert failed_run.verdicts.filter(state=Verdict.State.PENDING).count() == 2


def test_resume_with_nothing_left_says_so(client, version, lead, run, server):
    run_inline(run=run)
    client.force_login(lead)
    answer = client.post(path("resume_judge_run", version, run.number), follow=True)
    assert "nothing left" in answer.content.decode()


# Verdicts


def test_verdicts_by_kind_of_failure_with_the_raw_answer(client, version, lead, failed_run):
    client.force_login(lead)
    page = client.get(path("verdicts", version, failed_run.number), {"failure": "truncated"})
    assert [verdict.failure for verdict in page.context["page_obj"]] == ["truncated"]
    assert "The passage says that" in page.content.decode()


def test_verdicts_with_an_unknown_filter(client, version, lead, failed_run):
    client.force_login(lead)
    assert client.get(path("verdicts", version, failed_run.number), {"failure": "x"}).status_code == 400


def test_hostile_text_stays_text(client, version, lead, run):
    run.verdicts.update(
        state="failed",
        failure="unparseable",
        raw_output="<script>alert(1)</script>",
        detail="<img src=x onerror=alert(1)>",
        resolved_model="<b>model</b>",
        effective_parameters={"<i>": "<u>"},
    )
    client.force_login(lead)
    for name in ("verdicts", "judge_run"):
        page = client.get(path(name, version, run.number)).content.decode()
        assert "&lt;b&gt;model" in page
        for tag in ("<script>alert", "<img src=x", "<b>model", "<i>", "<u>"):
            assert tag not in page


def test_verdicts_are_paged(client, lead, evalset, judge):
    from tests.calibration.judges.conftest import make_version

    big = make_version(evalset, number=2, responses=20, claims=3)
    run = start_run(judge=judge, version=big)
    client.force_login(lead)
    page = client.get(path("verdicts", big, run.number), {"page": 2})
    assert len(page.context["page_obj"]) == 30
    assert len(page.context["page_obj"].paginator.object_list) == 80


def test_repeats_show_how_far_the_judge_agrees_with_itself_and_no_label(client, version, lead, judge, server):
    """Six claims asked twice; one answer of the twelve is another label: five of six alike."""
    run = start_run(judge=judge, version=version, dimensions=["grounding"], repeats=2)
    server.script("unsupporting")
    run_inline(run=run)
    client.force_login(lead)
    page = client.get(path("judge_run", version, run.number))
    [entry] = page.context["repeats"]
    assert entry.found.unanimous.value == pytest.approx(5 / 6)
    assert entry.found.pairwise.value == pytest.approx(5 / 6)
    assert 0 < entry.share_within.value <= 1
    assert (entry.share_within.low, entry.share_within.flags) == (None, ("too_few_clusters",))
    words = page.content.decode()
    assert "How far the judge agrees with itself" in words
    assert "fewer than ten items" in words
    assert words.count("83.3\u202f%</a>") == 2
    assert "supported" not in words


def test_a_single_run_has_no_repeats_to_show(client, version, lead, failed_run):
    client.force_login(lead)
    page = client.get(path("judge_run", version, failed_run.number)).content.decode()
    assert "agrees with itself" not in page
