"""The messages of Flight SQL that prepared statements need. No I/O.

Each has one field that the client uses, so the client writes and reads their bytes itself and
needs no protobuf. A test compares them with the generated messages.
"""

from collections.abc import Iterator

from caraway.errors import BrokenResponseError

CREATE, CLOSE = "CreatePreparedStatement", "ClosePreparedStatement"
_URL = b"type.googleapis.com/arrow.flight.protocol.sql."
_BYTES = 2
"""The wire type of fields that are text, bytes or messages."""


def create_request(sql: str) -> bytes:
    """Return the body of the action that prepares a statement."""
    return _packed("ActionCreatePreparedStatementRequest", sql.encode())


def close_request(handle: bytes) -> bytes:
    """Return the body of the action that forgets a prepared statement."""
    return _packed("ActionClosePreparedStatementRequest", handle)


def query_command(handle: bytes) -> bytes:
    """Return the command that binds rows to a prepared statement, or asks for its rows."""
    return _packed("CommandPreparedStatementQuery", handle)


def prepared_handle(answer: bytes) -> bytes:
    """Return the handle in the answer to `create_request`.

    Raises:
        BrokenResponseError: there is none.
    """
    try:
        packed = dict(_fields(answer))
        return dict(_fields(packed[2]))[1]
    except (KeyError, IndexError) as exc:
        raise BrokenResponseError("the server sent no handle for a prepared statement") from exc


def _packed(name: str, content: bytes) -> bytes:
    """Return a message with one field, in the envelope that Flight SQL uses."""
    return _field(1, _URL + name.encode()) + _field(2, _field(1, content))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | _BYTES]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    pieces = bytearray()
    while number > 0x7F:
        pieces.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*pieces, number))


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each field; all must be of the type above."""
    place = 0
    while place < len(message):
        tag, place = _read_varint(message, place)
        size, place = _read_varint(message, place)
        if tag & 7 != _BYTES or place + size > len(message):
            raise IndexError
        yield tag >> 3, message[place : place + size]
        place += size


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        piece = message[place]
        place += 1
        number |= (piece & 0x7F) << shift
        if piece < 0x80:
            return number, place
        shift += 7
