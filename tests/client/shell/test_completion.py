import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from caraway.shell import commands
from caraway.shell.completion import ShellCompleter
from caraway.shell.names import Names

NAMES = Names(
    {
        "orders": ("order_id", "amount"),
        "customers": ("customer_id", "name"),
        "runtime.task_history": ("task", "trace_id"),
    },
    ("net_price(",),
    ("orders_of(",),
)


def proposed(before: str, after: str = "") -> list[str]:
    completer = ShellCompleter(lambda: NAMES, dict(commands.ARGUMENTS))
    document = Document(before + after, cursor_position=len(before))
    return [found.text for found in completer.get_completions(document, CompleteEvent())]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("SELECT * FROM ", ["customers", "orders", "runtime.task_history", "orders_of("]),
        ("SELECT * FROM or", ["orders", "orders_of("]),
        ("SELECT net", ["net_price("]),
        ("select * from runtime.t", ["runtime.task_history"]),
        ("SELECT * FROM orders o JOIN cus", ["customers"]),
        ("SELECT * FROM orders o WHERE o.", ["o.order_id", "o.amount"]),
        ("SELECT * FROM orders AS o WHERE o.am", ["o.amount"]),
        ("SELECT orders.o", ["orders.order_id"]),
        ("SELECT na", ["name"]),
        (".t", [".tables", ".timing"]),
        (".format n", ["ndjson"]),
        (".schema cu", ["customers"]),
        (".quit x", []),
    ],
)
def test_completions_fit_the_context(before: str, expected: list[str]) -> None:
    assert proposed(before) == expected


def test_columns_come_from_the_tables_of_the_statement() -> None:
    found = proposed("SELECT ", " FROM orders")

    assert found[:2] == ["amount", "order_id"]
    assert "customer_id" not in found


def test_tables_in_comments_are_ignored() -> None:
    found = proposed("SELECT ", " FROM orders -- not customers\n/* /* */ customers */")

    assert found[:2] == ["amount", "order_id"]
    assert "customer_id" not in found
    aliased = "SELECT * FROM orders /* FROM customers o */ o WHERE o.am"
    assert proposed(aliased) == ["o.amount"]


def test_a_completion_replaces_the_word_before_the_cursor() -> None:
    completer = ShellCompleter(lambda: NAMES, {})
    (found,) = completer.get_completions(Document("SELECT o.x, SELEC"), CompleteEvent())

    assert (found.text, found.start_position) == ("SELECT", -5)
