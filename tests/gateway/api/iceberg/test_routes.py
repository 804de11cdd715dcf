"""The Iceberg REST protocol: names, pages, errors, and tables with their rows."""

from typing import Any

import pytest

from tests.kit import iceberg_reader
from tests.kit.deadlines import eventually
from tests.kit.runtime import Running

BASE = "/v1/caraway/namespaces"


async def error(runtime: Running, method: str, path: str, **given: Any) -> tuple[int, str, str]:
    response = await runtime.api.request(method, path, **given)
    found = response.json()["error"]
    assert response.status_code == found["code"]
    return found["code"], found["type"], found["message"]


async def test_names_are_lists_and_pages_follow_one_another(runtime: Running) -> None:
    everything = (await runtime.api.get(BASE)).json()
    assert everything == {"namespaces": [["public"], ["sales"]], "next-page-token": None}
    loaded = (await runtime.api.get(f"{BASE}/sales")).json()
    assert loaded == {"namespace": ["sales"], "properties": {}}
    assert (await runtime.api.get(f"{BASE}?parent=public")).json()["namespaces"] == []
    whole = (await runtime.api.get(f"{BASE}/public/tables")).json()
    assert whole["identifiers"][0] == {"namespace": ["public"], "name": "broken"}
    names, token, pages = [], "", 0
    while token is not None:
        answer = await runtime.api.get(
            f"{BASE}/public/tables", params={"pageToken": token, "pageSize": 4}
        )
        names += answer.json()["identifiers"]
        token, pages = answer.json()["next-page-token"], pages + 1
    assert names == whole["identifiers"]
    assert pages == 2
    views = (await runtime.api.get(f"{BASE}/public/views")).json()
    assert [each["name"] for each in views["identifiers"]] == ["dear", "spans"]


async def test_existence_has_a_status_and_no_body(runtime: Running) -> None:
    for path, status in [
        ("public", 204), ("none", 404), ("a%1F%1F", 400), ("caraway%1Fpublic", 404),
        ("public/tables/trips", 204), ("public/tables/dear", 204), ("none/tables/trips", 404),
        ("public/views/dear", 204), ("public/views/trips", 404),
    ]:  # fmt: skip
        response = await runtime.api.head(f"{BASE}/{path}")
        assert (path, response.status_code, response.content) == (path, status, b"")


async def test_errors_are_those_of_the_protocol(runtime: Running) -> None:
    no_such = "NoSuch{}Exception".format
    for path, kind in [
        ("none", "Namespace"), ("public%1Ftrips", "Namespace"), ("none/tables", "Namespace"),
        ("public/tables/none", "Table"), ("none/tables/trips", "Table"),
        ("public/tables/sales.trips", "Table"), ("public/views/trips", "View"),
    ]:  # fmt: skip
        assert (await error(runtime, "GET", f"{BASE}/{path}"))[:2] == (404, no_such(kind))
    assert (await error(runtime, "GET", f"{BASE}/%1F"))[:2] == (400, "BadRequestException")
    assert (await error(runtime, "GET", f"{BASE}?pageToken=ours"))[0] == 400
    assert (await error(runtime, "GET", f"{BASE}?pageSize=0"))[:2] == (400, "BadRequestException")
    elsewhere = await error(runtime, "GET", "/v1/other/namespaces")
    assert elsewhere[0] == 404 and "its prefix is 'caraway'" in elsewhere[2]
    assert (await runtime.api.head("/v1/other/namespaces/public")).status_code == 404
    assert (await error(runtime, "GET", "/v1/caraway/nothing"))[:2] == (404, "NotFoundException")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "namespaces"),
        ("DELETE", "namespaces/public"),
        ("POST", "namespaces/public/properties"),
        ("POST", "namespaces/public/tables"),
        ("POST", "namespaces/public/register"),
        ("POST", "namespaces/public/tables/trips"),
        ("DELETE", "namespaces/public/tables/trips"),
        ("POST", "tables/rename"),
        ("POST", "namespaces/public/views"),
        ("DELETE", "namespaces/public/views/dear"),
        ("POST", "transactions/commit"),
    ],
)
async def test_writes_are_refused_as_the_protocol_has_it(
    runtime: Running, method: str, path: str
) -> None:
    status, kind, message = await error(runtime, method, f"/v1/caraway/{path}", json={})
    assert (status, kind) == (406, "UnsupportedOperationException")
    assert "the catalog is read-only" in message


