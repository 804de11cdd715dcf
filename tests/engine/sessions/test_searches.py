from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError, TableNotFoundError
from caraway_core.ids import TableName
from caraway_core.sqltext.searching import TableSearch
from caraway_core.statements import GivenRows, Statement
from caraway_core.statements.searches import FusedSearches, RerankedRows, StatementSearch
from caraway_core.tables import TableSpec
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

DAY = 86_400_000_000
DOCS = memory(
    id=pa.array(range(8), pa.int64()),
    body=["a", "bb", "c'c", "d%d", "é", "f_f", "", None],
    cat=["x", "y", None, "x", "z", "y", "x", "x"],
    at=pa.array([*(DAY * n for n in range(6)), None, DAY * 7], pa.timestamp("us", "UTC")),
    day=pa.array([0, 1, 2, 3, 4, 5, 6, None], pa.date32()),
    price=pa.array(range(8), pa.int16()).cast(pa.decimal128(7, 2)),
    ratio=pa.array([0.5, 1.5, None, 2.5, 3.5, -1.0, 0.0, 9.0], pa.float32()),
    raw=pa.array([b"\x00", b"a", None, b"b", b"c", b"d", b"e", b"f"]),
    tags=pa.array([["p"], ["p", "q"], [], None, ["q"], ["r"], ["p"], ["s"]]),
)
TAGS = memory(doc=pa.array([1, 3, 3, None], pa.int64()), tag=["hot", "hot", "cold", "hot"])
TABLES: dict[str, TableSpec | str] = {
    "docs": DOCS,
    "tags": TAGS,
    "scored": memory(id=[1], score=[2]),
    "hits": "SELECT id, cat, score FROM vector_search(docs, 'of the view', 50)",
    "others": "SELECT h.*, 1 AS one FROM hits h WHERE id > 1",
}


@pytest.fixture(scope="module")
def made() -> Session:
    return session(TABLES)


def _planned(of: Session, sql: str, **parameters: Any) -> tuple[StatementSearch, ...]:
    return of.searches(Statement(sql, parameters, sources=frozenset()))


def _search(of: Session, sql: str, **parameters: Any) -> TableSearch:
    (found,) = _planned(of, sql, **parameters)
    assert isinstance(found.work, TableSearch)
    return found.work


