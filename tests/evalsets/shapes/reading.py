"""Reading an invented file by a mapping."""

import io
import json

from evalsets.importing import ColumnMap, Findings, read_records


def stream(value) -> io.BytesIO:
    return io.BytesIO((value if isinstance(value, str) else json.dumps(value)).encode())


def lines(*records) -> io.BytesIO:
    return io.BytesIO("".join(json.dumps(record) + "\n" for record in records).encode())


def read(file, mapping: ColumnMap, name="file.json"):
    findings = Findings()
    records = [record for record, _new in read_records(file, name, findings, mapping=mapping)]
    findings.raise_if_refused()
    return records, findings.notices


def problems(file, mapping: ColumnMap, name="file.json"):
    findings = Findings()
    list(read_records(file, name, findings, mapping=mapping))
    return [(problem.line, problem.field, problem.message) for problem in findings.problems]
