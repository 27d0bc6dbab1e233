"""Database triggers that keep frozen rows frozen, whoever writes: our code, a shell or the admin.

They forbid changing or removing items of a frozen version and responses, passages and claims of a frozen run,
adding to them, and thawing a version or run. Child claims (those with a parent) may be added to a frozen run:
a split is an overlay.
"""

from collections.abc import Callable, Iterable, Iterator

from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate

Rule = tuple[str, str, str, str]  # name, table, event, condition

_ITEM = "SELECT 1 FROM evalsets_evalsetversion v WHERE v.id = {row}.version_id AND v.state = 'frozen'"
_RESPONSE = "SELECT 1 FROM evalsets_systemrun r WHERE r.id = {row}.run_id AND r.state = 'frozen'"
_PART = (
    "SELECT 1 FROM evalsets_response p JOIN evalsets_systemrun r ON r.id = p.run_id "
    "WHERE p.id = {row}.response_id AND r.state = 'frozen'"
)

# table -> (what makes its row frozen, extra condition on an insert)
_CHILDREN = {
    "evalsets_item": (_ITEM, ""),
    "evalsets_response": (_RESPONSE, ""),
    "evalsets_passage": (_PART, ""),
    "evalsets_claim": (_PART, "NEW.parent_id IS NULL AND "),
}
_PARENTS = ("evalsets_evalsetversion", "evalsets_systemrun")
MESSAGE = "frozen: this row can no longer be changed"


def frozen_rules() -> Iterator[Rule]:
    for table, (frozen, on_insert) in _CHILDREN.items():
        short = table.removeprefix("evalsets_")
        yield f"frozen_{short}_insert", table, "INSERT", f"{on_insert}EXISTS ({frozen.format(row='NEW')})"
        yield (
            f"frozen_{short}_update",
            table,
            "UPDATE",
            (f"EXISTS ({frozen.format(row='OLD')}) OR EXISTS ({frozen.format(row='NEW')})"),
        )
        yield f"frozen_{short}_delete", table, "DELETE", f"EXISTS ({frozen.format(row='OLD')})"
    for table in _PARENTS:
        short = table.removeprefix("evalsets_")
        changed = "NEW.state <> 'frozen' OR NEW.content_hash <> OLD.content_hash OR NEW.number <> OLD.number"
        yield f"frozen_{short}_update", table, "UPDATE", f"OLD.state = 'frozen' AND ({changed})"
        yield f"frozen_{short}_delete", table, "DELETE", "OLD.state = 'frozen'"


def statements_to_create(vendor: str, rules: Iterable[Rule]) -> list[str]:
    if vendor == "sqlite":
        return [
            f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE {event} ON {table} WHEN {condition} "
            f"BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
            for name, table, event, condition in rules
        ]
    made = []
    for name, table, event, condition in rules:
        row = "OLD" if event == "DELETE" else "NEW"
        made.append(
            f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF {condition} THEN "
            f"RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; "
            f"END IF; RETURN {row}; END $$"
        )
        made.append(
            f"CREATE OR REPLACE TRIGGER {name} BEFORE {event} ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {name}()"
        )
    return made


def statements_to_drop(vendor: str, rules: Iterable[Rule]) -> list[str]:
    if vendor == "sqlite":
        return [f"DROP TRIGGER IF EXISTS {name}" for name, *_ in rules]
    made = []
    for name, table, *_ in rules:
        made.append(f"DROP TRIGGER IF EXISTS {name} ON {table}")
        made.append(f"DROP FUNCTION IF EXISTS {name}()")
    return made


def create(connection, rules: Iterable[Rule]) -> None:
    with connection.cursor() as cursor:
        for statement in statements_to_create(connection.vendor, rules):
            cursor.execute(statement)


def drop(connection, rules: Iterable[Rule]) -> None:
    with connection.cursor() as cursor:
        for statement in statements_to_drop(connection.vendor, rules):
            cursor.execute(statement)


def append_only(*tables: str) -> Iterator[Rule]:
    """Rows of these tables are written once."""
    for table in tables:
        for event in ("UPDATE", "DELETE"):
            yield f"append_only_{table}_{event.lower()}", table, event, "1 = 1"


def keep(app_config, rules: Callable[[], Iterable[Rule]]) -> None:
    """Lay the triggers after every migrate, and lift them before it.

    SQLite rebuilds a table to alter it and loses its triggers, and a data migration must be able to write.
    """

    def lift(sender, using, **kwargs):
        drop(connections[using], rules())

    def lay(sender, using, **kwargs):
        there = connections[using].introspection.table_names()
        create(connections[using], [rule for rule in rules() if rule[1] in there])

    pre_migrate.connect(lift, sender=app_config, weak=False, dispatch_uid=f"lift {app_config.name}")
    post_migrate.connect(lay, sender=app_config, weak=False, dispatch_uid=f"lay {app_config.name}")
