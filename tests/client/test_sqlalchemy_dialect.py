"""The SQLAlchemy dialect against a real runtime."""

import datetime
import decimal
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from tests.kit.processes import child

DAY, AT = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)
ROW: dict[str, Any] = {
    "id": 1,
    "small": 7,
    "price": decimal.Decimal("12.30"),
    "ok": True,
    "ratio": 0.1,
    "title": "it's é",
    "raw": b"\x00\xff",
    "day": DAY,
    "at": AT,
    "seen": AT.replace(tzinfo=datetime.UTC),
    "clock": datetime.time(1, 2, 3),
    "tags": ["a", None],
}
MANIFEST = """
version: v1
kind: Caraway
name: dialect
runtime: {auth: {api-key: {keys: ['reader:ro', 'writer:rw']}}}
datasets:
  - from: memory:items
    name: shop.items
    access: read_write
    description: What the shop sells.
    columns:
      - {name: id, type: bigint, description: The number on the shelf.}
      - {name: small, type: smallint}
      - {name: price, type: 'decimal(12,2)'}
      - {name: ok, type: boolean}
      - {name: ratio, type: double}
      - {name: title, type: varchar}
      - {name: raw, type: binary}
      - {name: day, type: date}
      - {name: at, type: timestamp}
      - {name: seen, type: timestamptz}
      - {name: clock, type: time}
      - {name: tags, type: 'list<varchar>'}
  - from: memory:odd
    name: odd_names
    columns: [{name: "Select From", type: int}, {name: 'a"b', type: int}]
  - from: memory:oddXnames
    name: oddxnames
    columns: [{name: other, type: int}]
"""


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "items"
    __table_args__ = {"schema": "shop"}  # noqa: RUF012 # as SQLAlchemy has it
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    title: Mapped[str | None]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("runtime")
    (folder / "caraway.yaml").write_text(MANIFEST)
    with child(folder, folder) as runtime:
        yield runtime.addresses["flight"]


@pytest.fixture
def engine(address: str) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"caraway://:writer@{address}")
    with made.begin() as connection:
        connection.execute(sa.text("DELETE FROM shop.items"))
    yield made
    made.dispose()


@pytest.fixture
def items(engine: sa.Engine) -> sa.Table:
    return sa.Table("items", sa.MetaData(), autoload_with=engine, schema="shop")


def selected(engine: sa.Engine, statement: Any, *values: Any) -> list[Any]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(statement, *values)]


def test_tables_are_reflected_by_exact_name(engine: sa.Engine) -> None:
    found = sa.inspect(engine)
    assert found.default_schema_name == "public"
    assert found.get_table_names() == ["odd_names", "oddxnames"]
    assert found.get_table_names("shop") == ["items"]
    assert found.get_view_names() == []
    assert [column["name"] for column in found.get_columns("odd_names")] == ["Select From", 'a"b']
    assert found.has_table("items", "shop") and not found.has_table("items")
    assert not found.get_foreign_keys("items", "shop")
    assert not found.get_indexes("items", "shop")
    with pytest.raises(sa.exc.NoSuchTableError, match="nothing"):
        found.get_columns("nothing")
    odd = sa.Table("odd_names", sa.MetaData(), autoload_with=engine)
    assert selected(engine, sa.select(odd)) == []


def test_descriptions_are_comments(engine: sa.Engine, items: sa.Table) -> None:
    assert items.comment == "What the shop sells."
    assert (items.c.id.comment, items.c.title.comment) == ("The number on the shelf.", None)
    found = sa.inspect(engine)
    assert found.get_table_comment("odd_names") == {"text": None}
    with pytest.raises(sa.exc.NoSuchTableError, match="nothing"):
        found.get_table_comment("nothing")


def test_every_type_is_written_read_and_compared(engine: sa.Engine, items: sa.Table) -> None:
    nothing = dict.fromkeys(ROW) | {"id": 2}
    with engine.begin() as connection:
        assert connection.execute(items.insert(), ROW).rowcount == 1
        assert connection.execute(items.insert(), [nothing, {**ROW, "id": 3}]).rowcount == 2
    rows = selected(engine, sa.select(items).order_by(items.c.id))
    assert [dict(zip(ROW, row, strict=True)) for row in rows] == [ROW, nothing, {**ROW, "id": 3}]
    for name, value in ROW.items():
        ids = selected(engine, sa.select(items.c.id).where(items.c[name] == value))
        assert sorted(ids) == ([(1,)] if name == "id" else [(1,), (3,)]), name


