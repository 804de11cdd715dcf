"""`caraway projects`: the projects of an organization."""

from pathlib import Path
from typing import Annotated

import typer

from caraway.cli.managing import deploying, groups, printing, service

_COLUMNS = ("id", "name", "description", "region", "cluster_name", "endpoint", "paused_at")
Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="What the project is for.")
]
Region = Annotated[
    str | None, typer.Option("--region", metavar="NAME", help="Region that it runs in.")
]
Cluster = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Cluster that it runs on.")
]
Named = Annotated[
    str | None,
    typer.Argument(metavar="NAME|ID", help="The project; default: that of this directory."),
]


def list_projects(
    url: service.Url = None, org: service.Org = None, as_json: service.Json = False
) -> None:
    """List the projects of the organization."""
    with service.connect(url, org) as found:
        projects = list(found.api.every(found.api.list_projects))
    printing.rows(projects, _COLUMNS, as_json=as_json)


def show(
    name: Named = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Show a project. JSON also has its manifest."""
    with service.connect(url, org) as found:
        project = found.project(name)
    if not as_json:
        for each in ("manifest", "spicepod", "manifest_left_out"):
            project["config"].pop(each, None)
    printing.record(project, as_json=as_json)


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="4 to 38 letters, digits or '-'.")],
    description: Description = None,
    region: Region = None,
    cluster: Cluster = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Create a project. A deleted one of this name comes back."""
    with service.connect(url, org) as found:
        row = found.api.create_project(
            name=name, description=description, region=region, cluster_name=cluster
        )
    printing.done(f"created {row['name']} (id {row['id']})", row, as_json=as_json)


def delete(
    name: service.ProjectName,
    yes: service.Yes = False,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Delete a project. Its runtime ends."""
    with service.connect(url, org) as found:
        project = found.project(name)
        question = f"Delete the project '{project['name']}' at {found.url}? Its runtime ends."
        printing.confirm(question, is_confirmed=yes)
        found.api.delete_project(project["id"])
    printing.done(f"deleted {project['name']}")


def pause(name: Named = None, url: service.Url = None, org: service.Org = None) -> None:
    """End the runtime of a project. Its settings stay, and can be changed."""
    with service.connect(url, org) as found:
        project = found.project(name)
        found.api.pause_project(project["id"])
    printing.done(f"paused {project['name']}")


def resume(
    name: Named = None,
    wait: deploying.Wait = False,
    timeout: deploying.Timeout = 900.0,
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Start the runtime of a paused project again."""
    with service.connect(url, org) as found:
        project = found.project(name)
        answer = found.api.resume_project(project["id"])
        if wait and answer.get("deployment_id"):
            deployment = found.api.get_deployment(project["id"], answer["deployment_id"])
            deploying.follow(found, project, deployment, timeout)
    printing.done(f"resumed {project['name']}")


def fork(
    name: service.ProjectName,
    new_name: Annotated[str, typer.Argument(metavar="NEW_NAME", help="Name of the new project.")],
    region: Region = None,
    cluster: Cluster = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Create a project with the manifest and settings of another one."""
    with service.connect(url, org) as found:
        source = found.project(name)
        row = found.api.create_fork(
            source["id"], name=new_name, region=region, cluster_name=cluster
        )
    printing.done(f"created {new_name} from {source['name']}", row, as_json=as_json)


def link(
    name: service.ProjectName,
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="The directory to link.")
    ] = Path("."),
    url: service.Url = None,
    org: service.Org = None,
) -> None:
    """Link a directory to a project, in `.caraway/project.json`."""
    with service.connect(url, org, folder=folder) as found:
        deploying.link(found, found.project(name), folder)


def build() -> typer.Typer:
    """Build the command group."""
    return groups.group(
        "projects",
        "Create, pause and delete projects, and link directories to them.",
        {
            "list": list_projects,
            "show": show,
            "create": create,
            "delete": delete,
            "pause": pause,
            "resume": resume,
            "fork": fork,
            "link": link,
        },
    )