@pytest.mark.parametrize(
    "condition",
    [
        "cat = 'x'",
        "cat IN ('x', 'y') AND id <> 3",
        "cat IS NULL OR id > 5",
        "NOT (cat = 'x')",
        "cat IS DISTINCT FROM 'x'",
        "(cat = 'x') IS NOT TRUE",
        r"body LIKE '%\%%'",
        "body NOT ILIKE 'A%' AND body SIMILAR TO '[a-z]+'",
        "body ~ '^.''.$' OR body = 'é'",
        "CASE cat WHEN 'x' THEN id ELSE 0 END > 2",
        "CASE WHEN id > 3 THEN cat END = 'z'",
        "at > '1970-01-03'",
        "at BETWEEN TIMESTAMP '1970-01-02T00:00:00Z' AND now()",
        "at >= now() - INTERVAL '100 years' AND date_trunc('day', at) = '1970-01-04'",
        "day = DATE '1970-01-03' OR day + INTERVAL '1 day' = DATE '1970-01-06'",
        "day IN ('1970-01-03', '1970-01-04') OR extract(day FROM day) = 6",
        "price = 3.00 OR price > 5.5",
        "ratio > 0.1 AND ratio < 3",
        "ratio = -1.0 OR -ratio = -2.5",
        "raw = X'00' OR raw IN (X'61', X'62')",
        "array_has(tags, 'p') OR tags[1] = 'q'",
        "coalesce(cat, body) = 'c''c' OR concat(cat, body) = 'xd%d'",
        "id % 2 = 1 AND id & 1 = 1 AND id ^ 2 = 1",
        "CAST(id AS VARCHAR) = '3' OR TRY_CAST(body AS INT) IS NULL AND id = 1",
        "arrow_cast(id, 'Int32') = 3 OR arrow_cast('5', 'Float32') = id",
        "id = ANY(ARRAY[1, 2])",
        "true",
        "id IN (SELECT doc FROM tags)",
        "id NOT IN (SELECT doc FROM tags WHERE doc IS NOT NULL)",
        "id NOT IN (SELECT doc FROM tags)",
        "EXISTS (SELECT 1 FROM tags WHERE doc = s.id AND tag = 'cold')",
        "NOT EXISTS (SELECT 1 FROM tags t WHERE t.doc = s.id)",
        "id > (SELECT min(doc) FROM tags)",
        "id = (SELECT max(t.doc) FROM tags AS t WHERE t.doc = s.id)",
        "id IN (SELECT a.doc FROM tags a JOIN tags b ON a.doc = b.doc WHERE b.tag = 'cold')",
        "cat = 'z' OR id IN (SELECT doc FROM tags GROUP BY doc HAVING count(*) > 1)",
        "id IN (SELECT id FROM docs WHERE cat = 'x')",
        "EXISTS (SELECT 1 FROM docs d WHERE d.cat = s.cat AND d.id = s.id + 3)",
        "s.id > (SELECT avg(d.id) FROM docs d WHERE d.cat = s.cat)",
        "s.id NOT IN (SELECT max(d.id) FROM docs d WHERE d.cat = s.cat)",
        "id IN (SELECT id FROM others)",
    ],
)
async def test_a_filter_passes_the_same_rows_as_the_condition(
    made: Session, condition: str
) -> None:
    from_search = f"SELECT id FROM vector_search(docs, 'q') s WHERE {condition}"
    if "others" in condition:
        of_search, *_ = _planned(made, from_search)
        assert isinstance(of_search.work, TableSearch)
        assert of_search.work.where is None  # A search of its own: it filters what was found.
        return
    where = _search(made, from_search).where
    expected = await rows(made, f"SELECT id FROM docs s WHERE {condition} ORDER BY id")
    assert await rows(made, f"SELECT id FROM docs WHERE {where or 'true'} ORDER BY id") == expected


@pytest.mark.parametrize(
    ("value", "condition"),
    [
        (3, "id = $v"),
        ("x", "cat = $v"),
        (None, "cat IS NOT DISTINCT FROM $v"),
        ([1, 2], "array_has($v, id)"),
        ("1970-01-03", "at > $v"),
    ],
)
async def test_parameters_become_constants_of_the_filter(
    made: Session, value: Any, condition: str
) -> None:
    where = _search(
        made, f"SELECT id FROM vector_search(docs, 'q') WHERE {condition}", v=value
    ).where
    expected = await rows(
        made, f"SELECT id FROM docs WHERE {condition} ORDER BY id", parameters={"v": value}
    )
    assert await rows(made, f"SELECT id FROM docs WHERE {where} ORDER BY id") == expected


@pytest.mark.parametrize(
    ("sql", "where"),
    [
        ("SELECT * FROM {} WHERE score > 0.5", None),
        ("SELECT * FROM {} WHERE cat = 'x' AND score > 0.5", '("docs"."cat" = \'x\')'),
        ("SELECT * FROM {} WHERE cat = 'x' OR score > 0.5", None),
        ("SELECT * FROM {} WHERE random() < 0.5 AND id = 1", '("docs"."id" = 1)'),
        ("SELECT * FROM (SELECT * FROM {} LIMIT 10) WHERE id = 1", None),
        ("WITH s AS (SELECT id AS i FROM {}) SELECT * FROM s WHERE i = 1", '("docs"."id" = 1)'),
        ("SELECT count(*) FROM {} GROUP BY cat HAVING cat = 'x'", '("docs"."cat" = \'x\')'),
        ("SELECT count(*) FROM {} HAVING count(*) > 1", None),
        ("SELECT * FROM {} JOIN tags ON doc = id WHERE cat = tag AND id = 1", '("docs"."id" = 1)'),
        ("SELECT * FROM tags LEFT JOIN {} s ON doc = id AND id = 1", '("docs"."id" = 1)'),
        ("SELECT * FROM tags LEFT JOIN {} s ON doc = id WHERE id IS NULL", None),
        ("SELECT * FROM tags WHERE doc IN (SELECT id FROM {} WHERE id = 1)", '("docs"."id" = 1)'),
        ("SELECT (SELECT max(score) FROM {} WHERE id = 1)", '("docs"."id" = 1)'),
        ("SELECT * FROM tags t WHERE EXISTS (SELECT 1 FROM {} s WHERE s.id = t.doc)", None),
        (
            "WITH s AS (SELECT * FROM {}) SELECT * FROM s WHERE id = 1 AND cat = 'x' "
            "UNION ALL SELECT * FROM s WHERE id = 1",
            '("docs"."id" = 1)',
        ),
        ("WITH s AS (SELECT * FROM {}) SELECT id FROM s WHERE id = 1 UNION SELECT id FROM s", None),
    ],
)  # fmt: skip
def test_conditions_on_other_rows_stay_in_the_statement(
    made: Session, sql: str, where: str | None
) -> None:
    assert _search(made, sql.format("vector_search(docs, 'q')")).where == where


