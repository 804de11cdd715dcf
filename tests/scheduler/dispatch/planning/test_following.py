"""Statements get the logs of now, and send only those that they need."""

from typing import Any

import pytest

from caraway_core.ids import TableName
from caraway_core.statements import Statement
from caraway_core.tables import MemoryTable, ResultPlace, StoredTable
from caraway_scheduler.dispatch.planning import following
from caraway_scheduler.dispatch.planning.following import KnownLogs
from tests.kit.engine import memory

OLD: Any = ("old entry",)
NEW: Any = ("old entry", "new entry")


def version(key: str) -> StoredTable:
    return StoredTable(memory(k=[1]).schema, ResultPlace("file", "/p"), key, ())


def statement(**logs: Any) -> Statement:
    return Statement("SELECT 1", {}, logs=logs)


def test_a_statement_keeps_the_logs_that_were_those_of_its_start() -> None:
    known = KnownLogs()
    known.follow(version("a"), OLD)
    before = known.given_to(statement())
    known.follow(version("a"), NEW)
    known.follow(version("b"), OLD)
    assert before.logs == {"a": OLD}
    assert known.given_to(statement()).logs == {"a": NEW, "b": OLD}
    assert known.log_of(version("a")) == NEW


def test_logs_that_a_statement_names_are_its_own() -> None:
    known = KnownLogs()
    known.follow(version("a"), NEW)
    assert known.given_to(statement(a=OLD)).logs == {"a": OLD}


def test_an_empty_log_is_forgotten() -> None:
    known = KnownLogs()
    known.follow(version("a"), OLD)
    known.follow(version("a"), ())
    asked = statement()
    assert known.log_of(version("a")) == () and known.given_to(asked) is asked


@pytest.mark.parametrize("as_changes", [False, True])
def test_only_logs_of_tables_that_are_read_are_sent(as_changes: bool) -> None:
    tables: dict[TableName, StoredTable | MemoryTable] = {
        TableName("a"): version("a"), TableName("b"): version("b"), TableName("m"): memory(k=[1]),
    }  # fmt: skip
    asked = Statement("SELECT 1", {}, logs={"a": OLD, "b": NEW}, as_changes=as_changes)
    read = [TableName(each) for each in ("a", "m", "gone")]
    sent = following.narrowed(asked, read, tables)
    assert sent.logs == ({"a": OLD, "b": NEW} if as_changes else {"a": OLD})


def test_plans_need_the_keys_alone() -> None:
    assert following.named(statement(a=OLD, b=NEW)).logs == {"a": (), "b": ()}
    asked = statement()
    assert following.named(asked) is asked
