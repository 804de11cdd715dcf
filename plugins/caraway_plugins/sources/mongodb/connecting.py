"""Clients of MongoDB, and its errors."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pymongo
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.errors import BSONError
from pymongo.errors import (
    ConfigurationError,
    ConnectionFailure,
    InvalidName,
    OperationFailure,
    PyMongoError,
)
from pymongo.uri_parser import parse_uri

from caraway_core.errors import DatasetError
from caraway_plugins.sources.params import Params

_SCHEMES = ("mongodb://", "mongodb+srv://")
_REFUSED = frozenset({11, 13, 18, 8000})
"""Codes of a user that is unknown, has no right, or has another password."""
CODEC: CodecOptions[dict[str, Any]] = CodecOptions(
    tz_aware=True, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)


@dataclass(frozen=True, slots=True)
class MongoLogin:
    """Arguments of a client, which may have a password, and the database."""

    host: str = field(repr=False)
    database: str
    options: Mapping[str, Any] = field(repr=False)


def login_of(known: Params) -> MongoLogin:
    """Return the login that params describe.

    Raises:
        DatasetError: a param is wrong or missing.
    """
    timeout_ms = int(known.seconds("client_timeout", 30.0) * 1_000)
    options: dict[str, Any] = {
        "serverSelectionTimeoutMS": min(timeout_ms, 10_000),
        "connectTimeoutMS": min(timeout_ms, 10_000),
        "socketTimeoutMS": timeout_ms,
    }
    address = known.text("mongodb_connection_string")
    if address is None:
        host, options = known.text("mongodb_host") or "", options | _login(known)
        database = known.text("mongodb_db")
        if not host:
            raise DatasetError(
                "invalid", "params has no mongodb_host and no mongodb_connection_string; set one"
            )
    else:
        host, database = address, known.text("mongodb_db") or _database(address)
    if not database:
        raise DatasetError("invalid", "params.mongodb_db is missing; set it to the database")
    return MongoLogin(host, database, options)


def _login(known: Params) -> dict[str, object]:
    mode = known.text("mongodb_sslmode") or "required"
    if mode not in ("disabled", "required"):
        raise DatasetError(
            "invalid", f"params.mongodb_sslmode is '{mode}'; set it to disabled or required"
        )
    options: dict[str, Any] = {"tls": mode == "required", "port": known.count("mongodb_port")}
    if certificates := known.text("mongodb_sslrootcert"):
        options["tlsCAFile"] = certificates
    if user := known.text("mongodb_user"):
        options |= {
            "username": user,
            "password": known.text("mongodb_pass") or "",
            "authSource": known.text("mongodb_auth_source") or "admin",
        }
    return options


def _database(address: str) -> str | None:
    if not address.startswith(_SCHEMES):
        raise DatasetError(
            "invalid",
            "params.mongodb_connection_string is not one of MongoDB; write "
            "mongodb://user:password@host:27017/database",
        )
    # Only the name is needed; SRV records are looked up by the client.
    plain = address.replace("mongodb+srv://", "mongodb://", 1)
    try:
        database: str | None = parse_uri(plain, validate=False, warn=False)["database"]
    except (PyMongoError, ValueError) as exc:
        raise DatasetError(
            "invalid",
            "params.mongodb_connection_string cannot be read; escape special characters of the "
            "login, and write mongodb://user:password@host:27017/database",
        ) from exc
    return database


@contextmanager
def connected(login: MongoLogin, title: str) -> Iterator[Any]:
    """Yield the database of a login; its errors are those of datasets.

    Raises:
        DatasetError: MongoDB refuses a request, or cannot be reached.
    """
    try:
        with pymongo.MongoClient(login.host, **login.options) as client:
            yield client.get_database(login.database, codec_options=CODEC)
    except (ConfigurationError, InvalidName, ValueError, TypeError, OSError) as exc:
        kind = type(exc).__name__
        raise DatasetError(
            "invalid", f"{title} cannot be addressed ({kind}); check the params of the connection"
        ) from exc
    except OperationFailure as exc:
        if exc.code in _REFUSED:
            reason = "check mongodb_user, mongodb_pass, mongodb_auth_source and the rights"
            raise DatasetError("auth", f"{title}: MongoDB refuses the login; {reason}") from exc
        raise DatasetError(
            "unavailable", f"{title} cannot be read: MongoDB answers with code {exc.code}"
        ) from exc
    except ConnectionFailure as exc:
        raise DatasetError(
            "unavailable",
            f"{title} cannot be read: the connection failed ({type(exc).__name__}); check host, "
            "port and TLS",
        ) from exc
    except (PyMongoError, BSONError) as exc:
        raise DatasetError("unavailable", f"{title} cannot be read ({type(exc).__name__})") from exc
