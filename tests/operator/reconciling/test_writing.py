"""Writes to the emulated API: a failure does not stop the rest, and is not repeated in vain."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from caraway_kube.api import client
from caraway_kube.api.access import ApiAccess
from caraway_kube.api.client import KubeClient
from caraway_kube.api.kinds import CONFIG_MAP, Object, ObjectRef
from caraway_kube.naming import OPERATOR
from caraway_operator.kube import planning
from caraway_operator.kube.object_cache import ObjectCache
from caraway_operator.kube.planning import OwnerReference
from caraway_operator.reconciling.writing import WriteHistory, WriteResult, write_plan
from tests.kit.kube import Emulator, emulated

OWNER = OwnerReference("caraway.dev/v1alpha1", "CarawayCluster", "shop", "u-1")
LABELS = {"app.kubernetes.io/name": "caraway", "app.kubernetes.io/instance": "shop"}


def config(name: str, value: str = "1") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "web", "labels": dict(LABELS)},
        "data": {"value": value},
    }


def of(name: str) -> ObjectRef:
    return ObjectRef("ConfigMap", "web", name)


@dataclass
class Writer:
    """Plans and writes as the reconciler does, with one history."""

    api: Emulator
    kube: KubeClient
    history: WriteHistory = field(default_factory=WriteHistory)
    objects: ObjectCache = field(default_factory=ObjectCache)
    now: float = 1_000.0

    async def write(self, *desired: Object) -> WriteResult:
        listing = await self.kube.list(CONFIG_MAP, None, "app.kubernetes.io/name=caraway")
        self.objects.replace(CONFIG_MAP, None, listing.items)
        live = {which: each for which, each in self.api.there.items() if which.kind == "ConfigMap"}
        plan = planning.plan(desired, live, OWNER, self.history.applied)
        return await write_plan(self.kube, self.objects, self.history, plan, self.now)

    @property
    def attempts(self) -> list[str]:
        """The writes since this was read last."""
        found, self.api.log = self.api.log, []
        return found

    def refuse(self, *names: str, status: int = 403) -> None:
        def answer(verb: str, which: ObjectRef) -> tuple[int, str] | None:
            if which.name in names and verb != "GET":
                self.refused.append(which.name)
                return status, "no"
            return None

        self.refused: list[str] = []
        self.api.refuse = answer


@asynccontextmanager
async def writing() -> AsyncIterator[Writer]:
    async with (
        emulated() as api,
        client.open_client(ApiAccess(str(api.url).rstrip("/")), OPERATOR) as kube,
    ):
        yield Writer(api, kube)


async def test_objects_are_created_changed_and_removed() -> None:
    async with writing() as writer:
        found = await writer.write(config("a"), config("b"))
        assert (found.created, found.failures) == ((of("a"), of("b")), ())
        assert await writer.write(config("a"), config("b")) == WriteResult()
        found = await writer.write(config("a", "2"))
        assert (found.changed, found.removed) == ((of("a"),), (of("b"),))
        assert writer.api.get("ConfigMap", "a")["data"] == {"value": "2"}
        assert writer.api.names("ConfigMap") == ["a"]


async def test_nothing_is_written_twice() -> None:
    async with writing() as writer:
        await writer.write(config("a"))
        version = writer.api.version
        for _ in range(5):
            writer.now += 3600
            assert await writer.write(config("a")) == WriteResult()
        assert writer.api.version == version


async def test_a_write_that_fails_does_not_stop_the_others() -> None:
    async with writing() as writer:
        writer.refuse("b")
        found = await writer.write(config("a"), config("b"), config("c"))
        assert found.created == (of("a"), of("c"))
        assert found.broken == {of("b")}
        (message,) = found.failures
        assert message.startswith("ConfigMap 'b': ") and "403" in message
        assert not found.is_incomplete


@pytest.mark.parametrize(
    ("status", "is_lasting"), [(403, True), (422, True), (400, True), (503, False), (429, False)]
)
async def test_only_what_lasts_waits_before_it_is_tried_again(
    status: int, is_lasting: bool
) -> None:
    async with writing() as writer:
        writer.refuse("a", status=status)
        first = await writer.write(config("a"))
        assert first.is_incomplete is not is_lasting
        count = len(writer.refused)
        assert count
        again = await writer.write(config("a"))
        assert again.broken == {of("a")} and again.failures
        assert (len(writer.refused) == count) is is_lasting


async def test_waits_grow_and_end_with_a_change_of_either_side() -> None:
    async with writing() as writer:
        writer.refuse("a")
        waits: list[float] = []
        for _ in range(6):
            await writer.write(config("a"))
            rejected = writer.history.rejected[of("a")]
            waits.append(rejected.until - writer.now)
            writer.now = rejected.until
        assert waits == sorted(waits) and waits[0] >= 1 and waits[-1] <= 120
        count = len(writer.refused)
        await writer.write(config("a", "other"))
        assert len(writer.refused) > count
        assert writer.history.rejected[of("a")].failures == 1


async def test_a_rejected_change_is_tried_at_once_when_the_object_changes() -> None:
    async with writing() as writer:
        await writer.write(config("a"))
        writer.refuse("a")
        await writer.write(config("a", "2"))
        count = len(writer.refused)
        await writer.write(config("a", "2"))
        assert len(writer.refused) == count
        writer.api.refuse = lambda _verb, _which: None
        writer.api.edit("ConfigMap", "a", data={"value": "from outside"})
        found = await writer.write(config("a", "2"))
        assert found.changed == (of("a"),)
        assert of("a") not in writer.history.rejected


async def test_edits_are_repaired_a_few_times_and_then_told() -> None:
    async with writing() as writer:
        await writer.write(config("a"))
        repaired = 0
        for number in range(8):
            writer.api.edit("ConfigMap", "a", data={"value": f"edit {number}"})
            found = await writer.write(config("a"))
            repaired += len(found.repaired)
            writer.now += 1
        assert repaired == 5
        (message,) = found.failures
        assert (
            message.startswith("ConfigMap 'a': it was edited 5 times") and "find out who" in message
        )
        writer.now += 60
        assert (await writer.write(config("a"))).repaired == (of("a"),)
        assert writer.api.get("ConfigMap", "a")["data"] == {"value": "1"}


async def test_a_change_of_the_spec_is_written_although_repairs_wait() -> None:
    async with writing() as writer:
        await writer.write(config("a"))
        for number in range(6):
            writer.api.edit("ConfigMap", "a", data={"value": f"edit {number}"})
            await writer.write(config("a"))
        found = await writer.write(config("a", "2"))
        assert found.changed == (of("a"),)


async def test_records_of_repairs_do_not_grow() -> None:
    async with writing() as writer:
        await writer.write(config("a"))
        for number in range(50):
            writer.api.edit("ConfigMap", "a", data={"value": f"edit {number}"})
            await writer.write(config("a"))
            writer.now += 30
        assert len(writer.history.repairs[of("a")]) <= 5


async def test_what_is_removed_leaves_no_records() -> None:
    """Objects come and go with executors, for as long as the operator runs."""
    async with writing() as writer:
        for number in range(5):
            name = f"executor-{number}"
            await writer.write(config(name))
            writer.api.edit("ConfigMap", name, data={"value": "edit"})
            await writer.write(config(name))
            writer.now += 100
        writer.refuse("executor-9")
        await writer.write(config("executor-9"))
        await writer.write()
        history = writer.history
        assert not history.applied and not history.repairs and not history.rejected


async def test_an_object_that_is_being_deleted_is_waited_for() -> None:
    async with writing() as writer:
        await writer.write(config("a"))
        writer.api.edit(
            "ConfigMap",
            "a",
            metadata={"finalizers": ["x/y"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
        )
        found = await writer.write(config("a", "2"))
        assert found.is_incomplete and found.broken == {of("a")}
        assert found.failures == (
            "ConfigMap 'a': it is being deleted, and is created again afterwards",
        )


async def test_an_object_of_somebody_else_is_neither_changed_nor_removed() -> None:
    async with writing() as writer:
        foreign = {**config("a", "theirs"), "metadata": {"name": "a", "namespace": "web"}}
        writer.api.put(foreign)
        found = await writer.write(config("a"))
        assert found.broken == {of("a")}
        assert "exists and does not belong to this cluster" in found.failures[0]
        await writer.write()
        assert writer.api.get("ConfigMap", "a")["data"] == {"value": "theirs"}


async def test_a_removal_that_fails_is_told_and_tried_again() -> None:
    async with writing() as writer:
        await writer.write(config("a"), config("b"))
        writer.refuse("a")
        found = await writer.write()
        assert found.removed == (of("b"),) and found.is_incomplete
        assert found.failures[0].startswith("ConfigMap 'a': ")
        writer.api.refuse = lambda _verb, _which: None
        assert (await writer.write()).removed == (of("a"),)


async def test_an_object_that_was_replaced_meanwhile_is_not_removed() -> None:
    """The plan names the object that was seen, by its uid."""
    async with writing() as writer:
        await writer.write(config("a"))
        live = {of("a"): writer.api.get("ConfigMap", "a")}
        plan = planning.plan((), live, OWNER, writer.history.applied)
        writer.api.remove("ConfigMap", "a")
        mine: dict[str, Any] = config("a", "new")
        writer.api.put(mine)
        found = await write_plan(writer.kube, writer.objects, writer.history, plan, writer.now)
        assert found.removed == () or writer.api.names("ConfigMap") == ["a"]
        assert writer.api.get("ConfigMap", "a")["data"] == {"value": "new"}


async def test_a_new_process_writes_nothing_that_is_there_already() -> None:
    async with writing() as writer:
        await writer.write(config("a"))
        version = writer.api.get("ConfigMap", "a")["metadata"]["resourceVersion"]
        writer.history = WriteHistory()
        found = await writer.write(config("a"))
        assert (found.changed, found.repaired, found.failures) == ((), (), ())
        assert writer.api.get("ConfigMap", "a")["metadata"]["resourceVersion"] == version
        assert await writer.write(config("a")) == WriteResult()
