"""A dataset on S3, from the manifest to the rows, over the real protocol."""

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.deadlines import eventually
from tests.kit.runtime import Running, running
from tests.kit.s3 import KEY, REGION, SECRET, S3Server, s3_server

__all__ = ["s3_server"]


def parquet(**columns: list[object]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


async def test_folder_on_s3_is_served_and_its_secret_stays_secret(
    tmp_path: Path, s3_server: S3Server
) -> None:
    s3_server.bucket("lake-e2e")
    s3_server.put("lake-e2e", "events/year=2024/a.parquet", parquet(v=[1, 2]))
    s3_server.put("lake-e2e", "events/year=2025/b.parquet", parquet(v=[3]))
    manifest = f"""
        datasets:
          - from: s3://lake-e2e/events/
            name: events
            params: &s3
              file_format: parquet
              s3_region: {REGION}
              s3_endpoint: {s3_server.endpoint}
              s3_auth: key
              s3_key: {KEY}
              s3_secret: ${{secrets:S3_SECRET}}
              allow_http: true
          - from: s3://no-such-bucket/x/
            name: absent
            params: *s3
    """
    async with running(tmp_path, manifest, {"S3_SECRET": SECRET}) as runtime:
        answer = await runtime.sql("SELECT year, sum(v) AS s FROM events GROUP BY 1 ORDER BY 1")
        assert answer.json() == [{"year": 2024, "s": 3}, {"year": 2025, "s": 3}]
        s3_server.put("lake-e2e", "events/year=2025/c.parquet", parquet(v=[10]))
        fresh = await runtime.sql("SELECT sum(v) AS s FROM events")
        assert fresh.json() == [{"s": 16}]
        listing = await runtime.api.get("/v1/datasets?status=true")
        states = {row["name"]: row for row in listing.json()}
        assert states["absent"]["error"]["code"] == "dataset.not_found"
        assert SECRET not in listing.text
        mistake = await runtime.sql("SELECT nope FROM events")
        assert SECRET not in mistake.text


async def test_missing_object_is_an_error_and_not_an_empty_table(
    tmp_path: Path, s3_server: S3Server
) -> None:
    s3_server.bucket("lake-gone")
    s3_server.put("lake-gone", "numbers.parquet", parquet(v=[1, 2]))
    s3_server.put("lake-gone", "names.csv", b"name\nAnn\n")
    params = "{" + ", ".join(f"{k}: '{v}'" for k, v in s3_server.params().items()) + "}"
    manifest = f"""
        datasets:
          - {{from: s3://lake-gone/numbers.parquet, name: numbers, params: {params}}}
          - {{from: s3://lake-gone/names.csv, name: names, params: {params}}}
        views:
          - {{name: v, sql: SELECT * FROM numbers}}
    """
    async with running(tmp_path, manifest) as runtime:
        assert (await runtime.sql("SELECT sum(v) AS s FROM v")).json() == [{"s": 3}]
        assert (await runtime.sql("SELECT * FROM names")).json() == [{"name": "Ann"}]
        for key in ("numbers.parquet", "names.csv"):
            s3_server.client.delete_object(Bucket="lake-gone", Key=key)
        for table in ("numbers", "v", "names"):
            gone = await runtime.sql(f"SELECT count(*) AS n FROM {table}")
            assert gone.status_code == 500
            assert "missing in the object store" in gone.text


async def test_answers_of_jobs_are_kept_on_s3_and_expire_there(
    tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3_server.bucket("results-e2e")
    manifest = f"""
        runtime:
          jobs: {{retention: 1h}}
          scheduler:
            state_location: s3://results-e2e/caraway/
            params:
              s3_region: {REGION}
              s3_endpoint: {s3_server.endpoint}
              s3_key: {KEY}
              s3_secret: ${{secrets:S3_SECRET}}
              allow_http: true
    """

    def objects() -> list[str]:
        listed = s3_server.client.list_objects_v2(Bucket="results-e2e")
        return [each["Key"] for each in listed.get("Contents", [])]

    async with running(tmp_path, manifest, {"S3_SECRET": SECRET}) as runtime:
        sql = "SELECT value AS n FROM generate_series(1, 30000)"
        submitted = await runtime.api.post("/v1/queries", json={"sql": sql})
        path = f"/v1/queries/{submitted.json()['query_id']}"
        told = await runtime.api.get(f"{path}/status?wait=60")
        assert told.json()["status"] == "SUCCEEDED", told.text
        assert SECRET not in told.text
        accept = {"accept": "application/vnd.apache.arrow.stream"}
        whole = await runtime.api.get(f"{path}/results", headers=accept)
        assert pa.ipc.open_stream(whole.content).read_all().num_rows == 30_000
        assert len(objects()) == 2
        assert all(name.startswith("caraway/") for name in objects())
        sweeper = runtime.services.jobs.sweeper
        await sweeper.expire()
        assert objects()
        later = datetime.now(UTC) + timedelta(hours=2)
        monkeypatch.setattr(sweeper, "_clock", lambda: later)
        await sweeper.expire()
        assert not objects()
        assert (await runtime.api.get(f"{path}/results")).status_code == 410


async def test_versions_of_accelerated_datasets_are_kept_on_s3(
    tmp_path: Path, s3_server: S3Server
) -> None:
    s3_server.bucket("versions-e2e")
    (tmp_path / "numbers.parquet").write_bytes(parquet(n=list(range(100))))
    manifest = f"""
        datasets:
          - {{from: 'file:numbers.parquet', name: numbers, acceleration: {{engine: file}}}}
        runtime:
          scheduler:
            state_location: s3://versions-e2e/caraway
            params:
              s3_region: {REGION}
              s3_endpoint: {s3_server.endpoint}
              s3_key: {KEY}
              s3_secret: ${{secrets:S3_SECRET}}
              allow_http: true
    """

    for _ in range(2):
        async with running(tmp_path, manifest, {"S3_SECRET": SECRET}) as runtime:

            async def sum_of(runtime: Running = runtime) -> int:
                answer = await runtime.sql("SELECT sum(n) AS s FROM numbers")
                return int(answer.json()[0]["s"]) if answer.status_code == 200 else 0

            assert await eventually(sum_of, "the rows are read") == 4950
            listed = await runtime.api.get("/v1/datasets/numbers/acceleration")
            assert SECRET not in listed.text
        # The second time it is opened without its source.
        (tmp_path / "numbers.parquet").unlink(missing_ok=True)


async def test_runtimes_that_share_a_location_do_not_interfere(tmp_path: Path) -> None:
    manifest = f"runtime: {{scheduler: {{state_location: '{tmp_path}/shared'}}}}\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    async with running(tmp_path / "one", manifest) as one:
        submitted = await one.api.post("/v1/queries", json={"sql": "SELECT 1 AS a"})
        path = f"/v1/queries/{submitted.json()['query_id']}"
        told = (await one.api.get(f"{path}/status?wait=60")).json()
        assert told["status"] == "SUCCEEDED"
        async with running(tmp_path / "two", manifest) as two:
            works = two.services.jobs
            assert works is not None
            await works.sweeper.remove_orphans()
        assert (await one.api.get(f"{path}/results")).json()["data_array"] == [{"a": 1}]
