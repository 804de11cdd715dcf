"""Connects to PostgreSQL and maps its errors. Only this package imports psycopg2."""

import hashlib
import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg2
import psycopg2.errors
from psycopg2.extensions import parse_dsn
from psycopg2.extras import LogicalReplicationConnection

from caraway_core.errors import DatasetError, DatasetErrorType
from caraway_core.protocols.change_sources import ChangeRequest
from caraway_plugins.sources import params

_CONNECT_S = 10
_NAME_BYTES = 63
_DIGEST_DIGITS = 8
_SLOT_CHARACTERS = frozenset(string.ascii_lowercase + string.digits + "_")
# Values arrive as text; these options fix their format, whatever the server and the role set.
_OPTIONS = (
    "-c datestyle=ISO -c timezone=UTC -c intervalstyle=postgres "
    "-c bytea_output=hex -c extra_float_digits=1 "
    "-c statement_timeout=0 -c idle_in_transaction_session_timeout=0"
)
# Authentication errors have no code, only a message. If the server's language is not English, the
# error type is less exact, but the message is unchanged.
_DENIED = "permission denied"
_REFUSALS = (_DENIED, "authentication failed", "no pg_hba.conf entry", 'role "')
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


@dataclass(frozen=True, slots=True)
class ReplicatedTable:
    """A table and how to connect to it; `login` holds the password, so it is never printed."""

    schema: str
    table: str
    slot: str
    publication: str
    login: Mapping[str, Any] = field(repr=False)

    @property
    def title(self) -> str:
        return f"table '{self.schema}.{self.table}'"

    @property
    def quoted(self) -> str:
        """The name of the table in SQL, also for advice in errors."""
        return f"{quoted(self.schema)}.{quoted(self.table)}"


def quoted(name: str) -> str:
    """Return a name as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def place_of(request: ChangeRequest) -> ReplicatedTable:
    """Parse the path and params of a dataset.

    Raises:
        DatasetError: the path or a param is invalid.
    """
    known = params.checked(request.connector, request.params)
    schema, dot, table = request.path.partition(".")
    if not dot:
        schema, table = "public", schema
    if not schema or not table or "." in table:
        raise DatasetError(
            "invalid", f"'{request.path}' is not a table name; write 'postgres:schema.table'"
        )
    own = _own_name(request.name)
    return ReplicatedTable(
        schema,
        table,
        known.text("pg_replication_slot") or own,
        known.text("pg_publication") or own,
        _login(known),
    )


def connect(place: ReplicatedTable) -> Any:
    """Connect in autocommit mode, to run statements.

    Raises:
        DatasetError: the connection fails.
    """
    with mapped(place):
        connection = psycopg2.connect(**place.login)
        connection.autocommit = True
        return connection


def connect_for_replication(place: ReplicatedTable) -> object:
    """Connect as a replication client.

    Raises:
        DatasetError: the connection fails.
    """
    with mapped(place):
        return psycopg2.connect(**place.login, connection_factory=LogicalReplicationConnection)


def stop(connection: Any) -> None:
    """Cancel the statement that another thread runs on the connection. Blocks."""
    with suppress(psycopg2.Error):
        connection.cancel()


def close(connection: Any) -> None:
    """Close a connection after its current statement. Blocks."""
    with suppress(psycopg2.Error):
        connection.close()


@contextmanager
def mapped(place: ReplicatedTable) -> Iterator[None]:
    """Convert psycopg2 errors to `DatasetError`.

    Raises:
        DatasetError: psycopg2 raised an error.
    """
    try:
        yield
    except psycopg2.Error as exc:
        raise DatasetError(_type(exc), f"{place.title}: {_said(exc)}") from exc


def _said(exc: psycopg2.Error) -> str:
    lines = [line.strip() for line in str(exc).splitlines() if line.strip()]
    said = lines[0] if lines else "the connection was lost"
    if isinstance(exc, psycopg2.errors.InsufficientPrivilege) or _DENIED in said:
        return f"{said}; grant the user REPLICATION and SELECT"
    return said


def _type(exc: psycopg2.Error) -> DatasetErrorType:
    if isinstance(exc, psycopg2.errors.InsufficientPrivilege):
        return "auth"
    said = str(exc)
    if any(text in said for text in _REFUSALS):
        return "auth"
    if isinstance(exc, psycopg2.errors.UndefinedTable) or "does not exist" in said:
        return "not_found"
    return "unavailable"


def _login(known: params.Params) -> Mapping[str, object]:
    mode = known.text("pg_sslmode") or "require"
    if mode not in _SSL_MODES:
        raise DatasetError(
            "invalid", f"params.pg_sslmode is '{mode}'; give one of: {', '.join(_SSL_MODES)}"
        )
    dsn = known.text("pg_connection_string")
    if dsn is not None:
        _check_dsn(dsn)
    given = {
        "dsn": dsn,
        "host": known.text("pg_host"),
        "port": known.count("pg_port"),
        "dbname": known.text("pg_db"),
        "user": known.text("pg_user"),
        "password": known.text("pg_pass"),
        "sslrootcert": known.text("pg_sslrootcert"),
        "sslmode": mode if not dsn or known.text("pg_sslmode") else None,
    }
    if dsn is None and given["host"] is None:
        raise DatasetError("invalid", "params.pg_host is missing; set the host of PostgreSQL")
    return {
        **{key: value for key, value in given.items() if value is not None},
        "connect_timeout": _CONNECT_S,
        # A server whose host vanished is noticed after 45 s. By default it would take 11 minutes,
        # and 15 minutes if something was sent.
        "keepalives_idle": 30,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 45_000,
        "application_name": "caraway",
        # Otherwise texts come as the database keeps them, or as its settings say.
        "client_encoding": "UTF8",
        "options": _OPTIONS,
    }


def _check_dsn(dsn: str) -> None:
    try:
        parse_dsn(dsn)
    except psycopg2.ProgrammingError:
        # Its message quotes parts of the text, which can be those of the password.
        raise DatasetError(
            "invalid",
            "params.pg_connection_string is invalid; write key=value pairs and quote values that "
            "have blanks ('...'), or a URL with percent-encoded parts",
        ) from None


def _own_name(dataset: str) -> str:
    """Return the default name of a slot, which no other dataset has.

    Slots allow only lower-case letters, digits and '_'. Two datasets with one slot would each take
    it from the other, and load their rows again and again.
    """
    plain = "".join(char if char in _SLOT_CHARACTERS else "_" for char in dataset.lower())
    name = f"caraway_{plain}"
    if plain == dataset and len(name) <= _NAME_BYTES:
        return name
    digest = hashlib.sha256(dataset.encode()).hexdigest()[:_DIGEST_DIGITS]
    return f"{name[: _NAME_BYTES - _DIGEST_DIGITS - 1]}_{digest}"
