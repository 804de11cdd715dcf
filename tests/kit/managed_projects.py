"""Projects of a served management service, as their owners use them."""

from dataclasses import dataclass
from typing import Any

import httpx

from caraway.management.client import Management
from tests.kit import deadlines
from tests.kit.management_process import START_S

PLAIN = "version: v1\nkind: Caraway\nname: shop\n"


@dataclass
class Project:
    """A project and the client of its owner."""

    api: Management
    id: int

    def endpoint(self) -> str:
        found: str = self.api.get_project(self.id)["endpoint"]
        return found

    def key(self, number: int) -> str:
        found: str = self.api.get_api_keys(self.id)[("api_key", "api_key_2")[number - 1]]
        return found

    def deploy(self) -> dict[str, Any]:
        return self.ended(self.api.create_deployment(self.id)["id"])

    def ended(self, deployment_id: int) -> dict[str, Any]:
        return self.api.wait_for_deployment(self.id, deployment_id, START_S)

    def passed_through(self, sql: str) -> list[Any]:
        """Return the rows of a query that goes through the service."""
        query = self.api.submit_query_of_project(self.id, sql=sql)["query_id"]

        def ended() -> Any:
            found = self.api.get_query_of_project(self.id, query)
            return found if found["status"] in ("SUCCEEDED", "FAILED") else None

        found = deadlines.until(ended, "the end of the query", START_S)
        rows: list[Any] = found["result"]["data_array"]
        return rows


def status_of(
    endpoint: str, key: str, client: httpx.Client | None = None, sql: str = "SELECT 1"
) -> int:
    """Return the status of a statement that is sent with a key; 0 if nothing listens."""
    try:
        return (client or httpx).post(
            f"{endpoint}/v1/sql", content=sql, timeout=60,
            headers={"content-type": "text/plain", "x-api-key": key},
        ).status_code  # fmt: skip
    except httpx.ConnectError:
        return 0
