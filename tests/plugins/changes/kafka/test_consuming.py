"""A topic without a broker: which messages are read, and what the client reports."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from caraway_core.errors import DatasetError
from caraway_plugins.changes.kafka import consuming
from caraway_plugins.changes.kafka.consuming import Event, Topic
from caraway_plugins.changes.kafka.settings import KafkaSettings


class Message:
    def __init__(self, offset: int, value: bytes | None = b"x", error: int | None = None) -> None:
        self._offset, self._value, self._error = offset, value, error

    def error(self) -> KafkaError | None:
        return None if self._error is None else KafkaError(self._error, "said")

    def timestamp(self) -> tuple[int, int]:
        return (0, -1) if self._offset == 0 else (1, 1_700_000_000_000)

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return b"k"


class Broker:
    """What a consumer of the client does, from a script."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.partitions = {0, 1}
        self.error: KafkaError | None = None
        self.is_away = False
        self.assigned: list[tuple[int, int]] = []
        self.committed: list[tuple[int, int]] = []
        self.closed = 0
        self.report: Callable[[KafkaError], None]

    def consumer(self, settings: Mapping[str, Callable[[KafkaError], None]], **_: object) -> object:
        self.report = settings["error_cb"]
        return self

    def list_topics(self, topic: str, timeout: float) -> object:
        if self.is_away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "said"))
        listed = SimpleNamespace(error=self.error, partitions=dict.fromkeys(self.partitions))
        return SimpleNamespace(topics={topic: listed})

    def incremental_assign(self, partitions: Sequence[TopicPartition]) -> None:
        self.assigned += [(each.partition, each.offset) for each in partitions]

    def consume(self, count: int, timeout: float) -> Sequence[Message]:
        taken, self.messages = self.messages[:count], self.messages[count:]
        return taken

    def commit(self, offsets: Sequence[TopicPartition], asynchronous: bool) -> None:
        if self.is_away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "said"))
        self.committed += [(each.partition, each.offset) for each in offsets]

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(consuming, "Consumer", broker.consumer)
    return broker


def topic(*, are_rows: bool = False) -> Topic:
    return Topic(KafkaSettings("orders", "json", True, are_rows, {"sasl.password": "hunter2"}))


def test_partitions_are_read_from_their_offsets_and_new_ones_from_the_beginning(
    broker: Broker,
) -> None:
    read = topic()
    read.begin_reading({1: 17})
    read.look_for_partitions()
    assert broker.assigned == [(0, OFFSET_BEGINNING), (1, 17)]
    broker.partitions.add(2)
    read.look_for_partitions()
    assert broker.assigned[2:] == [(2, OFFSET_BEGINNING)]


def test_messages_are_events(broker: Broker) -> None:
    broker.messages = [Message(0), Message(1, None)]
    assert topic().poll(10, 1000) == [
        Event(3, 0, b"x", None, b"k"),
        Event(3, 1, None, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), b"k"),
    ]


@pytest.mark.parametrize(
    ("most", "most_bytes", "count"), [(1, 1000, 1), (7, 1000, 7), (100, 1000, 9), (100, 0, 1)]
)
def test_a_poll_is_bounded(broker: Broker, most: int, most_bytes: int, count: int) -> None:
    broker.messages = [Message(number) for number in range(9)]
    assert len(topic().poll(most, most_bytes)) == count


def test_an_error_that_passes_is_left_out(broker: Broker) -> None:
    again = KafkaError(KafkaError._TIMED_OUT, "said", retriable=True)
    late = Message(1)
    late.error = lambda: again  # type: ignore[method-assign]
    broker.messages = [Message(0), late, Message(2)]
    assert [event.offset for event in topic().poll(10, 1000)] == [0, 2]


@pytest.mark.parametrize(
    ("code", "type_", "message"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "auth", "access is denied: said"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "not_found", "the topic does not exist: said"),
        (KafkaError._FATAL, "unavailable", "Kafka does not respond: said"),
    ],
)
def test_an_error_in_place_of_a_message_is_told(
    broker: Broker, code: int, type_: str, message: str
) -> None:
    broker.messages = [Message(0, error=code)]
    with pytest.raises(DatasetError, match=f"topic 'orders': {message}") as caught:
        topic().poll(10, 1000)
    assert caught.value.type == type_
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(("are_rows", "again"), [(True, False), (False, True)])
def test_messages_that_are_gone_are_told_with_the_way_on(
    broker: Broker, are_rows: bool, again: bool
) -> None:
    broker.messages = [Message(0, error=KafkaError._AUTO_OFFSET_RESET)]
    with pytest.raises(DatasetError, match="partition 3: unread messages are no longer") as caught:
        topic(are_rows=are_rows).poll(10, 1000)
    assert ("have Debezium send a snapshot" in caught.value.message) is again


def test_a_failure_of_the_client_is_told_once_and_forgotten_when_messages_come(
    broker: Broker,
) -> None:
    read = topic()
    broker.report(KafkaError(KafkaError._TIMED_OUT, "a slow broker"))
    assert read.poll(10, 1000) == []
    broker.report(KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down"))
    with pytest.raises(DatasetError, match="all down"):
        read.poll(10, 1000)
    assert read.poll(10, 1000) == []
    broker.report(KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down"))
    broker.messages = [Message(0)]
    assert len(read.poll(10, 1000)) == 1
    assert read.poll(10, 1000) == []


def test_a_topic_that_cannot_be_listed_is_told_with_the_known_cause(broker: Broker) -> None:
    broker.error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "said")
    with pytest.raises(DatasetError, match="the topic does not exist"):
        topic().begin_reading({})
    broker.is_away = True
    read = topic()
    broker.report(KafkaError(KafkaError._AUTHENTICATION, "bad password"))
    with pytest.raises(DatasetError, match="access is denied: bad password"):
        read.begin_reading({})


def test_offsets_are_told_to_the_group_and_its_failure_is_no_error(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    read = topic()
    read.tell_group({})
    read.tell_group({1: 5})
    assert broker.committed == [(1, 5)]
    broker.is_away = True
    read.tell_group({1: 6})
    assert "offsets were not committed" in caplog.text


def test_a_closed_topic_reads_nothing(broker: Broker) -> None:
    read = topic()
    broker.messages = [Message(0)]
    read.close()
    read.close()
    read.tell_group({1: 5})
    assert (read.poll(10, 1000), broker.closed, broker.committed) == ((), 1, [])


def test_settings_that_the_client_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "no such property"))

    monkeypatch.setattr(consuming, "Consumer", refused)
    with pytest.raises(DatasetError, match="no such property") as caught:
        topic()
    assert caught.value.type == "invalid"
