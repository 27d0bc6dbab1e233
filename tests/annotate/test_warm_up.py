"""The warm-up: known cases before a round counts, each explained, and what the lead sees of it."""

import html

import pytest
from django.urls import reverse

from annotate import services
from annotate.material import content_of
from annotate.models import Annotation, Round, WarmUpAnswer
from annotate.rubric_queries import warm_up_result
from tests.annotate.worlds import grader_of, make_round, response_of, say


@pytest.fixture
def warm_round(round):
    Round.objects.filter(pk=round.pk).update(warm_up=True)
    round.refresh_from_db()
    return round


def cases_of(round):
    return list(round.rubric_version.warm_up_cases.all())


def other_label(round, case):
    names = round.rubric_version.dimensions.get(name=case.dimension).label_names
    return next(name for name in names if name != case.label)


def finish(round, person, right=True):
    for case in cases_of(round):
        label = case.label if right else other_label(round, case)
        services.answer_warm_up(case=case, grader=grader_of(round, person), label=label)


def page_of(round):
    return reverse("annotate:warm_up", args=[round.pk])


def asked_part(client, url) -> str:
    """The page without the rubric, whose decisions say some things in the same words."""
    return html.unescape(client.get(url).content.decode()).partition('<dialog id="rubric"')[0]


def label_once(client, round, person):
    response = response_of(round, 6)
    own = response.assignments.get(grader=grader_of(round, person))
    sent = {"assignment": own.pk, "claim": response.claims.get().pk, "label": "supported"}
    return client.post(reverse("annotate:label", args=[round.pk]), sent)


# Services


def test_answer_warm_up_keeps_the_first_answer(warm_round, grader_a):
    case, grader = cases_of(warm_round)[0], grader_of(warm_round, grader_a)
    first = services.answer_warm_up(case=case, grader=grader, label="REFUSED", milliseconds=900)
    again = services.answer_warm_up(case=case, grader=grader, label="ANSWERED")
    assert (again.pk, again.label) == (first.pk, "REFUSED")
    assert WarmUpAnswer.objects.count() == 1


def test_answer_warm_up_refuses_a_label_of_another_dimension(warm_round, grader_a):
    case = cases_of(warm_round)[0]
    with pytest.raises(services.Refused, match="not a label of"):
        services.answer_warm_up(case=case, grader=grader_of(warm_round, grader_a), label="supported")


def test_labels_do_not_count_before_the_warm_up_is_done(warm_round, grader_a, grader_b):
    with pytest.raises(services.Conflict, match="warm-up comes first"):
        say(warm_round, grader_a, 6, "supported")
    finish(warm_round, grader_a)
    say(warm_round, grader_a, 6, "supported")
    with pytest.raises(services.Conflict):  # what another grader has done is no help
        say(warm_round, grader_b, 6, "supported")


def test_a_round_without_a_warm_up_begins_at_once(round, grader_a):
    say(round, grader_a, 6, "supported")
    assert not services.is_warming_up(round, grader_of(round, grader_a))


def test_a_rubric_without_cases_has_nothing_to_wait_for(warm_round, grader_a):
    warm_round.rubric_version.warm_up_cases.all().delete()
    say(warm_round, grader_a, 6, "supported")


def test_warm_up_is_done_once_for_a_rubric_version(warm_round, grader_a):
    finish(warm_round, grader_a)
    second = make_round(warm_round.version, grader_a, seed=8)
    Round.objects.filter(pk=second.pk).update(warm_up=True)
    second.refresh_from_db()
    assert not services.is_warming_up(second, grader_of(second, grader_a))


# The grader's pages


def test_grade_leads_to_the_warm_up_until_it_is_done(client, warm_round, grader_a):
    client.force_login(grader_a)
    grade = reverse("annotate:grade", args=[warm_round.pk])
    assert client.get(grade).url == page_of(warm_round)
    finish(warm_round, grader_a)
    assert client.get(grade).status_code == 200


def test_label_is_refused_with_409_until_the_warm_up_is_done(client, warm_round, grader_a):
    client.force_login(grader_a)
    assert label_once(client, warm_round, grader_a).status_code == 409
    assert Annotation.objects.count() == 0
    finish(warm_round, grader_a)
    assert label_once(client, warm_round, grader_a).status_code == 302
    assert Annotation.objects.count() == 1


