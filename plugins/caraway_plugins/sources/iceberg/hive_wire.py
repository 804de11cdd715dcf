"""Calls of a Hive metastore: the binary protocol of Thrift, as far as reading tables needs it.

A structure is a mapping of numbers of fields to values. Written values are texts, numbers of 32
bits, booleans, lists, mappings of texts, and structures.
"""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Mapping
from typing import Any

Struct = Mapping[int, Any]
_VERSION, _CALL, _REPLY, _EXCEPTION = 0x80010000, 1, 2, 3
_STOP, _BOOL, _BYTE, _DOUBLE, _I16, _I32, _I64, _STRING, _STRUCT, _MAP, _SET, _LIST = (
    0, 2, 3, 4, 6, 8, 10, 11, 12, 13, 14, 15,
)  # fmt: skip
_NUMBERS: Mapping[int, str] = {
    _BOOL: ">?", _BYTE: ">b", _DOUBLE: ">d", _I16: ">h", _I32: ">i", _I64: ">q",
}  # fmt: skip
_MOST_BYTES = 256 * 2**20
_MOST_DEPTH = 32
_UNKNOWN_METHOD = 1


class WireError(Exception):
    """The answer is none of Thrift."""


class UnknownMethodError(Exception):
    """The server has no such method."""


class HiveConnection:
    """A connection to a metastore. Each call blocks until its answer."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        """Connect.

        Raises:
            OSError: the server cannot be reached.
        """
        self._socket = socket.create_connection((host, port), timeout_s)
        self._file = self._socket.makefile("rb")
        self._numbers = itertools.count(1)

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._socket.close()

    def call(self, method: str, *arguments: Any) -> Struct:
        """Return the answer of a method: its result is field 0, its exceptions are others.

        Raises:
            OSError: the connection failed.
            WireError: the server does not answer as a metastore without a login does.
            UnknownMethodError: the server has no such method.
        """
        number = next(self._numbers)
        name = method.encode()
        head = struct.pack(">II", _VERSION | _CALL, len(name)) + name + struct.pack(">i", number)
        self._socket.sendall(head + _written(dict(enumerate(arguments, 1))))
        reader = _Reader(self._file)
        (version,) = reader.unpacked(">I")
        reader.text()
        (answered,) = reader.unpacked(">i")
        if version & 0xFFFFFF00 != _VERSION or answered != number:
            raise WireError
        found = reader.structure(0)
        if version & 0xFF == _REPLY:
            return found
        if version & 0xFF == _EXCEPTION and found.get(2) == _UNKNOWN_METHOD:
            raise UnknownMethodError(method)
        raise WireError


def _written(value: Any) -> bytes:
    """Return a structure without the fields that are None."""
    parts = [
        struct.pack(">bh", _kind(each), number) + _value(each)
        for number, each in value.items()
        if each is not None
    ]
    return b"".join(parts) + bytes([_STOP])


def _kind(value: Any) -> int:
    match value:
        case bool():
            return _BOOL
        case int():
            return _I32
        case str():
            return _STRING
        case list():
            return _LIST
    return _STRUCT if all(isinstance(key, int) for key in value) and value else _MAP


def _value(value: Any) -> bytes:
    kind = _kind(value)
    if kind == _STRING:
        text = str(value).encode()
        return struct.pack(">i", len(text)) + text
    if kind == _LIST:
        item = _kind(value[0]) if value else _STRING
        return struct.pack(">bi", item, len(value)) + b"".join(map(_value, value))
    if kind == _MAP:
        pairs = itertools.chain.from_iterable(value.items())
        return struct.pack(">bbi", _STRING, _STRING, len(value)) + b"".join(map(_value, pairs))
    return _written(value) if kind == _STRUCT else struct.pack(_NUMBERS[kind], value)


class _Reader:
    """Reads one message."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._left = _MOST_BYTES

    def unpacked(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def text(self) -> str:
        (size,) = self.unpacked(">i")
        return self._bytes(size).decode(errors="replace")

    def structure(self, depth: int) -> Struct:
        found: dict[int, Any] = {}
        while (kind := self._bytes(1)[0]) != _STOP:
            (number,) = self.unpacked(">h")
            found[number] = self._value(kind, depth)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _MOST_DEPTH:
            raise WireError
        if kind in _NUMBERS:
            return self.unpacked(_NUMBERS[kind])[0]
        if kind == _STRING:
            return self.text()
        if kind == _STRUCT:
            return self.structure(depth + 1)
        if kind in (_LIST, _SET):
            item, count = self.unpacked(">bi")
            return [self._value(item, depth + 1) for _ in range(count)]
        if kind == _MAP:
            keys, values, count = self.unpacked(">bbi")
            if keys in (_STRUCT, _LIST, _SET, _MAP) and count:
                raise WireError
            return {
                self._value(keys, depth + 1): self._value(values, depth + 1) for _ in range(count)
            }
        raise WireError

    def _bytes(self, size: int) -> bytes:
        self._left -= size
        if size < 0 or self._left < 0:
            raise WireError
        found: bytes = self._file.read(size)
        if len(found) < size:
            raise ConnectionResetError("the connection ended")
        return found
