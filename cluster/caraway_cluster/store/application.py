"""The routes of a store, as one small ASGI application: bytes in, bytes out, never a whole chunk.

PUT, GET, HEAD  /chunks/PREFIX.../KEY/NAME     one chunk, named by its index and checksum
DELETE          /chunks/PREFIX.../KEY          every chunk of a key
GET             /keys/PREFIX...                `{"keys": [...]}`
POST            /check                         whether it can write
GET             /health, /metrics              without a token
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from caraway_cluster.store import ranges
from caraway_cluster.store.messages import Body, Receive, Refusal, Reply, Scope, Send
from caraway_cluster.store.shelf import DamagedError, Shelf, checksum_of, folder_of
from caraway_cluster.store.tallies import CONTENT_TYPE, StoreTallies
from caraway_core import disks
from caraway_core.signatures import SignatureGate, target_of

logger = logging.getLogger(__name__)
BLOCK_BYTES = 1024 * 1024
_THREADS = 16
_AT_WORK = 64
_FULL_TEXT = (
    "the disk of the store is full; give its volume more room, or keep answers for a shorter time "
    "with runtime.jobs.retention"
)
_Result = TypeVar("_Result")


class Store:
    """Serves a shelf to whoever shows the token.

    At most so many requests work at once; the others wait, and their connections are bounded by
    the server. Of each, one block is in memory.
    """

    def __init__(self, shelf: Shelf, token: str, most_bytes: int, *, has_metrics: bool) -> None:
        self.tallies = StoreTallies()
        self._shelf = shelf
        self._gate = SignatureGate(token)
        self._most_bytes = most_bytes
        self._has_metrics = has_metrics
        self._working = asyncio.Semaphore(_AT_WORK)
        self._threads = ThreadPoolExecutor(_THREADS, "shelf")

    def close(self) -> None:
        self._threads.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        reply, body = Reply(send, scope["method"] == "HEAD"), Body(receive)
        try:
            await self._answer(scope, body, reply)
        except Refusal as refusal:
            await self._refuse(reply, body, refusal)
        except ConnectionError:
            pass  # The client went away.
        except OSError as exc:
            await self._refuse(reply, body, _broken(exc))
        finally:
            self.tallies.requests[scope["method"], str(reply.status)] += 1

    async def _answer(self, scope: Scope, body: Body, reply: Reply) -> None:
        method, path = scope["method"], scope["path"]
        if path == "/health" and method in ("GET", "HEAD"):
            return await reply.text(200, "ok\n")
        if path == "/metrics" and method == "GET" and self._has_metrics:
            free, total = await self._do(self._shelf.room)
            return await reply.whole(200, self.tallies.page(free, total), CONTENT_TYPE)
        headers = dict(scope["headers"])
        shown = headers.get(b"authorization", b"").decode("latin-1")
        if refused := self._gate.check(shown, method, target_of(scope)):
            raise Refusal(401, f"the store needs the cluster's token: {refused.reason}; "
                               "give every process the same --token-file")  # fmt: skip
        async with self._working:
            await self._work(method, path, headers, body, reply)

    async def _work(
        self, method: str, path: str, headers: Mapping[bytes, bytes], body: Body, reply: Reply
    ) -> None:
        kind, *steps = path.removeprefix("/").split("/")
        match kind, method:
            case "check", "POST" if not steps:
                await self._do(self._shelf.try_out)
                await reply.empty(204)
            case "keys", "GET":
                prefix = _folder(steps) if any(steps) else None
                keys = await self._do(lambda: self._shelf.keys(prefix))
                await reply.whole(200, json.dumps({"keys": keys}).encode(), "application/json")
            case "chunks", "DELETE":
                folder = _folder(steps)
                await self._do(lambda: self._shelf.delete(folder))
                await reply.empty(204)
            case "chunks", "PUT":
                await self._take(_folder(steps[:-1]), _name(steps), headers, body, reply)
            case "chunks", "GET" | "HEAD":
                await self._give(_folder(steps[:-1]), _name(steps), headers, reply)
            case (("check" | "keys" | "chunks"), _):
                raise Refusal(405, f"{method} is not for {path}")
            case _:
                raise Refusal(404, "no such route; a store has /chunks, /keys, /check and /health")

    async def _take(
        self, folder: Path, name: str, headers: Mapping[bytes, bytes], body: Body, reply: Reply
    ) -> None:
        size = self._announced(headers)
        if headers.get(b"if-none-match") == b"*" and await self._is_there(folder, name):
            raise Refusal(412, "the chunk is there already")
        with ExitStack() as stack:
            draft = await self._do(lambda: stack.enter_context(self._shelf.draft()))
            left = size
            while blocks := await body.blocks(BLOCK_BYTES):
                left -= sum(map(len, blocks))
                if left < 0:
                    break
                await self._do(partial(draft.write, blocks))
            if left:
                raise Refusal(400, f"the chunk should have {size} bytes, and {size - left} came")
            try:
                await self._do(lambda: self._shelf.publish(draft, folder, name))
            except DamagedError as exc:
                raise Refusal(422, str(exc)) from exc
        self.tallies.stored_bytes += size
        await reply.empty(201)

    def _announced(self, headers: Mapping[bytes, bytes]) -> int:
        text = headers.get(b"content-length", b"")
        if not text.isdigit():
            raise Refusal(411, "say how long the chunk is, with Content-Length")
        if int(text) > self._most_bytes:
            raise Refusal(
                413,
                f"a chunk of {int(text):,} bytes is larger than the {self._most_bytes:,} that this "
                "store takes; start it with a larger --max-chunk",
            )
        return int(text)

    async def _is_there(self, folder: Path, name: str) -> bool:
        found = await self._do(lambda: self._shelf.open(folder, name))
        if found is not None:
            found.close()
        return found is not None

    async def _give(
        self, folder: Path, name: str, headers: Mapping[bytes, bytes], reply: Reply
    ) -> None:
        found = await self._do(lambda: self._shelf.open(folder, name))
        if found is None:
            raise Refusal(404, "there is no such chunk")
        with found:
            size = await self._do(lambda: found.seek(0, 2))
            part = ranges.parse(headers.get(b"range", b"").decode("latin-1"), size)
            if part is None:
                raise Refusal(416, f"the chunk has {size} bytes", ((b"content-range",
                              b"bytes */%d" % size),))  # fmt: skip
            about = [
                (b"content-type", b"application/vnd.apache.arrow.stream"),
                (b"accept-ranges", b"bytes"),
                (b"etag", b'"%s"' % (checksum_of(name) or "").encode()),
            ]
            if part.is_whole:
                await reply.begin(200, size, about)
            else:
                said = b"bytes %d-%d/%d" % (part.start, part.end - 1, size)
                await reply.begin(206, part.end - part.start, [*about, (b"content-range", said)])
            if not reply.is_head:
                await self._send(found, part, reply)

    async def _send(self, found: BinaryIO, part: ranges.Part, reply: Reply) -> None:
        await self._do(lambda: found.seek(part.start))
        left = part.end - part.start
        while left:
            block = await self._do(partial(found.read, min(left, BLOCK_BYTES)))
            if not block:
                raise ConnectionError("the chunk is shorter than it was")
            left -= len(block)
            self.tallies.read_bytes += len(block)
            await reply.part(block, is_last=not left)

    async def _refuse(self, reply: Reply, body: Body, refusal: Refusal) -> None:
        if reply.status:
            return  # Its answer had begun: the server breaks it off.
        closing = () if body.is_read else ((b"connection", b"close"),)
        await reply.text(refusal.status, refusal.text + "\n", (*refusal.headers, *closing))

    async def _do(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _folder(steps: list[str]) -> Path:
    folder = folder_of(steps)
    if folder is None:
        raise Refusal(400, "a path is made of up to 10 plain names: letters, digits, '_', '-', '.'")
    return folder


def _name(steps: list[str]) -> str:
    if not steps or checksum_of(steps[-1]) is None:
        raise Refusal(400, "a chunk is named INDEX-SHA256.arrow")
    return steps[-1]


def _broken(exc: OSError) -> Refusal:
    if disks.is_full(exc):
        logger.error("the disk is full")
        return Refusal(507, _FULL_TEXT)
    logger.error("the disk fails", extra={"cause": exc.strerror})
    return Refusal(500, f"the store cannot use its disk: {exc.strerror}")
