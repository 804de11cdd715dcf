"""The declarations of the connectors `opensearch` and `elasticsearch`; imports nothing that a
source needs."""

from caraway_core.loading.declarations import Connector

_LOGIN = ("endpoint", "user", "pass", "api_key", "sslrootcert")
_READING = frozenset(
    "client_timeout connect_timeout max_retries retry_max_duration schema_infer_max_records".split()
)
OPENSEARCH = Connector(
    "caraway_plugins.sources.opensearch.source:OpensearchSource",
    _READING | {f"opensearch_{each}" for each in _LOGIN},
)
ELASTICSEARCH = Connector(
    "caraway_plugins.sources.opensearch.source:ElasticsearchSource",
    _READING | {f"elasticsearch_{each}" for each in _LOGIN},
)
