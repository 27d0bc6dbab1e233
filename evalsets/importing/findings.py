"""What an import found: problems that refuse the file, and notices that do not."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

MOST_LISTED = 1000
VALUE_LENGTH = 80
_NOT_GIVEN = object()


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason to refuse a file.

    Attributes
    ----------
    line : int or None
        Physical line in the unpacked file, from 1. None when the file as a whole is meant.
    field : str
        The key or column, with the place inside it: ``claims[0].text``. Empty when the whole line is meant.
    message : str
        One sentence that says what is wrong and what was expected.
    value : str
        The first 80 characters of what stood there.
    """

    line: int | None
    field: str
    message: str
    value: str = ""

    def as_json(self) -> dict:
        return {"line": self.line, "field": self.field, "message": self.message, "value": self.value}

    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else "file"
        named = f", {self.field}" if self.field else ""
        value = f" [{self.value}]" if self.value else ""
        return f"{where}{named}: {self.message}{value}"


class ImportRefused(Exception):
    """The file was refused, nothing of it was stored.

    Attributes
    ----------
    problems : list of Problem
        At most `MOST_LISTED` of them.
    left_out : int
        How many more there are.
    """

    def __init__(self, problems: Iterable[Problem], left_out: int = 0):
        self.problems = list(problems)
        self.left_out = left_out
        super().__init__("; ".join(str(problem) for problem in self.problems[:3]))


class UnreadableFile(Exception):
    """Reading cannot go on after this problem."""

    def __init__(self, problem: Problem):
        self.problem = problem
        super().__init__(str(problem))

    @classmethod
    def at(cls, line: int | None, message: str, value: object = _NOT_GIVEN) -> "UnreadableFile":
        return cls(Problem(line, "", message, "" if value is _NOT_GIVEN else shown(value)))


def shown(value: object) -> str:
    """The first 80 characters of a value, with characters that cannot be stored written as escapes."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return storable(text[:VALUE_LENGTH])


def type_name(value: object) -> str:
    """The JSON name of a value's type, with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a string", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names[type(value)]


@dataclass
class Findings:
    """Collects problems (listed up to a limit, then counted) and notices (merged by text)."""

    problems: list[Problem] = field(default_factory=list)
    left_out: int = 0
    _notices: dict[str, list[int]] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def problem(self, line: int | None, where: str, message: str, value: object = _NOT_GIVEN) -> None:
        value = "" if value is _NOT_GIVEN else shown(value)
        self.add(Problem(line, shown(where), storable(message), value))

    def add(self, problem: Problem) -> None:
        if len(self.problems) < MOST_LISTED:
            self.problems.append(problem)
        else:
            self.left_out += 1

    def notice(self, text: str, line: int | None = None) -> None:
        text = storable(text)
        if text not in self._counts and len(self._counts) >= MOST_LISTED:
            text = "More kinds of notices than can be listed were left out."
        self._counts[text] = self._counts.get(text, 0) + 1
        lines = self._notices.setdefault(text, [])
        if line is not None and len(lines) < 3:
            lines.append(line)

    @property
    def notices(self) -> list[str]:
        """Each notice once, with the number of times and the first lines."""
        return [_with_lines(text, self._notices[text], count) for text, count in self._counts.items()]

    @property
    def count(self) -> int:
        """How many problems there are, the unlisted among them."""
        return len(self.problems) + self.left_out

    @property
    def refused(self) -> bool:
        return bool(self.problems)

    def raise_if_refused(self) -> None:
        if self.problems:
            raise ImportRefused(self.problems, self.left_out)


def storable(text: str) -> str:
    """The text with NUL and lone surrogates written as escapes."""
    return text.replace("\0", "\\u0000").encode("utf-8", "backslashreplace").decode("utf-8")


def _with_lines(text: str, lines: list[int], count: int) -> str:
    if not lines:
        return text
    named = ", ".join(str(line) for line in lines)
    if count == 1:
        return f"{text} (line {named})"
    more = f" and {count - len(lines)} more" if count > len(lines) else ""
    return f"{text} (lines {named}{more})"
