"""Several judges as one: majority, mean, and the two ways of having no verdict."""

import io
import json

import pytest
from django.core.management import call_command
from django.urls import reverse

from calibration.baselines import start_baselines
from calibration.judges.panel import panel_says
from calibration.models import Judge, JudgeRun
from calibration.pairing import table_of
from calibration.reports import build_report, is_same_instrument, standing
from calibration.services import Refused, add_panel, run_inline, start_run
from calibration.thresholds import policy_in_force
from tests.calibration.labelled import judged, labelled_set
from tests.calibration.test_report import as_now

LABELS = ("supported", "contradicted", "unsupported", "unverifiable")
S, C, U = LABELS[:3]


@pytest.mark.parametrize(
    ("votes", "rule", "label", "failure"),
    [
        ({"a": [S], "b": [S], "c": [U]}, "majority", S, ""),
        ({"a": [S], "b": [U]}, "majority", "", "no_majority"),
        ({"a": [S], "b": [S], "c": [U], "d": [C]}, "majority", "", "no_majority"),  # half is no majority
        ({"a": [S], "b": [S], "c": []}, "majority", S, ""),
        ({"a": [S], "b": [], "c": []}, "majority", "", "no_quorum"),
        ({"a": [S], "b": []}, "majority", "", "no_quorum"),
        ({"a": [], "b": []}, "mean", "", "no_quorum"),
        # Means by hand: a says S in 2 of 3 runs, b in 1 of 3: S .5, U .5.
        ({"a": [S, S, U], "b": [U, U, S]}, "mean", "", "no_majority"),
        # c: S 1 of 1. S (2/3 + 1/3 + 1)/3 = .667.
        ({"a": [S, S, U], "b": [U, U, S], "c": [S]}, "mean", S, ""),
        # The majority looks at first runs only: U, U, S.
        ({"a": [U, S, S], "b": [U, U, S], "c": [S]}, "majority", U, ""),
        # The mean looks at all: S (2/3 + 1/3 + 1)/3.
        ({"a": [U, S, S], "b": [U, U, S], "c": [S]}, "mean", S, ""),
    ],
)
def test_what_a_panel_says(votes, rule, label, failure):
    said = panel_says(votes, rule=rule, labels=LABELS)
    assert (said.label, said.failure) == (label, failure)


def test_a_panel_names_who_was_silent_and_how_the_votes_fell():
    said = panel_says({"anna": [S], "bert": [S], "carl": []}, rule="majority", labels=LABELS)
    assert "no label by carl" in said.detail
    assert (
        "supported 0.50, contradicted 0.50"
        in panel_says({"a": [S], "b": [C]}, rule="majority", labels=LABELS).detail
    )
    with pytest.raises(ValueError, match="rule must be one of"):
        panel_says({"a": [S]}, rule="median", labels=LABELS)


# As a judge of its own


@pytest.fixture
def three(db, evalset):
    """Three judges over twelve claims with gold: one is always right, the others are wrong here and there."""
    labelled = labelled_set(evalset=evalset)
    claims = []
    for number in range(12):
        response = labelled.response(f"r{number}", text=f"Answer {number} about pumps.")
        label = S if number % 2 else U
        claims.append((response, labelled.claim(response, label, label), label))
    labelled.freeze()
    other = {S: U, U: S}
    judges = []
    for name, wrong in (("anna", ()), ("bert", (0, 1)), ("carl", (1, 2))):
        verdicts = [(r, c, other[said] if n in wrong else said) for n, (r, c, said) in enumerate(claims)]
        run = as_now(judged(labelled, verdicts, name=name))
        judges.append(run.judge)
    return labelled, judges


def run_of(judge, version, **options):
    run = start_run(judge=judge, version=version, dimensions=["grounding"], **options)
    return run_inline(run=run)


def with_definitions(labelled):
    for dimension in labelled.round.rubric_version.dimensions.all():
        names = LABELS if dimension.name == "grounding" else ("REFUSED", "ANSWERED", "CLARIFY")
        dimension.labels = [{"name": name, "definition": f"what {name} means"} for name in names]
        dimension.save()


def test_a_panel_is_a_judge_with_verdicts_a_fingerprint_and_a_report(three):
    labelled, judges = three
    with_definitions(labelled)
    panel = add_panel(evalset=labelled.version.evalset, name="the three", members=judges, rule="majority")
    run = run_of(panel, labelled.version)

    assert run.state == "complete"
    said = dict(run.verdicts.values_list("response__response_id", "label"))
    # Claim 1 is wrong by bert and carl, so by two of three; everything else has the majority right.
    assert said["r1"] == U and [said["r0"], said["r2"], said["r3"]] == [U, U, S]
    verdict = run.verdicts.get(response__response_id="r0")
    assert verdict.effective_parameters["votes"] == {"anna": [U], "bert": [S], "carl": [U]}
    assert run.requested["member_runs"] == [1, 2, 3]
    assert run.policy == policy_in_force(labelled.version).as_dict(), (
        "the thresholds of the start stay with it"
    )
    report = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    assert report.payload["agreement"]["judge_vs_gold"]["n"] == 12
    assert is_same_instrument(run, labelled.round) is True

    Judge.objects.filter(pk=judges[0].pk).update(model="another-model")
    found = standing(judge=panel, version=labelled.version, dimension="grounding")
    assert found.state == "STALE" and "members" in found.changes[0]


