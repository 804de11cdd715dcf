"""Orders the rows of a statement by how well a text of each answers a query."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from caraway_core.statements.searches import RERANK_SCORE, RerankedRows
from caraway_engine.rows import plain


class Rerankers(Protocol):
    """The rerankers that statements may name; None is one that needs no model."""

    def check(self, model: str | None) -> None:
        """Check that there is a reranker of a name.

        Raises:
            InvalidQueryError: there is none.
        """
        ...

    async def scores(self, model: str | None, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text; a greater one is better.

        Raises:
            InvalidQueryError: there is no such reranker.
            ModelAwayError: it is loading, or its provider is away.
            ModelError: it failed.
        """
        ...


async def reranked(
    work: RerankedRows, rows: pa.Table, limit: int, rerankers: Rerankers
) -> pa.Table:
    """Return the best rows with their scores, best first; equal ones stay in order.

    Raises:
        InvalidQueryError: there is no such reranker.
        ModelError: it failed.
    """
    rerankers.check(work.model)
    texts = [text or "" for text in rows.column(work.column).to_pylist()]
    scores = np.zeros(0)
    if texts:
        judged = await rerankers.scores(work.model, work.query, texts)
        scores = np.asarray(judged, dtype=np.float64)
    # Scores that are no numbers come last.
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[:limit]
    # pyarrow cannot choose rows of columns with views; the table of the search restores the types.
    rows = plain.plain_table(rows.to_batches(), plain.plain_schema(rows.schema))
    chosen = rows.take(pa.array(order))
    return chosen.append_column(RERANK_SCORE, pa.array(scores[order]))
