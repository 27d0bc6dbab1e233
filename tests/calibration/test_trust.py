"""What trust rests on: thresholds set before a run is looked at, and how the items with gold were drawn."""

import json
from copy import deepcopy

import pytest
from django.db import DatabaseError, transaction
from django.urls import reverse

from calibration.correcting import corrected_share
from calibration.design import BadDesign, design_in_force, part_of_item, record_design
from calibration.models import CalibrationSplit, GateThresholds, JudgeRun
from calibration.pairing import table_of
from calibration.reports import standing
from calibration.sightings import note_sighting
from calibration.thresholds import BadThresholds, policy_in_force, set_thresholds, thresholds_of_run
from evalsets.models import Membership
from tests.calibration.labelled import an_adjudicator, judged, labelled_set
from tests.calibration.test_report import command, report_of, trusted_judge

pytestmark = pytest.mark.django_db


def lowered(version, reason="a second reading", **thresholds):
    return set_thresholds(
        version=version, thresholds=thresholds or {"min_judge_agreement": 0.5}, reason=reason
    )


def started(run):
    """The run as it is when it is started here: with the thresholds of that moment."""
    JudgeRun.objects.filter(pk=run.pk).update(policy=policy_in_force(run.version).as_dict())
    run.refresh_from_db()
    return run


# Thresholds


def test_a_version_has_the_thresholds_of_the_server_until_it_has_its_own(settings):
    settings.TRUST_GATE = {"min_targets": 80}
    labelled = labelled_set()
    assert policy_in_force(labelled.version).min_targets == 80
    made = lowered(labelled.version, min_targets=80, min_youden=0.6)
    assert made.thresholds == {"min_youden": 0.6}, "only what differs from the server is kept"
    assert policy_in_force(labelled.version).min_youden == 0.6
    assert lowered(labelled.version, min_youden=0.6) is None, "twice is once"


@pytest.mark.parametrize(
    ("thresholds", "reason", "message"),
    [
        ({"min_youden": 2}, "why", "min_youden"),
        ({"min_kappa": 0.5}, "why", "min_kappa"),
        ({"min_youden": 0.2}, "  ", "Say why"),
    ],
)
def test_thresholds_that_mean_nothing_are_refused(thresholds, reason, message):
    labelled = labelled_set()
    with pytest.raises(BadThresholds, match=message):
        set_thresholds(version=labelled.version, thresholds=thresholds, reason=reason)
    assert not GateThresholds.objects.exists()


def test_a_change_before_the_run_is_looked_at_is_told_from_one_after_it():
    labelled, run = trusted_judge()
    run = started(run)
    assert thresholds_of_run(run)["changed"] == []

    lowered(labelled.version)
    before_any_look = thresholds_of_run(run)
    assert before_any_look["changed"] == [{"name": "min_judge_agreement", "before": 0.6, "now": 0.5}]
    assert before_any_look["after_seen"] is False
    assert before_any_look["changes"][0]["reason"] == "a second reading"

    note_sighting(run=run, person=an_adjudicator())
    assert thresholds_of_run(run)["after_seen"] is False, "the look came after the change"
    lowered(labelled.version, min_judge_agreement=0.4)
    assert thresholds_of_run(run)["after_seen"] is True


def test_a_report_of_before_the_change_is_a_look_at_the_run_and_does_not_hold_any_more():
    labelled, run = trusted_judge()
    run = started(run)
    assert report_of(labelled, run).payload["thresholds"]["after_seen"] is False
    lowered(labelled.version, min_judge_agreement=0.7)

    found = standing(judge=run.judge, version=labelled.version, dimension="grounding")
    assert (found.state, found.trusted) == ("STALE", False)
    assert "min_judge_agreement 0.6 → 0.7" in found.changes[0]
    again = report_of(labelled, run)
    assert again.payload["thresholds"]["after_seen"] is True
    assert report_of(labelled, run) == again, "building twice is once"
    assert command("calibration_report", "set@1", "--judge", "judge-a")["thresholds"]["after_seen"] is True


