"""Gives a body that was read to an application again."""

from starlette.types import Message, Receive


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that gives the body, and then whatever the connection says."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
