from collections.abc import Sequence

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.statements.searches import RerankedRows
from caraway_scheduler.dispatch.searches import reranking
from tests.kit.searching import FakeRerankers


class _Fixed:
    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        return [{"bad": float("nan")}.get(text, float(len(text))) for text in texts]


RERANKERS = FakeRerankers(fixed=_Fixed())
ROWS = pa.table({"id": [1, 2, 3, 4], "text": ["a b", None, "bad", "b a c"]})


async def _ids(query: str, model: str | None = None, limit: int = 10) -> list[int]:
    work = RerankedRows("", {}, query, "text", model)
    rows = await reranking.reranked(work, ROWS, limit, RERANKERS)
    assert rows.schema.names == ["id", "text", "rerank_score"]
    return [row["id"] for row in rows.to_pylist()]


async def test_the_best_rows_come_first_and_equal_ones_stay_in_order() -> None:
    assert await _ids("a c") == [4, 1, 2, 3]
    assert await _ids("a c", limit=1) == [4]


async def test_a_model_is_named_and_a_score_that_is_no_number_comes_last() -> None:
    assert await _ids("", "fixed") == [4, 1, 2, 3]


async def test_there_may_be_no_rows() -> None:
    work = RerankedRows("", {}, "q", "text")
    rows = await reranking.reranked(work, ROWS.slice(0, 0), 10, RERANKERS)
    assert rows.num_rows == 0


async def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InvalidQueryError, match="no reranker 'fxed'"):
        await _ids("q", "fxed")
