"""Statements and the rows that come with them cross to other processes."""

import pickle

import pyarrow as pa

from caraway_core.ids import TableName
from caraway_core.statements import GIVEN_SCHEMA, GivenRows


def test_given_rows_cross_as_they_are_and_slices_alone() -> None:
    text = pa.array([None if number % 7 == 0 else f"text {number}" for number in range(9000)])
    rows = pa.table({"n": range(9000), "s": text, "d": text.dictionary_encode()}).slice(5, 4)
    given = GivenRows.from_table(rows, TableName("t"), replaces=True)
    crossed = pickle.dumps(given)
    assert len(crossed) < 100_000 + text.dictionary_encode().dictionary.nbytes
    again = pickle.loads(crossed)
    assert again == given and again.target == "t" and again.replaces
    assert again.rows.to_pydict() == rows.to_pydict()
    assert (
        given.name.startswith(f"{GIVEN_SCHEMA}.") and given.name != GivenRows.from_table(rows).name
    )


def test_no_rows_cross_too() -> None:
    given = GivenRows.from_table(pa.table({"n": pa.array([], pa.int8())}))
    assert pickle.loads(pickle.dumps(given)).rows.schema == given.rows.schema
