"""A producer of changes of accounts whose sum never changes."""

import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from tests.kit.deadlines import until
from tests.kit.fault_clusters import BOUND_S, Served

ACCOUNTS = 50_000
FIRST = 100
SUM = "SELECT count(*) AS n, sum(v) AS s FROM accounts"
WHOLE = [{"n": ACCOUNTS, "s": ACCOUNTS * FIRST}]


class Producer:
    """Sends transfers, and records what every account must have after each acknowledged one."""

    def __init__(self) -> None:
        self.served = Served("")
        self.model = dict.fromkeys(range(ACCOUNTS), FIRST)
        self.sent = 0
        self.again = 0
        self.errors: list[BaseException] = []
        self._chosen = random.Random(7)
        self._lsn = 0
        self._stopping = threading.Event()

    def begin(self) -> None:
        for start in range(0, ACCOUNTS, 5000):
            self.send([self.event(id_, FIRST) for id_ in range(start, start + 5000)])

    def event(self, id_: int, value: int) -> Mapping[str, Any]:
        self._lsn += 1
        source = {"connector": "postgresql", "name": "bank", "lsn": self._lsn}
        return {"op": "u", "before": None, "after": {"id": id_, "v": value}, "source": source}

    def transfer(self) -> None:
        events = []
        for _ in range(100):
            some, other = self._chosen.sample(range(ACCOUNTS), 2)
            amount = self._chosen.randrange(FIRST)
            self.model[some] -= amount
            self.model[other] += amount
            events += [self.event(some, self.model[some]), self.event(other, self.model[other])]
        self.send(events)

    def send(self, events: list[Mapping[str, Any]]) -> None:
        """Send until it is answered, wherever the scheduler is by then."""
        end = time.monotonic() + BOUND_S
        while True:
            try:
                url = f"{self.served.url}/v1/datasets/accounts/cdc"
                got = httpx.post(url, json=events, timeout=60)
            except httpx.TransportError:
                got = None
            if got is not None and got.status_code == 200:
                assert got.json()["applied"] == len(events)
                self.sent += 1
                return
            known = got is None or got.status_code in (401, 404, 503, 504, 500)
            assert known and time.monotonic() < end, got and got.text
            self.again += 1
            self._stopping.wait(0.05)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._stopping.clear()

        def work() -> None:
            try:
                while not self._stopping.is_set():
                    self.transfer()
            except BaseException as exc:
                self.errors.append(exc)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()
        assert not self.errors, self.errors[0]

    def until_sent(self, more: int) -> None:
        count = self.sent
        until(lambda: self.sent >= count + more or bool(self.errors), "changes go on", BOUND_S)
        assert not self.errors, self.errors[0]
