"""The pictures of the rates page: what is drawn, what is withheld, and the files to take away."""

import csv
import io

import pytest
from django.urls import reverse

from calibration.figures import NAMED, pair_csv, pair_plot
from calibration.levers import Setting, sweeps_of
from calibration.reports import build_report
from evalsets.models import System
from tests.calibration.labelled import judged, labelled_set
from tests.calibration.test_report import as_now
from tests.calibration.test_report_pages import a_trusted_run, sixty_responses, text_of, url, verdicts_of

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def chart(picture, kind, **query):
    address = reverse("calibration:rates_chart", args=["roles", 1, picture, kind])
    return address + "?" + "&".join(f"{key}={value}" for key, value in query.items())


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def setting(**settings):
    return Setting("m", "p", settings)


def test_systems_that_differ_in_one_setting_alone_make_a_sweep_in_its_order():
    systems = {
        "c": setting(threshold=0.9, prompt="strict"),
        "a": setting(threshold=0.1, prompt="strict"),
        "b": setting(threshold="0.5", prompt="strict"),
        "other model": Setting("n", "p", {"threshold": 0.2, "prompt": "strict"}),
        "two apart": setting(threshold=0.7, prompt="kind"),
        "nothing": setting(),
    }
    (sweep,) = sweeps_of(systems)
    assert sweep.lever == "threshold"
    assert sweep.steps == (("a", "0.1"), ("b", "0.5"), ("c", "0.9"))


def test_ten_comes_after_nine_and_words_after_numbers():
    (sweep,) = sweeps_of({name: setting(k=name) for name in ("10", "9", "all")})
    assert [value for _system, value in sweep.steps] == ["9", "10", "all"]


def an_entry(name, answering, refusal):
    def number(value):
        return {"value": value, "low": max(0, value - 0.1), "high": min(1, value + 0.1)}

    return {
        "system": name,
        "abstention": {"over_answering": number(answering), "over_refusal": number(refusal)},
    }


def test_a_sweep_is_one_line_and_a_withheld_system_no_point():
    entries = [an_entry("a", 0.1, 0.4), an_entry("b", 0.4, 0.1)]
    withheld = {"system": "c", "abstention": {"withheld": {"state": "STALE"}}}
    sweeps = sweeps_of({name: setting(threshold=t) for name, t in (("b", 0.9), ("a", 0.1), ("c", 0.5))})
    spec = pair_plot([*entries, withheld], sweeps)

    assert [value["system"] for value in spec["data"]["values"]] == ["a", "b"]
    assert [value["mark"] for value in spec["data"]["values"]] == ["threshold 0.1", "threshold 0.9"]
    (line,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "line"]
    assert [(step["system"], step["order"]) for step in line["data"]["values"]] == [("a", 0), ("b", 2)]
    assert spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 0.5]


def test_many_systems_have_the_numbers_of_the_table():
    entries = [an_entry(f"s{n}", 0.2, 0.2) for n in range(NAMED + 1)]
    assert [value["mark"] for value in pair_plot(entries)["data"]["values"]] == [
        str(n) for n in range(1, NAMED + 2)
    ]


@pytest.fixture
def swept(evalset):
    """Two settings of one system: eager (3 of 4 answered, 0 of 4 refused), shy (1 of 4, 2 of 4)."""
    made = labelled_set(evalset=evalset)
    for name, answered, refused in (("eager", 3, 0), ("shy", 1, 2)):
        run = made.run(name)
        System.objects.filter(pk=run.system_id).update(model="m", settings={"threshold": answered})
        for number in range(8):
            wanted = number < 4
            item = made.version.items.filter(item_id=f"i{number}").first() or made.item(
                f"i{number}",
                answerable=not wanted,
                unanswerable_reason="out_of_scope" if wanted else "",
                strata={"language": "de" if number % 2 else "en"},
            )
            said = number < answered if wanted else number >= 4 + refused
            response = made.response(f"{name}{number}", item=item, run=run)
            made.verdict_on_response(response, *["ANSWERED" if said else "REFUSED"] * 2)
    return made


