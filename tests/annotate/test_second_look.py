"""A second look: drawn from what was graded, labelled again without the first label in view."""

import pytest
from bs4 import BeautifulSoup
from django.urls import reverse

from annotate import services
from annotate.access import labels_of
from annotate.models import Annotation, Assignment, GoldLabel, Round, SecondLookTarget
from annotate.queries import next_assignment, screen_of
from tests.annotate.worlds import grader_of, make_round, make_version, response_of, say

# The label of each claim, then of the response; the third response is empty
FIRST = {
    1: ["supported", "contradicted", "ANSWERED"],
    2: ["REFUSED"],
    4: ["unsupported", "ANSWERED"],
    5: ["CLARIFY"],
    6: ["supported", "ANSWERED"],
}
SAID = {label for labels in FIRST.values() for label in labels}


def grade_all(round, person):
    for position, labels in FIRST.items():
        say(round, person, position, *labels)


@pytest.fixture
def graded(round, grader_a, grader_b):
    grade_all(round, grader_a)
    grade_all(round, grader_b)
    return round


@pytest.fixture
def new_grader(member):
    return member("newcomer", "grader")


@pytest.fixture
def lead_page(client, lead):
    """Gets or posts a page of the round as the lead."""

    def go(round, name="draw_second_look", data=None):
        client.force_login(lead)
        place = reverse(
            f"annotate:{name}", args=[round.version.evalset.slug, round.version.number, round.number]
        )
        return client.get(place) if data is None else client.post(place, data)

    return go


def draw(round, *people, n=4, seed=3, **more):
    graders = [
        services.ensure_grader(evalset=round.version.evalset, name=person.username, person=person)
        for person in people
    ]
    return services.draw_second_look(round=round, graders=graders, n=n, seed=seed, **more)


def drawn_of(second):
    return set(SecondLookTarget.objects.filter(round=second).values_list("dimension", "response", "claim"))


def answer_all(second, person, choose):
    """Labels everything that the screen asks; `choose` names the label of a target."""
    grader, asked = grader_of(second, person), []
    while assignment := next_assignment(second, grader):
        current = screen_of(assignment).current
        claim = current.claim.pk if current.claim else None
        asked.append((current.dimension.name, assignment.response_id, claim))
        services.annotate(
            round=second,
            grader=grader,
            response=assignment.response,
            claim=assignment.response.claims.get(pk=claim) if claim else None,
            dimension=current.dimension.name,
            label=choose(current),
        )
    return asked


# Drawing


def test_draw_is_random_seeded_and_from_targets_with_a_label(graded, new_grader):
    second = draw(graded, new_grader, n=4)
    labelled = set(Annotation.objects.filter(round=graded).values_list("dimension", "response", "claim"))
    assert len(drawn_of(second)) == 4
    assert drawn_of(second) < labelled
    services.close_round(round=second)
    assert drawn_of(draw(graded, new_grader, n=4, seed=3)) == drawn_of(second)
    services.close_round(round=Round.objects.latest("pk"))
    assert drawn_of(draw(graded, new_grader, n=4, seed=4)) != drawn_of(second)


def test_draw_of_one_dimension(graded, new_grader):
    second = draw(graded, new_grader, n=4, dimension="grounding")
    assert {dimension for dimension, *_ in drawn_of(second)} == {"grounding"}


def test_draw_from_the_labels_of_one_grader(version, grader_a, grader_b, new_grader):
    round = make_round(version, grader_a, grader_b, overlap=0)
    for person in (grader_a, grader_b):
        own = Assignment.objects.filter(round=round, grader__person=person).values_list("response__position")
        for (position,) in own:
            say(round, person, position, *FIRST[position])
    mine = set(
        Annotation.objects.filter(grader__person=grader_a).values_list("dimension", "response", "claim")
    )
    second = draw(round, new_grader, n=len(mine), of=grader_of(round, grader_a))
    assert drawn_of(second) == mine


