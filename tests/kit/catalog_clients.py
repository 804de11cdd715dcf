"""Tables that clients of the table catalog read in tests, and the rows that each client finds.

The clients run in an environment of their own; `make test-clients` installs them.
"""

import io
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from tests.kit.deadlines import until

ENVIRONMENTS = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients"))
SPARK_JARS = ENVIRONMENTS.absolute() / "spark"
KEY = "reader"
MANIFEST = f"""
version: v1
kind: Caraway
name: iceberg
runtime: {{auth: {{api-key: {{keys: ['{KEY}:ro']}}}}}}
datasets:
  - {{from: 'file:trips/', name: trips}}
  - {{from: 'file:kinds/', name: kinds}}
  - {{from: 'file:common.parquet', name: common}}
  - {{from: 'file:people.csv', name: people}}
  - {{from: 'file:moves/', name: moves}}
  - {{from: 'file:every.parquet', name: every, acceleration: {{enabled: true}}}}
  - {{from: 'file:moments.parquet', name: moments}}
  - {{from: 'file:kinds/', name: quick, acceleration: {{enabled: true,
     refresh_sql: 'SELECT l AS id, s, p, p9, p15, day, at FROM quick'}}}}
views:
  - {{name: dear, sql: 'SELECT city, count(*) AS n FROM trips WHERE fare > 2 GROUP BY city'}}
"""
NAMES = ("common", "every", "kinds", "moments", "moves", "people", "quick", "trips")
PLANNED = ("people", "moments", "dear")
"""Tables whose rows are in no files, and that clients read only if the server plans."""
FILTERS: Mapping[str, Sequence[str]] = {
    "trips": ("city = 'Bern' and fare > 2", "fare is null"),
    "kinds": ("l >= 10 and l < 20", "p < -1.00", "day = '2024-01-05'", "s = 'name 7'"),
    "common": ("i > 35 or b = true", "zoned is null"),
    "every": ("c3 = 1", "c8 > 5", "c12 < 0", "c24 is not null"),
    "quick": ("id in (3, 5, 7)", "p9 > 3.00", "p15 <= -2.5000"),
    "moves": ("a = 1",),
    "people": ("name = 'Ann'",),
    "moments": ("a = 2",),
    "dear": ("n > 1",),
}


# Any: parts of a manifest.
def manifest(runtime: Mapping[str, Any] | None = None, *datasets: Mapping[str, Any]) -> str:
    """Return the manifest of the tables, with further settings and datasets."""
    document = yaml.safe_load(MANIFEST)
    document["runtime"].update(runtime or {})
    document["datasets"].extend(datasets)
    return yaml.safe_dump(document, sort_keys=False)


