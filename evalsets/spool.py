"""A list that lives on disk: written once, read as often as wanted, whatever its length."""

import json
import tempfile
from collections.abc import Iterator


class Spool:
    """Rows of JSON values, kept in a temporary file that goes away with the object."""

    def __init__(self):
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 (closed with the object)
        self._length = 0

    def append(self, row: tuple) -> None:
        self._file.write(json.dumps(row) + "\n")
        self._length += 1

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple]:
        self._file.seek(0)
        for line in self._file:
            yield tuple(json.loads(line))
        self._file.seek(0, 2)
