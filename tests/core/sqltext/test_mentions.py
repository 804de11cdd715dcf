"""Tables that a text may name."""

from caraway_core.ids import TableName
from caraway_core.sqltext.mentions import mentioned, of_catalogs

KNOWN = [TableName(name) for name in ("orders", "sales.items", "Odd", "other")]


def test_names_are_words_of_the_text_and_not_of_its_comments() -> None:
    sql = """SELECT 'other' AS a FROM ORDERS -- other
             JOIN sales.items USING (id) /* other */ JOIN "Odd" ON true"""
    assert mentioned(sql, KNOWN) == {"orders", "sales.items", "Odd"}
    assert mentioned("", KNOWN) == set()
    assert mentioned("SELECT * FROM odd", KNOWN) == set()


def test_names_of_three_parts_begin_with_a_catalog() -> None:
    sql = '''SELECT PG.public.a, 'pg.x.y' AS l, a.b.c FROM pg . "Odd"."a ""b""" , `pg`.s.t -- pg.c.c
             JOIN pg.public.orders o ON o.pg.x = pg.y WHERE pg.public.orders.id > 1.5'''
    assert of_catalogs(sql, {"pg"}) == [
        "pg.public.a",
        'pg.Odd.a "b"',
        "pg.s.t",
        "pg.public.orders",
    ]
    assert of_catalogs("SELECT pg. FROM pg.a", {"pg"}) == []
    assert of_catalogs("", {"pg"}) == []
