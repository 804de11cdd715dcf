"""Proves to both ends of a new connection that the other one knows the cluster's token.

Each end sends a random value, and the other one answers with a MAC over both values. So the token
is never sent, and an answer is of no use for another connection. Messages are pickled, so neither
end may read one before this.
"""

import asyncio
import hmac
import secrets
import socket

from caraway_core.errors import CarawayError
from caraway_core.security import signatures

LIMIT_S = 5.0
_VALUE = 32
"""The characters of a random value."""
_PROOF = 64
_CALLER = "caller of a channel"
_LISTENER = "listener of a channel"


class NoProofError(CarawayError):
    """The other end of a connection does not know the token, or says nothing in time."""


async def as_listener(end: socket.socket, token: str) -> None:
    """Check the peer that connected, and prove to know the token.

    Raises:
        NoProofError: the caller does not know the token, or went away.
    """
    mine = secrets.token_hex(_VALUE // 2)
    await _sent(end, mine)
    said = await _received(end, _VALUE + _PROOF)
    theirs, proof = said[:_VALUE], said[_VALUE:]
    _check(proof, token, _CALLER, mine + theirs)
    await _sent(end, signatures.mac(token, _LISTENER, mine + theirs))


async def as_caller(end: socket.socket, token: str) -> None:
    """Prove to know the token, and check the listener.

    Raises:
        NoProofError: the listener does not know the token, refuses, or went away.
    """
    theirs = await _received(end, _VALUE)
    mine = secrets.token_hex(_VALUE // 2)
    await _sent(end, mine + signatures.mac(token, _CALLER, theirs + mine))
    _check(await _received(end, _PROOF), token, _LISTENER, theirs + mine)


def _check(proof: str, token: str, purpose: str, text: str) -> None:
    if not hmac.compare_digest(proof.encode(), signatures.mac(token, purpose, text).encode()):
        raise NoProofError("the other end of the connection does not know the cluster's token")


async def _sent(end: socket.socket, text: str) -> None:
    try:
        async with asyncio.timeout(LIMIT_S):
            await asyncio.get_running_loop().sock_sendall(end, text.encode())
    except (OSError, TimeoutError) as exc:
        cause = str(exc) or "timed out"
        raise NoProofError(f"the connection ended before its proof: {cause}") from exc


async def _received(end: socket.socket, count: int) -> str:
    """Read a number of characters."""
    read = b""
    try:
        async with asyncio.timeout(LIMIT_S):
            while len(read) < count:
                more = await asyncio.get_running_loop().sock_recv(end, count - len(read))
                if not more:
                    raise NoProofError("the other end closed the connection before its proof")
                read += more
    except (OSError, TimeoutError) as exc:
        cause = str(exc) or "timed out"
        raise NoProofError(f"no proof came over the connection: {cause}") from exc
    return read.decode("latin-1")
