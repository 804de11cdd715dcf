"""Refreshes of accelerated datasets: asked for, and watched until there is what was asked for."""

import itertools
import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from caraway import parsing, retries
from caraway.errors import BrokenAnswerError
from caraway.parsing import Row
from caraway.transport import Request, Transport
from caraway_core.backoff import Delays
from caraway_core.errors import CarawayError

_FIRST_PAUSE_S = 0.1
_PATIENCE_S = 15.0
"""How long a refresh may be neither under way nor over: the server may have forgotten it."""
_AGAIN_S = 3.0
"""The same where the last one failed as well: it most likely failed again, too quickly to see."""
_JSON = "application/json"


class RefreshError(CarawayError):
    """A refresh failed, or was forgotten; readers have the rows from before."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An accelerated dataset as it stood when it was asked for. `document` is what the server said.

    `version` 0 means that nothing is loaded. The rows and bytes loaded are those of the refresh
    under way; `error` is why the last one failed.
    """

    version: int = 0
    rows: int = 0
    bytes: int = 0
    is_refreshing: bool = False
    is_asked_again: bool = False
    loaded_rows: int = 0
    loaded_bytes: int = 0
    error: str = ""
    document: Row = field(default_factory=dict, repr=False)

    @property
    def is_busy(self) -> bool:
        return self.is_refreshing or self.is_asked_again


@dataclass(slots=True)
class Outcome:
    """What became of a refresh, judged from how the dataset stood before and stands after it."""

    before: Standing
    has_run: bool = False
    idle_s: float = 0.0
    """For how long nothing was seen to happen."""

    def is_over(self, now: Standing, passed_s: float) -> bool:
        """Take note of one more look, so long after the one before.

        Raises:
            RefreshError: it failed, or nothing comes of it.
        """
        if now.is_busy:
            self.has_run, self.idle_s = True, 0.0
            return False
        if now.error and (self.has_run or now.error != self.before.error):
            raise RefreshError(now.error)
        self.idle_s += passed_s
        if now.version > self.before.version:
            # Unless it was seen at work, it may yet begin: this is the version of another refresh.
            return self.has_run or self.idle_s > 0
        if self.idle_s > (_AGAIN_S if now.error else _PATIENCE_S):
            raise RefreshError(now.error or "no refresh has come of it; ask again")
        return False


@dataclass(frozen=True, slots=True)
class Refreshes:
    """What a client asks of the acceleration of datasets."""

    transport: Transport
    max_retries: int
    sleep: Callable[[float], None]

    def ask(self, name: str, wanted: Mapping[str, Any]) -> str:
        """Have a dataset refreshed; return what the server says to it."""
        # Asked twice, it is refreshed twice, which does no harm.
        said = self._send("POST", f"{_path(name)}/refresh", wanted)
        return str(parsing.row(said).get("message", ""))

    def configure(self, name: str, settings: Mapping[str, Any]) -> None:
        """Change how a dataset is loaded."""
        self._send("PATCH", _path(name), settings)

    def document(self, name: str) -> Row:
        """Return what the server says of a dataset's acceleration."""
        request = Request("GET", _path(name), accept=_JSON)
        # A scheduler that is replaced is back in seconds.
        return parsing.row(self.transport.text(request, retries.patient(self.max_retries)))

    def watch(
        self, name: str, before: Standing, longest_pause_s: float
    ) -> Generator[Standing, None, None]:
        """Yield how a dataset stands until the refresh that was just asked for is over.

        Raises:
            RefreshError: it failed, or nothing comes of it.
        """
        outcome, passed_s = Outcome(before), 0.0
        delays = Delays(_FIRST_PAUSE_S, longest_pause_s)
        for looks in itertools.count(1):
            now = standing(self.document(name))
            yield now
            if outcome.is_over(now, passed_s):
                return
            passed_s = delays.delay_s(looks)
            self.sleep(passed_s)

    def _send(self, method: str, path: str, body: Mapping[str, Any]) -> str:
        request = Request(
            method, path, accept=_JSON, body=json.dumps(body).encode(), content_type=_JSON
        )
        return self.transport.text(request, retries.submissions(self.max_retries))


def standing(document: Row) -> Standing:
    """Read what a server says of a dataset's acceleration.

    Raises:
        BrokenAnswerError: it says something else.
    """
    version, refresh = document.get("version") or {}, document.get("refresh")
    loaded = refresh or {}
    try:
        return Standing(
            int(version.get("number", 0)),
            int(version.get("rows", 0)),
            int(version.get("bytes", 0)),
            refresh is not None,
            bool(document.get("is_asked_for_again")),
            int(loaded.get("rows", 0)),
            int(loaded.get("bytes", 0)),
            str(document.get("error") or ""),
            document,
        )
    except (AttributeError, TypeError, ValueError) as exc:
        raise BrokenAnswerError(
            f"the state of a dataset is expected, and the server sent: {document!r:.200}"
        ) from exc


def _path(name: str) -> str:
    return f"/v1/datasets/{quote(name, safe='')}/acceleration"
