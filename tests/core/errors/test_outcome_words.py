"""Clients see no internals of stores, Ray or Arrow, and no paths or addresses."""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from redis import exceptions

from caraway_core import errors
from caraway_core.errors import outcomes
from caraway_plugins.stores.redis import errors as redis_errors
from caraway_plugins.stores.sqlite import errors as sqlite_errors
from caraway_scheduler.jobs import failures
from caraway_serving import errors as answers
from caraway_serving import spans
from caraway_serving.flight import statuses

SERVER, PLACE = "redis://10.0.0.7:6379", Path("/var/lib/caraway/state.db")
INSIDES = ("10.0.0.7", "/var/lib", "Errno", "sqlite", "raylet", "MISCONF", "OOM", "ObjectRef")


def sqlite(failure: Exception) -> errors.CarawayError:
    try:
        with sqlite_errors.explained(PLACE):
            raise failure
    except errors.CarawayError as exc:
        return exc


def coded(code: int) -> sqlite3.OperationalError:
    failure = sqlite3.OperationalError("unable to open sqlite database file /var/lib/x")
    failure.sqlite_errorcode = code
    return failure


FAILURES = [
    redis_errors.explained(SERVER, exceptions.ConnectionError("Error 111 10.0.0.7:6379. [Errno]")),
    redis_errors.explained(SERVER, exceptions.TimeoutError("Timeout reading from 10.0.0.7")),
    redis_errors.explained(SERVER, exceptions.BusyLoadingError("LOADING at 10.0.0.7")),
    redis_errors.explained(SERVER, exceptions.ResponseError("OOM command not allowed")),
    redis_errors.explained(SERVER, exceptions.ResponseError("MISCONF Redis is configured")),
    sqlite(coded(sqlite3.SQLITE_BUSY)),
    sqlite(coded(sqlite3.SQLITE_CANTOPEN)),
    sqlite(coded(sqlite3.SQLITE_FULL)),
    sqlite(coded(sqlite3.SQLITE_IOERR)),
    sqlite(OSError(28, "No space left on device", str(PLACE))),
    sqlite(PermissionError(13, "Permission denied", str(PLACE))),
    errors.PartLostError("an exchange of the query is gone: ObjectRef(00ff) raylet 10.0.0.7"),
]


def over_http(exc: errors.CarawayError) -> list[str]:
    wires: list[Callable[[answers.Failure], object]] = [
        answers.as_text, answers.as_error, answers.as_message
    ]  # fmt: skip
    return [bytes(getattr(wire(exc), "body", b"")).decode() for wire in wires]


def over_flight(exc: errors.CarawayError) -> str:
    # A flight.FlightError of some kind.
    with pytest.raises(pa.ArrowException) as caught, statuses.answered(spans.start(None)):
        raise exc
    return str(caught.value)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: each.message[:60])
def test_a_failure_is_told_in_our_words(
    failure: errors.CarawayError, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        job = failures.explained(failure, "job", has_begun=True).message  # type: ignore[arg-type]
        told = [outcomes.words(failure), job, over_flight(failure), *over_http(failure)]

    for text in told:
        assert "again" in text
        assert [word for word in INSIDES if word in text] == []
    assert failure.message in {vars(record).get("cause") for record in caplog.records}


def test_other_errors_are_told_as_they_are() -> None:
    assert outcomes.words(errors.InvalidQueryError("no column 'a'")) == "no column 'a'"
