"""A fresh database gets all tables at once; one that grew in steps must have come to the same."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from django.conf import settings

from tests.processes import app_environment

AT_ONCE = """
import django
from django.core.management import call_command

django.setup()
call_command("migrate", verbosity=0)
"""
IN_STEPS = f"""
from django.db.migrations.loader import MigrationLoader

load_disk = MigrationLoader.load_disk

def without_tables(self):
    load_disk(self)
    for key in [key for key in self.disk_migrations if key[1] == "0001_tables"]:
        del self.disk_migrations[key]

MigrationLoader.load_disk = without_tables
{AT_ONCE}"""


def run(script: str, database: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", script],
        cwd=settings.BASE_DIR,
        env=app_environment(database.parent, DATABASE_URL=f"sqlite:///{database}"),
        check=True,
        timeout=200,
    )


def schema_of(database: Path) -> dict[tuple[str, str], list[str]]:
    """Every table, index and trigger, without the order of the columns."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
        ).fetchall()
    return {(kind, name): sorted(re.findall(r"[^\s,()]+", sql)) for kind, name, sql in rows}


@pytest.mark.slow
def test_tables_made_at_once_are_those_of_the_steps(tmp_path):
    at_once, in_steps = tmp_path / "at_once.sqlite3", tmp_path / "in_steps.sqlite3"
    run(AT_ONCE, at_once)
    run(IN_STEPS, in_steps)
    assert len(schema_of(at_once)) > 300
    assert schema_of(at_once) == schema_of(in_steps)


def test_a_step_that_is_added_stands_after_the_tables():
    """What the tables made at once replace is the whole of the steps that were there."""
    for application in ("annotate", "calibration", "evalsets"):
        folder = Path(settings.BASE_DIR) / application / "migrations"
        replaced = re.findall(rf'\("{application}", "(\d\w+)"\),', (folder / "0001_tables.py").read_text())
        steps = sorted(path.stem for path in folder.glob("0*.py") if path.stem != "0001_tables")
        assert steps[: len(replaced)] == sorted(replaced)
