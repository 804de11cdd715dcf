"""Answers of a management service on a terminal, and secrets that are read."""

import io
import json
import sys
from typing import Any

import pytest
import typer

from caraway.cli.managing import printing
from caraway_core.errors import CarawayError

RECORD = {
    "name": "sales", "tags": ["a", 1], "empty": "", "none": None, "is_on": False, "count": 0,
    "plan": {"name": "free", "limits": {"rows": 5}, "gone": None}, "list": [{"a": 1}], "no": [],
}  # fmt: skip


def test_records_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    printing.record(RECORD, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "name         sales",
        "tags         a, 1",
        "is_on        False",
        "count        0",
        "plan.name    free",
        'plan.limits  {"rows": 5}',
        'list         [{"a": 1}]',
    ]


@pytest.mark.parametrize("record", [{}, {"a": None}, {"a": ""}, {"a": {}}, {"a": []}])
def test_records_of_nothing(record: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    printing.record(record, as_json=False, empty="nothing is set")
    assert capsys.readouterr().out == "nothing is set\n"


def test_records_do_not_command_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    printing.record({"name": "a\x1b[31m\nb"}, as_json=False)
    printing.done("set a\x1b[31m")
    assert capsys.readouterr().out == "name  a[31m b\nset a[31m\n"


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    printing.record(RECORD, as_json=True)
    assert json.loads(capsys.readouterr().out) == RECORD
    printing.rows([RECORD], ["name"], as_json=True)
    assert json.loads(capsys.readouterr().out) == [RECORD]
    printing.done("set", {"a": 1}, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"a": 1}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_questions_need_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    printing.confirm("Delete it?", is_confirmed=True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(CarawayError, match=r"Delete it\? Pass --yes to do it"):
        printing.confirm("Delete it?", is_confirmed=False)
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    printing.confirm("Delete it?", is_confirmed=False)
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    with pytest.raises(typer.Abort):
        printing.confirm("Delete it?", is_confirmed=False)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("a", "a"),
        ("a\n", "a"),
        ("a\r\n", "a"),
        ("a\n\n", "a\n"),
        (" a ", " a "),
        ("a\nb\n", "a\nb"),
    ],
)
def test_secrets_of_standard_input(given: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(given, newline=""))
    assert printing.read_secret("Value") == value


@pytest.mark.parametrize("given", ["", "\n", "\r\n"])
def test_secrets_are_not_empty(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(given, newline=""))
    with pytest.raises(CarawayError, match="it is empty"):
        printing.read_secret("Value")