def write(folder: Path) -> None:
    """Write the files of the tables."""
    for city, fares in (("Bern", [1.0, 5.0, 9.0]), ("New%20York", [3.0, None])):
        target = folder / "trips" / f"city={city}"
        target.mkdir(parents=True)
        pq.write_table(pa.table({"fare": pa.array(fares, pa.float64())}), target / "part.parquet")
    (folder / "people.csv").write_text("id,name\n1,Ann\n2,Bob\n")
    pq.write_table(every_type(), folder / "every.parquet")
    (folder / "moves").mkdir()
    pq.write_table(pa.table({"a": [1]}), folder / "moves" / "one.parquet")
    nanos = pa.table({"a": [1, 2], "at": pa.array([1000, 2000], pa.timestamp("ns"))})
    pq.write_table(nanos, folder / "moments.parquet")
    (folder / "kinds").mkdir()
    numbers = range(40)
    start = datetime(2024, 1, 1)
    kinds = pa.table({
        "l": pa.array(numbers, pa.int64()),
        "i": pa.array(numbers, pa.int16()),
        "f": pa.array([each / 4 for each in numbers], pa.float32()),
        "b": [each % 2 == 0 for each in numbers],
        "s": [f"name {each}" if each % 5 else None for each in numbers],
        "p": pa.array([Decimal(each - 20) / 4 for each in numbers], pa.decimal128(30, 2)),
        "p9": pa.array([Decimal(each - 20) for each in numbers], pa.decimal128(9, 2)),
        "p15": pa.array([Decimal(20 - each) for each in numbers], pa.decimal128(15, 4)),
        "day": [date(2024, 1, 1) + timedelta(each) for each in numbers],
        "at": pa.array([start + timedelta(hours=each) for each in numbers], pa.timestamp("us")),
        "zoned": pa.array([start] * 40, pa.timestamp("us", "UTC")),
        "hour": pa.array([time(each % 24) for each in numbers], pa.time64("us")),
        "raw": [bytes([each]) for each in numbers],
        "list": [[each, None] for each in numbers],
        "inner": [{"x": each, "y": str(each)} for each in numbers],
        "map": pa.array([[("k", each)] for each in numbers], pa.map_(pa.string(), pa.int64())),
    })  # fmt: skip
    pq.write_table(kinds.slice(0, 25), folder / "kinds" / "a.parquet", row_group_size=10)
    pq.write_table(kinds.slice(25), folder / "kinds" / "b.parquet")
    # Spark and its clients know no time of day.
    pq.write_table(kinds.drop_columns("hour"), folder / "common.parquet")


def every_type() -> pa.Table:
    """Return a column of each type that the documentation lists."""
    moment = datetime(2024, 5, 6, 7, 8, 9)
    text, number = ["a", None], [1, None]
    columns: list[tuple[pa.DataType, list[Any]]] = [
        (pa.bool_(), [True, None]),
        *((each, number) for each in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        (pa.uint8(), [2**8 - 1, None]), (pa.uint16(), [2**16 - 1, None]),
        (pa.uint32(), [2**32 - 1, None]), (pa.uint64(), [2**64 - 1, None]),
        *((each, [1.5, None]) for each in (pa.float32(), pa.float64())),
        (pa.float16(), [np.float16(1.5), None]),
        (pa.decimal128(38, 5), [Decimal("-1.50000"), None]),
        (pa.decimal256(20, 2), [Decimal("1.50"), None]),
        *((each, text) for each in (pa.string(), pa.large_string(), pa.string_view())),
        (pa.dictionary(pa.int8(), pa.string()), text),
        *((each, [b"a", None]) for each in (pa.binary(), pa.large_binary(), pa.binary(1))),
        (pa.date32(), [moment.date(), None]),
        *((pa.timestamp(unit), [moment, None]) for unit in ("s", "ms", "us", "ns")),
        *((pa.timestamp("us", zone), [moment, None]) for zone in ("UTC", "Europe/Berlin")),
        *((each, [moment.time(), None]) for each in
          (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))),
        (pa.list_(pa.uint16()), [[1, None], None]), (pa.large_list(pa.int8()), [[1], []]),
        (pa.list_(pa.float32(), 2), [[1.5, None], None]),
        (pa.struct([("x", pa.uint32()), ("y", pa.time32("ms"))]),
         [{"x": 1, "y": moment.time()}, None]),
        (pa.map_(pa.string(), pa.uint32()), [[("k", 1)], None]),
    ]  # fmt: skip
    return pa.table({f"c{n}": pa.array(values, type_) for n, (type_, values) in enumerate(columns)})


def moved(url: str, folder: Path) -> int:
    """Add a file to `moves`, and return the snapshot without it."""

    def snapshots() -> list[int]:
        path = f"{url}/v1/caraway/namespaces/public/tables/moves"
        answer = httpx.get(path, headers={"x-api-key": KEY}, timeout=60).json()
        return [each["snapshot-id"] for each in answer["metadata"]["snapshots"]]

    first = snapshots()
    pq.write_table(pa.table({"b": ["x"], "a": [2]}), folder / "moves" / "two.parquet")
    until(lambda: len(snapshots()) == 2, "the file is in a new snapshot")
    return first[0]