def test_thresholds_and_designs_are_written_once():
    labelled, _run = trusted_judge()
    lowered(labelled.version)
    record_design(round=labelled.round, design="random", seed=1)
    for model in (GateThresholds, CalibrationSplit):
        with pytest.raises(DatabaseError), transaction.atomic():
            model.objects.all().delete()


# The items with gold


def test_the_split_follows_from_the_seed_and_leaves_examples_out():
    labelled, _run = trusted_judge()
    split = record_design(round=labelled.round, design="random", seed=7, tuning_share=0.4, few_shot=["r3"])
    names = [f"item {number}" for number in range(2000)]
    parts = [part_of_item(split, name) for name in names]
    # 2000 draws at .4: standard deviation of the share .011, so .05 is more than four of them.
    assert parts.count("tuning") / 2000 == pytest.approx(0.4, abs=0.05)
    assert parts == [part_of_item(split, name) for name in names]
    split.seed = 8
    assert parts != [part_of_item(split, name) for name in names]
    assert part_of_item(split, "r3") == "few_shot"
    assert record_design(
        round=labelled.round, design="random", seed=7, tuning_share=0.4, few_shot=["r3"]
    ).pk == (design_in_force(labelled.round).pk), "the same again is the same record"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"design": "guesswork"}, "guesswork"),
        ({"design": "stratified", "stratum": "none such"}, "Name a stratum"),
        ({"design": "random", "tuning_share": 1.0}, "below 1"),
        ({"design": "random", "few_shot": ["r3", "nobody"]}, "nobody"),
    ],
)
def test_a_design_that_cannot_be_is_refused(values, message):
    labelled, _run = trusted_judge()
    with pytest.raises(BadDesign, match=message):
        record_design(round=labelled.round, seed=1, **values)
    assert not CalibrationSplit.objects.exists()


def test_tuning_items_and_examples_count_for_no_calibration_number():
    labelled, run = trusted_judge()
    first = report_of(labelled, run)
    split = record_design(round=labelled.round, design="random", seed=3, tuning_share=0.3, few_shot=["r0"])
    assert standing(judge=run.judge, version=labelled.version, dimension="grounding").state == "STALE"

    report = report_of(labelled, run)

    names = labelled.version.items.values_list("item_id", flat=True)
    counted = sum(part_of_item(split, name) == "calibration" for name in names)
    assert 0 < counted < 59
    assert report.payload["design"]["items"] == {
        "calibration": counted,
        "tuning": 59 - counted,
        "few_shot": 1,
    }
    assert first.payload["evidence"]["targets"] == 120
    assert report.payload["evidence"]["targets"] == 2 * counted
    assert report.payload["agreement"]["judge_vs_gold"]["n"] == 2 * counted
    assert report.payload["design"]["tried"] == {"judge_runs": 1, "models": 1, "prompt_versions": 1}


def a_pool():
    """EX-RG1's counts: gold bad 40 (34 flagged), good 160 (8 flagged); 130 of 1000 flagged without gold."""
    labelled = labelled_set("pool")
    verdicts = []
    for kind, count in ((("u", "u"), 34), (("u", "s"), 6), (("s", "u"), 8), (("s", "s"), 152)):
        gold, said = ({"u": "unsupported", "s": "supported"}[letter] for letter in kind)
        for _number in range(count):
            response = labelled.response(f"g{len(verdicts)}")
            verdicts.append((response, labelled.claim(response, gold, gold), said))
    for number in range(1000):
        response = labelled.response(f"u{number}", assigned=False)
        verdicts.append((response, labelled.claim(response), "unsupported" if number < 130 else "supported"))
    return labelled, judged(labelled, verdicts)


@pytest.fixture(scope="module")
def kept_pool(kept):
    return kept(a_pool)


