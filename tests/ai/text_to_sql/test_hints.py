"""Hints for a question: the values and dates that it names, and where a missing column is."""

from dataclasses import replace

import pytest

from caraway_ai.text_to_sql.described import DescribedTable, SampledValues
from caraway_ai.text_to_sql.hints import error_hint, question_hints
from caraway_ai.text_to_sql.prompting import correction, fresh_try, messages
from caraway_ai.text_to_sql.relating import TableRelation
from caraway_ai.tools.data_access import KnownColumn, KnownTable
from caraway_core.ids import TableName

FLIGHT = DescribedTable(
    KnownTable(TableName("flight"), "dataset"),
    [KnownColumn("f_status", "Utf8"), KnownColumn("f_date", "Date32")],
    values={
        "f_status": SampledValues(("on time", "C"), others=("it's off",)),
        "f_date": SampledValues(("2024-01-01", "2024-12-31")),
    },
)
AIRPORT = DescribedTable(
    KnownTable(TableName("air.Port"), "dataset"),
    [KnownColumn("a_city", "Utf8View"), KnownColumn("a_status", "Utf8")],
    values={"a_city": SampledValues(("Bern", "on time"))},
)
TABLES = [FLIGHT, AIRPORT]


@pytest.mark.parametrize(
    ("question", "hints"),
    [
        ("How many flights are there?", []),
        ("How many to bern?", ['\'Bern\' is a value of "air"."Port".a_city']),
        ("How many Bernese?", []),
        ("How many of C?", []),
        ("Which is it's off today", ["'it''s off' is a value of flight.f_status"]),
        ("On time?", ['\'on time\' is a value of flight.f_status and of "air"."Port".a_city']),
        ("In 2024?", ["for a date d, 2024 is d >= DATE '2024-01-01' AND d < DATE '2025-01-01'"]),
        (
            "In December 2024 and in 2024-12-03?",
            [
                "for a date d, December 2024 is d >= DATE '2024-12-01' AND d < DATE '2025-01-01'",
                "for a date d, 2024 is d >= DATE '2024-01-01' AND d < DATE '2025-01-01'",
            ],
        ),
        ("20245 or 12024?", []),
    ],
)
def test_a_question_s_values_and_dates_are_found(question: str, hints: list[str]) -> None:
    assert list(question_hints(question, TABLES)) == hints


def test_dates_need_a_column_of_dates() -> None:
    assert list(question_hints("In 2024?", [AIRPORT])) == []


def test_hints_are_bounded() -> None:
    question = " ".join(f"in {year}" for year in range(1950, 2000))
    assert len(question_hints(question, TABLES)) == 8


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        ("column 'b_status' not found; did you mean 'b.b_class'?", "There is flight.f_status and"),
        ("column 'b.city' not found", 'There is "air"."Port".a_city: read from'),
        ("column 'price' not found", ""),
        ("syntax error", ""),
    ],
)
def test_a_missing_column_is_found_in_other_tables(error: str, hint: str) -> None:
    found = error_hint(error, TABLES)
    assert found.startswith(hint) and bool(found) == bool(hint)


@pytest.mark.parametrize(
    ("known", "join"),
    [
        (
            "flight.f_status, flight.f_airport",
            "FROM flight JOIN city ON flight.f_city = city.c_id.",
        ),
        ("other.x", ""),
    ],
)
def test_a_missing_column_s_table_is_joined_by_its_key(known: str, join: str) -> None:
    relation = TableRelation("f_city", TableName("city"), "c_id")
    city = DescribedTable(
        KnownTable(TableName("city"), "dataset"), [KnownColumn("c_population", "Int64")]
    )
    tables = [replace(FLIGHT, relations=[relation]), city]
    hint = error_hint(f"column 'population' not found; Known columns: {known}.", tables)
    assert "There is city.c_population" in hint
    assert hint.endswith(join) if join else "JOIN" not in hint
    back = error_hint("column 'status' not found; Known columns: city.c_id", tables)
    assert back.endswith("Write: FROM city JOIN flight ON flight.f_city = city.c_id.")


def test_hints_are_part_of_the_messages() -> None:
    asked = messages("How many to Bern?", TABLES)
    assert asked[-1]["content"].startswith("Question: How many to Bern?\nHints:\n- 'Bern'")
    assert messages("How many?", TABLES)[-1]["content"] == "Question: How many?"
    corrected = correction("SELECT x", "it failed", "use y")
    assert corrected[0]["content"] == "SELECT x"
    assert corrected[1]["content"] == (
        "The query failed: it failed\nuse y\nWrite the corrected query only."
    )
    fresh = fresh_try(asked, "it failed", "use y")
    assert len(fresh) == 2 and fresh[0] == asked[0]
    assert fresh[1]["content"].endswith("\nAn earlier query failed: it failed\nuse y")
    assert asked[-1]["content"] == messages("How many to Bern?", TABLES)[-1]["content"]