def test_ties_and_missing_verdicts_are_failures_with_a_name(three):
    labelled, judges = three
    with_definitions(labelled)
    anna = judges[0].runs.get()
    anna.verdicts.filter(response__response_id="r5").update(state="failed", label="", failure="timeout")
    pair = add_panel(evalset=labelled.version.evalset, name="two", members=judges[:2], rule="mean")
    run = run_of(pair, labelled.version)

    failures = dict(run.verdicts.filter(state="failed").values_list("response__response_id", "failure"))
    assert failures == {"r0": "no_majority", "r1": "no_majority", "r5": "no_quorum"}
    assert "anna" in run.verdicts.get(response__response_id="r5").detail
    column = table_of(
        version=labelled.version, round=labelled.round, dimension="grounding", judge_run=run
    ).judge
    assert column.missing() == {"verdict_failed": 3}


def test_a_panel_needs_judges_that_have_run(three, lead):
    labelled, judges = three
    with_definitions(labelled)
    idle = Judge.objects.create(evalset=labelled.version.evalset, name="idle", kind="openai", model="m")
    panel = add_panel(evalset=labelled.version.evalset, name="p", members=[judges[0], idle], rule="mean")
    with pytest.raises(Refused, match="idle has no complete run"):
        start_run(judge=panel, version=labelled.version, dimensions=["grounding"])
    for members, message in (([judges[0]], "at least two"), ([judges[0], panel], "a panel itself")):
        with pytest.raises(Refused, match=message):
            add_panel(evalset=labelled.version.evalset, name="q", members=members, rule="mean")
    with pytest.raises(Refused, match="already"):
        add_panel(evalset=labelled.version.evalset, name="p", members=judges, rule="mean")
    assert JudgeRun.objects.filter(judge=panel).count() == 0


def test_a_panel_with_imported_verdicts_cannot_be_known(three):
    labelled, judges = three
    with_definitions(labelled)
    JudgeRun.objects.filter(judge=judges[1]).update(
        origin="imported", requested_fingerprint="", rubric_version=None
    )
    Judge.objects.filter(pk=judges[1].pk).update(kind="imported")
    panel = add_panel(evalset=labelled.version.evalset, name="p", members=judges, rule="majority")
    run = run_of(panel, labelled.version)
    assert is_same_instrument(run, labelled.round) is None


def test_a_panel_is_added_on_a_page(client, lead, stranger, three):
    _labelled, judges = three
    address = reverse("calibration:new_panel", args=["roles", 1])
    client.force_login(stranger)
    assert client.get(address).status_code == 404
    client.force_login(lead)
    assert "anna" in client.get(address).content.decode()
    values = {"name": "the <b>three</b>", "members": [judge.pk for judge in judges], "rule": "majority"}
    page = client.post(address, values, follow=True).content.decode()
    assert "the &lt;b&gt;three&lt;/b&gt; can be started" in page
    assert client.post(address, values).status_code == 400, "the name is taken"
    assert client.post(address, values | {"name": "x", "members": [judges[0].pk]}).status_code == 400
    assert Judge.objects.filter(kind="panel").count() == 1


# The judge beside the baselines


def test_the_report_shows_the_judge_beside_the_baselines_on_the_same_targets(client, lead, three):
    labelled, judges = three
    with_definitions(labelled)
    before = build_report(judge_run=judges[0].runs.get(), round=labelled.round, dimension="grounding")
    assert [(row["baseline"], row["run"]) for row in before.payload["baselines"]] == [
        ("majority-label", None),
        ("lexical-baseline", None),
        ("trained-baseline", None),
    ]
    client.force_login(lead)
    address = reverse("calibration:run_baselines", args=["roles", 1])
    assert client.get(address).status_code == 405
    client.post(address)
    runs = JudgeRun.objects.filter(judge__kind__in=["majority-label", "lexical-baseline", "trained-baseline"])
    assert runs.count() == 3
    client.post(address)
    assert runs.count() == 3, "twice is once"
    for run in JudgeRun.objects.filter(state="running"):
        run_inline(run=run)

    report = build_report(judge_run=judges[0].runs.get(), round=labelled.round, dimension="grounding")
    majority, lexical, _trained = report.payload["baselines"]
    assert majority["n"] == lexical["n"] == 12
    assert majority["judge"]["value"] == 1
    for row in (majority, lexical):
        assert row["difference"]["value"] == pytest.approx(1 - row["cohen_kappa"]["value"])
    at = ["roles", 1, judges[0].runs.get().number, "grounding"]
    page = client.get(reverse("calibration:report", args=at)).content.decode()
    assert "Beside what costs nothing" in page and "trained on the labels of other items" in page


def test_the_learning_baselines_need_labels_and_say_so(three):
    labelled, _judges = three
    with_definitions(labelled)
    labelled.round.gold.all().delete()
    labelled.round.annotations.all().delete()
    started, refused = start_baselines(version=labelled.version)
    assert {run.judge.name for run in started} == {"lexical-baseline", "phrase-matcher"}
    assert len(refused) == 2 and all("nobody" in reason for reason in refused)


def test_the_trained_baseline_runs_by_command_without_network(three):
    labelled, _judges = three
    with_definitions(labelled)
    out = io.StringIO()
    words = (
        "judge_run",
        "roles@1",
        "--judge",
        "trained-baseline",
        "--dimension",
        "grounding",
        "--wait",
        "--json",
    )
    call_command(*words, stdout=out, stderr=io.StringIO())
    assert json.loads(out.getvalue())["counts"] == {"valid": 12, "failed": 0, "pending": 0}
    run = JudgeRun.objects.get(judge__name="trained-baseline")
    assert run.verdicts.first().effective_parameters["folds"] == 5
    assert run.verdicts.first().effective_parameters["learnt_from"] < 12