@pytest.fixture
def pool(db, kept_pool):
    return deepcopy(kept_pool)


def test_the_design_decides_the_correction(pool):
    labelled, run = pool
    table = table_of(version=labelled.version, round=labelled.round, dimension="grounding", judge_run=run)
    runs = [labelled.runs[0].pk]

    imported = corrected_share(table, runs=runs, sampling="separate")
    # EX-RG1: theta .100000, Lang-Reiczigel interval [.046807, .148727].
    assert imported["method"] == "rogan_gladen"
    assert imported["corrected"]["value"] == pytest.approx(0.1, abs=5e-7)
    assert imported["corrected"]["low"] == pytest.approx(0.046807, abs=5e-4)
    assert imported["corrected"]["high"] == pytest.approx(0.148727, abs=5e-4)

    # 42 of 200 flagged with gold and 130 of 1000 without: p .003205, so it is no random sample of the pool.
    random = corrected_share(table, runs=runs, sampling="random")
    assert random["guard_p"] == pytest.approx(0.003205, abs=5e-7)
    assert random["method"] == "rogan_gladen"

    nobody_knows = corrected_share(table, runs=runs, sampling=None)
    assert nobody_knows["corrected"]["undefined"] == "method_not_valid_for_design"
    assert "Nobody has recorded" in nobody_knows["why"][0]


SAID = ("supported", "contradicted", "unsupported", "unverifiable")
# EX-MC1: rows gold, columns judge; and what the judge says of the claims without gold.
CONFUSION = ((104, 2, 12, 2), (2, 18, 4, 0), (8, 3, 25, 2), (1, 0, 4, 13))
WITHOUT_GOLD = (640, 60, 230, 70)


def claims_of_the_confusion():
    labelled, verdicts = labelled_set("confusion"), []
    for gold, row in zip(SAID, CONFUSION, strict=True):
        for said, count in zip(SAID, row, strict=True):
            for _number in range(count):
                response = labelled.response(f"g{len(verdicts)}")
                verdicts.append((response, labelled.claim(response, gold, gold), said))
    for said, count in zip(SAID, WITHOUT_GOLD, strict=True):
        for _number in range(count):
            response = labelled.response(f"u{len(verdicts)}", assigned=False)
            verdicts.append((response, labelled.claim(response), said))
    return labelled, verdicts


@pytest.fixture(scope="module")
def kept_confusion(kept):
    return kept(claims_of_the_confusion)


@pytest.mark.parametrize("calls", [1, 2])
def test_a_hallucination_rate_is_corrected_by_the_whole_confusion(kept_confusion, calls):
    """EX-MC1: H .311828 raw, .274003 corrected; a judge that says the same in each call has the same rate."""
    labelled, verdicts = kept_confusion
    repeated = [(response, claim, (said,) * calls) for response, claim, said in verdicts]
    run = judged(labelled, repeated, repeats=calls)
    table = table_of(version=labelled.version, round=labelled.round, dimension="grounding", judge_run=run)
    runs = [labelled.runs[0].pk]

    found = corrected_share(table, runs=runs, sampling="separate")["hallucination"]
    assert found["value"] == pytest.approx(0.274003, abs=5e-7)
    assert (found["low"], found["high"]) == (
        pytest.approx(0.1688, abs=0.02),
        pytest.approx(0.3872, abs=0.02),
    )
    assert corrected_share(table, runs=runs, sampling="separate")["hallucination"] == found

    nobody_knows = corrected_share(table, runs=runs, sampling=None)["hallucination"]
    assert (nobody_knows["value"], nobody_knows["undefined"]) == (None, "method_not_valid_for_design")
    assert (nobody_knows["label"], nobody_knows["definition"]) == (found["label"], found["definition"])


