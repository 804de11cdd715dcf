import datetime
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from caraway_core.loading.dialects import Dialect
from caraway_core.tables import RemoteColumn
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.words import SqlWriter
from caraway_plugins.sources.postgres.dialect import POSTGRES

WRITER = SqlWriter(POSTGRES)
INT = Term("i", "int", digits=19)
TEXT = Term("s", "text")
DOUBLE = Term("f", "double")
TRUE = Term("b", "bool")
MONEY = Term("n", "decimal", digits=13, scale=2)


def test_sum_that_may_overflow_is_not_sent_where_nothing_checks_it() -> None:
    writer = SqlWriter(replace(POSTGRES, exact=frozenset({"sum short decimal"})))
    assert writer.sum(MONEY, "").sql == "sum(n)"
    with pytest.raises(NotPushableError):
        writer.sum(Term("w", "decimal", digits=28, scale=10), "")


def test_text_is_ordered_by_its_bytes_and_compared_by_its_index() -> None:
    assert WRITER.compared("lt", TEXT, WRITER.literal("x")).sql == "(s COLLATE \"C\" < 'x'::text)"
    assert WRITER.compared("equal", TEXT, WRITER.literal("x")).sql == "(s = 'x'::text)"
    assert WRITER.ordered(TEXT, descending=True, nulls_first=False) == (
        's COLLATE "C" DESC NULLS LAST'
    )


def test_comparisons_of_doubles_take_in_nan_and_both_zeros() -> None:
    found = WRITER.compared("lt", DOUBLE, WRITER.literal(0.0))
    assert found.sql.startswith("(f <= ('0.0')::float8 OR f = 'NaN'::float8")
    assert not found.is_exact
    with pytest.raises(NotPushableError):
        WRITER.negated(found)
    with pytest.raises(NotPushableError):
        WRITER.compared("not_equal", DOUBLE, WRITER.literal(0.0))


@pytest.mark.parametrize(
    ("left", "right"), [(INT, TEXT), (INT, MONEY), (Term("x"), Term("y")), (DOUBLE, INT)]
)
def test_only_values_of_one_kind_are_compared(left: Term, right: Term) -> None:
    with pytest.raises(NotPushableError):
        WRITER.compared("equal", left, right)


@pytest.mark.parametrize("pattern", ["a\\%", "\\"])
def test_patterns_with_an_escape_are_not_sent(pattern: str) -> None:
    with pytest.raises(NotPushableError):
        WRITER.alike(TEXT, pattern)


@pytest.mark.parametrize(
    ("term", "to"),
    [
        (MONEY, pa.decimal128(15, 1)),
        (MONEY, pa.decimal128(12, 2)),
        (MONEY, pa.int64()),
        (INT, pa.decimal128(10, 0)),
        (INT, pa.string()),
        (INT, pa.uint64()),
        (TEXT, pa.int64()),
        (DOUBLE, pa.decimal128(38, 2)),
    ],
)
def test_casts_that_may_round_or_fail_are_not_sent(term: Term, to: pa.DataType) -> None:
    with pytest.raises(NotPushableError):
        WRITER.cast(term, to)


def test_digits_of_what_is_computed_are_known() -> None:
    product = WRITER.computed("multiply", MONEY, MONEY)
    assert (product.digits, product.scale) == (26, 4)
    total = WRITER.computed("add", MONEY, WRITER.cast(INT, pa.decimal128(20, 0)))
    assert (total.digits, total.scale) == (21, 2)
    with pytest.raises(NotPushableError):
        WRITER.computed("divide", MONEY, MONEY)


def test_decimals_of_more_digits_than_the_engine_has_are_its_own_matter() -> None:
    """Its own results have as many digits as fit into 128 bits, which a database sends as text."""
    most = Term("n", "decimal", digits=27, scale=10)
    assert WRITER.computed("add", most, MONEY).digits == 28
    for name, other in (("subtract", Term("m", "decimal", digits=28)), ("multiply", most)):
        with pytest.raises(NotPushableError, match="many digits"):
            WRITER.computed(name, most, other)


def test_nothing_is_known_of_columns_that_compare_otherwise() -> None:
    padded = WRITER.column(RemoteColumn("c", pa.string(), is_comparable=False))
    with pytest.raises(NotPushableError):
        WRITER.compared("equal", padded, WRITER.literal("x"))
    with pytest.raises(NotPushableError):
        WRITER.ordered(padded, descending=False, nulls_first=False)
    assert WRITER.null_test(padded, is_null=True).sql == '("c" IS NULL)'


@pytest.mark.parametrize("options", [[], [DOUBLE], [TEXT, INT]])
def test_lists_of_one_kind_are_sent(options: list[Term]) -> None:
    with pytest.raises(NotPushableError):
        WRITER.among(TEXT, options)


def test_what_the_driver_has_no_form_for_is_sent_as_text() -> None:
    uuid = WRITER.column(RemoteColumn("u", pa.string(), is_text=True))
    assert WRITER.sent(uuid, pa.string()) == '("u")::text'
    items = WRITER.column(RemoteColumn("a", pa.list_(pa.string()), is_text=True))
    assert WRITER.sent(items, pa.list_(pa.string())) == '("a")::text[]'
    assert WRITER.sent(MONEY, pa.decimal128(15, 2)) == "(n)::text"
    assert WRITER.sent(TRUE, pa.bool_()) == "b"


