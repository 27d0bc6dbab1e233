"""The blind contract: what a grader must never see, on every address that the project has.

The addresses are read from the URL configuration. A new one whose arguments are not known fails the test:
teach it in `addresses.values`, so that it is walked too. What a grader gets must be the same, byte by byte
and query by query, whatever the others have done.
"""

import json
import re
from dataclasses import replace

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

import annotate.views.grading
from annotate import services
from annotate.models import Annotation, Assignment, Opening, Round
from annotate.queries import following_of, next_assignment, screen_of
from calibration import exchange
from evalsets.models import EvalSet, Item, Membership, Response, SystemRun
from tests.annotate.blind.addresses import every_address
from tests.annotate.blind.looking import (
    FRAGMENT,
    PAGE,
    as_person,
    ask,
    both_states,
    differences,
    grade_to_the_end,
    look_everywhere,
    look_with_token,
    words_in,
)
from tests.annotate.blind.world import (
    NOW,
    SAID,
    TOLD,
    World,
    at,
    finish,
    make_world,
    others_do_everything,
    undone,
    warm_up,
)
from tests.annotate.worlds import make_round

PEOPLE = {"a": ["grader"], "b": ["grader"], "both": ["lead", "grader"], "lead": ["lead"]}


def people_and_world() -> World:
    evalset = EvalSet.objects.create(slug="roles", name="Roles")
    people = {name: get_user_model().objects.create_user(f"person_{name}") for name in PEOPLE}
    for name, roles in PEOPLE.items():
        for role in roles:
            Membership.objects.create(person=people[name], evalset=evalset, role=role)
    return make_world(evalset, **people)


@pytest.fixture(scope="module")
def kept_world(kept):
    return kept(people_and_world)


@pytest.fixture
def world(db, kept_world):
    """Read anew for each test, so that none finds what another has left in the objects."""
    people = {name: get_user_model().objects.get(pk=getattr(kept_world, name).pk) for name in PEOPLE}
    return World(Round.objects.get(pk=kept_world.round.pk), **people)


@pytest.fixture
def evalset(world):
    return world.version.evalset


# The crawl itself


def test_every_address_is_walked(world):
    addresses = every_address(world)
    version = world.version
    for known in (
        reverse("home"),
        reverse("annotate:grade", args=[world.round.pk]),
        reverse("annotate:disagreements", args=[version.evalset.slug, version.number]),
        reverse("admin:index"),
    ):
        assert known in addresses
    assert len(addresses) > 80


@pytest.fixture(scope="module")
def what_the_lead_gets(kept, kept_world):
    """Of everything that the others have done: each page, what an empty form does there, and the export."""

    def look():
        with undone():
            others_do_everything(world)
            version = world.version
            export = reverse("calibration:export_version", args=[version.evalset.slug, version.number])
            with as_person(world.lead) as client:
                pages = {"export": ask(client, "GET", f"{export}?labels=1")}
            return pages | look_everywhere(world, world.lead, [("GET", PAGE), ("POST", PAGE)])

    world = replace(kept_world)
    return kept(look)


@pytest.mark.once
def test_the_planted_words_are_really_there(what_the_lead_gets):
    """Otherwise their absence would prove nothing: the lead finds every one of them."""
    text = "".join(answer.text for place, answer in what_the_lead_gets.items() if "POST" not in place)
    assert [word for word in SAID + TOLD if word not in text] == []


@pytest.mark.django_db
def test_no_address_breaks(what_the_lead_gets, world, stranger):
    with undone():
        others_do_everything(world)
        pages = look_everywhere(world, stranger, [("GET", FRAGMENT)])
    assert broken(what_the_lead_gets) == []
    assert broken(pages) == []


def broken(pages):
    return [place for place, answer in pages.items() if answer.status >= 500]


# Every address, every method, whatever the others have done


def test_no_address_tells_a_grader_what_the_others_did(world):
    before, after = both_states(world, lambda: look_everywhere(world, world.b))
    assert broken(after) == []
    assert words_in(after, SAID + TOLD) == []
    assert differences(before, after) == []


