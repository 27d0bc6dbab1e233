"""A quick chat completions endpoint for load tests: one process, one thread, and a count of all it did.

    python -m tests.bench.endpoint PORT_FILE [milliseconds] [share limited] [share silent] [share garbage]

`GET /counts` tells what was done so far; which call gets which treatment follows from a fixed seed.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path

SILENCE_SECONDS = 60.0  # longer than anybody waits


def completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted-1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
    ).encode()


GOOD = completion('{"reason": "because", "label": "supported"}')
GARBAGE = completion("I think that it is rather supported than not.")
LIMITED = b'{"error": {"message": "Rate limit reached", "type": "error"}}'


class Endpoint:
    def __init__(self, seconds: float, limited: float, silent: float, garbage: float):
        self.seconds, self.shares = seconds, (limited, silent, garbage)
        self.random = random.Random(1)
        self.done: Counter[str] = Counter()
        self.at_once = self.most_at_once = 0
        self.first: float | None = None

    def treatment(self) -> str:
        dice, edge = self.random.random(), 0.0
        for name, share in zip(("limited", "silent", "garbage"), self.shares, strict=True):
            edge += share
            if dice < edge:
                return name
        return "good"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (
                        int(line.split(b":")[1])
                        for line in head.lower().split(b"\r\n")
                        if b"content-length" in line
                    ),
                    0,
                )
                await reader.readexactly(length)
                if head.startswith(b"GET"):
                    self._write(writer, 200, json.dumps(self.counts()).encode())
                else:
                    await self._answer(reader, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.first = self.first or time.time()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        what = self.treatment()
        self.done[what] += 1
        try:
            if what == "silent":  # until the caller hangs up
                await asyncio.wait_for(reader.read(1), SILENCE_SECONDS)
                return
            await asyncio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        if what == "limited":
            self._write(writer, 429, LIMITED, b"Retry-After: 1\r\n")
        else:
            self._write(writer, 200, GARBAGE if what == "garbage" else GOOD)

    def _write(self, writer: asyncio.StreamWriter, status: int, body: bytes, more: bytes = b"") -> None:
        writer.write(
            b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b"
            % (status, more, len(body), body)
        )

    def counts(self) -> dict:
        return {**self.done, "most_at_once": self.most_at_once, "first": self.first}


async def main(port_file: str, milliseconds: str = "200", *shares: str) -> None:
    endpoint = Endpoint(int(milliseconds) / 1000, *[float(share) for share in (shares or ("0", "0", "0"))])
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
    half = Path(f"{port_file}.half")
    half.write_text(str(server.sockets[0].getsockname()[1]))
    half.rename(port_file)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
