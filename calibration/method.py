"""The page of definitions: the generated docs/method.md as HTML, every entry with its anchor."""

from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

from calibration.stats.method_page import Entry, anchor_of, entries


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
            heading.attrSet("id", anchor_of(inline.content))
    return mark_safe(markdown.renderer.render(tokens, markdown.options, {}))


@lru_cache(maxsize=1)
def definitions() -> list[Entry]:
    """The entries of the page one by one, with their Markdown."""
    return [entry for entry in entries() if entry.title]
