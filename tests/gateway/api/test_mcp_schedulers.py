"""MCP clients whose requests go to another scheduler than before."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from caraway_gateway.composition import app
from tests.gateway.api.mcp_requests import URL, text
from tests.kit.scheduler_pairs import pair

MANIFEST = """\
runtime:
  auth: {api-key: {keys: ["writer:rw"]}}
"""
QUERY = {"query": "SELECT 7 AS n"}


class Balancer(httpx2.AsyncBaseTransport):
    """Sends requests to one of several schedulers, and remembers the statuses."""

    def __init__(self, *applications: Any) -> None:
        self._transports = [httpx2.ASGITransport(each) for each in applications]
        self.chosen = 0
        self.statuses: list[int] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._transports[self.chosen].handle_async_request(request)
        self.statuses.append(response.status_code)
        return response


async def test_clients_go_on_at_another_scheduler(tmp_path: Path) -> None:
    async with pair(tmp_path, MANIFEST) as schedulers:
        balancer = Balancer(*(app.build_api(each.running.services) for each in schedulers))

        async def call(client: Client) -> Any:
            return json.loads(text(await client.call_tool("sql", QUERY)))

        headers = {"x-api-key": "writer"}
        async with httpx2.AsyncClient(transport=balancer, headers=headers) as http:
            # Clients of 2026-07-28 have no session, and notice nothing.
            async with Client(streamable_http_client(URL, http_client=http), mode="auto") as client:
                for chosen in (0, 1, 0):
                    balancer.chosen = chosen
                    assert await call(client) == [{"n": 7}]
            # Another scheduler does not know the session of an older client: it gets 404, and
            # begins again.
            for chosen, other in ((0, 1), (1, 0)):
                balancer.chosen = chosen
                connection = streamable_http_client(URL, http_client=http)
                async with Client(connection, mode="legacy") as client:
                    assert await call(client) == [{"n": 7}]
                    balancer.chosen, balancer.statuses = other, []
                    with pytest.raises(MCPError, match=r"(?i)session"):
                        await call(client)
                    assert balancer.statuses == [404]
                    connection = streamable_http_client(URL, http_client=http)
                    async with Client(connection, mode="legacy") as again:
                        assert await call(again) == [{"n": 7}]
                    balancer.chosen = chosen
                    assert await call(client) == [{"n": 7}]
