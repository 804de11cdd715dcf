"""What the driver reads of a database is shared by connections, and outlives them."""

import threading
from collections.abc import Iterator
from typing import Any

import adbc_driver_postgresql
import pytest
from adbc_driver_manager import dbapi

from caraway_plugins.sources.postgres import databases as module
from caraway_plugins.sources.postgres.databases import Databases
from tests.kit.postgres import Server, serving


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The databases that the driver opened."""
    found: list[Any] = []
    connect = adbc_driver_postgresql.connect

    def noted(*arguments: Any) -> Any:
        found.append(connect(*arguments))
        return found[-1]

    monkeypatch.setattr(adbc_driver_postgresql, "connect", noted)
    yield found
    for each in found:
        each.close()


def login(server: Server, **more: str) -> dict[str, str]:
    return {"host": server.params["pg_host"], "user": "postgres", "dbname": "postgres", **more}


def answers(connection: Any) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 AS a")
        return bool(cursor.fetchall() == [(1,)])


def test_connections_of_one_login_share_a_database(postgres: Server, opened: list[Any]) -> None:
    known = Databases()
    made: list[Any] = []
    threads = [
        threading.Thread(target=lambda: made.append(known.connect(login(postgres), 0)))
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (len(made), len(opened)) == (4, 1)
    made.pop().close()
    assert all(map(answers, made))
    other = known.connect(login(postgres, application_name="other"), 0)
    assert len(opened) == 2
    for each in (*made, other):
        each.close()
    again = known.connect(login(postgres), 0)
    assert answers(again) and len(opened) == 2
    again.close()


def test_a_database_is_closed_long_after_its_last_use(postgres: Server, opened: list[Any]) -> None:
    known = Databases()
    connection = known.connect(login(postgres), 10)
    late_s = 10 + module._LONGEST_UNUSED_S + 1
    known.close_unused(late_s)
    assert answers(connection), "it is in use"
    connection.close()
    known.close_unused(late_s - 2)
    known.connect(login(postgres), 10).close()
    assert len(opened) == 1
    known.close_unused(late_s)
    known.connect(login(postgres), late_s).close()
    assert len(opened) == 2
    known.close_unused(2 * late_s)


def test_a_server_that_ends_and_comes_back(opened: list[Any]) -> None:
    with serving() as server:
        known = Databases()
        known.connect(login(server), 0).close()
        server.stop()
        for _ in range(2):
            with pytest.raises(dbapi.Error):
                known.connect(login(server), 0)
        server.start()
        again = known.connect(login(server), 0)
        assert answers(again) and len(opened) == 1
        again.close()
        known.close_unused(module._LONGEST_UNUSED_S + 1)
