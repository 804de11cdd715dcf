"""Where in the write-ahead log a dataset is."""

import hashlib
import json
from dataclasses import dataclass

from caraway_core.changes import SOURCE_BYTES
from caraway_core.protocols.change_sources import PositionLostError


@dataclass(frozen=True, slots=True)
class PostgresPosition:
    """All that ended before `lsn` is taken, and `taken` changes of the transaction `open_lsn`.

    `generation` names the snapshot that the rows began with, and `columns` what they are made of.
    While `is_loading` the snapshot is not complete, and cannot be gone on with.
    """

    generation: str
    columns: str
    lsn: int
    open_lsn: int = 0
    taken: int = 0
    is_loading: bool = False

    def text(self) -> str:
        """Write the position down."""
        content = {
            "generation": self.generation,
            "columns": self.columns,
            "lsn": lsn_text(self.lsn),
            "open": lsn_text(self.open_lsn),
            "taken": self.taken,
            "is_loading": self.is_loading,
        }
        return json.dumps(content, separators=(",", ":"))

    @property
    def source(self) -> bytes:
        """What the offsets of changes begin with: those of another snapshot do not compare."""
        return hashlib.blake2b(self.generation.encode(), digest_size=SOURCE_BYTES).digest()


def read(text: str) -> PostgresPosition:
    """Read what `Position.text` wrote.

    Raises:
        PositionLostError: it is of another kind of source.
    """
    try:
        content = json.loads(text)
        return PostgresPosition(
            content["generation"],
            content["columns"],
            lsn(content["lsn"]),
            lsn(content["open"]),
            int(content["taken"]),
            bool(content["is_loading"]),
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise PositionLostError("the position of the dataset is not one of PostgreSQL") from exc


def lsn(text: str) -> int:
    """Read a place in the log as PostgreSQL writes it.

    Raises:
        ValueError: it is none.
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(value: int) -> str:
    """Write a place in the log as PostgreSQL does."""
    return f"{value >> 32:X}/{value & 0xFFFFFFFF:X}"


def offset(source: bytes, commit_lsn: int, number: int) -> bytes:
    """Return what orders a change among those of one source: transactions, then their changes."""
    return source + commit_lsn.to_bytes(8, "big") + number.to_bytes(5, "big")
