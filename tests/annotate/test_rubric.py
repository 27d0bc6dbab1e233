"""The rubric as data: what a version must hold, writing one, what changed, and what it should say."""

import copy
from html.parser import HTMLParser

import pytest
from django.http import QueryDict
from django.urls import reverse

from annotate import presets, rubric_text, services
from annotate.keys import GRADING
from annotate.material import content_of
from annotate.models import RubricTask, RubricVersion
from annotate.rubric_diff import changes, words_changed
from annotate.rubric_forms import RubricEditor
from annotate.rubric_queries import SHORT, shortened
from annotate.rubric_rules import digest, problems
from calibration.stats.mappings import GROUNDEDNESS, RAGTRUTH_TYPES
from tests.annotate.worlds import make_round, response_of, say


def built_in() -> dict:
    return {
        "decisions": rubric_text.DECISIONS,
        "reference_based": False,
        "dimensions": [copy.deepcopy(d) | {"asked_when": None} for d in rubric_text.DIMENSIONS],
        "warm_up_cases": copy.deepcopy(rubric_text.WARM_UP_CASES),
    }


def with_presets(*names) -> dict:
    content = built_in()
    content["dimensions"] += [copy.deepcopy(presets.DIMENSION_OF[name]) for name in names]
    return content


def said_wrong(content) -> str:
    return " ".join(problem.message for problem in problems(content))


def write(evalset, content, **more):
    rubric = services.rubric_v1(evalset=evalset).rubric
    return services.write_rubric_version(rubric=rubric, content=content, **more)


# What we ship


@pytest.mark.parametrize("bundle", presets.BUNDLES)
def test_every_bundle_makes_a_valid_rubric(bundle):
    assert problems(with_presets(*presets.BUNDLES[bundle])) == []


def test_all_presets_together_are_valid_with_two_examples_a_label():
    assert problems(with_presets(*presets.DIMENSION_OF)) == []
    for dimension in presets.OPTIONAL_DIMENSIONS:
        assert all(len(label["examples"]) == 2 for label in dimension["labels"])


def test_presets_have_the_labels_that_the_statistics_know():
    def names(of):
        return [label["name"] for label in presets.DIMENSION_OF[of]["labels"]]

    assert names("hallucination_type") == list(RAGTRUTH_TYPES)
    assert names("groundedness") == list(GROUNDEDNESS)


def test_informativeness_is_asked_after_every_refusal_so_that_it_tells_nothing():
    when = presets.DIMENSION_OF["refusal_informativeness"]["asked_when"]
    assert when == {"dimension": "abstention", "labels": ["REFUSED"]}


def test_warm_up_tries_every_label_of_both_dimensions():
    tried = {(case["dimension"], case["label"]) for case in rubric_text.WARM_UP_CASES}
    assert tried == {
        (dimension["name"], label["name"])
        for dimension in rubric_text.DIMENSIONS
        for label in dimension["labels"]
    }


# Rules


def test_a_key_twice_in_a_dimension_is_refused():
    content = with_presets("context_relevance")
    content["dimensions"][-1]["labels"][1]["key"] = "1"
    assert "Another label of this dimension has the key 1" in said_wrong(content)


@pytest.mark.parametrize("key", sorted({k.lower() for bound in GRADING for k in bound.keys if len(k) == 1}))
def test_a_key_that_the_screen_uses_is_refused(key):
    content = with_presets("context_relevance")
    content["dimensions"][-1]["labels"][0]["key"] = key
    assert problems(content)[0].where == ("dimensions", 2, "labels", 0, "key")


def test_core_labels_keep_their_names():
    content = built_in()
    content["dimensions"][0]["labels"][0]["name"] = "backed"
    assert "The labels of grounding are fixed" in said_wrong(content)


def test_core_dimensions_stay():
    content = built_in()
    del content["dimensions"][1]
    assert "Every rubric asks for abstention" in said_wrong(content)


def test_a_label_name_of_31_characters_is_refused():
    content = with_presets("context_relevance")
    content["dimensions"][-1]["labels"][0]["name"] = "x" * 31
    assert "At most 30 characters; these are 31" in said_wrong(content)


