"""Prepared statements belong to the key that made them."""

import pyarrow as pa
import pytest

from caraway_core.ids import PrincipalId
from caraway_core.sqltext import placeholders
from caraway_gateway.flight.sql.prepared import IDLE_S, PreparedStatement, PreparedStatements
from caraway_serving.flight.statuses import NotFound, Unavailable
from tests.kit.clocks import Clock

SQL = "SELECT $1"
ONE, OTHER = PrincipalId("one"), PrincipalId("other")


def prepared(principal: PrincipalId = ONE) -> PreparedStatement:
    return PreparedStatement(SQL, principal, placeholders.find(SQL))


def test_only_the_key_that_made_a_statement_finds_and_closes_it() -> None:
    kept = PreparedStatements(clock=Clock())
    handle = kept.add(prepared())
    with pytest.raises(NotFound, match="belongs to another key"):
        kept.find(handle, OTHER)
    kept.close(handle, OTHER)
    assert kept.find(handle, ONE).sql == SQL
    kept.close(handle, ONE)
    kept.close(handle, ONE)
    with pytest.raises(NotFound, match="no such prepared statement"):
        kept.find(handle, ONE)


def test_handles_differ_and_cannot_be_guessed() -> None:
    kept = PreparedStatements(clock=Clock())
    handles = {kept.add(prepared()) for _ in range(10)}
    assert len(handles) == 10 and all(len(each) == 32 for each in handles)


def test_rows_that_are_bound_replace_those_before() -> None:
    kept = PreparedStatements(clock=Clock())
    handle = kept.add(prepared())
    for number in (1, 2):
        kept.bind(handle, ONE, pa.table({"n": [number]}))
    rows = kept.find(handle, ONE).rows
    assert rows is not None and rows.to_pydict() == {"n": [2]}


def test_rows_that_are_too_many_leave_those_that_are_bound() -> None:
    kept = PreparedStatements(most_bytes=200, clock=Clock())
    handle, few = kept.add(prepared()), pa.table({"n": [1]})
    kept.bind(handle, ONE, few)
    with pytest.raises(Unavailable, match="bind fewer rows at once"):
        kept.bind(handle, ONE, pa.table({"n": list(range(100))}))
    assert kept.find(handle, ONE).rows is few


def test_a_statement_in_use_is_kept_and_an_idle_one_forgotten() -> None:
    clock = Clock()
    kept = PreparedStatements(clock=clock)
    used, idle = kept.add(prepared()), kept.add(prepared())
    clock.now += IDLE_S - 1
    kept.find(used, ONE)
    clock.now += 2
    assert kept.find(used, ONE) is not None and len(kept) == 1
    with pytest.raises(NotFound):
        kept.find(idle, ONE)


def test_clear_makes_room_again() -> None:
    kept = PreparedStatements(most=1, clock=Clock())
    kept.add(prepared())
    with pytest.raises(Unavailable):
        kept.add(prepared())
    kept.clear()
    kept.add(prepared())
    assert len(kept) == 1
