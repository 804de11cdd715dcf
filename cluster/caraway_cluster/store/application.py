"""The routes of the chunk store, as an ASGI application that streams blocks.

PUT, GET, HEAD  /chunks/PREFIX.../KEY/NAME     one chunk, named by its index and checksum
DELETE          /chunks/PREFIX.../KEY          all chunks of a key
GET             /keys/PREFIX...                `{"keys": [...]}`
POST            /check                         check that the store can write
GET             /health, /metrics              no token needed
"""

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar

from caraway_cluster.store.chunk_folder import (
    ChecksumMismatchError,
    ChunkFolder,
    checksum_of,
    folder_of,
)
from caraway_cluster.store.messages import Body, HttpError, Receive, Reply, Scope, Send
from caraway_cluster.store.metrics import CONTENT_TYPE, StoreMetrics
from caraway_core.process import disks
from caraway_core.security.signatures import SignatureGate, target_of

logger = logging.getLogger(__name__)
BLOCK_BYTES = 1024 * 1024
_THREADS = 16
_MAX_ACTIVE_REQUESTS = 64
_DISK_FULL = (
    "the disk of the store is full; enlarge its volume, or keep results for a shorter time with "
    "runtime.jobs.retention"
)
_Result = TypeVar("_Result")
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `start` up to but not including `end`."""

    start: int
    end: int
    is_whole: bool = False


class StoreApplication:
    """Serves a chunk folder to clients that have the token.

    The number of active requests is limited; further requests wait. The server limits the number
    of connections. Each active request holds one block in memory.
    """

    def __init__(
        self, chunks: ChunkFolder, token: str, max_bytes: int, *, has_metrics: bool
    ) -> None:
        self.metrics = StoreMetrics()
        self._chunks = chunks
        self._gate = SignatureGate(token)
        self._max_bytes = max_bytes
        self._has_metrics = has_metrics
        self._active = asyncio.Semaphore(_MAX_ACTIVE_REQUESTS)
        self._threads = ThreadPoolExecutor(_THREADS, "chunk-store")

    def close(self) -> None:
        self._threads.shutdown()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        reply, body = Reply(send, scope["method"] == "HEAD"), Body(receive)
        try:
            await self._answer(scope, body, reply)
        except HttpError as error:
            await self._send_error(reply, body, error)
        except ConnectionError:
            pass  # The client disconnected.
        except OSError as exc:
            await self._send_error(reply, body, _disk_error(exc))
        finally:
            self.metrics.requests[scope["method"], str(reply.status)] += 1

    async def _answer(self, scope: Scope, body: Body, reply: Reply) -> None:
        method, path = scope["method"], scope["path"]
        if path == "/health" and method in ("GET", "HEAD"):
            return await reply.send_text(200, "ok\n")
        if path == "/metrics" and method == "GET" and self._has_metrics:
            free, total = await self._in_thread(self._chunks.disk_space)
            page = self.metrics.render(free, total)
            return await reply.send_content(200, page, CONTENT_TYPE)
        headers = dict(scope["headers"])
        authorization = headers.get(b"authorization", b"").decode("latin-1")
        if refused := self._gate.check(authorization, method, target_of(scope)):
            raise HttpError(401, f"the store needs the cluster's token: {refused.reason}; "
                               "give every process the same --token-file")  # fmt: skip
        async with self._active:
            await self._route(method, path, headers, body, reply)

    async def _route(
        self, method: str, path: str, headers: Mapping[bytes, bytes], body: Body, reply: Reply
    ) -> None:
        kind, *steps = path.removeprefix("/").split("/")
        match kind, method:
            case "check", "POST" if not steps:
                await self._in_thread(self._chunks.check_writable)
                await reply.send_empty(204)
            case "keys", "GET":
                prefix = _folder(steps) if any(steps) else None
                keys = await self._in_thread(lambda: self._chunks.list_keys(prefix))
                content = json.dumps({"keys": keys}).encode()
                await reply.send_content(200, content, "application/json")
            case "chunks", "DELETE":
                folder = _folder(steps)
                await self._in_thread(lambda: self._chunks.delete_key(folder))
                await reply.send_empty(204)
            case "chunks", "PUT":
                await self._put_chunk(_folder(steps[:-1]), _name(steps), headers, body, reply)
            case "chunks", "GET" | "HEAD":
                await self._get_chunk(_folder(steps[:-1]), _name(steps), headers, reply)
            case (("check" | "keys" | "chunks"), _):
                raise HttpError(405, f"{method} is not supported for {path}")
            case _:
                raise HttpError(
                    404, "no such route; a store has /chunks, /keys, /check and /health"
                )

    async def _put_chunk(
        self, folder: Path, name: str, headers: Mapping[bytes, bytes], body: Body, reply: Reply
    ) -> None:
        size = self._content_length(headers)
        if headers.get(b"if-none-match") == b"*" and await self._exists(folder, name):
            raise HttpError(412, "the chunk already exists")
        with ExitStack() as stack:
            draft = await self._in_thread(lambda: stack.enter_context(self._chunks.new_draft()))
            left = size
            while blocks := await body.read_blocks(BLOCK_BYTES):
                left -= sum(map(len, blocks))
                if left < 0:
                    break
                await self._in_thread(partial(draft.write, blocks))
            if left:
                raise HttpError(400, f"expected a chunk of {size} bytes, received {size - left}")
            try:
                await self._in_thread(lambda: self._chunks.publish(draft, folder, name))
            except ChecksumMismatchError as exc:
                raise HttpError(422, str(exc)) from exc
        self.metrics.stored_bytes += size
        await reply.send_empty(201)

    def _content_length(self, headers: Mapping[bytes, bytes]) -> int:
        text = headers.get(b"content-length", b"")
        if not text.isdigit():
            raise HttpError(411, "the request needs a Content-Length header")
        if int(text) > self._max_bytes:
            raise HttpError(
                413,
                f"a chunk of {int(text):,} bytes exceeds the limit of {self._max_bytes:,} bytes; "
                "start the store with a larger --max-chunk",
            )
        return int(text)

    async def _exists(self, folder: Path, name: str) -> bool:
        file = await self._in_thread(lambda: self._chunks.open_chunk(folder, name))
        if file is not None:
            file.close()
        return file is not None

    async def _get_chunk(
        self, folder: Path, name: str, headers: Mapping[bytes, bytes], reply: Reply
    ) -> None:
        file = await self._in_thread(lambda: self._chunks.open_chunk(folder, name))
        if file is None:
            raise HttpError(404, "no such chunk")
        with file:
            size = await self._in_thread(lambda: file.seek(0, 2))
            part = parse_range(headers.get(b"range", b"").decode("latin-1"), size)
            if part is None:
                raise HttpError(416, f"the chunk has {size} bytes", ((b"content-range",
                                b"bytes */%d" % size),))  # fmt: skip
            about = [
                (b"content-type", b"application/vnd.apache.arrow.stream"),
                (b"accept-ranges", b"bytes"),
                (b"etag", b'"%s"' % (checksum_of(name) or "").encode()),
            ]
            if part.is_whole:
                await reply.start_response(200, size, about)
            else:
                content_range = b"bytes %d-%d/%d" % (part.start, part.end - 1, size)
                about.append((b"content-range", content_range))
                await reply.start_response(206, part.end - part.start, about)
            if not reply.is_head:
                await self._send_blocks(file, part, reply)

    async def _send_blocks(self, file: BinaryIO, part: ByteRange, reply: Reply) -> None:
        await self._in_thread(lambda: file.seek(part.start))
        left = part.end - part.start
        while left:
            block = await self._in_thread(partial(file.read, min(left, BLOCK_BYTES)))
            if not block:
                raise ConnectionError("the chunk was truncated while it was sent")
            left -= len(block)
            self.metrics.read_bytes += len(block)
            await reply.send_block(block, is_last=not left)

    async def _send_error(self, reply: Reply, body: Body, error: HttpError) -> None:
        if reply.status:
            return  # The response has started; the server closes the connection.
        # An unread body would be taken for the next request on the connection.
        closing = () if body.is_read else ((b"connection", b"close"),)
        await reply.send_text(error.status, error.text + "\n", (*error.headers, *closing))

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _folder(steps: list[str]) -> Path:
    folder = folder_of(steps)
    if folder is None:
        raise HttpError(
            400, "a path consists of 1 to 10 names of letters, digits, '_', '-' and '.'"
        )
    return folder


def _name(steps: list[str]) -> str:
    if not steps or checksum_of(steps[-1]) is None:
        raise HttpError(400, "the name of a chunk is INDEX-SHA256.arrow")
    return steps[-1]


def _disk_error(exc: OSError) -> HttpError:
    if disks.is_full(exc):
        logger.error("disk is full")
        return HttpError(507, _DISK_FULL)
    logger.error("disk error", extra={"cause": exc.strerror})
    return HttpError(500, f"the store cannot access its disk: {exc.strerror}")


def parse_range(header: str, size: int) -> ByteRange | None:
    """Parse a Range header with one range; None if the range starts after the end.

    An invalid header, or one with several ranges, selects all bytes, as RFC 9110 allows.
    """
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or not (match[1] or match[2]):
        return ByteRange(0, size, is_whole=True)
    first, last = match[1], match[2]
    if not first:
        length = min(int(last), size)
        return ByteRange(size - length, size) if length else None
    start, end = int(first), min(int(last) + 1, size) if last else size
    if last and int(last) < start:
        return ByteRange(0, size, is_whole=True)
    return ByteRange(start, end) if start < size else None
