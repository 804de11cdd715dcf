"""Wrapped dispatches pass on the methods that they do not change."""

import inspect
from typing import Any

import pytest

from caraway_core.protocols.dispatch import Dispatch
from caraway_scheduler.dispatch.wrappers.wrapping import WrappedDispatch

METHODS = [name for name, each in inspect.getmembers(Dispatch) if callable(each) and name[0] != "_"]


def test_every_method_of_a_dispatch_is_wrapped() -> None:
    assert METHODS
    assert set(METHODS) <= set(vars(WrappedDispatch))


@pytest.mark.parametrize("name", METHODS)
async def test_calls_are_passed_on(name: str) -> None:
    calls: list[tuple[object, ...]] = []
    is_async = inspect.iscoroutinefunction(getattr(Dispatch, name))

    def called(*arguments: object) -> object:
        calls.append(arguments)
        return "answer"

    async def called_later(*arguments: object) -> object:
        return called(*arguments)

    inner: Any = type("Inner", (), {})()
    setattr(inner, name, called_later if is_async else called)
    count = len(inspect.signature(getattr(Dispatch, name)).parameters) - 1
    answer = getattr(WrappedDispatch(inner), name)(*range(count))
    if is_async:
        answer = await answer
    assert calls == [tuple(range(count))]
    assert answer in ("answer", None)
