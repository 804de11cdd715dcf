"""Documents whose fields are often missing, and conditions over them, for sources of documents."""

import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from caraway_core.tables import MemoryTable, TableSpec
from caraway_engine.sessions.sessions import Session
from tests.kit.engine import rows, session

SCHEMA = pa.schema(
    {
        "pk": pa.string(),
        "sk": pa.int64(),
        "name": pa.string(),
        "qty": pa.int64(),
        "price": pa.decimal128(12, 2),
        "is_on": pa.bool_(),
        "raw": pa.binary(),
        "mixed": pa.string(),
        "tags": pa.list_(pa.string()),
        "size": pa.string(),
    }
)
_NAMES = ["", "a", "A", "ä", "b", "a'b", "\U0001f600", "\uffff", "zz", "$a", "#n0", "~"]
_NUMBERS = [-3, -1, 0, 1, 2, 3, 2**53 + 1, -(10**17), 2**63 - 1]
_PRICES = [Decimal(each) for each in ("0.10", "1.50", "-2.25", "10.00", "9999999999.99")]
_BYTES = [b"", b"\0", b"a", b"ab", b"\xff"]
_MIXED = ["1", "a", 1, 2, True, ["1", None], [], {"a": 1}, "[]"]
_KEYS = [f"p{number}" for number in range(5)]


def documents(count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Return documents; each field but those of the key may be missing or null."""
    chance = random.Random(seed)

    def document(number: int) -> dict[str, Any]:
        values = {
            "name": chance.choice(_NAMES),
            "qty": chance.choice(_NUMBERS),
            "price": chance.choice(_PRICES),
            "is_on": chance.random() < 0.5,
            "raw": chance.choice(_BYTES),
            "mixed": chance.choice(_MIXED),
            "tags": chance.choice([[], ["a"], ["a", None], [None]]),
            "size": chance.choice(["s", "m"]),
        }
        kept = {name: value for name, value in values.items() if chance.random() > 0.15}
        nulls = {name: None for name in kept if chance.random() < 0.1}
        return {"pk": _KEYS[number % len(_KEYS)], "sk": number, **kept, **nulls}

    return [document(number) for number in range(count)]


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Return documents as the rows that a source gives."""
    return pa.Table.from_pylist(
        [{**each, "mixed": _text(each.get("mixed"))} for each in rows], schema
    )


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | Decimal():
            return str(value)
        case bytes():
            return f"X'{value.hex()}'"
    return "'" + str(value).replace("'", "''") + "'"


_VALUES: Mapping[str, Sequence[Any]] = {
    "pk": [*_KEYS, "", "none"],
    "sk": [-1, 0, 7, 20, 39, 10**18],
    "name": _NAMES,
    "qty": _NUMBERS,
    "price": _PRICES,
    "is_on": [True, False],
    "raw": _BYTES,
    "mixed": ["1", "a", "2", "true", '["1", null]', "[]", '{"a": 1}'],
    "size": ["s", "m", "l"],
}


@st.composite
def _comparison(draw: st.DrawFn, fields: Sequence[str]) -> str:
    name = draw(st.sampled_from(fields))
    if name not in _VALUES or draw(st.integers(0, 5)) == 0:
        return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    values = st.sampled_from(_VALUES[name]).map(_literal)
    operator = draw(st.sampled_from(["=", "=", "<>", "<", "<=", ">", ">=", "IN", "NOT IN"]))
    if "IN" in operator:
        many = ", ".join(draw(st.lists(values, min_size=1, max_size=5, unique=True)))
        return f"{name} {operator} ({many})"
    return f"{name} {operator} {draw(values)}"


def statements(schema: pa.Schema = SCHEMA) -> st.SearchStrategy[str]:
    """Return statements over the table `t` of documents, whose rows are compared as a set."""
    fields = [name for name in schema.names if name in SCHEMA.names]
    condition = _comparison(fields)
    either = st.tuples(condition, condition).map(" OR ".join).map("({})".format)
    inverted = condition.map("NOT ({})".format)
    bounds = st.sampled_from(["=", "<", "<=", ">", ">="])
    keyed = st.tuples(st.integers(0, 59), bounds).map(
        lambda parts: f"pk = 'p{parts[0] % len(_KEYS)}' AND sk {parts[1]} {parts[0]}"
    )
    any_ = st.one_of(condition, condition, keyed, either, inverted)
    several = st.lists(any_, min_size=1, max_size=4)
    read = st.lists(st.sampled_from(fields), min_size=1, max_size=3, unique=True)
    return st.tuples(read, several).map(
        lambda parts: f"SELECT {', '.join(parts[0])} FROM t WHERE {' AND '.join(parts[1])}"
    )


Compared = tuple[Session, Session]


def compared(table: TableSpec, expected: pa.Table) -> Compared:
    """Return sessions over a table and over the rows that it has, as `t`.

    A session takes longer to make than most statements to run.
    """
    return session({"t": table}), session({"t": MemoryTable(expected.schema, expected)})


def compare(over: Compared, sql: str) -> None:
    """Check that a statement has the same rows over both tables, in any order."""
    found, expected = (sorted(map(repr, asyncio.run(rows(each, sql)))) for each in over)
    assert found == expected, sql
