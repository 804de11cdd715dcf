"""The requirements on a database and a manifest for replication."""

import psycopg2.errors
import pytest

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_plugins.changes.postgres import connecting
from caraway_plugins.changes.postgres.source import PostgresChanges
from tests.kit.following import Replica
from tests.kit.postgres import Server
from tests.plugins.changes.postgres.conftest import Followed


def request(path: str = "t", **params: str) -> ChangeRequest:
    return ChangeRequest(TableName("d"), "postgres", path, params)


@pytest.fixture
def plain_user(followed: Followed) -> Followed:
    """A dataset whose user may read and replicate, but owns nothing."""
    name = f"reader_{followed.table}"
    followed.sql(f"CREATE ROLE {name} LOGIN REPLICATION", f"GRANT SELECT ON $t TO {name}")
    followed.params = {"pg_user": name}
    return followed


async def test_one_who_does_not_own_the_table_is_told_what_to_have_run(
    plain_user: Followed,
) -> None:
    async with plain_user.following() as feed:
        with pytest.raises(DatasetError, match="administrator run: CREATE PUBLICATION") as told:
            await feed.next()
    assert told.value.type == "auth"
    plain_user.sql("CREATE PUBLICATION caraway_$t FOR TABLE $t")
    async with plain_user.following() as feed:
        await feed.load()
        plain_user.sql("INSERT INTO $t VALUES (3, 'three')")
        await feed.next()
    assert len(plain_user.replica.rows) == 3


async def test_one_who_may_not_replicate_is_refused(plain_user: Followed) -> None:
    plain_user.sql(
        f"ALTER ROLE {plain_user.params['pg_user']} NOREPLICATION",
        "CREATE PUBLICATION caraway_$t FOR TABLE $t",
    )
    async with plain_user.following() as feed:
        with pytest.raises(DatasetError) as told:
            await feed.next()
    assert told.value.type == "auth"


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (("CREATE PUBLICATION caraway_$t",), 'ALTER PUBLICATION "caraway_t.*" ADD TABLE'),
        (
            ("CREATE PUBLICATION caraway_$t FOR TABLE $t WITH (publish = 'insert')",),
            "omits some changes; run: ALTER PUBLICATION",
        ),
        (("ALTER TABLE $t DROP CONSTRAINT $t_pkey",), "add a primary key, or run: ALTER TABLE"),
        (("ALTER TABLE $t REPLICA IDENTITY NOTHING",), "no replica identity"),
        (
            ("ALTER TABLE $t DROP CONSTRAINT $t_pkey", "ALTER TABLE $t REPLICA IDENTITY FULL"),
            "no primary key; set the dataset's 'primary_key'",
        ),
    ],
)
async def test_errors_name_missing_settings_of_the_database_and_the_remedy(
    followed: Followed, statements: tuple[str, ...], said: str
) -> None:
    followed.sql(*statements)
    async with followed.following() as feed:
        with pytest.raises(DatasetError, match=said):
            await feed.next()


async def test_a_key_that_the_log_does_not_have_is_rejected(followed: Followed) -> None:
    followed.primary_key = ("note",)
    with pytest.raises(DatasetError, match=r"is \(note\), but the log identifies rows by \(id\)"):
        await followed.source().schema()
    followed.sql("ALTER TABLE $t REPLICA IDENTITY FULL")
    assert await followed.source().primary_key() == ("note",)


async def test_a_unique_index_may_tell_rows_apart(followed: Followed) -> None:
    followed.sql(
        "ALTER TABLE $t ALTER note SET NOT NULL",
        "CREATE UNIQUE INDEX $t_note ON $t (note)",
        "ALTER TABLE $t REPLICA IDENTITY USING INDEX $t_note",
    )
    assert await followed.source().primary_key() == ("note",)
    followed.replica = Replica("note")
    async with followed.following() as feed:
        await feed.load()
        followed.together("UPDATE $t SET note = 'uno' WHERE id = 1", "DELETE FROM $t WHERE id = 2")
        await feed.next()
    assert set(followed.replica.rows) == {("uno",)}


async def test_a_table_that_is_not_there_is_named(postgres: Server) -> None:
    source = PostgresChanges(request("public.nothing", **postgres.params))
    with pytest.raises(DatasetError, match=r"'public.nothing' is not in the database") as told:
        await source.schema()
    assert told.value.type == "not_found"


async def test_a_replaced_table_is_reloaded(followed: Followed) -> None:
    async with followed.following() as feed:
        await feed.load()
    followed.sql("DROP TABLE $t", "CREATE TABLE $t (id bigint PRIMARY KEY, note text)")
    async with followed.following() as feed:
        with pytest.raises(DatasetError, match="was replaced by another table; reloading"):
            await feed.next()


async def test_a_slot_of_another_plugin_is_not_touched(followed: Followed) -> None:
    followed.sql("SELECT pg_create_physical_replication_slot('caraway_$t')")
    async with followed.following() as feed:
        with pytest.raises(
            DatasetError, match="belongs to another plug-in or database; set another name"
        ):
            await feed.next()


@pytest.mark.parametrize(
    ("path", "params", "said"),
    [
        ("t", {"pg_hots": "h"}, "no postgres param 'pg_hots'; did you mean 'pg_host'"),
        ("t", {"pg_user": "u"}, "params.pg_host is missing"),
        ("t", {"pg_host": "h", "pg_port": "x"}, "params.pg_port is 'x'; give a number"),
        ("t", {"pg_host": "h", "pg_sslmode": "on"}, "params.pg_sslmode is 'on'; give one of"),
        ("", {"pg_host": "h"}, "is not a table name; write 'postgres:schema.table'"),
        ("a.b.c", {"pg_host": "h"}, "is not a table name"),
    ],
)
def test_wrong_params_are_refused(path: str, params: dict[str, str], said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        PostgresChanges(request(path, **params))


async def test_a_server_that_is_away_is_an_error_without_secrets() -> None:
    source = PostgresChanges(
        request(pg_host="127.0.0.1", pg_port="1", pg_user="u", pg_pass="hidden")
    )
    with pytest.raises(DatasetError, match="refused") as told:
        await source.schema()
    assert told.value.type == "unavailable" and "hidden" not in told.value.message
    assert "hidden" not in repr(source._place)


def test_errors_of_the_driver_have_types() -> None:
    place = connecting.place_of(request(pg_host="h"))
    for error, type_ in (
        (psycopg2.errors.InsufficientPrivilege("no"), "auth"),
        (psycopg2.OperationalError("password authentication failed"), "auth"),
        (psycopg2.OperationalError('database "x" does not exist'), "not_found"),
        (psycopg2.InterfaceError("connection already closed"), "unavailable"),
    ):
        with pytest.raises(DatasetError) as told, connecting.mapped(place):
            raise error
        assert told.value.type == type_
