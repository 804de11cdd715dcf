"""The clients and the commands against the real API: snapshots and packages."""

import asyncio
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import caraway
from caraway.cli import app as commands
from caraway_gateway.composition import app
from tests.kit.deadlines import eventually
from tests.kit.git_repositories import Repository
from tests.kit.listening import listening
from tests.kit.runtime import running

MANIFEST = """
    runtime: {packages: {git_url: 'file://FOLDER/git'}}
    snapshots: {location: 'file:snapshots'}
    datasets:
      - {from: 'file:orders.parquet', name: plain}
      - from: file:orders.parquet
        name: orders
        acceleration: {enabled: true, snapshots: enabled, snapshots_keep: 5}
"""


def write(folder: Path, rows: int) -> None:
    pq.write_table(pa.table({"id": range(rows)}), folder / "orders.parquet")


async def of_count(client: caraway.AsyncClient, count: int) -> list[dict[str, Any]]:
    async def looked() -> list[dict[str, Any]] | None:
        found = await client.snapshots("orders")
        return found if len(found) == count else None

    found = await eventually(looked, f"{count} snapshots are written")
    assert found is not None
    return found


async def counted(client: caraway.AsyncClient) -> int:
    rows = await client.sql("SELECT count(*) AS n FROM orders")
    return int(rows["n"][0].as_py())


async def test_clients_and_commands_choose_snapshots_and_make_packages(
    tmp_path: Path,
) -> None:
    write(tmp_path, 10)
    files: dict[str, str | bytes] = {"caraway.yaml": "version: v2\nkind: Spicepod\nname: shop\n"}
    sha = Repository(tmp_path / "git" / "acme" / "shop.git").commit(files)
    manifest = MANIFEST.replace("FOLDER", str(tmp_path))
    async with (
        running(tmp_path, manifest) as runtime,
        listening(app.build_api(runtime.services)) as endpoint,
        caraway.AsyncClient(http_url=endpoint) as client,
    ):

        async def shell(*arguments: str) -> tuple[int, str, str]:
            given = [*arguments, "--endpoint", endpoint]
            done = await asyncio.to_thread(CliRunner().invoke, commands.build(), given)
            return done.exit_code, done.stdout, done.stderr

        await of_count(client, 1)
        write(tmp_path, 20)
        await client.refresh_acceleration("orders")
        first, second = await of_count(client, 2)
        assert [each["row_count"] for each in (first, second)] == [10, 20]
        assert await client.snapshots("orders", limit=1) == [second]
        assert await client.snapshot("orders", first["snapshot_id"]) == first
        said = await client.use_snapshot("orders", first["snapshot_id"])
        assert said == f"Dataset 'orders' is read from the snapshot {first['snapshot_id']}."
        assert await counted(client) == 10

        code, stdout, _ = await shell("snapshots", "list", "orders")
        assert code == 0
        header, *rows = stdout.splitlines()
        assert header.split() == ["snapshot_id", "time", "row_count", "size_bytes", "is_current"]
        cells = [row.split() for row in rows]
        assert [(row[0], row[3], row[4], row[-1]) for row in cells] == [
            (str(first["snapshot_id"]), "UTC", "10", "yes"),
            (str(second["snapshot_id"]), "UTC", "20", "no"),
        ]
        asked = ("snapshots", "list", "orders", "--limit", "1", "--format", "json")
        assert json.loads((await shell(*asked))[1]) == [{**second, "is_current": False}]
        number = str(second["snapshot_id"])
        assert second["checksum"] in (await shell("snapshots", "show", "orders", number))[1]
        code, stdout, _ = await shell("snapshots", "use", "orders", number)
        assert (code, stdout) == (0, f"Dataset 'orders' is read from the snapshot {number}.\n")
        assert await counted(client) == 20
        for name, id_, words in (
            ("plain", number, "not accelerated"),
            ("nowhere", number, "no dataset 'nowhere'"),
            ("orders", "7", "has no snapshot 7"),
        ):
            code, _, stderr = await shell("snapshots", "use", name, id_)
            assert (code, words in stderr) == (1, True), stderr

        package = await client.generate_package(f"git:acme/shop/{sha}/caraway.yaml")
        assert zipfile.ZipFile(io.BytesIO(package)).namelist() == ["caraway.yaml"]
        with pytest.raises(caraway.ApiError, match="does not exist or may not be read") as refused:
            await client.generate_package(f"git:acme/none/{sha}/caraway.yaml", git_token="t")
        assert refused.value.status == 400
