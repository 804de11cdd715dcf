"""Defines the shape of errors for each family of routes, as in the specification."""

from caraway_gateway.api.iceberg import errors as iceberg
from caraway_gateway.api.messages.errors import envelope
from caraway_gateway.iceberg.names import CATALOG
from caraway_serving.failures import ErrorShapes

SHAPES = ErrorShapes(
    as_error=(
        "/v1/catalogs",
        "/v1/cluster/",
        "/v1/embeddings",
        "/v1/queries",
        "/v1/models",
        "/v1/packages",
        "/v1/chat/",
        "/v1/responses",
        "/v1/search",
        "/internal/",
        "/v1/sql/",
        "/v1/workers",
    ),
    others={"/v1/messages": envelope},
    families=dict.fromkeys(
        ("/v1/config", "/v1/namespaces", f"/v1/{CATALOG}/", "/v1/{prefix}/"), iceberg.envelope
    ),
    as_message=("/v1/datasets/", "/v1/mcp", "/v1/tool/", "/v1/tools"),
)