def test_ten_labels_are_refused():
    content = with_presets("context_relevance")
    content["dimensions"][-1]["labels"] *= 5
    assert "Between 2 and 9 labels; these are 10" in said_wrong(content)


def test_a_condition_on_a_later_dimension_is_refused():
    content = with_presets("refusal_informativeness")
    content["dimensions"].insert(0, content["dimensions"].pop())
    assert "abstention must come before this dimension" in said_wrong(content)


def test_a_condition_on_a_dimension_of_another_target_is_refused():
    content = with_presets("refusal_informativeness")
    content["dimensions"][-1]["asked_when"] = {"dimension": "grounding", "labels": ["supported"]}
    assert "cannot depend on grounding" in said_wrong(content)


def test_a_condition_on_a_label_that_is_not_there_is_refused():
    content = with_presets("refusal_informativeness")
    content["dimensions"][-1]["asked_when"]["labels"] = ["DECLINED"]
    assert "abstention has no label DECLINED" in said_wrong(content)


def test_a_warm_up_case_needs_a_label_of_its_dimension():
    content = built_in()
    content["warm_up_cases"][0]["label"] = "supported"
    assert "Choose a label of abstention" in said_wrong(content)


def test_a_warm_up_case_of_a_response_has_no_claim():
    content = built_in()
    content["warm_up_cases"][0]["claim"] = "A claim."
    assert "Leave the claim empty" in said_wrong(content)


# Writing


def test_write_rubric_version_numbers_on_and_leaves_the_old_one(evalset, lead):
    first = services.rubric_v1(evalset=evalset)
    before = content_of(first)
    second, is_new = write(evalset, with_presets("context_relevance"), person=lead)
    assert (second.number, is_new, second.created_by) == (2, True, lead)
    assert [d.name for d in second.dimensions.all()] == ["grounding", "abstention", "context_relevance"]
    assert content_of(RubricVersion.objects.get(pk=first.pk)) == before
    assert services.latest_rubric(evalset=evalset) == second


def test_write_rubric_version_with_the_same_content_makes_none(evalset):
    first = services.rubric_v1(evalset=evalset)
    assert write(evalset, content_of(first)) == (first, False)
    assert RubricVersion.objects.count() == 1


def test_the_hash_covers_everything_that_graders_read():
    content = built_in()
    hashes = {digest(content)}
    for change in (
        lambda c: c.update(decisions=c["decisions"] + " More."),
        lambda c: c.update(reference_based=True),
        lambda c: c["dimensions"][0]["labels"][0]["examples"].append("One more."),
        lambda c: c["warm_up_cases"][0].update(explanation="Because."),
        lambda c: c["dimensions"].reverse(),
    ):
        changed = built_in()
        change(changed)
        hashes.add(digest(changed))
    assert len(hashes) == 6


def test_write_rubric_version_refuses_what_is_not_valid(evalset):
    content = built_in()
    content["dimensions"][0]["question"] = ""
    with pytest.raises(services.Refused, match="Say what is asked"):
        write(evalset, content)
    assert RubricVersion.objects.count() == 1


def test_write_rubric_version_refuses_imported_rules(evalset):
    imported = services.imported_rubric(evalset=evalset).rubric
    with pytest.raises(services.Refused, match="not ours"):
        services.write_rubric_version(rubric=imported, content=built_in())


def test_a_first_version_without_cases_stays_as_it_is(evalset):
    first = services.rubric_v1(evalset=evalset)
    first.warm_up_cases.all().delete()
    assert services.rubric_v1(evalset=evalset).warm_up_cases.count() == 0


# What changed


def test_words_changed_marks_words_and_counts_the_rest():
    before = "One line.\nThe passages say it.\nLast line."
    after = "One line.\nThe passages never say it.\nLast line."
    assert words_changed(before, after) == (
        ("left_out", "1"),
        ("same", "The passages"),
        ("added", " never"),
        ("same", " say it."),
        ("left_out", "1"),
    )


