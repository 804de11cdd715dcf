"""Messages between two processes over a socket.

A message is any picklable value, with an optional body of bytes that is neither pickled nor copied
in Python. Unpickling runs code of the sender's choice, so both ends must be processes of one
runtime: either one is a child of the other, or they have shown each other the cluster's token (see
`handshake`).
"""

import asyncio
import pickle
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa

_HEADER = struct.Struct("<IQ")
"""The lengths of the pickled value and of the body."""
_SCRATCH_BYTES = 256 * 1024
_DIRECT_BYTES = 64 * 1024
"""If at least this much of a body is missing, it is read directly to its destination."""
Receive = Callable[[Any, pa.Buffer | None], None]


class Channel(asyncio.BufferedProtocol):
    """One end of a socket. The event loop calls `receive` for each message, in order."""

    def __init__(self, receive: Receive, lost: Callable[[], None]) -> None:
        self._receive = receive
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._scratch = memoryview(bytearray(_SCRATCH_BYTES))
        self._pending = bytearray()
        self._message: object = None
        self._body: pa.Buffer | None = None
        self._room: memoryview | None = None
        """The part of the body that is still to be read."""

    @classmethod
    async def open(
        cls,
        end: socket.socket,
        receive: Receive,
        lost: Callable[[], None],
    ) -> "Channel":
        """Serve one end of a connection; the channel closes it."""
        end.setblocking(False)
        loop = asyncio.get_running_loop()
        is_local = end.family == socket.AF_UNIX
        connect = loop.create_unix_connection if is_local else loop.create_connection
        _, channel = await connect(lambda: cls(receive, lost), sock=end)
        return channel

    @property
    def is_open(self) -> bool:
        """True if messages can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send_at_once(self) -> None:
        """Send each message when it is given, and not after what else the loop has to do.

        So the other end begins its work while this one goes on, for the price of more calls of the
        system.
        """
        if self._transport is not None:
            self._transport.set_write_buffer_limits(high=0)

    def send(self, message: object, body: pa.Buffer | None = None) -> None:
        """Send a message; does nothing if the other end is closed."""
        if self._transport is None or self._transport.is_closing():
            return
        pickled = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        size = 0 if body is None else body.size
        head = _HEADER.pack(len(pickled), size) + pickled
        if body is not None and size:
            # At once: each write is a call of the system, and wakes the reader.
            self._transport.writelines((head, memoryview(body)))
        else:
            self._transport.write(head)

    def close(self) -> None:
        """Close the socket, and drop messages that are not yet sent."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; called by the event loop."""
        # uvloop's class does not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the other end is closed; called by the event loop."""
        self._transport = None
        self._lost()

    def eof_received(self) -> bool:
        """Close the transport at the end of the stream."""
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read: a large body is read in place."""
        if self._room is not None and len(self._room) >= _DIRECT_BYTES:
            return self._room
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Process the bytes that were read."""
        if self._room is not None and len(self._room) >= _DIRECT_BYTES:
            self._room = self._room[nbytes:]
            if not self._room:
                self._deliver()
            return
        received = self._scratch[:nbytes]
        if self._room is not None:
            received = self._fill(received)
        if received:
            self._pending += received
        self._parse()

    def _parse(self) -> None:
        """Deliver the complete messages, and start the body that is incomplete."""
        start = 0
        pending = self._pending
        while self._room is None and len(pending) - start >= _HEADER.size:
            pickled_size, body_size = _HEADER.unpack_from(pending, start)
            end = start + _HEADER.size + pickled_size
            if len(pending) < end:
                break
            view = memoryview(pending)
            self._message = pickle.loads(view[start + _HEADER.size : end])  # noqa: S301 -- a peer of this cluster
            start = end
            if not body_size:
                view.release()
                self._deliver()
                continue
            self._body = pa.allocate_buffer(body_size)
            self._room = memoryview(self._body).cast("B")
            rest = view[start:]
            start += len(rest) - len(self._fill(rest))
            rest.release()
            view.release()
        del pending[:start]

    def _fill(self, received: memoryview) -> memoryview:
        """Move bytes to the body that they belong to; return those after it."""
        assert self._room is not None
        taken = min(len(received), len(self._room))
        self._room[:taken] = received[:taken]
        self._room = self._room[taken:]
        if not self._room:
            self._deliver()
        return received[taken:]

    def _deliver(self) -> None:
        message, body = self._message, self._body
        self._message = self._body = self._room = None
        self._receive(message, body)
