"""A client that retries unanswered requests at the next scheduler, as producers do."""

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.kit.deadlines import until

PATIENCE_S = 600.0
"""The time for retries of a write, which includes the time after the last fault."""
_ANSWER_S = 15.0
_REFUSALS = (400, 403, 404, 409, 413, 415, 422)
"""Responses that make a client give up; the load does not cause any."""


def wait(seconds: float) -> None:
    """Sleep, because faults are timed and not triggered by events."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end, "the time has passed", seconds + 60)


@dataclass(slots=True)
class Target:
    """The schedulers of one run, and the responses that all clients received."""

    urls: dict[str, str]
    seed: int
    statuses: Counter[str] = field(default_factory=Counter)
    """Counts of responses by kind of request; the key 0 means no response."""
    findings: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Sent:
    """A final response, and whether an earlier attempt may have been applied as well."""

    answer: httpx.Response
    is_repeated: bool

    @property
    def rows(self) -> Any:
        return self.answer.json()


class Client:
    """A client for one thread, which sends requests to the schedulers in turn."""

    def __init__(self, target: Target, number: int) -> None:
        self.target = target
        self.chosen = random.Random(target.seed * 1000 + number)
        self._turns = itertools.count(number)
        self._http = httpx.Client(timeout=_ANSWER_S)

    def close(self) -> None:
        self._http.close()

    def key(self) -> str:
        """Return a new Idempotency-Key."""
        return f"{self.target.seed}-{self.chosen.getrandbits(64):x}"

    def once(self, method: str, path: str, **request: Any) -> httpx.Response | None:
        """Send to the next scheduler; return None if there is no response."""
        urls = list(self.target.urls.values())
        url = urls[next(self._turns) % len(urls)]
        try:
            answer = self._http.request(method, url + path, **request)
        except httpx.TransportError:
            answer = None
        status = answer.status_code if answer is not None else 0
        self.target.statuses[f"{path.rpartition('/')[2]} {status}"] += 1
        return answer

    def until_done(
        self,
        method: str,
        path: str,
        is_done: Callable[[httpx.Response], bool] = lambda _answer: False,
        **request: Any,
    ) -> Sent:
        """Send until the request is acknowledged; `is_done` recognises that it was applied before.

        Raises:
            AssertionError: the request was rejected, or not acknowledged in time.
        """
        deadline, last, tries = time.monotonic() + PATIENCE_S, "no answer", 0
        while time.monotonic() < deadline:
            answer = self.once(method, path, **request)
            if answer is not None:
                if answer.is_success or (tries and is_done(answer)):
                    return Sent(answer, tries > 0)
                last = f"{answer.status_code} {answer.text}"
                assert answer.status_code not in _REFUSALS, f"{method} {path}: {last}"
            tries += 1
            # Retries go on after the end of the load, because every started request must be
            # acknowledged.
            threading.Event().wait(0.1)
        raise AssertionError(f"{method} {path}: not within {PATIENCE_S:.0f} s; last: {last}")

    def with_key(self, path: str, body: object, other: object) -> httpx.Response:
        """Post with a new key until acknowledged; sometimes send the same request again."""
        headers = {"idempotency-key": self.key(), "content-type": "application/json"}
        sent = self.until_done("POST", path, content=json.dumps(body), headers=headers)
        chance = self.chosen.random()
        if chance < 0.2:
            again = self.until_done("POST", path, content=json.dumps(body), headers=headers)
            self._compare(path, sent.answer.json(), again.answer.json())
        elif chance < 0.4:
            answer = self.once("POST", path, content=json.dumps(other), headers=headers)
            # Overload and an unavailable state store are reported before the comparison.
            if answer is not None and answer.status_code not in (422, 429, 503, 504):
                self.find(f"{path}: another body under a known key: {answer.status_code}")
        return sent.answer

    def read(self, sql: str) -> list[Mapping[str, Any]] | None:
        """Run a query once; return None if there is no response."""
        answer = self.once("POST", "/v1/sql", content=sql)
        if answer is None or answer.status_code != 200:
            return None
        rows: list[Mapping[str, Any]] = answer.json()
        return rows

    def change(
        self, sql: str, is_done: Callable[[httpx.Response], bool] = lambda _answer: False
    ) -> None:
        """Run a statement that changes one row, until it is known to be applied."""
        sent = self.until_done("POST", "/v1/sql", is_done, content=sql)
        if not sent.answer.is_success:
            return
        count = sent.rows[0]["count"]
        if count != 1 and not (count == 0 and sent.is_repeated):
            self.find(f"{sql}: changed {count} rows; sent again: {sent.is_repeated}")

    def find(self, finding: str) -> None:
        """Record a difference between the responses and the model."""
        self.target.findings.append(finding)

    def _compare(self, path: str, first: Mapping[str, Any], again: Mapping[str, Any]) -> None:
        if first.get("query_id") != again.get("query_id"):
            self.find(f"{path}: replayed, it became another query: {first}, {again}")
