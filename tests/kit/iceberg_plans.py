"""Plans scans of the Iceberg catalog as a client does."""

from collections.abc import Mapping
from typing import Any

import httpx

NOTHING: Mapping[str, str] = {}


async def scan_tasks(
    api: httpx.AsyncClient, table: str, headers: Mapping[str, str] = NOTHING, **body: object
) -> list[dict[str, Any]]:
    """Return all files of the plan of a table, given by its URL: an export can take its time."""
    answer = await api.post(f"{table}/plan", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    page = answer.json()
    assert (page["status"], page["delete-files"]) == ("completed", [])
    found: list[dict[str, Any]] = page["file-scan-tasks"]
    while following := page.get("plan-tasks"):
        (token,) = following
        answer = await api.post(f"{table}/tasks", json={"plan-task": token}, headers=headers)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page["file-scan-tasks"]
    return found