LOOSE = SqlWriter(
    Dialect(
        kinds=frozenset({"text", "date", "int"}),
        prefiltered=frozenset({"text", "date"}),
        exact=frozenset({"sort", "like", "extreme", "count", "count distinct"}),
        literals={"text": "'{}'", "date": "DATE '{}'"},
        casts={"float": "({} + 0e0)"},
        has_nulls_order=False,
    )
)


def loose(type_: pa.DataType) -> Term:
    return LOOSE.column(RemoteColumn("x", type_, is_comparable=True))


def test_what_is_prefiltered_is_compared_again() -> None:
    name, day = loose(pa.string()), loose(pa.date32())
    a, today = LOOSE.literal("a"), LOOSE.literal(datetime.date(2024, 2, 29))
    for made in (
        LOOSE.compared("equal", name, a),
        LOOSE.among(name, [a]),
        LOOSE.compared("gte", day, today),
    ):
        assert made.kind == "bool" and not made.is_exact
    assert LOOSE.null_test(name, is_null=True).is_exact
    for refused in (
        lambda: LOOSE.compared("lt", name, a),
        lambda: LOOSE.compared("not_equal", day, today),
        lambda: LOOSE.alike(name, "a%"),
        lambda: LOOSE.extreme("min", day, ""),
        lambda: LOOSE.count(name, "", is_distinct=True),
        lambda: LOOSE.ordered(day, descending=False, nulls_first=False),
    ):
        with pytest.raises(NotPushableError):
            refused()


def test_nulls_have_a_key_of_their_own_where_sorts_have_no_words_for_them() -> None:
    number = loose(pa.int64())
    assert LOOSE.ordered(number, descending=True, nulls_first=False) == '"x" IS NULL ASC, "x" DESC'
    assert LOOSE.ordered(number, descending=False, nulls_first=True) == '"x" IS NULL DESC, "x" ASC'


def test_floats_are_sent_as_doubles_where_their_text_is_short() -> None:
    assert LOOSE.sent(loose(pa.float32()), pa.float32()) == '("x" + 0e0)'
    assert LOOSE.sent(loose(pa.float64()), pa.float64()) == '"x"'


WITHOUT_SIGN = SqlWriter(
    Dialect(
        kinds=frozenset({"int", "uint"}),
        exact=frozenset({"cast int", "sum uint", "add int"}),
        literals={"int": "{}"},
        casts={"int32": "i4({})", "int64": "i8({})", "uint64": "u8({})"},
        checks_columns=True,
    )
)


def counter(type_: pa.DataType) -> Term:
    return WITHOUT_SIGN.column(RemoteColumn("x", type_, is_comparable=True))


def test_integers_without_sign_are_compared_and_added_up() -> None:
    small, large = counter(pa.uint32()), counter(pa.uint64())
    seven = WITHOUT_SIGN.literal(7)
    assert WITHOUT_SIGN.compared("gt", small, seven).sql == '("x" > 7)'
    assert WITHOUT_SIGN.among(large, [seven]).sql == '("x" IN (7))'
    assert WITHOUT_SIGN.cast(small, pa.int64()).sql == 'i8("x")'
    assert WITHOUT_SIGN.cast(small, pa.uint64()).kind == "uint"
    assert WITHOUT_SIGN.sum(small, "").sql == 'u8(sum("x"))'
    refused: list[Callable[[], Term]] = [
        lambda: WITHOUT_SIGN.cast(large, pa.int64()),
        lambda: WITHOUT_SIGN.cast(small, pa.uint16()),
        lambda: WITHOUT_SIGN.computed("add", small, small),
        lambda: WITHOUT_SIGN.computed("add", small, seven),
        lambda: WITHOUT_SIGN.literal(2**63),
    ]
    for each in refused:
        with pytest.raises(NotPushableError):
            each()


def test_what_a_reader_checks_is_not_checked_by_the_database() -> None:
    number = counter(pa.int32())
    assert WITHOUT_SIGN.sent(number, pa.int32()) == '"x"'
    assert WITHOUT_SIGN.sent(number, pa.int64()) == 'i8("x")'
    computed = WITHOUT_SIGN.computed("add", number, WITHOUT_SIGN.literal(1))
    assert WITHOUT_SIGN.sent(computed, pa.int32()) == 'i4(("x" + 1))'


def test_rows_have_the_unchecked_column_and_groups_have_not() -> None:
    column = RemoteColumn("x", pa.int32(), is_comparable=True, unchecked='y"')
    term = WITHOUT_SIGN.column(column)
    assert WITHOUT_SIGN.sent(term, pa.int32()) == '"y"""'
    assert WITHOUT_SIGN.sent(term, pa.int32(), is_group=True) == '"x"'
    assert WITHOUT_SIGN.sent(term, pa.int64()) == 'i8("x")'
    in_join = replace(term, sql='"side0"."column0"')
    assert WITHOUT_SIGN.sent(in_join, pa.int32()) == '"side0"."column0"'
