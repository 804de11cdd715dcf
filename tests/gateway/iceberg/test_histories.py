"""Earlier snapshots of tables can be read for as long as they are listed."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from caraway_core.errors import DatasetError
from caraway_gateway.iceberg import histories, service, sweeping
from caraway_plugins.sources import parquet_files
from tests.kit import iceberg_reader
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running

PATH = "/v1/caraway/namespaces/public/tables/t"
PLACE = "    runtime: {iceberg: {location: published}}\n"
IN_PLACE = f"{PLACE}    datasets: [{{from: 'file:t/', name: t}}]\n"
COPIED = f"""{PLACE}
    datasets:
      - {{from: 'file:t/', name: t, acceleration: {{enabled: true, refresh_mode: full}}}}
"""


def write(folder: Path, name: str, **columns: list[Any]) -> None:
    (folder / "t").mkdir(exist_ok=True)
    made = io.BytesIO()
    pq.write_table(pa.table(columns), made)
    (folder / "t" / f"{name}.parquet").write_bytes(made.getvalue())


async def metadata(runtime: Running) -> dict[str, Any]:
    response = await runtime.api.get(PATH)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["metadata"]
    return found


def values(document: dict[str, Any], id_: int | None = None) -> list[int]:
    return sorted(row["a"] for row in iceberg_reader.rows(document, id_))


def snapshots(document: dict[str, Any]) -> list[int]:
    return [each["snapshot-id"] for each in document["snapshots"]]


def ids(document: dict[str, Any]) -> dict[str, int]:
    current = document["current-schema-id"]
    (schema,) = (each for each in document["schemas"] if each["schema-id"] == current)
    return {each["name"]: each["id"] for each in schema["fields"]}


async def changed(runtime: Running, before: dict[str, Any]) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        response = await runtime.api.get(PATH)
        found = response.json().get("metadata")
        return found if response.status_code == 200 and found != before else None

    found = await eventually(look, "the table is another one")
    assert found is not None
    return found


async def planned(runtime: Running, **body: Any) -> Any:
    return await runtime.api.post(f"{PATH}/plan", json=body)


async def test_files_of_earlier_snapshots_are_read_while_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "one", a=[1])
    async with running(tmp_path, IN_PLACE) as runtime:
        first = await metadata(runtime)
        write(tmp_path, "two", b=["x"], a=[2])
        second = await changed(runtime, first)
        (old, new) = snapshots(second)
        assert [old] == snapshots(first) and new == second["current-snapshot-id"]
        assert (values(second), values(second, old)) == ([1, 2], [1])
        assert ids(second) == {"a": 1, "b": 2}
        made = iceberg_reader.snapshot(second)
        assert (made["parent-snapshot-id"], made["sequence-number"]) == (old, 2)
        summary = made["summary"]
        assert (summary["operation"], summary["added-data-files"]) == ("append", "1")
        # A scan of a snapshot has its files, and no others.
        answer = (await planned(runtime, **{"snapshot-id": old})).json()
        assert len(answer["file-scan-tasks"]) == 1
        assert len((await planned(runtime)).json()["file-scan-tasks"]) == 2
        # The catalog does not list a snapshot without its files.
        (tmp_path / "t" / "one.parquet").unlink()
        third = await changed(runtime, second)
        assert snapshots(third) == [third["current-snapshot-id"]]
        assert iceberg_reader.snapshot(third)["summary"]["operation"] == "overwrite"
        assert third["last-sequence-number"] == 3
        refused = await planned(runtime, **{"snapshot-id": old})
        assert refused.status_code == 400
        assert f"there is no snapshot {old}" in refused.json()["error"]["message"]
        monkeypatch.setattr(sweeping, "KEPT_S", -1.0)
        await runtime.services.tables.sweep()
        await runtime.services.tables.sweep()
        assert values(third) == [2]
        with pytest.raises(FileNotFoundError):
            values(second)


async def test_files_that_delta_forgets_are_read_until_they_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = str(tmp_path / "d")
    write_deltalake(table, pa.table({"a": [1, 2]}))
    manifest = f"{PLACE}    datasets: [{{from: 'delta:{table}', name: t}}]\n"
    async with running(tmp_path, manifest) as runtime:
        await eventually(lambda: _is_loaded(runtime), "the dataset is loaded")
        first = await metadata(runtime)
        write_deltalake(table, pa.table({"a": [7]}), mode="overwrite")
        second = await changed(runtime, first)
        old, new = snapshots(second)
        assert (values(second, old), values(second, new)) == ([1, 2], [7])
        assert iceberg_reader.snapshot(second)["summary"]["deleted-data-files"] == "1"
        now_ms = histories.now_ms
        with monkeypatch.context() as away:
            away.setattr(parquet_files, "are_there", _fails)
            away.setattr(histories, "now_ms", lambda: now_ms() + 60_000)
            assert snapshots(await metadata(runtime)) == [old, new]
            await runtime.services.tables.sweep()
        DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False)
        monkeypatch.setattr(histories, "now_ms", lambda: now_ms() + 120_000)
        third = await metadata(runtime)
        assert (snapshots(third), values(third)) == ([new], [7])


async def test_exports_of_earlier_versions_are_read_until_they_expire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LAG_S", 0.0)
    write(tmp_path, "one", a=[1], s=["x"])
    async with running(tmp_path, COPIED) as runtime:
        await eventually(lambda: _is_loaded(runtime), "the dataset is loaded")
        first = await metadata(runtime)
        write(tmp_path, "one", n=[5.5], a=[7], s=["y"])
        await runtime.api.post("/v1/datasets/t/acceleration/refresh", json={})
        second = await changed(runtime, first)
        old, _ = snapshots(second)
        assert (values(second), values(second, old)) == ([7], [1])
        assert (ids(first), ids(second)) == ({"a": 1, "s": 2}, {"n": 3, "a": 1, "s": 2})
        assert len(second["schemas"]) == 2
        answer = (await planned(runtime, **{"snapshot-id": old})).json()
        assert [each["data-file"]["record-count"] for each in answer["file-scan-tasks"]] == [1]
        # A restart keeps them.
    async with running(tmp_path, COPIED) as runtime:
        await eventually(lambda: _is_loaded(runtime), "the dataset is loaded")
        assert await metadata(runtime) == second
        now_ms = histories.now_ms
        monkeypatch.setattr(histories, "now_ms", lambda: now_ms() + 7_200_000)
        later = await metadata(runtime)
        assert snapshots(later) == [second["current-snapshot-id"]]
        assert (values(later), values(second, old)) == ([7], [1])
        assert ids(later) == ids(second)
        monkeypatch.setattr(sweeping, "KEPT_S", -1.0)
        await runtime.services.tables.sweep()
        await runtime.services.tables.sweep()
        assert values(later) == [7]
        with pytest.raises(FileNotFoundError):
            values(second, old)


def _fails(*_given: Any) -> bool:
    raise DatasetError("unavailable", "the bucket is away")


async def _is_loaded(runtime: Running) -> bool:
    return bool((await runtime.api.get(PATH)).status_code == 200)
