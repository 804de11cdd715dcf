"""Tables are loaded once for each state of their files, and follow them."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caraway_scheduler.iceberg import publishing
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
    monkeypatch.setattr(publishing, "_snapshot", None)  # It would fail if it were called.
    async with running(tmp_path, manifest) as runtime:
        assert await metadata(runtime) == first


async def test_replaced_metadata_is_deleted_once_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "one", 1)
    manifest = "    runtime: {iceberg: {location: published}}\n" + MANIFEST
    async with running(tmp_path, manifest) as runtime:
        await metadata(runtime)
    write(tmp_path, "two", 2)
    async with running(tmp_path, manifest) as runtime:
        await metadata(runtime)
    (table,) = (each for each in (tmp_path / "published").iterdir() if each.name[0] != ".")
    assert len(list(table.iterdir())) == 2
    monkeypatch.setattr(publishing, "KEPT_S", -1.0)
    write(tmp_path, "three", 3)
    async with running(tmp_path, manifest) as runtime:
        assert values(await metadata(runtime)) == [1, 2, 3]
    assert len(list(table.iterdir())) == 1


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
    """
    async with running(tmp_path, manifest, {"S3_SECRET": SECRET}) as runtime:
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
    assert file["file_path"] == "s3://lake-iceberg/t/one.parquet"
