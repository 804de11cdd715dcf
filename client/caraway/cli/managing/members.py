"""`caraway members`: who belongs to an organization."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from caraway.cli.managing import groups, printing, service
from caraway_core.errors import CarawayError

if TYPE_CHECKING:
    from caraway.cli.managing.service import Service

_COLUMNS = ("user_id", "username", "roles", "is_owner", "created_at")


class MemberRole(StrEnum):
    """The role of a member."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    VIEWER = "viewer"


Username = Annotated[str, typer.Argument(metavar="USERNAME", help="Name of a user.")]
GivenRole = Annotated[MemberRole, typer.Option("--role", help="What the member may do.")]


def list_members(
    url: service.Url = None, org: service.Org = None, as_json: service.Json = False
) -> None:
    """List the members of the organization."""
    with service.connect(url, org) as found:
        members = list(found.api.every(found.api.list_members))
    printing.rows(members, _COLUMNS, as_json=as_json)


def add(
    username: Username,
    role: GivenRole = MemberRole.MEMBER,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Add a user of the installation to the organization."""
    with service.connect(url, org) as found:
        found.api.add_member(username=username, roles=[role.value])
    printing.done(f"added {username} as {role.value}")


def invite(
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="Address of the invited person.")],
    role: GivenRole = MemberRole.MEMBER,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Invite somebody, and print the value to hand on, which is shown only here."""
    with service.connect(url, org) as found:
        row = found.api.create_invitation(email=email, roles=[role.value])
    if as_json:
        printing.record(row, as_json=True)
    else:
        print(row["value"])


def join(url: service.Url = None, as_json: service.Json = False) -> None:
    """Accept an invitation, whose value is read from a prompt or standard input."""
    value = printing.read_secret("Value of the invitation")
    with service.connect(url, None) as found:
        answer = found.api.accept_invitation(value=value)
    printing.record(answer, as_json=as_json)


def change(
    username: Username,
    role: Annotated[MemberRole, typer.Option("--role", help="The new role.")],
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Change the role of a member."""
    with service.connect(url, org) as found:
        found.api.update_member(_id_of(found, username), roles=[role.value])
    printing.done(f"{username} is {role.value}")


def remove(
    username: Username,
    yes: service.Yes = False,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Remove a member from the organization."""
    with service.connect(url, org) as found:
        user_id = _id_of(found, username)
        printing.confirm(f"Remove {username} from the organization?", is_confirmed=yes)
        found.api.remove_member(user_id)
    printing.done(f"removed {username}")


def build() -> typer.Typer:
    """Build the command group."""
    return groups.group(
        "members",
        "Add members to the organization, and change their roles.",
        {
            "list": list_members,
            "add": add,
            "invite": invite,
            "join": join,
            "change": change,
            "remove": remove,
        },
    )


def _id_of(found: "Service", username: str) -> int:
    for each in found.api.every(found.api.list_members):
        if str(each["username"]).lower() == username.lower():
            return int(each["user_id"])
    raise CarawayError(f"'{username}' is no member of the organization")
