"""The importers know no framework, and the documentation knows every field."""

import subprocess
import sys
from pathlib import Path

from evalsets.importing.labelfile import COLUMNS
from evalsets.importing.validate import KNOWN_FIELDS

ROOT = Path(__file__).resolve().parents[2]


def test_the_pure_modules_import_no_django():
    program = (
        "import sys, evalsets.importing, evalsets.hashing, evalsets.text;"
        "sys.exit(any(name.split('.')[0] == 'django' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0


def test_every_field_is_documented():
    text = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")
    assert [name for name in (*KNOWN_FIELDS, *COLUMNS) if f"`{name}`" not in text] == []
