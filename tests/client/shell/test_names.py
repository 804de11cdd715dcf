from caraway.parsing import Row
from caraway.shell.names import FRESH_FOR_S, NamesOfServer
from caraway_core.errors import CarawayError

ROWS: list[Row] = [
    {"table_schema": "public", "table_name": "orders", "column_name": "id"},
    {"table_schema": "public", "table_name": "orders", "column_name": "amount"},
    {"table_schema": "runtime", "table_name": "task_history", "column_name": "id"},
]


class Answers:
    """Prepared rows, or an error."""

    def __init__(self, rows: list[Row] | None) -> None:
        self.rows = rows
        self.asked = 0

    def sql(self, query: str) -> list[Row]:
        self.asked += 1
        if self.rows is None:
            raise CarawayError("nobody there")
        return self.rows


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_columns_are_grouped_by_table() -> None:
    names = NamesOfServer(Answers(ROWS), Clock())()

    assert names.tables() == ["orders", "runtime.task_history"]
    assert names.columns_by_table["orders"] == ("id", "amount")
    assert names.columns() == ["amount", "id"]


def test_names_are_asked_for_again_when_they_are_old() -> None:
    client, clock = Answers(ROWS), Clock()
    names = NamesOfServer(client, clock)

    names(), names()
    assert client.asked == 1
    clock.now = FRESH_FOR_S
    names()
    assert client.asked == 2


def test_without_an_answer_the_last_names_stay() -> None:
    client, clock = Answers(ROWS), Clock()
    names = NamesOfServer(client, clock)
    names()

    client.rows = None
    clock.now = FRESH_FOR_S

    assert names().tables() == ["orders", "runtime.task_history"]


def test_rows_of_another_shape_are_no_names() -> None:
    assert NamesOfServer(Answers([{"x": 1}]), Clock())().tables() == []
