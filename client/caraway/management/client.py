"""Clients of the management API, one that blocks and one for asyncio."""

import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from caraway.errors import BrokenResponseError
from caraway.management.calls import Call
from caraway.management.routes import Routes
from caraway.requests import arguments, parsing
from caraway.requests.closing import AsyncClosing, Closing
from caraway.requests.parsing import Row
from caraway.requests.transport import Transport
from caraway.statements.async_handles import ThreadedCalls
from caraway_core.concurrency.clocks import Sleep
from caraway_core.errors import CarawayError

URL_VARIABLE = "CARAWAY_MANAGEMENT_URL"
TOKEN_VARIABLE = "CARAWAY_MANAGEMENT_TOKEN"
ORG_VARIABLE = "CARAWAY_ORG"
DEFAULT_URL = "http://127.0.0.1:8070"
PAGE = 100
WAIT_S = 2.0
"""The time for which the service waits for a change before it answers that there was none."""
UNFINISHED = frozenset({"queued", "in_progress"})


class Management(Routes[Row, str, bytes, None], Closing):
    """Sends requests to a management service.

    What is not given comes from the variables CARAWAY_MANAGEMENT_TOKEN, CARAWAY_MANAGEMENT_URL and
    CARAWAY_ORG; else the service is one on this machine, and the organization that of the token. A
    client may be used by several threads. Every method may raise UnreachableError, ApiError and
    BrokenResponseError. A request is sent again only if that does no harm: one that reads, one that
    was not carried out, and a POST, which has an Idempotency-Key.
    """

    def __init__(
        self,
        token: str | None = None,
        *,
        url: str | None = None,
        org: str | None = None,
        tls_root_cert: str | Path | None = None,
        user_agent: str = "",
        max_retries: int = 3,
        sleep: Sleep = time.sleep,
    ) -> None:
        given = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
        self._token = arguments.header("token", given)
        self.org = arguments.header("org", org or os.environ.get(ORG_VARIABLE, ""))
        self._transport = Transport(
            url or os.environ.get(URL_VARIABLE) or DEFAULT_URL,
            "",
            Path(tls_root_cert) if tls_root_cert else None,
            sleep,
            agent=arguments.header("user_agent", user_agent),
            max_retries=arguments.retries(max_retries),
        )

    def close(self) -> None:
        """Close all connections. The client cannot be used afterwards."""
        self._transport.close()

    @property
    def url(self) -> str:
        """The URL of the service."""
        return self._transport.endpoint

    # Any: the arguments of the method.
    def every(self, fetch: Callable[..., Row], *args: Any, **kwargs: object) -> Iterator[Row]:
        """Yield the entries of a list, page by page: `every(management.list_projects)`."""
        page: dict[str, object] | None = first_page(fetch, kwargs)
        while page is not None:
            rows, page = next_page(page, fetch(*args, **page))
            yield from rows

    def find_project(self, name: str) -> Row:
        """Return the project with a name, without regard to case.

        Raises:
            CarawayError: there is none.
        """
        for each in self.every(self.list_projects):
            if str(each["name"]).lower() == name.lower():
                # Lists leave long manifests out.
                is_whole = not each["config"].get("manifest_left_out")
                return each if is_whole else self.get_project(each["id"])
        raise CarawayError(f"there is no project '{name}'")

    def wait_for_deployment(
        self,
        project_id: int,
        deployment_id: int,
        timeout_s: float | None = None,
        on_change: Callable[[Row], object] | None = None,
    ) -> Row:
        """Wait for a deployment to end, at most `timeout_s` seconds, and return it."""
        watch = Watch(timeout_s, on_change)
        row = self.get_deployment(project_id, deployment_id)
        while not watch.is_over(row):
            row = self.get_deployment(project_id, deployment_id, wait=WAIT_S)
        return row

    def _object(self, call: Call) -> Row:
        return parsing.parse_object(self._content(call))

    def _text(self, call: Call) -> str:
        return self._content(call).decode("utf-8", "replace")

    def _content(self, call: Call) -> bytes:
        policy = call.policy(self._transport.max_retries)
        return self._transport.content(call.request(self._token, self.org), policy)

    def _nothing(self, call: Call) -> None:
        self._content(call)


