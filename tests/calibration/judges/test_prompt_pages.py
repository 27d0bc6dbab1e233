"""Prompts as versioned data: the page, the difference between two, the trial on a target, a new version."""

import pytest
from django.urls import reverse

from calibration.judges.prompts import built_in
from calibration.models import PromptVersion
from calibration.prompt_versions import METHODS, add_prompt_version
from calibration.services import Refused, add_judge, run_inline, start_run

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def path(name, version):
    return reverse(f"calibration:{name}", args=[version.evalset.slug, version.number])


def posted(**changes):
    wording = built_in()
    methods = {f"method_{name}": wording.methods[name] for name in METHODS}
    return {"system": wording.system, "closing": wording.closing, "note": "", **methods, **changes}


def made(version, **changes):
    wording = built_in()
    texts = {"system": wording.system, "methods": dict(wording.methods), "closing": wording.closing}
    return add_prompt_version(evalset=version.evalset, **(texts | changes))


@pytest.mark.parametrize("who", ["grader_a", "stranger"])
@pytest.mark.parametrize("name", ["prompts", "new_prompt"])
def test_only_a_lead_finds_the_prompts(client, version, request, who, name):
    client.force_login(request.getfixturevalue(who))
    assert client.get(path(name, version)).status_code == 404
    assert client.post(path("new_prompt", version), posted()).status_code == 404


def test_new_prompt(client, version, lead):
    client.force_login(lead)
    system = built_in().system + "\nBe strict.\r\nVery."
    assert client.post(path("new_prompt", version), posted(system=system, note="stricter")).status_code == 302
    row = PromptVersion.objects.get()
    assert (row.number, row.note, row.created_by) == (2, "stricter", lead)
    assert row.system.endswith("Be strict.\nVery.")


def test_new_prompt_twice_is_the_same_wording(client, version, lead):
    client.force_login(lead)
    client.post(path("new_prompt", version), posted(closing="Label the {target}."))
    again = client.post(path("new_prompt", version), posted(closing="Label the {target}."))
    assert again.status_code == 400
    assert "Version 2 has this very wording" in again.content.decode()
    assert PromptVersion.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"system": "Judge."},
        {"system": ""},
        {"closing": "Now."},
        {"method_grounding": ""},
        {"system": "{nonce}{question}{labels}{method}{menu}" + "x" * 20_000},
    ],
)
def test_new_prompt_with_bad_input(client, version, lead, wrong):
    client.force_login(lead)
    assert client.post(path("new_prompt", version), posted(**wrong)).status_code == 400
    assert not PromptVersion.objects.exists()


def test_the_difference_between_two_versions_is_shown(client, version, lead):
    made(version, closing="Now label the {target}.")
    client.force_login(lead)
    page = client.get(path("prompts", version), {"prompt": "2", "against": "1"})
    assert page.context["difference"] == [
        ("closing", [("-", built_in().closing), ("+", "Now label the {target}.")])
    ]
    assert "<ins>+ Now label the {target}.</ins>" in page.content.decode()
    assert client.get(path("prompts", version), {"prompt": "9"}).status_code == 404


@pytest.mark.parametrize("dimension", ["grounding", "abstention"])
def test_the_trial_shows_what_would_be_sent_word_for_word(client, version, lead, server, judge, dimension):
    client.force_login(lead)
    asked = {"prompt": "1", "item": "r1-1", "dimension": dimension}
    page = client.get(path("prompts", version), asked)
    assert server.calls == 0
    run_inline(run=start_run(judge=judge, version=version, dimensions=[dimension]))
    shown = [{"role": role, "content": content} for role, content in page.context["trial"].messages]
    assert shown in [request["messages"] for request in server.requests]


def test_the_trial_of_what_is_not_there_says_so(client, version, lead):
    client.force_login(lead)
    for wrong in (
        {"item": "nothing"},
        {"item": "r1-1", "claim_id": "c9"},
        {"item": "r1-1", "dimension": "x"},
    ):
        page = client.get(path("prompts", version), {"dimension": "grounding", **wrong})
        assert page.status_code == 400
        assert page.context["trial"] is None


def test_a_judge_asks_with_its_version_of_the_prompt(version, server):
    made(version, closing="Please label the {target}.")
    judge = add_judge(evalset=version.evalset, name="new", model="m", base_url=server.url, prompt_version="2")
    run = run_inline(run=start_run(judge=judge, version=version))
    assert run.requested["prompt_version"] == "2"
    assert run.requested["prompt_sha256"] != built_in().sha256
    endings = {request["messages"][1]["content"].rsplit("\n\n", 1)[1] for request in server.requests}
    assert endings == {"Please label the claim.", "Please label the response."}


def test_hostile_wording_stays_text(client, version, lead):
    made(version, closing="<script>alert(1)</script> {target}")
    client.force_login(lead)
    assert "<script>alert" not in client.get(path("prompts", version)).content.decode()


def test_a_prompt_without_the_menu_is_refused(version):
    with pytest.raises(Refused, match=r"lacks \{menu\}"):
        made(version, system="{nonce}{question}{labels}{method}")
