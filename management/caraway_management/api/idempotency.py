"""Idempotency-Key: a repeated POST gets the answer of the first one, and changes nothing."""

import hashlib
import json
import logging
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caraway_core.errors import CarawayError
from caraway_management.api import failures
from caraway_management.api.authenticating import authenticate
from caraway_management.domain import refusals
from caraway_management.domain.refusals import RefusedError
from caraway_management.services import Services
from caraway_management.store.tables import IdempotentAnswer
from caraway_serving.replaying import replayed

logger = logging.getLogger(__name__)
HEADER = "idempotency-key"
LONGEST_KEY = 255
KEPT = timedelta(hours=24)
_UNDER_WAY = timedelta(minutes=1)
"""After this time, a request without an answer is taken for one whose process has ended."""
BEGUN, CHANGED = 0, 1
"""The status of rows whose request is under way, and of those whose change is made."""


class IdempotencyGate:
    """Answers a repeated POST with the first answer.

    The row of a key is inserted before the request runs. The transaction that makes the change also
    marks the row, so a repetition never makes it twice, even if the process ended in between.
    """

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _applies(scope):
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        try:
            answer = await self._answer(request, scope, send)
        except RefusedError as exc:
            answer = failures.answer(request, exc)
        except CarawayError as exc:
            answer = failures.answer_failed(request, exc)
        if answer is not None:
            await answer(scope, receive, send)

    async def _answer(self, request: Request, scope: Scope, send: Send) -> Response | None:
        """Return an answer that exists, or send the answer of the application."""
        key = request.headers[HEADER]
        if not key or len(key) > LONGEST_KEY or not key.isprintable():
            raise refusals.invalid(f"Idempotency-Key must have 1 to {LONGEST_KEY} characters")
        body = await request.body()
        owner = await self._owner(request)
        if owner is None:  # The application says what is wrong with the credential.
            await self._app(scope, replayed(body, request.receive), send)
            return None
        digest = _digest(request, body)
        if (present := await self._begin(owner, key, digest)) is not None:
            return await self._repeated(present, digest)
        request.state.idempotent = (owner, key)
        recording = _Recording(send)
        try:
            await self._app(scope, replayed(body, request.receive), recording)
        finally:
            await self._end(owner, key, recording)
        return None

    async def _owner(self, request: Request) -> str | None:
        try:
            async with self._services.database.read() as session:
                now = self._services.now()
                credential = await authenticate(request, self._services, session, now)
        except RefusedError:
            return None
        return f"{credential.kind}:{credential.id}"

    async def _begin(self, owner: str, key: str, digest: str) -> IdempotentAnswer | None:
        """Insert the row of a key; return the row that exists already."""
        now = self._services.now()
        try:
            async with self._services.database.change() as session:
                await _forget(session, IdempotentAnswer.created_at < now - KEPT)
                # A process that ended before it changed anything leaves its row behind.
                await _forget(
                    session,
                    (IdempotentAnswer.owner == owner)
                    & (IdempotentAnswer.key == key)
                    & (IdempotentAnswer.status == BEGUN)
                    & (IdempotentAnswer.created_at < now - _UNDER_WAY),
                )
                present = await session.get(IdempotentAnswer, (owner, key))
                if present is None:
                    session.add(
                        IdempotentAnswer(
                            owner=owner, key=key, request_hash=digest, status=BEGUN,
                            sealed_body="", created_at=now,
                        )
                    )  # fmt: skip
                return present
        except IntegrityError:
            raise _under_way() from None

    async def _repeated(self, present: IdempotentAnswer, digest: str) -> Response:
        if present.request_hash != digest:
            raise RefusedError(
                422, "the Idempotency-Key was used for another request", "idempotency_key_reused"
            )
        if present.status == BEGUN:
            raise _under_way()
        if present.status == CHANGED:
            raise refusals.conflict(
                "the change was made, but its answer was lost; read the resource",
                "idempotent_answer_lost",
            )
        async with self._services.database.read() as session:
            text = await self._services.sealer.open(session, present.sealed_body)
        body: dict[str, Any] = json.loads(text)
        answer = Response(body["text"], present.status, media_type=body["type"])
        answer.headers["idempotent-replayed"] = "true"
        if body["etag"]:
            answer.headers["etag"] = body["etag"]
        return answer

    async def _end(self, owner: str, key: str, recording: "_Recording") -> None:
        """Keep the answer; without one, or if the service failed, a repetition runs again."""
        try:
            async with self._services.database.change() as session:
                if not recording.is_kept:
                    await _forget(
                        session,
                        (IdempotentAnswer.owner == owner)
                        & (IdempotentAnswer.key == key)
                        & (IdempotentAnswer.status == BEGUN),
                    )
                    return
                row = await session.get(IdempotentAnswer, (owner, key))
                if row is not None:
                    row.status = recording.status
                    row.sealed_body = await self._services.sealer.seal(session, recording.text)
        except CarawayError as exc:
            # The answer itself has been sent.
            logger.warning("the answer of a key is not kept", extra={"reason": str(exc)})


async def mark_changed(session: AsyncSession, request: Request) -> None:
    """Note in the transaction of a change that the request with its key has made it."""
    if (pair := getattr(request.state, "idempotent", None)) is None:
        return
    row = await session.scalar(
        select(IdempotentAnswer).where(
            IdempotentAnswer.owner == pair[0], IdempotentAnswer.key == pair[1]
        )
    )
    if row is None:  # It took so long that another request with the key has begun.
        raise _under_way()
    row.status = CHANGED


class _Recording:
    """Sends an answer on, and keeps it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._parts: list[bytes] = []
        self._headers: dict[str, str] = {}
        self._is_whole = False
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in message.get("headers", ())
            }
        elif message["type"] == "http.response.body":
            self._parts.append(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
        await self._send(message)

    @property
    def is_kept(self) -> bool:
        return self._is_whole and 200 <= self.status < 500

    @property
    def text(self) -> str:
        return json.dumps(
            {
                "text": b"".join(self._parts).decode("utf-8", "replace"),
                "type": self._headers.get("content-type", ""),
                "etag": self._headers.get("etag", ""),
            }
        )


def _applies(scope: Scope) -> bool:
    """Return whether the gate handles a request: not those that go on to a runtime."""
    return (
        scope["type"] == "http"
        and scope["method"] == "POST"
        and scope["path"].startswith("/v1/")
        and "queries" not in scope["path"].split("/")
        and HEADER in Request(scope).headers
    )


def _digest(request: Request, body: bytes) -> str:
    org = request.headers.get("x-org-name", "").lower()
    head = json.dumps([request.url.path, request.url.query, org])
    return hashlib.sha256(head.encode() + b"\n" + body).hexdigest()


async def _forget(session: AsyncSession, condition: Any) -> None:
    await session.execute(delete(IdempotentAnswer).where(condition))


def _under_way() -> RefusedError:
    return RefusedError(
        409,
        "a request with this Idempotency-Key is under way; repeat it later",
        "idempotent_request_under_way",
        headers={"retry-after": "2"},
    )
