"""What counts as no text at all."""

import unicodedata

_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # fillers: letters by category, yet invisible


def is_blank(text: str) -> bool:
    """True when nothing of the text could be seen: only white space, zero-width and format characters."""
    if text[:1].isalnum() and text[0] not in _BLANK_LETTERS:
        return False  # nearly every text: seen at its first letter
    return all(
        character.isspace() or character in _BLANK_LETTERS or unicodedata.category(character) == "Cf"
        for character in text
    )
