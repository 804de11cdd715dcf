"""Entries against a plain model: revisions, expiry, tombstones, pages of changes."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caraway_plugins.stores.sqlite import entries, file
from caraway_plugins.stores.sqlite.entries import PAGE_ENTRIES, ConditionalWrite
from caraway_plugins.stores.watching import TRACE_KEPT_S


@contextmanager
def opened() -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory() as folder:
        connection = file.open_file(Path(folder) / "state.db")
        try:
            yield connection
        finally:
            connection.close()


def put(
    connection: sqlite3.Connection, key: str, value: bytes | None, now: float = 0.0,
    ttl_s: float | None = None,
) -> int | None:  # fmt: skip
    standing = entries.get(connection, key, now)
    expected = standing.revision if standing else None
    return entries.compare_and_set(connection, ConditionalWrite(key, value, expected, ttl_s), now)


KEYS = st.sampled_from(["", "a", "a/1", "a/2", "b", "ä", "\uffff", "\U0010ffff", "a\x00"])
STEPS = st.lists(
    st.tuples(
        KEYS,
        st.none() | st.binary(min_size=1, max_size=3),
        st.none() | st.sampled_from([0.0, 5.0, 50.0]),
        st.sampled_from([0.0, 1.0, 10.0]),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(STEPS, KEYS)
def test_entries_are_those_of_a_plain_model(
    steps: list[tuple[str, bytes | None, float | None, float]], prefix: str
) -> None:
    now = 0.0
    model: dict[str, tuple[bytes, int, float | None]] = {}
    last = 0
    with opened() as connection:
        for key, value, ttl_s, passes_s in steps:
            now += passes_s
            revision = put(connection, key, value, now, ttl_s)
            assert revision is not None and revision > last
            last = revision
            model.pop(key, None)
            if value is not None:
                model[key] = (value, revision, None if ttl_s is None else now + ttl_s)
            live = {
                name: each
                for name, each in model.items()
                if each[2] is None or each[2] > now
            }  # fmt: skip
            found = entries.scan(connection, prefix, now)
            assert [each.key for each in found] == sorted(
                (name for name in live if name.startswith(prefix)), key=str.encode
            )
            assert all((each.value, each.revision) == live[each.key][:2] for each in found)
            names = sorted(model)
            assert entries.revisions(connection, names, now) == [
                live[name][1] if name in live else 0 for name in names
            ]
        assert entries.revision(connection) >= last


@pytest.mark.parametrize("expected", [0, 1, 99, None])
def test_a_write_at_another_revision_changes_nothing(expected: int | None) -> None:
    with opened() as connection:
        first = put(connection, "a", b"1")
        second = put(connection, "a", b"2")
        assert (first, second) == (1, 2)
        write = ConditionalWrite("a", b"3", expected, None)
        assert entries.compare_and_set(connection, write, 0.0) is None
        found = entries.get(connection, "a", 0.0)
        assert found is not None and (found.value, found.revision) == (b"2", 2)


def test_an_expired_entry_is_absent_for_a_write() -> None:
    with opened() as connection:
        revision = put(connection, "a", b"1", ttl_s=10)
        stale = ConditionalWrite("a", b"2", revision, None)
        assert entries.compare_and_set(connection, stale, 10.0) is None
        fresh = ConditionalWrite("a", b"2", None, None)
        assert entries.compare_and_set(connection, fresh, 10.0) is not None


def test_expiry_is_a_change_with_a_revision_of_its_own() -> None:
    with opened() as connection:
        revision = put(connection, "a", b"1", ttl_s=10)
        assert revision is not None and not entries.is_sweep_due(connection, 9.9)
        assert entries.is_sweep_due(connection, 10.0)
        # Not swept yet: it is neither alive nor reported as deleted.
        assert entries.changes(connection, "", revision - 1, 10.0).entries == []
        entries.sweep(connection, 10.0)
        assert not entries.is_sweep_due(connection, 10.0)
        (change,) = entries.changes(connection, "", revision, 10.0).entries
        assert (change.key, change.value) == ("a", b"") and change.revision > revision


def test_tombstones_are_kept_for_an_hour_and_then_told_as_forgotten() -> None:
    with opened() as connection:
        put(connection, "a", b"1")
        deleted = put(connection, "a", None)
        entries.sweep(connection, TRACE_KEPT_S - 1)
        page = entries.changes(connection, "", 0, 0.0)
        assert [each.value for each in page.entries] == [b""] and page.forgotten == 0
        entries.sweep(connection, TRACE_KEPT_S)
        page = entries.changes(connection, "", 0, 0.0)
        assert page.entries == [] and page.forgotten == deleted == page.upto


@pytest.mark.parametrize("count", [0, 1, PAGE_ENTRIES - 1, PAGE_ENTRIES, PAGE_ENTRIES + 1, 600])
def test_pages_of_changes_are_complete_up_to_where_they_say(count: int) -> None:
    with opened() as connection:
        for number in range(count):
            put(connection, f"{'a' if number % 2 else 'b'}/{number}", b"x")
        after, found = 0, []
        while True:
            page = entries.changes(connection, "a/", after, 0.0)
            found += [each.key for each in page.entries]
            assert page.upto >= after
            if page.upto == after or not page.entries:
                break
            after = page.upto
        assert found == [f"a/{number}" for number in range(count) if number % 2]


def test_a_sweep_takes_a_bounded_number_at_once() -> None:
    with opened() as connection:
        for number in range(entries.SWEPT_AT_ONCE + 10):
            put(connection, f"{number}", b"x", ttl_s=1)
        entries.sweep(connection, 100.0)
        assert entries.is_sweep_due(connection, 100.0)
        entries.sweep(connection, 100.0)
        assert not entries.is_sweep_due(connection, 100.0)


def test_a_write_that_fails_leaves_no_transaction() -> None:
    with opened() as connection:
        put(connection, "a", b"1")
        with pytest.raises(ZeroDivisionError), file.transaction(connection):
            connection.execute("UPDATE entries SET value = x'00'")
            raise ZeroDivisionError
        assert not connection.in_transaction
        found = entries.get(connection, "a", 0.0)
        assert found is not None and found.value == b"1"