@pytest.mark.parametrize(
    ("sql", "limit"),
    [
        ("SELECT id FROM {} LIMIT 5", 5),
        ("SELECT id FROM {} LIMIT 5 OFFSET 2", 7),
        ("SELECT id FROM {} ORDER BY score DESC LIMIT 5", 5),
        ("SELECT id, score AS s FROM {} x WHERE id > 1 ORDER BY s DESC LIMIT 5", 5),
        ("SELECT * FROM (SELECT id, score AS s FROM {}) ORDER BY s DESC LIMIT 5", 5),
        ("SELECT id AS score FROM {} ORDER BY score DESC LIMIT 5", 40),
        ("SELECT id FROM {} ORDER BY score DESC, id LIMIT 5", 40),
        ("SELECT id FROM {} ORDER BY score LIMIT 5", 40),
        ("SELECT id FROM {} ORDER BY id DESC LIMIT 5", 40),
        ("SELECT id FROM {} WHERE score > 0.5 LIMIT 5", 40),
        ("SELECT cat FROM {} GROUP BY cat LIMIT 5", 40),
        ("SELECT DISTINCT cat FROM {} LIMIT 5", 40),
        ("SELECT * FROM {} JOIN tags ON doc = id LIMIT 5", 40),
        ("SELECT id FROM {} LIMIT 500", 40),
        ("SELECT * FROM (SELECT * FROM {} ORDER BY score DESC) ORDER BY id DESC LIMIT 5", 40),
        (
            "SELECT * FROM (SELECT * FROM {} ORDER BY score DESC LIMIT 9) ORDER BY id DESC LIMIT 5",
            9,
        ),
    ],
)
def test_a_search_finds_no_more_rows_than_the_statement_needs(
    made: Session, sql: str, limit: int
) -> None:
    assert _search(made, sql.format("vector_search(docs, 'q', 40)")).limit == limit


def test_only_the_columns_that_are_read_are_fetched(made: Session) -> None:
    found = _search(made, "SELECT body FROM vector_search(docs, 'q') WHERE cat = 'x' AND score > 0")
    assert found.columns == ("body", "cat")
    found = _search(made, "SELECT count(*) FROM vector_search(docs, 'q')")
    assert len(found.columns) <= 1
    found = _search(made, "SELECT * FROM vector_search(docs, 'q', include_score => false)")
    assert found.columns == tuple(DOCS.schema.names)


def test_a_search_that_is_not_read_does_not_run(made: Session) -> None:
    assert _planned(made, "SELECT * FROM vector_search(docs, 'q') WHERE false") == ()
    assert _planned(made, "SELECT 'others', 'vector_search(docs)'") == ()


def test_searches_behind_views_get_the_conditions_above_them(made: Session) -> None:
    (found,) = _planned(made, "SELECT id FROM others WHERE cat = 'x' LIMIT 5")
    assert found.name == "search$1$hits.vector_search"
    assert isinstance(found.work, TableSearch)
    assert (found.work.text, found.work.limit) == ("of the view", 5)
    assert found.work.where == '("docs"."id" > 1) AND ("docs"."cat" = \'x\')'
    assert made.views[TableName("others")].reads == {"docs"}
    assert made.views[TableName("others")].searches


