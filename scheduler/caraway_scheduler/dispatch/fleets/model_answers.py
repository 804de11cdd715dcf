"""Reads the answer of a hosted model, page by page."""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from caraway_core.concurrency import tasks
from caraway_core.protocols.hosting import AnswerParts
from caraway_scheduler.dispatch.fleets.peers import send

Page = Coroutine[Any, Any, AnswerParts]


async def parts(
    first: Callable[[], Page],
    following: Callable[[], Page],
    end: Callable[[], Coroutine[Any, Any, None]],
) -> AsyncGenerator[bytes, None]:
    """Yield the parts of an answer; the next page is asked for while one is read.

    `end` ends the call on its executor, where the generator is closed before its end.
    """
    coming: asyncio.Task[AnswerParts] | None = tasks.begin(first())
    is_over = False
    try:
        while coming is not None:
            try:
                page = await coming
            except BaseException as exc:
                # The executor ends a call that failed.
                is_over = not tasks.ends(exc)
                raise
            coming = None if page.is_last else tasks.begin(following())
            for part in page.parts:
                yield part
        is_over = True
    finally:
        if coming is not None:
            coming.cancel()
        if not is_over:
            await end()


def asked(
    answered: Callable[[Any], Page], actor: Any, key: str, request: bytes
) -> AsyncGenerator[bytes, None]:
    """Call a copy on the actor of an executor; `answered` waits for what a method returns."""
    call = uuid.uuid4().hex

    async def end() -> None:
        send(actor.end_ask, call)

    return parts(
        lambda: answered(actor.ask.remote(call, key, request)),
        lambda: answered(actor.next_parts.remote(call)),
        end,
    )
