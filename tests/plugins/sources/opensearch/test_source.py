"""Indexes, read from servers of both products."""

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_core.loading import registry
from caraway_core.protocols.sources import Source, SourceRequest
from caraway_core.tables import scanners
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources import key_ranges
from caraway_plugins.sources.documents.table import DocumentTable
from caraway_plugins.sources.opensearch.reading import SearchReads
from tests.kit import search_server
from tests.kit.engine import rows, session
from tests.kit.search_server import SearchServer

KEYWORD = {"type": "keyword"}
PROPERTIES: dict[str, Any] = {
    "name": {"type": "text", "fields": {"raw": {"type": "keyword", "ignore_above": 5}}},
    "status": {"type": "keyword", "normalizer": "lowercase"},
    "kind": {"type": "keyword", "null_value": "none"},
    "number": {"type": "long"},
    "ratio": {"type": "float"},
    "at": {"type": "date"},
    "paid": {"type": "boolean"},
    "tags": KEYWORD,
    "address": {"type": "ip"},
    "spot": {"type": "geo_point"},
    "buyer": {"properties": {"city": KEYWORD, "zip": {"type": "integer"}}},
    "items": {"type": "nested", "properties": {"sku": KEYWORD, "count": {"type": "long"}}},
    "extra": {"type": "object", "enabled": False},
}
DOCUMENTS: list[dict[str, Any]] = [
    {
        "name": "it's", "status": "Open", "kind": "a", "number": 1, "ratio": 0.5, "paid": True,
        "at": "2024-02-29T12:30:15.123Z", "tags": ["a", None], "address": "::1",
        "spot": {"lat": 1.5, "lon": 2}, "buyer": {"city": "Bern", "zip": 3000},
        "items": [{"sku": "x", "count": 2}, {"sku": "y"}], "extra": {"deep": [1, {}]},
    },
    {
        "name": "longer than five", "status": "open", "number": "2", "at": 1_700_000_000_000,
        "tags": "b", "buyer.city": "Thun", "items": {"sku": "z"}, "spot": "1.5,2", "paid": "",
    },
    {"status": None, "number": 2**60, "at": "0001-01-01", "tags": [], "address": "10.0.0.1"},
]  # fmt: skip


@pytest.fixture(scope="module")
def orders(server: SearchServer) -> SearchServer:
    server.put("orders", DOCUMENTS, PROPERTIES, shards=2)
    return server


def _source(request: SourceRequest) -> Source:
    made: Source = registry.SOURCES.load(request.connector)()
    return made


def _table(request: SourceRequest) -> DocumentTable:
    table = _source(request).resolve(request)
    assert isinstance(table, DocumentTable)
    return table


def _in_pages(table: DocumentTable, page: int) -> DocumentTable:
    assert isinstance(table.reads, SearchReads)
    return replace(table, reads=replace(table.reads, page=page))


async def test_columns_and_rows(orders: SearchServer) -> None:
    table = _table(orders.request("orders"))
    assert {each.name: each.type for each in table.schema} == {
        "_id": pa.string(), "name": pa.string(), "status": pa.string(), "kind": pa.string(),
        "number": pa.int64(), "ratio": pa.float64(), "at": pa.timestamp("us", "UTC"),
        "paid": pa.bool_(), "tags": pa.list_(pa.string()), "address": pa.string(),
        "spot": pa.string(), "buyer": pa.struct({"city": pa.string(), "zip": pa.int32()}),
        "items": pa.list_(pa.struct({"count": pa.int64(), "sku": pa.string()})),
        "extra": pa.string(),
    }  # fmt: skip
    found = await rows(session({"t": table}), "SELECT * FROM t ORDER BY _id")
    assert [each["number"] for each in found] == [1, 2, 2**60]
    assert [each["tags"] for each in found] == [["a", None], ["b"], []]
    assert [each["paid"] for each in found] == [True, False, None]
    assert [each["spot"] for each in found] == ['{"lat": 1.5, "lon": 2}', "1.5,2", None]
    assert found[0]["extra"] == '{"deep": [1, {}]}'
    assert found[1]["buyer"] == {"city": "Thun", "zip": None}
    assert found[0]["items"] == [{"count": 2, "sku": "x"}, {"count": None, "sku": "y"}]
    assert found[1]["items"] == [{"count": None, "sku": "z"}]
    assert (found[2]["buyer"], found[2]["at"].year) == (None, 1)


