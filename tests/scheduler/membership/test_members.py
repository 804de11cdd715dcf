"""The record of an executor, as a member and as listings show it."""

from dataclasses import fields, replace

import pytest

from caraway_core.ids import CatalogVersion, ExecutorId, TableName
from caraway_core.protocols.fleet import Description
from caraway_scheduler.membership.members import Member, Record
from tests.kit.workers import identity

BUSY = replace(
    identity("e7"),
    address="10.0.0.7",
    incarnation="second",
    active_tasks=3,
    finished_tasks=20,
    failed_tasks=1,
    memory_used_bytes=512,
    holds=(TableName("t"),),
    gpus=2,
    models=("m1", "m1", "m2"),
)


def test_member_has_what_its_heartbeat_says() -> None:
    member = Record(BUSY, 5.0).member()
    assert member == Member(
        ExecutorId("e7"), 2, 0, "10.0.0.7", "second", 3, None, 2, frozenset({"m1", "m2"})
    )
    shared = {field.name for field in fields(Member)} & {
        field.name for field in fields(Description)
    }
    for name in shared - {"models"}:
        assert getattr(member, name) == getattr(BUSY, name), name


def test_record_of_another_heartbeat_is_another_value() -> None:
    first = Record(BUSY, 5.0)
    again = replace(first, description=replace(BUSY, active_tasks=0))
    assert first.member() != again.member() and first.executor_id == again.executor_id


def test_listing_says_the_state_and_the_catalog_that_the_scheduler_knows() -> None:
    record = Record(BUSY, 5.0, state="ready", held=CatalogVersion(4))
    status = record.status(8.0, "asked to leave")
    assert (status.state, status.catalog_version, status.reason) == ("ready", 4, "asked to leave")
    assert (status.finished_tasks, status.failed_tasks, status.holds) == (20, 1, ("t",))
    assert status.heartbeat_age_s == 3.0
    assert status.protocol_version == BUSY.spoken.newest


@pytest.mark.parametrize("now", [5.0, 4.0, -1.0])
def test_clock_that_is_set_back_makes_no_heartbeat_of_the_future(now: float) -> None:
    assert Record(BUSY, 5.0).status(now, "").heartbeat_age_s == 0.0


@pytest.mark.parametrize(("oldest", "newest", "shown"), [(16, 0, 16), (16, 17, 17), (17, 16, 17)])
def test_newest_protocol_version_is_shown(oldest: int, newest: int, shown: int) -> None:
    """Releases up to version 16 say only the oldest one."""
    spoken = replace(BUSY, protocol_version=oldest, newest_version=newest)
    assert Record(spoken, 0.0).status(0.0, "").protocol_version == shown
