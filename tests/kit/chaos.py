"""A load of writes and reads on several schedulers, and the model of what they acknowledged.

Whoever writes sends again what was not answered, under the same key, as clients do. So the model
knows what must be there, and what may be: what is under way.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
from pyarrow import parquet

from tests.kit.deadlines import until

LENGTH_S = float(os.environ.get("CARAWAY_CHAOS_S", "40"))
"""How long faults go on."""
SEED = int(os.environ.get("CARAWAY_CHAOS_SEED", "1"))
PATIENCE_S = 180.0
"""How long a write is sent again: also after the last fault."""
ACCOUNTS = 50
_REFUSALS = (400, 403, 409, 413, 415, 422)
"""Answers that tell a client to give up; none of them is right here."""
COLUMNS = "[{name: id, type: bigint}, {name: v, type: bigint}]"
MANIFEST = f"""\
version: v1
kind: Caraway
name: chaos
runtime:
  scheduler: {{state_location: results}}
  caching: {{sql_results: {{enabled: false}}}}
datasets:
  - {{from: 'file:facts/', name: facts, params: {{file_format: parquet}}}}
  - from: 'file:numbers/'
    name: numbers
    params: {{file_format: parquet}}
    acceleration: {{enabled: true}}
  - from: cdc:ledger
    name: ledger
    columns: {COLUMNS}
    acceleration: {{enabled: true}}
  - from: cdc:accounts
    name: accounts
    columns: {COLUMNS}
    acceleration: {{enabled: true, primary_key: id}}
