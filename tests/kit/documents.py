"""Runtimes with tables of documents to search."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.runtime import Running, running
from tests.kit.word_embedder import WordEmbedder, vector

MODEL = "builtin:minilm"
DOCUMENTS = (
    (1, "Rotate a key", "Open the console and rotate the access key every month.", "ops"),
    (2, "Bake bread", "Flour, water, salt and a long rest make good bread.", "food"),
    (3, "Bread and butter", "Butter on warm bread.", "food"),
    (4, "Scale a cluster", "Add executors and the cluster takes more queries.", "ops"),
    (5, "Keys of a piano", "A piano has 88 keys.", "music"),
    (6, "Nothing", None, "none"),
)


def documents(rows: Sequence[tuple[Any, ...]] = DOCUMENTS) -> pa.Table:
    """Return documents with the vectors of their bodies."""
    ids, titles, bodies, kinds = (list(each) for each in zip(*rows, strict=True))
    vectors = [None if body is None else vector(body).tolist() for body in bodies]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "title": titles,
            "body": pa.array(bodies, pa.string()),
            "kind": kinds,
            "body_embedding": pa.array(vectors, pa.list_(pa.float32(), len(vector("")))),
        }
    )


def write(folder: Path, name: str = "docs", rows: Sequence[tuple[Any, ...]] = DOCUMENTS) -> None:
    """Write documents to a file."""
    pq.write_table(documents(rows), folder / f"{name}.parquet")


DOCS = """
    datasets:
      - from: file:docs.parquet
        name: docs
        columns:
          - name: body
            embeddings: [{from: 'builtin:minilm', row_id: id}]
            full_text_search: {enabled: true, row_id: id}
"""
VECTORS = """
    datasets:
      - from: file:docs.parquet
        name: docs
        columns:
          - name: body
            embeddings: [{from: 'builtin:minilm', row_id: id}]
"""


@asynccontextmanager
async def searched(
    folder: Path, manifest: str, model: WordEmbedder | None = None, **options: Any
) -> AsyncIterator[Running]:
    """Serve a manifest whose texts are embedded by the model of the kit."""
    async with running(folder, manifest, **options) as runtime:
        use(runtime, model or WordEmbedder())
        yield runtime


def use(runtime: Running, model: WordEmbedder) -> None:
    """Have texts embedded by a model of the kit instead of the built-in one."""
    state = runtime.services.embeddings.states[MODEL]
    state.loaded = model
    state.is_ready()
    state.settled.set()


async def found(runtime: Running, text: str, *datasets: str, **fields: Any) -> Any:
    """Search, and return the results."""
    body = {"text": text, "datasets": datasets or ["docs"], **fields}
    answer = await runtime.api.post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"results", "duration_ms"}
    return answer.json()["results"]
