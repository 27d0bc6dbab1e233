"""What calling costs by itself: the bare library in threads, without a database, a prompt or a verdict.

    python -m tests.bench.bare_calls ADDRESS calls concurrency

One process, as one worker is; it prints a JSON object with the seconds and the CPU that the calls took.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import openai

MESSAGES = [("system", "m" * 4000), ("user", "m" * 400)]  # about as long as a prompt of the benchmark


def main(address: str, calls: str, concurrency: str) -> None:
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="not-needed", max_retries=0)

    def ask(_number: int) -> str | None:
        made = client.chat.completions.create(
            model="m",
            messages=[{"role": role, "content": text} for role, text in MESSAGES],  # type: ignore[misc]
            temperature=0,
        )
        return made.choices[0].message.content

    with ThreadPoolExecutor(int(concurrency)) as pool:
        list(pool.map(ask, range(int(concurrency))))  # threads, connections and the library's models
        started, used = time.monotonic(), time.process_time()
        list(pool.map(ask, range(int(calls))))
    print(json.dumps({"seconds": time.monotonic() - started, "cpu": time.process_time() - used}))


if __name__ == "__main__":
    main(*sys.argv[1:])
