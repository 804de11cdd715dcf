"""Values of Python as literals of SQL: the same value, or none."""

import datetime
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_engine.remote import literals
from caraway_engine.remote.kinds import NotPushableError
from caraway_plugins.sources.postgres.dialect import POSTGRES


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
    assert literals.spelled(value, POSTGRES).sql == sql


@pytest.mark.parametrize(
    "value",
    ["a\0b", 2**63, None, b"x", float("nan"), float("inf"), Decimal("NaN"), [1], Decimal("1" * 39)],
)
def test_values_that_are_not_sent(value: object) -> None:
    with pytest.raises(NotPushableError):
        literals.spelled(value, POSTGRES)


def test_backslash_that_may_be_an_escape_is_not_sent_or_is_escaped() -> None:
    end = "\\' OR TRUE --"
    with pytest.raises(NotPushableError):
        literals.spelled(end, replace(POSTGRES, backslash=""))
    escaping = replace(POSTGRES, backslash="\\\\")
    assert literals.spelled(end, escaping).sql == "'\\\\'' OR TRUE --'::text"


def test_texts_with_an_apostrophe_are_not_sent_where_two_are_none() -> None:
    dialect = replace(POSTGRES, apostrophe="")
    with pytest.raises(NotPushableError):
        literals.spelled("it's", dialect)
    assert literals.spelled("its", dialect).sql == "'its'::text"
    escaping = replace(POSTGRES, apostrophe="\\'", backslash="\\\\")
    assert literals.spelled("\\'' OR", escaping).sql == "'\\\\\\'\\' OR'::text"


def test_dates_that_the_database_has_not_are_not_sent() -> None:
    dialect = replace(POSTGRES, years=(1900, 2261))
    assert literals.spelled(datetime.date(1900, 1, 1), dialect).sql == "DATE '1900-01-01'"
    for year in (1899, 2262):
        for value in (datetime.date(year, 1, 1), datetime.datetime(year, 1, 1)):
            with pytest.raises(NotPushableError):
                literals.spelled(value, dialect)


@given(st.text(st.characters(exclude_characters="\0\\")))
def test_no_text_ends_its_literal(text: str) -> None:
    found = literals.spelled(text, POSTGRES)
    assert found.sql.startswith("'") and found.sql.endswith("'::text")
    assert found.sql[1:-7].replace("''", "") == text.replace("'", "")
    assert found.is_literal and found.kind == "text"


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimal_has_all_its_digits(value: Decimal) -> None:
    try:
        found = literals.literal_of(value)
    except NotPushableError:
        assert len(value.as_tuple().digits) > 38
        return
    assert Decimal(found.content) == value
    assert "E" not in found.content
    assert found.scale == len(found.content.partition(".")[2])


@pytest.mark.parametrize(("value", "kind"), [(True, "bool"), (1, "int"), (1.0, "double")])
def test_kinds_of_python_that_are_equal_are_told_apart(value: object, kind: str) -> None:
    assert literals.literal_of(value).kind == kind
