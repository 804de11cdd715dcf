"""Tables are loaded once for each state of their files, and follow them."""

import asyncio
import io
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_gateway.iceberg import exporting, publishing, service, states
from tests.kit import iceberg_reader
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.s3 import KEY, REGION, SECRET, S3Server, s3_server

__all__ = ["s3_server"]
PATH = "/v1/caraway/namespaces/public/tables/t"
MANIFEST = """
    datasets:
      - {from: 'file:t/', name: t}
"""


def write(folder: Path, name: str, *values: int) -> None:
    (folder / "t").mkdir(exist_ok=True)
    pq.write_table(pa.table({"a": list(values)}), folder / "t" / f"{name}.parquet")


async def metadata(runtime: Running) -> dict[str, Any]:
    response = await runtime.api.get(PATH)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()["metadata"]
    return found


def values(document: dict[str, Any]) -> list[int]:
    return sorted(row["a"] for row in iceberg_reader.rows(document))


async def test_files_are_looked_at_once_until_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    files = publishing.files

    def counted(*given: Any) -> Any:
        made.append(given)
        return files(*given)

    monkeypatch.setattr(publishing, "files", counted)
    write(tmp_path, "one", 1, 2)
    async with running(tmp_path, MANIFEST) as runtime:
        first, *others = await asyncio.gather(*(metadata(runtime) for _ in range(5)))
        assert all(each == first for each in others)
        assert len(made) == 1
        write(tmp_path, "two", 3)

        async def changed() -> dict[str, Any] | None:
            found = await metadata(runtime)
            return found if found != first else None

        second = await eventually(changed, "the new file is in the metadata")
        assert second is not None
        assert (values(first), values(second)) == ([1, 2], [1, 2, 3])
        assert second["table-uuid"] == first["table-uuid"]
        newest = max(each.stat().st_mtime for each in (tmp_path / "t").iterdir())
        assert iceberg_reader.snapshot(second)["timestamp-ms"] == int(newest * 1000)
        assert second["current-snapshot-id"] != first["current-snapshot-id"]
        assert len(made) == 2


async def test_a_runtime_that_starts_again_finds_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "one", 1)
    manifest = "    runtime: {iceberg: {location: published}}\n" + MANIFEST
    async with running(tmp_path, manifest) as runtime:
        first = await metadata(runtime)
    assert first["snapshots"][0]["manifest-list"].startswith(f"file://{tmp_path}/published/")
    monkeypatch.setattr(states, "followed", None)  # It would fail if it were called.
    async with running(tmp_path, manifest) as runtime:
        assert await metadata(runtime) == first


async def test_a_file_that_is_gone_is_tried_again(tmp_path: Path) -> None:
    write(tmp_path, "one", 1)
    manifest = "\n    datasets:\n      - {from: 'file:t/one.parquet', name: t}\n"
    async with running(tmp_path, manifest) as runtime:
        target = tmp_path / "t" / "one.parquet"
        target.rename(tmp_path / "away")
        response = await runtime.api.get(PATH)
        assert response.status_code == 503
        assert "retry-after" in response.headers
        assert response.json()["error"]["type"] == "ServiceUnavailableException"
        (tmp_path / "away").rename(target)

        async def loaded() -> bool:
            return bool((await runtime.api.get(PATH)).status_code == 200)

        await eventually(loaded, "the file is found again")
        assert values(await metadata(runtime)) == [1]


async def test_keys_open_the_catalog_as_they_open_sql(tmp_path: Path) -> None:
    write(tmp_path, "one", 1)
    manifest = "    runtime: {auth: {api-key: {keys: ['ada:ro']}}}\n" + MANIFEST
    async with running(tmp_path, manifest) as runtime:
        for path in ("/v1/config", "/v1/namespaces", PATH):
            refused = await runtime.api.get(path)
            assert refused.status_code == 401
            assert refused.json()["error"]["type"] == "NotAuthorizedException"
            taken = await runtime.api.get(path, headers={"authorization": "Bearer ada"})
            assert taken.status_code == 200


async def test_a_bucket_has_the_metadata_beside_its_files(
    tmp_path: Path, s3_server: S3Server
) -> None:
    s3_server.bucket("lake-iceberg")
    content = io.BytesIO()
    pq.write_table(pa.table({"a": [7]}), content)
    s3_server.put("lake-iceberg", "t/one.parquet", content.getvalue())
    manifest = f"""
    runtime:
      iceberg:
        location: s3://lake-iceberg/published
        params: &s3
          s3_region: {REGION}
          s3_endpoint: {s3_server.endpoint}
          s3_auth: key
          s3_key: {KEY}
          s3_secret: ${{secrets:S3_SECRET}}
          allow_http: true
    datasets:
      - {{from: 's3://lake-iceberg/t/', name: t, params: *s3}}
      - {{from: 'file:rows.csv', name: quick, acceleration: {{enabled: true}}}}
    """
    (tmp_path / "rows.csv").write_text("a\n5\n6\n")

    async def exported(runtime: Running) -> dict[str, Any] | None:
        response = await runtime.api.get(f"{PATH.removesuffix('t')}quick")
        return response.json()["metadata"] if response.status_code == 200 else None

    async with running(tmp_path, manifest, {"S3_SECRET": SECRET}) as runtime:
        quick = await eventually(lambda: exported(runtime), "the dataset is loaded")
        response = await runtime.api.get(PATH)
        document = response.json()
        assert document["metadata-location"].startswith("s3://lake-iceberg/published/")
        assert document["config"] == {
            "s3.region": REGION,
            "client.region": REGION,
            "s3.endpoint": s3_server.endpoint,
            "s3.path-style-access": "true",
        }
        assert SECRET not in response.text and KEY not in response.text
        rows = document["metadata"]["properties"]["caraway.rows"]
        assert rows == "files in s3://lake-iceberg; readers need their own access to them"

    def fetched(location: str) -> bytes:
        key = location.removeprefix("s3://lake-iceberg/")
        found: bytes = s3_server.client.get_object(Bucket="lake-iceberg", Key=key)["Body"].read()
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(iceberg_reader, "local", fetched)
        assert values(document["metadata"]) == [7]
        (file,) = iceberg_reader.data_files(document["metadata"])
        assert quick is not None and values(quick) == [5, 6]
        (export,) = iceberg_reader.data_files(quick)
    assert export["file_path"].startswith("s3://lake-iceberg/published/")
    assert file["file_path"] == "s3://lake-iceberg/t/one.parquet"


