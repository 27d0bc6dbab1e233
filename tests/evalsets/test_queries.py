"""Composition and its warnings."""

import pytest
from django.db import connection

from evalsets.models import Claim
from evalsets.queries import composition, evalsets_of, next_steps, runs_of
from evalsets.services import add_member, freeze_run, freeze_version, import_evalset
from tests.evalsets.files import jsonl, line

pytestmark = pytest.mark.django_db

REASONS = (
    "out_of_scope",
    "in_domain_absent",
    "false_premise",
    "time_shifted",
    "permission_shifted",
    "underspecified",
)


def version_of(*lines):
    return import_evalset(stream=jsonl(*lines), filename="f.jsonl", name="set").version


def answerable(n, **fields):
    return [line(answerable=True, **fields) for _ in range(n)]


def unanswerable(*reasons):
    return [line(answerable=False, unanswerable_reason=reason) for reason in reasons]


def test_a_balanced_set_has_no_warning():
    found = composition(version_of(*answerable(34), *unanswerable(*REASONS)))
    assert found.warnings == []
    assert {share.name: share.n for share in found.reasons} == {r.replace("_", " "): 1 for r in REASONS}
    assert sum(share.n for share in found.answerable) == found.items == 40


@pytest.mark.parametrize(
    ("n_answerable", "warned"),
    [(54, False), (24, False), (55, True), (23, True), (0, True)],  # beside 6 that are not: 10 % and 20 %
)
def test_a_share_outside_10_to_20_percent_is_warned_of(n_answerable, warned):
    found = composition(version_of(*answerable(n_answerable), *unanswerable(*REASONS)))
    assert (
        any("unanswerable" in warning and "between 10 and 20" in warning for warning in found.warnings)
        == warned
    )


def test_missing_reasons_are_named():
    found = composition(version_of(*answerable(9), *unanswerable("false_premise")))
    (warning,) = [warning for warning in found.warnings if "has the reason" in warning]
    assert "false premise" not in warning
    assert "out of scope, in domain absent, time shifted, permission shifted, underspecified" in warning


def test_items_that_say_nothing_are_counted():
    found = composition(version_of(*unanswerable(None, None), *(line(answerable=None) for _ in range(3))))
    assert "2 unanswerable items have no reason." in found.warnings
    assert any(warning.startswith("3 items are not known to be answerable") for warning in found.warnings)
    assert (found.reasons[-1].name, found.reasons[-1].n) == ("(no reason given)", 2)
    assert found.without_strata == 5


def test_strata_out_of_balance_are_warned_of():
    lines = [*answerable(7, stratum="a"), *answerable(2, stratum="b"), *answerable(1)]
    found = composition(version_of(*lines))
    assert [(share.name, share.n) for share in found.strata["stratum"]] == [
        ("a", 7),
        ("b", 2),
        ("(none given)", 1),
    ]
    assert any("out of balance: a has 7 items, b has 2" in warning for warning in found.warnings)
    even = composition(version_of(*answerable(6, stratum="a"), *answerable(2, stratum="b")))
    assert not any("balance" in warning for warning in even.warnings)


def test_counts_leave_out_the_parts_of_splits():
    version = version_of(line(id="r"))
    claim = version.responses.get().claims.get()
    claim.response.claims.create(parent=claim, position=1, claim_id="c1.1", text="half")
    assert composition(version).counts == {"items": 1, "responses": 1, "passages": 1, "claims": 1}
    assert [(run.n_responses, run.n_claims, run.n_empty) for run in runs_of(version)] == [(1, 1, 0)]


def test_the_next_steps_follow_what_is_done(person):
    version = version_of(line())
    assert [step.done for step in next_steps(version, runs_of(version))] == [False, True, False, False]
    freeze_run(run=version.runs.get())
    version = freeze_version(version=version)
    for name in ("ada", "ben"):
        add_member(evalset=version.evalset, person=person(name), role="grader")
    assert all(step.done for step in next_steps(version, runs_of(version)))


def test_a_person_sees_their_eval_sets_with_their_roles(person):
    someone = person("ada")
    evalset = version_of(line()).evalset
    import_evalset(stream=jsonl(line()), filename="f.jsonl", name="other")
    for role in ("lead", "grader", "grader"):
        add_member(evalset=evalset, person=someone, role=role)
    assert [(found.name, found.roles) for found in evalsets_of(someone)] == [("set", ["grader", "lead"])]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by what it has counted")
@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({"response__run": 1, "parent__isnull": True}, "evalsets_claim_response_id_"),
        ({"response__version": 1, "parent__isnull": True}, "evalsets_claim_response_id_"),
        ({"parent": 1}, "claim_parts"),
    ],
)
def test_claims_of_a_run_and_parts_of_a_claim_are_found_by_an_index(wanted, index):
    plan = Claim.objects.filter(**wanted).order_by().values("pk").explain()
    assert f"INDEX {index}" in plan
