"""Runs tests over generated inputs: a short deterministic run, and a long random one."""

import functools
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, example, given, seed, settings
from hypothesis.strategies import SearchStrategy

_T = TypeVar("_T")


def check_same(inputs: SearchStrategy[_T], examples: int, check: Callable[[_T], None]) -> None:
    """Check the inputs that every run of this length generates, each once.

    They are generated once for all tests that pass the same object. A quarter of them is equal to
    another one.
    """
    generate = _settings(examples, derandomize=True)
    tried = given(inputs)(_one(check))
    for drawn in _distinct(inputs, examples):
        tried = example(drawn)(tried)
    try:
        settings(generate, phases=(Phase.explicit,))(tried)()
    except Exception:
        generate(given(inputs)(_one(check)))()  # It fails with the smallest input.
        raise


@functools.cache
def _distinct(inputs: SearchStrategy[_T], examples: int) -> Sequence[_T]:
    drawn: list[_T] = []
    _settings(examples, derandomize=True)(given(inputs)(_one(drawn.append)))()
    return list({repr(each): each for each in drawn}.values())


def check_others(
    inputs: SearchStrategy[_T],
    examples: int,
    check: Callable[[_T], None],
    request: pytest.FixtureRequest,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Check random inputs, then their totals; a failure names the seed."""
    chosen = request.config.getoption("--hypothesis-seed") or random.randrange(2**32)
    run = seed(int(chosen))(_settings(examples, print_blob=True)(given(inputs)(_one(check))))
    try:
        run()
        after()
    except BaseException as failure:
        failure.add_note(f"run again with --hypothesis-seed={chosen}")
        raise


def _one(check: Callable[[_T], None]) -> Callable[[_T], None]:
    # hypothesis needs a named function with one parameter.
    def each(drawn: _T) -> None:
        check(drawn)

    return each


def _settings(examples: int, **more: Any) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        **more,
    )
