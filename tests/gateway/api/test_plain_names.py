"""Files with odd headers and decimal commas in a runtime, and the version that clients ask for."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.tables import CsvDialect, FileScan, FilesTable, TableSpec
from tests.gateway.api.accelerating import at_version
from tests.gateway.flight.serving import query, serving
from tests.kit.clusters import EAGER, in_process_cluster
from tests.kit.deadlines import eventually
from tests.kit.runtime import running

PARAMS = "params: {normalize_names: true, csv_delimiter: ';', csv_decimal_separator: ','}"
MANIFEST = f"""
    datasets:
      - {{from: file:orders.csv, name: plain, {PARAMS}}}
      - from: file:orders.csv
        name: orders
        {PARAMS}
        acceleration: {{enabled: true, refresh_check_interval: 1h}}
    views:
      - {{name: sums, sql: "SELECT sum(net_eur) AS net, version() AS v FROM orders"}}
"""
OF_POSTGRES = re.compile(r".*(?:PostgreSQL|EnterpriseDB) (\d+)\.?(\d+)?(?:\.(\d+))?")
"""As SQLAlchemy reads it."""


def write(folder: Path, *amounts: str) -> None:
    lines = ["Order ID;Net (EUR)", *(f"{number};{each}" for number, each in enumerate(amounts))]
    (folder / "orders.csv").write_text("\n".join(lines) + "\n")


async def test_names_and_numbers_are_plain_in_files_versions_and_views(tmp_path: Path) -> None:
    write(tmp_path, "1,5", "2,25")
    async with running(tmp_path, MANIFEST) as runtime:
        await at_version(runtime, 1)
        for table in ("plain", "orders"):
            answer = await runtime.sql(f"SELECT order_id, net_eur FROM {table} ORDER BY 1")
            assert answer.json() == [
                {"order_id": 0, "net_eur": 1.5}, {"order_id": 1, "net_eur": 2.25},
            ]  # fmt: skip
        (sums,) = (await runtime.sql("SELECT * FROM sums")).json()
        assert sums["net"] == 3.75
        assert OF_POSTGRES.match(sums["v"])

        write(tmp_path, "1,5", "2,25", "10")
        await runtime.api.post("/v1/datasets/orders/acceleration/refresh", json={})
        await at_version(runtime, 2)
        answer = await runtime.sql("SELECT sum(net_eur) AS net FROM orders WHERE order_id > 0")
        assert answer.json() == [{"net": 12.25}]

        async def told() -> bool:
            listed = await runtime.sql("SELECT count(*) AS n FROM plain")
            return bool(listed.json() == [{"n": 3}])

        await eventually(told, "the changed file is seen")


@pytest.mark.parametrize("name", ["version", "VERSION"])
async def test_the_version_is_one_that_clients_of_postgresql_can_read(
    tmp_path: Path, name: str
) -> None:
    async with running(tmp_path, "datasets: []\n") as runtime:
        (row,) = (await runtime.sql(f"SELECT {name}() AS v, length({name}()) AS n")).json()
        found = OF_POSTGRES.match(row["v"])
        assert found is not None
        assert int(found[1]) >= 14
        assert "Caraway" in row["v"]
        assert row["n"] == len(row["v"])


async def test_the_version_is_the_same_over_flight() -> None:
    async with serving() as server:
        found = await server.ask(query("SELECT version() AS v"))
        assert OF_POSTGRES.match(found["v"][0].as_py())


async def test_executors_read_decimal_commas_other_names_and_the_version(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("k;f\n1;1,5\n2;0,25\n")
        (tmp_path / f"{number}.json").write_text('{"K 1": 1, "f": 1.5}\n{"K 1": 2, "f": 0.25}\n')
    schema = pa.schema([("k", pa.int64()), ("f", pa.float64())])
    own = pa.schema([("K 1", pa.int64()), ("f", pa.float64())])

    def paths(suffix: str) -> tuple[str, ...]:
        return tuple(sorted(map(str, tmp_path.glob(f"*{suffix}"))))

    dialect = CsvDialect(delimiter=";", decimal_separator=",")
    tables: dict[str, TableSpec | str] = {
        "csv": FilesTable(
            schema,
            (FileScan("csv", paths(".csv"), schema, ".csv", csv=dialect, size_bytes=100,
                      file_count=3),),
        ),
        "json": FilesTable(
            schema,
            (FileScan("json", paths(".json"), own, ".json", size_bytes=100, file_count=3,
                      names=("k", "f")),),
        ),
    }  # fmt: skip
    async with in_process_cluster(tmp_path, tables, policy=EAGER) as cluster:
        for table in tables:
            sql = f"SELECT k, sum(f) AS f, min(version()) AS v FROM {table} GROUP BY k ORDER BY k"
            first, second = (await cluster.execute(sql)).to_pylist()
            assert [(each["k"], each["f"]) for each in (first, second)] == [(1, 4.5), (2, 0.75)]
            assert OF_POSTGRES.match(first["v"])
