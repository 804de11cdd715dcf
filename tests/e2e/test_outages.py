"""The longest time without an answer when one pod, or all of them, are killed.

The times are printed; docs/operate/troubleshooting.md explains them. With two schedulers, a request
that is sent once more is answered, whichever single pod was killed. With CARAWAY_MEASURES=1, on an
otherwise idle machine, the longest times have limits.
"""

import itertools
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from tests.hostile.watching import MEASURES
from tests.kit.chaos.keeping import (
    EXECUTORS,
    HEAD,
    SCHEDULERS,
    STORE,
    VALKEY,
    Keeper,
    kept_cluster,
    send,
)
from tests.kit.deadlines import until
from tests.kit.fault_clusters import QUICK, Facts, write_facts

pytestmark = [pytest.mark.full, pytest.mark.timeout(1200)]
ALL = (HEAD, *SCHEDULERS, *EXECUTORS)
STREAMS, ASK_S, BACK_S = 2, 60.0, 300.0
MOST_S, MOST_OF_ALL_S = 5.0, 30.0
MANIFEST = """\
version: v1
kind: Caraway
name: outages
runtime:
  scheduler: {{state_location: '{results}'}}
  caching: {{sql_results: {{enabled: false}}}}
datasets:
  - {{from: 'file:lefts/', name: lefts, params: {{file_format: parquet}}}}
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """The result of a request: its last status, or 0 without a response, and its attempts."""

    at_s: float
    status: int
    attempts: int
    retry_after: str | None
    rows: object


@dataclass(slots=True)
class Clients:
    """Send a statement to the schedulers in turns, and each that fails once more to the next."""

    urls: Mapping[str, str]
    asked: list[Asked] = field(default_factory=list)

    def ask(self, turn: int) -> None:
        answer: httpx.Response | None = None
        for attempt in (1, 2):
            url = self.urls[SCHEDULERS[(turn + attempt) % len(SCHEDULERS)]]
            try:
                answer = httpx.post(f"{url}/v1/sql", content=QUICK, timeout=ASK_S)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code == 200:
                break
        status = answer.status_code if answer is not None else 0
        retry_after = answer.headers.get("retry-after") if answer is not None else None
        rows = answer.json() if answer is not None and status == 200 else None
        self.asked.append(Asked(time.monotonic(), status, attempt, retry_after, rows))

    @property
    def answered(self) -> Sequence[Asked]:
        return [each for each in self.asked if each.status == 200]

    @contextmanager
    def at_work(self) -> Iterator[None]:
        stop = threading.Event()

        def run(number: int) -> None:
            for turn in itertools.count(number):
                if stop.is_set():
                    return
                self.ask(turn)

        threads = [threading.Thread(target=run, args=(each,)) for each in range(STREAMS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join(2 * ASK_S)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Keeper, Facts]]:
    folder = tmp_path_factory.mktemp("o")
    facts = write_facts(folder)
    with kept_cluster(folder, lambda results: MANIFEST.format(results=results)) as keeper:
        yield keeper, facts


@pytest.mark.parametrize(
    "killed", [("s1",), ("e1",), (HEAD,), (STORE,), (VALKEY,), ALL], ids="-".join
)
def test_killed_pods_cost_a_short_outage(kept: tuple[Keeper, Facts], killed: Sequence[str]) -> None:
    keeper, facts = kept
    keeper.until_ready(BACK_S)
    clients = Clients(keeper.urls)
    with clients.at_work():
        until(lambda: len(clients.answered) >= 2 * STREAMS, "statements are answered", BACK_S)
        before = {name: keeper.pid(name) for name in killed}
        began = time.monotonic()
        with keeper.held():
            for name in killed:
                send(keeper.pids(name), signal.SIGKILL)
        for name, pid in before.items():
            keeper.until_replaced(name, pid)
        keeper.until_ready(BACK_S)
        back_s = time.monotonic() - began
        count = len(clients.answered)
        until(lambda: len(clients.answered) > count + 2 * STREAMS, "answers go on", BACK_S)
    times = [each.at_s for each in clients.answered]
    longest_s = max(b - a for a, b in itertools.pairwise(times))
    failed = [each for each in clients.asked if each.status != 200]
    again = sum(each.attempts == 2 for each in clients.answered)
    print(f"\n{', '.join(killed)}: longest time without an answer {longest_s:.1f} s, all ready "
          f"after {back_s:.1f} s, {len(clients.asked)} requests, {again} by a second attempt, "
          f"failed {[each.status for each in failed]}")  # fmt: skip
    assert all(each.rows == facts.quick for each in clients.answered)
    # A process that is killed sends nothing.
    assert all(each.retry_after for each in failed if each.status)
    assert {each.status for each in failed} <= {0, 429, 503}
    if len(killed) == 1:
        assert not failed
    if MEASURES:
        assert longest_s < (MOST_S if len(killed) == 1 else MOST_OF_ALL_S)
