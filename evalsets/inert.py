"""Cells of a CSV file that a spreadsheet would run as a formula, made plain text."""

from string import ascii_letters, digits

STARTERS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_HARMLESS = f'{ascii_letters}{digits}{{["'  # at the start of nearly every cell


def inert(cell: str) -> str:
    """The same text with an apostrophe in front, where a spreadsheet would otherwise compute something.

    Blanks do not protect: a spreadsheet trims them before it looks.
    """
    if cell[:1] in _HARMLESS:
        return cell
    return f"'{cell}" if cell.lstrip(" \u00a0").startswith(STARTERS) else cell
