"""What a grader must never see, on every address that the project has.

The addresses are read from the URL configuration. A new one whose arguments are not known here fails the
test: teach it in `values`, so that it is walked too.
"""

import re
from itertools import chain

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from annotate import services
from annotate.models import Annotation, Assignment
from annotate.queries import next_assignment, screen_of
from calibration.models import Judge, JudgeRun, Verdict
from calibration.reports import build_report
from evalsets.models import Claim, Item, Passage, Response, SystemRun
from tests.annotate.worlds import freeze_all, grader_of, make_round, make_version, response_of, say

# What somebody else said, planted as words that stand nowhere else
SAID = [
    "PEERNOTE",
    "PEERFLAG",
    "PEERSPLIT",
    "LEADNOTE",
    "LEADTASK",
    "JUDGENAME",
    "JUDGEDETAIL",
    "JUDGERAW",
    "JUDGEMODEL",
    "ORIGINALLABEL",
    "IMPORTEDGRADER",
]
# What would tell which system answered, or what the right answer is
TOLD = [
    "METAWORD",
    "SYSTEMNAME",
    "SYSTEMMODEL",
    "SYSTEMSETTING",
    "REFERENCEANSWER",
    "EXPECTEDDOCUMENT",
    "STRATUMWORD",
    "RESPONSEID",
    "ITEMID",
    "CLAIMID",
    "false_premise",
]


def plant_content(version):
    """Before the version is frozen: everything about the items that is not for graders."""
    secret = {"original": {"label": "ORIGINALLABEL"}, "meta": {"x": "METAWORD"}}
    for item in Item.objects.filter(version=version):
        item.item_id = f"ITEMID-{item.position}"
        item.strata = {"type": "STRATUMWORD"}
        item.reference_answer = "REFERENCEANSWER"
        item.expected_documents = item.expected_passages = ["EXPECTEDDOCUMENT"]
        item.answerable, item.unanswerable_reason = False, "false_premise"
        item.extra = secret
        item.save()
    Response.objects.filter(version=version).update(extra=secret, retrieval_query="METAWORD")
    for response in Response.objects.filter(version=version):
        response.response_id = f"RESPONSEID-{response.position}"
        response.save()
    for claim in Claim.objects.filter(response__version=version):
        claim.claim_id, claim.extra = f"CLAIMID-{claim.pk}", secret
        claim.save()
    Passage.objects.filter(response__version=version).update(extra=secret)
    system = version.runs.get().system
    system.name, system.model, system.settings = "SYSTEMNAME", "SYSTEMMODEL", {"x": "SYSTEMSETTING"}
    system.given = {"name": "SYSTEMNAME"}
    system.save()


def plant_what_others_say(round, grader_a, lead):
    """Peer's labels, flags and splits, the lead's decision, a judge's verdicts and report."""
    grader = grader_of(round, grader_a)
    for own in Assignment.objects.filter(round=round, grader=grader).select_related("response"):
        claims = own.response.claims.filter(parent=None)
        say(
            round,
            grader_a,
            own.response.position,
            *["unverifiable"] * len(claims),
            "CLARIFY",
            note="PEERNOTE",
        )
        services.flag(round=round, grader=grader, response=own.response, claim=None, note="PEERFLAG")
        for claim in claims:
            services.flag(round=round, grader=grader, response=own.response, claim=claim, note="PEERFLAG")
            services.propose_split(round=round, grader=grader, claim=claim, parts=["PEERSPLIT one", "two"])
    decision = services.adjudicate(
        round=round,
        response=response_of(round, 2),
        claim=None,
        dimension="abstention",
        label="CLARIFY",
        reason="other",
        note="LEADNOTE",
        person=lead,
    )
    services.note_for_rubric(
        rubric=round.rubric_version.rubric, adjudication=decision, text="LEADTASK", person=lead
    )
    for case in round.rubric_version.warm_up_cases.all():
        labels = round.rubric_version.dimensions.get(name=case.dimension).label_names
        services.answer_warm_up(case=case, grader=grader, label=labels[-1])
    version, run = round.version, JudgeRun.objects.get()
    for claim in Claim.objects.filter(response__version=version):
        Verdict.objects.create(
            run=run,
            response=claim.response,
            claim=claim,
            dimension="grounding",
            state="valid",
            label="contradicted",
            raw_output="JUDGERAW",
            detail="JUDGEDETAIL",
        )
    build_report(judge_run=run, round=round, dimension="grounding", person=lead)


