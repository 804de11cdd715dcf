import asyncio
import inspect
from typing import Any

import pytest

import caraway
from caraway import AsyncManagement, Management
from caraway.errors import ApiError
from caraway.management.routes import Routes
from caraway_core.errors import CarawayError
from tests.client.runtime import Answer, FakeRuntime
from tests.kit.management import Installation

PAGE = 100


def test_both_clients_are_names_of_the_package() -> None:
    assert caraway.Management is Management
    assert caraway.AsyncManagement is AsyncManagement


def test_a_project_is_created_changed_and_deleted(management: Management) -> None:
    made = management.create_project(name="sales", description="old")
    changed = management.update_project(made["id"], description="new")
    management.delete_project(made["id"])

    assert (changed["name"], changed["description"]) == ("sales", "new")
    with pytest.raises(ApiError) as refused:
        management.get_project(made["id"])
    assert refused.value.status == 404


def test_null_is_sent_and_what_is_left_out_stays(management: Management) -> None:
    made = management.create_project(name="sales", description="old", replicas=2)

    changed = management.update_project(made["id"], description=None)

    assert (changed["description"], changed["config"]["replicas"]) == ("", 2)


def test_a_refusal_has_its_code_and_fields(management: Management) -> None:
    with pytest.raises(ApiError) as refused:
        management.create_project(name="x")

    assert refused.value.status == 400
    assert "name" in refused.value.details["fieldErrors"]


def test_the_organization_of_the_client_is_named(url: str, token: str) -> None:
    with Management(token, url=url, org="elsewhere", max_retries=0) as other:
        with pytest.raises(ApiError) as refused:
            other.list_projects()

    assert "elsewhere" in refused.value.message


def test_what_is_not_given_comes_from_variables(
    url: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARAWAY_MANAGEMENT_URL", url)
    monkeypatch.setenv("CARAWAY_MANAGEMENT_TOKEN", token)
    monkeypatch.setenv("CARAWAY_ORG", "acme")

    with Management() as found:
        assert (found.url, found.org) == (url, "acme")
        assert found.list_organizations()["orgs"][0]["name"] == "acme"


def test_a_list_is_read_page_by_page(management: Management) -> None:
    for number in range(3):
        management.create_project(name=f"sales-{number}")

    found = management.every(management.list_projects, limit=2)

    assert [each["name"] for each in found] == ["sales-0", "sales-1", "sales-2"]


def test_a_list_with_a_cursor_is_read_to_its_end(runtime: FakeRuntime) -> None:
    pages = [b'{"activity": [{"id": 2}], "next_cursor": "c2"}',
             b'{"activity": [{"id": 1}], "next_cursor": null}']  # fmt: skip
    runtime.answers("GET /v1/activity", *(Answer(body=page) for page in pages))
    with Management("t", url=runtime.endpoint) as found:

        def fetch(*, limit: int | None = None, cursor: str | None = None) -> Any:
            from caraway.management.calls import Call

            return found._object(
                Call("GET", "/v1/activity", query={"limit": limit, "cursor": cursor})
            )

        assert [each["id"] for each in found.every(fetch)] == [2, 1]
    assert [each.query.get("cursor") for each in runtime.asked] == [None, "c2"]


def test_a_project_is_found_by_its_name(management: Management) -> None:
    made = management.create_project(name="Sales")

    assert management.find_project("sALES") == made
    text = f"version: v1\nkind: Caraway\nname: sales\n# {'a' * 40_000}\n"
    management.update_project(made["id"], manifest=text)
    assert management.find_project("sales")["config"]["manifest"] == text
    with pytest.raises(CarawayError, match="no project 'other'"):
        management.find_project("other")


def test_the_token_is_sent_as_bearer_and_not_as_an_api_key(runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/orgs", Answer(body=b'{"orgs": []}'))

    with Management("secret", url=runtime.endpoint) as found:
        found.list_organizations()

    headers = runtime.asked[0].headers
    assert headers["authorization"] == "Bearer secret"
    assert "x-api-key" not in headers


def test_a_post_is_sent_again_with_its_key(runtime: FakeRuntime) -> None:
    runtime.answers(
        "POST /v1/projects",
        Answer(breaks_off=True, body=b"{}", headers={"Content-Length": "100"}),
        Answer(201, b'{"id": 7}'),
    )
    with Management("t", url=runtime.endpoint, sleep=lambda _: None) as found:
        assert found.create_project(name="sales") == {"id": 7}

    keys = [each.headers["idempotency-key"] for each in runtime.asked]
    assert len(keys) == 2 and keys[0] == keys[1]


def test_a_delete_that_may_have_been_carried_out_is_not_sent_again(runtime: FakeRuntime) -> None:
    runtime.answers("DELETE /v1/projects/7", Answer(502, b'{"error": "bad gateway"}'))
    with Management("t", url=runtime.endpoint, sleep=lambda _: None) as found:
        with pytest.raises(ApiError):
            found.delete_project(7)

    assert len(runtime.asked) == 1


def test_the_client_for_asyncio_has_the_same_methods() -> None:
    names = {
        name
        for name, _ in inspect.getmembers(Management, inspect.isfunction)
        if not name.startswith("_")
    }

    assert names <= set(dir(AsyncManagement))
    assert {name for name in names if name in dir(Routes)}


def test_the_client_for_asyncio_sends_the_same_requests(
    url: str, token: str, installation: Installation
) -> None:
    async def use() -> list[str]:
        async with AsyncManagement(token, url=url) as found:
            made = await found.create_project(name="sales")
            await found.update_project(made["id"], description="d")
            assert (await found.find_project("sales"))["description"] == "d"
            names = [each["name"] async for each in found.every(found.list_projects)]
            await found.delete_project(made["id"])
            return names

    assert asyncio.run(use()) == ["sales"]
