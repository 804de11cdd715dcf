"""The section `workers`."""

import pytest

from caraway_core.manifest.values.workers import DeclaredWorker, RoutedModel
from tests.core.manifest.conftest import Loads, Refuses, Write

MODELS = "models: [{from: 'openai:x', name: a}, {from: 'openai:y', name: b}]\n"


def test_workers_choose_between_models(loads: Loads) -> None:
    manifest = loads(
        MODELS
        + """
workers:
  - {name: turns, description: one after the other, models: [{from: a}, {from: b}]}
  - {name: shares, models: [{from: a, weight: 8}, {from: b, weight: 0.5}]}
  - name: spare
    type: load_balance
    load_balance: {routing: [{from: b, order: 2}, {from: a, order: 1}]}
    params: {cooldown: 1m}
"""
    )
    turns, shares, spare = manifest.workers
    assert turns == DeclaredWorker(
        "turns", "load_balance", "one after the other", "round_robin",
        (RoutedModel("a"), RoutedModel("b")),
    )  # fmt: skip
    assert turns.is_llm
    assert (shares.routing, [each.weight for each in shares.models]) == ("weighted", [8, 0.5])
    assert (spare.routing, [each.name for each in spare.models]) == ("fallback", ["a", "b"])
    assert spare.cooldown_s == 60


def test_workers_run_on_a_cron(loads: Loads) -> None:
    manifest = loads(
        MODELS
        + """
workers:
  - {name: report, models: [{from: a}], cron: 0 2 * * *, params: {prompt: What is new?}}
  - {name: tidy, type: sql, sql: DELETE FROM t WHERE old, cron: '*/5 * * * *'}
"""
    )
    report, tidy = manifest.workers
    assert (report.prompt, report.cron, report.is_llm) == ("What is new?", "0 2 * * *", True)
    assert (tidy.sql, tidy.type, tidy.is_llm) == ("DELETE FROM t WHERE old", "sql", False)


def test_models_of_other_files_are_known(write: Write, loads: Loads) -> None:
    write("name: other\n" + MODELS, "other/caraway.yaml")
    write("name: w\nmodels: [{from: b}]\n", "w/worker.yaml")
    (worker,) = loads("dependencies: [other]\nworkers: [{ref: w}]").workers
    assert worker.models == (RoutedModel("b"),)


@pytest.mark.parametrize(
    ("worker", "problem"),
    [
        ("{name: w}", ": the worker has nothing to do; give it 'models', or 'sql' with a 'cron'"),
        ("{name: w, models: []}", ": the worker has nothing to do"),
        ("{name: '-', models: [{from: a}]}", ".name: '-' is not a name"),
        ("{name: a, models: [{from: a}]}", ".name: the name 'a' is taken: a model is declared at "),
        ("{name: w, models: [{from: c}]}", ".models[0].from: no model 'c'"),
        ("{name: w, load_balance: {routing: [{from: c}]}}",
         ".load_balance.routing[0].from: no model 'c'"),
        ("{name: w, models: [{from: w}]}", ".models[0].from: 'w' is a worker; name its models"),
        ("{name: w, models: [{from: a}, {from: a}]}", ".models[1].from: the model 'a' is named"),
        ("{name: w, models: [{from: a, weight: 1}, {from: b, order: 1}]}",
         ".models[1].order: 'weight' divides requests, 'order' makes a fallback; keep one"),
        ("{name: w, models: [{from: a, weight: 1}, {from: b}]}",
         ".models[1].weight: the key 'weight' is missing, which other models"),
        ("{name: w, models: [{from: a, weight: 0}]}", ".models[0].weight: must be more than 0"),
        ("{name: w, models: [{from: a, weight: .inf}]}", ".models[0].weight: must be "),
        ("{name: w, models: [{from: a, order: -1}]}", ".models[0].order: must be at least 0"),
        ("{name: w, models: [{from: a}], load_balance: {routing: [{from: b}]}}",
         ".load_balance: 'models' and 'load_balance.routing' mean the same; keep one"),
        ("{name: w, models: [{from: a}], sql: SELECT 1, cron: '* * * * *', params: {prompt: x}}",
         ".sql: a worker has models or a statement; make two workers of it"),
        ("{name: w, type: sql, models: [{from: a}]}", ".type: the worker has models: write "),
        ("{name: w, type: magic, models: [{from: a}]}", ".type: 'magic' is not one of: load_bal"),
        ("{name: w, type: [], models: [{from: a}]}", ".type: must be one of: load_balance, sql"),
        ("{name: w, sql: SELECT 1}", ".sql: a statement runs at the times of a 'cron', which is"),
        ("{name: w, sql: SELECT 1, cron: '* * * *'}", ".cron: '* * * *' is not a cron expression"),
        ("{name: w, sql: SELECT 1, cron: '61 * * * *'}",
         ".cron: '61 * * * *' is not a cron expression: its minute is invalid"),
        ("{name: w, sql: SELECT 1, cron: '0 0 31 2 *'}",
         ".cron: '0 0 31 2 *' is not a cron expression: its day-of-month is"),
        ("{name: w, sql: SELECT 1, cron: '0 0 * * *', params: {prompt: x}}",
         ".params.prompt: no sql param 'prompt'"),
        ("{name: w, models: [{from: a}], cron: '0 0 * * *'}",
         ".cron: the param 'prompt' is missing"),
        ("{name: w, models: [{from: a}], params: {prompt: x}}",
         ".params.prompt: it is sent at the times of a 'cron', which is missing"),
        ("{name: w, models: [{from: a}], params: {cooldown: long}}",
         ".params.cooldown: 'long' is not a duration"),
        ("{name: w, models: [{from: a}], speed: 9}", ".speed: unknown key 'speed'"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_place(refuses: Refuses, worker: str, problem: str) -> None:
    (found,) = refuses(f"name: app\n{MODELS}workers:\n  - {worker}\n")
    assert found.startswith(f"caraway.yaml:4: workers[0]{problem}")


def test_a_name_is_taken_once(refuses: Refuses) -> None:
    (found,) = refuses(
        f"name: app\n{MODELS}workers:\n  - {{name: w, models: [{{from: a}}]}}\n"
        "  - {name: w, models: [{from: b}]}\n"
    )
    assert found.startswith("caraway.yaml:5: workers[1].name: the name 'w' is taken: ")
