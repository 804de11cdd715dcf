"""`caraway deployments`: what was deployed to a project, and how that ended."""

import json
from typing import Annotated

import typer

from caraway.cli.managing import deploying, groups, printing, service
from caraway.terminal import terminals

Deployment = Annotated[int, typer.Argument(metavar="ID", help="Id of a deployment.")]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most this many.")]
_COLUMNS = ("id", "status", "created_at", "finished_at", "created_by", "error_code")


def list_deployments(
    project: service.Project = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Only those, such as failed.")
    ] = None,
    limit: Limit = 20,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """List the deployments of a project, the newest first."""
    with service.connect(url, org) as found:
        answer = found.api.list_deployments(found.project_id(project), status=status, limit=limit)
    printing.rows(answer["deployments"], _COLUMNS, as_json=as_json)


def show(
    id_: Deployment,
    wait: deploying.Wait = False,
    timeout: deploying.Timeout = 900.0,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Show a deployment. With --wait, exit with 1 unless it succeeds."""
    with service.connect(url, org) as found:
        owner = found.project(project)
        deployment = found.api.get_deployment(owner["id"], id_)
        if wait:
            deployment = deploying.follow(found, owner, deployment, timeout)
    printing.record(deployment, as_json=as_json)


def logs(
    id_: Deployment,
    limit: Limit = 100,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Print the log of a deployment."""
    with service.connect(url, org) as found:
        answer = found.api.get_deployment_logs(found.project_id(project), id_, limit=limit)
    if as_json:
        print(json.dumps(answer["logs"], indent=2))
        return
    for line in answer["logs"]:
        words = (line["timestamp"], line["level"], line["source"], line["message"])
        print(terminals.one_line(" ".join(map(str, words))))


def rollback(
    id_: Deployment,
    wait: deploying.Wait = False,
    timeout: deploying.Timeout = 900.0,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Deploy again what an earlier deployment had, which succeeded."""
    with service.connect(url, org) as found:
        owner = found.project(project)
        deployment = found.api.create_deployment(owner["id"], target_deployment_id=id_)
        if wait:
            deployment = deploying.follow(found, owner, deployment, timeout)
    printing.done(
        f"deployment {deployment['id']} takes what {id_} had", deployment, as_json=as_json
    )


def build() -> typer.Typer:
    """Build the command group."""
    return groups.group(
        "deployments",
        "See deployments, and go back to an earlier one.",
        {"list": list_deployments, "show": show, "logs": logs, "rollback": rollback},
    )
