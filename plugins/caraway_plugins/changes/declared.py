"""Declarations of the sources whose rows come from change events alone."""

from caraway_core.loading.declarations import Connector

_SCHEMA_REGISTRY = frozenset(
    {"schema_registry_url", "schema_registry_username", "schema_registry_password", "avro_schema"}
)
CDC = Connector(
    "caraway_plugins.changes.pushed:Pushed",
    _SCHEMA_REGISTRY,
    modes=("changes", "disabled"),
    is_writable=True,
)
_KAFKA = frozenset(
    "kafka_bootstrap_servers kafka_security_protocol kafka_sasl_mechanism kafka_sasl_username "
    "kafka_sasl_password kafka_ssl_ca_location kafka_ssl_certificate_location "
    "kafka_ssl_key_location kafka_enable_ssl_certificate_verification "
    "kafka_ssl_endpoint_identification_algorithm kafka_consumer_group_id kafka_offset_reset".split()
)
DEBEZIUM = Connector(
    "caraway_plugins.changes.kafka.table:KafkaTable",
    _SCHEMA_REGISTRY | _KAFKA | {"debezium_transport", "debezium_message_format"},
    modes=("changes", "disabled"),
)
KAFKA = Connector(
    "caraway_plugins.changes.kafka.table:KafkaTable",
    _SCHEMA_REGISTRY | _KAFKA | {"kafka_message_format", "kafka_key_format"},
    modes=("changes", "disabled"),
)
