"""Rules between the keys of workers, and the values that they become."""

import pytest

from tests.core.manifest.conftest import Loads, Refuses

MODELS = "models: [{from: 'openai:a', name: a}, {from: 'openai:b', name: b}]\n"
TWO = "models: [{from: a}, {from: b}]"


@pytest.mark.parametrize(
    ("keys", "routing", "models"),
    [
        (TWO, "round_robin", [("a", 1.0), ("b", 1.0)]),
        ("load_balance: {routing: [{from: a}]}", "round_robin", [("a", 1.0)]),
        ("models: [{from: a, weight: 3}, {from: b, weight: 1}]", "weighted", [("a", 3), ("b", 1)]),
        ("models: [{from: a, order: 2}, {from: b, order: 1}]", "fallback", [("b", 1), ("a", 1)]),
    ],
)
def test_keys_of_models_are_a_way_to_choose_one(
    loads: Loads, keys: str, routing: str, models: list[tuple[str, float]]
) -> None:
    (worker,) = loads(f"{MODELS}workers: [{{name: w, {keys}}}]").workers
    assert (worker.type, worker.routing) == ("load_balance", routing)
    assert [(each.name, each.weight) for each in worker.models] == models


def test_a_statement_runs_at_times(loads: Loads) -> None:
    (worker,) = loads("workers: [{name: w, sql: select 1, cron: '0 * * * *'}]").workers
    assert (worker.type, worker.sql, worker.cron) == ("sql", "select 1", "0 * * * *")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("description: d", "the worker has nothing to do; give it 'models'"),
        ("models: []", "the worker has nothing to do"),
        (f"{TWO}, sql: select 1", "sql: a worker has models or a statement"),
        (f"{TWO}, load_balance: {{routing: [{{from: a}}]}}", "mean the same; keep one"),
        (f"{TWO}, type: sql", "type: the worker has models: write 'load_balance'"),
        ("sql: select 1, cron: '0 * * * *', type: load_balance",
         "type: the worker has a statement: write 'sql'"),
        ("sql: select 1", "sql: a statement runs at the times of a 'cron', which is missing"),
        ("models: [{from: a}, {from: a}]", "models[1].from: the model 'a' is named twice"),
        ("models: [{from: a, weight: 1, order: 1}]", "models[0].order: 'weight' divides requests"),
        ("models: [{from: a, weight: 1}, {from: b}]", "models[1].weight: the key 'weight' is miss"),
        ("models: [{from: a}, {from: b, order: 1}]", "models[0].order: the key 'order' is missing"),
        ("models: [{from: c}]", "models[0].from: no model 'c'; known: a, b"),
        ("load_balance: {routing: [{from: w}]}",
         "load_balance.routing[0].from: 'w' is a worker; name its models"),
        (f"{TWO}, cron: '61 * * * *', params: {{prompt: p}}", "its minute is invalid"),
        (f"{TWO}, cron: '0 0 31 2 *', params: {{prompt: p}}", "its day-of-month is invalid"),
        (f"{TWO}, cron: '0 * * * *'", "cron: the param 'prompt' is missing"),
        (f"{TWO}, cron: '0 * * * *', params: {{prompt: ' '}}", "cron: the param 'prompt' is miss"),
        (f"{TWO}, params: {{prompt: p}}", "params.prompt: it is sent at the times of a 'cron'"),
        (f"{TWO}, params: {{cool: 1s}}", "params.cool: no load_balance param 'cool'"),
        ("sql: select 1, cron: '0 * * * *', params: {prompt: p}",
         "params.prompt: no sql param 'prompt'; there are none"),
    ],
)  # fmt: skip
def test_problems(refuses: Refuses, keys: str, problem: str) -> None:
    problems = refuses(f"name: app\n{MODELS}workers: [{{name: w, {keys}}}]")
    assert any(problem in each for each in problems), problems


@pytest.mark.parametrize(
    ("name", "problem"),
    [("v", "the name 'v' is taken: it is declared at"), ("a", "a model is declared at")],
)
def test_names_are_taken_once(refuses: Refuses, name: str, problem: str) -> None:
    workers = f"workers: [{{name: v, {TWO}}}, {{name: {name}, {TWO}}}]"
    problems = refuses(f"name: app\n{MODELS}{workers}")
    assert any(problem in each for each in problems), problems
