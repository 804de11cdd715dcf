"""`caraway keys`: the API keys of a project's runtime."""

from typing import Annotated

import typer

from caraway.cli.managing import groups, printing, service


def show(
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Show both API keys of a project."""
    with service.connect(url, org) as found:
        keys = found.api.get_api_keys(found.project_id(project))
    printing.record(keys, as_json=as_json)


def regenerate(
    number: Annotated[
        int, typer.Option("--number", min=0, max=2, help="The key: 1 or 2; 0 is both.")
    ] = 1,
    project: service.Project = None,
    yes: service.Yes = False,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Give a key a new value. The other key stays valid: move your programs to it before."""
    with service.connect(url, org) as found:
        project_id = found.project_id(project)
        which = f"API key {number}" if number else "both API keys"
        printing.confirm(f"Replace {which}? The old value ends.", is_confirmed=yes)
        keys = found.api.regenerate_api_keys(project_id, key_number=number)
    printing.record(keys, as_json=as_json)


def build() -> typer.Typer:
    """Build the command group."""
    return groups.group(
        "keys", "Show and replace the API keys of a project.",
        {"show": show, "regenerate": regenerate},
    )  # fmt: skip
