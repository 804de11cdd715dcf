"""Offsets of events in their source, as bytes that sort in the order of a key's changes.

Of two changes of one key the one with the higher offset wins, so duplicates and reordering do no
harm. The first 8 bytes identify the source, because offsets of different sources are not
comparable.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from caraway_core.changes import SOURCE_BYTES
from caraway_plugins.changes.target import BadChangesError

_FILE = re.compile(r"(.{0,200})\.([0-9]{1,18})")
_LSN = re.compile(r"([0-9a-fA-F]{8}):([0-9a-fA-F]{8}):([0-9a-fA-F]{4})")
_NAMING = ("connector", "name", "db", "schema", "table")


class Offsets:
    """Computes offsets from the `source` of events; caches the hashes of source names."""

    def __init__(self) -> None:
        self._names: dict[tuple[object, ...], bytes] = {}

    def offset_of(self, source: object) -> bytes | None:
        """Return the offset, or None if the source has none with a known order.

        Raises:
            BadChangesError: the `source` is not in the connector's format.
        """
        if not isinstance(source, dict):
            return None
        connector = source.get("connector")
        place = _PLACES.get(connector) if isinstance(connector, str) else None
        if place is None:
            return None
        try:
            found = place(source)
        except (OverflowError, TypeError, ValueError) as exc:
            raise BadChangesError(
                f"its 'source' is not what the connector {connector} writes: {exc}"
            ) from exc
        return None if found is None else self._name(source, found[0]) + found[1]

    def _name(self, source: Mapping[str, object], more: tuple[object, ...]) -> bytes:
        key = (*map(source.get, _NAMING), *more)
        try:
            known = self._names.get(key)
        except TypeError:
            raise BadChangesError("its 'source' does not identify the source") from None
        if known is None:
            text = json.dumps(key, default=str)
            known = hashlib.blake2b(text.encode(), digest_size=SOURCE_BYTES).digest()
            self._names[key] = known
        return known


_Place = tuple[tuple[Any, ...], bytes]
"""Additional parts of the source's name, and the position in the source."""


def _postgres(source: Mapping[str, object]) -> _Place | None:
    # A row stays locked until its transaction ends, so log positions of one key are in order,
    # although transactions are not. Transaction ids wrap around, so they cannot be used.
    lsn = source.get("lsn")
    return None if lsn is None else ((), _number(lsn, "lsn"))


def _mysql(source: Mapping[str, Any]) -> _Place | None:
    file = source.get("file")
    if not file:
        return None
    match = _FILE.fullmatch(file)
    if match is None:
        raise ValueError("file is not the name of a binary log")
    # After a fail-over another server numbers its logs from the start, so the server is part of the
    # name.
    place = _number(int(match[2]), "file") + _number(source.get("pos"), "pos")
    return (match[1], source.get("server_id")), place + _number(source.get("row") or 0, "row")


def _sqlserver(source: Mapping[str, object]) -> _Place | None:
    commit, change = source.get("commit_lsn"), source.get("change_lsn")
    if not commit or commit == "NULL":
        return None
    serial = _number(source.get("event_serial_no") or 0, "event_serial_no")
    return (), _lsn(commit) + (_lsn(change) if change and change != "NULL" else bytes(10)) + serial


def _oracle(source: Mapping[str, Any]) -> _Place | None:
    scn = source.get("scn")
    return None if scn is None else ((), _number(int(scn), "scn"))


def _mongodb(source: Mapping[str, object]) -> _Place | None:
    moment, order = source.get("ts_ms"), source.get("ord")
    if moment is None or order is None:
        return None
    name = (source.get("rs"), source.get("collection"))
    return name, _number(moment, "ts_ms") + _number(order, "ord")


def _kafka(source: Mapping[str, object]) -> _Place | None:
    offset = source.get("offset")
    if offset is None:
        return None
    return (source.get("topic"), source.get("partition")), _number(offset, "offset")


_PLACES: Mapping[str, Callable[[Mapping[str, object]], _Place | None]] = {
    "postgresql": _postgres,
    "mysql": _mysql,
    "mariadb": _mysql,
    "sqlserver": _sqlserver,
    "oracle": _oracle,
    "mongodb": _mongodb,
    "kafka": _kafka,
}


def _number(value: object, name: str) -> bytes:
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is not a number")
    return value.to_bytes(8, "big")


def _lsn(text: Any) -> bytes:
    match = _LSN.fullmatch(text)
    if match is None:
        raise ValueError("a log sequence number is written as 00000027:00000758:0003")
    return bytes.fromhex("".join(match.groups()))
