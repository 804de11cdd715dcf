"""Where a dataset connects to, under which names, and what errors say without secrets."""

import traceback

import psycopg2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caraway_core.errors import DatasetError
from caraway_core.ids import TableName
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_plugins.changes.postgres import connecting
from caraway_plugins.changes.postgres.connecting import ReplicatedTable
from tests.kit.postgres import Server

SECRET = "S3cret pass'word"
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1)


def place(name: str = "d", path: str = "t", **params: str) -> ReplicatedTable:
    known = {"pg_host": "h", **params} if "pg_connection_string" not in params else params
    return connecting.place_of(ChangeRequest(TableName(name), "postgres", path, known))


@pytest.mark.parametrize(
    ("path", "schema", "table"),
    [
        ("t", "public", "t"),
        ("s.t", "s", "t"),
        ("Two Words.T", "Two Words", "T"),
        ('we"ird', "public", 'we"ird'),
    ],
)
def test_path_is_a_table_with_or_without_a_schema(path: str, schema: str, table: str) -> None:
    found = place(path=path)
    assert (found.schema, found.table) == (schema, table)
    assert found.title == f"table '{schema}.{table}'"


@pytest.mark.parametrize("path", ["", ".", ".t", "s.", "a.b.c", "a..b"])
def test_path_that_is_no_table_is_refused_with_the_form(path: str) -> None:
    with pytest.raises(DatasetError, match=r"is not a table name; write 'postgres:schema\.table'"):
        place(path=path)


@pytest.mark.parametrize(
    ("name", "slot"),
    [("orders", "caraway_orders"), ("a_1", "caraway_a_1")],
)
def test_slot_has_the_name_of_a_plain_dataset(name: str, slot: str) -> None:
    assert place(name).slot == place(name).publication == slot


@given(NAMES)
def test_slot_name_is_one_that_the_server_accepts(name: str) -> None:
    slot = place(name).slot
    assert 1 <= len(slot) <= 63
    assert all(char.isascii() and (char.islower() or char.isdigit() or char == "_")
               for char in slot)  # fmt: skip


@given(NAMES, NAMES)
def test_two_datasets_never_share_a_slot(one: str, other: str) -> None:
    assert (place(one).slot == place(other).slot) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a-b", "a_b"), ("Orders", "orders"), ("x" * 70, "x" * 71), ("ä", "ö"), ("a b", "a.b")],
)
def test_names_that_differ_only_in_what_slots_lack_stay_apart(one: str, other: str) -> None:
    assert place(one).slot != place(other).slot
    assert place(one).publication != place(other).publication


def test_given_names_are_taken_as_they_are() -> None:
    found = place(pg_replication_slot="mine", pg_publication="My Pub")
    assert (found.slot, found.publication) == ("mine", "My Pub")


def test_password_is_in_no_text_of_a_place() -> None:
    for params in (
        {"pg_pass": SECRET, "pg_user": "u"},
        {"pg_connection_string": "host=h user=u password=Geheim"},
    ):
        text = repr(place(**params)) + str(place(**params))
        assert SECRET not in text and "Geheim" not in text


@pytest.mark.parametrize(
    "dsn",
    [
        "host=h user=u password=Se Geheim",
        "host=h password='Geheim",
        "postgresql://u:Geheim%zz@h/db",
        "postgresql://u:p@[::1/db?Geheim",
        "host=h Geheim=1",
        "Geheim",
    ],
)
def test_connection_string_that_is_invalid_is_refused_without_its_text(dsn: str) -> None:
    with pytest.raises(DatasetError, match=r"params\.pg_connection_string is invalid") as caught:
        place(pg_connection_string=dsn)
    assert caught.value.type == "invalid"
    told = "".join(traceback.format_exception(caught.value))
    assert "Geheim" not in told


def test_params_go_before_what_the_connection_string_says(postgres: Server) -> None:
    folder = postgres.params["pg_host"]
    found = place(
        pg_connection_string=f"host={folder} user=nobody dbname=none",
        pg_user="postgres",
        pg_db="postgres",
        pg_sslmode="disable",
    )
    connection = connecting.connect(found)
    assert (connection.info.user, connection.info.dbname) == ("postgres", "postgres")
    connecting.close(connection)
    connecting.close(connection)


@pytest.mark.parametrize("value", ["it's", 'a "b"', "back\\slash", "a b", "=", "p@ss:/%"])
def test_values_with_any_signs_reach_the_server_as_they_are(postgres: Server, value: str) -> None:
    found = place(**{**postgres.params, "pg_user": value, "pg_pass": value})
    with pytest.raises(DatasetError) as caught:
        connecting.connect(found)
    assert caught.value.type == "auth"
    assert f'role "{value}" does not exist' in caught.value.message


def test_format_of_values_does_not_depend_on_the_role(postgres: Server) -> None:
    postgres.execute(
        "CREATE ROLE odd LOGIN",
        "ALTER ROLE odd SET datestyle = 'German'",
        "ALTER ROLE odd SET timezone = 'Asia/Tokyo'",
        "ALTER ROLE odd SET bytea_output = 'escape'",
        "ALTER ROLE odd SET statement_timeout = '1ms'",
    )
    connection = connecting.connect(place(**{**postgres.params, "pg_user": "odd"}))
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT timestamptz '2024-02-03 04:05:06Z'::text, '\\x00ff'::bytea::text, "
            "date '2024-02-03'::text, current_setting('statement_timeout')"
        )
        assert cursor.fetchone() == ("2024-02-03 04:05:06+00", "\\x00ff", "2024-02-03", "0")
    connecting.close(connection)
    postgres.execute("DROP ROLE odd")


@pytest.mark.parametrize(
    ("exc", "type_", "said"),
    [
        (psycopg2.OperationalError(""), "unavailable", "the connection was lost"),
        (psycopg2.OperationalError("\n\n"), "unavailable", "the connection was lost"),
        (psycopg2.OperationalError("  first\n  second"), "unavailable", "first"),
        (psycopg2.OperationalError('FATAL: role "x" does not exist'), "auth", "FATAL"),
        (psycopg2.OperationalError('database "x" does not exist'), "not_found", "database"),
        (psycopg2.ProgrammingError("permission denied for table t"), "auth", "grant the user"),
    ],
)
def test_errors_name_the_table_and_have_a_type(exc: psycopg2.Error, type_: str, said: str) -> None:
    with pytest.raises(DatasetError, match=r"table 'public\.t': ") as caught:
        with connecting.mapped(place()):
            raise exc
    assert caught.value.type == type_
    assert said in caught.value.message and "\n" not in caught.value.message


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(ValueError, match="mine"), connecting.mapped(place()):
        raise ValueError("mine")
