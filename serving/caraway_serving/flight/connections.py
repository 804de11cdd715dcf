"""The connections of a server that will not let go of them."""

import contextlib
import os
import socket
import stat

_OPEN_FILES = "/dev/fd"


def cut(port: int) -> None:
    """End every connection that clients have to a port of this process.

    gRPC's blocking server waits for ever on a client that has stopped reading, also while it
    shuts down, and Arrow offers no way to cancel the call; the socket below it can be closed.
    """
    for name in os.listdir(_OPEN_FILES):
        # Some have no peer; others, such as the folder's own, are closed by now.
        with contextlib.suppress(OSError):
            _cut_if_of(port, int(name))


def _cut_if_of(port: int, descriptor: int) -> None:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        connection.getpeername()
        address = connection.getsockname()
        if isinstance(address, tuple) and address[1] == port:
            connection.shutdown(socket.SHUT_RDWR)
