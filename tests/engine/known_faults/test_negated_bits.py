"""A minus before bits is arithmetic."""

import asyncio

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_engine.known_faults import negated_bits
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import memory, rows, session

VALUES = [-3, 0, 1, 2, 7, 42]
_OPERANDS = st.sampled_from(["k", "m", "2", "12", "(k + 1)"])
_BITS = st.builds("({} {} {})".format, _OPERANDS, st.sampled_from("&|^"), _OPERANDS)
_NEGATED = st.recursive(
    _BITS,
    lambda inner: st.one_of(
        st.builds("(-{})".format, inner),
        st.builds("({} {} {})".format, inner, st.sampled_from("&|^+"), _OPERANDS),
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def made() -> Session:
    m = pa.array([5, 1, -1, 12, 3, 0], pa.int64())
    return session({"t": memory(k=pa.array(VALUES, pa.int64()), m=m)})


@settings(max_examples=100)
@given(bits=_NEGATED)
def test_negated_bits_are_those_of_python(made: Session, bits: str) -> None:
    table = asyncio.run(rows(made, f"SELECT k, m, -{bits} AS x FROM t"))
    expected = [eval(f"-{bits}", {"k": row["k"], "m": row["m"]}) for row in table]
    assert [row["x"] for row in table] == expected


@pytest.mark.parametrize("words", ["select a - b", "select a | b", "select a || '-'"])
def test_most_statements_are_not_walked(words: str) -> None:
    assert negated_bits.may_apply(words) == (words == "select a || '-'")
