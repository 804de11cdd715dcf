"""Datasets that are an API over HTTP, from a real server in a thread."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError, QueryError
from caraway_core.tables import scanners
from caraway_core.tables.scanners import ColumnFilter, RowRequest
from caraway_plugins.sources.api import sending, table, turns
from tests.kit.api_server import ApiAnswer, ApiRequest, ApiServer
from tests.plugins.sources import reading

PEOPLE = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, {"id": 3, "name": None}]


def dataset(
    server: ApiServer, path: str, tmp_path: Path, *declared: pa.Field, **params: str
) -> reading.Dataset:
    return reading.Dataset("http", f"{server.address}{path}", tmp_path, params, declared)


def scan(of: reading.Dataset, request: RowRequest) -> list[dict[str, Any]]:
    """Read rows as an executor does that has a filter or a limit."""
    spec = of.resolve()
    found = [row for batch in scanners.of(spec).scan(spec, request) for row in batch.to_pylist()]
    return found


def cut(rows: list[Any], by: str = "offset") -> Callable[[ApiRequest], ApiAnswer]:
    """Answer with two rows at most, from an offset or of a page."""

    def answer(request: ApiRequest) -> ApiAnswer:
        at = int(request.params[by]) if by == "offset" else 2 * (int(request.params[by]) - 1)
        return ApiAnswer(rows[at : at + 2])

    return answer


def refusal(of: reading.Dataset) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        of.resolve()
    return caught.value


# Rows and their columns


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


# Pages


def test_pages_follow_the_link_header(server: ApiServer, tmp_path: Path) -> None:
    def answer(request: ApiRequest) -> ApiAnswer:
        if "after" in request.params:
            return ApiAnswer(PEOPLE[2:])
        return ApiAnswer(PEOPLE[:2], headers={"link": '</p?after=2>; rel="next", </>; rel="last"'})

    server.answers["/p"] = answer
    assert dataset(server, "/p", tmp_path).rows() == PEOPLE
    assert dataset(server, "/p", tmp_path, pagination="disabled").rows() == PEOPLE[:2]


def test_pages_follow_a_cursor(server: ApiServer, tmp_path: Path) -> None:
    def answer(request: ApiRequest) -> ApiAnswer:
        at = int(request.params.get("cursor", "0"))
        following = str(at + 2) if at + 2 < len(PEOPLE) else None
        return ApiAnswer({"data": PEOPLE[at : at + 2], "meta": {"next": following}})

    server.answers["/p"] = answer
    params = {
        "json_pointer": "/data",
        "pagination_next_pointer": "/meta/next",
        "pagination_token_param": "cursor",
    }
    assert dataset(server, "/p?x=1", tmp_path, **params).rows() == PEOPLE
    assert {each.params["x"] for each in server.requests} == {"1"}


def test_pages_follow_an_address_in_the_answer(server: ApiServer, tmp_path: Path) -> None:
    server.say("/p", {"data": PEOPLE[:2], "next": "/q"})
    server.say("/q", {"data": PEOPLE[2:]})
    params = {"pagination_data_pointer": "/data", "pagination_next_pointer": "/next"}
    assert dataset(server, "/p", tmp_path, **params).rows() == PEOPLE


@pytest.mark.parametrize(("by", "param"), [("offset", "offset_param"), ("page", "page_param")])
def test_pages_have_an_offset_or_a_number(
    by: str, param: str, server: ApiServer, tmp_path: Path
) -> None:
    server.answers["/p"] = cut(PEOPLE, by)
    params = {f"pagination_{param}": by}
    assert dataset(server, "/p", tmp_path, **params).rows() == PEOPLE
    # A server may return fewer rows than the request names, so only an empty page is the end.
    params |= {"pagination_size_param": "size", "pagination_page_size": "50"}
    assert dataset(server, "/p", tmp_path, **params).rows() == PEOPLE


def test_a_page_after_itself_and_too_many_pages_are_errors(
    server: ApiServer, tmp_path: Path
) -> None:
    server.say("/p", PEOPLE, link='</p>; rel="next"')
    with pytest.raises(QueryError, match="comes after itself"):
        scan(dataset(server, "/p", tmp_path), RowRequest(["id"]))
    server.answers["/q"] = cut(PEOPLE)
    params = {"pagination_offset_param": "offset", "pagination_max_pages": "1"}
    with pytest.raises(QueryError, match="more than 1 pages"):
        scan(dataset(server, "/q", tmp_path, **params), RowRequest(["id"]))


def test_a_limit_stops_paging(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/p"] = cut([{"id": number} for number in range(20)])
    params = {
        "pagination_offset_param": "offset",
        "pagination_size_param": "size",
        "pagination_page_size": "50",
    }
    of = dataset(server, "/p", tmp_path, **params)
    assert len(scan(of, RowRequest(["id"], limit=3))) == 4
    assert [each.params["size"] for each in server.requests] == ["50", "3", "3"]
    server.requests.clear()
    assert len(of.rows("SELECT * FROM t LIMIT 3")) == 3
    assert len(server.requests) < 6


# Filters


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


# Secrets


def test_headers_and_tokens_are_sent_and_never_shown(server: ApiServer, tmp_path: Path) -> None:
    server.say("/x", [{"a": 1}])
    params = {"http_headers": "X-Key: hidden", "http_auth_token": "hidden-too"}
    of = dataset(server, "/x?key=hidden", tmp_path, **params)
    assert of.rows() == [{"a": 1}]
    sent = server.requests[-1]
    assert (sent.headers["x-key"], sent.headers["authorization"]) == ("hidden", "Bearer hidden-too")
    assert "hidden" not in repr(of.resolve())
    login = {"http_username": "u", "http_password": "hidden"}
    dataset(server, "/x", tmp_path, **login).resolve()
    assert server.requests[-1].headers["authorization"] == "Basic dTpoaWRkZW4="
    server.answers["/x"] = lambda _: ApiAnswer({"said": "hidden"}, 401)
    found = refusal(of)
    assert found.type == "auth" and "hidden" not in found.message


def test_another_host_gets_no_secrets(server: ApiServer, other: ApiServer, tmp_path: Path) -> None:
    other.say("/p", PEOPLE)
    server.answers["/p"] = lambda _: ApiAnswer(b"", 302, {"location": f"{other.url}/p"})
    server.say("/q", PEOPLE, link=f'<{other.url}/p>; rel="next"')
    params = {"http_headers": "X-Key: hidden", "http_auth_token": "hidden"}
    assert dataset(server, "/p", tmp_path, **params).rows() == PEOPLE
    assert len(dataset(server, "/q", tmp_path, **params).rows()) == 6
    assert other.requests and "hidden" not in repr(other.requests)
    assert "x-key" in server.requests[-1].headers


def test_the_same_host_gets_them_after_a_redirect(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/p"] = lambda _: ApiAnswer(b"", 308, {"location": "/q"})
    server.say("/q", PEOPLE)
    assert dataset(server, "/p", tmp_path, http_auth_token="t").rows() == PEOPLE
    assert server.requests[-1].headers["authorization"] == "Bearer t"


def test_redirects_that_do_not_end_and_those_to_elsewhere_are_refused(
    server: ApiServer, tmp_path: Path
) -> None:
    server.answers["/p"] = lambda _: ApiAnswer(b"", 302, {"location": "/p"})
    assert "redirects too often" in refusal(dataset(server, "/p", tmp_path)).message
    for place in ("file:///etc/passwd", "http://u:p@127.0.0.1/", "gopher://x"):
        server.answers["/q"] = lambda _, to=place: ApiAnswer(b"", 302, {"location": to})  # type: ignore[misc] # each has its own
        assert "not one of the web" in refusal(dataset(server, "/q", tmp_path)).message


# Bad days


def test_a_busy_server_is_asked_again_after_the_time_it_names(
    server: ApiServer, tmp_path: Path
) -> None:
    for status, headers in ((429, {"retry-after": "0"}), (503, {"retry-after": "0"})):
        waiting = [ApiAnswer({}, status, headers)] * 3

        def answer(_: ApiRequest, waiting: list[ApiAnswer] = waiting) -> ApiAnswer:
            return waiting.pop() if waiting else ApiAnswer(PEOPLE)

        server.answers["/p"] = answer
        server.requests.clear()
        dataset(server, "/p", tmp_path).resolve()
        assert len(server.requests) == 4


def test_repetitions_and_waits_are_bounded(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/p"] = lambda _: ApiAnswer({}, 429, {"retry-after": "0"})
    found = refusal(dataset(server, "/p", tmp_path, max_retries="2"))
    assert found.type == "unavailable" and len(server.requests) == 3
    server.requests.clear()
    server.answers["/p"] = lambda _: ApiAnswer({}, 503, {"retry-after": "3600"})
    found = refusal(dataset(server, "/p", tmp_path))
    assert "asks to wait for 3600 s" in found.message and len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "type_"),
    [(400, "invalid"), (403, "auth"), (404, "not_found"), (500, "unavailable")],
)
def test_refusals_are_told_apart(
    status: int, type_: str, server: ApiServer, tmp_path: Path
) -> None:
    server.answers["/p"] = lambda _: ApiAnswer({}, status)
    assert refusal(dataset(server, "/p", tmp_path)).type == type_


def test_a_server_that_is_away_is_unavailable(tmp_path: Path) -> None:
    of = reading.Dataset("http", "127.0.0.1:1/x?key=hidden", tmp_path, {"max_retries": "0"})
    found = refusal(of)
    assert found.type == "unavailable" and "hidden" not in found.message


@pytest.mark.parametrize(
    "body", [b"<html>", b"[1", b'{"a": 1, "a": 2}', b"[NaN]", b"\xff", b"[" * 100 + b"]" * 100]
)
def test_what_is_no_json_is_refused(body: bytes, server: ApiServer, tmp_path: Path) -> None:
    server.say("/x", body)
    found = refusal(dataset(server, "/x", tmp_path))
    assert found.type == "invalid" and "JSON" in found.message


def test_large_pages_are_refused(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_MOST_BYTES", 100)
    server.say("/x", [{"a": "x" * 200}])
    assert refusal(dataset(server, "/x", tmp_path)).type == "unsupported"


def test_a_statement_that_ends_does_not_wait(server: ApiServer, tmp_path: Path) -> None:
    server.answers["/p"] = cut(PEOPLE)
    of = dataset(server, "/p", tmp_path, pagination_offset_param="offset")
    spec = of.resolve()
    rows = scanners.of(spec).scan(spec, RowRequest(["id"]))
    batches = iter(rows)
    next(batches)
    server.requests.clear()
    rows.close()
    with pytest.raises(QueryError, match="is not read any more"):
        next(batches)
    assert not server.requests


def test_a_statement_that_ends_while_the_server_is_busy_does_not_wait(
    server: ApiServer, tmp_path: Path
) -> None:
    server.answers["/p"] = cut(PEOPLE)
    spec = dataset(server, "/p", tmp_path, pagination_offset_param="offset").resolve()
    rows = scanners.of(spec).scan(spec, RowRequest(["id"]))

    def answer(_: ApiRequest) -> ApiAnswer:
        rows.close()
        return ApiAnswer({}, 429, {"retry-after": "100"})

    server.answers["/p"] = answer
    with pytest.raises(QueryError, match="is busy"):
        next(iter(rows))


# Params


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


@pytest.mark.parametrize("template", ["skip={offset}&limit={limit}", "page={page}&limit={limit}"])
def test_params_of_pages_can_be_written_as_a_query(
    template: str, server: ApiServer, tmp_path: Path
) -> None:
    by = template.partition("=")[0]

    def answer(request: ApiRequest) -> ApiAnswer:
        size, at = int(request.params["limit"]), int(request.params[by])
        start = at if by == "skip" else (at - 1) * size
        return ApiAnswer({"rows": PEOPLE[start : start + size]})

    server.answers["/p"] = answer
    params = {
        "pagination": "enabled",
        "pagination_query_params": template,
        "pagination_page_size": "2",
        "pagination_data_pointer": "/rows",
    }
    assert dataset(server, "/p", tmp_path, **params).rows() == PEOPLE
    wrong = {**params, "pagination_query_params": "x=1"}
    assert refusal(dataset(server, "/p", tmp_path, **wrong)).type == "invalid"


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

    monkeypatch.setattr(turns, "wait_s", wait_s)
    server.say("/p", PEOPLE)
    dataset(server, "/p", tmp_path, requests_per_second_limit="10").resolve()
    dataset(server, "/p", tmp_path, requests_per_minute_limit="30").resolve()
    dataset(server, "/p", tmp_path).resolve()
    assert seen == [0.1, 2.0, 0.0]
