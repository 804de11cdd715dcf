"""The declaration of the connector `mongodb`; imports nothing that a source needs."""

from caraway_core.loading.declarations import Connector

MONGODB = Connector(
    "caraway_plugins.sources.mongodb.source:MongodbSource",
    frozenset(
        "mongodb_connection_string mongodb_host mongodb_port mongodb_db mongodb_user mongodb_pass "
        "mongodb_auth_source mongodb_sslmode mongodb_sslrootcert mongodb_num_docs_to_infer_schema "
        "schema_infer_max_records mongodb_unnest_depth unnest_depth client_timeout".split()
    ),
    modes=("full", "append", "changes", "disabled"),
)
