"""A draw from a traffic log: balanced, seeded, and everything that was not drawn counted."""

import io
import json

import pytest
from bs4 import BeautifulSoup
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse
from hypothesis import given, settings
from hypothesis import strategies as st

from evalsets.importing import ImportRefused
from evalsets.importing.traffic import read_log
from evalsets.models import EvalSetVersion, Item, Membership
from evalsets.sampling import allotted, draw
from evalsets.traffic import draw_sample, lacks, store_sample

# The draw


@pytest.mark.parametrize(
    ("available", "size", "given"),
    [
        # Reckoned by hand: 30 each; the 5 of c are all there are, so a and b share the other 85 as 43 and 42.
        ({"a": 500, "b": 100}, 60, {"a": 30, "b": 30}),
        ({"a": 500, "b": 100, "c": 5}, 90, {"a": 43, "b": 42, "c": 5}),
        ({"a": 3, "b": 2}, 100, {"a": 3, "b": 2}),
        ({"a": 5}, 0, {"a": 0}),
        ({}, 10, {}),
    ],
)
def test_shares_are_as_equal_as_there_is(available, size, given):
    assert allotted(available, size) == given


@settings(deadline=None)
@given(
    st.dictionaries(st.text(max_size=3), st.integers(0, 50), max_size=6),
    st.integers(0, 200),
)
def test_shares_add_up_and_no_stratum_gives_more_than_another_that_has_it(available, size):
    shares = allotted(available, size)
    assert sum(shares.values()) == min(size, sum(available.values()))
    assert all(0 <= shares[key] <= available[key] for key in available)
    most = max(shares.values(), default=0)
    for key in available:
        assert shares[key] >= most - 1 or shares[key] == available[key]


def test_the_same_seed_draws_the_same_and_another_one_does_not():
    candidates = {"a": range(100), "b": range(100, 130)}
    first = draw(candidates, size=20, seed=7)
    assert first == draw(candidates, size=20, seed=7)
    assert first.drawn != draw(candidates, size=20, seed=8).drawn
    assert [(stratum.key, stratum.drawn) for stratum in first.strata] == [("a", 10), ("b", 10)]
    assert len(set(first.drawn)) == 20


def test_every_candidate_is_as_likely_as_another():
    hits = [0] * 10
    for seed in range(2000):
        for member in draw({"a": range(10)}, size=3, seed=seed).drawn:
            hits[member] += 1
    # 600 expected of each; four standard deviations of a binomial with 2000 draws and p .3 are 82.
    assert all(abs(count - 600) < 82 for count in hits), hits


# The log


def log_of(*rows, blank=0):
    return io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows) + b"\n" * blank)


TRAFFIC = [
    {"id": "t1", "query": "How long is the trial?", "meta": {"lang": "en"}, "user": "u-17"},
    {"id": "t2", "query": "how long  is the TRIAL?", "meta": {"lang": "en"}},
    {"id": "t3", "query": "Wie lange?", "meta": {"lang": "de"}},
    {"id": "t4", "query": "", "meta": {"lang": "de"}},
    {"id": "t5", "query": "Where?"},
    {"id": "t1", "query": "When?", "meta": {"lang": "en"}},
]


def test_what_the_log_lacked_is_counted():
    log = read_log(log_of(*TRAFFIC, blank=2), "traffic.jsonl", strata=["meta.lang"])
    assert log.question == "query"
    assert (log.lines, log.blank, log.without_question, log.repeated, log.usable) == (6, 2, 1, 1, 4)
    assert log.without_stratum == {"meta.lang": 1}
    assert log.candidates == {("(not given)",): [5], ("de",): [3], ("en",): [1, 6]}


def test_columns_that_end_alike_stay_two_strata():
    rows = [
        {"query": f"q{n}", "user": {"lang": "en"}, "doc": {"lang": "de" if n else "fr"}} for n in range(3)
    ]
    sample = draw_sample(
        stream=log_of(*rows), filename="t.jsonl", size=2, seed=1, strata=["user.lang", "doc.lang"]
    )
    items = [json.loads(line) for line in sample.content.splitlines()]
    assert items[0]["strata"] == {"user.lang": "en", "doc.lang": "fr"}


def test_a_line_that_cannot_be_read_is_counted_and_does_not_refuse_the_rest():
    stream = io.BytesIO(b'{"query": "a?"}\nnot json\n{"query": "b?"}\n')
    log = read_log(stream, "traffic.jsonl")
    assert (log.usable, log.unreadable) == (2, 1)
    assert log.problems[0].line == 2


def test_csv_is_read_too():
    stream = io.BytesIO(b"question;lang\nHow?;en\nWie?;de\n")
    log = read_log(stream, "traffic.csv", strata=["lang"])
    assert sorted(log.candidates) == [("de",), ("en",)]
    assert log.columns == {"question": 2, "lang": 2}


