"""Verdicts that came with a file."""

import pytest

from calibration.imported_verdicts import record_imported_verdicts
from calibration.models import Judge, JudgeRun, Verdict
from calibration.services import Refused, start_run
from evalsets.models import Claim
from tests.calibration.judges.conftest import make_version, states_of

pytestmark = pytest.mark.django_db
State = Verdict.State


# Imported verdicts


def imported_rows(version, label="supported", judge="gpt-x"):
    return [
        (judge, claim.response_id, claim.pk, "grounding", label)
        for claim in Claim.objects.filter(response__version=version)
    ]


def test_imported_verdicts_are_a_complete_run_per_judge(version):
    rows = imported_rows(version) + imported_rows(version, "unsupported", "other")
    runs = record_imported_verdicts(version=version, runs=version.runs.all(), verdicts=rows)
    assert [run.judge.name for run in runs] == ["gpt-x", "other"]
    for run in runs:
        assert (run.origin, run.state, run.requested_fingerprint) == ("imported", "complete", "")
        assert run.dimensions == ["grounding"]
        assert states_of(run) == {"valid": 6}
        assert list(run.system_runs.all()) == list(version.runs.all())
    assert runs[0].judge.kind == Judge.Kind.IMPORTED


def test_a_later_import_extends_the_run_of_the_judge(version):
    rows = imported_rows(version)
    [first] = record_imported_verdicts(version=version, runs=version.runs.all(), verdicts=rows[:2])
    [again] = record_imported_verdicts(version=version, runs=version.runs.all(), verdicts=rows[2:])
    assert again == first
    assert first.verdicts.count() == 6


def test_two_verdicts_for_one_target_are_refused_and_nothing_is_stored(version):
    rows = imported_rows(version)
    with pytest.raises(Refused, match="more than one verdict for 1"):
        record_imported_verdicts(version=version, runs=[], verdicts=[*rows, rows[0]])
    assert not JudgeRun.objects.exists()


def test_an_unknown_imported_label_is_refused(version):
    with pytest.raises(Refused, match="'NOT_PARSABLE' is not a label"):
        record_imported_verdicts(version=version, runs=[], verdicts=imported_rows(version, "NOT_PARSABLE"))


def test_an_imported_judge_never_takes_over_a_judge_of_ours(judge, version):
    [run] = record_imported_verdicts(
        version=version, runs=version.runs.all(), verdicts=imported_rows(version, judge="fake")
    )
    assert run.judge.name == "fake (imported)"
    assert run.judge != judge


def test_runs_are_numbered_within_their_version(judge, version, evalset):
    other = make_version(evalset, number=2)
    assert start_run(judge=judge, version=version).number == 1
    assert start_run(judge=judge, version=other).number == 1
    [imported] = record_imported_verdicts(
        version=version, runs=version.runs.all(), verdicts=imported_rows(version)
    )
    assert imported.number == 2
