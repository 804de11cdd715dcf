"""`caraway secrets`: what the manifest of a project names as `${secrets:NAME}`."""

from typing import Annotated

import typer

from caraway.cli.managing import groups, printing, service

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the secret, in any case.")]
OfOrg = Annotated[
    bool, typer.Option("--of-org", help="A secret of the organization, which projects link.")
]


def list_secrets(
    project: service.Project = None,
    of_org: OfOrg = False,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """List the names of the secrets of a project. Nothing returns their values."""
    with service.connect(url, org) as found:
        if of_org:
            answer = found.api.list_organization_secrets(found.org_id())
        else:
            answer = found.api.list_project_secrets(found.project_id(project))
    printing.rows(answer["secrets"], ("name", "source", "updated_at"), as_json=as_json)


def set_secret(
    name: Name,
    project: service.Project = None,
    of_org: OfOrg = False,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Set a secret to the value on standard input, or that of a prompt."""
    value = printing.read_secret(f"Value of {name}")
    with service.connect(url, org) as found:
        if of_org:
            answer = found.api.set_organization_secret(found.org_id(), name=name, value=value)
        else:
            answer = found.api.set_project_secret(found.project_id(project), name=name, value=value)
    printing.done(f"set {answer['name']}")


def delete(
    name: Name,
    project: service.Project = None,
    of_org: OfOrg = False,
    yes: service.Yes = False,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Delete a secret. One of the organization is unlinked from all projects."""
    with service.connect(url, org) as found:
        printing.confirm(f"Delete the secret {name}?", is_confirmed=yes)
        if of_org:
            found.api.delete_organization_secret(found.org_id(), name)
        else:
            found.api.delete_project_secret(found.project_id(project), name)
    printing.done(f"deleted {name}")


def link(
    name: Name,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Let a project use a secret of the organization."""
    with service.connect(url, org) as found:
        answer = found.api.link_secret(found.project_id(project), secret_name=name)
    printing.done(f"linked {answer['secretName']}")


def unlink(
    name: Name,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Take a secret of the organization away from a project."""
    with service.connect(url, org) as found:
        found.api.unlink_secret(found.project_id(project), name)
    printing.done(f"unlinked {name}")


def build() -> typer.Typer:
    """Build the command group."""
    return groups.group(
        "secrets",
        "Set the secrets of projects and of the organization.",
        {
            "list": list_secrets,
            "set": set_secret,
            "delete": delete,
            "link": link,
            "unlink": unlink,
        },
    )
