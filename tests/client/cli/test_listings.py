import json

import pytest

from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime

LONG = "the bucket does not exist: " + "x" * 200
DATASETS = [
    {"from": "file:a", "name": "orders", "acceleration_enabled": True, "status": "ready"},
    {
        "from": "s3://b",
        "name": "events",
        "acceleration_enabled": False,
        "status": "Error",
        "error_message": LONG,
    },
]


def test_datasets_are_printed_as_a_table(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/datasets", Answer(body=json.dumps(DATASETS).encode()))

    shown = ask("datasets")

    header, orders, events = shown.stdout.splitlines()
    assert header.split() == ["name", "from", "acceleration_enabled"]
    assert orders.split() == ["orders", "file:a", "yes"]
    assert events.split() == ["events", "s3://b", "no"]


def test_output_to_a_pipe_is_not_truncated(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/datasets", Answer(body=json.dumps(DATASETS).encode()))

    shown = ask("datasets", "--status")

    assert runtime.asked[0].query == {"status": "true"}
    assert LONG in shown.stdout


def test_models_and_workers_are_printed_as_tables(ask: Command, runtime: FakeRuntime) -> None:
    models = {"object": "list", "data": [{"id": "chat", "owned_by": "openai", "status": "error",
                                          "error_message": LONG}]}  # fmt: skip
    workers = {"object": "list", "data": [{"name": "w", "description": "d", "is_llm": True}]}
    runtime.answers("GET /v1/models", Answer(body=json.dumps(models).encode()))
    runtime.answers("GET /v1/workers", Answer(body=json.dumps(workers).encode()))

    header, row = ask("models").stdout.splitlines()
    assert (header.split(), row.split()) == (["id", "owned_by"], ["chat", "openai"])
    assert LONG in ask("models", "--status").stdout
    header, row = ask("workers").stdout.splitlines()
    assert header.split() == ["name", "description", "is_llm"]
    assert row.split() == ["w", "d", "yes"]


def test_functions_are_printed_as_a_table(ask: Command, runtime: FakeRuntime) -> None:
    found = [{"signature": "twice(x int)", "kind": "scalar", "description": "d", "name": "twice"}]
    runtime.answers("GET /v1/functions", Answer(body=json.dumps(found).encode()))

    header, row = ask("functions").stdout.splitlines()

    assert header.split() == ["signature", "kind", "description"]
    assert row.split("  ")[0] == "twice(x int)" and row.split()[-2:] == ["scalar", "d"]


@pytest.mark.parametrize("command", ["datasets", "catalogs", "status"])
def test_json_is_printed_unchanged(ask: Command, runtime: FakeRuntime, command: str) -> None:
    runtime.answers(f"GET /v1/{command}", Answer(body=b'[ {"name":"x"} ]'))

    shown = ask(command, "--format", "json")

    assert (shown.exit_code, shown.stdout) == (0, '[ {"name":"x"} ]\n')
    assert runtime.asked[0].headers["accept"] == "application/json"


@pytest.mark.parametrize("command", ["datasets", "catalogs", "status"])
def test_csv_is_printed_unchanged(ask: Command, runtime: FakeRuntime, command: str) -> None:
    runtime.answers(f"GET /v1/{command}", Answer(body=b"from,name\nfile:a,x\n"))

    shown = ask(command, "--format", "csv")

    assert (shown.exit_code, shown.stdout) == (0, "from,name\nfile:a,x\n")
    assert runtime.asked[0].query == {"format": "csv"}


def test_catalogs_and_status_are_printed_as_tables(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/catalogs", Answer(body=b'[{"name":"lake","from":"iceberg:x"}]'))
    status = b'[{"name":"http","endpoint":"127.0.0.1:8090","status":"Ready"}]'
    runtime.answers("GET /v1/status", Answer(body=status))

    assert "lake" in ask("catalogs").stdout
    assert ask("status").stdout.splitlines()[1].split() == ["http", "127.0.0.1:8090", "Ready"]


def test_markup_in_a_name_is_printed_literally(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers("GET /v1/catalogs", Answer(body=b'[{"name":"[red]x[/red]","from":"[a"}]'))

    assert "[red]x[/red]" in ask("catalogs").stdout


def test_a_server_error_prints_one_message(ask: Command, runtime: FakeRuntime) -> None:
    refused = Answer(500, b"out of disk", {"Retry-After": "0"})
    runtime.answers("GET /v1/datasets", refused)

    shown = ask("datasets")

    assert (shown.exit_code, shown.stderr) == (1, "error: out of disk\n")


def test_executors_are_printed_as_a_table(ask: Command, runtime: FakeRuntime) -> None:
    entries = [
        {"executor_id": "e1", "state": "ready", "address": "h1", "cores": 2, "active_tasks": 1},
        {"executor_id": "e2", "state": "lost", "address": "h2", "cores": 2, "active_tasks": 0,
         "reason": "it did not respond for 5 s"},
    ]  # fmt: skip
    runtime.answers("GET /v1/cluster/executors", Answer(body=json.dumps(entries).encode()))

    header, first, second = ask("executors").stdout.splitlines()

    assert header.split() == [
        "executor_id", "state", "address", "cores", "active_tasks", "reason",
    ]  # fmt: skip
    assert first.split() == ["e1", "ready", "h1", "2", "1"]
    assert second.endswith("it did not respond for 5 s")
