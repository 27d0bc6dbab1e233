"""The embedded broker: kombu's folder of files, made safe for several processes that start at once.

kombu writes a message into the very file that a worker looks for, so a worker may read it half written and
stop for good; and its table of queues is empty for a moment while another process writes it.
"""

import json
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem
from kombu.utils.json import dumps

ATTEMPTS = 40
PAUSE_SECONDS = 0.05


def install() -> None:
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"


class Channel(filesystem.Channel):
    # kombu calls it payload in one base class and message in another.
    def _put(self, queue: Any, message: Any, **kwargs: Any) -> None:  # type: ignore[override]
        """The message appears under its name when it is whole."""
        folder = Path(self.data_folder_out)
        name = f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        draft = folder / f"{name}.draft"
        draft.write_text(dumps(message))
        os.replace(draft, folder / name)

    def _queue_bind(self, *names: Any) -> None:
        _when_whole(lambda: super(Channel, self)._queue_bind(*names))

    def get_table(self, exchange: str) -> Any:
        return _when_whole(lambda: super(Channel, self).get_table(exchange))


class Transport(filesystem.Transport):
    Channel = Channel


def _when_whole(read: Callable[[], Any]) -> Any:
    """Read again while another process is still writing."""
    for _attempt in range(ATTEMPTS - 1):
        try:
            return read()
        except json.JSONDecodeError:
            time.sleep(PAUSE_SECONDS)
    return read()