def test_a_label_without_gold_leaves_the_hallucination_rate_uncorrected(pool):
    labelled, run = pool
    table = table_of(version=labelled.version, round=labelled.round, dimension="grounding", judge_run=run)
    found = corrected_share(table, runs=[labelled.runs[0].pk], sampling="separate")
    assert found["corrected"]["value"] is not None
    assert (found["hallucination"]["value"], found["hallucination"]["undefined"]) == (
        None,
        "singular_confusion",
    )


def test_gold_that_is_not_complete_corrects_nothing(pool):
    labelled, run = pool
    labelled.round.gold.filter(label="unsupported").first().delete()
    table = table_of(version=labelled.version, round=labelled.round, dimension="grounding", judge_run=run)
    found = corrected_share(table, runs=[labelled.runs[0].pk], sampling="random")
    assert found["corrected"]["value"] is None
    assert "no fair sample" in found["why"][0]


# The page


def address(name):
    return reverse(f"calibration:{name}", args=["roles", 1])


@pytest.fixture
def labelled(evalset):
    labelled = labelled_set(evalset=evalset)
    labelled.claim(labelled.response("r1"), "supported", "supported")
    return labelled


def sent(form, **changes):
    return {name: form[name].value() or "" for name in form.fields} | changes


def test_thresholds_are_set_on_a_page(client, lead, labelled):
    client.force_login(lead)
    form = client.get(address("trust")).context["thresholds"]
    answer = client.post(
        address("change_thresholds"), sent(form, min_youden="0.4", reason="<b>small</b> set"), follow=True
    )
    page = answer.content.decode()
    assert "The thresholds are set" in page
    assert "&lt;b&gt;small&lt;/b&gt; set" in page
    assert GateThresholds.objects.get().by == lead
    again = client.post(
        address("change_thresholds"), sent(form, min_youden="0.4", reason="again"), follow=True
    )
    assert "hold already" in again.content.decode()
    bad = client.post(address("change_thresholds"), sent(form, min_youden="7", reason="why"))
    assert bad.status_code == 400 and "min_youden must lie between" in bad.content.decode()
    assert client.post(address("change_thresholds"), {"min_youden": "x"}).status_code == 400


def test_the_design_is_recorded_on_a_page(client, lead, labelled):
    client.force_login(lead)
    form = client.get(address("trust")).context["design"]
    values = sent(form, design="random", tuning_percent="25", seed="5", few_shot="r1\n")
    assert (
        "The design is recorded."
        in client.post(address("change_design"), values, follow=True).content.decode()
    )
    client.post(address("change_design"), values)
    record = CalibrationSplit.objects.get()
    assert (record.design, record.tuning_share, record.few_shot, record.by) == ("random", 0.25, ["r1"], lead)
    bad = client.post(address("change_design"), values | {"few_shot": "nobody"})
    assert bad.status_code == 400 and "nobody" in bad.content.decode()


def test_the_page_is_the_leads_alone(client, grader_a, stranger, labelled):
    for person in (grader_a, stranger):
        client.force_login(person)
        assert client.get(address("trust")).status_code == 404
        for name in ("change_thresholds", "change_design"):
            assert client.post(address(name)).status_code == 404
            assert client.get(address(name)).status_code == 405
    assert not GateThresholds.objects.exists()


def test_the_report_says_that_thresholds_were_changed_after_a_look(client, lead, evalset):
    labelled, run = trusted_judge()
    run = started(run)
    type(run.version.evalset).objects.filter(pk=run.version.evalset_id).update(slug="other")
    report_of(labelled, run)
    lowered(labelled.version, reason="too strict for us")
    report = report_of(labelled, run)
    assert json.loads(json.dumps(report.payload["thresholds"]))["after_seen"] is True
    Membership.objects.create(person=lead, evalset=labelled.version.evalset, role="lead")
    client.force_login(lead)
    page = client.get(
        reverse("calibration:report", args=["other", 1, run.number, "grounding"])
    ).content.decode()
    assert "Thresholds were changed after this run had been looked at:" in page
    assert "too strict for us" in page
    assert "nobody has recorded how they were drawn" in page
