"""The load of a chaos run: its manifest, its threads, and the final comparison."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.kit.chaos.sending import PATIENCE_S, Client, Target
from tests.kit.chaos.works import (
    REFRESH_S,
    Counters,
    Jobs,
    Ledger,
    Notes,
    Refreshed,
    Tally,
    Work,
    by_event,
    by_statement,
)
from tests.kit.deadlines import until

LENGTH_S = float(os.environ.get("CARAWAY_CHAOS_S", "40"))
"""The time during which faults are injected."""
SEED = int(os.environ.get("CARAWAY_CHAOS_SEED", "1"))
_COLUMNS = "columns: [{name: id, type: bigint}, {name: v, type: bigint}], access: read_write"
_KEYED = "acceleration: {enabled: true, primary_key: id}"
_LOADED = "params: {file_format: parquet}, acceleration: {enabled: true}"


def manifest(seed: int, results: str = "results") -> str:
    """Return the manifest of the load; results are cached if the seed is even."""
    return f"""\
version: v1
kind: Caraway
name: chaos
runtime:
  scheduler: {{state_location: '{results}'}}
  caching: {{sql_results: {{enabled: {str(seed % 2 == 0).lower()}}}}}
datasets:
  - {{from: 'file:facts/', name: facts, params: {{file_format: parquet}}}}
  - {{from: 'file:numbers/', name: numbers, {_LOADED}}}
  - {{from: 'file:tagged/', name: tagged, {_LOADED}}}
  - {{from: 'cdc:ledger', name: ledger, {_COLUMNS}, acceleration: {{enabled: true}}}}
  - {{from: 'cdc:posted', name: posted, {_COLUMNS}, acceleration: {{enabled: true}}}}
  - {{from: 'cdc:accounts', name: accounts, {_COLUMNS}, {_KEYED}}}
  - {{from: 'cdc:counters', name: counters, {_COLUMNS}, {_KEYED}}}
  - {{from: 'cdc:tally', name: tally, {_COLUMNS}, {_KEYED}}}
  - {{from: 'cdc:notes', name: notes, {_COLUMNS}, {_KEYED}}}
"""


class Load:
    """Writes and reads while processes die and pause."""

    def __init__(self, folder: Path, seed: int, keeps_tags: bool) -> None:
        """Set whether a `refresh_sql` is expected to survive the faults."""
        self.target = Target({}, seed)
        self.ledger, self.tally, self.notes = Ledger(), Tally(), Notes()
        self.accounts = Counters("accounts", by_event)
        self.counters = Counters("counters", by_statement)
        self.numbers = Refreshed(folder, "numbers", False, keeps_tags)
        self.tagged = Refreshed(folder, "tagged", True, keeps_tags)
        self.jobs = Jobs(folder)
        self.reads = 0

    @property
    def _works(self) -> Sequence[Work]:
        return (self.ledger, self.accounts, self.counters, self.tally, self.notes, self.numbers,
                self.tagged, self.jobs)  # fmt: skip

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the load until the block ends, and until every request that was started has a
        response.
        """
        with closing(Client(self.target, 0)) as client:
            for begun in (self.accounts, self.counters, self.tally):
                begun.begin(client)
        steps = [work.step for work in (*self._works, self.ledger, self.tally)]
        threads = [
            threading.Thread(target=self._repeat, args=(step, number), daemon=True)
            for number, step in enumerate([*steps, self._look, self._look], 1)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.target.stopping.set()
            for thread in threads:
                thread.join(PATIENCE_S + REFRESH_S + 30)
            if any(thread.is_alive() for thread in threads):
                self.target.findings.append("the load has not ended")

    def figures(self) -> dict[str, int]:
        """Return the counts of requests."""
        return {
            "rows": self.ledger.acknowledged,
            "upserts": self.accounts.changes,
            "updates": self.counters.changes + self.tally.acknowledged,
            "inserts": self.notes.inserted,
            "refreshes": self.numbers.number + self.tagged.number,
            "jobs": len(self.jobs.reading) + len(self.jobs.writing),
            "writing jobs that failed": self.jobs.failed,
            "reads": self.reads,
        }

    def check(self) -> list[str]:
        """Compare the results of each scheduler with the model; return all differences."""
        found = list(self.target.findings)
        for name, url in self.target.urls.items():
            with httpx.Client(base_url=url, timeout=180) as client:
                found += [f"{name}: {each}" for each in self._differences(client)]
        return found

    def _differences(self, client: httpx.Client) -> Iterator[str]:
        for work in self._works:
            try:
                yield from work.check(_asking(client))
            except (AssertionError, httpx.HTTPError) as exc:
                yield f"{type(work).__name__}: {type(exc).__name__}: {exc}"

    def _look(self, client: Client) -> None:
        client.chosen.choice(self._works).look(client)
        self.reads += 1

    def _repeat(self, step: Callable[[Client], None], number: int) -> None:
        with closing(Client(self.target, number)) as client:
            try:
                while not self.target.stopping.wait(0.05):
                    step(client)
            except Exception as exc:
                client.find(f"{step.__qualname__}: {type(exc).__name__}: {exc}")


def _asking(client: httpx.Client) -> Callable[[str], Any]:
    """Query one scheduler, or get a path, and retry until it responds."""

    def ask(wanted: str) -> Any:
        answers: list[httpx.Response] = []

        def look() -> bool:
            if wanted.startswith("/"):
                answers.append(client.get(wanted))
            else:
                answers.append(client.post("/v1/sql", content=wanted))
            return answers[-1].status_code == 200

        try:
            until(look, wanted, 300)
        except AssertionError as exc:
            raise AssertionError(f"{wanted}: {answers[-1].text[:300]}") from exc
        return answers[-1].json()

    return ask
