"""The declaration of the connector `github`; imports nothing that a source needs."""

from caraway_core.loading.declarations import Connector
from caraway_plugins.sources.api import declared

GITHUB = Connector(
    "caraway_plugins.sources.github.source:GithubSource",
    declared.LIMITS
    | {"github_token", "github_endpoint", "github_query_mode", "include", "pagination_max_pages"},
)
