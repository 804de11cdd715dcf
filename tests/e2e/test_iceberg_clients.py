"""PyIceberg and DuckDB against a real runtime; `make test-clients` installs them."""

import io
import json
import os
import subprocess
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.deadlines import until
from tests.kit.processes import Child, child

pytestmark = pytest.mark.full
PYTHON = Path(os.environ.get("CARAWAY_CLIENTS", ".venv/clients")) / "iceberg/bin/python"
PROGRAM = Path(__file__).parent / "iceberg_client.py"
MANIFEST = """
version: v1
kind: Caraway
name: iceberg
runtime: {auth: {api-key: {keys: ['reader:ro']}}}
datasets:
  - {from: 'file:trips/', name: trips}
  - {from: 'file:kinds/', name: kinds}
  - {from: 'file:people.csv', name: people}
  - {from: 'file:moves/', name: moves}
  - {from: 'file:every.parquet', name: every, acceleration: {enabled: true}}
  - {from: 'file:moments.parquet', name: moments}
  - {from: 'file:kinds/', name: quick, acceleration: {enabled: true,
     refresh_sql: 'SELECT l AS id, s, p, day, at FROM quick'}}
views:
  - {name: dear, sql: 'SELECT city, count(*) AS n FROM trips WHERE fare > 2 GROUP BY city'}
"""


def write(folder: Path) -> None:
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


def sql(server: Child, statement: str) -> pa.Table:
    headers = {"x-api-key": "reader", "content-type": "text/plain",
               "accept": "application/vnd.apache.arrow.stream"}  # fmt: skip
    answer = server.api.post("/v1/sql", content=statement, headers=headers)
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_stream(io.BytesIO(answer.content)).read_all()


def rows(table: pa.Table) -> list[list[str]]:
    return sorted([str(_in_utc(value)) for value in row.values()] for row in table.to_pylist())


def _in_utc(value: Any) -> Any:
    is_zoned = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC) if is_zoned else value


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], tuple[Any, Any]]:
    """What each client found, and what SQL says where it is rows or a count of them."""
    if not PYTHON.exists():
        pytest.skip("NOT TESTED: no PyIceberg and DuckDB; run `make test-clients`")
    folder = tmp_path_factory.mktemp("iceberg")
    write(folder)
    (folder / "caraway.yaml").write_text(MANIFEST)
    with child(folder, folder) as server:
        url = f"http://{server.addresses['http']}"
        earlier = _moved(server, folder)
        ran = subprocess.run(
            [PYTHON.absolute(), PROGRAM, url, "reader", str(earlier)],
            capture_output=True, text=True, timeout=200,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-3000:]
        lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        return {
            (line["client"], line["what"]): (line["found"], _by_sql(server, line["what"]))
            for line in lines
        }


def _moved(server: Child, folder: Path) -> int:
    """Add a file to `moves`, and return the snapshot without it."""

    def snapshots() -> list[int]:
        path = "/v1/caraway/namespaces/public/tables/moves"
        answer = server.api.get(path, headers={"x-api-key": "reader"}).json()
        return [each["snapshot-id"] for each in answer["metadata"]["snapshots"]]

    first = snapshots()
    added = pa.table({"b": ["x"], "a": [2]})
    pq.write_table(added, folder / "moves" / "two.parquet")
    until(lambda: len(snapshots()) == 2, "the file is in a new snapshot")
    return first[0]


def _by_sql(server: Child, what: str) -> Any:
    table, _, condition = what.partition(" where ")
    if table not in ("trips", "kinds", "quick", "people", "moments", "moves", "dear", "every"):
        return None
    if condition:
        return sql(server, f"SELECT 1 AS n FROM {table} WHERE {condition}").num_rows
    return rows(sql(server, f"SELECT * FROM {table}"))


def test_rows_are_those_of_sql(found: dict[tuple[str, str], tuple[Any, Any]]) -> None:
    compared = {key: pair for key, pair in found.items() if pair[1] is not None}
    assert {key for key, (own, ours) in compared.items() if own != ours} == set()
    assert {client for client, _ in compared} == {"pyiceberg", "duckdb"}
    assert all(ours for _, ours in compared.values())
    assert found["pyiceberg", "planned trips"][0] == 3


def test_names_and_errors_are_those_of_the_catalog(
    found: dict[tuple[str, str], tuple[Any, Any]],
) -> None:
    said = {key: own for key, (own, _) in found.items()}
    for client in ("pyiceberg", "duckdb"):
        assert said[client, "tables"] == [
            "every",
            "kinds",
            "moments",
            "moves",
            "people",
            "quick",
            "trips",
        ]
        assert said[client, "earlier"] == [{"a": 1}]
    assert said["pyiceberg", "namespaces"] == [["public"]]
    assert said["pyiceberg", "views"] == ["dear"]
    assert said["pyiceberg", "exists"] == [True, False]
    assert "there is no table 'none'" in said["pyiceberg", "missing"]
    assert said["pyiceberg", "unplanned"].startswith("ValueError: Unrecognized filesystem type")
    assert "the API key is missing or unknown" in said["pyiceberg", "key"]
    assert "caraway://people/rows-are-not-in-files" in said["duckdb", "unplanned"]
    assert "does not exist" in said["duckdb", "missing"]
    assert not said["pyiceberg", "write"].startswith("no error")
