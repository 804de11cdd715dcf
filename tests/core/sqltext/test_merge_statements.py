"""MERGE statements: their parts, and those that are not supported."""

import pytest

from caraway_core.errors import InvalidQueryError
from caraway_core.sqltext.merge_statements import MergeClause, parse

LONG = """
MERGE INTO a.b.t AS x USING (SELECT 1 AS a, ')' AS b) AS s
ON (x.a = s.a AND /* c */ x."B" = CASE WHEN s.b = 'q' THEN 1 ELSE 2 END)
WHEN MATCHED AND s.a > 3 AND CASE WHEN TRUE THEN TRUE END THEN DELETE
WHEN MATCHED THEN UPDATE SET x.b = f(s.a, 2), "C" = CASE WHEN 1 = 1 THEN s.b END
WHEN NOT MATCHED BY TARGET THEN INSERT (a, "B") VALUES (s.a, s.b || ',')
WHEN NOT MATCHED THEN INSERT VALUES (1, (2));
"""


def test_its_parts_are_texts() -> None:
    made = parse(LONG)
    assert (made.target, made.table) == ("x", "a.b.t AS x")
    assert (made.target, made.source) == ("x", "(SELECT 1 AS a, ')' AS b) AS s")
    assert [each.up_to() for each in made.on] == [
        "x.a = s.a", "x.\"B\" = CASE WHEN s.b = 'q' THEN 1 ELSE 2 END",
    ]  # fmt: skip
    assert made.clauses == (
        MergeClause("both", "s.a > 3 AND CASE WHEN TRUE THEN TRUE END", "delete"),
        MergeClause(
            "both", "", "update", (("b", "f(s.a, 2)"), ("C", "CASE WHEN 1 = 1 THEN s.b END"))
        ),
        MergeClause("source", "", "insert", (("a", "s.a"), ("B", "s.b || ','"))),
        MergeClause("source", "", "insert", (("", "1"), ("", "(2)"))),
    )


@pytest.mark.parametrize(
    ("sql", "on"),
    [
        ("t.a = s.a", ["t.a = s.a"]),
        ("((t.a = s.a) AND t.b = s.b)", ["(t.a = s.a)", "t.b = s.b"]),
        ("(t.a = s.a) AND (t.b = s.b)", ["(t.a = s.a)", "(t.b = s.b)"]),
        ("t.a = (s.a AND s.b)", ["t.a = (s.a AND s.b)"]),
        ("s.a = 1 OR s.b = 2 AND t.a = s.a", ["s.a = 1 OR s.b = 2 AND t.a = s.a"]),
        ("((s.a = 1 OR s.b = 2) AND t.a = s.a)", ["(s.a = 1 OR s.b = 2)", "t.a = s.a"]),
    ],
)
def test_conditions_that_hold_together(sql: str, on: list[str]) -> None:
    made = parse(f"MERGE INTO t USING s ON {sql} WHEN MATCHED THEN DELETE")
    assert [each.up_to() for each in made.on] == on and made.target == "t"


def test_clauses_say_where_their_rows_are() -> None:
    made = parse(
        "MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED BY SOURCE AND t.a > 3 THEN DELETE "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = 1"
    )
    assert made.clauses == (
        MergeClause("table", "t.a > 3", "delete"),
        MergeClause("table", "", "update", (("b", "1"),)),
    )


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("ON t.a = s.a WHEN MATCHED THEN DO NOTHING", "'UPDATE SET' is missing before 'DO'"),
        ("ON t.a = s.a WHEN MATCHED THEN INSERT VALUES (1)", "'UPDATE SET' is missing"),
        ("ON t.a = s.a WHEN NOT MATCHED THEN DELETE", "'INSERT' is missing before 'DELETE'"),
        ("ON t.a = s.a WHEN MATCHED THEN DELETE; DELETE FROM t", "one statement"),
        ("ON t.a = s.a", "MERGE needs WHEN"),
        ("WHEN MATCHED THEN DELETE", "'ON' is missing"),
    ],
)
def test_what_is_more_is_refused(sql: str, words: str) -> None:
    with pytest.raises(InvalidQueryError) as caught:
        parse(f"MERGE INTO t USING s {sql}")
    assert words in caught.value.message