def test_a_fusion_fetches_its_key(made: Session) -> None:
    (found,) = _planned(
        made,
        "SELECT body FROM rrf(vector_search(docs, 'a', 5), text_search(docs, 'b'), "
        "join_key => id, time_column => at) WHERE cat = 'x' ORDER BY fused_score DESC LIMIT 3",
    )
    assert isinstance(found.work, FusedSearches)
    assert (found.columns, found.limit, found.score) == (("body", "cat"), 3, "fused_score")
    searches = [each.search for each in found.work.searches]
    assert [each.columns for each in searches] == [("id", "body", "cat", "at")] * 2
    assert [each.limit for each in searches] == [5, 1000]
    assert {each.where for each in searches} == {'("docs"."cat" = \'x\')'}


def test_without_a_key_a_fusion_compares_whole_rows(made: Session) -> None:
    (found,) = _planned(made, "SELECT id FROM rrf(text_search(docs,'a'), text_search(docs,'b'))")
    assert isinstance(found.work, FusedSearches)
    assert found.work.key == tuple(DOCS.schema.names)


def test_rerank_takes_the_query_and_the_column_from_its_input(made: Session) -> None:
    (found,) = _planned(
        made,
        "SELECT * FROM rerank(input => TABLE(SELECT id, body FROM vector_search(docs, $1) "
        "WHERE id = $2)) WHERE id = $3",
        **{"1": "asked", "2": 5, "3": 6},
    )
    assert isinstance(found.work, RerankedRows)
    assert (found.work.query, found.work.column) == ("asked", "body")
    assert found.work.parameters == {"1": "asked", "2": 5}
    assert found.columns == ("id", "body")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM vector_search(docs, 'q', bdy)", "no column 'bdy'; did you mean 'body'?"),
        ("SELECT * FROM vector_search(scored, 'q')", "a column 'score' already"),
        ("SELECT nope FROM vector_search(docs, 'q')", "column 'nope' not found"),
        ("SELECT * FROM vector_search(docs, 'q') WHERE id = 'x' || 1 +", "Expected"),
        ("SELECT * FROM vector_search(docs, $1)", "no value for parameter $1"),
        ("SELECT * FROM rrf(text_search(docs, 'a'), text_search(docs, 'b'), join_key => i)",
         "no column 'i'"),
        ("SELECT * FROM rerank(input => TABLE(SELECT id FROM docs), query => 'q')", "give `col`"),
        ("SELECT * FROM rerank(input => TABLE(SELECT id FROM docs), query => 'q', col => id)",
         "has no text"),
        ("SELECT * FROM rerank(input => TABLE(SELECT body FROM docs))", "give `query`"),
        ("WITH c AS (SELECT 'x' AS t) SELECT * FROM rerank(input => TABLE(c), query => 'q')",
         "planned by itself, without the statement around it: table 'c' not found"),
        ("SELECT * FROM vector_search(docs, 'q') WHERE EXISTS (SELECT 1 FROM docs "
         "WHERE docs.cat = vector_search.cat)", "name it once there, as in FROM docs AS other"),
        ("SELECT * FROM vector_search(docs, 'q') s WHERE EXISTS (SELECT 1 FROM tags docs "
         "WHERE docs.doc = s.id)", "put the search into a subquery"),
    ],
)  # fmt: skip
def test_wrong_searches_are_refused(made: Session, sql: str, message: str) -> None:
    with pytest.raises(InvalidQueryError) as caught:
        _planned(made, sql)
    assert message in caught.value.message
    assert "search$" not in caught.value.message


