"""Parquet, a few rows at a time."""

import math
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, BinaryIO

from evalsets.importing.findings import Findings, UnreadableFile
from evalsets.importing.jsonl import Row
from evalsets.importing.reading import USUAL_LIMITS, Limits, megabytes
from evalsets.importing.strictjson import PASSAGE_TEXT, NotStrictJSON, refuse_unstorable

AT_ONCE = 100


def rows(stream: BinaryIO, findings: Findings, limits: Limits = USUAL_LIMITS) -> Iterator[Row]:
    """The rows of a Parquet file with the types of JSON.

    Parameters
    ----------
    stream : binary file
        Seekable, not gzipped: Parquet compresses by itself.
    findings : Findings
        Gets a problem for every row with a value that JSON or a database cannot hold.
    limits : Limits
        `total` bounds what is unpacked.

    Yields
    ------
    Row
        `line` is the number of the row, from 1. NaN, which pandas writes for a missing number, is null; dates
        and times are ISO 8601, decimals are text.

    Raises
    ------
    UnreadableFile
        Not Parquet, damaged, or larger than the limit.
    """
    import pyarrow
    import pyarrow.parquet

    number = unpacked = 0
    stream.seek(0)
    try:
        file = pyarrow.parquet.ParquetFile(stream)
        for batch in file.iter_batches(batch_size=AT_ONCE):
            unpacked += batch.nbytes
            if unpacked > limits.total:
                raise UnreadableFile.at(
                    number + 1,
                    f"the file has more than {megabytes(limits.total)} unpacked, which is the limit",
                )
            size = batch.nbytes // max(1, len(batch))
            for record in batch.to_pylist():
                number += 1
                try:
                    fields = _plain(record)
                    refuse_unstorable(fields, PASSAGE_TEXT)
                except NotStrictJSON as error:
                    findings.problem(number, error.where, str(error), error.value)
                else:
                    yield Row(number, size, fields)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise UnreadableFile.at(None, f"not a Parquet file that can be read: {error}") from None
    if not number:
        raise UnreadableFile.at(None, "no rows: the file has columns and nothing in them")


def _plain(value: Any, where: str = "") -> Any:
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            raise NotStrictJSON("not a JSON number: infinite", where)
        return value
    if isinstance(value, dict):
        return {
            str(key): _plain(part, f"{where}.{key}" if where else str(key)) for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(part, f"{where}[{index}]") for index, part in enumerate(value)]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | timedelta):
        return str(value)
    raise NotStrictJSON(f"holds {type(value).__name__}, which is no text", where)