class AsyncManagement(
    Routes[Awaitable[Row], Awaitable[str], Awaitable[bytes], Awaitable[None]], AsyncClosing
):
    """The client for asyncio. The arguments, variables and methods are those of `Management`.

    At most 16 calls run at a time; further ones wait.
    """

    def __init__(
        self,
        token: str | None = None,
        *,
        url: str | None = None,
        org: str | None = None,
        tls_root_cert: str | Path | None = None,
        user_agent: str = "",
        max_retries: int = 3,
    ) -> None:
        self._blocking = Management(
            token,
            url=url,
            org=org,
            tls_root_cert=tls_root_cert,
            user_agent=user_agent,
            max_retries=max_retries,
        )
        self._calls = ThreadedCalls()

    async def close(self) -> None:
        """Close all connections. The client cannot be used afterwards."""
        self._blocking.close()
        self._calls.close()

    @property
    def url(self) -> str:
        """The URL of the service."""
        return self._blocking.url

    # Any: the arguments of the method.
    async def every(
        self, fetch: Callable[..., Awaitable[Row]], *args: Any, **kwargs: object
    ) -> AsyncIterator[Row]:
        """Yield the entries of a list, page by page: `every(management.list_projects)`."""
        page: dict[str, object] | None = first_page(fetch, kwargs)
        while page is not None:
            rows, page = next_page(page, await fetch(*args, **page))
            for each in rows:
                yield each

    async def find_project(self, name: str) -> Row:
        """Return the project with a name, without regard to case.

        Raises:
            CarawayError: there is none.
        """
        return await self._calls.run_call(lambda: self._blocking.find_project(name))

    async def wait_for_deployment(
        self,
        project_id: int,
        deployment_id: int,
        timeout_s: float | None = None,
        on_change: Callable[[Row], object] | None = None,
    ) -> Row:
        """Wait for a deployment to end, at most `timeout_s` seconds, and return it."""
        watch = Watch(timeout_s, on_change)
        deployment = await self.get_deployment(project_id, deployment_id)
        while not watch.is_over(deployment):
            deployment = await self.get_deployment(project_id, deployment_id, wait=WAIT_S)
        return deployment

    def _object(self, call: Call) -> Awaitable[Row]:
        return self._calls.run_call(lambda: self._blocking._object(call))

    def _text(self, call: Call) -> Awaitable[str]:
        return self._calls.run_call(lambda: self._blocking._text(call))

    def _content(self, call: Call) -> Awaitable[bytes]:
        return self._calls.run_call(lambda: self._blocking._content(call))

    def _nothing(self, call: Call) -> Awaitable[None]:
        return self._calls.run_call(lambda: self._blocking._nothing(call))


def first_page(fetch: Callable[..., object], arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a method for its first page; some lists have one page only."""
    is_paged = "limit" in inspect.signature(fetch).parameters
    return {"limit": PAGE, **arguments} if is_paged else dict(arguments)


def next_page(
    arguments: Mapping[str, Any], answer: Row
) -> tuple[list[Row], dict[str, object] | None]:
    """Return the entries of a page, and the arguments for the next one if there may be one.

    Raises:
        BrokenResponseError: the answer is not a page.
    """
    lists = [each for each in answer.values() if isinstance(each, list)]
    if len(lists) != 1:
        raise BrokenResponseError("expected an object with one list from the service")
    rows: list[Row] = lists[0]
    if "next_cursor" in answer:
        cursor = answer["next_cursor"]
        return rows, {**arguments, "cursor": cursor} if cursor else None
    limit = arguments.get("limit")
    if limit is None or len(rows) < limit:
        return rows, None
    return rows, {**arguments, "offset": arguments.get("offset", 0) + limit}


class Watch:
    """Notices when the state of a deployment changes, and when it ends."""

    def __init__(self, timeout_s: float | None, on_change: Callable[[Row], object] | None) -> None:
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._on_change = on_change
        self._last: tuple[object, ...] = ()

    def is_over(self, deployment: Row) -> bool:
        """Return whether a deployment has ended, or the time is up."""
        names = ("status", "error_code", "error_message")
        state = tuple(deployment.get(name) for name in names)
        if state != self._last and self._on_change is not None:
            self._on_change(deployment)
        self._last = state
        if deployment.get("status") not in UNFINISHED:
            return True
        return self._deadline is not None and time.monotonic() >= self._deadline
