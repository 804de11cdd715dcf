"""`caraway login`, `logout` and `whoami`."""

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli.managing import printing, service
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    from caraway.management.client import Management

Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN|-",
        help="Use a token; - reads it from a prompt or standard input. Others can see options.",
    ),
]


def login(token: Token = None, url: service.Url = None, org: service.Org = None) -> None:
    """Sign in with a browser, or with a token, and remember it for the commands that follow."""
    from caraway.management import saved
    from caraway.management.client import Management

    with service.connect(url, org, needs_token=False) as found:
        given = printing.read_secret("Token") if token == "-" else token
        value = given or _approved(found.api)
        with Management(value, url=found.url, max_retries=0) as signed_in:
            who = signed_in.get_whoami()
        file = saved.path()
        credential = saved.SavedCredential(
            value, str(who["name"]), org or "", None if given else _token_id(who["credential_id"])
        )
        saved.save(file, saved.load(file).with_service(found.url, credential))
    printing.done(f"signed in to {found.url} as {who['name']}")


def logout(url: service.Url = None) -> None:
    """Forget the token of a service; one of a sign-in with a browser ends as well."""
    from caraway.errors import UnreachableError
    from caraway.management import saved
    from caraway.management.client import DEFAULT_URL, Management

    file = saved.path()
    everything = saved.load(file)
    address = url or everything.current or DEFAULT_URL
    credential = everything.credential_of(address)
    if not credential.token:
        raise CarawayError(f"not signed in to {address}")
    saved.save(file, everything.without(address))
    if credential.token_id is not None:
        try:
            with Management(credential.token, url=address) as api:
                api.delete_token(credential.token_id)
        except (UnreachableError, CarawayError) as error:
            raise CarawayError(
                f"the token is forgotten, but may still be valid: {error.message}"
            ) from error
    printing.done(f"signed out of {address}")


def whoami(url: service.Url = None, org: service.Org = None, as_json: service.Json = False) -> None:
    """Show who you are to the service, and what you may do."""
    with service.connect(url, org) as found:
        who = found.api.get_whoami()
        if as_json:
            printing.record(who, as_json=True)
            return
        shown = {
            "management": found.url,
            "user": who["name"],
            "credential": who["kind"],
            "org": (who["org"] or {}).get("name") or found.api.org,
            "scopes": who["scopes"],
            "expires_at": who["expires_at"],
        }
        printing.record(shown, as_json=False)


def _approved(api: "Management") -> str:
    """Return the token of a sign-in that the user approves in a browser."""
    begun = api.create_device_sign_in()
    print(
        f"Open {begun['verification_url_complete']}\n"
        f"and approve the sign-in if it shows the code {begun['user_code']}",
        file=sys.stderr,
        flush=True,
    )
    deadline = time.monotonic() + float(begun["expires_in"])
    while time.monotonic() < deadline:
        answer = api.exchange_device_code(code=begun["code"])
        if answer.get("access_denied"):
            raise CarawayError("the sign-in was denied")
        if value := answer.get("access_token"):
            return str(value)
        time.sleep(float(begun["interval"]))
    raise CarawayError("nobody approved the sign-in in time; run `caraway login` again")


def _token_id(credential_id: str) -> int | None:
    kind, _, number = credential_id.partition(":")
    return int(number) if kind == "token" and number.isdecimal() else None
