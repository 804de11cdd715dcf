"""The params of a topic: what they give the client, and which of them contradict each other."""

from typing import Any

import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_plugins.changes.kafka import settings
from caraway_plugins.changes.kafka.settings import KafkaSettings

SERVERS = {"kafka_bootstrap_servers": "h:9092"}
REGISTRY = {"schema_registry_url": "http://r"}


def read(
    params: dict[str, str] | None = None, connector: str = "kafka", path: str = "orders"
) -> KafkaSettings:
    given = SERVERS | (params or {})
    return settings.settings_of(ChangeRequest(TableName("sales"), connector, path, given))


def test_usual_settings() -> None:
    found = read()
    assert (found.topic, found.form, found.key_form) == ("orders", "json", "json")
    assert (found.are_rows, found.tells_group) == (True, False)
    assert found.client["group.id"] == "caraway-sales"
    assert found.client["security.protocol"] == "PLAINTEXT"
    assert found.client["enable.auto.commit"] is False
    assert "enable.ssl.certificate.verification" not in found.client


@pytest.mark.parametrize(
    ("params", "connector", "forms"),
    [
        ({"kafka_message_format": "AVRO", **REGISTRY}, "kafka", ("avro", "avro")),
        ({"kafka_message_format": "protobuf", **REGISTRY}, "kafka", ("protobuf", "protobuf")),
        ({"kafka_message_format": "avro", "avro_schema": "{}"}, "kafka", ("avro", "json")),
        ({"kafka_key_format": "text"}, "kafka", ("json", "text")),
        ({"debezium_message_format": "avro", **REGISTRY}, "debezium", ("avro", "avro")),
    ],
)
def test_forms(params: dict[str, str], connector: str, forms: tuple[str, str]) -> None:
    found = read(params, connector)
    assert (found.form, found.key_form) == forms
    assert found.are_rows == (connector == "kafka")


@pytest.mark.parametrize(
    ("params", "client"),
    [
        ({"kafka_consumer_group_id": "g"}, {"group.id": "g"}),
        ({"kafka_offset_reset": "Earliest"}, {"auto.offset.reset": "earliest"}),
        ({"kafka_sasl_username": "u", "kafka_sasl_password": "hunter2"},
         {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512",
          "sasl.username": "u", "sasl.password": "hunter2",
          "enable.ssl.certificate.verification": True,
          "ssl.endpoint.identification.algorithm": "https"}),
        ({"kafka_sasl_username": "u", "kafka_security_protocol": "sasl_plaintext",
          "kafka_sasl_mechanism": "plain"},
         {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.password": ""}),
        ({"kafka_security_protocol": "ssl", "kafka_ssl_ca_location": "/ca",
          "kafka_ssl_endpoint_identification_algorithm": "none",
          "kafka_enable_ssl_certificate_verification": "false"},
         {"ssl.ca.location": "/ca", "ssl.endpoint.identification.algorithm": "none",
          "enable.ssl.certificate.verification": False}),
    ],
)  # fmt: skip
def test_params_of_the_client(params: dict[str, str], client: dict[str, Any]) -> None:
    found = read(params)
    assert {name: found.client[name] for name in client} == client
    assert "hunter2" not in repr(found)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"kafka_bootstrap_servers": ""}, "kafka_bootstrap_servers is missing"),
        ({"kafka_message_format": "xml"}, "give one of: json, avro, protobuf"),
        ({"kafka_message_format": "avro"}, "Avro needs its schema"),
        ({"kafka_message_format": "protobuf"}, "need the registry of their schemas"),
        ({"kafka_key_format": "avro"}, "need the registry of their schemas"),
        ({"kafka_security_protocol": "SASL_SSL"}, "kafka_sasl_username is missing for SASL_SSL"),
        ({"kafka_security_protocol": "TLS"}, "give one of: PLAINTEXT, SSL"),
        ({"kafka_sasl_username": "u", "kafka_sasl_mechanism": "GSSAPI"}, "give one of: PLAIN,"),
        ({"kafka_offset_reset": "latest"}, "give one of: error, earliest"),
    ],
)
def test_params_that_are_wrong(params: dict[str, str], said: str) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        read(params)
    assert caught.value.type == "invalid"


def test_events_of_debezium_come_from_kafka() -> None:
    with pytest.raises(DatasetError, match="give one of: kafka"):
        read({"debezium_transport": "http"}, "debezium")


def test_a_topic_is_needed() -> None:
    with pytest.raises(DatasetError, match="write 'kafka:<topic>'"):
        read(path="")
