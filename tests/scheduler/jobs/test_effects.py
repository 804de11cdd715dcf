"""Which statements are run at most once."""

import pytest

from caraway_scheduler.jobs import effects


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
        "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
        "EXPLAIN ANALYZE DELETE FROM t",
    ],
)
def test_what_writes_is_known(sql: str) -> None:
    assert effects.may_change(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'INSERT INTO t', replace(a, 'x', 'y') FROM t",
        "SELECT 1 -- DELETE FROM t",
        'SELECT a AS "DELETE FROM" FROM t',
        "SELECT $$ DELETE FROM t $$, $x$ TRUNCATE $x$",
        "EXPLAIN DELETE FROM t",
    ],
)
def test_what_only_reads_is_known(sql: str) -> None:
    assert not effects.may_change(sql)