ACCELERATED = """
    runtime: {iceberg: {location: published}}
    datasets:
      - from: 'file:rows.csv'
        name: t
        acceleration: {enabled: true, refresh_mode: full}
"""


async def test_an_accelerated_dataset_is_exported_once_for_each_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exports = []
    export = exporting.export

    async def counted(*given: Any, **options: Any) -> Any:
        exports.append(given)
        return await export(*given, **options)

    monkeypatch.setattr(exporting, "export", counted)
    (tmp_path / "rows.csv").write_text("a,s\n1,x\n2,y\n3,\n")

    async def loaded(runtime: Running) -> dict[str, Any] | None:
        response = await runtime.api.get(PATH)
        return response.json()["metadata"] if response.status_code == 200 else None

    async with running(tmp_path, ACCELERATED) as runtime:
        first = await eventually(lambda: loaded(runtime), "the dataset is loaded")
        assert first is not None
        assert (await asyncio.gather(*(metadata(runtime) for _ in range(3))))[2] == first
        assert len(exports) == 1
        # Clients read no snapshot that is younger than their transaction.
        standing = (await runtime.api.get("/v1/datasets/t/acceleration")).json()
        made_at = datetime.fromisoformat(standing["version"]["made_at"])
        assert abs(first["snapshots"][0]["timestamp-ms"] - made_at.timestamp() * 1000) < 1000
        rows = sorted(iceberg_reader.rows(first), key=lambda row: row["a"])
        assert rows == (await runtime.sql("SELECT * FROM t ORDER BY a")).json()
        (file,) = iceberg_reader.data_files(first)
        assert file["file_path"].startswith(f"file://{tmp_path}/published/")
        assert file["lower_bounds"][0]["value"] == (1).to_bytes(8, "little")
        (tmp_path / "rows.csv").write_text("a,s\n7,z\n")
        refreshed = await runtime.api.post("/v1/datasets/t/acceleration/refresh", json={})
        assert refreshed.status_code == 201

        async def is_refreshed() -> bool:
            return bool((await runtime.sql("SELECT min(a) AS m FROM t")).json() == [{"m": 7}])

        await eventually(is_refreshed, "the new version is read")
        # Within the lag, clients keep the version that they know.
        assert await metadata(runtime) == first
        monkeypatch.setattr(service, "LAG_S", 0.0)
        assert values(await metadata(runtime)) == [7]
        assert len(exports) == 2
        second = await metadata(runtime)
    async with running(tmp_path, ACCELERATED) as runtime:
        again = await eventually(lambda: loaded(runtime), "the dataset is loaded")
        assert again == second
        assert len(exports) == 2


async def test_an_empty_accelerated_dataset_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,s\n")
    async with running(tmp_path, ACCELERATED) as runtime:

        async def loaded() -> bool:
            return bool((await runtime.api.get(PATH)).status_code == 200)

        await eventually(loaded, "the dataset is loaded")
        found = await metadata(runtime)
        assert iceberg_reader.rows(found) == []
        assert [each["name"] for each in found["schemas"][0]["fields"]] == ["a", "s"]


async def test_changes_are_in_the_next_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = """
    datasets:
      - from: cdc:t
        name: t
        columns: [{name: a, type: bigint}, {name: v, type: text}]
        acceleration: {enabled: true, primary_key: a, refresh_mode: changes}
    """
    monkeypatch.setattr(service, "LAG_S", 0.0)
    async with running(tmp_path, manifest) as runtime:

        async def taken(a: int, v: str) -> bool:
            event = {"op": "u", "before": None, "after": {"a": a, "v": v}}
            response = await runtime.api.post("/v1/datasets/t/cdc", json=[event])
            return bool(response.status_code == 200)

        await eventually(lambda: taken(1, "x"), "changes are taken")
        assert values(await metadata(runtime)) == [1]
        assert await taken(2, "y") and await taken(1, "z")
        rows = sorted(iceberg_reader.rows(await metadata(runtime)), key=lambda row: row["a"])
        assert rows == [{"a": 1, "v": "z"}, {"a": 2, "v": "y"}]
