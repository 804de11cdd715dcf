"""Remembers applied requests with an Idempotency-Key for a day, for all schedulers.

  accelerated-requests/DATASET/N   the N-th page of requests, oldest first; expires

The latest requests are part of the version, written with their changes in one compare-and-set.
Older ones are moved to pages first. Requests are only appended, so every scheduler writes the same
content for a page.
"""

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from urllib.parse import quote

from caraway_acceleration.versions.version import DatasetVersion
from caraway_core.ids import TableName
from caraway_core.protocols.state import StateStore

logger = logging.getLogger(__name__)
KEPT_S = 24 * 3600.0
"""The minimum time in seconds that a page is kept."""
RECENT = 1000
PAGE = 500
MOST_PAGES = 400
"""The maximum number of pages of a dataset: 200,000 requests, about 30 MB of memory.

Beyond that the oldest page is dropped, even within KEPT_S, and a warning is logged. Refusing
requests instead would block every producer of more than two requests per second.
"""
_PAGES = "accelerated-requests/"
_ID = 32
_TRIES = 5
_WARNED_S = 3600.0


def token(key: str, *content: bytes) -> str:
    """Return the record of a request: a hash of its key followed by a hash of its content."""
    sha256 = hashlib.sha256()
    for each in content:
        sha256.update(len(each).to_bytes(8) + each)
    return hashlib.sha256(key.encode()).hexdigest()[:_ID] + sha256.hexdigest()[:16]


def id_of(request: str) -> str:
    """Return the part of a record that identifies the key of the request."""
    return request[:_ID]


class Requests:
    """The applied requests of one dataset.

    Methods raise StateAwayError while the state store is away.
    """

    def __init__(self, store: StateStore, name: TableName) -> None:
        self._store = store
        self._name = name
        self._quiet_until_s = 0.0
        self._prefix = f"{_PAGES}{quote(name, safe='')}/"
        self._pages: dict[int, dict[str, str]] = {}

    async def learn(self, version: DatasetVersion) -> None:
        """Read the pages of a version that are not known yet."""
        first = max(0, version.request_pages - MOST_PAGES)
        for number in [each for each in self._pages if each < first]:
            del self._pages[number]
        missing = [n for n in range(first, version.request_pages) if n not in self._pages]
        entries = await asyncio.gather(*(self._store.get(self._key(n)) for n in missing))
        for number, entry in zip(missing, entries, strict=True):
            self._pages[number] = _read(entry.value) if entry is not None else {}

    def find(self, version: DatasetVersion, request: str) -> str | None:
        """Return the record with the key of a request, from the version or a known page."""
        wanted = request[:_ID]
        for each in reversed(version.requests):
            if each[:_ID] == wanted:
                return each
        for page in self._pages.values():
            if wanted in page:
                return wanted + page[wanted]
        return None

    async def turned(self, version: DatasetVersion) -> tuple[Sequence[str], int]:
        """Return the requests for the next version and its number of pages.

        Requests that it drops are written to a page before this returns.
        """
        if len(version.requests) < RECENT:
            return version.requests, version.request_pages
        await self._warn_of(version.request_pages - MOST_PAGES)
        await self._write(version.request_pages, version.requests[:PAGE])
        return version.requests[PAGE:], version.request_pages + 1

    async def _warn_of(self, number: int) -> None:
        """Warn that a page is dropped, if it has not expired yet."""
        now_s = asyncio.get_running_loop().time()
        if number < 0 or now_s < self._quiet_until_s:
            return
        if await self._store.get(self._key(number)) is not None:
            self._quiet_until_s = now_s + _WARNED_S
            extra = {"dataset": self._name, "requests": MOST_PAGES * PAGE}
            logger.warning("Idempotency-Keys are kept for less than 24 hours", extra=extra)

    async def _write(self, number: int, requests: Sequence[str]) -> None:
        value, key = "\n".join(requests).encode(), self._key(number)
        for _ in range(_TRIES):
            entry = await self._store.get(key)
            if entry is not None and entry.value == value:
                return
            # A different page with this number belongs to a removed dataset of the same name.
            expected = entry.revision if entry is not None else None
            await self._store.compare_and_set(key, value, expected=expected, ttl_s=KEPT_S)

    def _key(self, number: int) -> str:
        return f"{self._prefix}{number:012d}"


def _read(page: bytes) -> dict[str, str]:
    return {line[:_ID]: line[_ID:] for line in page.decode().split("\n")}
