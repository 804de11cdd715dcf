"""Names without need of quotes, held against the engine that reads them."""

import pytest
from datafusion import SessionContext
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.sqltext import identifiers


@pytest.mark.parametrize(
    ("names", "plain"),
    [
        (["id", "_id", "a__b", "x1"], ["id", "_id", "a__b", "x1"]),
        (["Order ID", " Net (EUR) ", "a-b.c", "%"], ["order_id", "net_eur", "a_b_c", "column_4"]),
        (["2024", "Order", "group"], ["_2024", "_order", "_group"]),
        (["A B", "a_b", "a b", "a_b"], ["a_b_2", "a_b", "a_b_3", "a_b_4"]),
        (["a", "A", "a_2"], ["a", "a_3", "a_2"]),
        (["Größe", "Ñandú", "名前", "m²"], ["größe", "ñandú", "名前", "m"]),
        (["", " ", "column_1"], ["column_1_2", "column_2", "column_1"]),
        ([], []),
    ],
)
def test_names_become_plain_and_stay_different(names: list[str], plain: list[str]) -> None:
    assert list(identifiers.normalized(names)) == plain


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=8), min_size=1, max_size=6))
def test_the_engine_reads_every_plain_name_without_quotes(names: list[str]) -> None:
    plain = identifiers.normalized(names)
    assert len(set(plain)) == len(names)
    assert identifiers.normalized(plain) == plain
    numbers = ", ".join(f'{number} AS "{name}"' for number, name in enumerate(plain))
    sql = f"SELECT {', '.join(plain)} FROM (SELECT {numbers}) ORDER BY {plain[0]}"
    found = SessionContext().sql(sql).to_pylist()
    assert found == [{name: number for number, name in enumerate(plain)}]