def test_draw_knows_its_round_and_rubric_and_gives_everybody_the_same(graded, grader_a, new_grader):
    second = draw(graded, grader_a, new_grader, n=9)
    assert (second.kind, second.second_look_of) == ("second_look", graded)
    assert second.rubric_version == graded.rubric_version
    held = {}
    for grader, response in second.assignments.values_list("grader__name", "response"):
        held.setdefault(grader, set()).add(response)
    assert held["grader_a"] == held["newcomer"] == {response for _, response, _ in drawn_of(second)}


def test_draw_twice_with_one_submit_is_one_round(graded, new_grader):
    assert draw(graded, new_grader, once=True) == draw(graded, new_grader, once=True)


@pytest.mark.parametrize("n", [0, 10, -1])
def test_draw_refuses_more_than_there_is(graded, new_grader, n):
    with pytest.raises(services.Refused, match="there are 9 targets"):
        draw(graded, new_grader, n=n)


def test_draw_refuses_who_cannot_look_again(graded, lead, grader_a, new_grader, stranger, member):
    with pytest.raises(services.Refused, match="at least one"):
        draw(graded)
    with pytest.raises(services.Refused, match="not a grader"):
        draw(graded, stranger)
    with pytest.raises(services.Refused, match="twice"):
        draw(graded, new_grader, new_grader)
    both = member("both", "lead", "grader")
    labels_of(both, graded.version.evalset.slug, graded.version.number)
    with pytest.raises(services.Refused, match="opened pages"):
        draw(graded, both)
    second = draw(graded, new_grader)
    with pytest.raises(services.Refused, match="second look already"):
        draw(second, grader_a)
    with pytest.raises(services.Conflict, match="another second look"):
        draw(graded, new_grader, seed=9)


def test_draw_refuses_somebody_who_still_grades_the_round(round, grader_a, grader_b):
    grade_all(round, grader_a)
    say(round, grader_b, 2, "REFUSED")
    draw(round, grader_a)
    with pytest.raises(services.Conflict, match="grader_b has not finished round 1"):
        draw(round, grader_b, seed=9)


# Imported labels


@pytest.fixture
def imported(version):
    def of(position):
        return version.responses.get(position=position)

    claim = of(6).claims.get()
    labels = [
        ("somebody", of(6).pk, claim.pk, "grounding", "supported"),
        ("somebody", of(2).pk, None, "abstention", "REFUSED"),
        ("somebody", of(3).pk, None, "abstention", "REFUSED"),  # of an empty response: nobody can be asked
    ]
    return services.record_imported_labels(version=version, runs=list(version.runs.all()), labels=labels)


def test_imported_labels_can_be_looked_at_again(imported, new_grader):
    second = draw(imported, new_grader, n=2)
    assert second.rubric_version == services.latest_rubric(evalset=second.version.evalset)
    assert {response for _, response, _ in drawn_of(second)} == {
        response_of(second, 2).pk,
        response_of(second, 6).pk,
    }
    assert len(answer_all(second, new_grader, lambda target: target.dimension.label_names[0])) == 2
    with pytest.raises(services.Refused, match="there are 2 targets"):
        draw(imported, new_grader, n=3, seed=8)


# Grading it


def test_only_what_was_drawn_is_asked(graded, new_grader):
    second = draw(graded, new_grader, n=5)
    asked = answer_all(second, new_grader, lambda target: target.dimension.label_names[0])
    assert len(asked) == 5
    assert set(asked) == drawn_of(second)
    assert not Assignment.objects.filter(round=second, state="pending").exists()


def test_what_was_not_drawn_cannot_be_labelled(graded, new_grader):
    second = draw(graded, new_grader, n=5)
    drawn = drawn_of(second)
    response, claim = next(
        (assignment.response, claim)
        for assignment in second.assignments.select_related("response")
        for claim in [*assignment.response.claims.all(), None]
        if ("grounding" if claim else "abstention", assignment.response_id, claim and claim.pk) not in drawn
    )
    with pytest.raises(services.Conflict, match="not asked"):
        services.annotate(
            round=second,
            grader=grader_of(second, new_grader),
            response=response,
            claim=claim,
            dimension="grounding" if claim else "abstention",
            label="supported" if claim else "REFUSED",
        )


