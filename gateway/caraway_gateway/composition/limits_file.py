"""Follows the file with the limits, and puts them in force while everything runs."""

import asyncio
import logging
from pathlib import Path

from caraway_gateway.services import Services
from caraway_serving import limits
from caraway_serving.limits import RequestLimits

logger = logging.getLogger(__name__)
LOOK_EVERY_S = 2.0
_MOST_BYTES = 64 * 1024


class LimitsFile:
    """What cannot be read, or used, is logged once; the last good limits stay in force."""

    def __init__(self, path: Path, services: Services, every_s: float = LOOK_EVERY_S) -> None:
        self._path = path
        self._services = services
        self._every_s = every_s
        self._text: str | None = None
        self._trouble = ""
        self._limits = RequestLimits()

    async def run(self) -> None:
        """Look again and again until cancelled: files of ConfigMaps are swapped beneath a link."""
        while True:
            await asyncio.sleep(self._every_s)
            await self.look()

    async def look(self) -> None:
        """Read the file if it changed, and divide the limits again if schedulers came or went."""
        try:
            text = await asyncio.to_thread(self._read)
            if text != self._text:
                self._take(text)
        except OSError as exc:
            self._complain(f"it cannot be read: {exc.strerror}")
        except ValueError as exc:
            self._complain(str(exc))
        self._enforce()

    def _read(self) -> str:
        with self._path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES} bytes")
        return content.decode()

    def _take(self, text: str) -> None:
        parsed = limits.parse(text)
        self._text, self._trouble, self._limits = text, "", parsed.limits
        if parsed.unknown:
            logger.warning("limits without a meaning here", extra={"keys": list(parsed.unknown)})
        fields = {name: getattr(parsed.limits, name) for name in parsed.limits.__slots__}
        logger.info("limits are in force", extra={"path": str(self._path), **fields})

    def _complain(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            logger.error(
                "limits not taken; those before stay in force",
                extra={"path": str(self._path), "reason": trouble},
            )

    def _enforce(self) -> None:
        services, request_limits = self._services, self._limits
        schedulers = max(1, services.scheduler_count())
        rps = request_limits.api_rps
        services.limits.bucket.refill_at(None if rps is None else rps / schedulers)
        services.limits.request_timeout_s = request_limits.request_timeout_secs
        running = limits.share(request_limits.sql_concurrent_queries, schedulers)
        services.queries.bound(request_limits.sql_query_timeout_secs, running)
