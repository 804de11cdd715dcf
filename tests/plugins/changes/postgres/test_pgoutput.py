"""Parsing of replication messages, byte by byte."""

import struct

import pytest

from caraway_core.protocols.change_sources import PositionLostError
from caraway_plugins.changes.postgres import pgoutput, positions
from caraway_plugins.changes.postgres.pgoutput import UNCHANGED
from caraway_plugins.changes.postgres.positions import PostgresPosition


def row(*values: str | bytes | None) -> bytes:
    parts = [struct.pack("!h", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, bytes):
            parts.append(value)
        else:
            text = value.encode()
            parts.append(b"t" + struct.pack("!i", len(text)) + text)
    return b"".join(parts)


OID = struct.pack("!I", 7)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"B" + struct.pack("!QqI", 5, 0, 9), pgoutput.Begin(5, 0)),
        (b"C" + struct.pack("!BQQq", 0, 5, 6, 0), pgoutput.Commit(6)),
        (b"I" + OID + b"N" + row("ü", None, ""), pgoutput.Insert(7, ("ü", None, ""))),
        (b"U" + OID + b"N" + row("a", b"u"), pgoutput.Update(7, None, ("a", UNCHANGED))),
        (
            b"U" + OID + b"K" + row("a", None) + b"N" + row("b", "c"),
            pgoutput.Update(7, ("a", None), ("b", "c")),
        ),
        (b"D" + OID + b"O" + row("a"), pgoutput.Delete(7, ("a",))),
        (b"T" + struct.pack("!IBII", 2, 3, 7, 8), pgoutput.Truncate((7, 8))),
        (
            b"R" + OID + b"s\0t\0d" + struct.pack("!h", 1) + b"\1id\0" + struct.pack("!Ii", 20, -1),
            pgoutput.Relation(7, "s", "t", (pgoutput.RelationColumn("id", 20, -1),)),
        ),
        (b"Y" + OID + b"s\0t\0", None),
        (b"O" + bytes(9), None),
    ],
)
def test_messages_are_read(payload: bytes, message: pgoutput.Message | None) -> None:
    assert pgoutput.parse(payload) == message


@pytest.mark.parametrize("payload", [b"S" + bytes(5), b"I" + OID + b"N" + row(b"b"), b""])
def test_unknown_messages_are_rejected(payload: bytes) -> None:
    with pytest.raises(ValueError, match="of unknown kind"):
        pgoutput.parse(payload)


def test_a_position_is_read_as_it_was_written() -> None:
    position = PostgresPosition("g", "c", positions.lsn("16/B374D848"), 5, 7, True)
    assert positions.read(position.text()) == position
    assert positions.lsn_text(position.lsn) == "16/B374D848"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"topic": "t", "offsets": {}}'])
def test_a_position_of_another_source_is_lost(text: str) -> None:
    with pytest.raises(PositionLostError, match="not a PostgreSQL position"):
        positions.read(text)


def test_offsets_are_ordered_as_the_log_within_one_snapshot() -> None:
    first, second = PostgresPosition("a", "", 1).source, PostgresPosition("b", "", 1).source
    assert first != second
    places = [(1, 0), (1, 1), (1, 256), (2, 0), (1 << 40, 5)]
    made = [positions.offset(first, lsn, number) for lsn, number in places]
    assert made == sorted(made)
