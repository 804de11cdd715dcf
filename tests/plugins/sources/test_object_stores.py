"""S3 over a real server, and Google and Azure over emulated servers."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from caraway_core.errors import DatasetError
from tests.kit.s3 import S3Server
from tests.plugins.sources import reading, writing

ONE = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
TWO = [{"id": 3, "name": "c"}]
FORMATS = pytest.mark.parametrize(
    "suffix", [".parquet", ".csv", ".json", ".ndjson", ".avro", ".ipc"]
)

Make = Callable[..., reading.Dataset]


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    name = f"b{uuid.uuid4().hex}"
    s3_server.bucket(name)
    return name


@pytest.fixture
def dataset(s3_server: S3Server, bucket: str, tmp_path: Path) -> Make:
    def make(key: str, **params: str) -> reading.Dataset:
        return reading.Dataset("s3", f"{bucket}/{key}", tmp_path, s3_server.params() | params)

    return make


@FORMATS
def test_keys_prefixes_and_patterns(
    suffix: str, s3_server: S3Server, bucket: str, dataset: Make
) -> None:
    write = writing.FORMATS[suffix]
    s3_server.put(bucket, f"d/1{suffix}", write(ONE))
    s3_server.put(bucket, f"d/a b/[2]%20{suffix}", write(TWO))
    s3_server.put(bucket, f"d/_skipped/3{suffix}", write(TWO))
    s3_server.put(bucket, f"dd/3{suffix}", write(TWO))
    assert dataset(f"d/1{suffix}").rows() == ONE
    assert dataset("d").rows() == dataset("d/").rows() == [*ONE, *TWO]
    assert dataset(f"d/*{suffix}").rows() == ONE
    assert dataset(f"d/**/*{suffix}").rows() == [*ONE, *TWO]
    assert dataset(f"d*/?{suffix}").rows() == [*ONE, *TWO]
    assert dataset(f"d/a b/[2]%20{suffix}").rows() == TWO


@FORMATS
def test_partitions_and_new_keys(
    suffix: str, s3_server: S3Server, bucket: str, dataset: Make
) -> None:
    write = writing.FORMATS[suffix]
    s3_server.put(bucket, f"p/y=2023/m=01/x{suffix}", write(ONE))
    s3_server.put(bucket, f"p/y=2024/m=02/x{suffix}", write(TWO))
    assert dataset("p").rows("SELECT id, y, m FROM t WHERE y = 2024") == [
        {"id": 3, "y": 2024, "m": 2}
    ]
    before = dataset("p").fingerprint()
    s3_server.put(bucket, f"p/y=2025/m=02/x{suffix}", write(TWO))
    assert dataset("p").fingerprint() != before
    assert dataset("p").rows("SELECT count(*) AS n FROM t") == [{"n": 4}]


@FORMATS
def test_drift(suffix: str, s3_server: S3Server, bucket: str, dataset: Make) -> None:
    write = writing.FORMATS[suffix]
    s3_server.put(bucket, f"1{suffix}", write([{"a": 1, "s": "x"}]))
    s3_server.put(bucket, f"2{suffix}", write([{"b": 2.5, "a": 1.5}]))
    assert dataset("").rows() == [
        {"a": 1.0, "s": "x", "b": None},
        {"a": 1.5, "s": None, "b": 2.5},
    ]


def test_a_new_key_of_a_prefix_shows_in_the_next_query(
    s3_server: S3Server, bucket: str, dataset: Make
) -> None:
    s3_server.put(bucket, "d/1.parquet", writing.parquet(ONE))
    context = reading.context(dataset("d").resolve())
    assert context.sql("SELECT count(*) AS n FROM t").to_pydict() == {"n": [2]}
    s3_server.put(bucket, "d/2.parquet", writing.parquet(TWO))
    assert context.sql("SELECT count(*) AS n FROM t").to_pydict() == {"n": [3]}


def test_missing_buckets_and_keys_are_not_found(
    s3_server: S3Server, bucket: str, dataset: Make, tmp_path: Path
) -> None:
    nowhere = reading.Dataset("s3", "no-such-bucket/x.csv", tmp_path, s3_server.params())
    folder = reading.Dataset("s3", "no-such-bucket/d/", tmp_path, s3_server.params())
    for missing in (nowhere, folder, dataset("x.csv"), dataset("d/"), dataset("*.csv")):
        with pytest.raises(DatasetError, match=r"s3://") as caught:
            missing.resolve()
        assert caught.value.type == "not_found"


def test_public_files_need_no_keys_and_private_ones_are_refused(
    s3_server: S3Server, bucket: str, tmp_path: Path
) -> None:
    s3_server.put(bucket, "open.csv", b"a\n1\n", is_public=True)
    s3_server.put(bucket, "closed.csv", b"a\n1\n")
    params = {"s3_endpoint": s3_server.endpoint, "s3_auth": "public"}
    assert reading.Dataset("s3", f"{bucket}/open.csv", tmp_path, params).rows() == [{"a": 1}]
    with pytest.raises(DatasetError) as caught:
        reading.Dataset("s3", f"{bucket}/closed.csv", tmp_path, params).resolve()
    assert caught.value.type == "auth"


def test_a_server_that_is_away_is_unavailable_and_no_secret_is_told(tmp_path: Path) -> None:
    params = {
        "s3_endpoint": "http://127.0.0.1:1",
        "s3_key": "AKIAHIDDEN",
        "s3_secret": "hidden-secret",
        "client_timeout": "1s",
    }
    with pytest.raises(DatasetError) as caught:
        reading.Dataset("s3", "b-1/x.csv", tmp_path, params).resolve()
    assert caught.value.type == "unavailable"
    assert "HIDDEN" not in caught.value.message and "hidden" not in caught.value.message


def test_google_over_a_server_of_its_protocol(
    s3_server: S3Server, bucket: str, tmp_path: Path
) -> None:
    # Google Cloud Storage's XML API is compatible with S3; the key file can set another server.
    account = tmp_path / "account.json"
    account.write_text(
        json.dumps(
            {
                "gcs_base_url": s3_server.endpoint,
                "disable_oauth": True,
                "client_email": "",
                "private_key": "",
                "private_key_id": "",
            }
        )
    )
    s3_server.put(bucket, "d/y=1/x.parquet", writing.parquet(ONE), is_public=True)
    s3_server.put(bucket, "d/y=2/x.parquet", writing.parquet(TWO), is_public=True)
    params = {"google_service_account": str(account)}
    rows = reading.Dataset("gs", f"{bucket}/d", tmp_path, params).rows()
    assert [(row["id"], row["y"]) for row in rows] == [(1, 1), (2, 1), (3, 2)]
    glob = reading.Dataset("gs", f"{bucket}/d/*/x.parquet", tmp_path, params)
    assert len(glob.rows()) == 3


def test_params_of_another_store_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="did you mean 's3_region'"):
        reading.Dataset("s3", "b/x.csv", tmp_path, {"s3_regoin": "x"}).resolve()
    with pytest.raises(DatasetError, match="no gs param 's3_key'"):
        reading.Dataset("gs", "b/x.csv", tmp_path, {"s3_key": "x"}).resolve()
    with pytest.raises(DatasetError, match="s3_auth is 'key'"):
        reading.Dataset("s3", "b/x.csv", tmp_path, {"s3_auth": "key"}).resolve()
    with pytest.raises(DatasetError, match="storage account"):
        reading.Dataset("abfss", "b/x.csv", tmp_path, {}).resolve()