@pytest.mark.once
def test_no_token_tells_a_grader_what_the_others_did(world):
    before, after = both_states(world, lambda: look_with_token(world, world.b))
    assert len(after) > 150
    assert {answer.status for answer in after.values()} >= {200, 204, 400, 404}
    assert broken(after) == []
    assert words_in(after, SAID + TOLD) == []
    assert differences(before, after) == []


@pytest.mark.once
def test_no_address_tells_a_lead_who_still_grades(world):
    ways = [("GET", PAGE), ("GET", FRAGMENT), ("HEAD", PAGE), ("POST", PAGE)]
    before, after = both_states(world, lambda: look_everywhere(world, world.both, ways))
    assert broken(after) == []
    assert words_in(after, SAID) == []
    assert differences(before, after) == []


@pytest.mark.once
def test_the_order_does_not_follow_what_the_others_have_done_so_far(world):
    """Once they have done everything, an order by their labels would be the old one again."""
    round, grader = world.round, world.grader(world.b)

    def look():
        with as_person(world.b) as client:
            page = ask(client, "GET", reverse("annotate:grade", args=[round.pk]))
            queue = ask(client, "GET", f"/api/v1/my/rounds/{round.pk}/assignments/")
        head = next_assignment(round, grader)
        return page.text, queue.text, head.pk, following_of(head)

    before = look()
    warm_up(world, world.a)
    for own in world.assignments(world.b).filter(state="pending").order_by("-order"):
        with undone():
            finish(world, world.a, own.response.position, choose=1)
            assert look() == before, own.response.position


@pytest.mark.parametrize("role", ["b", pytest.param("both", marks=pytest.mark.once)])
def test_grading_to_the_end_tells_nothing(world, role):
    person = getattr(world, role)
    before, after = both_states(world, lambda: grade_to_the_end(world, person))
    assert len(after) > 60
    assert {answer.status for answer in after.values()} == {200, 302}
    assert words_in(after, SAID + TOLD) == []
    assert differences(before, after) == []


@pytest.mark.once
def test_refusals_tell_nothing(world):
    def look():
        return refusals(world, world.b)

    before, after = both_states(world, look)
    assert {answer.status for answer in after.values()} >= {400, 403, 404, 405, 409}
    assert words_in(after, SAID + TOLD) == []
    assert differences(before, after) == []


def refusals(world, person):
    """Everything that is refused: badly sent, not theirs, decided, paused, closed, without a token."""
    round, grader = world.round, world.grader(person)
    own = next_assignment(round, grader)
    target = screen_of(own).current
    good = {
        "assignment": own.pk,
        "claim": target.claim.pk,
        "dimension": target.dimension.name,
        "label": target.dimension.label_names[0],
    }
    done = world.assignments(person).get(response__position=1)  # nobody decides there in either state
    decided = {
        "assignment": done.pk,
        "claim": done.response.claims.get(position=1).pk,
        "dimension": "grounding",
        "label": "unverifiable",
    }
    theirs = world.assignments(world.a).get(response=own.response)
    seen = {}

    def place(name):
        return reverse(f"annotate:{name}", args=[round.pk])

    with as_person(person) as client:

        def send(what, name, fields, **headers):
            for way, more in (("page", PAGE), ("fragment", FRAGMENT)):
                seen[f"{what} ({way})"] = ask(client, "POST", place(name), fields, **more, **headers)

        send("no such label", "label", good | {"label": "splendid"})
        send("no label", "label", good | {"label": ""})
        send("evidence that is not there", "label", good | {"evidence": "77"})
        send("a dimension that is not asked", "label", good | {"dimension": "hallucination_type"})
        send("a split into nothing", "split", good | {"parts": ""})
        send("somebody else's assignment", "label", good | {"assignment": theirs.pk})
        send("somebody else's flag", "flag", good | {"assignment": theirs.pk, "remove": "on"})
        seen["looking at it"] = ask(client, "GET", place("grade"), {"at": theirs.pk})
        seen["a label by GET"] = ask(client, "GET", place("label"))
        with undone():
            Opening.objects.get_or_create(round=round, response=done.response, defaults={"by": world.lead})
            send("opened by the lead", "label", decided)
            seen["opened, looked at"] = ask(client, "GET", place("grade"), {"at": done.pk})
        for state in ("paused", "closed"):
            with undone():
                Round.objects.filter(pk=round.pk).update(state=state)
                send(state, "label", good)
                send(f"{state}, taken back", "take_back", {})
                send(f"{state}, skipped", "skip", good)
                seen[f"{state}, looked at"] = ask(client, "GET", place("grade"))
                seen[f"{state}, at home"] = ask(client, "GET", "/")
    strict = Client(enforce_csrf_checks=True)
    with at(NOW):
        strict.force_login(person)
        seen["without a token"] = ask(strict, "POST", place("label"), good)
    return seen


