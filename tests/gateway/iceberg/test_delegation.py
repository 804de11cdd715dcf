"""Requests to S3 are signed only for files of a table that the key reads."""

import io
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

from caraway_core.errors import InvalidRequestError, QueryForbiddenError
from caraway_core.tables import StoreSpec
from caraway_gateway.iceberg import delegation, publishing
from caraway_gateway.iceberg.delegation import SignRequest
from tests.gateway.iceberg.signed_lakes import BASE, BUCKET, by, lake, manifest, parquet
from tests.kit import iceberg_reader
from tests.kit.deadlines import eventually
from tests.kit.iceberg_plans import scan_tasks
from tests.kit.runtime import Running, running
from tests.kit.s3 import KEY, REGION, SECRET, S3Server, s3_server

__all__ = ["lake", "s3_server"]
ASKS = {"x-iceberg-access-delegation": "vended-credentials, remote-signing"}
AWS = StoreSpec("s3", "lake", "alias", {"region": "eu-west-1"})
OWN = StoreSpec("s3", "lake", "alias", {"endpoint": "http://minio:9000"})


class Client:
    """A client that has a key of the runtime, and none of the store."""

    def __init__(self, runtime: Running, server: S3Server) -> None:
        self._runtime = runtime
        self._server = server

    async def sign(self, uri: str, table: str = "t", **given: Any) -> httpx.Response:
        key = given.pop("key", "ada")
        body = {"region": REGION, "method": "GET", "headers": {}, "uri": uri, **given}
        path = f"{BASE}/{table}/sign"
        return await self._runtime.api.post(path, json=body, headers=by(key))

    async def fetch(self, location: str, table: str = "t") -> bytes:
        uri = self.uri(location)
        async with httpx.AsyncClient() as plain:
            assert (await plain.get(uri)).status_code == 403
            answer = await self.sign(uri, table)
            assert answer.status_code == 200, answer.text
            found = await plain.get(answer.json()["uri"])
        assert found.status_code == 200, found.text
        return found.content

    def uri(self, location: str) -> str:
        key = location.removeprefix("s3://")
        return f"{self._server.endpoint}/{key}".replace("%", "%25").replace(" ", "%20")


async def test_files_of_a_table_are_read_without_credentials(
    tmp_path: Path, lake: S3Server
) -> None:
    text = manifest(lake, "access_delegation: [remote-signing]")
    async with running(tmp_path, text, {"S3_SECRET": SECRET}) as runtime:
        client = Client(runtime, lake)

        async def loaded() -> httpx.Response | None:
            answer = await runtime.api.get(f"{BASE}/t", headers={**by("ada"), **ASKS})
            return answer if answer.status_code == 200 else None

        answer = await eventually(loaded, "the dataset is loaded")
        assert answer is not None
        config, metadata = answer.json()["config"], answer.json()["metadata"]
        assert config["s3.signer.endpoint"] == "v1/caraway/namespaces/public/tables/t/sign"
        assert config["s3.remote-signing-enabled"] == "true"
        assert SECRET not in answer.text and KEY not in answer.text
        plain = await runtime.api.get(f"{BASE}/t", headers=by("ada"))
        assert "s3.signer" not in plain.json()["config"]
        listed = (await runtime.api.get("/v1/config", headers=by("ada"))).json()["endpoints"]
        assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign" in listed

        snapshot = iceberg_reader.snapshot(metadata)
        fetched = {where: await client.fetch(where) for where in
                   (answer.json()["metadata-location"], snapshot["manifest-list"])}  # fmt: skip
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(iceberg_reader, "local", lambda where: _stored(lake, where))
            (file,) = iceberg_reader.data_files(metadata)
        content = await client.fetch(file["file_path"])
        assert content == parquet(7) and all(fetched.values())
        # Rows of a planned scan are signed for the key that planned it.
        (task,) = await scan_tasks(runtime.api, f"{BASE}/people", by("ada"))
        where = task["data-file"]["file-path"]
        assert pq.read_table(io.BytesIO(await client.fetch(where, "people"))).num_rows == 1
        with pytest.MonkeyPatch.context() as patched:
            # Files are known by now. Requests do not make the runtime read their lists.
            patched.setattr(publishing, "scan_tasks", None)
            await client.sign(client.uri(file["file_path"]))
            await client.sign(f"{lake.endpoint}/{BUCKET}/t/secret.txt")
        await _refuses_what_is_not_of_the_table(client, lake, file["file_path"])
        unplanned = await client.sign(
            client.uri(task["data-file"]["file-path"]), "people", key="bob"
        )
        assert unplanned.status_code == 403


def _stored(lake: S3Server, where: str) -> bytes:
    key = where.removeprefix(f"s3://{BUCKET}/")
    found: bytes = lake.client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    return found


