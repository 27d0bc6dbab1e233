"""Triggers of this app: history is written once, and tallies move with the assignments they count."""

from collections.abc import Iterator

from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate

from evalsets.triggers import append_only

ASSIGNMENT, TALLY = "annotate_assignment", "annotate_tally"
EVENTS = ("insert", "update", "delete")


def history_rules():
    return append_only("annotate_annotationevent", "annotate_adjudication")


def keep_tallies(app_config) -> None:
    """As the other triggers: lifted before a migration, laid after it. What it moved meanwhile is counted."""

    def lift(sender, using, **kwargs):
        _execute(connections[using], _to_drop(connections[using].vendor))

    def lay(sender, using, **kwargs):
        connection = connections[using]
        if {ASSIGNMENT, TALLY} <= set(connection.introspection.table_names()):
            _execute(connection, [f"DELETE FROM {TALLY}", COUNT, *_to_create(connection.vendor)])

    pre_migrate.connect(lift, sender=app_config, weak=False, dispatch_uid="lift tallies")
    post_migrate.connect(lay, sender=app_config, weak=False, dispatch_uid="lay tallies")


def _execute(connection, statements) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


COUNT = f"""
    INSERT INTO {TALLY} (round_id, grader_id, total, done)
    SELECT round_id, grader_id, count(*), sum(CASE state WHEN 'done' THEN 1 ELSE 0 END)
    FROM {ASSIGNMENT} GROUP BY round_id, grader_id"""

ADD = f"""
    ON CONFLICT (round_id, grader_id) DO UPDATE
    SET total = {TALLY}.total + excluded.total, done = {TALLY}.done + excluded.done"""


def _to_create(vendor: str) -> Iterator[str]:
    yield from _for_sqlite() if vendor == "sqlite" else _for_postgres()


def _to_drop(vendor: str) -> Iterator[str]:
    for event in EVENTS:
        if vendor == "sqlite":
            yield f"DROP TRIGGER IF EXISTS tally_{event}"
        else:
            yield f"DROP TRIGGER IF EXISTS tally_{event} ON {ASSIGNMENT}"
            yield f"DROP FUNCTION IF EXISTS tally_{event}()"


def _for_sqlite() -> Iterator[str]:
    def moved(row: str, by: int) -> str:
        return (
            f"INSERT INTO {TALLY} (round_id, grader_id, total, done) "
            f"VALUES ({row}.round_id, {row}.grader_id, {by}, {by} * ({row}.state = 'done')) {ADD};"
        )

    what = {
        "insert": moved("NEW", 1),
        "update": moved("OLD", -1) + moved("NEW", 1),
        "delete": moved("OLD", -1),
    }
    for event in EVENTS:
        of = " OF round_id, grader_id, state" if event == "update" else ""
        yield (
            f"CREATE TRIGGER IF NOT EXISTS tally_{event} AFTER {event.upper()}{of} ON {ASSIGNMENT} "
            f"BEGIN {what[event]} END"
        )


def _for_postgres() -> Iterator[str]:
    """Once a statement, since a round opens with thousands of assignments; tallies are locked in order."""

    def rows(table: str, by: int) -> str:
        return f"SELECT round_id, grader_id, {by} AS n, {by} * (state = 'done')::int AS d FROM {table}"

    what = {
        "insert": (rows("added", 1), "NEW TABLE AS added"),
        "update": (
            f"{rows('removed', -1)} UNION ALL {rows('added', 1)}",
            "OLD TABLE AS removed NEW TABLE AS added",
        ),
        "delete": (rows("removed", -1), "OLD TABLE AS removed"),
    }
    for event in EVENTS:
        moved, tables = what[event]
        yield (
            f"CREATE OR REPLACE FUNCTION tally_{event}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"INSERT INTO {TALLY} (round_id, grader_id, total, done) "
            f"SELECT round_id, grader_id, sum(n), sum(d) FROM ({moved}) AS moved "
            f"GROUP BY round_id, grader_id HAVING sum(n) <> 0 OR sum(d) <> 0 "
            f"ORDER BY round_id, grader_id {ADD}; RETURN NULL; END $$"
        )
        yield (
            f"CREATE OR REPLACE TRIGGER tally_{event} AFTER {event.upper()} ON {ASSIGNMENT} "
            f"REFERENCING {tables} FOR EACH STATEMENT EXECUTE FUNCTION tally_{event}()"
        )
