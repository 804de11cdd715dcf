"""Pages of an API, and the params that name them."""

from pathlib import Path

import pytest

from caraway_core.errors import QueryError
from caraway_core.tables.scanners import RowRequest
from tests.kit.api_server import ApiAnswer, ApiRequest, ApiServer
from tests.plugins.sources.api.datasets import PEOPLE, cut, dataset, refusal, scan


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
