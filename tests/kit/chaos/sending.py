"""A client as producers are: it sends again what was not answered, to the next scheduler."""

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
"""How long a write is sent again: also after the last fault."""
_ANSWER_S = 15.0
_REFUSALS = (400, 403, 404, 409, 413, 415, 422)
"""Answers that tell a client to give up; the load gives no reason for any."""


def wait(seconds: float) -> None:
    """Let time pass: faults come at times, not at events."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end, "the time has passed", seconds + 60)


@dataclass(slots=True)
class Target:
    """The schedulers as they are, and what all clients of one run saw of them."""

    urls: dict[str, str]
    seed: int
    statuses: Counter[str] = field(default_factory=Counter)
    """How often each kind of request had each answer; 0 is none at all."""
    findings: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Sent:
    """An answer that counts, and whether an earlier try may have been carried out as well."""

    answer: httpx.Response
    is_repeated: bool

    @property
    def rows(self) -> Any:
        return self.answer.json()


class Client:
    """Belongs to one thread. Requests go to the schedulers in turn."""

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
        """Send to the scheduler whose turn it is; None: no answer came."""
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
        """Send until it is acknowledged; `is_done` says which refusals tell that it was before.

        Raises:
            AssertionError: it is refused, or not acknowledged in time.
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
            # Also after the end of the load: what was begun is to be acknowledged.
            threading.Event().wait(0.1)
        raise AssertionError(f"{method} {path}: not within {PATIENCE_S:.0f} s; last: {last}")

    def with_key(self, path: str, body: object, other: object) -> httpx.Response:
        """Post under a new key until it is acknowledged; sometimes replay it, as it was or not."""
        headers = {"idempotency-key": self.key(), "content-type": "application/json"}
        sent = self.until_done("POST", path, content=json.dumps(body), headers=headers)
        chance = self.chosen.random()
        if chance < 0.2:
            again = self.until_done("POST", path, content=json.dumps(body), headers=headers)
            self._compare(path, sent.answer.json(), again.answer.json())
        elif chance < 0.4:
            answer = self.once("POST", path, content=json.dumps(other), headers=headers)
            # Overload and a state store that is away come before the comparison.
            if answer is not None and answer.status_code not in (422, 429, 503, 504):
                self.find(f"{path}: another body under a known key: {answer.status_code}")
        return sent.answer

    def read(self, sql: str) -> list[Mapping[str, Any]] | None:
        """Run a query once; None where it was not answered."""
        answer = self.once("POST", "/v1/sql", content=sql)
        if answer is None or answer.status_code != 200:
            return None
        rows: list[Mapping[str, Any]] = answer.json()
        return rows

    def change(
        self, sql: str, is_done: Callable[[httpx.Response], bool] = lambda _answer: False
    ) -> None:
        """Run a statement that changes one row, until it is known that it has."""
        sent = self.until_done("POST", "/v1/sql", is_done, content=sql)
        if not sent.answer.is_success:
            return
        count = sent.rows[0]["count"]
        if count != 1 and not (count == 0 and sent.is_repeated):
            self.find(f"{sql}: changed {count} rows; sent again: {sent.is_repeated}")

    def find(self, finding: str) -> None:
        """Note a difference between the answers and the model."""
        self.target.findings.append(finding)

    def _compare(self, path: str, first: Mapping[str, Any], again: Mapping[str, Any]) -> None:
        if first.get("query_id") != again.get("query_id"):
            self.find(f"{path}: replayed, it became another query: {first}, {again}")