def test_changes_name_what_is_new_gone_and_rewritten():
    before, after = with_presets("context_relevance"), with_presets("decision_relevance")
    after["dimensions"][0]["labels"][1]["examples"].append("A new example.")
    after["reference_based"] = True
    found = {(change.where, change.kind) for change in changes(before, after)}
    assert found == {
        (("reference_based",), "changed"),
        (("dimensions", "context_relevance"), "removed"),
        (("dimensions", "decision_relevance"), "added"),
        (("dimensions", "grounding", "labels", "contradicted", "example"), "added"),
    }


def test_changes_see_another_order():
    before, after = with_presets("context_relevance"), with_presets("context_relevance")
    after["dimensions"].reverse()
    assert [change.kind for change in changes(before, after)] == ["moved"]


def test_changes_of_the_same_are_none():
    assert changes(built_in(), built_in()) == []


# The pages


def address(name, version, *args, query=""):
    return reverse(f"annotate:{name}", args=[version.evalset.slug, version.number, *args]) + query


def fields_of(client, url) -> dict:
    """What a browser would send back if nothing were typed."""

    class Fields(HTMLParser):
        def __init__(self):
            super().__init__()
            self.found, self.area, self.select = [], None, None

        def handle_starttag(self, tag, attrs):
            attrs = dict(attrs)
            if tag == "input" and attrs.get("name"):
                if attrs.get("type") != "checkbox" or "checked" in attrs:
                    self.found.append((attrs["name"], attrs.get("value", "")))
            elif tag == "textarea":
                self.area = [attrs["name"], ""]
            elif tag == "select":
                self.select = attrs["name"]
            elif tag == "option" and "selected" in attrs:
                self.found.append((self.select, attrs["value"]))

        def handle_data(self, data):
            if self.area:
                self.area[1] += data

        def handle_endtag(self, tag):
            if tag == "textarea":
                text = self.area[1].removeprefix("\n").replace("\n", "\r\n")
                self.found.append((self.area[0], text))
                self.area = None

    parser = Fields()
    answer = client.get(url)
    assert answer.status_code == 200
    parser.feed(answer.content.decode())
    sent: dict[str, list[str]] = {}
    for name, value in parser.found:
        sent.setdefault(name, []).append(value)
    return sent


def test_saving_the_editor_as_it_is_makes_no_version(client, lead, version):
    client.force_login(lead)
    url = address("new_rubric", version)
    answer = client.post(url, fields_of(client, url) | {"do": "save"})
    assert answer.url == address("rubric_version", version, 1)
    assert RubricVersion.objects.count() == 1


def test_new_rubric_saves_a_changed_text_as_version_2(client, lead, version):
    client.force_login(lead)
    url = address("new_rubric", version)
    sent = fields_of(client, url) | {"do": "save"}
    sent["d0-l1-example"][0] = "Passage: “Nine.” Claim: “Ten.”"
    answer = client.post(url, sent)
    assert answer.url == address("rubric_changes", version, 1, 2)
    new = RubricVersion.objects.get(number=2)
    examples = new.dimensions.get(name="grounding").labels[1]["examples"]
    assert examples[0] == "Passage: “Nine.” Claim: “Ten.”"
    page = client.get(answer.url).content.decode()
    assert "<ins>" in page
    assert "contradicted" in page


def test_buttons_keep_what_was_typed(client, lead, version):
    client.force_login(lead)
    url = address("new_rubric", version)
    sent = fields_of(client, url) | {"decisions": ["1. Half typed"], "do": "add-dimension"}
    page = client.post(url, sent).content.decode()
    assert "1. Half typed" in page
    assert 'name="d2-name"' in page
    assert RubricVersion.objects.count() == 1


def test_new_rubric_says_what_is_wrong_and_where(client, lead, version):
    client.force_login(lead)
    url = address("new_rubric", version)
    sent = fields_of(client, url) | {"do": "save"}
    sent["d0-l0-key"] = ["u"]
    answer = client.post(url, sent)
    assert answer.status_code == 400
    page = answer.content.decode()
    assert page.count("u already does something else on the screen.") == 2  # at the field, and on top
    assert '<a class="text" dir="auto" href="#d0-title">grounding</a>' in page
    assert RubricVersion.objects.count() == 1