def start_judge(round):
    """That a judge is at work is no secret from a lead who grades; what it says is."""
    version = round.version
    judge = Judge.objects.create(
        evalset=version.evalset, name="JUDGENAME", kind="openai", model="JUDGEMODEL", prompt_version="1"
    )
    run = JudgeRun.objects.create(
        judge=judge,
        version=version,
        number=1,
        state="complete",
        requested_fingerprint="f" * 64,
        dimensions=["grounding", "abstention"],
        rubric_version=round.rubric_version,
        finished_at=timezone.now(),
    )
    run.system_runs.set(version.runs.all())


@pytest.fixture
def both(member):
    return member("both", "lead", "grader")


@pytest.fixture
def blind_round(evalset, grader_a, grader_b, both):
    version = make_version(evalset, freeze=False)
    plant_content(version)
    round = make_round(freeze_all(version), grader_a, grader_b, both)
    for person in (grader_b, both):  # so that the lead can decide there
        say(round, person, 2, "REFUSED")
        say(round, person, 6, "supported")
    services.record_imported_labels(
        version=version,
        runs=list(version.runs.all()),
        labels=[("IMPORTEDGRADER", response_of(round, 2).pk, None, "abstention", "CLARIFY")],
    )
    start_judge(round)
    return round


# Every address


def patterns(resolver=None, namespace=()):
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLResolver):
            yield from patterns(entry, (*namespace, entry.namespace) if entry.namespace else namespace)
        elif isinstance(entry, URLPattern):
            yield ":".join((*namespace, entry.name or "")), entry


def values(round) -> dict:
    """Argument -> what to put there; `view name/argument` where one name means two things."""
    version = round.version
    response = response_of(round, 6)
    known = {
        "slug": version.evalset.slug,
        "number": version.number,
        "round_id": round.pk,
        "round_number": round.number,
        "rubric_number": 1,
        "earlier": 1,
        "later": 1,
        "task": 1,
        "dimension": "grounding",
        "target": response.claims.get().pk,
        "split": 1,
        "claim": response.claims.get().pk,
        "decision": 1,
        "picture": "confusion",
        "run": 1,
        "run_number": 1,
        "report": 1,
        "judge": 1,
        "kind": "svg",
        "pk": response.pk,
        "evalsets:remove_member/pk": 1,
    }
    of_admin = {
        "object_id": 1,
        "app_label": "auth",
        "content_type_id": 1,
        "url": "anything",
        "id": 1,
    }
    return known | of_admin


def arguments_of(pattern: URLPattern) -> set[str]:
    return set(pattern.pattern.converters) | set(pattern.pattern.regex.groupindex)


def every_address(round) -> list[str]:
    known, found, unknown = values(round), [], []
    for name, pattern in patterns():
        names = arguments_of(pattern)
        given = {n: known.get(f"{name}/{n}", known.get(n)) for n in names}
        if missing := [n for n in names if given[n] is None]:
            unknown.append(f"{name} <{', '.join(missing)}>")
        elif pattern.name:
            found.append(reverse(name, kwargs=given))
    assert not unknown, f"addresses whose arguments this test does not know: {unknown}"
    return sorted(set(found))


def content_of(answer) -> str:
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    headers = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
    return f"{answer.status_code}\n{headers}\n{body.decode(errors='replace')}"


LETTERS = re.compile(
    r'X-CSRFToken": "[^"]*"|name="csrfmiddlewaretoken" value="[^"]*"|name="(key|seed)" value="[^"]*"'
    r"|Content-Length: \d+|csrftoken=[^;]*;|expires=[^;]*;|sessionid=[^;]*;|(Date|Expires): .*|nonce-[^']*"
)


def look(client, person, addresses, **headers) -> dict[str, str]:
    """What a person gets at each address, without what changes at every look."""
    seen = {}
    client.raise_request_exception = False  # test_no_address_breaks looks for those
    for address in addresses:
        client.force_login(person)
        seen[address] = LETTERS.sub("", content_of(client.get(address, **headers)))
    return seen


WAYS = [{}, {"HTTP_HX_REQUEST": "true"}, {"HTTP_ACCEPT": "application/json"}]


