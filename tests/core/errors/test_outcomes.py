"""The table of errors covers every class that the runtime can raise."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

from caraway_core import errors
from caraway_core.errors import outcomes
from caraway_core.errors.outcomes import FailureKind, FailureOutcome
from caraway_core.ids import ExecutorId, TableName

PACKAGES = ("caraway_core", "caraway_engine", "caraway_plugins", "caraway_acceleration",
            "caraway_assist", "caraway_gateway", "caraway_scheduler",
            "caraway_executor", "caraway_cluster", "caraway_ai")  # fmt: skip
INSIDE = {
    # Always caught, or raised where no client waits for a response.
    "NodeFailedError", "NoProofError", "ChunksAwayError", "ActorFailedError", "MovedError",
    "DisplacedError", "GitError", "TransitionError", "AbsentSecretError", "RefusedSecretError",
}  # fmt: skip
"""Classes without a kind of their own: to a client each of them is an internal error."""


def own_classes() -> set[type[errors.CarawayError]]:
    found = (each for _, each in inspect.getmembers(errors, inspect.isclass))
    return {each for each in found if issubclass(each, errors.CarawayError)}


def all_classes(kind: type[errors.CarawayError]) -> Iterator[type[errors.CarawayError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from all_classes(each)


def test_every_class_of_the_tree_has_a_row() -> None:
    assert set(outcomes.TABLE) == own_classes()


def test_every_class_of_other_packages_has_a_kind() -> None:
    for package in PACKAGES:
        module = importlib.import_module(package)
        for each in pkgutil.walk_packages(module.__path__, f"{package}."):
            if not each.name.endswith("__main__"):
                importlib.import_module(each.name)
    others = set(all_classes(errors.CarawayError)) - own_classes()
    internal = outcomes.TABLE[errors.CarawayError]
    unknown = {
        each.__name__
        for each in others
        if each.__module__.startswith(PACKAGES) and _row(each) is internal
    }
    assert unknown - INSIDE == set()


@pytest.mark.parametrize(
    ("error", "kind", "retry_after_s"),
    [
        (errors.InvalidQueryError("x"), FailureKind.INVALID, None),
        (errors.ParametersError("x"), FailureKind.INVALID, None),
        (errors.StateAwayError("x", 7), FailureKind.UNAVAILABLE, 7),
        (errors.OverloadedError("x", 5), FailureKind.OVERLOADED, 5),
        (errors.ExecutorLostError(ExecutorId("e"), "gone"), FailureKind.UNAVAILABLE, 2),
        (errors.StateFullError("x"), FailureKind.FULL, 10),
        (errors.StateUnsureError("x", 3), FailureKind.UNAVAILABLE, 3),
        (errors.DatasetDamagedError(TableName("t")), FailureKind.UNAVAILABLE, 5),
        (errors.DiskFullError("x"), FailureKind.FULL, 10),
        (errors.ResultStoreError("x"), FailureKind.INTERNAL, None),
        (errors.ResultStoreAwayError("x"), FailureKind.UNAVAILABLE, 5),
        (errors.DamagedChunkError("x"), FailureKind.INTERNAL, None),
        (errors.CarawayError("x"), FailureKind.INTERNAL, None),
    ],
)
def test_rows(error: errors.CarawayError, kind: FailureKind, retry_after_s: int | None) -> None:
    assert outcomes.of(error).kind is kind
    assert outcomes.retry_after_s(error) == retry_after_s


def test_words_say_where_a_change_may_have_been_made() -> None:
    unsure = outcomes.words(errors.StateUnsureError("redis://10.0.0.1: timeout"))
    assert "may have been done or not" in unsure
    assert "look before you send the request again" in unsure
    assert "10.0.0.1" not in unsure


@pytest.mark.parametrize("kind", [errors.StateAwayError, errors.StateFullError])
def test_words_do_not_promise_that_nothing_was_done(kind: type[errors.StateAwayError]) -> None:
    words = outcomes.words(kind("redis://10.0.0.1: timeout"))
    assert "send the request again" in words
    assert "nothing" not in words


def test_class_without_a_row_has_that_of_its_nearest_base() -> None:
    class OfThisTestError(errors.StateAwayError):
        pass

    assert outcomes.of(OfThisTestError("x", 3)).kind is FailureKind.UNAVAILABLE


def _row(kind: type[errors.CarawayError]) -> FailureOutcome:
    return next(outcomes.TABLE[each] for each in kind.__mro__ if each in outcomes.TABLE)
