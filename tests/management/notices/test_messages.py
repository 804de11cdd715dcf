"""Texts and bodies of notices."""

from datetime import UTC, datetime

import pytest

from caraway_management.notices.messages import Notice

AT = datetime(2024, 2, 29, 12, 30, tzinfo=UTC)


def notice(type_: str = "monitor.fired", name: str = "Memory", **data: object) -> Notice:
    return Notice("n1", type_, AT, name, "project 'sales'", "It is 95 %.", data)


@pytest.mark.parametrize("data", [{}, {"severity": "critical", "details": {"a": [1]}}])
def test_bodies_are_read_again(data: dict[str, object]) -> None:
    made = notice("reaction.matched", "Late", **data)
    assert Notice.from_json(made.as_json()) == made
    assert made.as_json()["timestamp"] == "2024-02-29T12:30:00+00:00"


@pytest.mark.parametrize(
    ("type_", "title"),
    [
        ("monitor.fired", "Alert (warning): Memory on project 'sales'"),
        ("monitor.resolved", "Resolved: Memory on project 'sales'"),
        ("reaction.matched", "Event: Memory on project 'sales'"),
        ("reaction.resolved", "Resolved: Memory on project 'sales'"),
    ],
)
def test_titles(type_: str, title: str) -> None:
    assert notice(type_, severity="warning").title == title


@pytest.mark.parametrize("name", ["a\r\nBcc: x@example.com", "a\nb", "a\u2028b\x0bc", "  a   b "])
def test_a_title_is_one_line(name: str) -> None:
    title = notice("monitor.resolved", name).title
    assert len(title.splitlines()) == 1
    assert title == " ".join(title.split())


def test_texts() -> None:
    assert notice().text == "It is 95 %.\n\nTime: 2024-02-29 12:30:00 UTC\nId: n1"
    assert notice(details={"é": 1}).text.endswith('Id: n1\n\n{\n  "é": 1\n}')