def test_warm_up_walks_all_cases_and_explains_each(client, warm_round, grader_a):
    client.force_login(grader_a)
    for number, case in enumerate(cases_of(warm_round), start=1):
        page = asked_part(client, page_of(warm_round))
        assert f"Warm-up case {number} of" in page
        assert case.explanation not in page
        label = case.label if number % 2 else other_label(warm_round, case)
        answer = client.post(page_of(warm_round), {"case": case.pk, "label": label})
        assert answer.url == f"{page_of(warm_round)}?case={case.pk}"
        page = asked_part(client, answer.url)
        assert case.explanation in page
        assert ("<strong>Right</strong>" in page) is bool(number % 2)
        assert ("<strong>Other</strong>" in page) is not bool(number % 2)
    done = client.get(page_of(warm_round)).content.decode()
    assert "<strong>6</strong> of 11 cases had the known label." in done


def test_the_label_is_not_in_the_page_before_it_is_answered(client, warm_round, grader_a):
    client.force_login(grader_a)
    case = cases_of(warm_round)[0]
    page = asked_part(client, f"{page_of(warm_round)}?case={case.pk}")
    assert case.explanation not in page
    assert "known label" not in page


def test_answering_twice_shows_the_first_answer(client, warm_round, grader_a):
    client.force_login(grader_a)
    case = cases_of(warm_round)[0]
    for label in ("REFUSED", "ANSWERED"):
        answer = client.post(page_of(warm_round), {"case": case.pk, "label": label})
    assert "you chose" in client.get(answer.url).content.decode()
    assert WarmUpAnswer.objects.get().label == "REFUSED"


@pytest.mark.parametrize("sent", [{}, {"case": "x", "label": "REFUSED"}, {"label": "REFUSED"}])
def test_what_did_not_arrive_whole_is_asked_again(client, warm_round, grader_a, sent):
    client.force_login(grader_a)
    answer = client.post(page_of(warm_round), sent, follow=True)
    assert answer.redirect_chain == [(page_of(warm_round), 302)]
    assert "did not arrive whole" in answer.content.decode()
    assert WarmUpAnswer.objects.count() == 0


def test_a_case_of_another_rubric_is_not_answered(client, warm_round, grader_a):
    content_changed = services.write_rubric_version(
        rubric=warm_round.rubric_version.rubric,
        content={**content_of(warm_round.rubric_version), "decisions": "1. Other."},
    )[0]
    client.force_login(grader_a)
    foreign = content_changed.warm_up_cases.first()
    client.post(page_of(warm_round), {"case": foreign.pk, "label": foreign.label})
    assert WarmUpAnswer.objects.count() == 0


def test_warm_up_of_a_round_without_one_leads_to_grading(client, round, grader_a):
    client.force_login(grader_a)
    assert client.get(page_of(round)).url == reverse("annotate:grade", args=[round.pk])


def test_warm_up_is_for_those_who_are_assigned(client, warm_round, lead, stranger):
    for person in (lead, stranger):
        client.force_login(person)
        assert client.get(page_of(warm_round)).status_code == 404


# The lead's result


def result_page(round):
    version = round.version
    return reverse("annotate:warm_up_results", args=[version.evalset.slug, version.number, round.number])


def test_warm_up_result_counts_right_and_answered(warm_round, grader_a, grader_b):
    finish(warm_round, grader_a)
    case = cases_of(warm_round)[0]
    grader = grader_of(warm_round, grader_b)
    services.answer_warm_up(case=case, grader=grader, label=other_label(warm_round, case))
    found = [(grader.name, right, answered) for grader, right, answered in warm_up_result(warm_round).right]
    assert found == [("grader_a", 11, 11), ("grader_b", 0, 1)]


def test_the_lead_sees_each_answer_and_graders_do_not(client, warm_round, grader_a, grader_b, lead):
    finish(warm_round, grader_a, right=False)
    client.force_login(lead)
    page = client.get(result_page(warm_round)).content.decode()
    assert page.count(">other<") == 11
    assert page.count("not yet") == 11
    for person in (grader_a, grader_b):
        client.force_login(person)
        assert client.get(result_page(warm_round)).status_code == 404


def test_the_result_is_closed_to_a_lead_who_still_grades(client, warm_round, member):
    both = member("both", "lead", "grader")
    make_round(warm_round.version, both, seed=9)
    client.force_login(both)
    assert client.get(result_page(warm_round)).status_code == 403