@pytest.mark.parametrize("value", [*ROW.values(), None, [1, 2], -(2**63), 2**63 - 1, ""])
def test_parameters_keep_their_value(engine: sa.Engine, value: Any) -> None:
    assert selected(engine, sa.text("SELECT :v"), {"v": value}) == [(value,)]


def test_expressions_compile_to_the_sql_of_the_runtime(engine: sa.Engine, items: sa.Table) -> None:
    casts = [
        sa.cast("1.5", sa.Float),
        sa.cast(1, sa.Text),
        sa.cast("2024-02-29", sa.DateTime),
        sa.cast("1.5", sa.Numeric(10, 2)),
        sa.cast("x", sa.LargeBinary),
    ]
    (row,) = selected(engine, sa.select(*casts))
    assert row == (1.5, "1", datetime.datetime(2024, 2, 29), decimal.Decimal("1.50"), b"x")
    with engine.begin() as connection:
        connection.execute(items.insert(), [{"id": number} for number in range(9)])
    page = sa.select(items.c.id).where(items.c.id.in_([2, 3, 4, 5])).order_by(items.c.id)
    assert selected(engine, page.limit(2).offset(1)) == [(3,), (4,)]


def test_values_give_expressions_their_types(engine: sa.Engine, items: sa.Table) -> None:
    rows = [{"id": 1, "title": "a"}, {"id": 2, "title": "b"}, {"id": 3, "title": "a"}]
    with engine.begin() as connection:
        connection.execute(items.insert(), rows)
    counted = sa.func.sum(sa.case((items.c.title == "a", 1), else_=0))
    assert selected(engine, sa.select(counted)) == [(2,)]
    assert selected(engine, sa.select(sa.func.sum(sa.literal(2.5))).select_from(items)) == [(7.5,)]
    assert selected(engine, sa.select(sa.literal("a") + sa.literal("b"))) == [("ab",)]
    many = sa.values(sa.column("v", sa.Float), name="many").data([(1,), (2.5,)])
    assert selected(engine, sa.select(sa.func.max(many.c.v))) == [(2.5,)]


def test_written_rows_are_counted(engine: sa.Engine, items: sa.Table) -> None:
    rows = [{"id": number, "title": "x"} for number in range(2500)]
    with engine.begin() as connection:
        assert connection.execute(items.insert(), rows).rowcount == 2500
        written = connection.execute(items.update().where(items.c.id < 10).values(title="y"))
        assert (written.rowcount, written.returns_rows) == (10, False)
        by_key = items.update().where(items.c.id == sa.bindparam("key")).values(title="z")
        keys = [{"key": 1}, {"key": 2}, {"key": -1}]
        assert connection.execute(by_key, keys).rowcount == 2
        deleted = connection.execute(sa.text("DELETE FROM shop.items WHERE id >= 5"))
        assert deleted.rowcount == 2495
        with connection.execute(sa.select(items.c.id)) as read:
            assert read.rowcount == -1
    titles = selected(engine, sa.select(items.c.title).order_by(items.c.id))
    assert titles == [("y",), ("z",), ("z",), ("y",), ("y",)]


def test_objects_are_kept(engine: sa.Engine) -> None:
    with Session(engine) as session:
        session.add_all([Item(id=1, title="one"), Item(id=2)])
        session.commit()
        first = session.get_one(Item, 1)
        first.title = "changed"
        session.delete(session.get_one(Item, 2))
        session.commit()
    assert selected(engine, sa.select(Item.id, Item.title)) == [(1, "changed")]


def test_rollback_keeps_what_was_written(engine: sa.Engine, items: sa.Table) -> None:
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "AUTOCOMMIT"
        connection.execute(items.insert(), {"id": 1})
        connection.rollback()
    assert selected(engine, sa.select(items.c.id)) == [(1,)]


def test_refusals_are_those_of_the_server(address: str, items: sa.Table) -> None:
    for key, statement, said in (
        ("wrong", sa.select(1), "not known"),
        ("reader", items.insert().values(id=1), "read-only"),
        ("writer", sa.text("SELEKT"), "syntax error"),
        ("writer", items.insert().values(small=70_000), "70000"),
        ("writer", sa.schema.CreateTable(items), "defined in the manifest"),
    ):
        made = sa.create_engine(f"caraway://:{key}@{address}")
        with pytest.raises(sa.exc.DatabaseError, match=said), made.connect() as connection:
            connection.execute(statement)
        made.dispose()
