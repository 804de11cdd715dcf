"""Registers the functions of searches in a context of the engine.

Their names are internal: statements of the runtime use them, and they may change. Most processes
never search, so the functions themselves are imported when they are first called.
"""

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa
from datafusion import Accumulator, SessionContext, udaf, udf

from caraway_core.errors import InvalidQueryError, InvalidRequestError
from caraway_engine.errors import failing
from caraway_engine.searching import function_names as names

_VECTOR = pa.list_(pa.float32())
_QUERY = (pa.binary_view(), pa.string_view())
"""As views: the engine repeats a constant for each row, and rows of views share their bytes."""
_TEXTS = (pa.list_(pa.string()), pa.string_view())
_NUMBERS = pa.list_(pa.int64())
Function = Callable[..., Any]


def register(context: SessionContext) -> None:
    """Add the functions to a context."""
    for scalar in _scalars():
        context.register_udf(scalar)
    for aggregate in _aggregates():
        context.register_udaf(aggregate)


@functools.cache
def _scalars() -> Sequence[object]:
    vectors = [pa.list_(_VECTOR), *_QUERY]
    return (
        _scalar(names.VECTOR_SCORE, "vectors.scores", [_VECTOR, *_QUERY], pa.float64()),
        _scalar(names.BEST_VECTOR_SCORE, "vectors.scores", vectors, pa.float64()),
        _scalar(names.BEST_CHUNK, "vectors.best_chunks", vectors, pa.int64()),
        _scalar(names.TEXT_SCORE, "texts.scores", [*_TEXTS], pa.float64()),
    )


@functools.cache
def _aggregates() -> Sequence[object]:
    return (
        udaf(
            TextStatisticsSum,
            list(_TEXTS),
            _NUMBERS,
            [_NUMBERS],
            "immutable",
            names.TEXT_STATISTICS,
        ),
        udaf(NumbersSum, [_NUMBERS], _NUMBERS, [_NUMBERS], "immutable", names.STATISTICS_SUM),
    )


def _scalar(name: str, place: str, takes: list[pa.DataType], gives: pa.DataType) -> object:
    return udf(_safe(place), takes, gives, "immutable", name)


def _safe(place: str) -> Function:
    """Return a function that is imported when it is first called, with errors for users."""
    module, _, name = place.rpartition(".")

    def call(*arguments: object) -> Any:
        try:
            function = getattr(import_module(f"caraway_engine.searching.{module}"), name)
            return function(*arguments)
        except (ValueError, InvalidRequestError) as exc:
            raise failing.marked(InvalidQueryError(str(exc))) from exc
        except ModuleNotFoundError as exc:
            raise failing.marked(_not_installed(exc)) from exc

    return call


def _not_installed(exc: ModuleNotFoundError) -> InvalidQueryError:
    return InvalidQueryError(
        f"a search needs the package '{exc.name}', which is not installed; install it with: "
        "pip install 'caraway[search]'"
    )


class NumbersSum(Accumulator):  # type: ignore[misc] # datafusion is untyped to us
    """Adds up lists of numbers, place by place; an empty list stands for no rows."""

    def __init__(self) -> None:
        self._totals: list[int] = []

    def update(self, numbers: pa.ListArray) -> None:
        """Add the lists of some rows."""
        for each in numbers.to_pylist():
            if each:
                self.add(each)

    def merge(self, states: Sequence[pa.ListArray]) -> None:
        """Add the sums of others."""
        self.update(states[0])

    def state(self) -> list[pa.Scalar]:
        """Return the sum so far."""
        return [self.evaluate()]

    def evaluate(self) -> pa.Scalar:
        """Return the sum."""
        return pa.scalar(self._totals, _NUMBERS)

    def add(self, numbers: Sequence[int]) -> None:
        """Add one list."""
        if not self._totals:
            self._totals = list(numbers)
        elif len(self._totals) == len(numbers):
            pairs = zip(self._totals, numbers, strict=True)
            self._totals = [left + right for left, right in pairs]
        else:
            raise failing.marked(
                InvalidQueryError("statistics of two queries cannot be added together")
            )


class TextStatisticsSum(NumbersSum):
    """Adds up what a text query needs to know of the rows of a table."""

    def update(self, texts: pa.ListArray, request: pa.StringViewArray) -> None:  # type: ignore[override]
        """Add the statistics of some rows."""
        if len(texts):
            self.add(_statistics(texts, request))

    def merge(self, states: Sequence[pa.ListArray]) -> None:
        """Add the sums of others."""
        super().update(states[0])


_statistics = _safe("texts.statistics")
