"""Tokens that a local model makes in a second, through Caraway and by its runtime alone.

The runtime alone is `xllamacpp` in a process of its own, called without HTTP and with the same
parameters. Both answer the same prompt with the same tokens, in turn, alone and twice at once.
"""

import contextlib
import json
import multiprocessing
import statistics
import threading
import time
import urllib.request
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench import servers
from bench.report import Figure, Section
from bench.settings import Settings
from tests.kit import packaged_models

_TOKENS = 128
_ROUNDS = 6
_AT_ONCE = (1, 2)
_THREADS = 1
_PARALLEL = 2
_CONTEXT = 2048
_GOAL = 0.9
_LOAD_S = 120.0
_ANSWER_S = 300.0
_BODY = {
    "model": "local",
    "messages": [{"role": "user", "content": "Tell a long story of a river, a bridge and a town."}],
    "max_tokens": _TOKENS,
    "temperature": 0,
    "logit_bias": {"2": -100},
    "stream": True,
}
_MANIFEST = """version: v1
kind: Caraway
name: local
models:
  - from: file:{file}
    name: local
    params: {{threads: {threads}, parallel: {parallel}, context_length: {context}}}
"""


def measure(_settings: Settings) -> Section:
    """Let both answer in turn, and compare the medians of their rates."""
    model = packaged_models.fetched(packaged_models.SMOLLM2)
    figures = []
    with TemporaryDirectory() as folder, _Bare(model) as bare:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text(
            _MANIFEST.format(file=model, threads=_THREADS, parallel=_PARALLEL, context=_CONTEXT)
        )
        with servers.caraway(manifest) as (url, _):
            _wait_until_loaded(url)
            for count in _AT_ONCE:
                rates = [
                    (_rate(lambda: _asked(url), count), bare.rate(count)) for _ in range(_ROUNDS)
                ]
                ours, alone = (statistics.median(column) for column in zip(*rates[1:], strict=True))
                what = "one answer" if count == 1 else f"{count} answers at once"
                figures.append(
                    Figure(
                        f"tokens of a local model (135 million weights), {what}; `xllamacpp`",
                        f"{ours:.0f} /s",
                        f"{alone:.0f} /s",
                        ours / alone,
                        f"≥ {_GOAL:g}",
                        ours >= _GOAL * alone,
                    )
                )
    return Section("local-models", figures, "")


def _rate(ask: Callable[[], int], count: int) -> float:
    """Return the tokens a second of some answers at once."""
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(ask())) for _ in range(count)]
    began = time.perf_counter()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if found != [_TOKENS] * count:
        raise RuntimeError(f"an answer has not {_TOKENS} tokens: {found}")
    return sum(found) / (time.perf_counter() - began)


def _asked(url: str) -> int:
    """Ask for a stream, and count the pieces of its text as they come."""
    request = urllib.request.Request(
        f"{url}/v1/chat/completions",
        json.dumps(_BODY).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:
        return sum(_tokens(line[6:]) for line in answer if line.startswith(b"data: {"))


def _tokens(event: bytes) -> int:
    choices = json.loads(event)["choices"]
    return int(bool(choices and choices[0]["delta"].get("content")))


def _wait_until_loaded(url: str) -> None:
    until = time.monotonic() + _LOAD_S
    while True:
        with urllib.request.urlopen(f"{url}/v1/models?status=true", timeout=10) as answer:
            (model,) = json.loads(answer.read())["data"]
        if model["status"] == "ready":
            return
        if time.monotonic() > until or model["status"] == "error":
            raise RuntimeError(f"the model was not loaded: {model}")
        time.sleep(0.2)


class _Bare:
    """The runtime in a process of its own, which serves nothing."""

    def __init__(self, model: Path) -> None:
        self._model = model

    def __enter__(self) -> "_Bare":
        spawning = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_answer, args=(str(self._model), theirs))
        self._process.start()
        # With no other end here, the pipe shows the end of the process.
        theirs.close()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(0)
        self._process.join(_LOAD_S)
        self._process.kill()

    def rate(self, count: int) -> float:
        """Return the tokens a second of some answers at once."""
        self._pipe.send(count)
        if not self._pipe.poll(_ANSWER_S):
            raise RuntimeError("the runtime alone did not answer")
        return float(self._pipe.recv())


def _answer(model: str, pipe: Connection) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_parallel = _PARALLEL
    params.n_ctx = _CONTEXT * _PARALLEL
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = _THREADS
    params.ui = False
    params.offline = True
    params.verbosity = 1
    server = xllamacpp.Server(params)

    def ask() -> int:
        found = 0

        def take(part: Any) -> bool:
            nonlocal found
            for each in part if isinstance(part, list) else [part]:
                choices = each.get("choices")
                found += bool(choices and choices[0]["delta"].get("content"))
            return False

        server.handle_chat_completions(_BODY, take)
        return found

    while count := pipe.recv():
        pipe.send(_rate(ask, count))
