import json

from tests.client.cli.conftest import Command
from tests.client.runtime import Answer, FakeRuntime

LONG = "A text of two\nlines, " + "and of many words " * 20
FOUND = {
    "results": [
        {
            "matches": {"body": [LONG]},
            "data": {"title": "Keys"},
            "primary_key": {"id": 7, "part": "a"},
            "dataset": "docs",
            "_score": 0.0327868,
        },
        {"dataset": "notes", "_score": 0.5},
    ],
    "duration_ms": 3,
}
ROUTE = "POST /v1/search"


def test_what_was_found_is_printed_as_a_table(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(ROUTE, Answer(body=json.dumps(FOUND).encode()))

    shown = ask("search", "rotate keys", "-d", "docs", "-d", "notes", "--column", "title",
                "--column", "id", "--where", "id > 3", "--keyword", "key", "--limit=2")  # fmt: skip

    assert shown.exit_code == 0
    header, first, second = shown.stdout.splitlines()
    assert header.split() == ["score", "dataset", "key", "title", "id", "match"]
    assert first.startswith("0.0328  docs     7, a  Keys   7   A text of two lines, and of many")
    assert first.rstrip().endswith("…")
    assert second.split() == ["0.5000", "notes"]
    assert json.loads(runtime.asked[0].body) == {
        "text": "rotate keys",
        "datasets": ["docs", "notes"],
        "limit": 2,
        "where": "id > 3",
        "additional_columns": ["title", "id"],
        "keywords": ["key"],
    }


def test_json_has_every_field(ask: Command, runtime: FakeRuntime) -> None:
    runtime.answers(ROUTE, Answer(body=json.dumps(FOUND).encode()))
    shown = ask("search", "keys", "-d", "docs", "--format", "json")
    first, second = json.loads(shown.stdout)["results"]
    assert (first["score"], first["primary_key"]) == (0.0327868, {"id": 7, "part": "a"})
    assert second == {
        "matches": {}, "data": {}, "primary_key": {}, "dataset": "notes", "score": 0.5
    }  # fmt: skip
    assert json.loads(runtime.asked[0].body) == {"text": "keys", "datasets": ["docs"], "limit": 10}


def test_a_refusal_is_one_message(ask: Command, runtime: FakeRuntime) -> None:
    body = b'{"error": "no dataset or view \'dox\'"}'
    runtime.answers(ROUTE, Answer(400, body=body))
    shown = ask("search", "keys", "-d", "dox")
    assert (shown.exit_code, shown.stdout) == (1, "")
    assert "no dataset or view 'dox'" in shown.stderr


def test_a_dataset_is_needed(ask: Command) -> None:
    assert ask("search", "keys").exit_code == 2
