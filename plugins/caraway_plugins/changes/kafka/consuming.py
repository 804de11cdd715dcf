"""A consumer of one topic. Its methods block; only this package imports confluent_kafka."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from caraway_core.errors import DatasetError, DatasetErrorType
from caraway_plugins.changes.kafka.settings import KafkaSettings

logger = logging.getLogger(__name__)
_ASK_S = 10.0
_POLL_S = 0.5
_LINGER_S = 0.02
_AT_ONCE = 500
_TYPES: Mapping[int, DatasetErrorType] = {
    KafkaError._AUTHENTICATION: "auth",
    KafkaError.SASL_AUTHENTICATION_FAILED: "auth",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "auth",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "auth",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "auth",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "not_found",
    KafkaError._UNKNOWN_TOPIC: "not_found",
    KafkaError._UNKNOWN_PARTITION: "not_found",
    KafkaError._INVALID_ARG: "invalid",
}
# Errors that librdkafka reports through its callback and does not recover from quickly.
_SERIOUS = frozenset(
    {KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._RESOLVE}
)


@dataclass(frozen=True, slots=True)
class Event:
    """A message, and when it was written; without a value it is a tombstone."""

    partition: int
    offset: int
    value: bytes | None
    made_at: datetime | None = None
    key: bytes | None = None


class Topic:
    """Reads all partitions of a topic from given offsets, including partitions added later."""

    def __init__(self, settings: KafkaSettings) -> None:
        """Create the consumer; raise DatasetError if Kafka's client rejects the settings."""
        self._settings = settings
        self._failure: KafkaError | None = None
        self._assigned: set[int] = set()
        # It is not safe to close a consumer while a thread polls it.
        self._lock = threading.Lock()
        self._is_closed = False
        try:
            self._consumer = Consumer({**settings.client, "error_cb": self._failed}, logger=logger)
        except KafkaException as exc:
            raise self._error(exc.args[0]) from exc

    def begin_reading(self, offsets: Mapping[int, int]) -> None:
        """Start to read at these offsets, and other partitions at their beginning.

        Raises:
            DatasetError: the topic does not exist, or Kafka does not respond.
        """
        self._assign(self._partitions(), offsets)

    def look_for_partitions(self) -> None:
        """Start to read new partitions from their beginning.

        Raises: as `begin_reading`.
        """
        self._assign(self._partitions() - self._assigned, {})

    def poll(self, most: int, most_bytes: int) -> Sequence[Event]:
        """Return the next messages, about `most` at most; return none if none arrive soon.

        Raises:
            DatasetError: the messages cannot be read.
        """
        with self._lock:
            if self._is_closed:
                return ()
            events = self._taken(self._consumer.consume(1, _POLL_S))
            deadline = time.monotonic() + 10 * _LINGER_S
            size = 0
            while events and len(events) < most and size < most_bytes:
                more = self._taken(
                    self._consumer.consume(min(_AT_ONCE, most - len(events)), _LINGER_S)
                )
                size += sum(len(event.value or b"") for event in more)
                events += more
                if not more or time.monotonic() > deadline:
                    break
        if not events and self._failure is not None:
            failure, self._failure = self._failure, None
            raise self._error(failure)
        if events:
            self._failure = None
        return events

    def tell_group(self, offsets: Mapping[int, int]) -> None:
        """Commit offsets to the consumer group, for monitoring only."""
        topic = self._settings.topic
        partitions = [TopicPartition(topic, number, at) for number, at in offsets.items()]
        with self._lock:
            if self._is_closed or not partitions:
                return
            try:
                self._consumer.commit(offsets=partitions, asynchronous=True)
            except KafkaException as exc:
                logger.warning(
                    "offsets were not committed to the consumer group", extra={"cause": str(exc)}
                )

    def close(self) -> None:
        """Close the connections after the current poll."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._consumer.close()

    def _partitions(self) -> set[int]:
        topic = self._settings.topic
        try:
            listed = self._consumer.list_topics(topic, timeout=_ASK_S).topics[topic]
        except KafkaException as exc:
            raise self._error(self._failure or exc.args[0]) from exc
        if listed.error is not None:
            raise self._error(listed.error)
        return set(listed.partitions)

    def _assign(self, partitions: set[int], offsets: Mapping[int, int]) -> None:
        if not partitions:
            return
        topic = self._settings.topic
        self._consumer.incremental_assign(
            [
                TopicPartition(topic, number, offsets.get(number, OFFSET_BEGINNING))
                for number in sorted(partitions)
            ]
        )
        self._assigned |= partitions

    def _taken(self, messages: Sequence[object]) -> list[Event]:
        events = []
        for message in messages:
            if (error := message.error()) is not None:  # type: ignore[attr-defined]  # untyped
                if error.code() == KafkaError._AUTO_OFFSET_RESET:
                    raise self._gone(message.partition())  # type: ignore[attr-defined]
                if error.retriable() and not error.fatal():
                    continue
                raise self._error(error)
            events.append(_event(message))
        return events

    def _failed(self, error: KafkaError) -> None:
        if error.fatal() or error.code() in _SERIOUS:
            self._failure = error

    def _gone(self, partition: int) -> DatasetError:
        again = "" if self._settings.are_rows else "have Debezium send a snapshot, and "
        return DatasetError(
            "unavailable",
            f"topic '{self._settings.topic}', partition {partition}: unread messages are no longer "
            f"available; {again}set params.kafka_offset_reset to earliest to continue with the "
            "oldest message",
        )

    def _error(self, error: KafkaError) -> DatasetError:
        type_ = _TYPES.get(error.code(), "unavailable")
        said = {"not_found": "the topic does not exist", "auth": "access is denied"}.get(
            type_, "Kafka does not respond"
        )
        return DatasetError(type_, f"topic '{self._settings.topic}': {said}: {error.str()}")


def _event(message: Any) -> Event:
    kind, made_ms = message.timestamp()
    is_known = kind != TIMESTAMP_NOT_AVAILABLE
    made_at = datetime.fromtimestamp(made_ms / 1_000, UTC) if is_known else None
    return Event(message.partition(), message.offset(), message.value(), made_at, message.key())
