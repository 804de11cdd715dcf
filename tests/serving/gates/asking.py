"""Asks a gate without a server: one request in, the messages of its answer out."""

from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def scope(path: str = "/v1/sql", method: str = "POST", kind: str = "http", **headers: str) -> Scope:
    raw = [
        (name.replace("_", "-").encode(), text.encode("latin-1")) for name, text in headers.items()
    ]
    return {"type": kind, "path": path, "method": method, "headers": raw}


async def receive() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


@dataclass
class Route:
    """The application behind a gate; it remembers what reached it."""

    status: int = 200
    seen: list[Scope] = field(default_factory=list)
    raises: BaseException | None = None
    within: Any = None
    """Called with the scope while the request is served."""

    async def __call__(self, asked: Scope, _: Receive, send: Send) -> None:
        self.seen.append(asked)
        if self.within is not None:
            self.within(asked)
        if self.raises is not None:
            raise self.raises
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b"served"})


@dataclass
class Answered:
    messages: list[Message] = field(default_factory=list)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> Headers:
        return Headers(raw=self.messages[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.messages[1:])


async def ask(gate: ASGIApp, asked: Scope) -> Answered:
    answered = Answered()

    async def send(message: Message) -> None:
        answered.messages.append(message)

    await gate(asked, receive, send)
    return answered
