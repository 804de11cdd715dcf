"""`caraway orgs`: the organizations that you can reach."""

from typing import Annotated

import typer

from caraway.cli.managing import groups, printing, service
from caraway_core.errors import CarawayError


def list_orgs(url: service.Url = None, as_json: service.Json = False) -> None:
    """List the organizations that you can reach."""
    with service.connect(url, None) as found:
        orgs = found.api.list_organizations()["orgs"]
    printing.rows(orgs, ("id", "name", "role"), as_json=as_json)


def use(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of an organization.")],
    url: service.Url = None,
) -> None:
    """Use an organization in all commands that name none."""
    from dataclasses import replace

    from caraway.management import saved

    with service.connect(url, name) as found:
        names = [str(each["name"]) for each in found.api.list_organizations()["orgs"]]
        if name.lower() not in map(str.lower, names):
            raise CarawayError(f"there is no organization '{name}'; there are: {', '.join(names)}")
        file = saved.path()
        everything = saved.load(file)
        credential = replace(everything.credential_of(found.url), org=name)
        saved.save(file, everything.with_service(found.url, credential))
    printing.done(f"commands use {name}")


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, '.', '_' or '-'.")],
    url: service.Url = None,
    as_json: service.Json = False,
) -> None:
    """Create an organization, which you own."""
    with service.connect(url, None) as found:
        row = found.api.create_organization(name=name)
    printing.done(f"created {row['name']} (id {row['id']})", row, as_json=as_json)


def limits(url: service.Url = None, org: service.Org = None, as_json: service.Json = False) -> None:
    """Show the limits of the plan of the organization; -1 is none."""
    with service.connect(url, org) as found:
        printing.record(found.api.get_limits(), as_json=as_json)


def build() -> typer.Typer:
    """Build the command group."""
    return groups.group(
        "orgs",
        "Choose or create an organization, and see its limits.",
        {"list": list_orgs, "use": use, "create": create, "limits": limits},
    )
