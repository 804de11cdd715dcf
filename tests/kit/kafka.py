"""A Kafka cluster in this process: librdkafka's own mock, which speaks the real protocol."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer

_ASK_S = 60


class Cluster:
    """Mock brokers that exist as long as the client that runs them."""

    def __init__(self) -> None:
        self._producer = Producer(
            {
                "test.mock.num.brokers": 1,
                "bootstrap.servers": "mock",
                "log_level": 0,
                "linger.ms": 0,
            }
        )
        brokers = self._producer.list_topics(timeout=_ASK_S).brokers.values()
        self.servers = ",".join(f"{each.host}:{each.port}" for each in brokers)

    def send(self, topic: str, *values: Any, partition: int = 0) -> None:
        """Produce messages, bytes unchanged and other values as JSON, and wait for delivery."""
        self.send_keyed(topic, *((None, value) for value in values), partition=partition)

    def send_keyed(self, topic: str, *messages: tuple[Any, Any], partition: int = 0) -> None:
        """Produce messages with their keys, as `send` does."""
        failures: list[Any] = []

        def told(error: Any, _message: Any) -> None:
            if error is not None:
                failures.append(error)

        for key, value in messages:
            self._producer.produce(
                topic, key=_written(key), value=_written(value), partition=partition,
                on_delivery=told,
            )  # fmt: skip
        assert self._producer.flush(_ASK_S) == 0 and not failures, failures


def _written(part: Any) -> bytes | str | None:
    return part if part is None or isinstance(part, bytes) else json.dumps(part)


@contextmanager
def brokers() -> Iterator[Cluster]:
    """Run a cluster that creates topics on first use, with four partitions."""
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster._producer.flush(_ASK_S)
