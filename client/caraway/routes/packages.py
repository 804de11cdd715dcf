"""Has a runtime make a package: a manifest of a git repository and its files, as a zip file."""

import json

from caraway.requests import retries
from caraway.requests.transport import ApiRequest, Transport

_LONGEST_S = 90.0
"""The server gives up earlier, and says so."""


def generate(transport: Transport, source: str, git_token: str | None) -> bytes:
    """Return the zip file of a package."""
    params = {} if git_token is None else {"git_token": git_token}
    request = ApiRequest(
        "POST", "/v1/packages/generate", accept="application/zip",
        body=json.dumps({"from": source, "params": params}).encode(),
        content_type="application/json", timeout_s=_LONGEST_S,
    )  # fmt: skip
    return transport.content(request, retries.reads(transport.max_retries))
