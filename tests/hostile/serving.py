"""Starts the real processes that receive hostile statements over every protocol."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pyarrow as pa
from pyarrow import flight, parquet

from tests.hostile import statements
from tests.hostile.watching import MEASURES, Seen, watched
from tests.kit.deadlines import until
from tests.kit.processes import Child, child
from tests.kit.ray_cluster import RayCluster, ray_cluster

ROWS = 1_000
EXECUTORS = 2
MANIFEST = """\
version: v1
kind: Caraway
name: hostile
runtime:
  scheduler: {{state_location: results}}
  caching: {{sql_results: {{enabled: false}}}}
  query:
    memory_limit: 1GiB
    timeout: 10s
    distribution: {{small_table_size: 1KiB, broadcast_size: 1KiB, gather_size: 1KiB}}
datasets:
  - from: file:t.parquet
    name: t
    columns: [{{name: name, full_text_search: {{enabled: true, row_id: id}}}}]
  - from: cdc:orders
    name: orders
    columns: [{{name: id, type: bigint}}, {{name: v, type: text}}]
    acceleration: {{enabled: true, primary_key: id}}
  - from: memory:uploaded
    name: uploaded
    access: read_write
    columns: [{{name: v, type: bigint}}]
views:
{views}
"""
_OF_THE_ENGINE = re.compile(
    r"datafusion|arrow error|external error|panick|traceback|\.rs\b|resources exhausted|caused by"
    r"|tonic|tokio|ray\.|RecursionLimit",
    re.IGNORECASE,
)
WITHIN_S = 40.0 if MEASURES else 240.0
Send = Callable[[str, dict[str, str]], "Answer"]
"""Sends a statement to addresses, and waits for the end of its answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a client; `status` 0 means that the connection was lost."""

    status: int
    text: str

    def problems(self) -> list[str]:
        if self.status == 200:
            return []
        if self.status == 0:
            return [f"no answer: {self.text}"]
        found = []
        if not 400 <= self.status < 600:
            found.append(f"status {self.status}")
        if len(self.text) < 20 or " " not in self.text:
            found.append(f"{self.status} without a sentence: {self.text!r}")
        if words := _OF_THE_ENGINE.search(self.text):
            found.append(f"{self.status} with words of the engine: {words[0]!r} in {self.text!r}")
        return found


def judged(
    name: str,
    send: Send,
    addresses: dict[str, str],
    roots: Sequence[int],
    serving: int,
    executors: int = 0,
) -> tuple[list[str], Answer, Seen]:
    """Send a statement of the table.

    Returns the violations, the answer, and the observations.
    """
    sql = statements.STATEMENTS[name]
    answers: list[Answer] = []
    url = f"http://{addresses['http']}"
    seen = watched(roots, url, lambda: answers.append(send(sql, addresses)), executors)
    problems = [
        *answers[0].problems(),
        *seen.problems(others_wait=name in statements.DELAYING, executors=executors),
    ]
    if not Path(f"/proc/{serving}").exists():
        problems.insert(0, "the serving process has ended")
    return problems, answers[0], seen


@dataclass(slots=True)
class Served:
    """A serving process, which is restarted for the next statement if one has ended it."""

    folder: Path
    views: str = ""
    _stack: ExitStack = field(default_factory=ExitStack)
    _child: Child | None = None
    _starts: int = 0

    def up(self) -> Child:
        """Return the process, once it runs and answers."""
        if self._child is None or self._child.process.poll() is not None:
            self.close()
            self._starts += 1
            folder = self.folder / str(self._starts)
            folder.mkdir()
            self._child = self._stack.enter_context(child(folder, write(folder, self.views)))
        api = self._child.api
        until(lambda: api.post("/v1/sql", content="SELECT 1").status_code == 200, "it answers")
        return self._child

    def close(self) -> None:
        stack, self._stack, self._child = self._stack, ExitStack(), None
        stack.close()

    def judge(self, name: str, send: Send) -> tuple[list[str], Answer, Seen]:
        """Send a statement of the table; returns the same as `judged`."""
        running = self.up()
        pid = running.process.pid
        found = judged(name, send, running.addresses, [pid], pid)
        if (code := running.process.poll()) is not None:
            found[0].insert(0, f"the process ended with {code}")
        return found


@dataclass(slots=True)
class Clustered:
    """A scheduler and two executors."""

    cluster: RayCluster
    addresses: dict[str, str]

    def judge(self, name: str, send: Send) -> tuple[list[str], Answer, Seen]:
        """Send a statement once all executors are present; returns the same as `judged`."""
        url = f"http://{self.addresses['http']}/v1/ready?min_ready_executors={EXECUTORS}"
        until(lambda: httpx.get(url, timeout=60).status_code == 200, "all executors are ready", 300)
        roots = [each.popen.pid for each in self.cluster.processes]
        serving = self.cluster.schedulers["s1"].popen.pid
        return judged(name, send, self.addresses, roots, serving, EXECUTORS)


def write(folder: Path, views: str = "") -> Path:
    """Write the manifest and its data."""
    rows = pa.table(
        {
            "id": range(ROWS),
            "one": pa.array([1] * ROWS, pa.int64()),
            "name": [f"name {number:04}" for number in range(ROWS)],
        }
    )
    parquet.write_table(rows, folder / "t.parquet")
    path = folder / "caraway.yaml"
    path.write_text(MANIFEST.format(views=views or "  []"))
    return path


@contextmanager
def standalone(folder: Path, views: str = "") -> Iterator[Served]:
    made = Served(folder, views)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def cluster(folder: Path) -> Iterator[Clustered]:
    with ray_cluster(folder, executors=EXECUTORS, memory="512MiB") as made:
        process = made.begin_scheduler("s1", write(folder)).wait_up()
        yield Clustered(made, process.facts)


def by_http(sql: str, addresses: dict[str, str]) -> Answer:
    url = f"http://{addresses['http']}/v1/sql"
    size = 0
    try:
        with httpx.stream("POST", url, content=sql.encode(), timeout=WITHIN_S) as got:
            if got.status_code != 200:
                return Answer(got.status_code, got.read().decode())
            for part in got.iter_bytes():
                size += len(part)
    except httpx.RemoteProtocolError as exc:
        # The answer has started, so only an aborted connection can signal the error.
        return Answer(200 if size else 0, repr(exc))
    except httpx.HTTPError as exc:
        return Answer(0, repr(exc))
    return Answer(200, f"{size} bytes")


def by_job(sql: str, addresses: dict[str, str]) -> Answer:
    url = f"http://{addresses['http']}/v1/queries"
    try:
        got = httpx.post(url, json={"sql": sql, "timeout_seconds": 10}, timeout=WITHIN_S)
        if got.status_code >= 400:
            return Answer(got.status_code, got.text)
        made = got.json()["query_id"]

        def over() -> dict[str, object]:
            told: dict[str, object] = httpx.get(f"{url}/{made}", timeout=WITHIN_S).json()
            return told if told["status"] not in ("PENDING", "RUNNING") else {}

        told = until(over, "the job is over", WITHIN_S)
    except (httpx.HTTPError, AssertionError) as exc:
        return Answer(0, repr(exc)[:300])
    return Answer(200 if told["status"] == "SUCCEEDED" else 500, str(told.get("error") or told))


def by_flight(sql: str, addresses: dict[str, str]) -> Answer:
    try:
        with flight.connect(f"grpc+tcp://{addresses['flight']}") as client:
            options = flight.FlightCallOptions(timeout=WITHIN_S)
            reader = client.do_get(flight.Ticket(sql.encode()), options)
            rows = sum(chunk.data.num_rows for chunk in reader)
    except flight.FlightUnavailableError as exc:
        return Answer(0 if "Socket closed" in str(exc) else 503, str(exc))
    except (flight.FlightError, pa.ArrowException) as exc:
        return Answer(500, str(exc))
    return Answer(200, f"{rows} rows")
