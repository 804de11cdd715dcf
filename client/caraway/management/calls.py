"""Calls of the management API: how one is written, and when it is sent again. No I/O."""

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from caraway.requests import retries
from caraway.requests.retries import RetryPolicy
from caraway.requests.transport import ApiRequest
from caraway_core.errors import CarawayError

Document = TypeVar("Document")
Text = TypeVar("Text")
Content = TypeVar("Content")
Nothing = TypeVar("Nothing")
JSON = "application/json"
TIMEOUT_S = 90.0
"""Longer than the service waits for anything."""
_UNDER_WAY = "idempotent_request_under_way"


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""An argument that is left out, where None has a meaning of its own."""


# Any: JSON.
@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operation. Arguments that are None or UNSET are left out of the query."""

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict)
    body: Any = field(default=UNSET, repr=False)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    accept: str = JSON
    names_org: bool = False
    """True if the organization of the client is sent, as `X-Org-Name`."""
    has_key: bool = True
    """True if the service remembers the answer of a POST by an `Idempotency-Key`."""

    def request(self, token: str, org: str) -> ApiRequest:
        """Return the request of this call. A POST gets a new `Idempotency-Key`."""
        headers = {name: text for name, text in self.headers.items() if text is not None}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if org and self.names_org:
            headers["X-Org-Name"] = org
        if self._is_remembered:
            headers["Idempotency-Key"] = secrets.token_hex(16)
        has_body = self.body is not UNSET
        return ApiRequest(
            self.method,
            self.path,
            accept=self.accept,
            query={name: _text(given) for name, given in self.query.items() if is_given(given)},
            body=json.dumps(self.body, default=_plain).encode() if has_body else b"",
            content_type=JSON if has_body else "",
            timeout_s=TIMEOUT_S,
            extra=headers,
            sends_key=False,
        )

    def policy(self, most: int) -> RetryPolicy:
        """Return when the call is sent again: whatever happens if that does no harm."""
        if self.method == "GET" or self._is_remembered:
            return replace(retries.submissions(most), codes=frozenset({_UNDER_WAY}))
        # It was not carried out: the service was too busy, or there was no connection.
        return retries.statements(most, is_read=False)

    @property
    def _is_remembered(self) -> bool:
        return self.method == "POST" and self.has_key


class Operations(ABC, Generic[Document, Text, Content, Nothing]):
    """Sends calls. The types are those of answers, or awaitables of them."""

    @abstractmethod
    def _object(self, call: Call) -> Document: ...

    @abstractmethod
    def _text(self, call: Call) -> Text: ...

    @abstractmethod
    def _content(self, call: Call) -> Content: ...

    @abstractmethod
    def _nothing(self, call: Call) -> Nothing: ...


def part(given: object) -> str:
    """Return one part of a path.

    Raises:
        CarawayError: it would be a part of another path.
    """
    text = str(given)
    if text in ("", ".", ".."):
        raise CarawayError(f"{text!r} is no name or id")
    return quote(text, safe="")


_NOTHING: Mapping[str, object] = {}


def members(
    required: Mapping[str, object] = _NOTHING,
    *,
    optional: Mapping[str, object] = _NOTHING,
    nullable: Mapping[str, object] = _NOTHING,
) -> dict[str, object]:
    """Return a body: optional members that are not None, and nullable ones that are not UNSET."""
    given = {name: each for name, each in optional.items() if each is not None}
    also = {name: each for name, each in nullable.items() if each is not UNSET}
    return {**required, **given, **also}


def is_given(argument: object) -> bool:
    """Return whether an argument is sent in a query."""
    return argument is not None and argument is not UNSET


def _text(given: object) -> str:
    match given:
        case bool():
            return "true" if given else "false"
        case datetime():
            return given.isoformat()
    return str(given)


def _plain(given: object) -> object:
    match given:
        case datetime():
            return given.isoformat()
        case Mapping():
            return dict(given)
    raise TypeError(f"a value of type {type(given).__name__} cannot be sent as JSON")
