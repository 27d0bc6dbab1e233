"""What a second look shows: kappa with oneself and with others, kept apart from everything else."""

import copy
import re

import pytest
from bs4 import BeautifulSoup
from django.contrib.auth import get_user_model
from django.urls import reverse

from annotate import services
from annotate.models import Annotation, Assignment, GoldLabel
from annotate.queries import next_assignment, screen_of
from calibration.measures import agreement_of
from calibration.pairing import chosen_round, table_of
from calibration.second_look import second_look_figures
from evalsets.models import EvalSet, Membership
from tests.annotate.worlds import grader_of, make_round, make_version, say

CLAIMS = 30
LABELS = ["supported", "contradicted", "unsupported", "unverifiable"]


def first_label(number):
    return LABELS[number % 3]


def again_label(number, changed):
    return "unverifiable" if number in changed else first_label(number)


def graded_by_two():
    """grader_a and grader_b say the same of everything."""
    evalset = EvalSet.objects.create(slug="roles", name="Roles")
    version = make_version(evalset, responses=[(f"Ferry {n}.", [f"Ferry {n}."]) for n in range(CLAIMS)])
    people = [get_user_model().objects.create_user(name) for name in ("grader_a", "grader_b")]
    for person in people:
        Membership.objects.create(evalset=evalset, person=person, role=Membership.Role.GRADER)
    round = make_round(version, *people)
    for number in range(CLAIMS):
        for person in people:
            say(round, person, number + 1, first_label(number), "ANSWERED")
    return dict(zip(MADE, (evalset, version, *people, round), strict=True))


MADE = ("evalset", "version", "grader_a", "grader_b", "graded")


@pytest.fixture(scope="module")
def made(kept):
    return kept(graded_by_two)


def fixture_of(name):
    @pytest.fixture(name=name)
    def one(made, db):
        return copy.deepcopy(made[name])

    return one


evalset, version, grader_a, grader_b, graded = map(fixture_of, MADE)


def look_again(round, *people, n=CLAIMS, changed=(), dimension="grounding"):
    """A finished second look, whose graders give another label to the claims that are named."""
    graders = [
        services.ensure_grader(evalset=round.version.evalset, name=person.username, person=person)
        for person in people
    ]
    second = services.draw_second_look(round=round, graders=graders, n=n, dimension=dimension, seed=5)
    for grader in graders:
        while assignment := next_assignment(second, grader):
            current = screen_of(assignment).current
            number = assignment.response.position - 1
            services.annotate(
                round=second,
                grader=grader,
                response=assignment.response,
                claim=assignment.response.claims.get() if current.claim else None,
                dimension=current.dimension.name,
                label=again_label(number, changed) if current.claim else "ANSWERED",
            )
    return second


def page_of(client, lead, second):
    client.force_login(lead)
    version = second.version
    place = [version.evalset.slug, version.number, second.number]
    return client.get(reverse("calibration:second_look", args=place))


def text_of(answer):
    text = BeautifulSoup(answer.content, "html.parser").get_text(" ")
    return re.sub(r"\s+", " ", text)


def test_kappa_with_oneself_is_that_of_the_two_lists_of_labels(graded, grader_a):
    from sklearn.metrics import cohen_kappa_score

    changed = {1, 2, 3}
    [part] = second_look_figures(look_again(graded, grader_a, changed=changed))
    [pair] = part["with_oneself"]
    expected = cohen_kappa_score(
        [first_label(n) for n in range(CLAIMS)], [again_label(n, changed) for n in range(CLAIMS)]
    )
    assert pair["cohen_kappa"]["value"] == pytest.approx(expected)  # scikit-learn
    assert pair["cohen_kappa"]["low"] < expected < pair["cohen_kappa"]["high"]
    assert (pair["n"], pair["clusters"], pair["observed_agreement"]["value"]) == (30, 30, 0.9)
    assert pair["names"] == ("grader_a", "grader_a")


def test_with_oneself_stands_apart_from_with_others(graded, grader_a, member):
    second = look_again(graded, grader_a, member("newcomer", "grader"), changed={4})
    [part] = second_look_figures(second)
    assert [pair["names"] for pair in part["with_oneself"]] == [("grader_a", "grader_a")]
    assert sorted(pair["names"] for pair in part["with_others"]) == [
        ("grader_a", "newcomer"),
        ("grader_b", "grader_a"),
        ("grader_b", "newcomer"),
    ]


