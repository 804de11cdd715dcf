"""Scores of texts in SQL: one node, executors, and one segment of all texts agree to the bit."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.ids import new_query_id
from caraway_core.statements import Statement
from caraway_engine.searching.text_requests import TextRequest
from caraway_search.text.segment import TextSegment
from tests.kit.clusters import in_process_cluster
from tests.kit.engine import memory, rows, session
from tests.kit.stored import stored

WORDS = "bread butter key cluster piano executor salt water scale rotate".split()
STATISTICS = "SELECT caraway_text_statistics(make_array(title, body), $request) AS s FROM t"
SCORES = "SELECT id, caraway_text_score(make_array(title, body), $request) AS s FROM t"


def _texts(count: int) -> pa.Table:
    bodies = [
        None if n % 11 == 0 else " ".join(WORDS[(n * k) % len(WORDS)] for k in range(1, n % 9 + 2))
        for n in range(count)
    ]
    titles = [WORDS[n % 7] if n % 5 else None for n in range(count)]
    return pa.table({"id": range(count), "title": titles, "body": bodies})


def _request(text: str) -> TextRequest:
    return TextRequest(text, "english", (2.0, 1.0))


def _expected(table: pa.Table, request: TextRequest) -> dict[int, float | None]:
    columns = {"0": table["title"].combine_chunks(), "1": table["body"].combine_chunks()}
    segment = TextSegment.build(request.spec, columns)
    scored = segment.scores(request.query, segment.statistics(request.query))
    found = zip(scored.scores.tolist(), scored.found.tolist(), strict=True)
    return {n: score if is_found else None for n, (score, is_found) in enumerate(found)}


@pytest.mark.parametrize(
    "text",
    ["bread", "bread butter key", '"bread butter"', "+bread -salt", "pian*", "clustr~", "zebra",
     "-bread", "NOT", "+bread +(salt OR water)"],
)  # fmt: skip
async def test_batches_and_filters_do_not_change_scores(text: str) -> None:
    table, request = _texts(300), _request(text)
    over = session({"t": memory(**{name: table[name] for name in table.column_names})})
    (counted,) = await rows(over, STATISTICS, parameters={"request": request.encoded()})
    told = request.with_statistics(counted["s"]).encoded()
    expected = _expected(table, request)
    for condition in ("", " WHERE id % 7 = 0", " WHERE id = 12"):
        found = await rows(over, SCORES + condition, parameters={"request": told})
        assert found
        assert all(row["s"] == expected[row["id"]] for row in found)


async def test_executors_count_and_score_their_shares(tmp_path: Path) -> None:
    table, request = _texts(400), _request('bread "butter key" pian*')
    spec = await stored(tmp_path, table, 7)
    async with in_process_cluster(tmp_path, {"t": spec}, executors=3) as cluster:

        async def run(sql: str, request: TextRequest) -> list[dict[str, Any]]:
            statement = Statement(sql, {"request": request.encoded()})
            stream = await cluster.dispatch.execute(new_query_id(), statement)
            return [row async for batch in stream for row in batch.to_pylist()]

        (counted,) = await run(STATISTICS, request)
        assert len(cluster.tallies.assignments) == 3
        ranked = f"SELECT id, s FROM ({SCORES}) ORDER BY s DESC NULLS LAST, id LIMIT 50"
        found = await run(ranked, request.with_statistics(counted["s"]))
    expected = _expected(table, request)
    best = sorted(
        (number for number, score in expected.items() if score is not None),
        key=lambda number: (-(expected[number] or 0), number),
    )
    assert [(row["id"], row["s"]) for row in found] == [(n, expected[n]) for n in best[:50]]


async def test_no_rows_have_no_statistics() -> None:
    request = _request("bread").encoded()
    table = _texts(0).cast(
        pa.schema([("id", pa.int64()), ("title", pa.string()), ("body", pa.string())])
    )
    over = session({"t": memory(**{name: table[name] for name in table.column_names})})
    assert await rows(over, STATISTICS, parameters={"request": request}) == [{"s": []}]
    assert await rows(over, SCORES, parameters={"request": request}) == []


@pytest.mark.parametrize("request_text", [None, "", "{}", "[]", '{"text": "a"}'])
async def test_requests_that_are_none(request_text: str | None) -> None:
    over = session({"t": memory(id=[1], title=["a"], body=["b"])})
    for sql in (STATISTICS, SCORES):
        with pytest.raises(InvalidQueryError):
            await rows(over, sql, parameters={"request": request_text})


async def test_scores_need_the_statistics_of_their_query() -> None:
    over = session({"t": memory(id=[1], title=["a"], body=["b"])})
    with pytest.raises(InvalidQueryError, match="are not those of its query"):
        await rows(over, SCORES, parameters={"request": _request("a").encoded()})
    one = TextRequest("a", "english", (1.0,)).encoded()
    with pytest.raises(InvalidQueryError, match="as many texts"):
        await rows(over, STATISTICS, parameters={"request": one})
    with pytest.raises(InvalidQueryError, match="klingon"):
        wrong = TextRequest("a", "klingon", (1.0, 1.0)).encoded()
        await rows(over, STATISTICS, parameters={"request": wrong})
