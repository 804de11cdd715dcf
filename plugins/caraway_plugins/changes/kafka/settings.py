"""Reads the params of a dataset that consumes a topic."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_plugins.sources import params

MessageForm = Literal["json", "avro", "protobuf"]
KeyForm = Literal["text", "json", "avro", "protobuf"]
_FORMS = ("json", "avro", "protobuf")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The settings of one dataset; `client` may hold a password, so it is never printed.

    The dataset stores its own offsets. They are also committed to the consumer group if
    `tells_group`. Where `are_rows`, each message is a row, and not an event, with a key.
    """

    topic: str
    form: MessageForm
    tells_group: bool
    are_rows: bool
    client: Mapping[str, Any] = field(repr=False)
    key_form: KeyForm = "json"


def settings_of(request: ChangeRequest) -> KafkaSettings:
    """Parse the path and the params of a dataset.

    Raises:
        DatasetError: the path or a param is invalid.
    """
    known = params.checked(request.connector, request.params)
    if not request.path:
        raise DatasetError("invalid", f"the topic is missing; write '{request.connector}:<topic>'")
    _choice(known, "debezium_transport", "kafka", ("kafka",))
    are_rows = request.connector == "kafka"
    if are_rows:
        form = _choice(known, "kafka_message_format", "json", _FORMS)
    else:
        form = _choice(known, "debezium_message_format", "json", ("json", "avro"))
    has_registry = known.text("schema_registry_url") is not None
    usual = form if has_registry else "json"
    key_form = _choice(known, "kafka_key_format", usual, ("text", *_FORMS))
    servers = known.text("kafka_bootstrap_servers")
    if servers is None:
        raise DatasetError(
            "invalid", "params.kafka_bootstrap_servers is missing; give host:port,host:port"
        )
    if form == "avro" and not known.text("schema_registry_url", "avro_schema"):
        raise DatasetError(
            "invalid", "Avro needs its schema; set params.schema_registry_url or params.avro_schema"
        )
    if not has_registry and (form == "protobuf" or key_form in ("avro", "protobuf")):
        raise DatasetError(
            "invalid",
            "Protobuf and keys in Avro need the registry of their schemas; set "
            "params.schema_registry_url",
        )
    group = known.text("kafka_consumer_group_id")
    client = {
        "bootstrap.servers": servers,
        # Partitions are assigned explicitly, so the group does not rebalance.
        "group.id": group or f"caraway-{request.name}",
        "client.id": "caraway",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": _choice(known, "kafka_offset_reset", "error", ("error", "earliest")),
        "queued.max.messages.kbytes": 32 << 10,
        "isolation.level": "read_committed",
        **_security(known),
    }
    # `_choice` returned one of the values.
    forms = cast(MessageForm, form), cast(KeyForm, key_form)
    return KafkaSettings(request.path, forms[0], group is not None, are_rows, client, forms[1])


def _security(known: params.Params) -> dict[str, object]:
    username = known.text("kafka_sasl_username")
    protocol = _choice(
        known, "kafka_security_protocol", "SASL_SSL" if username else "PLAINTEXT", _PROTOCOLS
    )
    chosen: dict[str, Any] = {"security.protocol": protocol}
    if protocol.startswith("SASL"):
        if username is None:
            raise DatasetError("invalid", f"params.kafka_sasl_username is missing for {protocol}")
        chosen["sasl.mechanism"] = _choice(
            known, "kafka_sasl_mechanism", "SCRAM-SHA-512", _MECHANISMS
        )
        chosen["sasl.username"] = username
        chosen["sasl.password"] = known.text("kafka_sasl_password") or ""
    if protocol.endswith("SSL"):
        verifies = known.flag("kafka_enable_ssl_certificate_verification", True)
        chosen["enable.ssl.certificate.verification"] = verifies
        for name, key in (
            ("kafka_ssl_ca_location", "ssl.ca.location"),
            ("kafka_ssl_certificate_location", "ssl.certificate.location"),
            ("kafka_ssl_key_location", "ssl.key.location"),
        ):
            if value := known.text(name):
                chosen[key] = value
        chosen["ssl.endpoint.identification.algorithm"] = _choice(
            known, "kafka_ssl_endpoint_identification_algorithm", "https", ("https", "none")
        )
    return chosen


def _choice(known: params.Params, name: str, default: str, choices: tuple[str, ...]) -> str:
    value = known.text(name) or default
    found = next((each for each in choices if each.lower() == value.lower()), None)
    if found is None:
        raise DatasetError(
            "invalid", f"params.{name} is '{value}'; give one of: {', '.join(choices)}"
        )
    return found
