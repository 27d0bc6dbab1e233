"""The planner: sizes that are published, and a page that only a lead may open."""

import csv
import io
import json
import shlex
from dataclasses import replace

import pytest
from bs4 import BeautifulSoup
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse

from calibration.plans import USUAL_SHARES, Question, plan_of
from tests.calibration.labelled import labelled_set

pytestmark = pytest.mark.once


def asked(**changes):
    usual = {
        "base": 0.10,
        "difference": 0.02,
        "sensitivity": 1.0,
        "specificity": 1.0,
        "design_effect": 1.0,
        "human_kappa": 0.8,
        "judge_kappa": 0.8,
        "bar": 0.6,
        "margins": USUAL_SHARES,
        "minutes": 2.0,
        "hourly": 30.0,
    }
    return Question(**usual | changes)


@pytest.mark.parametrize(
    ("sensitivity", "specificity", "needed"), [(1, 1, 3211), (0.95, 0.95, 5512), (0.8, 0.8, 20653)]
)
def test_units_to_see_ten_percent_fall_to_eight(sensitivity, specificity, needed):
    """The two-proportion sizes at power .8, widened by the judge's errors (Fleiss, Levin and Paik, ch. 4)."""
    assert plan_of(asked(sensitivity=sensitivity, specificity=specificity))["needed"] == needed


def test_smallest_difference_at_ten_percent():
    curve = {row["n"]: row for row in plan_of(asked(sensitivity=0.9, specificity=0.95))["curve"]}
    assert curve[300]["by_people"] == pytest.approx(0.0583, abs=5e-5)
    assert curve[300]["mdd"] == pytest.approx(0.0805, abs=5e-5)
    assert curve[10000]["mdd"] == pytest.approx(0.0156, abs=5e-5)


def test_what_grading_takes():
    plan = plan_of(asked())
    assert plan["twice"] == 87  # Flack et al. (1988), kappa .8 against .6 with these shares
    assert plan["cost_twice"] == {"hours": pytest.approx(5.8), "money": pytest.approx(174)}
    assert plan_of(asked(hourly=None))["cost"]["money"] is None
    assert plan_of(asked(human_kappa=0.55, judge_kappa=0.5))["twice"] is None


def url(name):
    return reverse(f"calibration:{name}", args=["roles", 1])


@pytest.fixture
def version(evalset):
    return labelled_set(evalset=evalset).version


@pytest.mark.django_db
def test_the_page_plans_and_gives_the_numbers_away(client, lead, version):
    client.force_login(lead)
    query = {"base": 10, "difference": 2, "design_effect": 1}
    soup = BeautifulSoup(client.get(url("plan"), query).content, "html.parser")
    assert "3211" in soup.get_text()
    assert soup.find("svg")
    assert not soup.find_all(style=True)
    rows = list(csv.DictReader(io.StringIO(client.get(url("plan_csv"), query).content.decode())))
    assert float(next(row for row in rows if row["n"] == "300")["by_people"]) == pytest.approx(
        0.0583, abs=5e-5
    )


@pytest.mark.django_db
def test_the_gate_is_simulated_from_the_sets_own_labels(client, lead, evalset):
    labelled = labelled_set(evalset=evalset)
    client.force_login(lead)
    usual = text_of(client.get(url("plan")))
    assert "60.0\u202f%, 12.0\u202f%, 19.0\u202f%, 9.0\u202f%, those of a worked set" in usual
    for number, label in enumerate(["supported"] * 7 + ["unsupported"] * 3):
        labelled.claim(labelled.response(f"r{number}"), label, label)
    whole = labelled.claim(labelled.response("split"), "contradicted", "contradicted")
    for _part in range(2):  # of another round, which decided about them
        labelled.claim(whole.response, parent=whole)
    own = client.get(url("plan"))
    assert own.context["question"].margins == (0.7, 0, 0.3, 0)
    assert "70.0\u202f%, 0.0\u202f%, 30.0\u202f%, 0.0\u202f%, those of 10 gold labels" in text_of(own)
    assert (
        own.context["plan"]["gate"] != plan_of(replace(own.context["question"], margins=USUAL_SHARES))["gate"]
    )


def text_of(answer):
    return " ".join(BeautifulSoup(answer.content, "html.parser").get_text(" ").split(" "))


@pytest.mark.django_db
@pytest.mark.parametrize(
    "wrong", [{"base": 5, "difference": 7}, {"base": "x"}, {"judge": "nobody"}, {"human_kappa": 0.2}]
)
def test_what_makes_no_sense_is_refused(client, lead, version, wrong):
    client.force_login(lead)
    assert client.get(url("plan"), wrong).status_code == 422
    assert client.get(url("plan_csv"), wrong).status_code == 422


@pytest.mark.django_db
def test_the_command_that_the_page_names_says_the_same(client, lead, version):
    client.force_login(lead)
    page = client.get(url("plan"), {"base": 10, "difference": 2, "design_effect": 1, "hourly": 30})
    command = page.context["command"]
    assert command in page.content.decode()
    told = json.loads(said(*shlex.split(command)))
    assert told["needed"] == page.context["plan"]["needed"] == 3211
    assert told["curve"] == page.context["plan"]["curve"]
    assert told["gate"] == json.loads(json.dumps(page.context["plan"]["gate"]))


@pytest.mark.django_db
def test_the_command_tells_people_in_sentences(version):
    text = said("plan", "roles@1", "--base", "10", "--difference", "2", "--design-effect", "1")
    assert "3211 units per system show a drop of 2.0% from 10.0%" in text
    assert "300 units: smallest drop 5.8%" in text
    kappas = ["--human-kappa", "0.55", "--judge-kappa", "0.5"]
    assert "not above the bar" in said("plan", "roles@1", *kappas)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (["--base", "5", "--difference", "7"], "--difference 7: A rate cannot drop"),
        (["--base", "x"], "--base x: "),
        (["--judge", "nobody"], "--judge nobody: "),
    ],
)
def test_the_command_names_what_makes_no_sense(version, wrong, named):
    with pytest.raises(CommandError, match=named):
        said("plan", "roles@1", *wrong)


def said(*words):
    out = io.StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_for_other_roles_it_does_not_exist(client, grader_a, stranger, version):
    for person in (grader_a, stranger):
        client.force_login(person)
        assert client.get(url("plan")).status_code == 404
        assert client.get(url("plan_csv")).status_code == 404
