"""`caraway tokens`: your personal access tokens."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from caraway.cli.managing import groups, printing, service

_COLUMNS = ("id", "name", "kind", "hint", "org_id", "scopes", "expires_at", "last_used_at")
_DAYS = re.compile(r"([1-9][0-9]{0,3})d")


def list_tokens(url: service.Url = None, as_json: service.Json = False) -> None:
    """List your tokens. Their values are shown once, when they are made."""
    with service.connect(url, None) as found:
        tokens = list(found.api.every(found.api.list_tokens))
    printing.rows(tokens, _COLUMNS, as_json=as_json)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the token is for.")],
    scope: Annotated[
        list[str],
        typer.Option("--scope", metavar="SCOPE", help="A scope, such as apps:read; repeatable."),
    ],
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="DAYS", help="Days that it is valid, such as 90d."),
    ] = None,
    only_org: Annotated[
        bool, typer.Option("--only-org", help="It is for this organization only.")
    ] = False,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Make a token and print its value, which is shown only here."""
    expires_at = _expiry(expires)
    with service.connect(url, org) as found:
        org_id = found.org_id() if only_org else None
        row = found.api.create_token(name=name, scopes=scope, org_id=org_id, expires_at=expires_at)
    if as_json:
        printing.record(row, as_json=True)
    else:
        print(row["token"])


def revoke(
    id_: Annotated[int, typer.Argument(metavar="ID", help="Id of a token.")],
    yes: service.Yes = False,
    url: service.Url = None,
) -> None:
    """Revoke a token, at once."""
    with service.connect(url, None) as found:
        token = found.api.get_token(id_)
        printing.confirm(f"Revoke the token '{token['name']}'?", is_confirmed=yes)
        found.api.delete_token(id_)
    printing.done(f"revoked {token['name']}")


def build() -> typer.Typer:
    """Build the command group."""
    return groups.group(
        "tokens",
        "Make and revoke personal access tokens.",
        {"list": list_tokens, "create": create, "revoke": revoke},
    )


def _expiry(text: str | None) -> datetime | None:
    if text is None:
        return None
    match = _DAYS.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter("use a number of days, such as 90d", param_hint="--expires")
    return datetime.now(UTC) + timedelta(days=int(match[1]))
