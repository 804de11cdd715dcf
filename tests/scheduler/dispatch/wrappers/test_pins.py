"""Catalogs stay while a statement may read them, and no longer."""

import gc
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_core.ids import CatalogVersion, TableName
from caraway_core.statements import CatalogSnapshot, Statement
from caraway_scheduler.dispatch.wrappers.pins import PinnedStream, Pins
from tests.kit.clocks import Clock
from tests.kit.stream_double import StreamDouble

BATCH = pa.record_batch({"n": [1, 2]})
STATEMENT = Statement("SELECT 1", {})


def snapshot(version: int) -> CatalogSnapshot:
    return CatalogSnapshot(CatalogVersion(version), {TableName(f"t{version}"): None}, {})  # type: ignore[dict-item]


class Stream(StreamDouble):
    """Rows of a script; the last step may raise."""

    schema = BATCH.schema
    reads_only_catalog = True
    written = TableName("t")
    is_at_end = True

    def __init__(self, raised: BaseException | None = None) -> None:
        self.raised = raised
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        yield BATCH
        if self.raised is not None:
            raise self.raised

    async def aclose(self) -> None:
        self.closed += 1
        if self.raised is not None:
            raise self.raised


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.integers(-3, 6), max_size=30))
def test_versions_of_statements_under_way_are_pinned_and_no_others(steps: list[int]) -> None:
    pins, held = Pins(), list[tuple[int, Any]]()
    for step in steps:
        if step < 0 and held:
            held.pop(step % len(held))[1].release()
        elif step >= 0:
            held.append((step, pins.pin_catalogs(STATEMENT, snapshot(step), snapshot(step + 1))))
        pinned = pins.pinned(CatalogVersion(9))
        expected = {number for version, _ in held for number in (version, version + 1)}
        assert pinned.served == 9 and pinned.versions == expected
        assert len(pins.under_way()) == len(held)


def test_release_twice_forgets_one_statement_only() -> None:
    pins = Pins()
    first, _ = pins.pin_catalogs(STATEMENT, snapshot(1)), pins.pin_catalogs(STATEMENT, snapshot(1))
    first.release()
    first.release()
    assert pins.pinned(CatalogVersion(2)).versions == {1}


def test_statement_under_way_says_what_it_reads_and_since_when() -> None:
    clock = Clock()
    pins = Pins(clock)
    clock.now = 7.0
    pins.pin_catalogs(Statement("SELECT 2", {}, logs={"k": ()}), snapshot(1), snapshot(2))
    (under_way,) = pins.under_way()
    assert (under_way.sql, under_way.since_s, under_way.logs) == ("SELECT 2", 7.0, {"k": ()})
    assert [set(each) for each in under_way.catalogs] == [{"t1"}, {"t2"}]


@pytest.mark.parametrize("ending", ["read", "closed", "dropped", "failed"])
async def test_stream_lets_go_of_its_catalog_however_it_ends(ending: str) -> None:
    pins = Pins()
    inner = Stream(ValueError("broken") if ending == "failed" else None)
    stream = PinnedStream(inner, pins.pin_catalogs(STATEMENT, snapshot(1)))
    assert await anext(stream) is BATCH
    assert pins.under_way()
    if ending == "read":
        assert [batch async for batch in stream] == []
    elif ending == "closed":
        await stream.aclose()
        assert inner.closed == 1
    elif ending == "failed":
        with pytest.raises(ValueError, match="broken"):
            await anext(stream)
    else:
        del stream
        gc.collect()
    assert pins.under_way() == []


async def test_close_that_fails_lets_go_too() -> None:
    pins = Pins()
    stream = PinnedStream(Stream(OSError("gone")), pins.pin_catalogs(STATEMENT, snapshot(1)))
    with pytest.raises(OSError, match="gone"):
        await stream.aclose()
    assert pins.under_way() == []


async def test_stream_says_of_itself_what_the_inner_one_says() -> None:
    stream = PinnedStream(Stream(), Pins().pin_catalogs(STATEMENT))
    assert (stream.schema, stream.written) == (BATCH.schema, "t")
    assert stream.reads_only_catalog and stream.is_at_end
