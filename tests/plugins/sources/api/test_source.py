"""Datasets that are an API over HTTP, from a real server in a thread."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from caraway_core.errors import QueryError
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources.api import table, waits
from tests.kit.api_server import ApiAnswer, ApiServer
from tests.plugins.sources.api.datasets import PEOPLE, cut, dataset, refusal, scan


def test_an_array_of_objects_is_a_table(server: ApiServer, tmp_path: Path) -> None:
    server.say("/people", PEOPLE)
    assert dataset(server, "/people", tmp_path).rows() == PEOPLE


def test_a_pointer_leads_to_the_rows(server: ApiServer, tmp_path: Path) -> None:
    server.say("/x.json", {"a/b": [{"rows": PEOPLE}]})
    assert dataset(server, "/x.json", tmp_path, json_pointer="/a~1b/0/rows").rows() == PEOPLE
    for params in ({"json_pointer": "/none"}, {"json_pointer": "/a~1b/7"}):
        assert refusal(dataset(server, "/x.json", tmp_path, **params)).type == "schema"
    assert refusal(dataset(server, "/x.json", tmp_path, json_pointer="a")).type == "invalid"


def test_one_object_is_one_row_and_null_is_none(server: ApiServer, tmp_path: Path) -> None:
    server.say("/one", {"id": 7})
    assert dataset(server, "/one", tmp_path).rows() == [{"id": 7}]
    server.say("/none", {"rows": None})
    of = dataset(server, "/none", tmp_path, pa.field("id", pa.int64()), json_pointer="/rows")
    assert of.rows() == []
    assert refusal(dataset(server, "/none", tmp_path, json_pointer="/rows")).type == "schema"


def test_nested_values_are_structs_and_lists(server: ApiServer, tmp_path: Path) -> None:
    row = {"id": 1, "by": {"name": "x", "tags": ["a", "b"]}, "n": [{"k": 1}, {"k": None}]}
    server.say("/nested", [row])
    of = dataset(server, "/nested", tmp_path)
    assert of.rows() == [row]
    assert of.rows("SELECT \"by\"['name'] AS x FROM t") == [{"x": "x"}]


def test_nested_objects_become_columns(server: ApiServer, tmp_path: Path) -> None:
    server.say("/nested", [{"id": 1, "by": {"name": "x", "at": {"city": "y"}}}])
    one = dataset(server, "/nested", tmp_path, unnest_depth="1").rows()
    assert one == [{"id": 1, "name": "x", "at": {"city": "y"}}]
    two = dataset(server, "/nested", tmp_path, unnest_depth="2").rows()
    assert two == [{"id": 1, "name": "x", "city": "y"}]
    server.say("/twice", [{"id": 1, "by": {"id": 2}}])
    found = refusal(dataset(server, "/twice", tmp_path, unnest_depth="1"))
    assert "the name 'id' twice" in found.message


def test_declared_types_apply(server: ApiServer, tmp_path: Path) -> None:
    text = b'[{"price": 0.1, "big": "12.5", "at": "2024-02-29T12:00:00+01:00", "day": "2024-02-29",'
    text += b' "any": {"a": 1}, "map": {"k": 1}, "whole": 2.0}]'
    server.say("/x", text)
    fields = [
        pa.field("price", pa.decimal128(30, 2)),
        pa.field("big", pa.decimal128(10, 1)),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("day", pa.date32()),
        pa.field("any", pa.string()),
        pa.field("map", pa.map_(pa.string(), pa.int64())),
        pa.field("whole", pa.int32()),
        pa.field("absent", pa.string()),
    ]
    assert dataset(server, "/x", tmp_path, *fields).rows("SELECT * FROM t") == [
        {
            "price": Decimal("0.10"),
            "big": Decimal("12.5"),
            "at": datetime(2024, 2, 29, 11, tzinfo=UTC),
            "day": date(2024, 2, 29),
            "any": '{"a": 1}',
            "map": [("k", 1)],
            "whole": 2,
            "absent": None,
        }
    ]


@pytest.mark.parametrize(
    ("first", "later"),
    [(1, 1.5), (1, "1"), (1, True), ("a", 1), (1.5, True), ({"a": 1}, [1]), ([1], ["a"]),
     (True, 1), (1, 2**70), ({"a": 1}, {"a": "x"})],
)  # fmt: skip
def test_a_type_that_changes_between_pages_is_an_error(
    first: object, later: object, server: ApiServer, tmp_path: Path
) -> None:
    server.answers["/x"] = cut([{"v": first}, {"v": first}, {"v": later}])
    of = dataset(server, "/x", tmp_path, pagination_offset_param="offset")
    with pytest.raises(QueryError, match="a value in column 'v' that does not fit"):
        scan(of, RowRequest(["v"]))


def test_more_pages_can_give_the_columns(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/x"] = cut([{"v": 1}, {"v": None}, {"v": 1.5}, {"w": "a"}])
    params = {"pagination_offset_param": "offset", "schema_infer_max_records": "3"}
    schema = dataset(server, "/x", tmp_path, **params).resolve().schema
    assert schema.names == ["v", "w"] and schema.field("v").type == pa.float64()


def test_fields_that_arrive_later_are_left_out(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/x"] = cut([{"v": 1}, {"v": 2}, {"v": 3, "w": 4}])
    of = dataset(server, "/x", tmp_path, pagination_offset_param="offset")
    assert of.rows() == [{"v": 1}, {"v": 2}, {"v": 3}]


FILTERS = "state=state; at>=since"


def test_filters_are_sent_where_the_params_say_so(server: ApiServer, tmp_path: Path) -> None:
    rows = [{"state": "open", "at": "2024-01-01T00:00:00Z", "id": 1},
            {"state": "shut", "at": "2024-02-01T00:00:00Z", "id": 2}]  # fmt: skip
    server.answers["/x"] = lambda request: ApiAnswer(
        [row for row in rows if request.params.get("state", row["state"]) == row["state"]]
    )
    at = pa.field("at", pa.timestamp("us", "UTC"))
    of = dataset(server, "/x", tmp_path, at, filter_params=FILTERS)
    assert of.rows("SELECT id FROM t WHERE state = 'open'") == [{"id": 1}]
    assert server.requests[-1].params == {"state": "open"}
    sql = "SELECT id FROM t WHERE at >= TIMESTAMPTZ '2024-01-15T00:00:00Z' AND id <> 7"
    assert of.rows(sql) == [{"id": 2}]
    assert server.requests[-1].params == {"since": "2024-01-15T00:00:00Z"}


def test_limits_count_the_rows_that_pass(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/p"] = cut([{"id": number} for number in range(20)])
    of = dataset(server, "/p", tmp_path, pagination_offset_param="offset")
    request = RowRequest(["id"], filters=[ColumnFilter("id", ">=", 9)], limit=2)
    assert scan(of, request) == [{"id": 9}, {"id": 10}, {"id": 11}]


@pytest.mark.parametrize(
    ("filter_", "ids"),
    [(ColumnFilter("name", "=", "a"), [1]), (ColumnFilter("name", "<>", "a"), [2]),
     (ColumnFilter("name", "is null"), [3]), (ColumnFilter("name", "is not null"), [1, 2]),
     (ColumnFilter("name", "in", ("b", "c")), [2]), (ColumnFilter("id", ">", 1), [2, 3]),
     (ColumnFilter("id", "<=", 1), [1])],
)  # fmt: skip
def test_rows_that_do_not_pass_are_left_out(
    filter_: ColumnFilter, ids: list[int], server: ApiServer, tmp_path: Path
) -> None:
    server.say("/people", PEOPLE)
    found = scan(dataset(server, "/people", tmp_path), RowRequest(["id"], filters=[filter_]))
    assert [each["id"] for each in found] == ids


def test_two_filters_of_one_param_are_not_sent(server: ApiServer, tmp_path: Path) -> None:
    server.say("/x", [{"n": 5}])
    of = dataset(server, "/x", tmp_path, filter_params="n>=from")
    filters = [ColumnFilter("n", ">=", 1), ColumnFilter("n", ">=", 3)]
    assert scan(of, RowRequest(["n"], filters=filters)) == [{"n": 5}]
    assert server.requests[-1].params == {}


@pytest.mark.parametrize(
    "params",
    [
        {"pagination_offset_param": "o", "pagination_page_param": "p"},
        {"pagination_token_param": "t"},
        {"pagination_page_size": "10"},
        {"pagination": "disabled", "pagination_offset_param": "o"},
        {"pagination": "perhaps"},
        {"filter_params": "state"},
        {"filter_params": "x=key"},
        {"unnest_depth": "-1"},
    ],
)
def test_params_that_do_not_go_together_are_refused(
    params: dict[str, str], server: ApiServer, tmp_path: Path
) -> None:
    assert refusal(dataset(server, "/x?key=1", tmp_path, **params)).type == "invalid"
    assert not server.requests


def test_a_file_stays_a_file(server: ApiServer, tmp_path: Path) -> None:
    server.say("/x.json", PEOPLE)
    server.say("/x", json.dumps(PEOPLE).encode())
    for path, params in (("/x.json", {}), ("/x", {"file_format": "json"})):
        of = dataset(server, path, tmp_path, **params)
        assert of.rows() == PEOPLE and not isinstance(of.resolve(), table.ApiTable)
    assert isinstance(dataset(server, "/x", tmp_path).resolve(), table.ApiTable)


def test_requests_of_statements_are_refused_with_the_reason(
    server: ApiServer, tmp_path: Path
) -> None:
    server.say("/p", PEOPLE)
    off = dataset(server, "/p", tmp_path, request_query_filters="disabled")
    assert off.rows() == PEOPLE
    params = {"file_format": "json", "allowed_request_paths": "/x"}
    found = refusal(dataset(server, "/p", tmp_path, **params))
    assert found.type == "unsupported" and "a dataset for each path" in found.message


def test_requests_are_as_far_apart_as_the_params_say(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[float] = []

    def wait_s(_url: str, interval_s: float) -> float:
        seen.append(interval_s)
        return 0.0

    monkeypatch.setattr(waits, "turn_wait_s", wait_s)
    server.say("/p", PEOPLE)
    dataset(server, "/p", tmp_path, requests_per_second_limit="10").resolve()
    dataset(server, "/p", tmp_path, requests_per_minute_limit="30").resolve()
    dataset(server, "/p", tmp_path).resolve()
    assert seen == [0.1, 2.0, 0.0]
