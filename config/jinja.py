"""The environment of the Jinja templates, the parts of the grader's screen: every label renders them anew."""

from functools import lru_cache
from typing import Any

from django.template.defaultfilters import truncatechars
from django.urls import get_script_prefix, reverse
from django.utils.html import json_script
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext, ngettext, pgettext
from jinja2 import Environment, StrictUndefined


def environment(**options: Any) -> Environment:
    """A name that nothing gives a value is an error, not an empty place on the screen."""
    options |= {"undefined": StrictUndefined, "keep_trailing_newline": True}
    made = Environment(extensions=["jinja2.ext.i18n"], **options)
    made.install_gettext_callables(gettext, ngettext, newstyle=True, pgettext=pgettext)  # type: ignore[attr-defined]
    made.globals |= {"_": _translated, "url": _url}
    made.filters |= {"json_script": json_script, "truncatechars": truncatechars}
    return made


# Some forty words and ten addresses of a screen are the same with every label: found once a process.


def _translated(words: str) -> SafeString:
    return _in_language(get_language(), words)


@lru_cache(maxsize=1024)
def _in_language(_language: str | None, words: str) -> SafeString:
    return mark_safe(gettext(words))


def _url(name: str, *args: int) -> str:
    return _below(get_script_prefix(), name, args)


@lru_cache(maxsize=1024)
def _below(_prefix: str, name: str, args: tuple[int, ...]) -> str:
    return reverse(name, args=args)
