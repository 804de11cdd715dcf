"""ETag and If-Match: a change that was made from an old state of a resource is refused."""

from typing import Annotated, Any

from fastapi import Depends, Header
from starlette.requests import Request
from starlette.responses import Response

from caraway_management.domain.refusals import RefusedError


async def _declare(
    if_match: Annotated[
        str | None,
        Header(description="The ETag of the state that is changed: 412 `changed` if it is stale."),
    ] = None,
) -> None:
    """Declare the header in the description; the change itself compares it."""


TAKES_IF_MATCH: list[Any] = [Depends(_declare)]
"""The `dependencies` of a route that calls `check_if_match`."""


def set_etag(response: Response, revision: int) -> None:
    """Add the ETag of a revision to a response."""
    response.headers["etag"] = etag(revision)


def etag(revision: int) -> str:
    """Return the ETag of a revision."""
    return f'"{revision}"'


def check_if_match(request: Request, revision: int | None) -> None:
    """Check that the request was made from this revision, if it says from which.

    `revision` is None if the resource does not exist.

    Raises:
        RefusedError: it was made from another one: 412.
    """
    given = request.headers.get("if-match")
    if given is None or (given.strip() == "*" and revision is not None):
        return
    if revision is None or etag(revision) not in [each.strip() for each in given.split(",")]:
        raise RefusedError(
            412, "changed since it was read; read it again and repeat the change", "changed"
        )
