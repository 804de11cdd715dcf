"""Submits jobs to schedulers of a cluster and reads their results."""

from collections.abc import Mapping
from typing import Any

import httpx
import pyarrow as pa

from tests.kit.deadlines import until
from tests.kit.fault_clusters import (
    BOUND_S,
    Served,
)


class Jobs:
    """The asynchronous query routes of one scheduler."""

    def __init__(self, served: Served) -> None:
        self._url = f"{served.url}/v1/queries"

    def submit(self, sql: str) -> str:
        got = httpx.post(self._url, json={"sql": sql}, timeout=60)
        assert got.status_code == 202, got.text
        return str(got.json()["query_id"])

    def status(self, query_id: str) -> Mapping[str, Any]:
        told: Mapping[str, Any] = self._get(f"/{query_id}/status").json()
        return told

    def until_running(self, query_id: str) -> None:
        until(lambda: self.status(query_id)["status"] == "RUNNING", "the job runs", 120)

    def ended(self, query_id: str) -> str:
        def look() -> str:
            status = self._get(f"/{query_id}/status?wait=5").json()
            return "" if status["status"] in ("PENDING", "RUNNING") else str(status)

        until(look, "the job is over", BOUND_S)
        return str(self.status(query_id)["status"])

    def rows(self, query_id: str) -> Any:
        return self._get(f"/{query_id}").json()["result"]["data_array"]

    def table(self, query_id: str) -> pa.Table:
        accept = {"accept": "application/vnd.apache.arrow.stream"}
        got = self._get(f"/{query_id}/results", headers=accept)
        return pa.ipc.open_stream(got.content).read_all()

    def _get(self, path: str, **options: Any) -> httpx.Response:
        return httpx.get(self._url + path, timeout=60, **options).raise_for_status()
