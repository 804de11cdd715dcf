"""Which statements write, and which may write."""

import pytest

from caraway_core.sqltext import writing
from tests.kit.hostile import UNCLOSED


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1)",
        "insert/**/into t values (1)",
        "INSERT -- why\nINTO t VALUES (1)",
        "INSERT OVERWRITE t SELECT 1",
        "INSERT OR REPLACE INTO t VALUES (1)",
        "/* x */ DELETE /* y */ FROM t",
        'UPDATE "t" SET a = 1',
        "UPDATE/**/t SET a = 1",
        "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE t",
        "CREATE TABLE a.b.c AS SELECT 1",
        "/* x */ drop table a.b.c",
        "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
        "EXPLAIN ANALYZE DELETE FROM t",
        "/* /* x */ ' */ DELETE FROM t -- '",
        r"SELECT E'\''; DELETE FROM t",
        "INSERT t VALUES (1)",
        "REPLACE t VALUES (1)",
        "DELETE t WHERE a = 1",
        "UPDATE `t` SET a = 1",
        "MERGE t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
        ";; DELETE FROM t",
        "/*! INSERT INTO t VALUES (1) */",
        "SELECT 1 /*!50110 ; DELETE FROM t */",
        "EXPLAIN (ANALYZE) DELETE FROM t",
        "SELECT a$x$ FROM t; DELETE FROM t WHERE b$x$ = 1",
    ],
)
def test_what_writes_is_known(sql: str) -> None:
    assert writing.may_change(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'INSERT INTO t', replace(a, 'x', 'y') FROM t",
        "SELECT 1 -- DELETE FROM t",
        'SELECT a AS "DELETE FROM" FROM t',
        "SELECT $$ DELETE FROM t $$, $x$ TRUNCATE $x$",
        "EXPLAIN DELETE FROM t",
        "SELECT created, drop, create AS a FROM t",
        "/* /* */ */ EXPLAIN/**/DELETE FROM t",
        "SELECT truncate(a), insert(b, 1, 2, 'c') FROM t",
        "SELECT $1$ DELETE FROM t $1$",
        "SELECT R'''it's; DELETE FROM t'''",
        "/* /*! DELETE FROM t */ */ SELECT 1",
    ],
)
def test_what_only_reads_is_known(sql: str) -> None:
    assert not writing.may_change(sql)


@pytest.mark.parametrize("text", UNCLOSED)
def test_texts_without_ends_are_read_once(text: str) -> None:
    assert not writing.may_change(text)


def test_long_texts_are_not_read_closely() -> None:
    # They take a second of the process that serves all requests; a wrong True is harmless.
    names = '"a" ' * 1_000_000
    assert not writing.may_change(f"SELECT {names}")
    assert writing.may_change(f"SELECT {names} -- update")
    assert writing.may_change(f"INSERT INTO t SELECT {names}")


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1)",
        "  delete from t",
        "-- why\n/* and */ UPDATE t SET a = 1",
        "/**//**/Truncate t",
        "/* /* a */ b */ INSERT INTO t VALUES (1)",
        "; INSERT INTO t VALUES (1)",
        "/*! INSERT INTO t VALUES (1) */",
    ],
)
def test_writes_are_known_by_their_first_word(sql: str) -> None:
    assert writing.begins_with_write(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT 1",
        "-- INSERT\nSELECT 1",
        "/* INSERT */ SELECT 1",
        "/* /* a */ INSERT */ SELECT 1",
        "(" + " " * 1_000_000 + "SELECT 1)",
        "/**/" * 50_000 + "SELECT 1",
        "inserted",
        "insert$x",
        "/**/" * 5_000,
        *(text for text in UNCLOSED if "/*" not in text),
    ],
)
def test_everything_else_is_no_write(sql: str) -> None:
    assert not writing.begins_with_write(sql)


def test_more_comments_than_are_read_may_begin_a_write() -> None:
    assert writing.begins_with_write("/**/" * 100_000 + "SELECT 1")