"""
JOB = "SELECT count(*) AS n, sum(v) AS s FROM facts"
JOB_ROWS = 100_000
JOB_ANSWER = [{"n": JOB_ROWS, "s": JOB_ROWS * (JOB_ROWS - 1) // 2}]
LEDGER = "SELECT count(*) AS n, count(DISTINCT id) AS d FROM ledger"


def wait(seconds: float) -> None:
    """Let time pass: faults come at times, not at events."""
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() >= end, "the time has passed", seconds + 60)


def write_sources(folder: Path) -> None:
    for name in ("facts", "numbers"):
        (folder / name).mkdir()
    parquet.write_table(pa.table({"v": list(range(JOB_ROWS))}), folder / "facts" / "0.parquet")
    write_number(folder, 0)


def write_number(folder: Path, number: int) -> None:
    """Have the source of `numbers` hold a number, all at once."""
    draft = folder / "draft"
    parquet.write_table(pa.table({"v": [number]}), draft)
    draft.rename(folder / "numbers" / "0.parquet")


@dataclass(slots=True)
class Counted:
    """What was sent and what was acknowledged of it."""

    sent: int = 0
    acknowledged: int = 0


@dataclass
class Chaos:
    """The load, while processes die and pause. `urls` are those of the schedulers as they are."""

    folder: Path
    urls: dict[str, str]
    seed: int
    ledger: Counted = field(default_factory=Counted)
    accounts: dict[int, int] = field(default_factory=dict)
    jobs: list[str] = field(default_factory=list)
    number: int = 0
    reads: int = 0
    refused: int = 0
    """Answers after which something was sent again."""
    findings: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Send and read until the block ends, and then until all that was begun is answered."""
        works = (self._append, self._append, self._upsert, self._refresh, self._submit,
                 self._configure, self._read, self._read)  # fmt: skip
        threads = [
            threading.Thread(target=self._repeat, args=(work, number), daemon=True)
            for number, work in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join(PATIENCE_S + 30)

    def told(self) -> dict[str, int]:
        """Say how much there was."""
        return {
            "rows": self.ledger.acknowledged,
            "refreshes": self.number,
            "jobs": len(self.jobs),
            "reads": self.reads,
            "again": self.refused,
        }

    def _repeat(self, work: Callable[[random.Random], None], number: int) -> None:
        chosen = random.Random(self.seed * 100 + number)
        while not self._stopping.is_set():
            try:
                work(chosen)
            except Exception as exc:
                self.findings.append(f"{work.__name__}: {type(exc).__name__}: {exc}")
                return
            self._stopping.wait(0.05)

    def _append(self, chosen: random.Random) -> None:
        """Append rows without a key: each must be there once."""
        count = chosen.randrange(1, 20)
        with self._lock:
            first, self.ledger.sent = self.ledger.sent, self.ledger.sent + count
        rows = [{"op": "c", "after": {"id": first + n, "v": 1}} for n in range(count)]
        self._persistently(chosen, "POST", "/v1/datasets/ledger/cdc", json=rows)
        with self._lock:
            self.ledger.acknowledged += count

    def _upsert(self, chosen: random.Random) -> None:
        """Change accounts; only this thread does, so each holds its last value."""
        new = {chosen.randrange(ACCOUNTS): chosen.randrange(10**6) for _ in range(5)}
        rows = [{"op": "u", "after": {"id": id_, "v": v}} for id_, v in new.items()]
        self._persistently(chosen, "POST", "/v1/datasets/accounts/cdc", json=rows)
        self.accounts |= new

    def _refresh(self, chosen: random.Random) -> None:
        """Change the source, then ask for a refresh, which must be done."""
        number = self.number + 1
        write_number(self.folder, number)
        path = "/v1/datasets/numbers/acceleration/refresh"
        self._persistently(chosen, "POST", path, json={})
        self.number = number
        self._stopping.wait(0.5)

    def _configure(self, chosen: random.Random) -> None:
        """Change what is loaded; all rows are, whichever it is."""
        sql = chosen.choice([None, "SELECT * FROM numbers WHERE v >= 0"])
        path = "/v1/datasets/numbers/acceleration"
        self._persistently(chosen, "PATCH", path, json={"refresh_sql": sql})
        self._stopping.wait(2)

    def _submit(self, chosen: random.Random) -> None:
        got = self._persistently(chosen, "POST", "/v1/queries", json={"sql": JOB})
        self.jobs.append(str(got.json()["query_id"]))
        self._stopping.wait(0.3)

    def _read(self, chosen: random.Random) -> None:
        """Read on any scheduler: never less than what was acknowledged before."""
        with self._lock:
            before = self.ledger.acknowledged
        got = self._once(chosen, "POST", "/v1/sql", content=LEDGER)
        if got is None or got.status_code != 200:
            self.refused += 1
            return
        (row,) = got.json()
        with self._lock:
            after = self.ledger.sent
        self.reads += 1
        if not before <= row["n"] <= after or row["n"] != row["d"]:
            self.findings.append(f"read {row}, {before} acknowledged before, {after} sent")

    def _persistently(
        self, chosen: random.Random, method: str, path: str, **request: Any
    ) -> httpx.Response:
        """Send until it is acknowledged, to any scheduler, under one key."""
        headers = {"idempotency-key": f"{self.seed}-{chosen.getrandbits(64):x}"}
        deadline = time.monotonic() + PATIENCE_S
        last = ""
        while time.monotonic() < deadline:
            got = self._once(chosen, method, path, headers=headers, **request)
            if got is not None and got.is_success:
                return got
            last = f"{got.status_code} {got.text}" if got is not None else last
            assert got is None or got.status_code not in _REFUSALS, f"{path}: {last}"
            self.refused += 1
            # Also after the end: what was begun is to be acknowledged.
            threading.Event().wait(0.1)
        raise AssertionError(f"{path} was not acknowledged within {PATIENCE_S} s: {last}")

    def _once(
        self, chosen: random.Random, method: str, path: str, **request: Any
    ) -> httpx.Response | None:
        url = chosen.choice(list(self.urls.values()))
        try:
            return httpx.request(method, url + path, timeout=15, **request)
        except httpx.TransportError:
            return None

    def check(self) -> list[str]:
        """Compare what each scheduler answers with the model; return the differences."""
        for url in self.urls.values():
            self._compare(url, LEDGER, [{"n": self.ledger.sent, "d": self.ledger.sent}])
            accounts = [{"id": id_, "v": v} for id_, v in sorted(self.accounts.items())]
            self._compare(url, "SELECT id, v FROM accounts ORDER BY id", accounts)
            self._compare(url, "SELECT v FROM numbers", [{"v": self.number}])
            for job in self.jobs:
                self._check_job(url, job)
        return self.findings

    def _compare(self, url: str, sql: str, expected: Any) -> None:
        last: Any = None

        def look() -> bool:
            nonlocal last
            got = httpx.post(f"{url}/v1/sql", content=sql, timeout=60)
            last = got.json() if got.status_code == 200 else got.text
            return bool(last == expected)

        try:
            # A refresh that was asked for last may be under way.
            until(look, sql, 60)
        except AssertionError:
            self.findings.append(f"{url}: {sql}: {str(last)[:500]}, not {str(expected)[:500]}")

    def _check_job(self, url: str, job: str) -> None:
        status = httpx.get(f"{url}/v1/queries/{job}/status?wait=60", timeout=90).json()
        if status.get("status") != "SUCCEEDED":
            self.findings.append(f"{url}: job {job}: {status}")
            return
        rows = httpx.get(f"{url}/v1/queries/{job}/results", timeout=60).json()["data_array"]
        if rows != JOB_ANSWER:
            self.findings.append(f"{url}: job {job} answered {rows}")
