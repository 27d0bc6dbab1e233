"""Cells of a CSV file that a spreadsheet would run as a formula, made plain text."""

STARTERS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def inert(cell: str) -> str:
    """The same text with an apostrophe in front, where a spreadsheet would otherwise compute something.

    Blanks do not protect: a spreadsheet trims them before it looks.
    """
    return f"'{cell}" if cell.lstrip(" \u00a0").startswith(STARTERS) else cell