@pytest.mark.parametrize(
    ("rows", "options", "field"),
    [
        ([{"a": 1}], {}, "question"),
        ([{"query": "x"}], {"question": "text"}, "text"),
        ([{"query": "x"}], {"strata": ["lang"]}, "lang"),
        ([{"query": f"q{n}", "user": f"u{n}"} for n in range(40)], {"strata": ["user"]}, "user"),
        ([{"query": " "}, {"other": "x"}], {"question": "query"}, "query"),
    ],
)
def test_a_log_from_which_nothing_can_be_drawn_is_refused(rows, options, field):
    with pytest.raises(ImportRefused) as refused:
        read_log(log_of(*rows), "traffic.jsonl", **options)
    assert refused.value.problems[0].field == field


def test_an_empty_file_is_refused():
    with pytest.raises(ImportRefused):
        read_log(io.BytesIO(b""), "traffic.jsonl")


# Into a version


def sample_of(size=10, seed=3):
    return draw_sample(
        stream=log_of(*TRAFFIC), filename="traffic.jsonl", size=size, seed=seed, strata=["meta.lang"]
    )


@pytest.mark.django_db
def test_the_draw_becomes_a_draft_and_nothing_else_is_stored():
    sample = sample_of()
    version = store_sample(content=sample.content, source_name=sample.source_name, name="Traffic")
    assert not version.is_frozen
    items = {item.item_id: item for item in version.items.all()}
    # The second t1 is another line: it gets a name of its own.
    assert set(items) == {"t1", "t3", "t5", "line-6"}
    assert items["t3"].strata == {"lang": "de"}
    assert items["t5"].strata == {"lang": "(not given)"}
    stored = json.dumps([[item.question, item.extra] for item in Item.objects.all()])
    assert "u-17" not in stored, "what else a line holds stays in the log"
    again = store_sample(content=sample.content, source_name=sample.source_name, name="Traffic")
    assert again == version, "twice is once"
    assert EvalSetVersion.objects.count() == 1


def test_what_is_missing_is_said():
    said = " ".join(lacks(sample_of()))
    for words in ("1 line has no question", "1 line repeats", "1 lines do not say meta.lang", "Only 4"):
        assert words in said
    assert "can be answered" in said


# The page and the command


@pytest.fixture
def someone(person):
    return person("someone")


def given_to(**fields):
    log = SimpleUploadedFile("traffic.jsonl", log_of(*TRAFFIC).getvalue())
    return {"name": "Traffic", "file": log, "size": 4, "seed": 3, "strata": "meta.lang"} | fields


@pytest.mark.django_db
def test_it_is_shown_first_and_stored_when_somebody_says_so(client, someone):
    client.force_login(someone)
    shown = client.post(reverse("calibration:sample"), given_to())
    soup = BeautifulSoup(shown.content, "html.parser")
    assert "4 items would be drawn" in soup.get_text()
    assert not EvalSetVersion.objects.exists()
    form = soup.find("form", action=reverse("calibration:store_sample"))
    fields = {tag["name"]: tag["value"] for tag in form.find_all("input")}
    for _twice in range(2):
        answer = client.post(reverse("calibration:store_sample"), fields)
        assert answer.url == reverse("evalsets:version", args=["traffic", 1])
    assert EvalSetVersion.objects.count() == 1
    assert Membership.objects.get().person == someone


@pytest.mark.django_db
def test_a_draw_that_this_server_did_not_make_is_refused(client, someone):
    client.force_login(someone)
    answer = client.post(reverse("calibration:store_sample"), {"name": "x", "drawn": "forged"}, follow=True)
    assert "not a draw of this server" in answer.content.decode()
    assert not EvalSetVersion.objects.exists()
    assert client.get(reverse("calibration:store_sample")).status_code == 405


@pytest.mark.django_db
@pytest.mark.parametrize("wrong", [{"size": 0}, {"seed": "x"}, {"strata": "nowhere"}, {"name": ""}])
def test_bad_input_is_refused(client, someone, wrong):
    client.force_login(someone)
    assert client.post(reverse("calibration:sample"), given_to(**wrong)).status_code == 422
    assert not EvalSetVersion.objects.exists()


@pytest.mark.django_db
def test_a_set_of_somebody_else_is_not_written_to(client, someone, evalset):
    client.force_login(someone)
    shown = client.post(reverse("calibration:sample"), given_to(name=evalset.name))
    form = BeautifulSoup(shown.content, "html.parser").find(
        "form", action=reverse("calibration:store_sample")
    )
    fields = {tag["name"]: tag["value"] for tag in form.find_all("input")}
    answer = client.post(reverse("calibration:store_sample"), fields, follow=True)
    assert "you do not lead" in answer.content.decode()
    assert not evalset.versions.exists()


@pytest.mark.django_db
def test_the_command_draws_the_same(tmp_path):
    path = tmp_path / "traffic.jsonl"
    path.write_bytes(log_of(*TRAFFIC).getvalue())
    out = io.StringIO()
    options = ["--name", "Traffic", "--seed", "3", "--size", "4", "--stratum", "meta.lang", "--json"]
    call_command("sample_log", str(path), *options, "--dry-run", stdout=out)
    assert json.loads(out.getvalue())["version"] is None
    assert not EvalSetVersion.objects.exists()
    out = io.StringIO()
    call_command("sample_log", str(path), *options, stdout=out)
    told = json.loads(out.getvalue())
    assert (told["evalset"], told["version"], told["n"]) == ("traffic", 1, 4)
    assert told["counts"]["repeated"] == 1
