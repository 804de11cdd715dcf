"""The kinds of work of a load, each with a model of its sent and acknowledged changes.

A work runs one `step` at a time. Other threads call `look` concurrently, and must never read data
older than the acknowledged changes before. At the end, `check` compares everything.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import httpx
import pyarrow as pa
from pyarrow import parquet

from tests.kit.chaos.sending import Client, wait
from tests.kit.deadlines import until

Ask = Callable[[str], Any]
"""Runs a query on one scheduler, and returns its rows."""
JOB_ROWS = 100_000
JOB_ANSWER = [{"n": JOB_ROWS, "s": JOB_ROWS * (JOB_ROWS - 1) // 2}]
KEYS = 20
REFRESH_S = 600.0
"""The time limit of a requested refresh, through any fault."""
_TAG = 10**6


class Work(Protocol):
    def step(self, client: Client) -> None:
        """Change something, and record the acknowledged change."""

    def look(self, client: Client) -> None:
        """Read the data, and compare it with the changes that were acknowledged before."""

    def check(self, ask: Ask) -> Iterator[str]:
        """Compare everything with the model at the end; yield the differences."""


class Ledger:
    """Rows without a key, sent as change events by several threads; each must exist once."""

    def __init__(self) -> None:
        self.acknowledged = self.sent = 0
        self._lock = threading.Lock()

    def step(self, client: Client) -> None:
        count = client.chosen.randrange(1, 20)
        with self._lock:
            first, self.sent = self.sent, self.sent + count
        rows = [{"op": "c", "after": {"id": first + n, "v": 1}} for n in range(count)]
        client.with_key("/v1/datasets/ledger/cdc", rows, [*rows, rows[0]])
        with self._lock:
            self.acknowledged += count

    def look(self, client: Client) -> None:
        before = self.acknowledged
        rows = client.read("SELECT count(*) AS n, count(DISTINCT id) AS d FROM ledger")
        if rows and not before <= rows[0]["n"] == rows[0]["d"] <= self.sent:
            client.find(f"ledger {rows}, {before} acknowledged before, {self.sent} sent")

    def check(self, ask: Ask) -> Iterator[str]:
        row = ask("SELECT count(*) AS n, count(DISTINCT id) AS d FROM ledger")[0]
        if (row["n"], row["d"]) != (self.sent, self.sent) or self.sent != self.acknowledged:
            yield f"ledger {row}, {self.acknowledged} acknowledged of {self.sent}"


class Counters:
    """Rows with a key and a growing value; one thread changes each row."""

    def __init__(self, table: str, change: Callable[[Client, int, int], None]) -> None:
        """Set the function that changes the row of an id from one value to the next."""
        self._table = table
        self._change = change
        self.acknowledged = dict.fromkeys(range(KEYS), 0)
        self._sent = dict(self.acknowledged)

    @property
    def changes(self) -> int:
        return sum(self.acknowledged.values())

    def begin(self, client: Client) -> None:
        rows = [{"op": "c", "after": {"id": id_, "v": 0}} for id_ in self.acknowledged]
        client.until_done("POST", f"/v1/datasets/{self._table}/cdc", json=rows)

    def step(self, client: Client) -> None:
        id_ = client.chosen.randrange(KEYS)
        old = self.acknowledged[id_]
        self._sent[id_] = old + 1
        self._change(client, id_, old)
        self.acknowledged[id_] = old + 1

    def look(self, client: Client) -> None:
        before = dict(self.acknowledged)
        rows = client.read(f"SELECT id, v FROM {self._table}")
        if rows is None:
            return
        after = dict(self._sent)
        found = {row["id"]: row["v"] for row in rows}
        wrong = {
            id_: (found.get(id_), before[id_], after[id_])
            for id_ in before
            if not before[id_] <= found.get(id_, -1) <= after[id_]
        }
        if wrong or len(rows) != len(before):
            client.find(f"{self._table}, {len(rows)} rows: (read, acknowledged, sent) {wrong}")

    def check(self, ask: Ask) -> Iterator[str]:
        rows = ask(f"SELECT id, v FROM {self._table} ORDER BY id")
        expected = [{"id": id_, "v": v} for id_, v in self.acknowledged.items()]
        if rows != expected:
            yield f"{self._table}: {rows}, not {expected}"


def by_event(client: Client, id_: int, old: int) -> None:
    rows = [{"op": "u", "after": {"id": id_, "v": old + 1}}]
    other = [{"op": "u", "after": {"id": id_, "v": -1}}]
    client.with_key("/v1/datasets/accounts/cdc", rows, other)


def by_statement(client: Client, id_: int, old: int) -> None:
    # A late attempt finds the row changed already.
    client.change(f"UPDATE counters SET v = v + 1 WHERE id = {id_} AND v = {old}")


class Tally:
    """One row that several threads increment; no increment is lost or applied twice."""

    def __init__(self) -> None:
        self.acknowledged = self.maybe = 0
        self._lock = threading.Lock()

    def begin(self, client: Client) -> None:
        row = {"op": "c", "after": {"id": 0, "v": 0}}
        client.until_done("POST", "/v1/datasets/tally/cdc", json=[row])

    def step(self, client: Client) -> None:
        answer = client.once("POST", "/v1/sql", content="UPDATE tally SET v = v + 1 WHERE id = 0")
        with self._lock:
            if answer is not None and answer.is_success:
                self.acknowledged += answer.json()[0]["count"]
            else:
                self.maybe += 1

    def look(self, client: Client) -> None:
        before = self.acknowledged
        rows = client.read("SELECT v FROM tally")
        if rows is not None and (len(rows) != 1 or rows[0]["v"] < before):
            client.find(f"tally {rows}, {before} acknowledged before")

    def check(self, ask: Ask) -> Iterator[str]:
        rows = ask("SELECT v FROM tally")
        most = self.acknowledged + self.maybe
        if len(rows) != 1 or not self.acknowledged <= rows[0]["v"] <= most:
            yield f"tally {rows}, not from {self.acknowledged} to {most}"


class Notes:
    """Rows that statements insert and delete."""

    def __init__(self) -> None:
        self.inserted = 0
        self._present: set[int] = set()
        self._certain: list[int] = []
        """Rows that no late attempt can insert again."""

    def step(self, client: Client) -> None:
        id_, self.inserted = self.inserted, self.inserted + 1
        tries: list[bool] = []
        client.change(f"INSERT INTO notes VALUES ({id_}, {id_})", lambda at: _is_there(at, tries))
        self._present = self._present | {id_}
        if not tries:
            self._certain.append(id_)
        if len(self._certain) > 3:
            gone = self._certain.pop(client.chosen.randrange(3))
            self._present = self._present - {gone}
            client.change(f"DELETE FROM notes WHERE id = {gone}")

    def look(self, client: Client) -> None:
        before = self._present
        rows = client.read("SELECT id FROM notes")
        if rows is None:
            return
        found = [row["id"] for row in rows]
        # Rows deleted concurrently were removed from the model before.
        missing = (before & self._present) - set(found)
        if missing or len(set(found)) != len(found):
            client.find(f"notes: {len(found)} rows, without {missing}")

    def check(self, ask: Ask) -> Iterator[str]:
        found = [row["id"] for row in ask("SELECT id FROM notes ORDER BY id")]
        if found != sorted(self._present):
            yield f"notes {found}, not {sorted(self._present)}"


def _is_there(answer: httpx.Response, tries: list[bool]) -> bool:
    tries.append(True)
    return answer.status_code == 400 and "there would be two rows" in answer.text


class Refreshed:
    """A dataset that is refreshed from a file on request; each 201 must be carried out."""

    def __init__(self, folder: Path, table: str, is_tagged: bool, keeps_tags: bool) -> None:
        """Set whether `refresh_sql` is used as well, and survives the end of any process."""
        self._folder = folder
        self._table = table
        self._is_tagged = is_tagged
        self._keeps_tags = keeps_tags
        self.number = 0
        self._tag = 0
        self._seen = 0
        (folder / table).mkdir()
        self._write(0)

    def step(self, client: Client) -> None:
        path = f"/v1/datasets/{self._table}/acceleration"
        if self._is_tagged:
            self._tag += 1
            sql = f"SELECT v + {self._tag * _TAG} AS v FROM {self._table}"
            client.until_done("PATCH", path, json={"refresh_sql": sql})
        self.number += 1
        self._write(self.number)
        client.until_done("POST", f"{path}/refresh", json={})
        try:
            until(lambda: self._is_loaded(client), f"{self._table} is loaded", REFRESH_S)
        except AssertionError:
            client.find(f"{self._table}: {self._tag}/{self.number} not loaded, 201: {self._seen}")

    def look(self, client: Client) -> None:
        self._read(client)

    def check(self, ask: Ask) -> Iterator[str]:
        rows = ask(f"SELECT v FROM {self._table}")
        if len(rows) != 1 or rows[0]["v"] not in self._expected():
            yield f"{self._table} {rows}, not {self._expected()}"

    def _is_loaded(self, client: Client) -> bool:
        wait(0.1)
        return self._read(client) in self._expected()

    def _read(self, client: Client) -> int | None:
        """Read the value; it must never be older than one that another reader has seen."""
        before = self._seen
        rows = client.read(f"SELECT v FROM {self._table}")
        if rows is None:
            return None
        if len(rows) != 1 or rows[0]["v"] % _TAG < before:
            client.find(f"{self._table} {rows}, {before} was read before")
            return None
        value = int(rows[0]["v"])
        self._seen = max(self._seen, value % _TAG)
        return value

    def _expected(self) -> tuple[int, ...]:
        wanted = self._tag * _TAG + self.number
        return (wanted,) if self._keeps_tags else (wanted, self.number)

    def _write(self, number: int) -> None:
        """Write a number to the source atomically."""
        draft = self._folder / f"draft-{self._table}"
        parquet.write_table(pa.table({"v": [number]}), draft)
        draft.rename(self._folder / self._table / "0.parquet")


class Jobs:
    """Asynchronous queries; each gets a result, and each write is applied at most once."""

    def __init__(self, folder: Path) -> None:
        (folder / "facts").mkdir()
        table = pa.table({"v": list(range(JOB_ROWS))})
        parquet.write_table(table, folder / "facts" / "0.parquet")
        self.reading: list[str] = []
        self.writing: dict[str, int] = {}
        self.failed = 0

    def step(self, client: Client) -> None:
        if client.chosen.random() < 0.5:
            body = {"sql": "SELECT count(*) AS n, sum(v) AS s FROM facts"}
            self.reading.append(self._submit(client, body))
        else:
            number = len(self.writing)
            body = {"sql": f"INSERT INTO posted VALUES ({number}, 1)"}
            self.writing[self._submit(client, body)] = number
        wait(0.3)

    def look(self, client: Client) -> None:
        """Do nothing; `check` looks at jobs after they end."""

    def check(self, ask: Ask) -> Iterator[str]:
        # After the load, queued jobs still run. So rows are read when every job is over.
        statuses = {job: _over(ask, job) for job in (*self.reading, *self.writing)}
        rows = ask("SELECT id, count(*) AS n FROM posted GROUP BY id")
        counts: Mapping[int, int] = {row["id"]: row["n"] for row in rows}
        failed = 0
        # `ask` can also get a path such as that of a query.
        for job in self.reading:
            status = statuses[job]
            found = ask(f"/v1/queries/{job}/results") if status["status"] == "SUCCEEDED" else {}
            if found.get("data_array") != JOB_ANSWER:
                yield f"job {job}: {status} {found}"
        for job, number in self.writing.items():
            status = statuses[job]
            least = 1 if status["status"] == "SUCCEEDED" else 0
            if status["status"] not in ("SUCCEEDED", "FAILED"):
                yield f"job {job}: {status}"
            if not least <= counts.get(number, 0) <= 1:
                yield f"job {job}: {status}, {counts.get(number, 0)} rows"
            failed += 1 - least
        self.failed = failed

    def _submit(self, client: Client, body: Mapping[str, str]) -> str:
        answer = client.with_key("/v1/queries", body, {"sql": "SELECT 1"})
        return str(answer.json()["query_id"])


def _over(ask: Ask, job: str) -> Mapping[str, Any]:
    """Return the final status of a job, or its last status after five minutes."""
    status: Mapping[str, Any] = {}
    for _ in range(5):
        status = ask(f"/v1/queries/{job}/status?wait=60")
        if status["status"] not in ("PENDING", "RUNNING"):
            break
    return status
