"""Starting runs, imported verdicts, the life of a verdict row."""

import pytest

from calibration import services
from calibration.models import Judge, JudgeRun

pytestmark = pytest.mark.django_db


def test_built_in_judge_is_made_once(evalset):
    first = services.judge_named(evalset=evalset, name="lexical-baseline")
    assert services.judge_named(evalset=evalset, name="lexical-baseline") == first
    assert first.kind == Judge.Kind.LEXICAL


def test_unknown_judge_is_refused_with_the_names_there_are(evalset):
    with pytest.raises(services.Refused, match=r"no judge named 'nobody'.*lexical-baseline, phrase-matcher"):
        services.judge_named(evalset=evalset, name="nobody")


def test_run_inline_of_the_lexical_baseline(version):
    judge = services.judge_named(evalset=version.evalset, name="lexical-baseline")
    run = services.run_inline(run=services.start_run(judge=judge, version=version))
    assert run.state == JudgeRun.State.COMPLETE
    assert run.finished_at is not None
    # The first claim repeats the passage, the second shares no word with it.
    labels = run.verdicts.order_by("pk").values_list("label", flat=True)
    assert list(labels) == ["supported", "unsupported"] * 3
    assert set(run.verdicts.values_list("resolved_model", flat=True)) == {"lexical-baseline 1"}