def test_double_submit_writes_one_version(client, lead, version):
    client.force_login(lead)
    url = address("new_rubric", version)
    sent = fields_of(client, url) | {"decisions": ["1. Other"], "do": "save"}
    client.post(url, sent)
    client.post(url, sent)
    assert RubricVersion.objects.count() == 2


@pytest.mark.parametrize("name", ["rubric", "new_rubric"])
def test_rubric_pages_are_for_leads(client, grader_a, stranger, version, name):
    for person in (grader_a, stranger):
        client.force_login(person)
        assert client.get(address(name, version)).status_code == 404


def test_a_version_of_another_eval_set_does_not_exist(client, lead, version):
    client.force_login(lead)
    services.rubric_v1(evalset=version.evalset)
    assert client.get(address("rubric_version", version, 2)).status_code == 404
    assert client.get(address("new_rubric", version, query="?from=7")).status_code == 404
    assert client.get(address("new_rubric", version, query="?from=x")).status_code == 404


def test_agreement_examples_come_with_their_passage(client, lead, round):
    client.force_login(lead)
    version, claim = round.version, response_of(round, 6).claims.get()
    query = f"?from=1&dimension=grounding&label=contradicted&example={claim.pk}&example=999999&example=x"
    page = client.get(address("new_rubric", version, query=query)).content.decode()
    wanted = "Passage: “The ferry leaves at nine from pier 2.” Claim: “Tickets cost 12 euros.”"
    assert page.count(wanted) == 1


def test_examples_of_a_response_hold_its_question(client, lead, round):
    client.force_login(lead)
    version, response = round.version, response_of(round, 2)
    query = f"?dimension=abstention&label=REFUSED&example={response.pk}"
    page = client.get(address("new_rubric", version, query=query)).content.decode()
    assert (
        "Question: “Question 2 about the ferry?” Response: “The timetable does not mention winter.”" in page
    )


def test_evidence_decides_which_passage_an_example_shows(client, lead, grader_a, round):
    say(round, grader_a, 6, "supported", evidence=[1])
    claim = response_of(round, 6).claims.get()
    client.force_login(lead)
    query = f"?dimension=grounding&label=supported&example={claim.pk}"
    page = client.get(address("new_rubric", round.version, query=query)).content.decode()
    assert "from pier 1.” Claim" in page
    assert "from pier 2.” Claim" not in page


def test_examples_are_closed_to_a_lead_who_still_grades(client, member, version):
    both = member("both", "lead", "grader")
    round = make_round(version, both)
    client.force_login(both)
    claim = response_of(round, 6).claims.get()
    query = f"?dimension=grounding&label=supported&example={claim.pk}"
    assert client.get(address("new_rubric", version, query=query)).status_code == 403


def test_shortened_keeps_the_place_where_the_words_are():
    text = "Nothing here. " * 50 + "The harbour closes at noon. " + "And so on. " * 50
    short = shortened(text, "The harbour closes at ten.")
    assert "The harbour closes at noon." in short
    assert len(short) <= SHORT + 4


# What the rubric should say


@pytest.fixture
def decided(round, grader_a, grader_b, lead):
    say(round, grader_a, 6, "supported", "ANSWERED")
    say(round, grader_b, 6, "unsupported", "ANSWERED")
    response = response_of(round, 6)
    return services.adjudicate(
        round=round,
        response=response,
        claim=response.claims.get(),
        dimension="grounding",
        label="unsupported",
        reason="guideline_gap",
        note="Prices",
        person=lead,
    )


def test_note_for_rubric_is_one_task_a_decision(decided, lead):
    rubric = decided.round.rubric_version.rubric
    first = services.note_for_rubric(rubric=rubric, adjudication=decided, text=" Say it. ", person=lead)
    again = services.note_for_rubric(rubric=rubric, adjudication=decided, text="Say more.", person=lead)
    assert (first.pk, first.text, again.text) == (again.pk, "Say it.", "Say more.")


def test_note_for_rubric_of_imported_rules_goes_to_our_rubric(evalset, lead):
    imported = services.imported_rubric(evalset=evalset).rubric
    task = services.note_for_rubric(rubric=imported, text="Say it.", person=lead)
    assert task.rubric == services.rubric_v1(evalset=evalset).rubric


