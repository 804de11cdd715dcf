"""Limits the requests of a credential, or of an address without one, in a minute and an hour."""

import hashlib
import math
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from caraway_core.concurrency.clocks import SecondsClock
from caraway_management.services import Rates

_MOST_SENDERS = 50_000
_UNLIMITED = ("/healthz", "/readyz", "/metrics", "/v1/health")


@dataclass(slots=True)
class _Window:
    """The requests of one sender since a moment."""

    began: float
    requests: int = 0


@dataclass(slots=True)
class _Sender:
    windows: list[_Window] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RateStanding:
    """The state of the limit that a sender is nearest to."""

    limit: int
    remaining: int
    reset_s: int
    is_allowed: bool

    def headers(self) -> list[tuple[bytes, bytes]]:
        pairs = [("limit", self.limit), ("remaining", self.remaining), ("reset", self.reset_s)]
        return [(f"x-ratelimit-{name}".encode(), str(value).encode()) for name, value in pairs]


class RateCounter:
    """Counts requests of each sender in windows; the sender that was quiet longest is forgotten."""

    def __init__(
        self, rates: Rates, clock: SecondsClock = time.monotonic, most: int = _MOST_SENDERS
    ) -> None:
        self._limits = ((rates.per_minute, 60.0), (rates.per_hour, 3_600.0))
        self._clock = clock
        self._most = most
        self._senders: OrderedDict[str, _Sender] = OrderedDict()

    def count(self, sender: str) -> RateStanding:
        """Count one request, unless the sender is over a limit."""
        now = self._clock()
        entry = self._senders.setdefault(sender, _Sender())
        self._senders.move_to_end(sender)
        if len(self._senders) > self._most:
            self._senders.popitem(last=False)
        if not entry.windows:
            entry.windows = [_Window(now) for _ in self._limits]
        for window, (_, length_s) in zip(entry.windows, self._limits, strict=True):
            if now - window.began >= length_s:
                window.began, window.requests = now, 0
        pairs = list(zip(entry.windows, self._limits, strict=True))
        is_allowed = all(window.requests < limit for window, (limit, _) in pairs)
        if is_allowed:
            for window, _ in pairs:
                window.requests += 1
        return min(
            (
                RateStanding(
                    limit,
                    limit - window.requests,
                    math.ceil(window.began + length_s - now),
                    is_allowed,
                )
                for window, (limit, length_s) in pairs
            ),
            key=lambda standing: standing.remaining,
        )


class RateGate:
    """Answers 429 above the rates, and shows the rates in every response."""

    def __init__(self, app: ASGIApp, rates: Rates) -> None:
        self._app = app
        self._counter = RateCounter(rates)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _UNLIMITED:
            await self._app(scope, receive, send)
            return
        standing = self._counter.count(_sender(Request(scope)))

        async def send_with_rates(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *standing.headers()]
            await send(message)

        if standing.is_allowed:
            await self._app(scope, receive, send_with_rates)
            return
        refusal = JSONResponse(
            {
                "error": f"too many requests; at most {standing.limit} are allowed, "
                f"try again in {standing.reset_s} s"
            },
            429,
            {"retry-after": str(standing.reset_s)},
        )
        await refusal(scope, receive, send_with_rates)


def _sender(request: Request) -> str:
    """Return who sends a request. The value of a credential is not kept."""
    value = request.headers.get("authorization") or request.headers.get("cookie")
    if value:
        return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()
    return request.client.host if request.client else ""
