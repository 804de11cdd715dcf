"""Pre-filters and limits of searches never change what a statement returns.

A search here is a perfect one: it scores every row. The statement must then return the same from
the rows that the pre-filter, the limit and the columns leave, as from a table with all of them.
"""

import asyncio
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext.searching import TableSearch
from caraway_core.statements import GivenRows, Statement
from caraway_core.statements.searches import StatementSearch
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

DOCS: dict[str, Any] = {
    "id": pa.array(range(8), pa.int64()),
    "body": ["a", "bb", "c'c", "d%d", "é", "f_f", "", None],
    "cat": ["x", "y", None, "x", "z", "y", "x", "x"],
    "at": pa.array([*(86_400_000_000 * n for n in range(6)), None, 1], pa.timestamp("us", "UTC")),
    "price": pa.array(range(8), pa.int16()).cast(pa.decimal128(7, 2)),
    "ratio": pa.array([0.5, 1.5, None, 2.5, 3.5, -1.0, 0.0, 9.0], pa.float32()),
}
SCORES = pa.array([0.1, 0.8, 0.3, 0.7, 0.5, 0.25, 0.9, 0.6])
TAGS = {"doc": pa.array([1, 3, 3, None], pa.int64()), "tag": ["hot", "hot", "cold", "hot"]}
SCORED = pa.table(DOCS).append_column("score", SCORES)
CALL = "vector_search(docs, 'q', 1000)"
CONDITIONS = st.recursive(
    st.sampled_from(
        ["cat = 'x'", "cat IS NULL", "s.id > 2", "s.id NOT IN (0, 3)", "score > 0.4",
         "score <= 0.5", "body LIKE '%''%'", "at > '1970-01-03'", "price > 2.5", "ratio < 2",
         "s.id IN (SELECT doc FROM tags)", "s.id NOT IN (SELECT doc FROM tags)",
         "EXISTS (SELECT 1 FROM tags t WHERE t.doc = s.id)",
         "NOT EXISTS (SELECT 1 FROM tags t WHERE t.doc = s.id AND t.tag = 'hot')",
         "s.id > (SELECT min(doc) FROM tags)", "s.id % 2 = 0", "cat IN ('x', NULL)",
         "s.id = (SELECT max(t.doc) FROM tags t WHERE t.doc = s.id)", "s.id = score * 10",
         "EXISTS (SELECT 1 FROM docs o WHERE o.cat = s.cat AND o.id = s.id + 3)",
         "s.id IN (SELECT id FROM docs WHERE cat = 'x')", "cat IS DISTINCT FROM body",
         "CASE WHEN s.id > 3 THEN cat ELSE 'y' END = 'y'", "now() > at", "random() >= 0",
         "coalesce(cat, 'q') = 'q'", "price IN (3.00, 4.0)", "CAST(s.id AS DOUBLE) > 2.5"]
    ),
    lambda inner: st.builds("({} AND {})".format, inner, inner)
    | st.builds("({} OR {})".format, inner, inner)
    | st.builds("NOT ({})".format, inner)
    | st.builds("({}) IS NOT TRUE".format, inner),
    max_leaves=3,
)  # fmt: skip
FORMS = st.sampled_from(
    [
        "SELECT s.id, score FROM @ s WHERE {}",
        "SELECT s.id FROM @ s WHERE {} AND s.id > 0",
        "SELECT cat, count(*) AS n FROM @ s WHERE {} GROUP BY cat HAVING cat = 'x'",
        "SELECT s.id, t.tag FROM @ s LEFT JOIN tags t ON t.doc = s.id AND {}",
        "SELECT s.id, t.tag FROM tags t LEFT JOIN @ s ON t.doc = s.id AND {}",
        "SELECT s.id FROM tags t FULL JOIN @ s ON t.doc = s.id AND {} WHERE s.id > 1",
        "SELECT s.id FROM (SELECT * FROM @ x ORDER BY score DESC LIMIT 4) s WHERE {}",
        "SELECT s.id, score FROM @ s WHERE {} ORDER BY score DESC LIMIT 3 OFFSET 1",
        "SELECT s.id, rank() OVER (ORDER BY score DESC) AS r FROM @ s WHERE {}",
        "WITH c AS (SELECT * FROM @) SELECT s.id FROM c s WHERE {} UNION ALL SELECT id FROM c",
        "WITH c AS (SELECT * FROM @) SELECT s.id FROM c s WHERE s.id IN "
        "(SELECT id FROM c WHERE cat = 'x') AND {}",
        "WITH c AS (SELECT * FROM @) SELECT id FROM c WHERE score = "
        "(SELECT max(score) FROM c s WHERE {})",
        "SELECT doc FROM tags WHERE doc IN (SELECT s.id FROM @ s WHERE {})",
        "SELECT doc, (SELECT max(score) FROM @ s WHERE s.id = t.doc AND {}) AS m FROM tags t",
        "SELECT DISTINCT cat FROM @ s WHERE {}",
        "SELECT doc FROM tags EXCEPT SELECT s.id FROM @ s WHERE {}",
        "SELECT count(*) FILTER (WHERE {}) AS n FROM @ s",
        "SELECT -score AS score, s.id FROM @ s WHERE {} ORDER BY score DESC LIMIT 2",
        "SELECT s.id, s.score * 2 AS d FROM @ s WHERE {} ORDER BY d DESC LIMIT 2",
    ]
)


