"""The routes of a refresh, and the answers of a server that refreshes."""

import json
from typing import Any

from tests.client.runtime import Answer

STANDING = "GET /v1/datasets/orders/acceleration"
REFRESH = "POST /v1/datasets/orders/acceleration/refresh"


def stands(version: int, **more: Any) -> dict[str, Any]:
    return {"version": {"number": version, "rows": 10 * version, "bytes": 99}, **more}


def busy(version: int, rows: int = 0, **more: Any) -> dict[str, Any]:
    return stands(version, refresh={"attempt": 1, "rows": rows, "bytes": rows}, **more)


def told(*documents: dict[str, Any]) -> list[Answer]:
    return [Answer(body=json.dumps(document).encode()) for document in documents]
