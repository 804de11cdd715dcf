"""Messages of Flight SQL, as they come in descriptors, tickets and bodies of actions."""

from typing import TypeVar

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message
from pyarrow import flight

from caraway_gateway.flight.sql.protocol import FlightSql_pb2
from caraway_serving.flight import statuses

_PREFIX = "type.googleapis.com/"
_PACKAGE = f"{FlightSql_pb2.DESCRIPTOR.package}."
_MARK = (_PREFIX + _PACKAGE).encode()
_MARK_END = len(_MARK) + 5
_Message = TypeVar("_Message", bound=Message)


def is_message(sent: bytes) -> bool:
    """Return whether a command is a message of Flight SQL; SQL text never is."""
    return sent.startswith(b"\n") and _MARK in sent[:_MARK_END]


def is_asked(descriptor: flight.FlightDescriptor) -> bool:
    """Return whether a descriptor holds a message of Flight SQL."""
    is_command = descriptor.descriptor_type == flight.DescriptorType.CMD
    return is_command and is_message(descriptor.command)


def read(sent: bytes) -> Message:
    """Return the message that a command holds.

    Raises:
        InvalidArgument: it cannot be read.
        Unimplemented: the protocol here has no such message.
    """
    wrapped = AnyMessage()
    try:
        wrapped.ParseFromString(sent)
        name = wrapped.type_url.removeprefix(_PREFIX).removeprefix(_PACKAGE)
        if name not in FlightSql_pb2.DESCRIPTOR.message_types_by_name:
            raise statuses.Unimplemented(f"the Flight SQL message {name!r} is not known here")
        message: Message = getattr(FlightSql_pb2, name)()
        message.ParseFromString(wrapped.value)
    except DecodeError as exc:
        raise statuses.InvalidArgument("the Flight SQL message cannot be read") from exc
    return message


def read_as(kind: type[_Message], sent: bytes) -> _Message:
    """Return a message of one kind.

    Raises:
        InvalidArgument: it is none.
    """
    message: _Message | None = read(sent) if is_message(sent) else None
    if message is None or not isinstance(message, kind):
        raise statuses.InvalidArgument(f"the body must be the message {kind.__name__}")
    return message


def parse(kind: type[_Message], sent: bytes) -> _Message:
    """Return a message that is sent by itself, as those of plain Flight are.

    Raises:
        InvalidArgument: it cannot be read.
    """
    message: _Message = kind()
    try:
        message.ParseFromString(sent)
    except DecodeError as exc:
        raise statuses.InvalidArgument(f"the {kind.__name__} cannot be read") from exc
    return message


def packed(message: Message) -> bytes:
    """Wrap a message so that the other end knows which one it is."""
    wrapped = AnyMessage()
    wrapped.Pack(message)
    return encoded(wrapped)


def encoded(message: Message) -> bytes:
    """Return the bytes of a message by itself."""
    sent: bytes = message.SerializeToString()
    return sent
