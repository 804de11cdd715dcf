"""The catalog of a real server: keys, columns and shapes of tables."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from caraway_core.errors import DatasetError
from caraway_plugins.changes.postgres import catalog, connecting
from caraway_plugins.changes.postgres.catalog import Table
from caraway_plugins.changes.postgres.connecting import ReplicatedTable
from tests.kit.following import Replica
from tests.kit.postgres import Server
from tests.plugins.changes.postgres.conftest import Followed


def place_of(server: Server, table: str, schema: str = "public") -> ReplicatedTable:
    params = server.params
    login = {"host": params["pg_host"], "user": "postgres", "dbname": "postgres"}
    return ReplicatedTable(schema, table, "slot", "publication", login)


def look(
    server: Server,
    table: str,
    *declared: pa.Field,
    schema: str = "public",
    primary_key: tuple[str, ...] | None = (),
) -> Table:
    connection = server.connect()
    try:
        return catalog.look(connection, place_of(server, table, schema), declared, primary_key)
    finally:
        connection.close()


def remedy(message: str) -> str:
    """The statement that an error advises to run."""
    return message.partition("run: ")[2]


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ("a int PRIMARY KEY, b int", ("a",)),
        ("a int, b int, PRIMARY KEY (b, a)", ("b", "a")),
        ("a int, b int, c int, PRIMARY KEY (c, a)", ("c", "a")),
        # Columns that an index only carries are not part of the key.
        ("a int, b text, PRIMARY KEY (a) INCLUDE (b)", ("a",)),
        ("b text, a int, c int, PRIMARY KEY (c, a) INCLUDE (b)", ("c", "a")),
        ('"The Key" int PRIMARY KEY, "a""b" int', ("The Key",)),
    ],
)
def test_key_is_that_of_the_primary_key_in_its_order(
    postgres: Server, followed: Followed, columns: str, key: tuple[str, ...]
) -> None:
    name = f"{followed.table}_key"
    postgres.execute(f"CREATE TABLE {name} ({columns})")
    assert look(postgres, name).key == key


def test_key_of_an_index_leaves_out_what_the_index_only_carries(
    postgres: Server, followed: Followed
) -> None:
    followed.sql(
        "ALTER TABLE $t ADD code int NOT NULL DEFAULT 0",
        "UPDATE $t SET code = id",
        "CREATE UNIQUE INDEX $t_code ON $t (code) INCLUDE (note)",
        "ALTER TABLE $t REPLICA IDENTITY USING INDEX $t_code",
    )
    assert look(postgres, followed.table).key == ("code",)


async def test_rows_of_a_key_that_carries_columns_are_deleted(
    postgres: Server, followed: Followed
) -> None:
    """The log has only the key of a deleted row, not what the index carries besides."""
    followed.sql(
        "ALTER TABLE $t DROP CONSTRAINT $t_pkey",
        "ALTER TABLE $t ADD PRIMARY KEY (id) INCLUDE (note)",
    )
    followed.replica = Replica(*await followed.source().primary_key())
    async with followed.following() as feed:
        await feed.load()
        followed.together("DELETE FROM $t WHERE id = 1", "UPDATE $t SET note = 'x' WHERE id = 2")
        await feed.next()
    assert {key: row["note"] for key, row in followed.replica.rows.items()} == {(2,): "x"}


@pytest.mark.parametrize(
    ("setup", "primary_key", "said"),
    [
        (("ALTER TABLE $t DROP CONSTRAINT $t_pkey",), (), "has no replica identity"),
        (("ALTER TABLE $t REPLICA IDENTITY NOTHING",), (), "has no replica identity"),
        ((), ("note",), r"is \(note\), but the log identifies rows by \(id\)"),
    ],
)
@pytest.mark.parametrize("name", ["plain", 'we"ird', "Two Words", "a';--", "100%s"])
def test_remedy_of_an_error_can_be_run_as_it_is_written(
    postgres: Server,
    followed: Followed,
    name: str,
    setup: tuple[str, ...],
    primary_key: tuple[str, ...],
    said: str,
) -> None:
    table = f"{name} {followed.table}" + str(len(setup) + len(primary_key))
    quoted = '"' + table.replace('"', '""') + '"'
    constraint = '"' + f"{table}_pkey".replace('"', '""') + '"'
    postgres.execute(f"CREATE TABLE {quoted} (id int, note text, "
                     f"CONSTRAINT {constraint} PRIMARY KEY (id))")  # fmt: skip
    for statement in setup:
        postgres.execute(statement.replace("$t_pkey", constraint).replace("$t", quoted))
    with pytest.raises(DatasetError, match=said) as caught:
        look(postgres, table, primary_key=primary_key)
    assert caught.value.type == "invalid"
    postgres.execute(remedy(caught.value.message))
    found = look(postgres, table, primary_key=primary_key or ("id",))
    assert found.has_whole_old_rows and found.key == (primary_key or ("id",))


def test_a_key_that_the_dataset_leaves_out_is_named(postgres: Server, followed: Followed) -> None:
    with pytest.raises(DatasetError, match="the key column 'id' is missing in the dataset"):
        look(postgres, followed.table, pa.field("note", pa.string()))


def test_a_key_that_nobody_asks_for_is_not_checked(postgres: Server, followed: Followed) -> None:
    followed.sql("ALTER TABLE $t DROP CONSTRAINT $t_pkey")
    assert look(postgres, followed.table, primary_key=None).key == ()


def test_declared_column_that_is_not_there_names_one_that_is(
    postgres: Server, followed: Followed
) -> None:
    with pytest.raises(DatasetError, match=r"no column 'nota'; did you mean 'note'") as caught:
        look(postgres, followed.table, pa.field("nota", pa.string()))
    assert caught.value.type == "schema"


def test_columns_are_those_that_the_log_has(postgres: Server, followed: Followed) -> None:
    followed.sql(
        "ALTER TABLE $t ADD gone int",
        "ALTER TABLE $t ADD twice bigint GENERATED ALWAYS AS (id * 2) STORED",
        "ALTER TABLE $t ADD kept int",
        "ALTER TABLE $t DROP gone",
    )
    found = look(postgres, followed.table)
    assert [each.name for each in found.columns] == ["id", "note", "kept"]
    assert found.takes_all
    declared = look(postgres, followed.table, pa.field("kept", pa.int64()), primary_key=None)
    assert declared.schema == pa.schema([("kept", pa.int64())]) and not declared.takes_all


def test_domains_of_domains_and_arrays_have_the_type_below(
    postgres: Server, followed: Followed
) -> None:
    one, two = f"{followed.table}_one", f"{followed.table}_two"
    followed.sql(
        f"CREATE DOMAIN {one} AS numeric(10, 2) CHECK (VALUE > 0)",
        f"CREATE DOMAIN {two} AS {one} NOT NULL",
        f"ALTER TABLE $t ADD price {two} DEFAULT 1, ADD many {one}[], ADD plain int[]",
    )
    types = {each.name: each.field.type for each in look(postgres, followed.table).columns}
    assert types["price"] == pa.decimal128(10, 2)
    assert types["many"] == pa.list_(pa.string())
    assert types["plain"] == pa.list_(pa.int32())


@pytest.mark.parametrize("relation", ["view", "index", "sequence", "materialized view"])
def test_what_has_no_log_is_not_found(postgres: Server, followed: Followed, relation: str) -> None:
    name = f"{followed.table}_{relation[:3]}"
    followed.sql({
        "view": f"CREATE VIEW {name} AS SELECT * FROM $t",
        "index": f"CREATE INDEX {name} ON $t (note)",
        "sequence": f"CREATE SEQUENCE {name}",
        "materialized view": f"CREATE MATERIALIZED VIEW {name} AS SELECT * FROM $t",
    }[relation])  # fmt: skip
    with pytest.raises(DatasetError, match="is not in the database 'postgres'") as caught:
        look(postgres, name)
    assert caught.value.type == "not_found"


def test_a_table_is_that_of_its_schema(postgres: Server, followed: Followed) -> None:
    other = f'"S {followed.table}"'
    followed.sql(f"CREATE SCHEMA {other}", f"CREATE TABLE {other}.$t (other int PRIMARY KEY)")
    assert look(postgres, followed.table).key == ("id",)
    found = look(postgres, followed.table, schema=f"S {followed.table}")
    assert found.key == ("other",)


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ("ALTER TABLE $t ALTER note SET NOT NULL", True),
        ("ALTER TABLE $t ALTER note SET DEFAULT 'x'", True),
        ("ALTER TABLE $t RENAME note TO remark", False),
        ("ALTER TABLE $t ALTER note TYPE varchar(10)", False),
        ("ALTER TABLE $t ADD more int", False),
        ("ALTER TABLE $t DROP note", False),
        ("CREATE INDEX ON $t (note)", True),
    ],
)
def test_shape_changes_with_the_meaning_of_the_columns(
    postgres: Server, followed: Followed, change: str, is_same: bool
) -> None:
    before = look(postgres, followed.table).shape
    assert look(postgres, followed.table).shape == before
    followed.sql(change)
    assert (look(postgres, followed.table).shape == before) is is_same


def test_shape_changes_with_the_key_and_the_order_of_columns(
    postgres: Server, followed: Followed
) -> None:
    found = look(postgres, followed.table)
    shapes: set[Any] = {
        found.shape,
        replace(found, key=("note",)).shape,
        replace(found, key=("id", "note")).shape,
        replace(found, columns=found.columns[::-1]).shape,
        replace(found, columns=found.columns[:1]).shape,
    }
    assert len(shapes) == 5


def test_history_is_the_same_on_each_connection(postgres: Server) -> None:
    place = place_of(postgres, "t")
    found = []
    for _ in range(2):
        connection = connecting.connect(place)
        found.append(catalog.system(connection, place))
        connecting.close(connection)
    assert found[0] == found[1]
    identifier, _, timeline = found[0].partition("/")
    assert identifier.isdigit() and timeline == "1"


def test_a_closed_connection_is_an_error_of_the_table(postgres: Server, followed: Followed) -> None:
    connection = postgres.connect()
    connection.close()
    with pytest.raises(DatasetError, match=f"table 'public.{followed.table}': ") as caught:
        catalog.look(connection, place_of(postgres, followed.table), (), None)
    assert caught.value.type == "unavailable"
