"""Waits for blocking calls that may hang."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any


async def in_thread(action: Callable[[], object], name: str) -> Any:
    """Run a call in a daemon thread, so that it cannot delay the end of the process."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[object] = loop.create_future()

    def settle(value: object, exc: BaseException | None) -> None:
        if result.done():
            return
        result.set_result(value) if exc is None else result.set_exception(exc)

    def work() -> None:
        value: object = None
        failure: BaseException | None = None
        try:
            value = action()
        except StopIteration as exc:
            # A future rejects StopIteration, so the caller would wait forever.
            failure = RuntimeError(f"StopIteration: {exc}")
        except BaseException as exc:  # noqa: BLE001 -- the future raises it
            failure = exc
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await result
