"""A list that lives on disk: written once, read as often as wanted, whatever its length."""

import marshal
import tempfile
from collections.abc import Iterator
from os import SEEK_END

ROWS_AT_ONCE = 500
CHARACTERS_AT_ONCE = 4_000_000
IN_MEMORY = 1024 * 1024
_LENGTH = 8  # bytes
_PLAIN = 2  # looks for no object that it has written before: four times as fast


class Spool:
    """Rows of plain values (what JSON can hold, and tuples), in a temporary file that goes with the object.

    They are kept in batches that are bounded in rows and in characters.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (closed with the object)
        self._length = 0
        self._batch: list[tuple] = []
        self._characters = 0

    def append(self, row: tuple, characters: int = 0) -> None:
        self._batch.append(row)
        self._length += 1
        self._characters += characters
        if len(self._batch) >= ROWS_AT_ONCE or self._characters >= CHARACTERS_AT_ONCE:
            self._write()

    def _write(self) -> None:
        if self._batch:
            written = marshal.dumps(self._batch, _PLAIN)
            self._file.seek(0, SEEK_END)
            self._file.write(len(written).to_bytes(_LENGTH))
            self._file.write(written)
            self._batch, self._characters = [], 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[tuple]:
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[tuple]]:
        self._write()
        self._file.seek(0)
        while length := self._file.read(_LENGTH):
            yield marshal.loads(self._file.read(int.from_bytes(length)))
