import inspect

import pytest
from ray import exceptions

from caraway_core.errors import (
    CarawayError,
    ExecutionError,
    ExecutorLostError,
    InvalidQueryError,
    OutOfMemoryQueryError,
    PartLostError,
    QueryCancelledError,
)
from caraway_core.ids import ExecutorId
from caraway_core.protocols.fleet import ExchangePart, Input
from caraway_scheduler.dispatch.fleets.parts import Held
from caraway_scheduler.dispatch.fleets.ray_failures import FATES, translate

ONE, TWO = ExecutorId("e1"), ExecutorId("e2")


class Reference:
    def hex(self) -> str:
        return "ab"


class Never:
    """A loss that does not come."""


HELD = Held(Reference(), Never())  # type: ignore[arg-type] # it is not awaited
INPUTS = (Input("x", None, (ExchangePart(HELD, TWO, 1, 1),)),)


def told(cause: Exception) -> exceptions.RayTaskError:
    """Return a failure that the executor itself raised."""
    error = exceptions.RayTaskError.__new__(exceptions.RayTaskError)
    error.cause = cause
    return error


def test_every_exception_of_ray_has_a_fate() -> None:
    known = {
        kind
        for _, kind in inspect.getmembers(exceptions, inspect.isclass)
        if issubclass(kind, exceptions.RayError)
    }
    assert known - FATES.keys() == set()


@pytest.mark.parametrize(
    ("failure", "inputs", "meaning"),
    [
        (exceptions.ActorDiedError(), (), ExecutorLostError),
        (exceptions.ActorUnavailableError("it restarts", b"0" * 16), (), ExecutorLostError),
        (exceptions.WorkerCrashedError(), (), ExecutorLostError),
        (exceptions.GetTimeoutError("late"), (), ExecutorLostError),
        (exceptions.ObjectLostError("ab", None, ""), (), ExecutorLostError),
        (told(exceptions.ObjectLostError("ab", None, "")), INPUTS, PartLostError),
        (told(exceptions.OwnerDiedError("ab", None, "")), INPUTS, PartLostError),
        (exceptions.ObjectStoreFullError("full"), (), OutOfMemoryQueryError),
        (told(exceptions.OutOfDiskError("full")), (), OutOfMemoryQueryError),
        (exceptions.TaskCancelledError(), (), QueryCancelledError),
        (told(InvalidQueryError("no such column")), (), InvalidQueryError),
        (told(KeyError("a bug")), (), ExecutionError),
    ],
)
def test_failures_map_to_errors_that_the_driver_handles(
    failure: exceptions.RayError, inputs: tuple[Input, ...], meaning: type[CarawayError]
) -> None:
    assert type(translate(failure, ONE, inputs)) is meaning


def test_lost_part_names_the_executor_that_made_it() -> None:
    error = translate(told(exceptions.ObjectLostError("ab", None, "")), ONE, INPUTS)
    assert isinstance(error, PartLostError)
    assert error.executor_id == TWO