def test_note_for_rubric_needs_a_text_or_a_decision(evalset, lead):
    rubric = services.rubric_v1(evalset=evalset).rubric
    with pytest.raises(services.Refused, match="Say what"):
        services.note_for_rubric(rubric=rubric, text=" ", person=lead)


def test_the_to_do_list_shows_claim_labels_and_decision(client, decided, lead):
    rubric = decided.round.rubric_version.rubric
    services.note_for_rubric(rubric=rubric, adjudication=decided, text="Are prices facts?", person=lead)
    client.force_login(lead)
    page = client.get(address("rubric", decided.round.version)).content.decode()
    for word in ("Are prices facts?", "Tickets cost 12 euros.", "unsupported", "supported", "Dismiss"):
        assert word in page


def test_a_ticked_note_is_settled_by_the_new_version(client, decided, lead):
    rubric = decided.round.rubric_version.rubric
    task = services.note_for_rubric(rubric=rubric, adjudication=decided, text="Prices?", person=lead)
    client.force_login(lead)
    url = address("new_rubric", decided.round.version)
    sent = fields_of(client, url) | {
        "decisions": ["1. Prices are facts."],
        "settles": [task.pk],
        "do": "save",
    }
    client.post(url, sent)
    task.refresh_from_db()
    assert task.settled_in.number == 2
    with pytest.raises(services.Conflict, match="settled"):
        services.dismiss_rubric_task(task=task)


def test_a_note_is_dismissed_and_put_back(client, decided, lead):
    rubric, version = decided.round.rubric_version.rubric, decided.round.version
    task = services.note_for_rubric(rubric=rubric, adjudication=decided, text="Prices?", person=lead)
    client.force_login(lead)
    for move, is_open in (("dismiss", False), ("dismiss", False), ("restore", True)):
        client.post(address("move_rubric_task", version, task.pk), {"move": move})
        assert (RubricTask.objects.get(pk=task.pk).dismissed_at is None) is is_open


def test_notes_are_closed_to_a_lead_who_still_grades(client, decided, member):
    version = decided.round.version
    services.note_for_rubric(
        rubric=decided.round.rubric_version.rubric, adjudication=decided, text="Prices?", person=decided.by
    )
    both = member("both", "lead", "grader")
    make_round(version, both)
    client.force_login(both)
    for name in ("rubric", "new_rubric"):
        page = client.get(address(name, version)).content.decode()
        assert "Prices?" not in page
        assert "You still have responses to grade" in page
    task = RubricTask.objects.get()
    assert client.post(address("move_rubric_task", version, task.pk)).status_code == 403


# The editor's steps


def test_a_condition_follows_a_renamed_dimension():
    post = QueryDict(mutable=True)
    post.update({"dimensions": "2", "d0-name": "new name", "d0-target": "claim", "d0-labels": "1"})
    post.update({"d0-l0-name": "yes", "d0-l0-key": "1", "d1-target": "claim", "d1-after": "0/0"})
    draft = RubricEditor.received(post).draft
    assert draft["dimensions"][1]["asked_when"] == {"dimension": "new name", "labels": ["yes"]}


def test_steps_on_rows_that_are_not_there_change_nothing():
    for step in (
        "remove-dimension:9",
        "remove-label:0:9",
        "remove-case:3",
        "up:7",
        "nonsense",
        "add-label:x",
    ):
        editor = RubricEditor.received(QueryDict(f"do={step}&dimensions=1&d0-labels=1"))
        assert len(editor.draft["dimensions"]) == 1


def test_open_a_round_with_the_version_asked_for(client, lead, version):
    services.rubric_v1(evalset=version.evalset)
    write(version.evalset, with_presets("context_relevance"))
    client.force_login(lead)
    for query, number in (("?rubric=1", 1), ("?rubric=2", 2), ("", 2), ("?rubric=9", 2), ("?rubric=x", 2)):
        form = client.get(address("open_round", version, query=query)).context["form"]
        assert form.initial["rubric_version"].number == number
