"""Orders the rows of a statement by how well a text of each answers a query."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from caraway_core import registry
from caraway_core.errors import InvalidQueryError
from caraway_core.protocols.searching import TextReranker
from caraway_core.statement_searches import RERANK_SCORE, RerankedRows
from caraway_engine.rows import plain


@dataclass(frozen=True, slots=True)
class Rerankers:
    """The rerankers that statements may name; `default` needs no model."""

    default: Callable[[], TextReranker]
    by_name: Callable[[], dict[str, TextReranker]] = field(default=dict)

    def of(self, model: str | None) -> TextReranker:
        """Return the reranker of a name.

        Raises:
            InvalidQueryError: there is none.
        """
        if model is None:
            return self.default()
        known = self.by_name()
        if model not in known:
            if not known:
                raise InvalidQueryError(
                    f"rerank: no model '{model}'; this runtime has no reranker models, so leave "
                    "out `model` to rank by words in common"
                )
            raise InvalidQueryError(f"rerank: {registry.unknown('model', model, known)}")
        return known[model]


async def reranked(
    work: RerankedRows, rows: pa.Table, limit: int, rerankers: Rerankers
) -> pa.Table:
    """Return the best rows with their scores, best first; equal ones stay in order.

    Raises:
        InvalidQueryError: there is no such model.
        ModelError: the model failed.
    """
    reranker = rerankers.of(work.model)
    texts = [text or "" for text in rows.column(work.column).to_pylist()]
    scores = np.zeros(0)
    if texts:
        judged = await asyncio.to_thread(reranker.scores, work.query, texts)
        scores = np.asarray(judged, dtype=np.float64)
    # Scores that are no numbers come last.
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[:limit]
    # pyarrow cannot choose rows of columns with views; the table of the search restores the types.
    rows = plain.plain_table(rows.to_batches(), plain.plain_schema(rows.schema))
    chosen = rows.take(pa.array(order))
    return chosen.append_column(RERANK_SCORE, pa.array(scores[order]))
