"""Events of a cluster: each is recorded once in ten minutes, and fits the API."""

import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from caraway_kube.api.errors import ApiUnavailableError
from caraway_kube.api.kinds import POD, ObjectRef
from caraway_operator.kube import events
from caraway_operator.kube.events import EventContent, EventRecorder

CLUSTER = {
    "apiVersion": "caraway.dev/v1", "kind": "Caraway",
    "metadata": {"name": "sales", "namespace": "web", "uid": "u1"},
}  # fmt: skip


@dataclass
class Kube:
    """Keeps what is created, or fails."""

    manager: str = "caraway-operator"
    error: Exception | None = None
    created: list[Any] = field(default_factory=list)

    async def create(self, body: Any) -> None:
        if self.error is not None:
            raise self.error
        self.created.append(body)


@dataclass
class Site:
    kube: Kube = field(default_factory=Kube)
    now: float = 1_000.0

    def __post_init__(self) -> None:
        kube: Any = self.kube
        self.recorder = EventRecorder(kube, "operator-" + "x" * 200, lambda: self.now)

    async def record(self, content: EventContent, cluster: Any = CLUSTER) -> int:
        """Record an event, and return how many there are now."""
        await self.recorder.record_event(cluster, content)
        return len(self.kube.created)


async def test_the_same_event_is_recorded_every_ten_minutes() -> None:
    site = Site()
    event = EventContent("Scaled", "to 3")
    assert await site.record(event) == 1
    site.now += 599
    assert await site.record(event) == 1
    site.now += 1
    assert await site.record(event) == 2


async def test_other_events_are_recorded_at_once() -> None:
    site = Site()
    assert await site.record(EventContent("Scaled", "to 3")) == 1
    assert await site.record(EventContent("Scaled", "to 4")) == 2
    assert await site.record(EventContent("Failed", "to 4")) == 3
    other = {**CLUSTER, "metadata": {**CLUSTER["metadata"], "uid": "u2"}}  # type: ignore[dict-item] # a mapping
    assert await site.record(EventContent("Scaled", "to 3"), other) == 4


async def test_changes_of_objects_are_always_recorded() -> None:
    site = Site()
    event = EventContent("Deleted", "a pod", related=ObjectRef(POD.name, "web", "sales-0"))
    assert [await site.record(event) for _ in range(3)] == [1, 2, 3]
    assert site.kube.created[0]["related"] == {
        "apiVersion": "v1", "kind": "Pod", "namespace": "web", "name": "sales-0"
    }  # fmt: skip


async def test_an_api_that_is_away_costs_a_warning_only(caplog: pytest.LogCaptureFixture) -> None:
    site = Site(Kube(error=ApiUnavailableError("away")))
    with caplog.at_level(logging.WARNING):
        assert await site.record(EventContent("Scaled", "to 3")) == 0
    assert "cannot record the event" in caplog.text


async def test_known_events_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_REMEMBERED", 2)
    site = Site()
    for note in ("1", "2", "3"):
        await site.record(EventContent("Scaled", note))
    assert await site.record(EventContent("Scaled", "3")) == 3
    assert await site.record(EventContent("Scaled", "1")) == 4


@pytest.mark.parametrize("note", ["x" * 5_000, "é" * 3_000, "😀" * 1_001])
async def test_events_fit_the_limits_of_the_api(note: str) -> None:
    site = Site()
    await site.record(EventContent("Failed", note, type="Warning"))
    (event,) = site.kube.created
    assert 990 < len(event["note"].encode()) <= 1_000
    assert note.startswith(event["note"])
    assert len(event["reportingInstance"]) == 128
    assert event["regarding"]["uid"] == "u1"
    assert event["eventTime"].endswith("Z")
    assert event["metadata"]["name"].startswith("sales.")
