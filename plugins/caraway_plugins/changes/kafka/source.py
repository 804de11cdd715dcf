"""A Kafka topic of rows, or of Debezium events, as a change source."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from caraway_core.changes import Changes, Op, joined, log_schema, without_log
from caraway_core.errors import DatasetError
from caraway_core.protocols.change_sources import ChangeRequest, PositionLostError, SourceBatch
from caraway_plugins.changes import decoding, registry
from caraway_plugins.changes.kafka.consuming import Event, Topic
from caraway_plugins.changes.kafka.messages import RowMessages
from caraway_plugins.changes.kafka.settings import settings_of
from caraway_plugins.changes.target import BadChangesError, ChangeTarget, RegistryAwayError


@dataclass(frozen=True, slots=True)
class KafkaLimits:
    """Size limits of a batch, and the interval of the check for new partitions."""

    batch_events: int = 5_000
    batch_bytes: int = 32 << 20
    look_s: float = 60.0


class KafkaChanges:
    """Implements `ChangeSource` for a Kafka topic.

    Raises:
        DatasetError: the dataset's path, params or columns are invalid.
    """

    def __init__(self, request: ChangeRequest, limits: KafkaLimits | None = None) -> None:
        self._settings = settings_of(request)
        self._messages = RowMessages(self._settings)
        self._limits = limits or KafkaLimits()
        try:
            self._registry = registry.of_params(request.params)
        except ValueError as exc:
            raise DatasetError("invalid", f"params: {exc}") from exc
        self._target = ChangeTarget(
            pa.schema(request.declared),
            request.primary_key,
            request.twice,
            request.params.get("avro_schema") or None,
            self._registry,
            is_learned=not request.declared,
            are_rows=self._settings.are_rows,
        )
        self._learned = request.learned
        self._topic: Topic | None = None

    async def schema(self) -> pa.Schema:
        return self._target.schema

    async def primary_key(self) -> tuple[str, ...]:
        return self._target.primary_key

    async def batches(self, position: str | None) -> AsyncGenerator[SourceBatch, None]:
        name, loop = self._settings.topic, asyncio.get_running_loop()
        offsets = {} if position is None else dict(_position(position, name).offsets)
        topic = Topic(self._settings)
        if self._target.is_learned and (known := self._learned()) is not None:
            self._target = replace(self._target, schema=known)
        try:
            await asyncio.to_thread(topic.begin_reading, offsets)
            self._topic = topic
            is_emptied = position is not None
            if position is not None:
                yield SourceBatch(self._nothing(), position)
            elif self._target.schema.names:
                # The rows that the dataset has are not those of the topic.
                yield SourceBatch(_emptied(self._target), _Position(name, {}).text())
                is_emptied = True
            look_at = loop.time() + self._limits.look_s
            while True:
                if loop.time() >= look_at:
                    await asyncio.to_thread(topic.look_for_partitions)
                    look_at = loop.time() + self._limits.look_s
                events = await asyncio.to_thread(
                    topic.poll, self._limits.batch_events, self._limits.batch_bytes
                )
                read = await asyncio.to_thread(self._read, events) if events else None
                if read is None:
                    continue
                if read.changes is not None:
                    offsets |= _after(events[: read.taken])
                    changes = read.changes
                    if not is_emptied and self._target.schema.names:
                        changes, is_emptied = joined([_emptied(self._target), changes]), True
                    if is_emptied:
                        made_at = events[read.taken - 1].made_at if read.taken else None
                        at = _Position(name, dict(offsets)).text()
                        yield SourceBatch(changes, at, made_at=made_at)
                if read.error is not None:
                    raise read.error
        finally:
            self._topic = None
            await asyncio.to_thread(topic.close)

    async def confirm(self, position: str) -> None:
        if self._topic is not None and self._settings.tells_group:
            at = _position(position, self._settings.topic)
            await asyncio.to_thread(self._topic.tell_group, at.offsets)

    async def aclose(self) -> None:
        if self._registry is not None:
            await asyncio.to_thread(self._registry.close)

    def _read(self, events: Sequence[Event]) -> "_Read":
        """Decode events; if one is bad, return the events before it together with the error."""
        try:
            return _Read(len(events), self._decoded(events))
        except RegistryAwayError as exc:
            return _Read(0, error=DatasetError("unavailable", exc.message))
        except BadChangesError as exc:
            return self._read_up_to_bad(events, exc)

    def _read_up_to_bad(self, events: Sequence[Event], cause: BadChangesError) -> "_Read":
        good: list[Changes] = []
        for number, event in enumerate(events):
            try:
                decoded = self._decoded([event])
                if decoded.rows.num_columns == len(log_schema(self._target.schema)):
                    good.append(decoded)
            except BadChangesError as exc:
                where = f"partition {event.partition}, offset {event.offset}"
                told = exc.message.removeprefix("event 1: ")
                message = f"topic '{self._settings.topic}', {where}: {told}"
                return _Read(
                    number, joined(good) if good else None, DatasetError("schema", message)
                )
            except RegistryAwayError as exc:
                return _Read(0, error=DatasetError("unavailable", exc.message))
        message = f"topic '{self._settings.topic}': {cause.message}"
        return _Read(0, error=DatasetError("schema", message))

    def _nothing(self) -> Changes:
        return Changes(log_schema(self._target.schema).empty_table(), 0)

    def _decoded(self, events: Sequence[Event]) -> Changes:
        form = self._settings.form
        if self._settings.are_rows:
            return self._noted(self._messages.decode(events, self._target))
        # A tombstone follows a delete, and only serves the compaction of the topic.
        values = [event.value for event in events if event.value is not None]
        if not values:
            return self._nothing()
        if form == "avro":
            return self._kept(b"".join(values), "application/avro")
        if any(b"\n" in value for value in values):
            body = b"[" + b",".join(values) + b"]"
        else:
            body = b"\n".join(values)
        return self._kept(body, "application/x-ndjson")

    def _kept(self, body: bytes, content_type: str) -> Changes:
        """Decode a body; the first rows give the columns of a dataset that declares none."""
        return self._noted(decoding.decode(body, content_type, {}, self._target))

    def _noted(self, changes: Changes) -> Changes:
        """Keep the columns of the first rows."""
        if not self._target.schema.names:
            self._target = replace(self._target, schema=without_log(changes.rows.schema))
        return changes


@dataclass(frozen=True, slots=True)
class _Read:
    """The first `taken` events as changes, and the error of the next event."""

    taken: int
    changes: Changes | None = None
    error: DatasetError | None = None


def _after(events: Sequence[Event]) -> Mapping[int, int]:
    """Return the next offset of each partition."""
    return {event.partition: event.offset + 1 for event in events}


def _emptied(target: ChangeTarget) -> Changes:
    """Return a truncation of the dataset."""
    schema = log_schema(target.schema)
    nothing: list[pa.Array] = [pa.nulls(1, field.type) for field in target.schema]
    arrays = [*nothing, pa.array([int(Op.TRUNCATE)], pa.int8()), pa.nulls(1, pa.binary())]
    return Changes(pa.Table.from_arrays(arrays, schema=schema), 0)


@dataclass(frozen=True, slots=True)
class _Position:
    """The next offset of each partition that has been read, which is stored as text."""

    topic: str
    offsets: Mapping[int, int]

    def text(self) -> str:
        """Encode the position as text."""
        offsets = {str(number): self.offsets[number] for number in sorted(self.offsets)}
        return json.dumps({"topic": self.topic, "offsets": offsets}, separators=(",", ":"))


def _position(text: str, topic: str) -> _Position:
    """Parse the result of `_Position.text`.

    Raises:
        PositionLostError: the position belongs to another topic or another kind of source.
    """
    try:
        content = json.loads(text)
        of, offsets = content["topic"], content["offsets"]
        position = _Position(of, {int(number): int(at) for number, at in offsets.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise PositionLostError(
            "the stored position of the dataset is not a Kafka position"
        ) from exc
    if of != topic:
        raise PositionLostError(f"the stored rows come from topic '{of}'; reloading")
    return position