def test_only_what_was_drawn_counts(graded, grader_a):
    second = look_again(graded, grader_a, n=12)
    [part] = second_look_figures(second)
    assert (part["n_drawn"], part["n_again"], part["with_oneself"][0]["n"]) == (12, 12, 12)
    drawn = set(second.drawn.values_list("claim", flat=True))
    assert set(Annotation.objects.filter(round=second).values_list("claim", flat=True)) == drawn


def test_what_came_out_otherwise_is_listed(graded, client, lead, grader_a):
    second = look_again(graded, grader_a, changed={1, 7})
    [part] = second_look_figures(second)
    claims = dict(graded.annotations.exclude(claim=None).values_list("claim", "claim__text"))
    assert {claims[entry["key"]] for entry in part["changed"]} == {"Ferry 1.", "Ferry 7."}
    page = BeautifulSoup(page_of(client, lead, second).content, "html.parser")
    rows = [row.get_text(" ", strip=True) for row in page.select("table.cases tbody tr")]
    assert len(rows) == 2
    assert "Ferry 1." in rows[0]
    assert "contradicted grader_a" in rows[0]
    assert "unverifiable grader_a" in rows[0]
    claim = graded.version.responses.get(position=2).claims.get()
    assert page.select_one(f'a[href$="/disagreements/{graded.number}/grounding/{claim.pk}/"]')


def test_all_dimensions_have_a_part_each(graded, client, lead, grader_a):
    second = look_again(graded, grader_a, n=60, dimension="")
    assert [part["dimension"] for part in second_look_figures(second)] == ["grounding", "abstention"]
    text = text_of(page_of(client, lead, second))
    assert "30 of 30 drawn targets labelled again" in text
    assert "undefined: both used one and the same label" in text  # all ANSWERED


def test_page_of_an_unfinished_second_look_says_so(graded, client, lead, grader_a):
    grader = grader_of(graded, grader_a)
    second = services.draw_second_look(round=graded, graders=[grader], n=5, dimension="grounding", seed=5)
    text = text_of(page_of(client, lead, second))
    assert "5 assignments are not finished yet" in text
    assert "0 of 5 drawn targets labelled again" in text
    assert "Nothing has been labelled again yet" in text


def test_page_warns_of_a_lead_who_looked_again(graded, client, lead, member):
    second = look_again(graded, member("both", "lead", "grader"), n=5)
    assert "both is an eval lead too" in text_of(page_of(client, lead, second))


def test_page_is_for_leads_and_closed_to_one_who_still_looks(
    graded, client, lead, grader_a, stranger, member
):
    both = member("both", "lead", "grader")
    grader = services.ensure_grader(evalset=graded.version.evalset, name="both", person=both)
    second = services.draw_second_look(round=graded, graders=[grader], n=5, seed=5)
    assert page_of(client, grader_a, second).status_code == 404
    assert page_of(client, stranger, second).status_code == 404
    assert page_of(client, both, second).status_code == 403
    assert page_of(client, lead, second).status_code == 200


def test_page_of_a_first_grading_is_not_found(graded, client, lead):
    assert page_of(client, lead, graded).status_code == 404


def test_agreement_and_gold_of_the_first_grading_stay_as_they_were(graded, grader_a):
    def figures():
        return agreement_of(table_of(version=graded.version, round=graded, dimension="grounding"))

    before, gold = figures(), GoldLabel.objects.count()
    look_again(graded, grader_a, changed=set(range(CLAIMS)))
    assert figures() == before
    assert GoldLabel.objects.count() == gold
    assert chosen_round(version=graded.version) == graded


def test_second_look_at_imported_labels(version, client, lead, member):
    labels = [
        ("somebody", response.pk, response.claims.get().pk, "grounding", first_label(response.position - 1))
        for response in version.responses.all()
    ]
    imported = services.record_imported_labels(version=version, runs=list(version.runs.all()), labels=labels)
    second = look_again(imported, member("newcomer", "grader"), n=20, changed={0})
    [part] = second_look_figures(second)
    [pair] = part["with_others"]
    assert (pair["names"], pair["n"]) == (("somebody", "newcomer"), 20)
    text = text_of(page_of(client, lead, second))
    assert "rules that are not known here" in text
    assert not Assignment.objects.filter(round=second, state="pending").exists()