def test_the_page_draws_the_pair_with_its_lever_and_every_file_of_it(client, lead, swept):
    client.force_login(lead)
    page = client.get(url("rates"))
    assert "50.0 % of the items are unanswerable (4 of 8)" in text_of(page)
    assert "Connected: systems that differ in threshold alone" in text_of(page)
    assert "eager: over-answering 75%, over-refusal 0%" in page.content.decode()

    rows = rows_of(client.get(chart("pair", "csv", source="gold", unit="claim")))
    assert [(row["system"], row["settings"], row["over_answering_value"]) for row in rows] == [
        ("eager", "threshold 3", "0.75"),
        ("shy", "threshold 1", "0.25"),
    ]
    assert client.get(chart("pair", "svg")).content.startswith(b"<svg")
    assert client.get(chart("pair", "png")).content.startswith(b"\x89PNG")
    strata = rows_of(client.get(chart("strata-over_refusal", "csv")))
    assert [(row["name"], row["numerator"], row["denominator"]) for row in strata] == [
        ("language: de", "1", "4"),
        ("language: en", "1", "4"),
    ]


def test_what_is_undefined_or_withheld_stands_in_the_csv_with_its_reason(client, lead, swept):
    item = swept.item("answerable only", answerable=True, strata={"language": "fr"})
    for run in swept.runs:
        response = swept.response(f"fr {run.number}", item=item, run=run)
        swept.verdict_on_response(response, "ANSWERED", "ANSWERED")
    client.force_login(lead)
    strata = rows_of(client.get(chart("strata-over_answering", "csv")))
    assert [(row["name"], row["value"], row["undefined"]) for row in strata if "fr" in row["name"]] == [
        ("language: fr", "", "zero_denominator")
    ]
    withheld = {"system": "c", "abstention": {"withheld": {"state": "STALE"}}}
    (row,) = csv.DictReader(io.StringIO(pair_csv([withheld], {})))
    assert (row["over_answering_value"], row["over_answering_undefined"]) == ("", "withheld")


@pytest.mark.parametrize(
    ("picture", "kind"),
    [("pair", "gif"), ("nothing", "svg"), ("strata-hallucination", "svg"), ("people-over_refusal", "csv")],
)
def test_a_picture_that_is_none_is_not_found(client, lead, swept, picture, kind):
    client.force_login(lead)
    assert client.get(chart(picture, kind)).status_code == 404
    assert client.get(chart(picture, kind, unit="pair")).status_code == 404


def test_the_pictures_are_the_leads_and_nobody_elses(client, grader_a, stranger, swept):
    for person in (grader_a, stranger):
        client.force_login(person)
        assert client.get(chart("pair", "svg")).status_code == 404


def test_a_trusted_judge_stands_beside_people_and_a_withheld_one_nowhere(client, lead, evalset):
    labelled = sixty_responses(evalset)
    name = a_trusted_run(labelled).judge.name
    client.force_login(lead)
    page = text_of(client.get(url("rates", source=f"judge:{name}")))
    shown = rows_of(client.get(chart("people-hallucination", "csv", source=f"judge:{name}")))
    assert "The judge beside people" in page
    assert {row["name"].rpartition(" · ")[2] for row in shown} == {"people", "judge"}
    assert len({row["value"] for row in shown if row["name"].startswith("system 0 ·")}) == 1

    wrong = verdicts_of(labelled, lambda number, label: "contradicted" if number % 5 == 0 else label)
    run = as_now(judged(labelled, wrong, name="judge-z"))
    assert build_report(judge_run=run, round=labelled.round, dimension="grounding").gate_state != "TRUSTED"
    for picture in ("people-hallucination", "strata-hallucination", "pair"):
        for kind in ("csv", "svg"):
            answer = client.get(chart(picture, kind, source="judge:judge-z"))
            assert answer.status_code == 404, (picture, kind)