@pytest.fixture(scope="module")
def made() -> Session:
    every = {name: SCORED.column(name) for name in SCORED.schema.names}
    return session({"docs": memory(**DOCS), "tags": memory(**TAGS), "scored": memory(**every)})


async def _found(of: Session, search: StatementSearch) -> GivenRows:
    work = search.work
    assert isinstance(work, TableSearch)
    passing = await rows(of, f"SELECT id FROM docs WHERE {work.where or 'true'}")
    passes = pc.is_in(SCORED["id"], pa.array([row["id"] for row in passing], pa.int64()))
    best = SCORED.filter(passes).sort_by([("score", "descending")]).slice(0, work.limit)
    return GivenRows.named(search.name, best.select([*search.columns, "score"]))


async def _check(of: Session, sql: str) -> None:
    statement = sql.replace("@", CALL)
    try:
        expected = await rows(of, sql.replace("@", "scored"))
    except InvalidQueryError:
        return  # A subquery in a place where the engine takes none.
    try:
        searches = of.searches(Statement(statement, {}, sources=frozenset()))
    except InvalidQueryError as exc:
        # Better refused, with what to write instead, than wrong.
        assert "cannot be sent to the search" in exc.message
        return
    found = tuple([await _found(of, each) for each in searches])
    answer = await rows(of, statement, found=found, sources=frozenset())
    assert sorted(map(repr, answer)) == sorted(map(repr, expected))


@settings(max_examples=25)
@given(form=FORMS, condition=CONDITIONS)
def test_a_statement_returns_what_it_returns_without_pre_filters(
    made: Session, form: str, condition: str
) -> None:
    asyncio.run(_check(made, form.format(condition)))


@pytest.mark.parametrize(
    "condition",
    [
        "score <= 0.5",
        "cat = 'x' AND score < 0.7",
        "cat = 'x'",
        "random() >= 0 AND cat = 'x'",
        "(s.id > 2) IS NOT TRUE",
        "s.id IN (SELECT doc FROM tags)",
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "SELECT s.id FROM @ s WHERE {} ORDER BY score DESC LIMIT 2",
        "SELECT s.id FROM @ s WHERE {} ORDER BY score DESC LIMIT 1 OFFSET 1",
        "WITH c AS (SELECT * FROM @) (SELECT s.id FROM c s WHERE {} ORDER BY score DESC LIMIT 1) "
        "UNION ALL (SELECT id FROM c ORDER BY score DESC LIMIT 3)",
        "SELECT s.id FROM (SELECT * FROM @ x ORDER BY score DESC LIMIT 4) s WHERE {}",
        "SELECT s.id FROM @ s LEFT JOIN tags t ON t.doc = s.id WHERE {} "
        "ORDER BY score DESC, tag LIMIT 2",
        "SELECT max(score) AS m FROM @ s WHERE {} LIMIT 1",
        "WITH c AS (SELECT * FROM @) SELECT id FROM c UNION ALL SELECT s.id FROM c s WHERE {}",
        "WITH c AS (SELECT * FROM @) SELECT id FROM c WHERE id IN (SELECT s.id FROM c s WHERE {})",
    ],
)
async def test_a_limit_counts_the_rows_that_pass(made: Session, form: str, condition: str) -> None:
    await _check(made, form.format(condition))
