"""Statements that create and drop tables: what they say, and what is refused."""

import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext.table_statements import CreateTable, DropTable, parse

NAME = ("a", "b", "c")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE a.b.c AS SELECT 1", CreateTable(NAME, False, "SELECT 1")),
        (
            '/* x */ create table if not exists A."b".`c` as\nWITH x AS (SELECT 1) SELECT * FROM x',
            CreateTable(NAME, True, "WITH x AS (SELECT 1) SELECT * FROM x"),
        ),
        ('CREATE TABLE "X ""y" AS (SELECT 1)', CreateTable(('X "y',), False, "(SELECT 1)")),
        (
            'CREATE TABLE a.b.c (x INT NOT NULL, "Y" DECIMAL(10, 2) NULL, PRIMARY KEY (x, "Y"));',
            CreateTable(
                NAME, False,
                'SELECT CAST(NULL AS INT) AS x, CAST(NULL AS DECIMAL(10, 2)) AS "Y" WHERE FALSE',
                ("x",), ("x", "Y"),
            ),
        ),
        (
            "CREATE TABLE a.b.c (t TIMESTAMP WITH TIME ZONE PRIMARY KEY)",
            CreateTable(
                NAME, False,
                "SELECT CAST(NULL AS TIMESTAMP WITH TIME ZONE) AS t WHERE FALSE", (), ("t",),
            ),
        ),
        (
            "CREATE TABLE a.b.c (x VARCHAR[])",
            CreateTable(NAME, False, "SELECT CAST(NULL AS VARCHAR[]) AS x WHERE FALSE"),
        ),
        ("DROP TABLE a.b.c", DropTable(NAME, False)),
        ("drop table if exists a.b.c restrict;", DropTable(NAME, True)),
    ],
)  # fmt: skip
def test_what_they_say(sql: str, expected: CreateTable | DropTable) -> None:
    assert parse(sql) == expected


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1", "CREATE VIEW v AS SELECT 1", "DROP VIEW v", "CREATE SCHEMA s", "", "-- CREATE",
     "INSERT INTO t SELECT 1", "SELECT 'CREATE TABLE a.b.c AS SELECT 1'", "EXPLAIN DROP TABLE t"],
)  # fmt: skip
def test_others_are_none(sql: str) -> None:
    assert parse(sql) is None


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CREATE OR REPLACE TABLE a.b.c AS SELECT 1", "DROP TABLE IF EXISTS before"),
        ("CREATE TABLE a.b.c", "AS and a query, or columns"),
        ("CREATE TABLE a.b.c AS ;", "needs a query"),
        ("CREATE TABLE a.b.c LIKE d", "AS and a query, or columns"),
        ("CREATE TABLE a.b.c (x INT", "a closing parenthesis is missing"),
        ("CREATE TABLE a.b.c (x) AS SELECT 1", "column 'x' has no type"),
        ("CREATE TABLE a.b.c (x INT) AS SELECT 1", "takes the columns of its query"),
        ("CREATE TABLE a.b.c (x INT) ENGINE=MyISAM", "'ENGINE' is not supported"),
        ("CREATE TABLE a.b.c (x INT); SELECT 1", "one statement"),
        ("CREATE TABLE a.b.c (x VARCHAR(10))", "the length of column 'x' would be lost"),
        ("CREATE TABLE a.b.c (x INT DEFAULT 1)", "DEFAULT of column 'x' is not supported"),
        ("CREATE TABLE a.b.c (x INT, CHECK (x > 1))", "CHECK is not supported"),
        ("CREATE TABLE a.b.c (x INT, FOREIGN KEY (x) REFERENCES d)", "FOREIGN is not supported"),
        ("CREATE TABLE a.b.'c' AS SELECT 1", "a name is missing before"),
        ("CREATE TABLE", "a name is missing"),
        ("DROP TABLE", "a name is missing"),
        ("DROP TABLE a.b.c CASCADE", "'CASCADE' is not supported"),
        ("DROP TABLE a.b.c, a.b.d", "takes one table"),
        ("DROP TABLE a.b.c; DROP TABLE a.b.d", "one statement"),
    ],
)
def test_what_is_more_is_refused(sql: str, words: str) -> None:
    with pytest.raises(InvalidQueryError) as caught:
        parse(sql)
    assert words in caught.value.message