# Not yours is not there


def test_what_is_not_yours_answers_like_what_is_not_there(world):
    with undone():
        others_do_everything(world)
        theirs = world.assignments(world.a).exclude(response__position=2)
        place = reverse("annotate:grade", args=[world.round.pk])
        with as_person(world.b) as client:
            nothing = ask(client, "GET", place, {"at": 10**9})
            assert nothing.status == 404
            for own in theirs:
                assert ask(client, "GET", place, {"at": own.pk}) == nothing
            for name in ("label", "flag", "skip", "split"):
                address = reverse(f"annotate:{name}", args=[world.round.pk])
                absent = ask(client, "POST", address, {"assignment": 10**9, "label": "supported"})
                assert absent.status == 404
                for own in theirs:
                    assert (
                        ask(client, "POST", address, {"assignment": own.pk, "label": "supported"}) == absent
                    )


@pytest.mark.once
def test_a_leads_address_answers_a_grader_like_one_that_is_not_there(world):
    slug = f"/{world.version.evalset.slug}/"
    with undone():
        others_do_everything(world)
        addresses = [address for address in every_address(world) if slug in address]
        assert len(addresses) > 40
        with as_person(world.b) as client:
            for address in addresses:
                for method in ("GET", "POST"):
                    there = ask(client, method, address)
                    absent = ask(client, method, address.replace(slug, "/nowhere/"))
                    assert (there.status, there.body, there.headers) == (
                        absent.status,
                        absent.body,
                        absent.headers,
                    ), address


def test_a_grader_of_one_round_finds_another_round_not_there(world, member):
    """A round in which they hold nothing says so, and says nothing else."""
    newcomer = member("newcomer", "grader")
    with undone():
        others_do_everything(world)
        with as_person(newcomer) as client:
            page = ask(client, "GET", reverse("annotate:grade", args=[world.round.pk]))
            assert "not assigned" in page.body.lower()
            assert words_in({"page": page}, SAID + TOLD) == []
            rest = [
                ask(client, "POST", reverse(f"annotate:{name}", args=[world.round.pk]), {"assignment": 1})
                for name in ("label", "flag", "skip", "split", "take_back")
            ]
    assert {answer.status for answer in rest} == {404}


# A first look, a second look


def chosen(page):
    return re.findall(r'<button[^>]*name="label"[^>]*aria-pressed="true"', page)


@pytest.mark.once
def test_the_first_look_at_a_response_has_nothing_chosen(world):
    with undone():
        others_do_everything(world)
        with as_person(world.b) as client:
            for own in world.assignments(world.b).filter(state=Assignment.State.PENDING):
                page = ask(
                    client, "GET", reverse("annotate:grade", args=[world.round.pk]), {"at": own.pk}
                ).body
                assert chosen(page) == []
                assert not re.search(r"<input[^>]* checked", page)