def sql(url: str, statement: str) -> pa.Table:
    """Return the rows of a statement by `/v1/sql`."""
    headers = {"x-api-key": KEY, "content-type": "text/plain",
               "accept": "application/vnd.apache.arrow.stream"}  # fmt: skip
    answer = httpx.post(f"{url}/v1/sql", content=statement, headers=headers, timeout=100)
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()


def rows(table: pa.Table) -> list[list[str]]:
    """Return rows as text, sorted."""
    return sorted([str(_in_utc(value)) for value in row.values()] for row in table.to_pylist())


def _in_utc(value: Any) -> Any:
    is_zoned = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC) if is_zoned else value


@dataclass(frozen=True, slots=True)
class Found:
    """The findings of clients, by client and question; for rows, also the result of SQL."""

    said: Mapping[tuple[str, str], Any]
    by_sql: Mapping[tuple[str, str], Any] = field(default_factory=dict)

    def check_rows(self, *clients: str, unread: Mapping[str, str] | None = None) -> None:
        """Check that each client found the rows of SQL, in each table that it read.

        `unread` has tables that they do not read, with words of the error.
        """
        unread = unread or {}
        differing = {
            (client, what): (self.said[client, what], ours)
            for (client, what), ours in self.by_sql.items()
            if self.said[client, what] != ours
            and unread.get(table_of(what), "\0") not in str(self.said[client, what])
        }
        assert differing == {}
        assert {client for client, _ in self.by_sql} == set(clients)
        assert all(ours != [] for ours in self.by_sql.values())
        for client in clients:
            assert {each for each in unread if unread[each] not in self.said[client, each]} == set()


def table_of(what: str) -> str:
    """Return the table of a question, `TABLE` or `TABLE where CONDITION`."""
    return what.partition(" where ")[0]


def read_by(
    program: str, url: str, clients: Sequence[str], s3: Mapping[str, str] | None = None,
    large: Mapping[str, Sequence[str]] | None = None, environment: str = "iceberg",
    earlier: int | None = None, without: Sequence[str] = (),
) -> Found:  # fmt: skip
    """Have clients read the tables, and count rows of `large` ones, by conditions.

    `s3` has the endpoint, key, secret and region of the bucket that has the metadata, and
    `earlier` is a snapshot of `moves` that is not the current one. Tables in `without` are left
    out.
    """
    known = {name: each for name, each in FILTERS.items() if name not in without}
    filters = {**known, **(large or {})}
    wanted = {"url": url, "key": KEY, "clients": clients, "s3": s3, "filters": filters,
              "planned": PLANNED, "large": list(large or ()), "jars": str(SPARK_JARS),
              "earlier": earlier}  # fmt: skip
    lines = run(program, wanted, environment)
    said = {(line["client"], line["what"]): line["found"] for line in lines}
    asked = {key: _by_sql(url, key[1]) for key in said if table_of(key[1]) in filters}
    return Found(said, asked)


# Any: JSON.
def run(program: str, wanted: Mapping[str, Any], environment: str = "iceberg") -> list[Any]:
    """Run a program of `tests/e2e` in an environment of clients; return its lines of JSON."""
    python = ENVIRONMENTS / environment / "bin/python"
    if not python.exists():
        pytest.skip(f"NOT TESTED: no environment '{environment}'; run `make test-clients`")
    ran = subprocess.run(
        [python.absolute(), Path(__file__).parents[1] / "e2e" / program, json.dumps(wanted)],
        capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def _by_sql(url: str, what: str) -> Any:
    table, _, condition = what.partition(" where ")
    if condition:
        return sql(url, f"SELECT 1 AS n FROM {table} WHERE {condition}").num_rows
    return rows(sql(url, f"SELECT * FROM {table}"))
