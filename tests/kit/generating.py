"""Runs tests over generated inputs: a short deterministic run, and a long random one."""

import random
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

_T = TypeVar("_T")


def check_same(inputs: SearchStrategy[_T], examples: int, check: Callable[[_T], None]) -> None:
    """Check the inputs that every run of this length generates."""
    chosen = _settings(examples, derandomize=True)
    chosen(given(inputs)(_one(check)))()


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
