"""The folder of files that stands in for a broker, with a writer and readers at the same time."""

import json
import os
import threading
import time
from pathlib import Path

import pytest
from kombu import Connection
from kombu.transport import filesystem

from config import embedded_broker


@pytest.fixture
def broker(tmp_path):
    embedded_broker.install()
    folder = str(tmp_path)
    options = {"data_folder_in": folder, "data_folder_out": folder, "control_folder": folder}
    with Connection("filesystem://localhost", transport_options=options | {"polling_interval": 0.01}) as made:
        yield made


def test_url_of_the_embedded_broker_gets_our_transport(broker):
    assert isinstance(broker.transport, embedded_broker.Transport)


def test_message_comes_back_whole(broker):
    with broker.SimpleQueue("work") as queue:
        queue.put({"run": 7, "text": "käse"})
        assert queue.get(timeout=5).payload == {"run": 7, "text": "käse"}


def test_message_has_its_name_only_when_it_is_whole(broker, tmp_path, monkeypatch):
    """A worker that looks while a message is being written must not find it."""
    seen = []
    replace = os.replace

    def look_then_replace(source, target):
        seen.extend(path.name for path in tmp_path.iterdir() if path.name.endswith(".msg"))
        assert json.loads(Path(source).read_text())
        replace(source, target)

    monkeypatch.setattr(embedded_broker.os, "replace", look_then_replace)
    with broker.SimpleQueue("named") as queue:  # kombu remembers for the whole process which queues are bound
        queue.put({"run": 1})
        assert seen == []
        assert queue.get(timeout=5).payload == {"run": 1}


def half_written_table(broker, tmp_path):
    broker.default_channel._queue_bind("work", "work", "", "work")
    return next(tmp_path.glob("*.exchange"))


def test_table_of_queues_is_read_again_while_somebody_writes_it(broker, tmp_path):
    table = half_written_table(broker, tmp_path)
    whole = table.read_bytes()
    table.write_bytes(b"")
    threading.Timer(0.2, table.write_bytes, [whole]).start()
    started = time.monotonic()
    assert [row.queue for row in broker.default_channel.get_table("work")] == ["work"]
    assert time.monotonic() - started >= 0.1


def test_without_our_channel_a_half_written_table_is_an_error(broker, tmp_path):
    half_written_table(broker, tmp_path).write_bytes(b"")
    with pytest.raises(json.JSONDecodeError):
        filesystem.Channel.get_table(broker.default_channel, "work")
