"""A runtime reads the datasets of another one: as tables of Iceberg, and over Flight SQL."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.kit.deadlines import until
from tests.kit.processes import child

SERVED = """
version: v1
kind: Caraway
name: served
runtime: {auth: {api-key: {keys: ['hunter2:ro']}}}
datasets:
  - {from: 'file:trips.parquet', name: trips}
"""
READING = """
version: v1
kind: Caraway
name: reading
datasets:
  - {from: 'iceberg:HTTP/v1/namespaces/public/tables/trips', name: lake_trips,
     params: {iceberg_token: hunter2}}
  - {from: 'iceberg:HTTP/v1/namespaces/public/tables/trips', name: kept,
     params: {iceberg_token: hunter2}, acceleration: {enabled: true}}
  - {from: 'caraway:trips', name: flight_trips,
     params: {caraway_endpoint: 'FLIGHT', caraway_api_key: hunter2}}
catalogs:
  - {from: 'iceberg:HTTP', name: lake, params: {iceberg_token: hunter2}}
"""
TRIPS = pa.table({"id": range(1000), "city": ["Bern", "Basel"] * 500})


TABLES = ("lake_trips", "kept", "flight_trips", "lake.public.trips")


def test_datasets_of_another_runtime_are_read(tmp_path: Path) -> None:
    served, reading = tmp_path / "served", tmp_path / "reading"
    for folder in (served, reading):
        folder.mkdir()
    pq.write_table(TRIPS, served / "trips.parquet")
    (served / "caraway.yaml").write_text(SERVED)
    with child(served, served / "caraway.yaml") as other:
        http, flight = (f"{kind}://{other.addresses[kind]}" for kind in ("http", "flight"))
        text = READING.replace("HTTP", http).replace("FLIGHT", flight.replace("flight", "grpc"))
        (reading / "caraway.yaml").write_text(text)
        with child(reading, reading / "caraway.yaml") as runtime:
            for table in TABLES:
                sql = f"SELECT count(*) AS n, max(id) AS m FROM {table} WHERE city = 'Bern'"
                answer = runtime.sql(sql)
                assert answer.json() == [{"n": 500, "m": 998}], (table, answer.text)
            pq.write_table(TRIPS.slice(0, 10), served / "trips.parquet")
            count = "SELECT count(*) AS n FROM flight_trips"
            until(
                lambda: runtime.sql(count).json() == [{"n": 10}], "the other runtime has new rows"
            )
            assert "hunter2" not in runtime.logged()
