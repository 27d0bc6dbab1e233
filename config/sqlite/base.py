"""SQLite for several graders at once: whoever waits for the write lock asks for it often, one of a process.

SQLite's own waiting sleeps longer the longer it has waited, up to a tenth of a second: whoever came last is
served first, and some wait for seconds. Here the threads of a process stand in line, and only its head asks.

A statement is rewritten to SQLite's marks for values once, not with every key of a grader.
"""

import threading
import time
from collections import defaultdict
from functools import lru_cache
from typing import Any

from django.db.backends.sqlite3 import base
from django.db.utils import OperationalError

ASK_FOR_MS = 3  # SQLite asks after 1 and after 3 milliseconds, then we start anew
KEPT_UP_TO = 5_000  # characters of a statement; one with many rows is not sent twice
_lines: defaultdict[str, Any] = defaultdict(threading.Lock)


_Wrapper: Any = base.DatabaseWrapper  # the stubs leave out what is overridden here
_Cursor: Any = base.SQLiteCursorWrapper


class Cursor(_Cursor):
    def convert_query(self, query: str, *, param_names: list[str] | None = None) -> str:
        if param_names is None and len(query) <= KEPT_UP_TO:
            return _with_marks(query)
        return super().convert_query(query, param_names=param_names)


@lru_cache(maxsize=512)
def _with_marks(query: str) -> str:
    return _Cursor.convert_query(None, query)


class DatabaseWrapper(_Wrapper):
    _line: Any = None  # held while a transaction is under way

    def create_cursor(self, name: str | None = None) -> Any:
        return self.connection.cursor(factory=Cursor)

    def _start_transaction_under_autocommit(self) -> None:
        seconds = self.settings_dict["OPTIONS"].get("timeout", 5)
        line = _lines[str(self.settings_dict["NAME"])]
        deadline = time.monotonic() + seconds
        if not line.acquire(timeout=seconds):
            raise OperationalError("database is locked")
        self._line = line
        try:
            self._ask_until(deadline, round(1000 * seconds))
        except BaseException:
            self._leave()
            raise

    def _ask_until(self, deadline: float, usual_ms: int) -> None:
        self._wait_at_most(ASK_FOR_MS)
        try:
            while True:
                try:
                    return super()._start_transaction_under_autocommit()
                except OperationalError as error:
                    if "locked" not in str(error) or time.monotonic() > deadline:
                        raise
        finally:
            self._wait_at_most(usual_ms)

    def _wait_at_most(self, milliseconds: int) -> None:
        self.connection.execute(f"PRAGMA busy_timeout = {milliseconds}").close()

    def _leave(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.release()

    def _commit(self) -> Any:
        try:
            return super()._commit()
        finally:
            self._leave()

    def _rollback(self) -> Any:
        try:
            return super()._rollback()
        finally:
            self._leave()

    def _close(self) -> Any:
        try:
            return super()._close()
        finally:
            self._leave()
