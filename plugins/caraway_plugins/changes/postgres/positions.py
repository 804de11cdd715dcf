"""The position of a dataset in the write-ahead log, stored as text."""

import hashlib
import json
from dataclasses import dataclass

from caraway_core.changes import SOURCE_BYTES
from caraway_core.protocols.change_sources import PositionLostError


@dataclass(frozen=True, slots=True)
class PostgresPosition:
    """Transactions up to `lsn` are applied, and `taken` changes of the transaction `open_lsn`.

    `generation` identifies the initial snapshot, and `columns` is a fingerprint of the columns.
    While `is_loading`, the snapshot is incomplete and must be read again after a restart.
    """

    generation: str
    columns: str
    lsn: int
    open_lsn: int = 0
    taken: int = 0
    is_loading: bool = False

    def text(self) -> str:
        """Encode the position as text."""
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
        """The prefix of change offsets; offsets of different snapshots are not comparable."""
        return hashlib.blake2b(self.generation.encode(), digest_size=SOURCE_BYTES).digest()


def read(text: str) -> PostgresPosition:
    """Parse the result of `PostgresPosition.text`.

    Raises:
        PositionLostError: the position belongs to another kind of source.
    """
    try:
        content = json.loads(text)
        return PostgresPosition(
            _text(content["generation"]),
            _text(content["columns"]),
            lsn(_text(content["lsn"])),
            lsn(_text(content["open"])),
            int(content["taken"]),
            bool(content["is_loading"]),
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise PositionLostError(
            "the stored position of the dataset is not a PostgreSQL position"
        ) from exc


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def lsn(text: str) -> int:
    """Parse a log position in PostgreSQL's format.

    Raises:
        ValueError: the text is not a log position.
    """
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def lsn_text(value: int) -> str:
    """Format a log position as PostgreSQL does."""
    return f"{value >> 32:X}/{value & 0xFFFFFFFF:X}"


def offset(source: bytes, commit_lsn: int, number: int) -> bytes:
    """Return the offset of a change: it sorts by transaction, then by number in the transaction."""
    return source + commit_lsn.to_bytes(8, "big") + number.to_bytes(5, "big")