@pytest.mark.once
def test_a_second_look_shows_none_of_the_first_labels(world):
    with undone():
        others_do_everything(world)
        for own in world.assignments(world.b):
            finish(world, world.b, own.response.position, choose=1, note="PEERNOTE of my own")
        second = services.draw_second_look(
            round=world.round,
            graders=[world.grader(world.b)],
            n=4,
            of=world.grader(world.b),
            seed=7,
            person=world.lead,
        )
        with as_person(world.b) as client:
            pages = {
                str(own): ask(client, "GET", reverse("annotate:grade", args=[second.pk]), {"at": own.pk})
                for own in Assignment.objects.filter(round=second)
            }
            assert not any(chosen(answer.body) for answer in pages.values())
            pages |= look_everywhere(world, world.b, [("GET", PAGE)])
    assert words_in(pages, [word for word in SAID if word != "2031"] + TOLD) == []


# The door


def test_what_the_door_hands_out_has_no_way_to_the_rest(world):
    """The screen's response is a copy of a few texts; no model row hangs on it."""
    shown = screen_of(next_assignment(world.round, world.grader(world.b))).response
    words = repr(shown)
    assert "Timetable" in words
    assert [word for word in SAID + TOLD if word in words] == []
    assert not SystemRun.objects.filter(system__name__in=words.split()).exists()


def test_a_reference_answer_is_shown_only_where_the_rubric_compares_with_it(world):
    place = reverse("annotate:grade", args=[world.round.pk])
    with as_person(world.b) as client:
        assert "REFERENCEANSWER" not in ask(client, "GET", place).body
        with undone():
            type(world.round.rubric_version).objects.filter(pk=world.round.rubric_version_id).update(
                reference_based=True
            )
            page = {"page": ask(client, "GET", place)}
    assert words_in(page, ["REFERENCEANSWER"])
    assert words_in(page, [word for word in SAID + TOLD if word != "REFERENCEANSWER"]) == []


# The rule is told


def test_the_rule_is_told_to_whom_it_binds(world):
    with as_person(world.b) as client:
        assert RULE in ask(client, "GET", "/").body
        assert RULE in ask(client, "GET", reverse("annotate:grade", args=[world.round.pk])).body
    with as_person(world.lead) as client:
        rounds = reverse("annotate:rounds", args=[world.version.evalset.slug, world.version.number])
        assert RULE in ask(client, "GET", rounds).body


RULE = "no page shows that grader anything that another grader or a judge has said"


# Real imports


