"""Searches by meaning alone."""

from pathlib import Path

import numpy as np

from tests.kit import documents
from tests.kit.documents import VECTORS, found, searched
from tests.kit.word_embedder import vector


async def test_the_nearest_documents_come_first(tmp_path: Path) -> None:
    documents.write(tmp_path)
    async with searched(tmp_path, VECTORS) as runtime:
        results = await found(runtime, "warm bread and butter", limit=3)
        assert results[0]["primary_key"] == {"id": 3}
        assert results[0]["matches"] == {"body": ["Butter on warm bread."]}
        assert results[0]["dataset"] == "docs"
        assert "data" not in results[0]
        query, body = (vector(text).astype(float) for text in (
            "warm bread and butter", "Butter on warm bread."))  # fmt: skip
        norms = np.sqrt((query * query).sum()) * np.sqrt((body * body).sum())
        assert results[0]["_score"] == (body * query).sum() / norms
        scores = [each["_score"] for each in results]
        assert scores == sorted(scores, reverse=True)
