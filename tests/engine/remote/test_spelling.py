"""Names, columns and values in the SQL for a database, each with its kind."""

from dataclasses import replace

import pyarrow as pa
import pytest

from caraway_core.loading.dialects import Dialect
from caraway_core.tables import RemoteColumn
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.spelling import SqlSpelling
from caraway_plugins.sources.postgres.dialect import POSTGRES

SPELLING = SqlSpelling(POSTGRES)


@pytest.mark.parametrize(
    ("name", "sql"),
    [("a", '"a"'), ('a"b', '"a""b"'), ('"; DROP TABLE t; --', '"""; DROP TABLE t; --"')],
)
def test_names_are_quoted(name: str, sql: str) -> None:
    assert SPELLING.quoted(name) == sql


def test_backslash_in_a_name_is_escaped_where_it_may_be_an_escape() -> None:
    escaping = SqlSpelling(replace(POSTGRES, backslash="\\\\"))
    assert escaping.quoted('a\\"b') == '"a\\\\""b"'


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