@pytest.mark.parametrize(
    ("condition", "numbers"),
    [
        ("_id = '1'", [1]),
        ("_id > '0'", [1, 2]),
        ("name = 'it''s'", [0]),
        ("name = 'longer than five'", [1]),
        ("name > 'j'", [1]),
        ("name <> 'it''s'", [1]),
        ("name IS NULL", [2]),
        ("name IS NOT NULL", [0, 1]),
        ("status = 'open'", [1]),
        ("status <> 'open'", [0]),
        ("status > 'A' AND status < 'a'", [0]),
        ("kind IS NULL", [1, 2]),
        ("kind = 'none'", []),
        ("number = 1152921504606846976", [2]),
        ("number IN (1, 2)", [0, 1]),
        ("at = TIMESTAMPTZ '2024-02-29T12:30:15.123Z'", [0]),
        ("at < TIMESTAMPTZ '2024-02-29T12:30:15.1231Z'", [0, 1, 2]),
        ("at > TIMESTAMPTZ '2024-02-29T12:30:15.1229Z'", [0]),
        ("at < TIMESTAMPTZ '1900-01-01T00:00:00Z'", [2]),
        ("NOT paid", [1]),
        ("address = '::1'", [0]),
        ("address = '0:0:0:0:0:0:0:1'", []),
        ("tags IS NOT NULL", [0, 1, 2]),
        ("buyer.city = 'Thun'", [1]),
        ("ratio IS NOT NULL", [0]),
    ],
)
async def test_filters(orders: SearchServer, condition: str, numbers: list[int]) -> None:
    over = session({"t": _table(orders.request("orders"))})
    found = await rows(over, f"SELECT _id FROM t WHERE {condition} ORDER BY _id")
    assert found == [{"_id": str(number)} for number in numbers]


async def test_declared_columns_are_all(orders: SearchServer) -> None:
    declared = [
        pa.field("buyer.city", pa.string()), pa.field("items.sku", pa.list_(pa.string())),
        pa.field("at", pa.timestamp("us")), pa.field("number", pa.decimal128(20, 0)),
        pa.field("buyer", pa.string()), pa.field("none", pa.int64()),
    ]  # fmt: skip
    over = session({"t": _table(orders.request("orders", *declared))})
    (found,) = await rows(over, "SELECT * FROM t WHERE \"buyer.city\" = 'Bern'")
    assert (found["buyer.city"], found["items.sku"]) == ("Bern", ["x", "y"])
    assert (found["number"], found["none"]) == (1, None)
    assert found["at"].isoformat() == "2024-02-29T12:30:15.123000"
    assert found["buyer"] == '{"city": "Bern", "zip": 3000}'


async def test_pages_limits_and_closing(server: SearchServer) -> None:
    server.put("many", ({"number": number} for number in range(3_500)), shards=3)
    table = _in_pages(_table(server.request("many")), 1_000)
    expected = [{"n": 3_500, "s": sum(range(3_500)), "d": 3_500}]
    sql = "SELECT count(*) AS n, sum(number) AS s, count(DISTINCT _id) AS d FROM t"
    assert await rows(session({"t": table}), sql) == expected
    batches = list(scanners.of(table).scan(table, RowRequest(["number"], limit=2)))
    assert sum(each.num_rows for each in batches) == 2
    scan = scanners.of(table).scan(table, RowRequest(["number"]))
    some = iter(scan)
    assert next(some).num_rows == 1_000
    scan.close()
    assert list(some) == []


def test_pages_are_as_large_as_an_index_allows(server: SearchServer) -> None:
    server.put("small", ({"number": number} for number in range(20)))
    server.put("large", ({"text": "x" * 100_000} for _ in range(2)))
    server.put("narrow", ({"number": number} for number in range(20)))
    server.call("PUT", "/narrow/_settings", {"index": {"max_result_window": 7}})
    pages = {"small": 5_000, "large": 100, "narrow": 7}
    for name, page in pages.items():
        table = _table(server.request(name))
        assert isinstance(table.reads, SearchReads)
        assert table.reads.page == page
        found = scanners.of(table).scan(table, RowRequest(["_id"]))
        assert sum(batch.num_rows for batch in found) == table.row_count


