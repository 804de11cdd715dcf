"""Parameters and documented responses that routes of the Iceberg REST protocol share."""

from typing import Annotated, Any

from fastapi import Path, Query

from caraway_gateway.api.iceberg import errors, pages

BASE = "/v1/{prefix}/namespaces"
Prefix = Annotated[str, Path(description="The prefix that `GET /v1/config` names.")]
Namespace = Annotated[str, Path(description="A schema, for example `public`.")]
Token = Annotated[
    str | None,
    Query(alias="pageToken", description="The token of a page; empty: the first page."),
]
Size = Annotated[
    int | None,
    Query(alias="pageSize", ge=1, le=pages.MOST_PER_PAGE, description="At most so many."),
]
ERRORS: dict[int | str, Any] = {
    400: {"description": "The request is not valid.", "content": errors.DOCUMENTED},
    404: {"description": "There is no such thing.", "content": errors.DOCUMENTED},
}
LOADING: dict[int | str, Any] = {
    **ERRORS,
    304: {"description": "It is still what `If-None-Match` names."},
    406: {"description": "Iceberg has no form for it.", "content": errors.DOCUMENTED},
}
EXISTENCE: dict[int | str, Any] = {
    204: {"description": "It exists."},
    400: {"description": "The request is not valid."},
    404: {"description": "It does not exist."},
}