def test_every_address_is_walked(blind_round):
    addresses = every_address(blind_round)
    version = blind_round.version
    for known in (
        reverse("home"),
        reverse("annotate:grade", args=[blind_round.pk]),
        reverse("annotate:disagreements", args=[version.evalset.slug, version.number]),
        reverse("admin:index"),
    ):
        assert known in addresses
    assert len(addresses) > 40


def test_the_planted_words_are_really_there(blind_round, client, grader_a, lead):
    """Otherwise their absence would prove nothing: the lead finds what the grader must not."""
    plant_what_others_say(blind_round, grader_a, lead)
    pages = "".join(look(client, lead, every_address(blind_round)).values())
    found = {word for word in SAID + TOLD if word in pages}
    assert {"PEERFLAG", "PEERSPLIT", "JUDGENAME", "SYSTEMNAME", "ITEMID", "IMPORTEDGRADER"} <= found


@pytest.mark.parametrize("role", ["lead", "grader_b", "both", "stranger"])
def test_no_address_breaks(blind_round, client, grader_a, lead, request, role):
    plant_what_others_say(blind_round, grader_a, lead)
    pages = look(client, request.getfixturevalue(role), every_address(blind_round))
    assert [address for address, page in pages.items() if page.startswith("5")] == []


@pytest.mark.parametrize("way", WAYS)
def test_grader_finds_nothing_of_others_on_any_address(blind_round, client, grader_a, grader_b, lead, way):
    addresses = every_address(blind_round)
    before = look(client, grader_b, addresses, **way)
    plant_what_others_say(blind_round, grader_a, lead)
    after = look(client, grader_b, addresses, **way)
    for address in addresses:
        for word in SAID + TOLD:
            assert word not in after[address], f"{word} at {address}"
        assert after[address] == before[address], f"{address} changes when somebody else labels"


@pytest.mark.parametrize("way", WAYS)
def test_lead_who_still_grades_finds_nothing_that_others_said(blind_round, client, grader_a, both, lead, way):
    addresses = every_address(blind_round)
    before = look(client, both, addresses, **way)
    plant_what_others_say(blind_round, grader_a, lead)
    after = look(client, both, addresses, **way)
    for address in addresses:
        for word in SAID:
            assert word not in after[address], f"{word} at {address}"
        assert after[address] == before[address], f"{address} changes when somebody else labels"


def test_posting_tells_a_grader_nothing(blind_round, client, grader_a, grader_b, lead):
    plant_what_others_say(blind_round, grader_a, lead)
    labels = Annotation.objects.filter(grader=grader_of(blind_round, grader_a)).count()
    for address in every_address(blind_round):
        client.force_login(grader_b)
        answer = content_of(client.post(address))
        for word in SAID + TOLD:
            assert word not in answer, f"{word} at {address}"
    assert Annotation.objects.filter(grader=grader_of(blind_round, grader_a)).count() == labels


def test_grading_to_the_end_tells_a_grader_nothing(blind_round, client, grader_a, grader_b, lead):
    plant_what_others_say(blind_round, grader_a, lead)
    grader = grader_of(blind_round, grader_b)
    client.force_login(grader_b)
    place = reverse("annotate:label", args=[blind_round.pk])
    answers = []
    while assignment := next_assignment(blind_round, grader):
        target = screen_of(assignment).current
        fields = {
            "assignment": assignment.pk,
            "claim": target.claim.pk if target.claim else "",
            "label": target.dimension.labels[0]["name"],
        }
        answers.append(client.post(place, fields, HTTP_HX_REQUEST="true"))
        answers.append(client.get(reverse("annotate:grade", args=[blind_round.pk])))
    take_back = reverse("annotate:take_back", args=[blind_round.pk])
    answers += [client.post(take_back, HTTP_HX_REQUEST="true") for _ in range(3)]
    assert len(answers) == 2 * 7 + 3
    for answer, word in ((answer, word) for answer in answers for word in chain(SAID, TOLD)):
        assert word not in content_of(answer), word


def test_what_the_door_hands_out_has_no_way_to_the_rest(blind_round, grader_b):
    """The screen's response is a copy of a few texts; no model row hangs on it."""
    shown = screen_of(next_assignment(blind_round, grader_of(blind_round, grader_b))).response
    words = repr(shown)
    assert "ferry" in words
    for word in SAID + TOLD:
        assert word not in words
    assert not SystemRun.objects.filter(system__name__in=words.split()).exists()
