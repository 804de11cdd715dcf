"""Which model a worker chooses."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from caraway_assist.models.limits import LimitSettings, ModelLimits
from caraway_assist.models.routing import ModelRoute
from caraway_assist.models.states import LoadedModel, ModelState
from caraway_core.errors import ModelAwayError, ModelError
from caraway_core.manifest import Model
from caraway_core.manifest.values.workers import DeclaredWorker, RoutedModel, Routing
from tests.kit.clocks import Clock


def states(*names: str) -> Mapping[str, ModelState]:
    chat: Any = None
    found = {}
    for name in names:
        state = ModelState(Model(name, f"openai:{name}", "openai", name, Path()))
        state.loaded = LoadedModel(chat, ModelLimits(name, LimitSettings()))
        state.is_ready()
        found[name] = state
    return found


def route(routing: Routing, clock: Clock, **weights: float) -> ModelRoute:
    models = tuple(RoutedModel(name, weight) for name, weight in weights.items())
    worker = DeclaredWorker("w", "load_balance", routing=routing, models=models)
    return ModelRoute(worker, clock)


def firsts(chosen: ModelRoute, known: Mapping[str, ModelState], calls: int) -> str:
    return "".join(chosen.choose(known)[0] for _ in range(calls))


def test_models_take_turns() -> None:
    known, turns = states("a", "b", "c"), route("round_robin", Clock(), a=1, b=1, c=1)
    assert firsts(turns, known, 7) == "abcabca"
    assert len(turns.choose(known)) == 3


def test_weights_hold_over_many_calls_and_are_spread() -> None:
    known, shares = states("a", "b", "c"), route("weighted", Clock(), a=5, b=1, c=4)
    said = firsts(shares, known, 1000)
    assert Counter(said) == {"a": 500, "b": 100, "c": 400}
    assert all(Counter(said[at : at + 10]) == {"a": 5, "b": 1, "c": 4} for at in range(0, 1000, 10))
    assert "aaa" not in said
    fractions = route("weighted", Clock(), a=0.25, b=0.75, c=1)
    assert Counter(firsts(fractions, known, 800)) == {"a": 100, "b": 300, "c": 400}


def test_a_fallback_keeps_its_order() -> None:
    known, spare = states("a", "b"), route("fallback", Clock(), a=1, b=1)
    assert [list(spare.choose(known)) for _ in range(3)] == [["a", "b"]] * 3


def test_a_model_rests_after_a_failure() -> None:
    clock = Clock()
    known, turns = states("a", "b"), route("round_robin", clock, a=1, b=1)
    turns.failed("a", ModelError("no"))
    assert firsts(turns, known, 3) == "bbb"
    assert list(turns.choose(known)) == ["b", "a"]
    clock.now += turns.worker.cooldown_s
    assert set(firsts(turns, known, 2)) == {"a", "b"}
    turns.failed("b", ModelAwayError("slow down", "rate_limit", 5))
    clock.now += 4
    assert turns.rests("b")
    clock.now += 1
    assert not turns.rests("b")


def test_models_that_all_rest_are_tried_all_the_same() -> None:
    clock = Clock()
    known, spare = states("a", "b"), route("fallback", clock, a=1, b=1)
    spare.failed("a", ModelError("no"))
    clock.now += 1
    spare.failed("b", ModelError("no"))
    assert list(spare.choose(known)) == ["a", "b"]
    spare.succeeded("b")
    assert list(spare.choose(known)) == ["b", "a"]


def test_models_that_are_not_ready_are_left_out() -> None:
    known, turns = states("a", "b", "c"), route("round_robin", Clock(), a=1, b=1, c=1)
    known["a"].has_failed(ModelError("model 'a': the key is wrong", "auth"))
    known["c"].status = "initializing"
    assert list(turns.choose(known)) == ["b"]
    known["b"].has_failed(ModelError("model 'b': gone", "not_found"))
    with pytest.raises(ModelAwayError) as caught:
        turns.choose(known)
    assert caught.value.message == (
        "worker 'w': none of its models is ready: model 'a': the key is wrong; "
        "model 'b': gone; model 'c' is still loading"
    )