async def test_a_table_over_parquet_has_the_rows_of_sql(runtime: Running) -> None:
    response = await runtime.api.get(f"{BASE}/public/tables/trips")
    metadata = response.json()["metadata"]
    rows = sorted(iceberg_reader.rows(metadata), key=lambda row: (row["city"], row["fare"]))
    sql = await runtime.sql("SELECT id, fare, city FROM trips ORDER BY city, fare")
    assert rows == sql.json()
    assert [row["city"] for row in rows] == ["Bern", "Bern", "New York"]
    assert metadata["partition-specs"][0]["fields"][0]["name"] == "city"
    assert metadata["properties"]["comment"] == "All trips."
    assert metadata["schemas"][0]["fields"][1]["doc"] == "In euros."
    assert metadata["snapshots"][0]["summary"]["total-records"] == "3"
    assert "readers need the same paths" in metadata["properties"]["caraway.rows"]


async def test_what_did_not_change_is_not_sent_again(runtime: Running) -> None:
    first = await runtime.api.get(f"{BASE}/public/tables/trips")
    tag = first.headers["etag"]
    again = await runtime.api.get(f"{BASE}/public/tables/trips", headers={"if-none-match": tag})
    assert (again.status_code, again.content) == (304, b"")


async def test_tables_without_files_cannot_be_taken_for_empty_ones(runtime: Running) -> None:
    metadata = (await runtime.api.get(f"{BASE}/public/tables/people")).json()["metadata"]
    assert "another form than Parquet files" in metadata["properties"]["caraway.rows"]
    assert [each["name"] for each in metadata["schemas"][0]["fields"]] == ["id", "name"]
    listed = metadata["snapshots"][0]["manifest-list"]
    assert listed == "caraway://people/rows-are-not-in-files"


async def test_accelerated_datasets_have_the_rows_of_sql(runtime: Running) -> None:
    async def loaded() -> Any:
        response = await runtime.api.get(f"{BASE}/public/tables/quick")
        return response.status_code == 200 and response.json()["metadata"]

    rows = iceberg_reader.rows(await eventually(loaded, "the dataset is loaded"))
    sql = await runtime.sql("SELECT id, fare, city FROM quick ORDER BY city, fare")
    assert sorted(rows, key=lambda row: (row["city"], row["fare"])) == sql.json()


@pytest.mark.parametrize(
    ("name", "words", "type_"),
    [
        ("odd", "column 'a' is uint64", "decimal(20, 0)"),
        ("mixed", "column 'a' is int64 in a file and double in the table", "double"),
    ],
)
async def test_files_that_engines_read_otherwise_are_not_given_to_them(
    runtime: Running, name: str, words: str, type_: str
) -> None:
    metadata = (await runtime.api.get(f"{BASE}/public/tables/{name}")).json()["metadata"]
    assert words in metadata["properties"]["caraway.rows"]
    assert "accelerate it, or" in metadata["properties"]["caraway.rows"]
    assert [each["type"] for each in metadata["schemas"][0]["fields"]] == [type_]
    assert "rows-are-not-in-files" in metadata["snapshots"][0]["manifest-list"]


async def test_types_without_a_form_are_refused_by_name(runtime: Running) -> None:
    for path in ("public/tables/spans", "public/views/spans"):
        status, kind, message = await error(runtime, "GET", f"{BASE}/{path}")
        assert (status, kind) == (406, "UnsupportedOperationException")
        assert "'spans' cannot be a table of Iceberg: column 'i' is" in message


async def test_a_dataset_in_error_is_away_with_its_reason(runtime: Running) -> None:
    status, kind, message = await error(runtime, "GET", f"{BASE}/public/tables/broken")
    assert (status, kind) == (503, "ServiceUnavailableException")
    assert "dataset 'broken' is in the error state" in message


async def test_a_view_has_its_sql_and_columns(runtime: Running) -> None:
    metadata = (await runtime.api.get(f"{BASE}/public/views/dear")).json()["metadata"]
    (version,) = metadata["versions"]
    (representation,) = version["representations"]
    assert representation["sql"].startswith("SELECT city, count(*) AS n FROM trips")
    assert (representation["dialect"], version["default-namespace"]) == ("caraway", ["public"])
    fields = [(each["name"], each["type"]) for each in metadata["schemas"][0]["fields"]]
    assert fields == [("city", "string"), ("n", "long")]
