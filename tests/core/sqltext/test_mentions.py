"""Tables that a text may name."""

from caraway_core.ids import TableName
from caraway_core.sqltext.mentions import mentioned

KNOWN = [TableName(name) for name in ("orders", "sales.items", "Odd", "other")]


def test_names_are_words_of_the_text_and_not_of_its_comments() -> None:
    sql = """SELECT 'other' AS a FROM ORDERS -- other
             JOIN sales.items USING (id) /* other */ JOIN "Odd" ON true"""
    assert mentioned(sql, KNOWN) == {"orders", "sales.items", "Odd"}
    assert mentioned("", KNOWN) == set()
    assert mentioned("SELECT * FROM odd", KNOWN) == set()
