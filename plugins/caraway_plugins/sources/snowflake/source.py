"""Datasets that are tables or views of Snowflake: `from: snowflake:DB.SCHEMA.TABLE`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from caraway_core.errors import DatasetError
from caraway_core.protocols.sources import SourceRequest
from caraway_core.sqltext.grammar import CLOSED_QUOTED_NAME
from caraway_plugins.sources import described_tables, params
from caraway_plugins.sources.adbc.source import AdbcSource
from caraway_plugins.sources.snowflake import declared

_OPTION = "option.adbc.snowflake.sql."
_OPTIONS = {
    "account": "account",
    "warehouse": "warehouse",
    "role": "role",
    "host": "uri.host",
    "port": "uri.port",
    "protocol": "uri.protocol",
}
_EXACT = {
    f"{_OPTION}client_option.use_high_precision": "true",
    f"{_OPTION}client_option.max_timestamp_precision": "nanoseconds_error_on_overflow",
}
"""Numbers as decimals, and not as doubles; no moment that is another one."""
_PART = re.compile(rf'{CLOSED_QUOTED_NAME}|[^".]+')
_PARTS = 3
_TIMEOUT_S = 30.0
_USUAL = re.compile(r"[A-Z_][A-Z0-9_$]*")


class SnowflakeSource(AdbcSource):
    """A table or view of an account of Snowflake."""

    declaration = declared.SNOWFLAKE
    package = "adbc-driver-snowflake"
    of_login = "params.snowflake_username, snowflake_password and snowflake_role"
    of_server = "params.snowflake_account"

    def _reader(self, login: Mapping[str, str]) -> str:
        return "snowflake"

    def _relation(self, request: SourceRequest) -> tuple[str, ...]:
        """Return the name; parts without quotes are in capital letters, as in Snowflake."""
        parts = described_tables.relation(request)
        written = _PART.findall(request.path.strip())
        if len(parts) < _PARTS:
            raise DatasetError(
                "invalid",
                f"dataset '{request.name}': '{request.path}' is not the name of a table; write "
                "'snowflake:DATABASE.SCHEMA.TABLE'",
            )
        return tuple(
            part if text.startswith('"') else part.upper()
            for part, text in zip(parts, written, strict=True)
        )

    def login(self, request: SourceRequest) -> dict[str, str]:
        given = params.checked(request.connector, request.params)
        login = {"driver": "snowflake", "dialect": "snowflake", **_EXACT}
        for name in ("account", "username"):
            if given.text(f"snowflake_{name}") is None:
                raise _invalid(request, f"params.snowflake_{name} is missing")
        for name in ("username", "password"):
            if (text := given.text(f"snowflake_{name}")) is not None:
                login[name] = text
        for name, option in _OPTIONS.items():
            if (text := given.text(f"snowflake_{name}")) is not None:
                login[_OPTION + option] = text
        timeout_s = given.seconds("client_timeout", _TIMEOUT_S)
        login[f"{_OPTION}client_option.login_timeout"] = f"{timeout_s}s"
        database, schema, _ = self._relation(request)
        login[f"{_OPTION}db"], login[f"{_OPTION}schema"] = _named(database), _named(schema)
        kind = given.text("snowflake_auth_type") or "snowflake"
        if kind == "keypair":
            file = given.text("snowflake_private_key_path")
            login[f"{_OPTION}auth_type"] = "auth_jwt"
            login[f"{_OPTION}client_option.jwt_private_key_pkcs8_value"] = _key(request, file)
            if (text := given.text("snowflake_private_key_passphrase")) is not None:
                login[f"{_OPTION}client_option.jwt_private_key_pkcs8_password"] = text
        elif kind != "snowflake":
            raise _invalid(request, "params.snowflake_auth_type is neither snowflake nor keypair")
        return login


def _named(name: str) -> str:
    """Return a name as a param of a session: in quotes, if it is no usual one."""
    return name if _USUAL.fullmatch(name) else described_tables.quoted(name)


def _key(request: SourceRequest, file: str | None) -> str:
    if file is None:
        raise _invalid(request, "params.snowflake_private_key_path is missing")
    try:
        return (Path(request.base_dir) / file).read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise _invalid(
            request, "the file of params.snowflake_private_key_path cannot be read"
        ) from exc


def _invalid(request: SourceRequest, what: str) -> DatasetError:
    return DatasetError("invalid", f"dataset '{request.name}': {what}")
