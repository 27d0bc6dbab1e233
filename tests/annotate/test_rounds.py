"""Opening rounds by every kind of overlap, and what the lead sees of their progress."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from annotate import services
from annotate.access import labels_of
from annotate.material import content_of
from annotate.models import Annotation, Assignment, Dimension, Grader, Round, RubricVersion
from annotate.planning import Overlap
from annotate.progress import progress_of_round, progress_per_grader, remarks_of, responses_in
from evalsets.models import Claim, Item, Response, System, SystemRun
from tests.annotate.pages import soup
from tests.annotate.worlds import freeze_all, grader_of, make_round, make_version, response_of, say

LANGUAGES = ["en", "en", "en", "de", "de", ""]  # of the items, in order; the third response is empty


@pytest.fixture
def version(evalset):
    version = make_version(evalset, freeze=False)
    for item, language in zip(Item.objects.filter(version=version), LANGUAGES, strict=True):
        item.strata = {"language": language} if language else {}
        item.save()
    return freeze_all(version)


@pytest.fixture
def people(member):
    return [member(name, "grader") for name in ("ann", "bob", "cid", "dot")]


def open_(version, people, overlap, **more):
    graders = [
        services.ensure_grader(evalset=version.evalset, name=person.username, person=person)
        for person in people
    ]
    rubric = more.pop("rubric_version", None) or services.rubric_v1(evalset=version.evalset)
    return services.open_round(
        version=version,
        runs=list(version.runs.all()),
        graders=graders,
        rubric_version=rubric,
        overlap=overlap,
        **{"seed": 7, **more},
    )


def times(round):
    """Position of a response -> how many graders it went to."""
    held = Assignment.objects.filter(round=round).values_list("response__item__position", flat=True)
    return dict(Counter(held))


# What overlaps


def test_first_responses_are_those_of_the_first_items(version, people):
    round = open_(version, people[:2], Overlap("first", count=2))
    assert times(round) == {1: 2, 2: 2, 4: 1, 5: 1, 6: 1}
    assert (round.overlap_kind, round.overlap) == ("first", 2)


def test_first_responses_of_two_systems_are_of_the_same_items(evalset, people):
    version = make_version(evalset, responses=[(f"Ferry {n}.", []) for n in range(3)], freeze=False)
    system = System.objects.create(evalset=evalset, name="strict prompt", fingerprint="f")
    run = SystemRun.objects.create(version=version, system=system, number=2)
    for item in version.items.all():
        Response.objects.create(
            version=version,
            run=run,
            item=item,
            position=item.position,
            response_id=f"s{item.pk}",
            text="Yes.",
        )
    round = open_(freeze_all(version), people[:2], Overlap("first", count=2))
    held = Counter(round.assignments.values_list("response__item__position", "response__run__number"))
    assert held == {(1, 1): 2, (1, 2): 2, (2, 1): 1, (2, 2): 1, (3, 1): 1, (3, 2): 1}


def test_share_of_every_stratum(version, people):
    round = open_(version, people[:2], Overlap("share", share=0.1, stratum="language"))
    twice = [position for position, n in times(round).items() if n == 2]
    assert Counter(LANGUAGES[position - 1] for position in twice) == {"en": 1, "de": 1, "": 1}
    assert (round.overlap, round.overlap_share, round.stratum) == (3, 0.1, "language")


def test_some_graders_each(version, people):
    round = open_(version, people, Overlap(graders_each=2))
    assert set(times(round).values()) == {2}
    assert (round.overlap, round.overlap_kind, round.graders_each) == (None, "all", 2)
    loads = Counter(round.assignments.values_list("grader__name", flat=True))
    assert max(loads.values()) - min(loads.values()) <= 1


@pytest.mark.parametrize(
    ("overlap", "message"),
    [
        (Overlap("first", count=6), "between 0 and 5"),
        (Overlap(graders_each=3), "3 graders of each response are more than the 2"),
        (Overlap("share", share=0.5, stratum="colour"), "stratum 'colour'"),
    ],
)
def test_open_round_refuses_an_overlap_that_cannot_be(version, people, overlap, message):
    with pytest.raises(services.Refused, match=message):
        open_(version, people[:2], overlap)
    assert not Round.objects.exists()


def test_warm_up_needs_cases(version, people):
    bare = RubricVersion.objects.create(
        rubric=services.rubric_v1(evalset=version.evalset).rubric, number=9, sha256="x"
    )
    Dimension.objects.create(
        rubric_version=bare, name="abstention", target="response", question="?", labels=[]
    )
    with pytest.raises(services.Refused, match="no warm-up cases"):
        open_(version, people[:2], Overlap(), rubric_version=bare, warm_up=True)
    assert open_(version, people[:2], Overlap(), warm_up=True).warm_up


@pytest.mark.parametrize(
    "wrong",
    [
        {"overlap_kind": "all", "overlap": 3},
        {"overlap_kind": "first"},
        {"overlap_kind": "share", "overlap": 3},
        {"overlap_kind": "share", "overlap": 3, "overlap_share": 1.5},
        {"stratum": "language"},
        {"kind": "second_look"},
    ],
)
def test_database_refuses_a_round_that_contradicts_itself(version, wrong):
    rubric = services.rubric_v1(evalset=version.evalset)
    with pytest.raises(IntegrityError), transaction.atomic():
        Round.objects.create(version=version, number=1, rubric_version=rubric, **wrong)


# What there is to label


def rubric_with(version, *dimensions):
    rubric = services.rubric_v1(evalset=version.evalset).rubric
    made = RubricVersion.objects.create(rubric=rubric, number=8, sha256="x")
    for position, (name, target, when) in enumerate(dimensions, start=1):
        Dimension.objects.create(
            rubric_version=made,
            name=name,
            target=target,
            question="?",
            labels=[{"name": "yes", "key": "1", "definition": "", "examples": []}],
            asked_when=when,
            position=position,
        )
    return made


@pytest.mark.parametrize(
    ("dimensions", "labels", "left_out"),
    [
        # six responses with 2, 0, 0, 1, 0, 1 claims, each citing one of two passages; the third is empty
        ([("grounding", "claim", None), ("abstention", "response", None)], 9, {"empty": 1}),
        ([("grounding", "claim", None)], 4, {"empty": 1, "nothing_asked": 2}),
        ([("citation support", "citation", None)], 4, {"empty": 1, "nothing_asked": 2}),
        ([("context relevance", "passage", None)], 12, {}),
        (
            [
                ("abstention", "response", None),
                ("why", "response", {"dimension": "abstention", "labels": ["yes"]}),
            ],
            5,
            {"empty": 1},
        ),
    ],
)
def test_plan_counts_what_the_rubric_asks(version, people, dimensions, labels, left_out):
    planned = services.plan_round(
        version=version,
        runs=list(version.runs.all()),
        graders=["a"],
        rubric_version=rubric_with(version, *dimensions),
        seed=1,
    )
    assert (planned.labels, planned.left_out) == (labels, left_out)


def test_plan_is_what_is_opened(version, people):
    overlap = Overlap("share", share=0.5, stratum="language", graders_each=2)
    planned = services.plan_round(
        version=version,
        runs=list(version.runs.all()),
        graders=people,
        rubric_version=services.rubric_v1(evalset=version.evalset),
        overlap=overlap,
        seed=7,
    )
    round = open_(version, people, overlap)
    held = Counter(round.assignments.values_list("grader__name", flat=True))
    assert {person.username: share.responses for person, share in planned.per_grader.items()} == held
    assert planned.overlapping == round.overlap == list(times(round).values()).count(2)
    assert planned.per_stratum["language"]["en"].overlapping == 1


# The page


@pytest.fixture
def as_lead(client, lead):
    client.force_login(lead)
    return client


def place(version, name, *more):
    return reverse(f"annotate:{name}", args=[version.evalset.slug, version.number, *more])


def words(tag):
    return tag.get_text(" ", strip=True)


@pytest.fixture
def wanted(version, people):
    return {
        "runs": [version.runs.get().pk],
        "people": [person.pk for person in people[:3]],
        "rubric_version": services.rubric_v1(evalset=version.evalset).pk,
        "overlap": "share",
        "share": "50",
        "stratum": "language",
        "graders_each": "2",
        "pace": "4",
        "seed": "11",
    }


def test_plan_page_says_who_gets_what_and_how_long_it_takes(version, as_lead, wanted):
    plan = soup(as_lead.post(place(version, "open_round"), wanted)).select_one("[role=status]")
    text = words(plan)
    assert "8 assignments" in text
    assert "3 responses go to 2 graders each" in text
    assert "1 response is left out: it is empty" in text
    of_graders, of_strata = plan.select("table")
    rows = [[words(cell) for cell in row.select("th, td")] for row in of_graders.select("tbody tr")]
    assert [row[0] for row in rows] == ["ann", "bob", "cid"]
    assert sum(int(row[1]) for row in rows) == 8
    assert sum(int(row[2]) for row in rows) == 6
    assert all(float(row[4]) == pytest.approx(int(row[3]) / 4, abs=0.051) for row in rows)
    strata = [[words(cell) for cell in row.select("th, td")] for row in of_strata.select("tbody tr")]
    assert strata == [["(none)", "1", "1"], ["de", "2", "1"], ["en", "2", "1"]]


def test_confirmed_plan_is_opened_with_the_rubric_and_warm_up_chosen(version, as_lead, wanted):
    later, _new = services.write_rubric_version(
        rubric=services.rubric_v1(evalset=version.evalset).rubric,
        content=_content_of_first(version) | {"decisions": "Literal text only."},
    )
    page = soup(as_lead.get(place(version, "open_round")))
    assert page.select_one("[name=rubric_version] option[selected]")["value"] == str(later.pk)
    assert page.select_one("[name=warm_up]").has_attr("checked")
    as_lead.post(place(version, "open_round"), wanted | {"confirm": "1", "warm_up": "on"})
    round = Round.objects.get()
    assert (round.rubric_version.number, round.warm_up, round.seed) == (1, True, 11)
    assert (round.overlap_kind, round.overlap_share, round.graders_each) == ("share", 0.5, 2)
    text = words(soup(as_lead.get(place(version, "round", 1))).select_one("main"))
    assert "Several graders label 3 responses, 50 % of every language" in text
    assert "Several means 2, in turns." in text


def _content_of_first(version):
    return content_of(services.rubric_v1(evalset=version.evalset))


@pytest.mark.parametrize(
    "wrong",
    [
        {"share": ""},
        {"share": "0"},
        {"share": "101"},
        {"stratum": "colour"},
        {"graders_each": "1"},
        {"graders_each": "4"},
        {"overlap": "half"},
        {"rubric_version": "999"},
        {"pace": "0"},
    ],
)
def test_open_round_names_the_field_that_is_wrong(version, as_lead, wanted, wrong):
    answer = as_lead.post(place(version, "open_round"), wanted | wrong | {"confirm": "1"})
    assert answer.status_code == 400
    assert soup(answer).select(".errorlist")
    assert not Round.objects.exists()


def test_a_set_without_strata_says_so(evalset, as_lead, people):
    version = make_version(evalset)
    wrong = {
        "runs": [version.runs.get().pk],
        "people": [people[0].pk],
        "rubric_version": services.rubric_v1(evalset=evalset).pk,
        "overlap": "share",
        "share": "50",
        "seed": "1",
    }
    answer = as_lead.post(place(version, "open_round"), wrong)
    assert "No item of this version has a stratum." in answer.content.decode()


# Handing over


def pending(round):
    rows = Assignment.objects.filter(round=round, state="pending").values_list("grader__name", flat=True)
    return Counter(rows)


def test_newcomer_gets_an_even_share_of_what_is_not_begun(version, people):
    ann, bob, cid, _dot = people
    round = open_(version, [ann, bob], Overlap())
    say(round, ann, 1, "supported")  # begun
    newcomer = services.ensure_grader(evalset=version.evalset, name="cid", person=cid)
    moved, left = services.share_with(round=round, to=newcomer)
    assert (moved, left) == (3, 3)
    assert sorted(pending(round).values()) == [3, 3, 4]
    assert Assignment.objects.filter(round=round, grader__name="ann", response__position=1).exists()
    assert Annotation.objects.filter(grader__name="ann").count() == 1
    assert set(times(round).values()) == {2}


def test_who_leaves_is_replaced_by_the_others_evenly(version, people):
    round = open_(version, people, Overlap(graders_each=2))
    before, mine = times(round), pending(round)["ann"]
    moved, left = services.spread(round=round, grader=grader_of(round, people[0]))
    assert moved == mine
    assert left == 0
    assert times(round) == before
    loads = pending(round)
    assert "ann" not in loads
    assert max(loads.values()) - min(loads.values()) <= 1


def test_nothing_moves_where_the_others_grade_everything_already(version, people):
    round = open_(version, people[:2], Overlap())
    assert services.spread(round=round, grader=grader_of(round, people[0])) == (0, 5)


def test_spread_passes_by_who_has_seen_the_labels(version, people, member):
    both = member("both", "lead", "grader")
    round = open_(version, [people[0], people[1], both], Overlap("random", count=0))
    for assignment in Assignment.objects.filter(round=round, grader__person=both).select_related("response"):
        claims = assignment.response.claims.count()
        say(round, both, assignment.response.position, *["supported"] * claims, "ANSWERED")
    labels_of(both, version.evalset.slug, version.number)
    services.spread(round=round, grader=grader_of(round, people[0]))
    assert set(pending(round)) == {"bob"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"to": "cid"}, "3 responses handed over; cid has 3 left."),
        ({"to": "cid", "at_most": "1"}, "1 response handed over; cid has 1 left."),
        ({"grader": "ann"}, "0 responses handed over; ann has 5 left."),
    ],
)
def test_lead_shares_out_and_spreads(version, as_lead, people, fields, said):
    round = open_(version, people[:2], Overlap())
    by_name = {
        "to": {p.username: p.pk for p in people},
        "grader": {g.name: g.pk for g in Grader.objects.all()},
    }
    data = {name: by_name.get(name, {}).get(value, value) for name, value in fields.items()}
    answer = as_lead.post(place(version, "reassign", round.number), data, follow=True)
    assert said in answer.content.decode()


def test_handing_over_needs_a_name(version, as_lead, people):
    round = open_(version, people[:2], Overlap())
    answer = as_lead.post(place(version, "reassign", round.number), {})
    assert answer.status_code == 400
    assert "Name who hands over" in answer.content.decode()


# Progress


def of(round, name):
    return next(row for row in progress_per_grader(round) if row.grader.name == name)


def test_pace_leaves_breaks_out_and_needs_ten_labels(evalset, people):
    version = make_version(evalset, responses=[(f"Ferry {n}.", [f"Ferry {n}."]) for n in range(8)])
    round = make_round(version, *people[:2])
    for position in range(1, 5):
        say(round, people[0], position, "supported", "ANSWERED", milliseconds=9_000)
    assert of(round, "ann").pace is None
    say(round, people[0], 5, "supported", "ANSWERED", milliseconds=9_000)
    say(round, people[0], 6, "supported", milliseconds=3_600_000)  # lunch
    row = of(round, "ann")
    assert row.pace == pytest.approx(400)  # 10 labels in 90 s
    assert row.hours_left == pytest.approx(3 * (11 / 5) / 400)
    assert of(round, "bob").pace is of(round, "bob").hours_left is None


def test_forecast_goes_on_as_in_the_last_week(version, people):
    round = open_(version, people[:2], Overlap())
    assert of(round, "ann").forecast is None
    say(round, people[0], 2, "REFUSED")
    say(round, people[0], 5, "CLARIFY")
    now = timezone.now()
    done = Assignment.objects.filter(round=round, state="done").order_by("pk")
    for assignment, days in zip(done, (4, 2), strict=True):
        Assignment.objects.filter(pk=assignment.pk).update(done_at=now - timedelta(days=days))
    forecast = of(round, "ann").forecast  # 2 in 4 days, 3 to go
    assert abs(forecast - (now + timedelta(days=6))) < timedelta(minutes=1)
    done.update(done_at=now - timedelta(days=8))
    assert of(round, "ann").forecast is None


def test_an_hours_work_is_not_taken_for_a_day(version, people):
    round = open_(version, people[:2], Overlap())
    say(round, people[0], 2, "REFUSED")
    assert of(round, "ann").forecast - timezone.now() > timedelta(days=3.9)


def test_states_count_every_response_once_and_lead_to_them(version, as_lead, people):
    ann, bob = people[:2]
    round = open_(version, [ann, bob], Overlap())
    say(round, ann, 2, "REFUSED")
    say(round, bob, 2, "REFUSED")
    say(round, ann, 5, "CLARIFY")
    services.skip(round=round, grader=grader_of(round, bob), response=response_of(round, 6))
    state = progress_of_round(round)
    assert (state.responses, state.untouched, state.waiting, state.complete, state.skipped) == (5, 3, 1, 1, 1)
    assert (state.to_decide, state.resolved, state.agreed) == (0, 1, 1)
    bobs = grader_of(round, bob)
    found = {
        name: [r.position for r in responses_in(round, state=name, grader=grader)]
        for name, grader in [("untouched", None), ("waiting", bobs), ("complete", None), ("skipped", bobs)]
    }
    assert found == {"untouched": [1, 4, 6], "waiting": [5], "complete": [2], "skipped": [6]}
    assert list(responses_in(round, state="waiting", grader=grader_of(round, ann))) == []
    page = soup(as_lead.get(place(version, "round", round.number)))
    links = [a["href"] for a in page.select(".states a") if "/responses/" in a["href"]]
    counts = [words(soup(as_lead.get(link)).select_one("main .num, main .empty")) for link in links]
    assert counts == ["3 responses", "1 response", "1 response", "1 response"]


def test_ready_to_adjudicate_and_resolved(version, as_lead, lead, people):
    ann, bob = people[:2]
    round = open_(version, [ann, bob], Overlap())
    for person, labels in [(ann, ("supported", "ANSWERED")), (bob, ("contradicted", "REFUSED"))]:
        say(round, person, 6, *labels)
    assert progress_of_round(round).to_decide == 2
    services.adjudicate(
        round=round,
        response=response_of(round, 6),
        claim=None,
        dimension="abstention",
        label="ANSWERED",
        reason="other",
        person=lead,
    )
    state = progress_of_round(round)
    assert (state.to_decide, state.adjudicated, state.resolved) == (1, 1, 1)
    text = words(soup(as_lead.get(place(version, "round", 1))).select_one(".states"))
    assert "1 target ready to adjudicate" in text
    assert "1 target resolved 0 agreed, 1 adjudicated" in text


def test_flags_and_notes_are_listed_the_latest_first_with_what_they_are_about(version, as_lead, people):
    ann = people[0]
    round = open_(version, people[:2], Overlap())
    say(round, ann, 6, "supported", note="FIRST NOTE")
    services.flag(
        round=round,
        grader=grader_of(round, ann),
        response=response_of(round, 2),
        claim=None,
        note="THEN A FLAG",
    )
    say(round, ann, 5, "CLARIFY")
    assert [row[5] for row in remarks_of(round)] == ["THEN A FLAG", "FIRST NOTE"]
    page = soup(as_lead.get(place(version, "round", 1)))
    flag, note = (words(remark) for remark in page.select(".flag"))
    assert "THEN A FLAG Question 2" in flag
    assert "grounding" in note
    assert "FIRST NOTE Tickets cost 12 euros." in note
    assert "ann" not in note
    claim = Claim.objects.get(text="Tickets cost 12 euros.")
    assert page.select_one(f'.flag a[href="{place(version, "adjudicate", 1, "grounding", claim.pk)}"]')
    row = of(round, "ann")
    assert (row.notes, row.flags) == (1, 1)


@pytest.mark.parametrize("query", [{"state": "lost"}, {"grader": "99"}, {"grader": "x"}])
def test_responses_in_an_unknown_state_are_not_found(version, as_lead, people, query):
    open_(version, people[:2], Overlap())
    assert as_lead.get(place(version, "round_responses", 1), query).status_code == 404


def test_responses_of_a_round_are_for_leads_only(version, client, people, stranger, member):
    both = member("both", "lead", "grader")
    open_(version, [people[0], both], Overlap())
    for person, status in [(people[0], 404), (stranger, 404), (both, 403)]:
        client.force_login(person)
        assert client.get(place(version, "round_responses", 1)).status_code == status


def test_round_page_needs_the_same_queries_however_many_graders(version, as_lead, people):
    counts = []
    for graders in (people[:2], people):
        round = open_(version, graders, Overlap(), seed=len(graders))
        say(round, graders[0], 2, "REFUSED", note="x")
        with CaptureQueriesContext(connection) as queries:
            as_lead.get(place(version, "round", round.number))
        counts.append(len(queries))
    assert counts[0] == counts[1]


# What a grader is told


@pytest.mark.parametrize(
    ("done", "state", "title"),
    [(False, "paused", "Paused"), (False, "closed", "Closed"), (True, "open", "Done")],
)
def test_empty_screen_says_which_it_is_and_nothing_of_the_other(version, client, people, done, state, title):
    ann, bob = people[:2]
    round = open_(version, [ann, bob], Overlap("first", count=1))
    if done:
        for own in Assignment.objects.filter(round=round, grader__person=ann).select_related("response"):
            claims = own.response.claims.count()
            say(round, ann, own.response.position, *["supported"] * claims, "ANSWERED")
    Round.objects.filter(pk=round.pk).update(state=state)
    client.force_login(ann)
    page = soup(client.get(reverse("annotate:grade", args=[round.pk])))
    assert words(page.select_one("main .empty h2")) == title
    assert "wait" not in words(page.select_one("main .empty"))
    assert "bob" not in page.get_text()


def test_grader_without_an_assignment_is_told_so(version, client, people):
    round = open_(version, people[:1], Overlap())
    client.force_login(people[1])
    page = soup(client.get(reverse("annotate:grade", args=[round.pk])))
    assert words(page.select_one("main .empty h2")) == "Not assigned"
