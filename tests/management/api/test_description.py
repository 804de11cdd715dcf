"""The description is complete, and the answers of generated requests conform to it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.kit import management
from tests.kit.served_management import served

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ENDING = frozenset(
    # After these, the caller or its organization is of no use to the next requests.
    {"delete_organization", "leave_organization", "delete_user", "delete_token", "delete_session"}
)


def test_the_description_is_whole() -> None:
    document = management.declared_app().openapi()
    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    for reference in _references(document):
        assert reference.rpartition("/")[2] in schemas
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    names = [each["operationId"] for each in operations]
    assert len(names) == len(set(names))
    assert [each["operationId"] for each in operations if not each.get("description")] == []
    for each in operations:
        assert {"4XX", "5XX"} <= set(each["responses"])
        assert "422" not in each["responses"]


def test_the_description_has_other_paths_and_a_page(tmp_path: Path) -> None:
    url = management.prepared_embedded_url(tmp_path)
    with management.installation(url, is_prepared=True) as made:
        whole = made.client.get("/openapi.json").json()
        assert made.client.get("/v1/docs/openapi.json").json() == whole
        page = made.client.get("/v1/docs")
        assert page.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        for path in whole["paths"]:
            assert f"{path}</code>" in page.text


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference
        for each in value.values():
            yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


@pytest.mark.parametrize("examples", [2, pytest.param(30, marks=pytest.mark.full)])
def test_generated_requests_get_what_the_description_promises(
    tmp_path: Path, examples: int
) -> None:
    with served(tmp_path) as (installation, url):
        owner = installation.add_user(is_administrator=True)
        installation.add_org("acme", owner)
        token = installation.sign_in(owner).token
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        wrong: list[str] = []
        for result in schema.get_all_operations():
            operation = result.ok()
            if operation.definition.raw["operationId"].removesuffix("_of_apps") in ENDING:
                continue
            try:
                _conformance(operation, examples, f"Bearer {token}")()
            except Exception as exc:
                wrong.append(f"{operation.label}: {exc}")
        assert wrong == [], "\n\n".join(wrong)
        assert installation.sign_in(owner).get("/v1/limits").status_code == 200


def _conformance(operation: Any, examples: int, authorization: str) -> Callable[[], None]:
    """Return a test of one operation with generated requests, the same ones each time."""

    @given(case=operation.as_strategy())
    @settings(max_examples=examples, deadline=None, derandomize=True, database=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    def conforms(case: Any) -> None:
        headers = {"Authorization": authorization}
        case.call_and_validate(checks=CHECKS, headers=headers, timeout=60)

    return conforms