async def test_points_in_time_are_ended(server: SearchServer) -> None:
    server.put("ended", [{"number": 1}])
    table = _table(server.request("ended"))
    assert await rows(session({"t": table}), "SELECT number FROM t") == [{"number": 1}]
    scan = scanners.of(table).scan(table, RowRequest(["number"]))
    some = iter(scan)
    next(some)
    scan.close()
    assert list(some) == []
    found = server.call("GET", "/_nodes/stats/indices/search")["nodes"].values()
    assert [each["indices"]["search"]["open_contexts"] for each in found] == [0]


def test_point_in_time_shows_one_state(server: SearchServer) -> None:
    server.put("state", ({"number": number} for number in range(2_500)))
    table = _in_pages(_table(server.request("state")), 1_000)
    batches = iter(scanners.of(table).scan(table, RowRequest(["number"])))
    found = next(batches)["number"].to_pylist()
    server.call("DELETE", "/state/_doc/2400?refresh=true")
    found += [number for batch in batches for number in batch["number"].to_pylist()]
    assert sorted(found) == list(range(2_500))


async def test_shards_of_large_indexes_are_splits(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.put("sharded", ({"number": number} for number in range(2_000)), shards=4)
    monkeypatch.setattr(key_ranges, "SPLIT_BYTES", 4_096)
    table = _table(server.request("sharded"))
    assert [each.name for each in table.splits] == [f"sharded {n} of 4" for n in range(4)]
    assert sum(each.size_bytes for each in table.splits) <= table.size_bytes
    found: list[int] = []
    for each in table.splits:
        part = scanners.of(table).scan(table, RowRequest(["number"], [each]))
        numbers = [number for batch in part for number in batch["number"].to_pylist()]
        assert numbers
        found += numbers
    assert sorted(found) == list(range(2_000))


async def test_patterns_and_aliases(server: SearchServer) -> None:
    server.put("logs-1", [{"n": 1, "x": "a"}, {"n": 2}], {"x": KEYWORD}, shards=2)
    server.put("logs-2", [{"n": 3, "x": 7, "more": True}], {"x": {"type": "long"}})
    aliases = {
        "actions": [
            {"add": {"index": "logs-1", "alias": "first", "filter": {"term": {"n": 1}}}},
            {"add": {"index": "logs-*", "alias": "all-logs"}},
            {"add": {"index": "logs-*", "alias": "some-logs", "filter": {"term": {"n": 1}}}},
        ]
    }
    server.call("POST", "/_aliases", aliases)
    for name in ("logs-*", "all-logs", "logs-1,logs-2"):
        over = session({"t": _table(server.request(name))})
        found = await rows(over, "SELECT _index, n, x, more FROM t WHERE n > 1 ORDER BY n")
        assert found == [
            {"_index": "logs-1", "n": 2, "x": None, "more": None},
            {"_index": "logs-2", "n": 3, "x": "7", "more": True},
        ]
        assert await rows(over, "SELECT n FROM t WHERE x = '7'") == [{"n": 3}]
    over = session({"t": _table(server.request("first"))})
    assert await rows(over, "SELECT n FROM t") == [{"n": 1}]
    with pytest.raises(DatasetError, match="'some-logs', an alias with a filter") as caught:
        _table(server.request("some-logs"))
    assert caught.value.type == "unsupported"


async def test_other_shards_are_noticed(server: SearchServer) -> None:
    server.put("grows", [{"n": 1}])
    server.call("POST", "/_aliases", {"actions": [{"add": {"index": "grows", "alias": "rolled"}}]})
    request = server.request("rolled")
    table, before = _table(request), _source(request).fingerprint(request)
    server.put("grows", [{"n": 1}, {"n": 2}], shards=2)
    server.call("POST", "/_aliases", {"actions": [{"add": {"index": "grows", "alias": "rolled"}}]})
    with pytest.raises(QueryError, match="other indexes or shards"):
        await rows(session({"t": table}), "SELECT n FROM t")
    assert _source(request).fingerprint(request) != before


async def test_copies_and_excluded_fields(server: SearchServer) -> None:
    properties = {
        "a": {"type": "keyword", "copy_to": "b"}, "b": KEYWORD, "secret": KEYWORD,
        "also": {"type": "alias", "path": "a"},
    }  # fmt: skip
    documents = [{"a": "x", "b": "y", "secret": "s"}, {"a": "x"}]
    server.put("copied", documents, properties, _source={"excludes": ["sec*"]})
    table = _table(server.request("copied"))
    assert table.schema.names == ["_id", "a", "b"]
    over = session({"t": table})
    assert await rows(over, "SELECT _id FROM t WHERE b <> 'x'") == [{"_id": "0"}]
    assert await rows(over, "SELECT _id FROM t WHERE b IS NULL") == [{"_id": "1"}]


@pytest.mark.parametrize("source", [{"enabled": False}, {"includes": ["a"]}])
def test_documents_that_are_not_kept(server: SearchServer, source: Any) -> None:
    server.put("kept-not", [{"a": 1}], _source=source)
    with pytest.raises(DatasetError, match="limits `_source`") as caught:
        _table(server.request("kept-not"))
    assert caught.value.type == "unsupported"


async def test_value_that_does_not_fit_is_an_error(server: SearchServer) -> None:
    server.put("unfit", [{"x": 1.5}], {"x": {"type": "long"}})
    with pytest.raises(QueryError, match=r"column 'x' .*number with a point.*declare"):
        await rows(session({"t": _table(server.request("unfit"))}), "SELECT x FROM t")
    table = _table(server.request("unfit", pa.field("x", pa.float64())))
    assert await rows(session({"t": table}), "SELECT x FROM t") == [{"x": 1.5}]


def test_index_without_fields_is_an_error(server: SearchServer) -> None:
    server.put("empty", [])
    table = _table(server.request("empty"))
    assert (table.schema.names, table.row_count) == (["_id"], 0)


@pytest.mark.parametrize(
    ("path", "params", "type_"),
    [
        ("none", {}, "not_found"),
        ("none-*", {}, "not_found"),
        ("", {}, "invalid"),
        ("_cluster", {}, "invalid"),
        ("orders,_all", {}, "invalid"),
        ("..", {}, "invalid"),
        ("orders/_delete_by_query", {}, "not_found"),
        ("orders?x=1", {}, "not_found"),
        ("orders", {"endpoint": ""}, "invalid"),
        ("orders", {"endpoint": "host:9200"}, "invalid"),
        ("orders", {"endpoint": "http://u:hunter2@127.0.0.1:1"}, "invalid"),
        ("orders", {"endpoint": "http://127.0.0.1:1", "max_retries": "0"}, "unavailable"),
        ("orders", {"user": "u", "pass": "hunter2", "api_key": "hunter2"}, "invalid"),
        ("orders", {"sslrootcert": "none.pem"}, "invalid"),
    ],
)
def test_what_cannot_be_read_has_the_code_of_its_kind(
    orders: SearchServer, path: str, params: Mapping[str, str], type_: str
) -> None:
    given = {
        name if name == "max_retries" else f"{orders.product}_{name}": value
        for name, value in params.items()
    }
    with pytest.raises(DatasetError) as caught:
        _table(orders.request(path, **given))
    assert caught.value.type == type_, caught.value.message
    assert "hunter2" not in caught.value.message


def test_table_travels_and_shows_no_secret(orders: SearchServer) -> None:
    login = {f"{orders.product}_user": "u", f"{orders.product}_pass": "hunter2"}
    table = _table(orders.request("orders", **login))
    assert "hunter2" not in repr(table) and pickle.loads(pickle.dumps(table)) == table


def test_server_that_dies_while_rows_flow_is_an_error() -> None:
    with search_server.serving("opensearch") as server:
        server.put("many", ({"text": "x" * 100} for _ in range(3_000)))
        table = _table(server.request("many", client_timeout="1s", max_retries="0"))
        table = _in_pages(table, 1_000)
        batches = iter(scanners.of(table).scan(table, RowRequest(["text"])))
        next(batches)
        server.kill()
        with pytest.raises(QueryError, match="cannot be reached"):
            list(batches)


def test_filters_are_applied_by_the_server(orders: SearchServer) -> None:
    """A document that would be an error is not sent."""
    orders.put("filtered", [{"n": 1, "x": 1}, {"n": 2, "x": 1.5}], {"x": {"type": "long"}})
    table = _table(orders.request("filtered"))
    request = RowRequest(["x"], filters=[ColumnFilter("n", "=", 1)])
    assert [each.to_pydict() for each in scanners.of(table).scan(table, request)] == [{"x": [1]}]
