"""Lists the snapshots of accelerated datasets, and chooses the current one."""

import json
from dataclasses import dataclass
from urllib.parse import quote

from caraway.requests import parsing, retries
from caraway.requests.parsing import Row
from caraway.requests.transport import ApiRequest, Transport

_JSON = "application/json"
_LONGEST_CHOICE_S = 630.0
"""The server gives up earlier, and says so."""


@dataclass(frozen=True, slots=True)
class SnapshotApi:
    """The routes of snapshots."""

    transport: Transport

    def fetch_last(self, dataset: str, limit: int) -> list[Row]:
        """Return the last snapshots of a dataset, the oldest first."""
        request = ApiRequest("GET", _path(dataset), accept=_JSON, query={"limit": str(limit)})
        return parsing.parse_list(self._text(request), "snapshots")

    def fetch(self, dataset: str, snapshot_id: int) -> Row:
        """Return one snapshot."""
        request = ApiRequest("GET", f"{_path(dataset)}/{snapshot_id}", accept=_JSON)
        return parsing.parse_object(self._text(request))

    def choose(self, dataset: str, snapshot_id: int) -> str:
        """Have a dataset read from a snapshot, and return the server's message."""
        body = json.dumps({"snapshot_id": snapshot_id}).encode()
        request = ApiRequest(
            "POST", f"{_path(dataset)}/current", accept=_JSON, body=body, content_type=_JSON,
            timeout_s=_LONGEST_CHOICE_S,
        )  # fmt: skip
        return str(parsing.parse_object(self._text(request)).get("message", ""))

    def _text(self, request: ApiRequest) -> str:
        # A choice that is answered with 503 has changed nothing.
        return self.transport.text(request, retries.reads(self.transport.max_retries))


def _path(dataset: str) -> str:
    return f"/v1/datasets/{quote(dataset, safe='')}/acceleration/snapshots"
