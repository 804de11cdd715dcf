"""SQL of statements that write, which may be more than that of queries."""

from dataclasses import replace

import pyarrow as pa
import pytest

from caraway_core.loading.dialects import ROWS_ALONE
from caraway_engine.remote.kinds import NotPushableError, Term
from caraway_engine.remote.words import SqlWriter
from caraway_engine.remote.write_words import WriteSqlWriter
from caraway_plugins.sources.postgres.dialect import POSTGRES

WRITER = WriteSqlWriter(POSTGRES)
INT = Term("i", "int", digits=10)
DOUBLE = Term("d", "double")
SINGLE = Term("f", "double", is_single=True)
TEXT = Term("s", "text")
TRUE = Term("b", "bool")


def test_a_choice_has_the_widest_facts_of_its_values() -> None:
    found = WRITER.chosen([(TRUE, INT), (TRUE, None)], replace(INT, sql="j", digits=19))
    assert found == Term("(CASE WHEN b THEN i WHEN b THEN NULL ELSE j END)", "int", digits=19)


@pytest.mark.parametrize(
    ("cases", "other"),
    [
        ([(TRUE, INT)], TEXT),
        ([(TRUE, None)], None),
        ([(INT, INT)], None),
        ([(replace(TRUE, is_exact=False), INT)], None),
        ([(TRUE, replace(TEXT, is_text=True))], None),
        ([(TRUE, replace(INT, kind=""))], None),
        ([(TRUE, replace(INT, sql="i" * 5_000))], None),
    ],
)
def test_choices_that_are_refused(
    cases: list[tuple[Term, Term | None]], other: Term | None
) -> None:
    with pytest.raises(NotPushableError):
        WRITER.chosen(cases, other)


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("upper", [TEXT]),
        ("abs", [TEXT]),
        ("str_concat", [TEXT, INT]),
        ("character_length", [replace(TEXT, is_text=True)]),
        ("nullif", [INT, TEXT]),
        ("greatest", [DOUBLE, DOUBLE]),
        ("greatest", [replace(TEXT, is_prefiltered=True)] * 2),
    ],
)
def test_functions_that_are_refused(name: str, operands: list[Term]) -> None:
    with pytest.raises(NotPushableError):
        WRITER.called(name, operands)


def test_numbers_of_32_bits_are_not_computed() -> None:
    assert WRITER.computed("add", DOUBLE, DOUBLE).sql == "(d + d)"
    assert WRITER.cast(DOUBLE, pa.float64()) == DOUBLE
    chosen = WRITER.chosen([(TRUE, SINGLE)], None)
    for each in (SINGLE, chosen):
        with pytest.raises(NotPushableError):
            WRITER.computed("add", each, SINGLE)
        with pytest.raises(NotPushableError):
            WRITER.cast(each, pa.float64())


def test_queries_and_other_databases_have_none_of_it() -> None:
    for writer in (SqlWriter(POSTGRES), WriteSqlWriter(ROWS_ALONE)):
        with pytest.raises(NotPushableError):
            writer.chosen([(TRUE, INT)], None)
        with pytest.raises(NotPushableError):
            writer.called("abs", [INT])
        with pytest.raises(NotPushableError):
            writer.computed("add", DOUBLE, DOUBLE)


def test_comparisons_of_doubles_fail_for_nan() -> None:
    found = WRITER.compared("lt", DOUBLE, WRITER.literal(0.0))
    assert found.is_exact and found.sql == (
        "(CASE WHEN d = 'NaN'::float8 THEN ((d)::text)::boolean ELSE (d < ('0.0')::float8) END)"
    )
    without = WriteSqlWriter(replace(POSTGRES, is_nan=""))
    assert without.compared("lt", DOUBLE, DOUBLE) == Term("(d < d)", "bool")
