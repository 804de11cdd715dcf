"""Each error that the engine raises here is a real one; users read it in words of our own."""

import logging
import re

import pytest

from caraway_core.errors import (
    DatasetError,
    ExecutionError,
    InvalidQueryError,
    OutOfMemoryQueryError,
    TableNotFoundError,
)
from caraway_core.ids import TableName
from caraway_engine.errors import engine_errors, failures
from caraway_engine.errors.engine_errors import FaultOwner
from caraway_engine.sessions.sessions import Session
from tests.engine.errors.failing_tables import TABLE
from tests.kit.engine import rows, session

FORBIDDEN = re.compile(
    r"Error during planning|DataFusion|External error|Arrow error|Execution error|Schema error"
    r"|SQL error|Internal error|Compute error|Cast error|Parser error|caused by|backtrace"
    r"|\[Errno|Traceback|Exception|at src/|\.rs\b|Utf8|\bU?Int(8|16|32|64)\b|Float(32|64)|DataType"
    r"|LogicalPlan|Expr|Some\(|TypeSignature|Substrait|panicked|github|sqltorel|\{ ?\w+:"
    r"|/root/|/tmp/|/home/|os error"
)
MISTAKES = [
    ("SELECT current_user", "current_user is not supported"),
    ("SELECT * FROM t WHERE s = SESSION_USER", "session_user is not supported"),
    ("SELECT TOP 5 i FROM t", "write LIMIT at the end"),
    ("WITH x AS (SELECT 1 AS i) INSERT INTO t (i) SELECT i FROM x", "INSERT INTO t WITH x AS"),
    ("SELECT * FROM t, LATERAL (SELECT t.i + 1) x", "LATERAL"),
    ("SELECT arrow_typeof(sum(i)), arrow_typeof(sum(i)) FROM t", "have the same name"),
    ("SELECT i AS a, s AS a FROM t", "have the same name (t.i AS a)"),
    ("SELECT i FROM t, t", "column t.i is duplicated"),
    ("SELECT max(i), max(i) FROM t, t", "compute one of the two in a subquery"),
    ("SELECT i IN (SELECT i FROM t) FROM t", "(SELECT count(*) FROM u WHERE u.k = t.k) > 0"),
    ("SELECT EXISTS (SELECT 1 FROM t u WHERE u.i = t.i) FROM t", "WHERE, HAVING and ON only"),
    ("SELECT i FROM t ORDER BY i IN (SELECT i FROM t)", "WHERE, HAVING and ON only"),
    ("SELECT i FROM t a JOIN t b ON a.i = b.i", "column i is ambiguous"),
    ("SELECT i FROM t WHERE row_number() OVER () = 1", "WindowFunction is not supported"),
    ("SELECT sum(s) FROM t", "function sum does not accept these arguments"),
    ("SELECT abs(s) FROM t", "function abs(TEXT) does not accept these arguments"),
    ("SELECT concat()", "function concat() does not accept these arguments"),
    ("SELECT ln('a')", "function ln(TEXT) does not accept these arguments"),
    ("SELECT from_unixtime('a')", "function from_unixtime(TEXT) does not accept these arguments"),
    ("SELECT arrow_typeof()", "function arrow_typeof() does not accept these arguments"),
    ("SELECT fooo(1)", "function 'fooo' not found"),
    ("SELECT 1 / 0", "division by zero"),
    ("SELECT i / 0 FROM t", "division by zero"),
    ("SELECT CAST('x' AS INT)", "the text 'x' is not a valid INT"),
    ("SELECT CAST(s AS BIGINT) FROM t", "the text 'a' is not a valid BIGINT"),
    ("SELECT DATE '2020-13-01'", "the text '2020-13-01' is not a valid DATE"),
    ("SELECT TIMESTAMP 'foo'", "the text 'foo' is not a valid TIMESTAMP"),
    ("SELECT to_timestamp(s) FROM t", "the text 'a' is not a valid TIMESTAMP"),
    ("SELECT to_date(s) FROM t", "a text is not a valid DATE"),
    ("SELECT INTERVAL '1 foo'", "1 foo"),
    ("SELECT CAST(l AS INT) FROM t", "List(BIGINT) cannot be cast to INT"),
    ("SELECT CAST(1e30 AS DECIMAL(10, 2))", "has more digits than DECIMAL(10, ...)"),
    ("SELECT i + s FROM t", "BIGINT + TEXT cannot be computed"),
    ("SELECT l = 1 FROM t", "List(BIGINT) = BIGINT: the two types are incompatible"),
    ("SELECT i LIKE 'a' FROM t", "LIKE does not accept BIGINT and TEXT"),
    ("SELECT i > ALL (SELECT st FROM t) FROM t", ""),
    ("SELECT regexp_like(s, '(') FROM t", "invalid regular expression: unclosed group"),
    ("SELECT s SIMILAR TO '(' FROM t", "invalid regular expression: unclosed group"),
    ('SELECT s COLLATE "x" FROM t', "Collate is not supported in SQL at this place"),
    ("SELECT ts AT TIME ZONE 'Nowhere/Foo' FROM t", "Nowhere/Foo"),
    ("SELECT substr(i) FROM t", "Substring without for/from is not valid"),
    ("SELECT to_char(ts, '%E') FROM t", "the format is invalid"),
    ("SELECT array_resize([1], -1)", "array_resize needs a size"),
    ("SELECT date_part('foo', ts) FROM t", "'foo' not supported"),
    ("SELECT decode('zz', 'hex')", "Invalid character"),
    ("SELECT make_date(2020, 13, 1)", "out of range"),
    ("SELECT i FROM t LIMIT -1", "LIMIT must be >= 0"),
    ("SELECT i FROM t UNION SELECT l FROM t", "but got incompatible type List(BIGINT)"),
    ("SELECT b'01'", "this kind of literal is not supported"),
    ("SELECT '\0'", "the character NUL"),
    ("SELECT 1; SELECT 2", "send one statement at a time"),
    ("--", "the statement is empty"),
    ("CREATE TABLE x AS SELECT 1", "CREATE TABLE is not supported"),
    ("SELECT " + "(" * 5000 + "1" + ")" * 5000, "levels of parentheses"),
    (
        "SELECT 'a' ~ '((((a{1,50}){1,50}){1,50}){1,50}){1,50}'",
        "the regular expression is too large",
    ),
    (
        "SELECT regexp_like('a', '((((a{1,50}){1,50}){1,50}){1,50}){1,50}')",
        "the regular expression is too large",
    ),
    ("SELECT (SELECT i FROM t)", "more than one row"),
    ("SELECT sum(sum(i)) FROM t", "cannot be nested"),
    ("SELECT sum(i) FILTER (WHERE sum(i) > 1) FROM t", "'sum(t.i) FILTER (WHERE sum(t.i) > 1)'"),
]
T = TableName("s.t")


