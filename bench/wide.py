"""`SELECT *` over thousands of columns, against plain DataFusion, by processor time.

The engine takes the square of the number of columns to plan it. So the question is what is added.
"""

import statistics
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionConfig, SessionContext

from bench import quotas, servers
from bench.report import Figure, Section
from bench.settings import Settings

_COLUMNS = (2_000, 5_000, 10_000)
_ROWS = 10
_TURNS = 3
_GOAL = 1.25
_SQL = "SELECT * FROM wide"


def measure(_settings: Settings) -> Section:
    """Run the statement in turns at each width."""
    return Section("wide", [_compared(columns) for columns in _COLUMNS], "")


def _compared(columns: int) -> Figure:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "wide.parquet"
        pq.write_table(pa.table({f"c{n}": pa.array(range(_ROWS)) for n in range(columns)}), file)
        context = SessionContext(SessionConfig().with_target_partitions(2))
        context.register_parquet("wide", str(file))
        with servers.caraway(_manifest(file)) as (url, process):
            ours = _Timed(lambda sql: _fetch(url, sql), lambda: quotas.used_s(process.pid))
            theirs = _Timed(lambda sql: context.sql(sql).collect(), time.process_time)
            ratios = [ours.run(turn) / theirs.run(turn) for turn in range(_TURNS)]
    ratio = statistics.median(ratios)
    return Figure(
        f"`SELECT *` over {columns:,} columns, Arrow over HTTP, processor time; plain DataFusion",
        f"{min(ours.seconds):.2f} s", f"{min(theirs.seconds):.2f} s", ratio, f"≤ {_GOAL}",
        ratio <= _GOAL,
    )  # fmt: skip


class _Timed:
    """Runs the statement, each time as another text, and notes its processor time."""

    def __init__(self, fetch: Callable[[str], object], used_s: Callable[[], float]) -> None:
        self._fetch = fetch
        self._used_s = used_s
        self.seconds: list[float] = []

    def run(self, turn: int) -> float:
        before = self._used_s()
        self._fetch(_SQL + " " * turn)
        self.seconds.append(self._used_s() - before)
        return self.seconds[-1]


def _fetch(url: str, sql: str) -> bytes:
    headers = {
        "Content-Type": "text/plain",
        "Accept": "application/vnd.apache.arrow.stream",
        "Cache-Control": "no-cache",
    }
    request = urllib.request.Request(f"{url}/v1/sql", sql.encode(), headers)
    with urllib.request.urlopen(request) as answer:
        body: bytes = answer.read()
    return body


def _manifest(file: Path) -> Path:
    path = file.with_name("caraway.yaml")
    path.write_text(
        "version: v1\nkind: Caraway\nname: wide\n"
        "runtime: {query: {timeout: 30m, planning_timeout: 10m}}\n"
        f"datasets:\n  - from: file:{file}\n    name: wide\n"
    )
    return path
