from caraway.requests.parsing import Row
from caraway.shell.names import FRESH_FOR_S, NameCache
from caraway_core.errors import CarawayError

ROWS: list[Row] = [
    {"table_schema": "public", "table_name": "orders", "column_name": "id"},
    {"table_schema": "public", "table_name": "orders", "column_name": "amount"},
    {"table_schema": "runtime", "table_name": "task_history", "column_name": "id"},
]
FUNCTIONS: list[Row] = [
    {"name": "net_price", "kind": "scalar"},
    {"name": "orders_of", "kind": "table"},
]


class Answers:
    """Returns prepared rows, or raises an error."""

    def __init__(self, rows: list[Row] | None) -> None:
        self.rows = rows
        self.asked = 0

    def sql(self, query: str) -> list[Row]:
        self.asked += 1
        if self.rows is None:
            raise CarawayError("unreachable")
        return FUNCTIONS if "runtime.functions" in query else self.rows


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_columns_are_grouped_by_table() -> None:
    names = NameCache(Answers(ROWS), Clock())()

    assert names.tables() == ["orders", "runtime.task_history"]
    assert names.columns_by_table["orders"] == ("id", "amount")
    assert names.columns() == ["amount", "id"]
    assert (names.functions, names.table_functions) == (("net_price(",), ("orders_of(",))


def test_stale_names_are_fetched_again() -> None:
    client, clock = Answers(ROWS), Clock()
    names = NameCache(client, clock)

    names(), names()
    assert client.asked == 2
    clock.now = FRESH_FOR_S
    names()
    assert client.asked == 4


def test_the_last_names_are_kept_after_an_error() -> None:
    client, clock = Answers(ROWS), Clock()
    names = NameCache(client, clock)
    names()

    client.rows = None
    clock.now = FRESH_FOR_S

    assert names().tables() == ["orders", "runtime.task_history"]


def test_unexpected_rows_give_no_names() -> None:
    assert NameCache(Answers([{"x": 1}]), Clock())().tables() == []
