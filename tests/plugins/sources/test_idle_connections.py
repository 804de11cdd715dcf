"""Idle connections serve the next statement with the same login, for a while."""

from caraway_plugins.sources.idle_connections import (
    LONGEST_IDLE_S,
    MOST_IDLE,
    IdleConnections,
)
from tests.kit.clocks import Clock

ONE, OTHER = {"user": "one"}, {"user": "other"}


class Closed(list[object]):
    """Records the connections that were closed."""

    def close_idle(self, connection: object) -> None:
        self.append(connection)


def test_a_connection_is_given_to_the_next_with_the_same_login_only() -> None:
    idle = IdleConnections(Closed(), Clock())
    idle.give(ONE, "first")
    assert idle.take_idle(OTHER) is None
    assert idle.take_idle(dict(ONE)) == "first"
    assert idle.take_idle(ONE) is None


def test_the_one_used_last_is_used_next() -> None:
    idle = IdleConnections(Closed(), Clock())
    idle.give(ONE, "first")
    idle.give(ONE, "last")
    assert idle.take_idle(ONE) == "last"


def test_more_than_a_few_of_a_login_are_closed() -> None:
    closed = Closed()
    idle = IdleConnections(closed, Clock())
    for number in range(MOST_IDLE + 2):
        idle.give(ONE, number)
    idle.give(OTHER, "of the other")
    assert closed == [MOST_IDLE, MOST_IDLE + 1]


def test_what_nobody_used_for_long_is_closed_also_for_other_logins() -> None:
    closed, clock = Closed(), Clock()
    idle = IdleConnections(closed, clock)
    idle.give(ONE, "old")
    clock.now += LONGEST_IDLE_S + 1
    idle.give(OTHER, "new")
    assert closed == ["old"]
    assert (idle.take_idle(ONE), idle.take_idle(OTHER)) == (None, "new")


def test_close_closes_those_that_are_idle() -> None:
    closed = Closed()
    idle = IdleConnections(closed, Clock())
    for login in (ONE, OTHER):
        idle.give(login, login["user"])
    idle.close()
    assert closed == ["one", "other"]
    assert idle.take_idle(ONE) is None
