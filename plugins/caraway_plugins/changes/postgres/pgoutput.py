"""Parses messages of logical replication (pgoutput, version 1)."""

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Missing(Enum):
    """A value that the log omits, because it is stored out of line and did not change."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Missing.UNCHANGED
Row = tuple[str | Missing | None, ...]
"""The values of a row in the order of its relation's columns."""


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a relation at this position of the log."""

    name: str
    type_oid: int
    modifier: int


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction, which commits at `final_lsn`; its time is in microseconds since 2000."""

    final_lsn: int
    committed_us: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The end of a transaction; the next one begins at or after `end_lsn`."""

    end_lsn: int


@dataclass(frozen=True, slots=True)
class Relation:
    """The columns of the rows that follow."""

    oid: int
    schema: str
    name: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """An inserted row."""

    oid: int
    row: Row


@dataclass(frozen=True, slots=True)
class Update:
    """An updated row; `old` is the old row, only its key (other values NULL), or None."""

    oid: int
    old: Row | None
    row: Row


@dataclass(frozen=True, slots=True)
class Delete:
    """A deleted row; `old` is the whole row, or only its key (other values NULL)."""

    oid: int
    old: Row


@dataclass(frozen=True, slots=True)
class Truncate:
    """A truncation of one or more relations."""

    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate

_INT16 = struct.Struct("!h")
_INT32 = struct.Struct("!i")
_UINT32 = struct.Struct("!I")
_BEGIN = struct.Struct("!Qq")
_COMMIT = struct.Struct("!xQQ")
_COLUMN_TYPE = struct.Struct("!Ii")
_NULL, _TEXT, _UNCHANGED = ord("n"), ord("t"), ord("u")
_NEW = ord("N")


def parse(payload: bytes) -> Message | None:
    """Parse a message; return None for messages that do not concern rows.

    Raises:
        ValueError: the message is unknown or malformed.
    """
    match payload[0:1]:
        case b"I":
            return Insert(_oid(payload), _row(payload, 6)[0])
        case b"U":
            return _update(payload)
        case b"D":
            return Delete(_oid(payload), _row(payload, 6)[0])
        case b"B":
            return Begin(*_BEGIN.unpack_from(payload, 1))
        case b"C":
            return Commit(_COMMIT.unpack_from(payload, 1)[1])
        case b"R":
            return _relation(payload)
        case b"T":
            count = _UINT32.unpack_from(payload, 1)[0]
            return Truncate(struct.unpack_from(f"!{count}I", payload, 6))
        case b"Y" | b"O" | b"M":
            return None
    raise ValueError(f"a message of unknown kind {payload[0:1]!r}")


def _oid(payload: bytes) -> int:
    oid: int = _UINT32.unpack_from(payload, 1)[0]
    return oid


def _update(payload: bytes) -> Update:
    if payload[5] == _NEW:
        return Update(_oid(payload), None, _row(payload, 6)[0])
    old, end = _row(payload, 6)
    return Update(_oid(payload), old, _row(payload, end + 1)[0])


def _row(payload: bytes, at: int) -> tuple[Row, int]:
    """Parse a row; return it and the offset of its end."""
    (count,) = _INT16.unpack_from(payload, at)
    at += 2
    values: list[str | Missing | None] = []
    for _ in range(count):
        kind = payload[at]
        at += 1
        if kind == _TEXT:
            (size,) = _INT32.unpack_from(payload, at)
            at += 4
            values.append(payload[at : at + size].decode())
            at += size
        elif kind == _NULL:
            values.append(None)
        elif kind == _UNCHANGED:
            values.append(UNCHANGED)
        else:
            raise ValueError(f"a value of unknown kind {kind}")
    return tuple(values), at


def _relation(payload: bytes) -> Relation:
    schema, at = _name(payload, 5)
    name, at = _name(payload, at)
    (count,) = _INT16.unpack_from(payload, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        column, at = _name(payload, at + 1)
        columns.append(RelationColumn(column, *_COLUMN_TYPE.unpack_from(payload, at)))
        at += _COLUMN_TYPE.size
    return Relation(_oid(payload), schema, name, tuple(columns))


def _name(payload: bytes, at: int) -> tuple[str, int]:
    end = payload.index(0, at)
    return payload[at:end].decode(), end + 1
