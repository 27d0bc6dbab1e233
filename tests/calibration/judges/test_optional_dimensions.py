"""Every dimension of the rubric may be judged, whatever its target, and also on a condition."""

from collections import Counter

import pytest

from annotate.models import Dimension, Rubric, RubricVersion
from calibration import services
from calibration.services import Refused, run_inline, start_run
from calibration.targets import conditional_targets_of
from tests.calibration.judges.conftest import make_version

pytestmark = pytest.mark.django_db


def labels(*names):
    return [{"name": name, "definition": f"definition of {name}", "examples": []} for name in names]


@pytest.fixture
def version(evalset):
    """Two responses with two passages each; the first claim cites the second passage, the other nothing."""
    return make_version(evalset, responses=2, claims=2, passages=2, first_cites=["p2", "gone"])


@pytest.fixture
def rubric_version(evalset):
    made = RubricVersion.objects.create(
        rubric=Rubric.objects.create(evalset=evalset, name="full"), number=1, sha256="a" * 64
    )
    asked = [
        ("grounding", "claim", labels("supported", "contradicted", "unsupported", "unverifiable"), None),
        ("conflict", "claim", labels("evident", "subtle"), ("grounding", ["contradicted", "supported"])),
        ("severity", "claim", labels("grave", "slight"), ("conflict", ["subtle"])),
        ("support", "citation", labels("full", "partial", "none"), None),
        ("abstention", "response", labels("REFUSED", "ANSWERED", "CLARIFY"), None),
        ("informative", "response", labels("yes", "no"), None),
        ("relevance", "passage", labels("relevant", "irrelevant"), None),
    ]
    for position, (name, target, menu, when) in enumerate(asked, start=1):
        Dimension.objects.create(
            rubric_version=made,
            name=name,
            target=target,
            question=f"question of {name}?",
            labels=menu,
            asked_when={"dimension": when[0], "labels": when[1]} if when else None,
            position=position,
        )
    return made


def counts(run):
    return Counter(run.verdicts.values_list("dimension", flat=True))


def test_all_dimensions_of_the_rubric_are_asked(judge, version, rubric_version, server):
    run = start_run(judge=judge, version=version, rubric_version=rubric_version)
    assert run.dimensions == [d.name for d in rubric_version.dimensions.all()]
    assert counts(run) == {"grounding": 4, "abstention": 2, "informative": 2, "relevance": 4, "support": 2}
    run = run_inline(run=run)
    # The server gives the first label of every menu: supported leads to conflict, evident not to severity.
    assert counts(run)["conflict"] == 4
    assert counts(run)["severity"] == 0
    assert run.state == "complete"
    assert set(run.verdicts.values_list("dimension", "label")) == {
        ("grounding", "supported"),
        ("conflict", "evident"),
        ("support", "full"),
        ("abstention", "REFUSED"),
        ("informative", "yes"),
        ("relevance", "relevant"),
    }


def test_a_condition_that_is_not_met_asks_nothing(judge, version, rubric_version, server):
    server.default = "picky"  # the invented claims are unsupported, which leads nowhere
    run = run_inline(
        run=start_run(
            judge=judge,
            version=version,
            rubric_version=rubric_version,
            dimensions=["grounding", "conflict"],
        )
    )
    led = run.verdicts.filter(dimension="conflict").values_list("claim", flat=True)
    met = run.verdicts.filter(dimension="grounding", label="supported").values_list("claim", flat=True)
    assert sorted(led) == sorted(met) and len(met) == 2


def test_each_repeat_follows_its_own_verdict(judge, version, rubric_version, server):
    run = run_inline(
        run=start_run(
            judge=judge,
            version=version,
            rubric_version=rubric_version,
            dimensions=["grounding", "conflict"],
            repeats=2,
        )
    )
    indexes = Counter(run.verdicts.filter(dimension="conflict").values_list("run_index", flat=True))
    assert indexes == {1: 4, 2: 4}


def test_a_dimension_without_the_one_it_is_asked_after_is_refused(judge, version, rubric_version):
    with pytest.raises(Refused, match="conflict is asked after grounding"):
        start_run(judge=judge, version=version, rubric_version=rubric_version, dimensions=["conflict"])


def test_at_most_so_many_may_follow(version, rubric_version):
    targets = conditional_targets_of(
        system_runs=version.runs.all(), dimensions=["conflict", "severity"], rubric_version=rubric_version
    )
    assert Counter(target.dimension for target in targets) == {"conflict": 4, "severity": 4}


def test_the_prompt_of_an_optional_dimension_offers_its_labels(judge, version, rubric_version, server):
    run_inline(
        run=start_run(judge=judge, version=version, rubric_version=rubric_version, dimensions=["relevance"])
    )
    for request in server.requests:
        menu = request["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
        assert menu == ["relevant", "irrelevant"]
        assert 'kind="judged passage"' in request["messages"][1]["content"]


def test_a_judge_may_see_only_the_cited_passages(evalset, version, rubric_version, server):
    judge = services.add_judge(
        evalset=evalset, name="strict", model="m", base_url=server.url, parameters={"only_cited": True}
    )
    run = start_run(
        judge=judge, version=version, rubric_version=rubric_version, dimensions=["grounding", "abstention"]
    )
    assert run.requested["passages"] == "cited"
    assert run.requested["parameters"] == {}
    run_inline(run=run)
    texts = [request["messages"][1]["content"] for request in server.requests]
    assert sum('kind="passage 1"' in text for text in texts) == 4  # two citing claims, two whole responses
    assert sum("(The claim cites no passage.)" in text for text in texts) == 2


def test_baselines_keep_to_what_they_know(version, rubric_version):
    lexical = services.judge_named(evalset=version.evalset, name="lexical-baseline")
    run = start_run(judge=lexical, version=version, rubric_version=rubric_version)
    assert counts(run) == {"grounding": 4}
    with pytest.raises(Refused, match="cannot judge relevance"):
        start_run(judge=lexical, version=version, rubric_version=rubric_version, dimensions=["relevance"])