@pytest.fixture(scope="module")
def made() -> Session:
    return session({"t": TABLE})


@pytest.mark.parametrize(("sql", "says"), MISTAKES)
async def test_mistakes_are_of_the_statement_and_in_our_words(
    made: Session, sql: str, says: str
) -> None:
    with pytest.raises(InvalidQueryError) as told:
        await rows(made, sql)
    assert says in told.value.message
    assert not FORBIDDEN.search(told.value.message), told.value.message
    assert "dataset cannot be read" not in told.value.message


@pytest.mark.parametrize("name", ["parquet error: x", "Object Store error: /etc/passwd", "eof"])
async def test_words_of_the_user_do_not_blame_a_dataset(made: Session, name: str) -> None:
    for sql in (f'SELECT "{name}" FROM t', f"SELECT CAST('{name}' AS INT)", f"SELECT '{name}' + 1"):
        with pytest.raises(InvalidQueryError) as told:
            await rows(made, sql)
        assert "a dataset cannot be read" not in told.value.message


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "Object Store error: Object at location /srv/data/x.parquet not found: No such file or"
            " directory (os error 2)",
            FaultOwner.SOURCE,
        ),
        (
            "Arrow error: External error: Parquet error: EOF: Parquet file too small",
            FaultOwner.SOURCE,
        ),
        (
            "External error: Generic S3 error: https://b.s3.aws/k?X-Amz-Signature=abc",
            FaultOwner.SOURCE,
        ),
        ("Internal error: PhysicalExpr Column references bound error", FaultOwner.ENGINE),
        ("External error: rust future panicked: unknown error", FaultOwner.ENGINE),
        ("ExecutionJoin error: task 7 panicked", FaultOwner.ENGINE),
        ("something else", FaultOwner.ENGINE),
    ],
)
def test_kinds_decide_whose_fault_it_is(text: str, fault: FaultOwner) -> None:
    told = engine_errors.read(text)
    assert told.fault is fault
    for leak in ("/srv/data", "X-Amz-Signature", "Parquet error", "Object Store error"):
        assert leak not in told.message


def test_faults_of_the_engine_are_logged_and_told_without_their_insides(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = "External error: rust future panicked: /srv/secret.rs:12"
    with caplog.at_level(logging.ERROR):
        error = failures.translate(RuntimeError(secret), tables=(), planning=False)
    assert type(error) is ExecutionError
    assert "the log has the cause" in error.message and "secret" not in error.message
    assert secret in caplog.records[0].cause  # type: ignore[attr-defined] # an extra field


def test_memory_errors_name_no_operator_of_the_engine() -> None:
    text = (
        "Resources exhausted: Additional allocation failed for GroupedHashAggregateStream[0] with "
        "top memory consumers. Error: Failed to allocate additional 5.2 MB for Stream[0]"
    )
    error = failures.translate(RuntimeError(text), tables=(), planning=False)
    assert type(error) is OutOfMemoryQueryError
    assert "5.2 MB" in error.message and "Stream" not in error.message


@pytest.mark.parametrize("name", ["it's", "a'' b", "x; --'", "'", "select"])
async def test_the_name_of_a_missing_table_is_whole(name: str) -> None:
    with pytest.raises(TableNotFoundError) as caught:
        await rows(session({"t": TABLE}), f'SELECT * FROM "{name}" WHERE 1 = 1')
    assert caught.value.table == name


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (DatasetError("invalid", "it is none"), "it is none"),
        (PermissionError(13, "Permission denied", "/secret/file"), "read: Permission denied"),
        (ValueError("Error during planning: no"), "no"),
    ],
)
def test_the_reason_is_that_of_the_error(error: Exception, words: str) -> None:
    assert words in failures.reason(T, error)
    assert "/secret" not in failures.reason(T, error)


def test_a_defect_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert "see the engine's log" in failures.reason(T, KeyError("inner"))
    assert "inner" in caplog.text


def test_an_end_of_the_process_is_passed_on() -> None:
    with pytest.raises(KeyboardInterrupt):
        failures.reason(T, KeyboardInterrupt())
