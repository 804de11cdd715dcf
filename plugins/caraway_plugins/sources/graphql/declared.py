"""The declaration of the connector `graphql`; imports nothing that a source needs."""

from caraway_core.loading.declarations import Connector
from caraway_plugins.sources.api import declared

GRAPHQL = Connector(
    "caraway_plugins.sources.graphql.source:GraphqlSource",
    declared.LIMITS
    | frozenset(
        "graphql_query graphql_auth_token graphql_auth_user graphql_auth_pass graphql_headers "
        "json_pointer unnest_depth schema_infer_max_records pagination_max_pages".split()
    ),
)
