"""Clients that read distributed answers at the executors of a real cluster."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import flight

import caraway
from caraway_core.settings import Address
from tests.gateway.flight.serving import bearer, client, command
from tests.kit.deadlines import until
from tests.kit.ray_cluster import RayCluster, ray_cluster

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]
ROWS = 400_000
FILES = 8
KEY = bearer("writer-key")
MANIFEST = """
version: v1
kind: Caraway
name: parallel
runtime:
  auth: {api-key: {enabled: true, keys: ["reader-key", "writer-key:rw"]}}
  flight: {parallel_reads: {enabled: true}}
  query: {distribution: {small_table_size: 0}}
datasets:
  - {from: "file:facts/", name: facts, params: {file_format: parquet}}
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A cluster of two with a scheduler."""

    cluster: RayCluster

    @property
    def address(self) -> Address:
        return Address.parse(self.cluster.schedulers["s1"].facts["flight"])

    def executors(self) -> list[Mapping[str, Any]]:
        http = self.cluster.schedulers["s1"].facts["http"]
        found: list[Mapping[str, Any]] = httpx.get(
            f"http://{http}/v1/cluster/executors", headers={"x-api-key": "writer-key"}, timeout=60
        ).json()
        return found

    def until_ready(self) -> None:
        metrics = self.cluster.schedulers["s1"].facts["metrics"]
        url = f"http://{metrics}/v1/ready?min_ready_executors=2"
        until(lambda: httpx.get(url, timeout=60).status_code == 200, "two are ready", 180)

    def info(self, sql: str) -> flight.FlightInfo:
        with client(self.address) as connected:
            return connected.get_flight_info(command(sql), KEY)

    def active(self) -> list[Any]:
        http = self.cluster.schedulers["s1"].facts["http"]
        answer = httpx.get(
            f"http://{http}/v1/sql/active", headers={"x-api-key": "writer-key"}, timeout=60
        ).json()
        return list(answer["queries"] if isinstance(answer, dict) else answer)


@contextlib.contextmanager
def opened(endpoint: flight.FlightEndpoint) -> Iterator[flight.FlightStreamReader]:
    address = Address.parse(endpoint.locations[0].uri.decode().partition("://")[2])
    with client(address) as connected:
        yield connected.do_get(endpoint.ticket, KEY)


def read(endpoint: flight.FlightEndpoint) -> pa.Table:
    with opened(endpoint) as reader:
        return reader.read_all()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("parallel")
    (folder / "facts").mkdir()
    for number in range(FILES):
        first = number * ROWS // FILES
        ids = range(first, first + ROWS // FILES)
        rows = pa.table({"id": list(ids), "text": [f"row {each:060d}" for each in ids]})
        pq.write_table(rows, folder / "facts" / f"{number}.parquet")
    manifest = folder / "caraway.yaml"
    manifest.write_text(MANIFEST)
    with ray_cluster(folder, 2, executor_flags=["--flight", "{ip}:0"]) as cluster:
        cluster.begin_scheduler("s1", manifest).wait_up()
        found = Served(cluster)
        found.until_ready()
        yield found


def test_rows_come_from_both_executors_at_once(served: Served) -> None:
    info = served.info("SELECT * FROM facts")
    places = {each.locations[0].uri.decode() for each in info.endpoints}
    assert places == {each.facts["flight"] for each in served.cluster.executors.values()}
    with ThreadPoolExecutor(2) as threads:
        rows = pa.concat_tables(threads.map(read, info.endpoints))
    assert sorted(rows.column("id").to_pylist()) == list(range(ROWS))
    until(lambda: not served.active(), "the statement has ended")


def test_the_python_client_reads_all_endpoints(served: Served) -> None:
    with caraway.Client(
        api_key="writer-key",
        http_url=f"http://{served.cluster.schedulers['s1'].facts['http']}",
        flight_url=f"grpc://{served.address}",
    ) as connected:
        rows = connected.sql("SELECT id FROM facts")
        assert sorted(rows.column("id").to_pylist()) == list(range(ROWS))
        ordered = connected.sql("SELECT id, text FROM facts ORDER BY id DESC")
        assert ordered.column("id").to_pylist() == list(range(ROWS - 1, -1, -1))


def test_an_executor_that_dies_ends_the_answer_with_unavailable(served: Served) -> None:
    info = served.info("SELECT id, repeat(text, 200) AS text FROM facts")
    e1 = served.cluster.executors["e1"].facts["flight"]
    [dying] = [each for each in info.endpoints if each.locations[0].uri.decode() == e1]
    [other] = [each for each in info.endpoints if each.locations[0].uri.decode() != e1]
    with opened(dying) as at_e1, opened(other) as at_e2:
        at_e1.read_chunk()
        at_e2.read_chunk()
        os.kill(served.cluster.actor_pid("e1"), signal.SIGKILL)
        with pytest.raises(flight.FlightUnavailableError):
            at_e1.read_all()
        with pytest.raises(flight.FlightUnavailableError, match=r"'e1' is lost.*run the query"):
            at_e2.read_all()
    until(lambda: not served.active(), "the statement has ended")
    served.until_ready()
    assert served.info("SELECT * FROM facts").endpoints


async def test_a_killed_reader_leaves_nothing(served: Served) -> None:
    info = await asyncio.to_thread(served.info, "SELECT id, repeat(text, 200) AS t FROM facts")
    with opened(info.endpoints[0]) as reader:
        reader.read_chunk()
        reader.cancel()
    until(lambda: not served.active(), "the statement has ended")
    until(lambda: all(each["active_tasks"] == 0 for each in served.executors()), "no task is left")
