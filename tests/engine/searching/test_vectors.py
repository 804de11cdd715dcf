"""Scores of vectors in SQL: one node, executors, and numpy agree to the bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from caraway_core.bound_values import ArrowValue
from caraway_core.errors import InvalidQueryError
from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_search.vectors import exact
from caraway_search.vectors.exact import QueryVector
from tests.kit.clusters import in_process_cluster
from tests.kit.engine import memory, rows, session
from tests.kit.stored import stored

_LENGTH = 12


def _query(vector: Any) -> dict[str, Any]:
    packed = np.asarray(vector, np.float32).tobytes()
    return {"vector": ArrowValue.from_array(pa.array([packed], pa.binary()))}


def _vectors(count: int) -> "np.ndarray[Any, np.dtype[np.float32]]":
    return np.random.default_rng(7).normal(size=(count, _LENGTH)).astype(np.float32)


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
async def test_sizes_of_batches_do_not_change_scores(metric: Any) -> None:
    vectors = _vectors(500)
    expected = exact.scores(vectors, QueryVector.from_values(vectors[3], metric))
    column = pa.array(list(vectors), pa.list_(pa.float32(), _LENGTH))
    over = session({"t": memory(id=range(500), e=column)})
    sql = f"SELECT id, caraway_vector_score(e, $vector, '{metric}') AS s FROM t"
    for condition in ("", " WHERE id % 7 = 0", " WHERE id = 3"):
        found = await rows(over, sql + condition, parameters=_query(vectors[3]))
        assert found
        for row in found:
            assert row["s"] == expected[row["id"]]


async def test_vectors_that_cannot_be_scored_are_null() -> None:
    vectors: list[Any] = [
        [1.0, 2.0],
        None,
        [0.0, 0.0],
        [1.0],
        [1.0, 2.0, 3.0],
        [float("nan"), 1.0],
        [],
    ]
    vectors += [[float("inf"), 1.0], [None, 1.0], [2.0, 4.0]]
    over = session({"t": memory(id=range(10), e=pa.array(vectors, pa.list_(pa.float32())))})
    sql = "SELECT id, caraway_vector_score(e, $vector, 'cosine') AS s FROM t ORDER BY id"
    found = await rows(over, sql, parameters=_query([1, 2]))
    assert [row["id"] for row in found if row["s"] is not None] == [0, 9]


async def test_the_best_chunk_of_a_row_counts() -> None:
    chunks = [
        [[0.0, 1.0], [1.0, 0.0], [1.0, 0.1]],
        None,
        [],
        [[0.0, 0.0]],
        [None, [1.0, 0.0], [1.0, 0.0]],
    ]
    column = pa.array(chunks, pa.list_(pa.list_(pa.float32(), 2)))
    over = session({"t": memory(id=range(5), e=column)})
    sql = (
        "SELECT id, caraway_best_vector_score(e, $vector, 'cosine') AS s, "
        "caraway_best_chunk(e, $vector, 'cosine') AS c FROM t ORDER BY id"
    )
    found = await rows(over, sql, parameters=_query([1, 0]))
    assert [(row["s"], row["c"]) for row in found] == [(1, 1), (None, None), (None, None),
                                                      (None, None), (1, 1)]  # fmt: skip


async def test_executors_score_their_shares(tmp_path: Path) -> None:
    vectors = _vectors(400)
    column = pa.array(list(vectors), pa.list_(pa.float32()))
    table = pa.table({"id": range(400), "e": column})
    sql = (
        "SELECT id, s FROM (SELECT id, caraway_vector_score(e, $vector, 'cosine') AS s FROM t) "
        "WHERE s IS NOT NULL ORDER BY s DESC NULLS LAST, id LIMIT 9"
    )
    alone = session({"t": memory(**{name: table[name] for name in table.column_names})})
    expected = await rows(alone, sql, parameters=_query(vectors[1]))
    spec = await stored(tmp_path, table, 6)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:
        statement = Statement(sql, _query(vectors[1]))
        stream = await cluster.dispatch.execute(new_query_id(), statement)
        found = [row async for batch in stream for row in batch.to_pylist()]
        assert len(cluster.tallies.assignments) == 3
    assert found == expected and len(found) == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("e, X'00', 'cosine'", "bytes of 32-bit floats"),
        ("e, NULL, 'cosine'", "bytes of 32-bit floats"),
        ("e, X'', 'cosine'", "bytes of 32-bit floats"),
        ("e, X'00000000', 'near'", "one of cosine, dot, l2"),
        ("e, X'00000000', 'l2'", "of zeros"),
        ("e, X'00000000'", "function caraway_vector_score"),
        ("'x', X'00000000', 'l2'", "caraway_vector_score"),
    ],
)
async def test_wrong_arguments_are_the_fault_of_the_statement(arguments: str, message: str) -> None:
    over = session({"t": memory(e=pa.array([[1.0]], pa.list_(pa.float32())))})
    with pytest.raises(InvalidQueryError, match=message):
        await rows(over, f"SELECT caraway_vector_score({arguments}) FROM t")
