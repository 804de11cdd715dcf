"""The time that the chat endpoint adds to a provider: first tokens, and many streams at once."""

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import openai
import orjson

from bench import servers
from bench.report import Figure, Section
from bench.settings import Settings

_ROUNDS = 400
_WARM = 50
_GOAL_MS = 3.0
_STREAMS = 200
_PER_S = 50
_TOKENS = 500
_GOAL_LATE = 1.05


def measure(_settings: Settings) -> Section:
    """Measure against a double that is called directly, by the same client."""
    with TemporaryDirectory() as folder, double() as direct:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text(
            "version: v1\nname: models\nmodels:\n  - from: openai:m\n    name: m\n"
            f"    params: {{endpoint: '{direct}/v1'}}\n"
        )
        with servers.caraway(manifest) as (ours, process):
            first = asyncio.run(first_tokens(direct, ours))
            alone, through = streams(direct, ours, process.pid)
    added_ms = first[1] - first[0]
    figures = [
        Figure(
            "time to the first token, median; the `openai` client calling the provider directly",
            f"{first[1]:.2f} ms", f"{first[0]:.2f} ms", first[1] / first[0],
            f"≤ {_GOAL_MS:g} ms more", added_ms <= _GOAL_MS,
        ),
        Figure(
            f"{_STREAMS} streams of {_PER_S} tokens/s for {_TOKENS // _PER_S} s, Caraway on one "
            "core; without Caraway",
            f"{through:.2f} s", f"{alone:.2f} s", through / alone, f"≤ {_GOAL_LATE:g}",
            through <= _GOAL_LATE * alone,
        ),
    ]  # fmt: skip
    return Section("models", figures, f"The endpoint adds {added_ms:.2f} ms to the first token.")


@contextlib.contextmanager
def double() -> Iterator[str]:
    """Run the double of a provider; yield its address."""
    command = [sys.executable, "-m", "bench.model_double"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


async def first_tokens(direct: str, ours: str) -> tuple[float, float]:
    """Return the median milliseconds to the first token, both ways, asked in turn."""
    clients = [openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="x") for url in (direct, ours)]
    found: list[list[float]] = [[], []]
    for number in range(_ROUNDS + _WARM):
        for way, client in enumerate(clients):
            started = time.perf_counter()
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}], stream=True, max_tokens=3
            )
            await anext(stream)
            elapsed_ms = (time.perf_counter() - started) * 1000
            if number >= _WARM:
                found[way].append(elapsed_ms)
            async for _ in stream:
                pass
    for client in clients:
        await client.close()
    return statistics.median(found[0]), statistics.median(found[1])


def streams(direct: str, ours: str, pid: int) -> tuple[float, float]:
    """Return the seconds until all streams ended, without Caraway and through it."""
    every = sorted(os.sched_getaffinity(0))
    alone = asyncio.run(_all_streams(direct))
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), every[:1])
    return alone, asyncio.run(_all_streams(ours))


async def _all_streams(url: str) -> float:
    started = time.perf_counter()
    counts = await asyncio.gather(*(_one_stream(url) for _ in range(_STREAMS)))
    if {*counts} != {_TOKENS}:
        raise RuntimeError(f"a stream of {url} was not whole: {min(counts)} tokens")
    return time.perf_counter() - started


async def _one_stream(url: str) -> int:
    """Read one stream without a client, whose work would hide that of the server."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    body = orjson.dumps(
        {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True,
         "max_tokens": _TOKENS, "seed": 1000 // _PER_S}
    )  # fmt: skip
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        + f"content-length: {len(body)}\r\n\r\n".encode() + body
    )  # fmt: skip
    tokens, tail = 0, b""
    while part := await reader.read(65536):
        found = tail + part
        tokens += found.count(b'"content":"') - tail.count(b'"content":"')
        tail = found[-20:]
        if b"[DONE]" in found:
            break
    writer.close()
    return tokens
