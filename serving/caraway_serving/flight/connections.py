"""The connections of a server that will not let go of them."""

import contextlib
import os
import socket
import stat

_OPEN_FILES = "/dev/fd"


def cut(port: int, peer: str = "") -> None:
    """End the connections that clients have to a port of this process, or only that of a peer.

    A peer is named as gRPC does it: `ipv4:127.0.0.1:50000`.

    gRPC's blocking server waits for ever on a client that has stopped reading, also while it
    shuts down, and Arrow offers no way to cancel the call; the socket below it can be closed.
    """
    for name in os.listdir(_OPEN_FILES):
        # Some have no peer; others, such as the folder's own, are closed by now.
        with contextlib.suppress(OSError):
            _cut_if_of(port, int(name), peer)


def _cut_if_of(port: int, descriptor: int, peer: str) -> None:
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return
    with socket.socket(fileno=os.dup(descriptor)) as connection:
        client = connection.getpeername()
        if peer and _named(client) != peer:
            return
        address = connection.getsockname()
        if isinstance(address, tuple) and address[1] == port:
            connection.shutdown(socket.SHUT_RDWR)


def _named(client: object) -> str:
    if not isinstance(client, tuple):
        return ""
    host, port = client[:2]
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
