"""Every sentence is there in every language, and a person can choose theirs."""

import re

import pytest
from django.conf import settings
from django.urls import reverse

from tests import catalogue

pytestmark = pytest.mark.once

PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|%[sd%]")


def placeholders(text):
    return sorted(PLACEHOLDER.findall(text))


def ids_of(message):
    return [message.id] if isinstance(message.id, str) else list(message.id)


@pytest.fixture(scope="module", params=catalogue.languages())
def language(request):
    return request.param


def test_languages_on_offer_are_those_that_are_translated():
    assert {code for code, _name in settings.LANGUAGES} == {"en", *catalogue.languages()}


def test_every_sentence_is_translated_and_none_is_left_over(language):
    there = {catalogue.key_of(m): m for m in catalogue.catalogue_of(language) if m.id}
    wanted = {catalogue.key_of(m) for m in catalogue.sentences() if m.id}
    assert len(wanted) > 800
    assert sorted(map(str, wanted - there.keys())) == [], "run python -m tests.catalogue, and translate"
    assert sorted(map(str, there.keys() - wanted)) == []
    empty = [m.id for m in there.values() if not catalogue.is_translated(m)]
    assert empty == []
    assert [m.id for m in there.values() if m.fuzzy] == []


def test_translations_keep_the_placeholders(language):
    wrong = []
    for message in catalogue.catalogue_of(language):
        if message.id and "python-format" in message.flags:
            allowed = {tuple(placeholders(text)) for text in ids_of(message)}
            wrong += [s for s in catalogue.strings_of(message) if tuple(placeholders(s)) not in allowed]
    assert wrong == []


def test_compiled_catalogue_is_that_of_the_text(language):
    path = catalogue.po_of(language)
    assert path.with_suffix(".mo").read_bytes() == catalogue.compiled(catalogue.catalogue_of(language))


@pytest.mark.django_db
def test_language_is_chosen_on_any_page_and_stays(client):
    page = reverse("login")
    assert '<html lang="en">' in client.get(page).content.decode()
    answer = client.post(reverse("set_language"), {"language": "de"}, headers={"Referer": page})
    assert (answer.status_code, answer["Location"]) == (302, page)
    content = client.get(page).content.decode()
    assert '<html lang="de">' in content
    assert ">English<" in content  # each language by its own name, whichever is chosen
    assert ">Deutsch<" in content


@pytest.mark.django_db
def test_browser_language_is_the_first_choice_and_an_unknown_one_is_english(client):
    page = reverse("login")
    for asked, given in (("de-AT,de;q=0.9", "de"), ("tlh", "en")):
        content = client.get(page, headers={"Accept-Language": asked}).content.decode()
        assert f'<html lang="{given}">' in content


@pytest.mark.django_db
def test_language_switch_leads_to_no_other_host(client):
    answer = client.post(reverse("set_language"), {"language": "de", "next": "https://example.org/"})
    assert answer["Location"] == "/"