async def _refuses_what_is_not_of_the_table(client: Client, lake: S3Server, good: str) -> None:
    uri, start = client.uri(good), f"{lake.endpoint}/{BUCKET}"
    assert (await client.sign(uri)).status_code == 200
    assert (await client.sign(uri, method="head")).status_code == 200
    assert (await client.sign(f"{uri}?x-id=GetObject")).status_code == 200
    for wrong in (
        *(f"{uri}?{query}" for query in ("acl", "uploads", "uploadId=1", "torrent", "versionId=1",
          "x-id=PutObject", "response-content-type=text/html", "X-Amz-Expires=604800")),
        f"{uri}#x", f"{uri}x", f"{start}/", start, f"{start}?list-type=2", lake.endpoint,
        f"{start}/t/secret.txt", f"{start}/other/one.parquet", f"{start}/t/../other/one.parquet",
        f"{start}/t/%2e%2e/other/one.parquet", f"{start}//t/one.parquet",
        uri.replace("/t/", "/t/./"), uri.replace(BUCKET, "lake-iceberg"),
        uri.replace("127.0.0.1", "127.0.0.1.example.com"), uri.replace("http://", "http://u@"),
        uri.replace("http://", "ftp://"), "http://[", "", good,
        f"{start}/published/plans/", f"{start}/published/plans/{'0' * 32}/data/x.parquet",
    ):  # fmt: skip
        answer = await client.sign(wrong)
        assert (wrong, answer.status_code) == (wrong, 403)
        assert answer.json()["error"]["type"] == "ForbiddenException"
        assert "Signature" not in answer.text
    for method in ("PUT", "DELETE", "POST", "OPTIONS", "GET\r\nX: y"):
        assert (await client.sign(uri, method=method)).status_code == 403
    assert (await client.sign(uri, "other")).status_code == 403
    assert (await client.sign(uri, "none")).status_code == 404
    assert (await client.sign(uri, key="wrong")).status_code == 401
    assert (await client.sign(5)).status_code == 400  # type: ignore[arg-type] # a wrong one
    assert (await client.sign("x" * 10_000)).status_code == 400


async def test_nothing_is_signed_unless_the_manifest_says_so(
    tmp_path: Path, lake: S3Server
) -> None:
    text = manifest(lake, "snapshot_retention: 1h")
    async with running(tmp_path, text, {"S3_SECRET": SECRET}) as runtime:
        answer = await Client(runtime, lake).sign(f"{lake.endpoint}/{BUCKET}/other/one.parquet")
        assert answer.status_code == 403
        assert "'runtime.iceberg.access_delegation' does not have 'remote-signing'" in answer.text
        listed = (await runtime.api.get("/v1/config", headers=by("ada"))).json()["endpoints"]
        assert not any(each.endswith("/sign") for each in listed)

        async def loaded() -> httpx.Response | None:
            found = await runtime.api.get(f"{BASE}/t", headers={**by("ada"), **ASKS})
            return found if found.status_code == 200 else None

        found = await eventually(loaded, "the dataset is loaded")
        assert found is not None and "s3.signer" not in found.json()["config"]


@pytest.mark.parametrize(
    ("store", "uri", "key"),
    [
        (AWS, "https://s3.eu-west-1.amazonaws.com/lake/a/b%20c", "a/b c"),
        (AWS, "https://lake.s3.eu-west-1.amazonaws.com/a/b+c", "a/b+c"),
        (AWS, "https://lake.s3.amazonaws.com/a", "a"),
        (AWS, "https://lake.s3.us-east-1.amazonaws.com/a", None),
        (AWS, "https://lakes.s3.amazonaws.com/a", None),
        (AWS, "https://s3.amazonaws.com/lakes/a", None),
        (AWS, "https://s3.amazonaws.com.example.com/lake/a", None),
        (OWN, "http://minio:9000/lake/a", "a"),
        (OWN, "http://lake.minio:9000/a", "a"),
        (OWN, "http://MINIO:9000/lake/a", "a"),
        (OWN, "http://minio/lake/a", None),
        (OWN, "http://minio:9000/lake/%ff", None),
        (OWN, "https://s3.amazonaws.com/lake/a", None),
    ],
)
def test_a_uri_names_an_object_of_one_bucket(store: StoreSpec, uri: str, key: str | None) -> None:
    assert delegation.key_in(store, uri) == key


def test_only_reads_are_signed() -> None:
    assert SignRequest.from_document({"method": "get", "uri": "u"}) == SignRequest("GET", "u")
    with pytest.raises(QueryForbiddenError, match="GET and HEAD are"):
        SignRequest.from_document({"method": "PUT", "uri": "u"})
    with pytest.raises(InvalidRequestError):
        SignRequest.from_document({"uri": "u"})
    public = StoreSpec("s3", "lake", "alias", {"skip_signature": "true"})
    with pytest.raises(QueryForbiddenError, match="needs no signature"):
        delegation.signed(public, SignRequest("GET", "u"), "a")