def test_second_look_leaves_gold_alone(graded, new_grader):
    before = list(GoldLabel.objects.order_by("pk").values_list("pk", "round", "label"))
    second = draw(graded, new_grader, n=9)
    answer_all(second, new_grader, lambda target: target.dimension.label_names[-1])
    assert list(GoldLabel.objects.order_by("pk").values_list("pk", "round", "label")) == before


def test_nothing_is_decided_or_split_in_a_second_look(graded, lead, new_grader):
    second = draw(graded, new_grader, n=9)
    answer_all(second, new_grader, lambda target: target.dimension.label_names[0])
    response = response_of(second, 6)
    with pytest.raises(services.Conflict, match="measures the first grading"):
        services.adjudicate(
            round=second,
            response=response,
            claim=response.claims.get(),
            dimension="grounding",
            label="supported",
            reason="other",
            person=lead,
        )
    with pytest.raises(services.Refused, match="labels only"):
        services.propose_split(
            round=second, grader=grader_of(second, new_grader), claim=response.claims.get(), parts=["a", "b"]
        )


# Without the first label in view


def pages_of(client, person, second):
    """Every page that the grader can reach from the second look while it is not finished."""
    client.force_login(person)
    place = reverse("annotate:grade", args=[second.pk])
    own = Assignment.objects.filter(round=second, grader__person=person)
    looks = [place, reverse("home"), *(f"{place}?at={assignment.pk}" for assignment in own)]
    return [client.get(look) for look in looks]


def shown_labels(answer):
    """Labels that the page shows as given: pressed buttons and what stands in the lists of the graded."""
    page = BeautifulSoup(answer.content, "html.parser")
    pressed = page.select("[aria-pressed=true][name=label]")
    listed = [tag.get_text(strip=True) for tag in page.select(".said")]
    return [tag["value"] for tag in pressed] + [label for label in listed if label]


def test_same_grader_finds_no_trace_of_the_first_label(graded, client, grader_a):
    second = draw(graded, grader_a, n=9)
    for answer in pages_of(client, grader_a, second):
        assert answer.status_code == 200
        assert shown_labels(answer) == []


def test_no_grading_page_tells_what_the_grader_said_at_first(round, client, grader_a, grader_b):
    for person in (grader_a, grader_b):
        for position, labels in FIRST.items():
            say(round, person, position, *labels, note="FIRSTNOTE")
    second = draw(round, grader_a, n=9)
    own = Assignment.objects.filter(grader__person=grader_a)
    addresses = [reverse("home"), *(f"{grade_page(a.round_id)}?at={a.pk}" for a in own)]
    addresses += [grade_page(round.pk), grade_page(second.pk)]

    def telling():
        client.force_login(grader_a)
        return [address for address in addresses if "FIRSTNOTE" in client.get(address).content.decode()]

    assert telling() == []
    services.close_round(round=second)
    assert telling() != []  # otherwise its absence would prove nothing


def grade_page(round_pk):
    return reverse("annotate:grade", args=[round_pk])


def test_first_round_is_closed_to_who_looks_again_until_done(graded, client, grader_a, grader_b):
    second = draw(graded, grader_a, n=4)
    first = reverse("annotate:grade", args=[graded.pk])
    own = Assignment.objects.filter(round=graded, grader__person=grader_a).first()
    client.force_login(grader_a)
    for answer in (
        client.get(first),
        client.post(reverse("annotate:take_back", args=[graded.pk])),
        client.post(reverse("annotate:label", args=[graded.pk]), {"assignment": own.pk, "label": "REFUSED"}),
    ):
        assert answer.status_code == 403
        assert "without your first labels in view" in answer.content.decode()
        assert reverse("annotate:grade", args=[second.pk]) in answer.content.decode()
    client.force_login(grader_b)
    assert client.get(first).status_code == 200
    answer_all(second, grader_a, lambda target: target.dimension.label_names[0])
    client.force_login(grader_a)
    assert client.get(first).status_code == 200


def test_first_round_opens_when_the_second_look_is_closed(graded, client, grader_a):
    second = draw(graded, grader_a, n=4)
    services.pause_round(round=second)
    client.force_login(grader_a)
    first = reverse("annotate:grade", args=[graded.pk])
    assert client.get(first).status_code == 403
    services.close_round(round=second)
    assert client.get(first).status_code == 200


