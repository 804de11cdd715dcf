"""Errors of Redis servers: whether to try again, and the advice."""

import pytest
from redis import exceptions

from caraway_core.errors import CarawayError, StateAwayError, StateFullError, StateUnsureError
from caraway_plugins.stores.redis import errors


@pytest.mark.parametrize(
    ("error", "kind", "advice"),
    [
        (exceptions.ConnectionError("refused"), StateAwayError, "check that the server runs"),
        (exceptions.TimeoutError(), StateAwayError, "TimeoutError; check that the server runs"),
        (TimeoutError("late"), StateAwayError, "check that the server runs"),
        (OSError(111, "refused"), StateAwayError, "check that the server runs"),
        (exceptions.BusyLoadingError("LOADING"), StateAwayError, "check that the server runs"),
        (exceptions.MasterDownError("down"), StateAwayError, "check that the server runs"),
        (exceptions.ReadOnlyError("replica"), StateAwayError, "set the primary"),
        (exceptions.ResponseError("READONLY You"), StateAwayError, "set the primary"),
        (exceptions.OutOfMemoryError("used memory"), StateFullError, "raise its maxmemory"),
        (exceptions.ResponseError("OOM command"), StateFullError, "raise its maxmemory"),
        (exceptions.ResponseError("MISCONF Redis"), StateFullError, "free space"),
        (exceptions.AuthenticationError("no"), CarawayError, "set the correct user"),
        (exceptions.ResponseError("WRONGPASS x"), CarawayError, "set the correct user"),
        (exceptions.ConnectionError("username-password pair"), CarawayError, "correct user"),
        (exceptions.NoPermissionError("x"), CarawayError, "docs/operate/README.md"),
        (exceptions.ConnectionError("certificate verify failed"), CarawayError, r"\?ca=FILE"),
        (exceptions.MovedError("1 h:6379"), CarawayError, "use a single server"),
        (exceptions.ResponseError("ERR what"), CarawayError, "defect of Caraway"),
        (ValueError(), CarawayError, "ValueError; this is a defect"),
    ],
)  # fmt: skip
def test_errors(error: Exception, kind: type[CarawayError], advice: str) -> None:
    found = errors.explained("h:6379", error)
    assert type(found) is kind
    assert found.message.startswith("state store h:6379: ")
    with pytest.raises(kind, match=advice):
        raise found


@pytest.mark.parametrize(
    ("error", "is_passing"),
    [
        (exceptions.ConnectionError("refused"), True),
        (exceptions.ConnectionError("NOAUTH"), False),
        (exceptions.AuthenticationError("x"), False),
        (exceptions.ReadOnlyError("x"), False),
        (OSError(), True),
        (ValueError(), False),
    ],
)
def test_what_passes(error: Exception, is_passing: bool) -> None:
    assert errors.is_passing(error) is is_passing


def test_a_write_that_was_sent_is_not_sure() -> None:
    away, full, refused = StateAwayError("away"), StateFullError("full"), CarawayError("no")
    found = errors.unsure(away)
    assert type(found) is StateUnsureError
    assert (found.message, found.retry_after_s) == ("away", away.retry_after_s)
    assert errors.unsure(full) is full
    assert errors.unsure(refused) is refused


def test_only_a_replica_refuses_writes() -> None:
    assert errors.is_replica(exceptions.ReadOnlyError("x"))
    assert not errors.is_replica(b"OK")
