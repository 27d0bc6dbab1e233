"""The page of definitions: the generated docs/method.md as HTML, every entry with its anchor."""

import re
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

ANCHOR = re.compile(r"\s*\{#([\w-]+)\}\s*$")


def method_html() -> SafeString:
    path = Path(settings.BASE_DIR) / "docs" / "method.md"
    return _rendered(str(path), path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _rendered(path: str, changed: int) -> SafeString:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    text = Path(path).read_text(encoding="utf-8")
    tokens = markdown.parse(text)
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open":
            _anchor(heading, inline)
    return mark_safe(markdown.renderer.render(tokens, markdown.options, {}))


def _anchor(heading: Token, inline: Token) -> None:
    """Move a trailing {#name} of a heading into its id."""
    found = ANCHOR.search(inline.content)
    if found is None or not inline.children:
        return
    heading.attrSet("id", found[1])
    inline.children[-1].content = ANCHOR.sub("", inline.children[-1].content)