def test_home_says_what_is_a_second_look_and_what_is_closed_for_it(graded, client, grader_a):
    second = draw(graded, grader_a, n=4)
    client.force_login(grader_a)
    page = BeautifulSoup(client.get(reverse("home")).content, "html.parser")
    cards = {card.select_one("h3").get("id"): card for card in page.select("article.card")}
    assert "second look" in cards[f"work-{second.pk}"].get_text().lower()
    assert cards[f"work-{second.pk}"].select_one(f'a[href="{reverse("annotate:grade", args=[second.pk])}"]')
    assert cards[f"work-{graded.pk}"].select("a") == []
    assert "second look" in cards[f"work-{graded.pk}"].get_text()


# The lead's page


@pytest.fixture
def wanted(new_grader):
    return {"n": "4", "dimension": "", "of": "", "people": [new_grader.pk], "seed": "12"}


def test_lead_draws_from_the_round_page(graded, lead_page, wanted, lead):
    assert (
        reverse(
            "annotate:draw_second_look",
            args=[graded.version.evalset.slug, graded.version.number, graded.number],
        )
        in lead_page(graded, "round").content.decode()
    )
    for _ in range(2):  # a double click
        assert lead_page(graded, data=wanted).status_code == 302
    second = Round.objects.get(kind="second_look")
    assert (second.seed, second.created_by, len(drawn_of(second))) == (12, lead, 4)


def test_form_starts_with_48_or_what_there_is(graded, lead_page):
    page = BeautifulSoup(lead_page(graded).content, "html.parser")
    assert page.select_one("[name=n]")["value"] == "9"
    options = [option.get_text(strip=True) for option in page.select("[name=dimension] option")]
    assert options == ["all dimensions", "abstention (5)", "grounding (4)"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": "10"},
        {"n": "x"},
        {"n": "0"},
        {"people": []},
        {"people": [999]},
        {"dimension": "tone"},
        {"of": "999"},
    ],
)
def test_draw_refuses_bad_input(graded, lead_page, wanted, wrong):
    answer = lead_page(graded, data=wanted | wrong)
    assert answer.status_code == 400
    assert BeautifulSoup(answer.content, "html.parser").select(".errorlist")
    assert not Round.objects.filter(kind="second_look").exists()


def test_drawing_is_for_the_lead_only(graded, client, grader_a, stranger):
    place = reverse(
        "annotate:draw_second_look",
        args=[graded.version.evalset.slug, graded.version.number, graded.number],
    )
    for person in (grader_a, stranger):
        client.force_login(person)
        assert client.get(place).status_code == client.post(place).status_code == 404


def test_nothing_to_draw_is_said(round, lead_page):
    assert "Nothing here carries a label" in lead_page(round).content.decode()


def test_a_second_look_is_not_among_the_disagreements(graded, client, lead, new_grader):
    draw(graded, new_grader, n=4)
    client.force_login(lead)
    answer = client.get(
        reverse("annotate:disagreements", args=[graded.version.evalset.slug, graded.version.number])
    )
    page = BeautifulSoup(answer.content, "html.parser")
    assert [option["value"] for option in page.select("[name=round] option")] == ["1"]


def test_handing_over_a_second_look(graded, grader_a, new_grader, member):
    second = draw(graded, grader_a, n=4)
    both = member("both", "lead", "grader")
    labels_of(both, graded.version.evalset.slug, graded.version.number)
    assignment = second.assignments.first()
    seen = services.ensure_grader(evalset=graded.version.evalset, name="both", person=both)
    with pytest.raises(services.Refused, match="has seen the labels"):
        services.reassign(assignment=assignment, to=seen)
    taker = services.ensure_grader(evalset=graded.version.evalset, name="newcomer", person=new_grader)
    assert services.reassign_unfinished(round=second, grader=grader_of(second, grader_a), to=taker) == (
        second.assignments.count(),
        0,
    )


def test_second_look_of_an_empty_version_keeps_its_own_numbers(evalset, grader_a, new_grader):
    version = make_version(evalset, responses=[("A ferry.", [])])
    round = make_round(version, grader_a)
    say(round, grader_a, 1, "ANSWERED")
    assert draw(round, new_grader, n=1).number == 2
