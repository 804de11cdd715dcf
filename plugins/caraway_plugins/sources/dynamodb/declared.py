"""The declaration of the connector `dynamodb`; imports nothing that a source needs."""

from caraway_core.loading.declarations import Connector

DYNAMODB = Connector(
    "caraway_plugins.sources.dynamodb.source:DynamodbSource",
    frozenset(
        "dynamodb_aws_region dynamodb_aws_access_key_id dynamodb_aws_secret_access_key "
        "dynamodb_aws_session_token dynamodb_aws_auth dynamodb_endpoint client_timeout "
        "scan_interval scan_segments unnest_depth schema_infer_max_records".split()
    ),
    modes=("full", "append", "changes", "disabled"),
)