def test_tables_that_a_statement_may_not_read_are_not_searched(made: Session) -> None:
    with pytest.raises(TableNotFoundError):
        _planned(made, "SELECT * FROM vector_search(nope, 'q')")
    with pytest.raises(InvalidQueryError):
        _planned(made, 'SELECT * FROM vector_search("docs"" UNION SELECT", \'q\')')
    limited = Statement(
        "SELECT * FROM vector_search(docs, 'q')", {}, readable=frozenset({TableName("tags")})
    )
    with pytest.raises(TableNotFoundError):
        made.searches(limited)


async def test_a_statement_reads_the_rows_of_its_searches(made: Session) -> None:
    found = GivenRows.named(
        TableName("search$1.vector_search"),
        pa.table({"id": pa.array([4, 2], pa.int64()), "score": [0.5, 0.25]}),
    )
    sql = "SELECT v.id, score, tag FROM vector_search(docs, 'q') v LEFT JOIN tags ON doc = v.id"
    assert await rows(made, f"{sql} ORDER BY id", found=(found,)) == [
        {"id": 2, "score": 0.25, "tag": None},
        {"id": 4, "score": 0.5, "tag": None},
    ]
    readable = frozenset({TableName("docs"), TableName("tags")})
    assert len(await rows(made, sql, found=(found,), readable=readable)) == 2
    with pytest.raises(TableNotFoundError):
        await rows(made, sql, found=(found,), readable=frozenset({TableName("docs")}))


async def test_a_view_shows_the_rows_of_its_search(made: Session) -> None:
    found = GivenRows.named(
        TableName("search$1$hits.vector_search"),
        pa.table({"id": pa.array([4, 1], pa.int64()), "cat": ["z", "y"], "score": [0.5, 0.25]}),
    )
    assert await rows(made, "SELECT id, one, cat FROM others", found=(found,)) == [
        {"id": 4, "one": 1, "cat": "z"}
    ]
    # The rows of one statement are not those of the next.
    assert await rows(made, "SELECT id FROM others", found=()) == []


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM vector_search(docs, 'q')", "SELECT * FROM others", "SELECT * FROM hits"]
)
async def test_a_statement_whose_searches_did_not_run_is_refused(made: Session, sql: str) -> None:
    with pytest.raises(InvalidQueryError, match="vector_search cannot be called here"):
        await rows(made, sql)


async def test_a_column_that_was_not_fetched_is_never_read_as_null(made: Session) -> None:
    found = GivenRows.named(TableName("search$1.vector_search"), pa.table({"id": [1]}))
    with pytest.raises(Exception, match="column 'cat' of a search was not fetched"):
        await rows(made, "SELECT cat FROM vector_search(docs, 'q')", found=(found,))


async def test_stand_ins_are_visible_to_their_statement_only(made: Session) -> None:
    with pytest.raises(TableNotFoundError):
        await rows(made, 'SELECT * FROM "search$1".vector_search')


def test_searches_are_planned_once_unless_they_depend_on_the_time() -> None:
    of = session(TABLES)
    same = "SELECT id FROM vector_search(docs, 'q') WHERE cat = 'x'"
    assert _planned(of, same) is _planned(of, same)
    timed = f"{same} AND at < now() - INTERVAL '1 hour'"
    assert _planned(of, timed) != _planned(of, timed)


def test_a_statement_with_too_many_conditions_is_refused(made: Session) -> None:
    several = " OR ".join(f"(id = {n} AND cat = 'x')" for n in range(251))
    with pytest.raises(
        InvalidQueryError, match=r"more than 500 ANDs and ORs.*`column IN \(\.\.\.\)`"
    ):
        _planned(made, f"SELECT id FROM vector_search(docs, 'q') WHERE {several}")
    with pytest.raises(InvalidQueryError, match="more than 500 ANDs and ORs"):
        _planned(made, f"SELECT id FROM others WHERE {several}")
    assert not _planned(made, f"SELECT id FROM docs WHERE {several}")
    every = " AND ".join(f"id <> {n}" for n in range(400))
    where = _search(made, f"SELECT id FROM vector_search(docs, 'q') WHERE {every}").where
    assert where and where.count("!=") == 400
    values = ", ".join(map(str, range(2_000)))
    assert _search(made, f"SELECT id FROM vector_search(docs, 'q') WHERE id IN ({values})").where
