"""Errors keep their class, message and fields when they cross between processes."""

import copy
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from caraway_core import errors
from caraway_core.errors import CarawayError, Problem

EXAMPLES: dict[str, Any] = {
    "message": "why\n'ü'", "problems": [Problem("f", 3, "a.b", "bad"), Problem("g", 0, "", "x")],
    "type_": "auth", "retry_after_s": 7, "executor_id": "e1", "cause": "fell over", "version": 4,
    "table": "a.b", "name": "n", "limit": 5, "key": "k",
}  # fmt: skip


def classes() -> Iterator[type[CarawayError]]:
    for _, each in sorted(inspect.getmembers(errors, inspect.isclass)):
        if issubclass(each, CarawayError):
            yield each


def made(class_: type[CarawayError]) -> CarawayError:
    names = list(inspect.signature(class_.__init__).parameters)[1:]
    return class_(**{name: EXAMPLES[name] for name in names})


@pytest.mark.parametrize("class_", list(classes()), ids=lambda class_: class_.__name__)
def test_an_error_crosses_whole(class_: type[CarawayError]) -> None:
    error = made(class_)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        found = pickle.loads(pickle.dumps(error, protocol))
        assert type(found) is class_
        assert found.__dict__ == error.__dict__ and found.args == error.args
        assert str(found) == str(error) == error.message
    assert copy.copy(error).__dict__ == error.__dict__


def test_a_class_whose_arguments_are_not_its_message_crosses() -> None:
    error = pickle.loads(pickle.dumps(errors.ManifestError(EXAMPLES["problems"])))
    assert error.problems == tuple(EXAMPLES["problems"])
    assert str(error) == "f:3: a.b: bad\ng: x"
    # Attributes that a caller adds to an error are pickled with it.
    error.hint = "look"
    assert pickle.loads(pickle.dumps(error)).hint == "look"