@pytest.mark.once
@pytest.mark.parametrize("name", ["faithbench_summary", "pubmedqa", "xstest"])
def test_nothing_of_a_real_file_but_its_texts_reaches_a_grader(name, shared, tmp_path, world):
    lines = (shared / "data" / "dev" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()[:12]
    records = [json.loads(line) for line in lines]
    version = imported(name, lines, tmp_path)
    Membership.objects.create(person=world.b, evalset=version.evalset, role="grader")
    round = make_round(version, world.b)
    hidden = hidden_words(records, version)
    assert len(hidden) > 20
    with as_person(world.b) as client:
        pages = {
            f"{way} {own.pk}": ask(
                client, "GET", reverse("annotate:grade", args=[round.pk]), {"at": own.pk}, **way
            )
            for own in Assignment.objects.filter(round=round)
            for way in (PAGE, FRAGMENT)
        }
    assert len(pages) == 2 * len(records)
    assert words_in(pages, hidden) == []


def imported(name, lines, tmp_path):
    path = tmp_path / f"{name}.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with path.open("rb") as stream:
        done = exchange.import_evalset(
            stream=stream, filename=path.name, name=name, with_labels=True, freeze=True
        )
    return Item.objects.filter(version__evalset__slug=done["evalset"]).first().version


def hidden_words(records, version) -> list[str]:
    """Every text of the file that a grader has no business with and that no shown text contains."""
    shown = "\n".join(
        [
            *Item.objects.filter(version=version).exclude(question=None).values_list("question", flat=True),
            *Response.objects.filter(version=version).values_list("text", flat=True),
            *(
                p
                for r in records
                for c in r.get("context") or ()
                for p in (c.get("text") or "", c.get("title") or "")
            ),
            *(c.get("document") or "" for r in records for c in r.get("context") or ()),
            *(claim["text"] for r in records for claim in r.get("claims") or ()),
            version.evalset.name,
        ]
    )
    kept = ("question", "response", "context", "text")
    found = set()

    def collect(value, key=""):
        if isinstance(value, dict):
            for name, part in value.items():
                if name not in kept or key in ("original", "meta"):
                    collect(part, name if key not in ("original", "meta") else key)
                if key in ("human_labels", "judge_labels", "response_labels", "response_judge_labels"):
                    found.add(name)
        elif isinstance(value, list):
            for part in value:
                collect(part, key)
        elif isinstance(value, str):
            found.add(value)

    for record in records:
        collect(record)
    common = {"supported", "contradicted", "unsupported", "unverifiable", "REFUSED", "ANSWERED", "CLARIFY"}
    return sorted(word for word in found if len(word) > 3 and word not in shown and word not in common)


# The test itself: a leak turns it red


def label_in_the_page(patch):
    def leak(request, *args, **kwargs):
        answer = original(request, *args, **kwargs)
        said = Annotation.objects.filter(grader__name="PEERNAME").order_by("pk").first()
        answer.content += f"<!-- {said.label if said else '-' * 8} -->".encode()
        return answer

    original = annotate.views.grading.render
    patch.setattr("annotate.views.grading.render", leak)


def count_in_a_header(patch):
    def leak(*args, **kwargs):
        answer = original(*args, **kwargs)
        answer["X-Labels"] = str(Annotation.objects.count())
        return answer

    original = annotate.views.grading.render
    patch.setattr("annotate.views.grading.render", leak)


def etag_of_the_latest_label(patch):
    def leak(*args, **kwargs):
        answer = original(*args, **kwargs)
        latest = Annotation.objects.order_by("-updated_at").first()
        answer["ETag"] = f'"{latest.updated_at.timestamp():.0f}"'
        return answer

    original = annotate.views.grading.render
    patch.setattr("annotate.views.grading.render", leak)


def order_by_what_the_peer_has_done(patch):
    def leak(round, grader, **more):
        own = Assignment.objects.filter(round=round, grader=grader, state="pending")
        first = own.filter(response__annotations__grader__name="PEERNAME").order_by("-order").first()
        return first or original(round, grader, **more)

    original = annotate.views.grading.next_assignment
    patch.setattr("annotate.views.grading.next_assignment", leak)


def kappa_in_the_title(patch):
    def leak(*args, **kwargs):
        answer = original(*args, **kwargs)
        kappa = b"0.71" if Annotation.objects.filter(grader__name="PEERNAME").exists() else b"0.00"
        answer.content = answer.content.replace(b"</title>", b" \xce\xba " + kappa + b"</title>")
        return answer

    original = annotate.views.grading.render
    patch.setattr("annotate.views.grading.render", leak)


def one_more_query(patch):
    def leak(*args, **kwargs):
        if Annotation.objects.filter(grader__name="PEERNAME").exists():
            list(Annotation.objects.all())
        return original(*args, **kwargs)

    original = annotate.views.grading.render
    patch.setattr("annotate.views.grading.render", leak)


LEAKS = [
    label_in_the_page,
    count_in_a_header,
    etag_of_the_latest_label,
    order_by_what_the_peer_has_done,
    kappa_in_the_title,
    one_more_query,
]


@pytest.mark.once
def test_a_leak_is_seen(world):
    place = reverse("annotate:grade", args=[world.round.pk])

    def look(leak):
        with undone(), pytest.MonkeyPatch.context() as patch, as_person(world.b) as client:
            leak(patch)
            return {"page": ask(client, "GET", place), "fragment": ask(client, "GET", place, **FRAGMENT)}

    def none(patch):
        pass

    before, after = both_states(world, lambda: {leak: look(leak) for leak in [none, *LEAKS]})
    seen = {leak.__name__: len(differences(before[leak], after[leak])) for leak in before}
    assert seen == {"none": 0, **{leak.__name__: 2 for leak in LEAKS}}
