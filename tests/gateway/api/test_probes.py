"""The probe of a pod: one part in error keeps no scheduler out of its Service."""

import asyncio
from pathlib import Path

import pytest

from caraway_core.ids import TableName
from tests.kit.runtime import Running, running

PROBE = "/v1/ready?probe=pod"
TABLES = """
    datasets:
      - {from: 'file:people.csv', name: people}
      - {from: 'file:pets.csv', name: pets, acceleration: {enabled: true, mode: file}}
    views:
      - {name: names, sql: 'SELECT name FROM people'}
"""


def write(folder: Path) -> None:
    (folder / "people.csv").write_text("id,name\n1,Ann\n")
    (folder / "pets.csv").write_text("name\nRex\n")


async def probe(runtime: Running, more: str = "") -> int:
    return (await runtime.metrics.get(PROBE + more)).status_code


async def test_errors_of_parts_leave_the_rest_in_service(tmp_path: Path) -> None:
    write(tmp_path)
    broken = """
      - {name: lost, sql: 'SELECT * FROM no_such_table'}
      - {name: later, sql: 'SELECT * FROM gone'}
    """
    gone = "      - {from: 'file:gone.csv', name: gone}\n    views:"
    async with running(tmp_path, TABLES.replace("    views:", gone) + broken) as runtime:
        assert await probe(runtime, "&wait=60") == 200
        for port in (runtime.api, runtime.metrics):
            assert (await port.get("/v1/ready")).status_code == 503
        verbose = (await runtime.metrics.get(PROBE + "&verbose=true")).text
        assert verbose.startswith("[+] components ok")
        assert (await runtime.sql("SELECT * FROM names")).json() == [{"name": "Ann"}]
        unready = {part.name: part for part in runtime.services.unready_parts()}
        assert unready.keys() == {"gone", "lost", "later"}
        assert all(part.reason for part in unready.values())
        assert "no_such_table" in unready["lost"].reason


async def test_a_source_that_is_away_at_a_restart_takes_nothing_else_down(tmp_path: Path) -> None:
    write(tmp_path)
    async with running(tmp_path, TABLES) as runtime:
        assert await probe(runtime, "&wait=60") == 200
    for name in ("people.csv", "pets.csv"):
        (tmp_path / name).rename(tmp_path / f"{name}.away")
    async with running(tmp_path, TABLES) as runtime:
        assert await probe(runtime, "&wait=60") == 200
        assert (await runtime.metrics.get("/v1/ready")).status_code == 503
        # Its rows are here, wherever its source is.
        kept = await runtime.sql("SELECT * FROM pets")
        assert kept.status_code == 200, kept.text
        assert kept.json() == [{"name": "Rex"}]
        assert (await runtime.sql("SELECT * FROM names")).status_code == 503


async def test_a_probe_waits_for_what_is_being_loaded(tmp_path: Path) -> None:
    write(tmp_path)
    async with running(tmp_path, TABLES) as runtime:
        people = runtime.services.catalog.datasets[TableName("people")]
        people.status = "initializing"
        assert await probe(runtime) == 503

        asked = asyncio.create_task(probe(runtime, "&wait=300"))
        await asyncio.sleep(0)
        people.status = "ready"

        assert await asked == 200


async def test_what_is_loaded_again_takes_no_scheduler_out_of_its_service(tmp_path: Path) -> None:
    write(tmp_path)
    async with running(tmp_path, TABLES) as runtime:
        assert await probe(runtime, "&wait=60") == 200
        runtime.services.catalog.datasets[TableName("people")].status = "initializing"
        assert await probe(runtime) == 200
        assert (await runtime.metrics.get("/v1/ready")).status_code == 503


@pytest.mark.parametrize("more", ["&wait=301", "&wait=-1", "&wait=x", "&min_ready_executors=1"])
async def test_a_probe_that_cannot_be_answered_is_400(tmp_path: Path, more: str) -> None:
    async with running(tmp_path, "datasets: []\n") as runtime:
        assert await probe(runtime, more) == 400


async def test_the_port_of_users_has_no_probe_of_pods(tmp_path: Path) -> None:
    manifest = "views:\n  - {name: lost, sql: 'SELECT * FROM no_such_table'}\n"
    async with running(tmp_path, manifest) as runtime:
        assert (await runtime.api.get(PROBE)).status_code == 503
        assert await probe(runtime) == 200
