"""Positions in the log of PostgreSQL: their text, and the order of their offsets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.changes import SOURCE_BYTES
from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.postgres import positions
from caraway_plugins.changes.postgres.positions import PostgresPosition

LSNS = st.integers(0, 2**64 - 1)


@settings(max_examples=40)
@given(LSNS)
def test_a_log_position_is_written_as_postgresql_writes_it(lsn: int) -> None:
    text = positions.lsn_text(lsn)
    high, low = text.split("/")
    assert int(high + low.rjust(8, "0"), 16) == lsn
    assert positions.lsn(text) == lsn


@settings(max_examples=40)
@given(st.text(), st.text(), LSNS, LSNS, st.integers(0, 2**40), st.booleans())
def test_a_position_is_the_same_after_it_was_stored(
    generation: str, columns: str, lsn: int, open_lsn: int, taken: int, is_loading: bool
) -> None:
    at = PostgresPosition(generation, columns, lsn, open_lsn, taken, is_loading)
    assert positions.read(at.text()) == at


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "7", '"text"', "{}", "{", "[[[[",
        '{"generation":"g","columns":"c","lsn":"0/0","open":"0/0","taken":0}',
        '{"generation":"g","columns":"c","lsn":"x","open":"0/0","taken":0,"is_loading":false}',
        '{"generation":"g","columns":"c","lsn":"1","open":"0/0","taken":0,"is_loading":false}',
        '{"generation":"g","columns":"c","lsn":null,"open":"0/0","taken":0,"is_loading":false}',
        '{"generation":"g","columns":"c","lsn":5,"open":"0/0","taken":0,"is_loading":false}',
        '{"generation":"g","columns":"c","lsn":"0/0","open":"0/0","taken":"x","is_loading":false}',
        '{"generation":5,"columns":"c","lsn":"0/0","open":"0/0","taken":0,"is_loading":false}',
        '{"topic": "orders", "offsets": {"0": 5}}',
    ],
)  # fmt: skip
def test_what_is_no_position_makes_the_dataset_load_again(text: str) -> None:
    with pytest.raises(PositionLostError, match="not a PostgreSQL position"):
        positions.read(text)


@settings(max_examples=40)
@given(st.tuples(LSNS, st.integers(0, 2**40 - 1)), st.tuples(LSNS, st.integers(0, 2**40 - 1)))
def test_offsets_sort_by_transaction_and_then_by_number(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    source = PostgresPosition("one", "", 0).source
    assert len(source) == SOURCE_BYTES
    assert source != PostgresPosition("two", "", 0).source
    offsets = [positions.offset(source, *each) for each in (one, other)]
    assert (offsets[0] < offsets[1]) == (one < other)
    assert (offsets[0] == offsets[1]) == (one == other)
