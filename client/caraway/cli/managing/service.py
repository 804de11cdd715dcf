"""Options of the commands that talk to a management service, and the connection to it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from caraway.cli import options
from caraway.cli.variables import setting
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    from caraway.errors import ApiError
    from caraway.management.client import Management
    from caraway.management.links import Link

Row = dict[str, Any]

Url = Annotated[
    str | None,
    setting(
        "--management URL",
        "CARAWAY_MANAGEMENT_URL",
        "URL of the management service; default: that of `caraway login`.",
    ),
]
Org = Annotated[str | None, setting("--org NAME", "CARAWAY_ORG", "Name of the organization.")]
Project = Annotated[
    str | None,
    typer.Option(
        "--project",
        "-p",
        envvar="CARAWAY_PROJECT",
        metavar="NAME|ID",
        help="The project; default: that of this directory.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
ProjectName = Annotated[str, typer.Argument(metavar="NAME|ID", help="Name or id of a project.")]
_TOKEN_VARIABLE = "CARAWAY_MANAGEMENT_TOKEN"


@dataclass(frozen=True, slots=True)
class Service:
    """A management service, the organization that is acted for, and the link of a directory."""

    api: "Management"
    link: "Link | None"

    @property
    def url(self) -> str:
        """The URL of the service."""
        return self.api.url

    def project(self, wanted: str | None) -> Row:
        """Return the project with a name or an id, or that of the directory.

        Raises:
            CarawayError: there is none.
        """
        if wanted is not None and not wanted.isdecimal():
            return self.api.find_project(wanted)
        return self.api.get_project(self.project_id(wanted))

    def project_id(self, wanted: str | None) -> int:
        """Return the id of the project with a name or an id, or that of the directory.

        Raises:
            CarawayError: there is none.
        """
        if wanted is not None:
            return int(wanted) if wanted.isdecimal() else int(self.api.find_project(wanted)["id"])
        if self.link is None:
            raise CarawayError(
                "no project is named; pass --project NAME, or link this directory with "
                "`caraway projects link NAME`"
            )
        self.check_link(self.link)
        return self.link.project_id

    def check_link(self, link: "Link") -> None:
        """Check that a link is for this service: the one of a directory sends no token elsewhere.

        Raises:
            CarawayError: it is for another one.
        """
        if not link.is_of(self.url):
            raise CarawayError(
                f"this directory is linked to a project of {link.management}, and not of "
                f"{self.url}; pass --management {link.management}, or link it again with "
                "`caraway projects link NAME`"
            )

    def org_id(self) -> int:
        """Return the id of the organization that is acted for.

        Raises:
            CarawayError: there are several, and none is named.
        """
        found = self.api.list_organizations()["orgs"]
        named = [each for each in found if each["name"].lower() == self.api.org.lower()]
        if not self.api.org and len(found) == 1:
            named = found
        if not named:
            known = ", ".join(each["name"] for each in found) or "none"
            raise CarawayError(f"name one of your organizations with --org: {known}")
        return int(named[0]["id"])

    def only_org(self) -> str:
        """Return the name of the only organization of the credential, or "" if there are more."""
        found = self.api.list_organizations()["orgs"]
        return str(found[0]["name"]) if len(found) == 1 else ""


@contextmanager
def connect(
    url: str | None, org: str | None, *, folder: Path = Path("."), needs_token: bool = True
) -> Iterator[Service]:
    """Connect to the service of the options, and explain its errors."""
    # httpx takes 0.3 s to import, which `caraway run` and `--help` would pay as well.
    from caraway.errors import ApiError, InvalidEndpointError, UnreachableError
    from caraway.management import links, saved
    from caraway.management.client import DEFAULT_URL, Management

    everything = saved.load(saved.path())
    address = url or everything.current or DEFAULT_URL
    credential = everything.credential_of(address)
    token = os.environ.get(_TOKEN_VARIABLE) or credential.token
    if needs_token and not token:
        raise CarawayError(
            f"not signed in to {address}; run `caraway login`, or set {_TOKEN_VARIABLE}"
        )
    link = links.load(folder)
    linked_org = link.org if link is not None and link.is_of(address) else ""
    try:
        api = Management(
            token,
            url=address,
            org=org or linked_org or credential.org,
            max_retries=options.COMMAND_RETRIES,
        )
    except InvalidEndpointError as error:
        raise typer.BadParameter(error.message, param_hint="--management") from error
    with api:
        try:
            yield Service(api, link)
        except UnreachableError as error:
            raise CarawayError(
                f"cannot connect to {error.endpoint}: is the management service running? "
                f"(start it with: caraway management; {error.reason})"
            ) from error
        except ApiError as error:
            raise CarawayError(_explain(error)) from error


def _explain(error: "ApiError") -> str:
    """Return the words of an error, each field that it names, and what to do."""
    fields: Mapping[str, list[str]] = error.details.get("fieldErrors") or {}
    named = [f"{name}: {text}" for name, texts in fields.items() for text in texts]
    words = error.message
    if error.status == 401:
        words += "; run `caraway login`"
    elif error.code:
        words += f" ({error.code})"
    return "\n".join([words, *(f"  {each}" for each in named if each not in words)])
