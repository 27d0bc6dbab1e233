"""The prompts of extractions as versioned data: page, difference, trial, a new version, and their use."""

import pytest
from django.urls import reverse

from calibration.extraction_prompts import add_extraction_prompt
from calibration.extraction_runs import start_extraction
from calibration.judges.extracting import built_in
from calibration.models import ExtractionPromptVersion
from calibration.services import Refused, run_inline
from evalsets.claims import origin_of
from evalsets.models import Claim

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def path(name, version):
    return reverse(f"calibration:{name}", args=[version.evalset.slug, version.number])


def posted(**changes):
    return {"system": built_in().system, "closing": built_in().closing, "note": "", **changes}


def made(version, **changes):
    texts = {"system": built_in().system, "closing": built_in().closing}
    return add_extraction_prompt(evalset=version.evalset, **(texts | changes))


@pytest.mark.parametrize("who", ["grader_a", "stranger"])
def test_only_a_lead_finds_them(client, version, request, who):
    client.force_login(request.getfixturevalue(who))
    assert client.get(path("extraction_prompts", version)).status_code == 404
    assert client.get(path("new_extraction_prompt", version)).status_code == 404
    assert client.post(path("new_extraction_prompt", version), posted()).status_code == 404


def test_new_prompt_and_the_same_once_more(client, version, lead):
    client.force_login(lead)
    wanted = posted(system=f"{built_in().system}\nBe brief.\r\nVery.", note="briefer")
    assert client.get(path("new_extraction_prompt", version)).status_code == 200
    assert client.post(path("new_extraction_prompt", version), wanted).status_code == 302
    row = ExtractionPromptVersion.objects.get()
    assert (row.number, row.note, row.created_by) == (2, "briefer", lead)
    assert row.system.endswith("Be brief.\nVery.")
    again = client.post(path("new_extraction_prompt", version), wanted)
    assert again.status_code == 400
    assert "Version 2 has this very wording" in again.content.decode()
    assert ExtractionPromptVersion.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"system": ""},
        {"system": "Take it apart."},
        {"system": built_in().system.replace('"quote"', "quote")},
        {"system": built_in().system.replace("{nonce}", "")},
        {"system": built_in().system + "x" * 20_000},
        {"closing": " "},
    ],
)
def test_new_prompt_with_bad_input(client, version, lead, wrong):
    client.force_login(lead)
    assert client.post(path("new_extraction_prompt", version), posted(**wrong)).status_code == 400
    assert not ExtractionPromptVersion.objects.exists()


def test_difference_and_trial_are_shown_word_for_word(client, version, lead, server, judge):
    made(version, closing="The claims, please. <script>alert(1)</script>")
    client.force_login(lead)
    page = client.get(path("extraction_prompts", version), {"prompt": "2", "item": "r1"})
    assert page.context["difference"] == [
        (
            "closing",
            [("-", built_in().closing), ("+", "The claims, please. <script>alert(1)</script>")],
        )
    ]
    assert "<script>alert" not in page.content.decode()
    assert server.calls == 0
    run_inline(run=started(judge, version))
    shown = [{"role": role, "content": content} for role, content in page.context["trial"].messages]
    assert shown in [request["messages"] for request in server.requests]


def started(judge, version, prompt_version="2", **asked):
    runs = list(version.runs.all())
    return start_extraction(
        judge=judge, version=version, system_runs=runs, prompt_version=prompt_version, **asked
    )


@pytest.mark.parametrize("asked", [{"prompt": "9"}, {"against": "x"}])
def test_a_version_that_is_not_there_is_not_found(client, version, lead, asked):
    client.force_login(lead)
    assert client.get(path("extraction_prompts", version), asked).status_code == 404


def test_the_trial_of_a_response_that_is_not_there_says_so(client, version, lead):
    client.force_login(lead)
    page = client.get(path("extraction_prompts", version), {"item": "nothing"})
    assert page.status_code == 400
    assert page.context["trial"] is None


def test_an_extraction_asks_with_the_version_that_it_names_and_its_claims_say_so(
    client, version, lead, judge, server
):
    made(version, closing="The claims, please.")
    client.force_login(lead)
    chosen = {"judge": "fake", "max_tokens": "100", "prompt_version": "2"}
    sure = client.get(path("confirm_extraction", version), chosen)
    assert '<dd class="num">2</dd>' in sure.content.decode()
    assert client.post(path("start_extraction", version), chosen).status_code == 302
    [run] = version.judge_runs(manager="every").all()
    run_inline(run=run)
    endings = {request["messages"][1]["content"].rsplit("\n\n", 1)[1] for request in server.requests}
    assert endings == {"The claims, please."}
    origin = origin_of(Claim.objects.get(text="Dogs travel free."))
    assert (origin["prompt_version"], origin["prompt_sha256"]) == ("2", run.requested["prompt_sha256"])
    assert run.requested["prompt_sha256"] != built_in().sha256


def test_a_prompt_that_is_not_there_starts_nothing(version, judge):
    with pytest.raises(Refused, match="no extraction prompt 7"):
        started(judge, version, "7")


def test_the_newest_version_is_offered_and_asks_where_none_is_named(client, version, lead, judge):
    made(version, closing="The claims, please.")
    client.force_login(lead)
    page = client.get(path("extractions", version))
    assert page.context["form"]["prompt_version"].initial == "2"
    client.post(path("start_extraction", version), {"judge": "fake", "max_tokens": "100"})
    assert version.judge_runs(manager="every").get().requested["prompt_version"] == "2"


def test_an_extraction_under_way_keeps_its_prompt_when_a_newer_one_is_added(version, judge, server):
    run = started(judge, version, "1")
    made(version, closing="The claims, please.")
    run_inline(run=run)
    endings = {request["messages"][1]["content"].rsplit("\n\n", 1)[1] for request in server.requests}
    assert endings == {built_in().closing}


def test_answers_are_taken_over_from_the_same_prompt_only(version, judge, server):
    """Three of the five responses came without claims and with text (`TEXTS`)."""
    run_inline(run=started(judge, version, "1"))
    made(version, closing="The claims, please.")
    assert server.calls == 3
    for prompt_version, calls in (("2", 6), ("1", 6), ("2", 6)):
        run_inline(run=started(judge, version, prompt_version, again=True))
        assert server.calls == calls


def test_pages_of_claims_name_the_prompt_that_each_came_by(client, version, lead, judge):
    run_inline(run=started(judge, version, "1"))
    made(version, closing="The claims, please.")
    response = version.responses.get(response_id="r2")
    run_inline(run=started(judge, version, "2", again=True, responses=[response.pk]))
    client.force_login(lead)
    place = [version.evalset.slug, version.number]
    of_run = client.get(reverse("calibration:run_claims", args=[*place, 1])).content.decode()
    assert (of_run.count("prompt 1</span>"), of_run.count("prompt 2</span>")) == (2, 1)
    for name, extraction in (("1", 1), ("2", 2)):
        page = client.get(reverse("calibration:extraction_run", args=[*place, extraction])).content.decode()
        assert f'href="{path("extraction_prompts", version)}?prompt={name}"' in page


def test_the_built_in_wording_is_still_the_one_that_claims_were_made_by():
    """Under another text claims would name a version 1 that nobody can read (the hash: of the first text)."""
    assert built_in().sha256 == "be85cbaa2eb664a8dda4a7fc0f1afe3f1a9273cc9a42e8739cad7956a23cd9bb"
