"""Tables of Glue as `from: glue`, with the params that manifests of others have."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import boto3
import pyarrow as pa
import pytest
from pyiceberg.catalog.glue import GlueCatalog

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.catalog_sources import CatalogRequest
from caraway_core.protocols.sources import SourceRequest
from caraway_plugins.sources.iceberg import named_glue
from caraway_plugins.sources.iceberg.named_glue import NamedGlueCatalog, NamedGlueSource
from tests.kit import glue_server
from tests.kit.engine import rows, session
from tests.kit.glue_server import KEY, REGION, SECRET, GlueServer

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "who": ["ada", "bob"]})
BUCKET = "icebergs-of-glue"


@pytest.fixture(scope="module")
def glue() -> Iterator[GlueServer]:
    """Serve Glue with two tables, of which one is in a bucket and one is not of Iceberg."""
    with glue_server.serving() as server:
        s3 = boto3.client(
            "s3", endpoint_url=server.endpoint, region_name=REGION,
            aws_access_key_id=KEY, aws_secret_access_key=SECRET,
        )  # fmt: skip
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.close()
        catalog = GlueCatalog(
            "g", client=server.client,
            **{
                "s3.endpoint": server.endpoint, "s3.region": REGION,
                "s3.access-key-id": KEY, "s3.secret-access-key": SECRET,
            },
        )  # fmt: skip
        catalog.create_namespace("shop")
        table = catalog.create_table("shop.orders", ROWS.schema, f"s3://{BUCKET}/orders")
        table.append(ROWS)
        server.client.create_table(
            DatabaseName="shop",
            TableInput={"Name": "csv", "StorageDescriptor": {"Location": "s3://icebergs/csv/"}},
        )
        yield server


def request(
    glue: GlueServer, folder: Path, path: str = "shop.orders", **params: str
) -> SourceRequest:
    values = {**glue.named_params, "s3_endpoint": glue.endpoint, **params}
    return SourceRequest(TableName("d"), "glue", path, values, (), "read", folder, folder)


def failed(asked: SourceRequest) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        NamedGlueSource().resolve(asked)
    assert SECRET not in caught.value.message and "iceberg_glue" not in caught.value.message
    return caught.value


async def test_the_login_of_glue_is_that_of_the_bucket(glue: GlueServer, tmp_path: Path) -> None:
    asked = request(glue, tmp_path)
    over = session({"t": NamedGlueSource().resolve(asked)})
    found = await rows(over, "SELECT * FROM t ORDER BY id")
    assert found == ROWS.to_pylist()
    first = NamedGlueSource().fingerprint(asked)
    assert first is not None and first.startswith(f"s3://{BUCKET}/orders/metadata/")


async def test_tables_of_a_catalog(glue: GlueServer, tmp_path: Path) -> None:
    values = {**glue.named_params, "s3_endpoint": glue.endpoint}
    for path in ("", "shop"):
        asked = CatalogRequest("c", "glue", path, values, tmp_path, tmp_path)
        (listed,) = NamedGlueCatalog().tables(asked)
        assert listed.title == "shop.orders"
        over = session({"t": NamedGlueCatalog().resolve(asked, listed)})
        assert await rows(over, "SELECT count(*) AS n FROM t") == [{"n": 2}]


def test_errors_have_the_names_of_the_manifest(
    glue: GlueServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("caraway_plugins.sources.iceberg.glue._ATTEMPTS", 1)
    none = failed(request(glue, tmp_path, "shop.none"))
    assert none.type == "not_found" and "glue_region" in none.message
    half = failed(request(glue, tmp_path, glue_secret=""))
    assert half.type == "invalid" and "glue_key and glue_secret" in half.message
    csv = failed(request(glue, tmp_path, "shop.csv"))
    assert csv.type == "invalid" and "read its files with `from: s3://icebergs/csv/`" in csv.message
    nowhere = failed(request(glue, tmp_path, glue_endpoint="not an address"))
    assert "glue_region" in nowhere.message
    away = failed(request(glue, tmp_path, glue_endpoint="http://127.0.0.1:1"))
    assert away.type == "unavailable"


@pytest.mark.parametrize("path", ["", "orders", "shop.", ".orders"])
def test_paths_without_a_table(glue: GlueServer, tmp_path: Path, path: str) -> None:
    assert "write glue:DATABASE.TABLE" in failed(request(glue, tmp_path, path)).message


def test_unknown_params_are_refused(glue: GlueServer, tmp_path: Path) -> None:
    assert "glue_region" in failed(request(glue, tmp_path, glue_regoin="x")).message
    wrong = request(glue, tmp_path, iceberg_token="x")
    assert "iceberg_token" in failed(wrong).message


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"glue_region": "r"}, {"s3_region": "r", "s3_auth": "iam_role"}),
        (
            {"glue_key": "k", "glue_secret": "s", "glue_session_token": "t"},
            {"s3_key": "k", "s3_secret": "s", "s3_session_token": "t"},
        ),
        (
            {"glue_key": "k", "glue_secret": "s", "s3_key": "a", "s3_secret": "b"},
            {"s3_key": "a", "s3_secret": "b"},
        ),
        ({"glue_region": "r", "s3_region": "q", "s3_auth": "public"},
         {"s3_region": "q", "s3_auth": "public"}),
        (
            {"glue_key": "k", "glue_secret": "s", "glue_session_token": "t", "s3_key": "a"},
            {"s3_key": "a"},
        ),
    ],
)  # fmt: skip
def test_values_of_buckets(given: Mapping[str, str], expected: Mapping[str, str]) -> None:
    found = named_glue._translated(given)
    assert {key: value for key, value in found.items() if key.startswith("s3_")} == expected
    assert not any(key.startswith("glue_") for key in found)
