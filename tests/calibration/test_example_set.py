"""Loading the built-in example."""

import json

import pytest
from django.contrib.auth import authenticate, get_user_model
from django.core.management import CommandError, call_command
from django.template import Context, Template
from django.test import RequestFactory

from annotate.models import Annotation, Assignment, Flag, GoldLabel, Round
from calibration.example_set import Refused, load_example
from calibration.models import JudgeRun
from evalsets.example import LOG_INS
from evalsets.models import EvalSet, EvalSetVersion, Membership
from tests.evalsets.files import rows_of_every_table

pytestmark = pytest.mark.django_db


def log_ins_on_the_page() -> str:
    text = "{% load example %}{% example_logins as all %}{% for one in all %}{{ one.username }} {% endfor %}"
    return Template(text).render(Context())


def test_the_example_is_loaded_whole_and_once(settings):
    assert log_ins_on_the_page() == ""
    told = load_example()
    version = EvalSetVersion.objects.get()
    assert told["loaded"] and told["evalset"] == version.evalset.slug
    assert version.is_frozen and all(run.is_frozen for run in version.runs.all())
    assert EvalSet.objects.get().is_example
    assert set(Membership.objects.values_list("person__username", "role")) == {
        ("lead", "lead"),
        ("ada", "grader"),
        ("ben", "grader"),
    }
    # The figures of calibration/example/README.md: 52 of 87 responses graded twice, with 183 claims.
    assert Round.objects.get().overlap is None
    assert Assignment.objects.count() == 2 * 87
    assert Assignment.objects.filter(state="done").count() == 2 * 52
    assert Annotation.objects.count() == 2 * (183 + 52)
    assert Flag.objects.count() == 3
    assert set(GoldLabel.objects.values_list("source", flat=True)) == {"agreed"}
    assert set(JudgeRun.objects.values_list("judge__name", "state")) == {
        ("lexical-baseline", "complete"),
        ("phrase-matcher", "complete"),
    }
    assert log_ins_on_the_page() == "lead ada ben "
    for login in LOG_INS:
        assert authenticate(RequestFactory().get("/"), username=login.username, password=login.password)
    before = rows_of_every_table()
    assert load_example() == told | {"loaded": False}
    assert rows_of_every_table() == before
    settings.EXAMPLE = False
    assert log_ins_on_the_page() == ""


def test_where_the_address_is_public_it_is_refused(settings, capsys):
    settings.EXAMPLE = False
    before = rows_of_every_table()
    with pytest.raises(CommandError, match="log-ins are published"):
        call_command("load_example", "--json")
    assert "log-ins are published" in json.loads(capsys.readouterr().out)["problems"][0]["message"]
    assert rows_of_every_table() == before


def test_accounts_of_others_are_never_taken_over():
    get_user_model().objects.create_user("ada", password="somebody-elses")
    before = rows_of_every_table()
    with pytest.raises(Refused, match="ada"):
        load_example()
    assert rows_of_every_table() == before


def test_an_eval_set_of_the_same_name_is_left_alone():
    EvalSet.objects.create(slug="norrwick-assistant", name="Mine")
    with pytest.raises(Refused, match="not the example"):
        load_example()
    assert EvalSet.objects.count() == 1 and not EvalSet.objects.get().is_example
