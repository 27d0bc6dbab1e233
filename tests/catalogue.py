"""The sentences of the product and their translations.

``python -m tests.catalogue`` writes config/locale/*/LC_MESSAGES/django.po anew from the code and compiles it:
translations that are there stay, new sentences come without one, sentences that are gone leave. Babel reads
and writes, so that no system package is needed.
"""

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize
from jinja2.ext import babel_extract

ROOT = Path(__file__).parent.parent
LOCALES = ROOT / "config" / "locale"
CODE = ("annotate", "calibration", "config", "evalsets")
KEYWORDS = {
    "_": None,
    "_lazy": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "ngettext_lazy": (1, 2),
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}


def languages() -> list[str]:
    return sorted(path.name for path in LOCALES.iterdir() if path.is_dir())


def po_of(language: str) -> Path:
    return LOCALES / language / "LC_MESSAGES" / "django.po"


def sources() -> Iterator[tuple[str, str]]:
    """Every file that may hold sentences, but for Jinja's, as Python for the reader, with its name."""
    for app in CODE:
        for path in sorted((ROOT / app).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(ROOT).as_posix(), path.read_text()
    for path in sorted((ROOT / "templates").rglob("*")):
        if path.suffix in {".html", ".txt"}:
            code = templatize(path.read_text(), origin=str(path))
            # What is no sentence comes out as the letter X, indented as in the page: not what Python takes.
            yield path.relative_to(ROOT).as_posix(), "\n".join(line.strip() for line in code.splitlines())


def sentences() -> Catalog:
    catalog = Catalog(charset="utf-8")
    for name, code in sources():
        found = extract("python", io.BytesIO(code.encode()), keywords=KEYWORDS, options={"encoding": "utf-8"})
        for _line, text, _comments, context in found:
            catalog.add(text, locations=[(name, None)], context=context)
    for path in sorted((ROOT / "templates").rglob("*.jinja")):
        with path.open("rb") as file:
            for _line, text, _comments, context in extract(babel_extract, file, keywords=KEYWORDS):
                catalog.add(text, locations=[(path.relative_to(ROOT).as_posix(), None)], context=context)
    return catalog


def catalogue_of(language: str) -> Catalog:
    with po_of(language).open("rb") as file:
        return read_po(file, locale=language)


def key_of(message: Message) -> tuple[str | None, str]:
    singular = message.id if isinstance(message.id, str) else message.id[0]
    return message.context, singular


def strings_of(message: Message) -> list[str]:
    return [message.string] if isinstance(message.string, str) else list(message.string or [""])


def is_translated(message: Message) -> bool:
    return all(strings_of(message))


def compiled(catalog: Catalog) -> bytes:
    made = io.BytesIO()
    write_mo(made, catalog)
    return made.getvalue()


def update(language: str) -> None:
    wanted, before = sentences(), catalogue_of(language)
    made = Catalog(
        locale=language,
        header_comment=f"# Touchstone in {language}",
        project="Touchstone",
        version="1",
        msgid_bugs_address=" ",
        last_translator=" ",
        language_team=language,
        fuzzy=False,
    )
    for message in wanted:
        if message.id:
            known = before.get(message.id, context=message.context)
            string = known.string if known and known.pluralizable == message.pluralizable else None
            made.add(
                message.id,
                string,
                locations=sorted(set(message.locations)),
                context=message.context,
                flags={flag for flag in message.flags if flag == "python-format"},
            )
    # No time of writing: the same sentences give the same file.
    made.creation_date = made.revision_date = datetime(2026, 1, 1, tzinfo=UTC)
    with po_of(language).open("wb") as file:
        write_po(file, made, width=0, sort_output=True, omit_header=False, include_lineno=False)
    po_of(language).with_suffix(".mo").write_bytes(compiled(catalogue_of(language)))


if __name__ == "__main__":
    for each in languages():
        update(each)
        left = [message for message in catalogue_of(each) if message.id and not is_translated(message)]
        print(f"{each}: {len(left)} without a translation")
