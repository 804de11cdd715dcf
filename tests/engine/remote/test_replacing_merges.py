"""A MERGE of rows by their places is one query, which says each condition once."""

import pyarrow as pa
import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.tables import RemoteTable
from caraway_engine.remote import replacing_merges

SCHEMA = pa.schema([(name, pa.int64()) for name in ("id", "a", "b")])
TABLE = RemoteTable(SCHEMA, "iceberg", ("t",), (), {})
MERGE = (
    "MERGE INTO t USING s ON t.id = s.k WHEN MATCHED AND s.y < 7 THEN DELETE "
    "WHEN MATCHED AND s.y > 8 THEN UPDATE SET a = s.y, b = t.a "
    "WHEN NOT MATCHED AND s.y = 9 THEN INSERT VALUES (s.k, s.y, DEFAULT)"
)


def texts_of(sql: str) -> list[str]:
    texts: list[str] = []
    replacing_merges.planned(sql, TABLE, texts.append)
    return texts


def test_each_condition_is_in_the_query_once() -> None:
    *_, text = texts_of(MERGE)
    assert [text.count(each) for each in ("s.y < 7", "s.y > 8", "s.y = 9")] == [1, 1, 1]
    assert "(1), (2), (3)" in text


def test_conditions_that_may_change_are_refused() -> None:
    with pytest.raises(InvalidQueryError, match=r"a condition calls random\(\)"):
        texts_of(MERGE.replace("s.y < 7", "random() < 0.5"))
