"""Names, columns and values in the SQL for a database, each with its kind."""

import datetime
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from caraway_core.loading.dialects import Dialect
from caraway_core.tables import RemoteColumn
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.spelling import SqlSpelling
from caraway_plugins.sources.postgres.dialect import POSTGRES

SPELLING = SqlSpelling(POSTGRES)


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        (True, "TRUE"),
        (5, "(5)::int8"),
        (-(2**63), "('-9223372036854775808')::int8"),
        (Decimal("1.50"), "(1.50)::numeric"),
        (Decimal("1E-7"), "(0.0000001)::numeric"),
        ("it's", "'it''s'::text"),
        ("a\\'; DROP TABLE t --", "'a\\''; DROP TABLE t --'::text"),
        (1.5, "('1.5')::float8"),
        (datetime.date(1, 2, 3), "DATE '0001-02-03'"),
        (datetime.datetime(2020, 1, 2, 3, 4, 5, 6), "TIMESTAMP '2020-01-02 03:04:05.000006'"),
        (
            datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            "TIMESTAMPTZ '2020-01-01 22:00:00+00'",
        ),
    ],
)
def test_literals(value: object, sql: str) -> None:
    assert SPELLING.literal(value).sql == sql


@pytest.mark.parametrize(
    "value",
    ["a\0b", 2**63, None, b"x", float("nan"), float("inf"), Decimal("NaN"), [1], Decimal("1" * 39)],
)
def test_values_that_are_not_sent(value: object) -> None:
    with pytest.raises(NotPushableError):
        SPELLING.literal(value)


def test_backslash_that_may_be_an_escape_is_not_sent_or_is_escaped() -> None:
    end = "\\' OR TRUE --"
    with pytest.raises(NotPushableError):
        SqlSpelling(replace(POSTGRES, backslash="")).literal(end)
    escaping = SqlSpelling(replace(POSTGRES, backslash="\\\\"))
    assert escaping.literal(end).sql == "'\\\\'' OR TRUE --'::text"
    assert escaping.quoted('a\\"b') == '"a\\\\""b"'


def test_texts_with_an_apostrophe_are_not_sent_where_two_are_none() -> None:
    spelling = SqlSpelling(replace(POSTGRES, apostrophe=""))
    with pytest.raises(NotPushableError):
        spelling.literal("it's")
    assert spelling.literal("its").sql == "'its'::text"
    escaping = SqlSpelling(replace(POSTGRES, apostrophe="\\'", backslash="\\\\"))
    assert escaping.literal("\\'' OR").sql == "'\\\\\\'\\' OR'::text"


def test_dates_that_the_database_has_not_are_not_sent() -> None:
    spelling = SqlSpelling(replace(POSTGRES, years=(1900, 2261)))
    assert spelling.literal(datetime.date(1900, 1, 1)).sql == "DATE '1900-01-01'"
    for year in (1899, 2262):
        for value in (datetime.date(year, 1, 1), datetime.datetime(year, 1, 1)):
            with pytest.raises(NotPushableError):
                spelling.literal(value)


@pytest.mark.parametrize(
    ("name", "sql"),
    [("a", '"a"'), ('a"b', '"a""b"'), ('"; DROP TABLE t; --', '"""; DROP TABLE t; --"')],
)
def test_names_are_quoted(name: str, sql: str) -> None:
    assert SPELLING.quoted(name) == sql


def test_name_with_nul_is_not_sent() -> None:
    with pytest.raises(NotPushableError, match="NUL"):
        SPELLING.quoted('a\0" OR 1')
    assert SPELLING.quoted("") == '""'


def column(
    type_: pa.DataType, *, is_comparable: bool = True, is_text: bool = False
) -> RemoteColumn:
    return RemoteColumn("c", type_, is_comparable=is_comparable, is_text=is_text)


LOOSE = SqlSpelling(Dialect(kinds=frozenset({"text", "int"}), prefiltered=frozenset({"text"})))
BYTES = SqlSpelling(replace(POSTGRES, bytes="hex({})"))


@pytest.mark.parametrize(
    ("spelling", "found", "template"),
    [
        (SPELLING, column(pa.string()), '{} COLLATE "C"'),
        (BYTES, column(pa.string()), "hex({})"),
        (SPELLING, column(pa.int64()), "{}"),
        (LOOSE, column(pa.int64()), "{}"),
        (SPELLING, column(pa.string(), is_text=True), None),
        (SPELLING, column(pa.int64(), is_comparable=False), None),
        (SPELLING, column(pa.list_(pa.int64())), None),
        (LOOSE, column(pa.float64()), None),
    ],
)
def test_columns_of_two_tables_are_the_same_in_one_spelling(
    spelling: SqlSpelling, found: RemoteColumn, template: str | None
) -> None:
    assert spelling.sameness(found) == template


def test_prefiltered_values_other_than_texts_are_the_same_in_no_spelling() -> None:
    dates = SqlSpelling(Dialect(kinds=frozenset({"date"}), prefiltered=frozenset({"date"})))
    assert dates.column(column(pa.date32())).is_prefiltered
    assert dates.sameness(column(pa.date32())) is None


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (pa.int16(), Term("x", "int", digits=5)),
        (pa.decimal128(38, 37), Term("x", "decimal", digits=1, scale=37)),
        (pa.float32(), Term("x", "double", is_single=True)),
        (pa.float64(), Term("x", "double")),
        (pa.struct([("a", pa.int64())]), Term("x")),
        (pa.null(), Term("x")),
    ],
)
def test_expression_of_a_type_has_its_kind_and_digits(type_: pa.DataType, expected: Term) -> None:
    assert SPELLING.of_type("x", type_) == expected


def test_only_exact_operations_can_be_used() -> None:
    SPELLING.need("sort")
    with pytest.raises(NotPushableError, match="sort"):
        LOOSE.need("sort")
