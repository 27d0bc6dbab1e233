"""The pages of an eval set."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from calibration import exchange
from calibration.services import judge_named, run_inline, start_run
from evalsets.models import EvalSet, EvalSetVersion, Membership, SystemRun
from evalsets.services import freeze_run, freeze_version, import_evalset
from tests.annotate import worlds
from tests.evalsets.files import jsonl, line, rows_of_every_table

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def version(evalset):
    """Version 1 of the eval set of the roles, a draft with two systems and an item without a response."""
    lines = [
        line(id="a", item_id="q1", strata={"language": "en"}, original={"label": "hidden-original"}),
        line(
            id="b",
            item_id="q1",
            strata={"language": "en"},
            system={"model": "demo-2"},
            response="",
            claims=[],
        ),
        line(id="q2", response=..., claims=..., answerable=False, unanswerable_reason="false_premise"),
    ]
    return import_evalset(stream=jsonl(*lines), filename="f.jsonl", name=evalset.slug).version


@pytest.fixture
def frozen(version):
    for run in version.runs.all():
        freeze_run(run=run)
    return freeze_version(version=version)


def url(name, version, *more):
    return reverse(name, args=[version.evalset.slug, version.number, *more])


def pages(version):
    slug = version.evalset.slug
    return [
        reverse("evalsets:evalset", args=[slug]),
        reverse("evalsets:members", args=[slug]),
        url("evalsets:version", version),
        url("evalsets:freeze", version),
        url("evalsets:freeze_run", version, 1),
        url("evalsets:items", version),
        url("evalsets:response", version, version.responses.first().pk),
        url("calibration:upload_responses", version),
        url("calibration:export_version", version),
    ]


def test_the_lead_opens_every_page(client, version, lead):
    client.force_login(lead)
    assert {path: client.get(path).status_code for path in pages(version)} == dict.fromkeys(
        pages(version), 200
    )


@pytest.mark.parametrize("who", ["grader_a", "stranger"])
def test_others_find_nothing(client, version, who, request):
    client.force_login(request.getfixturevalue(who))
    posts = [
        url("evalsets:freeze", version),
        url("evalsets:freeze_run", version, 1),
        url("evalsets:freeze_runs", version),
        url("calibration:upload_responses", version),
        reverse("evalsets:members", args=[version.evalset.slug]),
    ]
    before = rows_of_every_table()
    assert {client.get(path).status_code for path in pages(version)} == {404}
    assert {client.post(path, {"primary_unit": "claim"}).status_code for path in posts} == {404}
    assert rows_of_every_table() == before


def test_without_a_log_in_every_page_asks_for_one(client, version):
    assert {client.get(path).status_code for path in [*pages(version), reverse("calibration:upload")]} == {
        302
    }


@pytest.mark.parametrize("path", ["evalsets:response", "evalsets:freeze_run"])
def test_what_is_not_there_is_404(client, version, lead, path):
    client.force_login(lead)
    assert client.get(url(path, version, 987654)).status_code == 404
    assert client.get(reverse("evalsets:version", args=[version.evalset.slug, 99])).status_code == 404
    assert client.get(reverse("evalsets:evalset", args=["nothing"])).status_code == 404


def test_a_response_of_another_version_is_404(client, version, lead):
    other = import_evalset(stream=jsonl(line()), filename="f.jsonl", name="other").version
    client.force_login(lead)
    assert client.get(url("evalsets:response", version, other.responses.get().pk)).status_code == 404


@pytest.mark.parametrize("name", ["evalsets:version", "evalsets:items", "evalsets:evalset"])
def test_get_pages_refuse_post(client, version, lead, name):
    client.force_login(lead)
    arguments = (
        [version.evalset.slug] if name == "evalsets:evalset" else [version.evalset.slug, version.number]
    )
    assert client.post(reverse(name, args=arguments)).status_code == 405


def test_the_version_page_tells_the_composition(client, version, lead):
    client.force_login(lead)
    page = client.get(url("evalsets:version", version))
    composition = page.context["composition"]
    assert composition.items == 2
    assert [(share.name, share.n) for share in composition.answerable] == [
        ("answerable", 1),
        ("unanswerable", 1),
        ("not known", 0),
    ]
    assert (composition.without_strata, composition.without_response) == (1, 1)
    assert "50.0 % of the items are unanswerable (1 of 2)" in page.content.decode()
    assert "1 items have no response yet" in page.content.decode()  # the notice of the import
    runs = {run.number: (run.n_responses, run.n_empty, run.n_claims) for run in page.context["runs"]}
    assert runs == {1: (1, 0, 1), 2: (1, 1, 0)}


def test_freezing_asks_first_and_then_freezes(client, version, lead):
    client.force_login(lead)
    path = url("evalsets:freeze", version)
    assert "cannot be undone" in client.get(path).content.decode()
    version.refresh_from_db()
    assert not version.is_frozen
    assert client.post(path, {"primary_unit": "response"}).status_code == 302
    version.refresh_from_db()
    assert (version.state, version.primary_unit, version.frozen_by) == ("frozen", "response", lead)
    hash_before = version.content_hash
    assert client.post(path, {"primary_unit": "claim"}).status_code == 302
    version.refresh_from_db()
    assert (version.content_hash, version.primary_unit) == (hash_before, "response")
    assert "frozen already" in client.get(path).content.decode()


def test_freezing_needs_a_known_unit(client, version, lead):
    client.force_login(lead)
    client.post(url("evalsets:freeze", version), {"primary_unit": "page"})
    version.refresh_from_db()
    assert not version.is_frozen


def test_runs_are_frozen_one_by_one_or_all_at_once(client, version, lead):
    client.force_login(lead)
    assert client.get(url("evalsets:freeze_run", version, 1)).status_code == 200
    client.post(url("evalsets:freeze_run", version, 1))
    assert list(SystemRun.objects.values_list("state", flat=True).order_by("number")) == ["frozen", "draft"]
    assert client.get(url("evalsets:freeze_runs", version)).status_code == 405
    client.post(url("evalsets:freeze_runs", version))
    client.post(url("evalsets:freeze_runs", version))
    assert set(SystemRun.objects.values_list("state", flat=True)) == {"frozen"}


def test_items_are_searched(client, version, lead):
    client.force_login(lead)
    page = client.get(url("evalsets:items", version), {"q": "Q2"})
    assert [item.item_id for item in page.context["page_obj"].object_list] == ["q2"]
    assert "No item has this" in client.get(url("evalsets:items", version), {"q": "a\0zzz"}).content.decode()
    assert client.get(url("evalsets:items", version), {"page": "999"}).status_code == 200
    assert client.get(url("evalsets:items", version), {"page": "x"}).status_code == 200


def test_the_response_page_shows_the_whole_text_and_no_label_of_the_file(client, version, lead):
    client.force_login(lead)
    a, b = version.responses.order_by("position")
    page = client.get(url("evalsets:response", version, a.pk)).content.decode()
    assert "It lasts 14 days." in page and "The trial lasts 14 days." in page
    assert "hidden-original" not in page
    assert "EMPTY" in client.get(url("evalsets:response", version, b.pk)).content.decode()


@pytest.mark.parametrize("n", [3, 40])
def test_the_number_of_queries_does_not_grow(client, evalset, lead, n, django_assert_max_num_queries):
    lines = [line(id=f"r{i}", item_id=f"q{i}", stratum=str(i % 3)) for i in range(n)]
    version = import_evalset(stream=jsonl(*lines), filename="f.jsonl", name=evalset.slug).version
    client.force_login(lead)
    client.get(url("evalsets:items", version))
    limits = {
        reverse("evalsets:evalset", args=[evalset.slug]): 8,
        url("evalsets:version", version): 18,
        url("evalsets:items", version): 9,
        url("evalsets:response", version, version.responses.first().pk): 11,
    }
    for path, limit in limits.items():
        with django_assert_max_num_queries(limit):
            client.get(path)


HOSTILE = "<script>window.__x=1</script>{{ 71317*91733 }}"


def test_somebody_elses_text_is_only_text(client, evalset, lead):
    given = line(
        id=HOSTILE,
        question=HOSTILE,
        response=f"{HOSTILE}\u202e\u0007",
        strata={HOSTILE: HOSTILE},
        system={"model": HOSTILE},
        context=[{"id": HOSTILE, "title": HOSTILE, "text": HOSTILE}],
        claims=[{"id": HOSTILE, "text": HOSTILE, "source_ids": [HOSTILE]}],
    )
    made = import_evalset(stream=jsonl(given), filename=f"{HOSTILE}.jsonl", name=evalset.slug)
    client.force_login(lead)
    for path in pages(made.version)[:-1]:
        page = client.get(path).content.decode()
        assert "<script>window" not in page
        assert str(71317 * 91733) not in page
    page = client.get(
        url("evalsets:response", made.version, made.version.responses.get().pk)
    ).content.decode()
    assert "\u2407" in page and "\u0007" not in page


def test_people_are_added_by_the_lead(client, evalset, lead, stranger):
    client.force_login(lead)
    path = reverse("evalsets:members", args=[evalset.slug])
    assert client.post(path, {"username": "stranger", "role": "grader"}).status_code == 302
    client.post(path, {"username": "stranger", "role": "grader"})
    assert list(Membership.objects.filter(person=stranger).values_list("role", flat=True)) == ["grader"]
    client.post(path, {"username": " stranger ", "role": "lead"})
    assert Membership.objects.filter(person=stranger).count() == 2


@pytest.mark.parametrize(
    "given", [{"username": "nobody", "role": "grader"}, {"username": "lead", "role": "boss"}, {}]
)
def test_bad_people_are_refused(client, evalset, lead, given):
    client.force_login(lead)
    assert client.post(reverse("evalsets:members", args=[evalset.slug]), given).status_code == 200
    assert Membership.objects.count() == 1


def test_a_role_is_taken_away_but_never_the_last_lead(client, evalset, lead, grader_a):
    client.force_login(lead)
    graders, leads = (Membership.objects.get(role=role) for role in ("grader", "lead"))
    path = reverse("evalsets:remove_member", args=[evalset.slug, graders.pk])
    assert client.get(path).status_code == 405
    assert client.post(path).status_code == 302
    assert client.post(path).status_code == 404
    client.post(reverse("evalsets:remove_member", args=[evalset.slug, leads.pk]))
    assert list(Membership.objects.values_list("person", "role")) == [(lead.pk, "lead")]


def test_a_grader_cannot_take_roles_away(client, evalset, lead, grader_a):
    client.force_login(grader_a)
    path = reverse("evalsets:remove_member", args=[evalset.slug, Membership.objects.get(role="lead").pk])
    assert client.post(path).status_code == 404
    assert Membership.objects.filter(role="lead").exists()


# Upload


def upload(client, *lines, name="Uploaded", content=None, **more):
    file = SimpleUploadedFile("up.jsonl", content if content is not None else jsonl(*lines).getvalue())
    return client.post(reverse("calibration:upload"), {"name": name, "file": file, **more})


def test_anybody_who_is_logged_in_uploads_and_becomes_lead(client, stranger):
    client.force_login(stranger)
    assert client.get(reverse("calibration:upload")).status_code == 200
    answer = upload(client, line(response_labels={"ana": "ANSWERED"}), with_labels="on")
    version = EvalSetVersion.objects.get()
    assert answer["Location"] == url("evalsets:version", version)
    assert Membership.objects.get().person == stranger
    page = client.get(answer["Location"]).content.decode()
    assert "Imported 1 items, 1 responses" in page and "1 labels and 0 verdicts" in page


def test_a_refused_upload_lists_every_problem_and_stores_nothing(client, lead):
    client.force_login(lead)
    before = rows_of_every_table()
    answer = upload(client, line(id=1), line(claims="x"), line(id="<b>", answerable="maybe"))
    assert answer.status_code == 422
    page = answer.content.decode()
    assert [(p.line, p.field) for p in answer.context["problems"]] == [
        (1, "id"),
        (2, "claims"),
        (3, "answerable"),
    ]
    assert "a string is expected, not a number" in page and "maybe" in page
    assert rows_of_every_table() == before


@pytest.mark.parametrize("content", [b"", b"\xff\xfe{", b"\x1f\x8bbroken", b"[1]", b"{"])
def test_rubbish_is_refused_in_words(client, lead, content):
    client.force_login(lead)
    assert upload(client, content=content).status_code == 422
    assert EvalSet.objects.filter(name="Uploaded").count() == 0


def test_a_form_without_file_or_name_is_refused(client, lead):
    client.force_login(lead)
    assert client.post(reverse("calibration:upload"), {"name": "x"}).status_code == 422
    assert upload(client, line(), name=" ").status_code == 422


def test_only_its_lead_uploads_the_next_version(client, version, lead, stranger):
    client.force_login(stranger)
    assert "do not lead" in upload(client, line(), name=version.evalset.slug).content.decode()
    client.force_login(lead)
    assert upload(client, line(), name=version.evalset.slug).status_code == 302
    assert list(EvalSetVersion.objects.values_list("number", flat=True)) == [1, 2]


def test_a_body_above_the_limit_is_answered_413(client, lead, settings):
    settings.IMPORT_MAX_BYTES = 2 * 1024 * 1024
    client.force_login(lead)
    answer = upload(client, content=b"x" * (4 * 1024 * 1024))
    assert answer.status_code == 413
    assert "At most 2 MB" in answer.content.decode()


def test_an_upload_needs_its_token(client, lead):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(lead)
    assert upload(strict, line()).status_code == 403
    assert EvalSetVersion.objects.count() == 0


def test_responses_are_uploaded_into_a_frozen_version(client, frozen, lead):
    client.force_login(lead)
    path = url("calibration:upload_responses", frozen)
    good = jsonl({"id": "n", "item_id": "q2", "response": "r", "system": {"model": "m"}}).getvalue()
    assert client.post(path, {"file": SimpleUploadedFile("r.jsonl", good)}).status_code == 302
    assert frozen.runs.count() == 3
    again = client.post(path, {"file": SimpleUploadedFile("r.jsonl", good)})
    assert again.status_code == 422 and "already has a response" in again.content.decode()
    assert frozen.runs.count() == 3


def test_the_export_comes_back_the_same(client, frozen, lead):
    client.force_login(lead)
    answer = client.get(url("calibration:export_version", frozen))
    assert answer["Content-Disposition"] == 'attachment; filename="roles-v1.jsonl"'
    content = b"".join(answer.streaming_content)
    assert [json.loads(text)["id"] for text in content.splitlines()] == ["a", "b", "q2"]
    import io

    told = exchange.import_evalset(stream=io.BytesIO(content), filename="x.jsonl", name="again", freeze=True)
    assert told["content_hash"] == frozen.content_hash


def test_version_page_marks_a_round_and_a_judge_run_as_done(client, lead, evalset, grader_a, grader_b):
    version = worlds.make_version(evalset)
    client.force_login(lead)
    page = client.get(reverse("evalsets:version", args=[evalset.slug, version.number])).content.decode()
    assert "Open a round for two graders." in page
    assert "Run a judge over the same items." in page
    worlds.make_round(version, grader_a, grader_b)
    run_inline(run=start_run(judge=judge_named(evalset=evalset, name="phrase-matcher"), version=version))
    page = client.get(reverse("evalsets:version", args=[evalset.slug, version.number])).content.decode()
    assert "1 round has been opened." in page
    assert "1 judge run is here." in page
