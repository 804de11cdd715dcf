"""`caraway activity` and `caraway metrics`."""

from itertools import islice
from typing import Annotated

import typer

from caraway.cli.managing import printing, service

_COLUMNS = ("timestamp", "actor", "action", "resource", "outcome", "status", "address")


def activity(
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most N.")] = 50,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """List who changed what in the organization, the newest first; also what was refused."""
    with service.connect(url, org) as found:
        project_id = None if project is None else found.project_id(project)
        walk = found.api.every(
            found.api.list_activity, limit=min(limit, 100), project_id=project_id
        )
        entries = list(islice(walk, limit))
    if not as_json:
        entries = [
            {**each, "actor": each["actor"]["name"], "resource": _named(each["resource"])}
            for each in entries
        ]
    printing.rows(entries, _COLUMNS, as_json=as_json)


def metrics(
    window: Annotated[
        str | None, typer.Option("--window", metavar="TIME", help="Time to look at, such as 1h.")
    ] = None,
    project: service.Project = None,
    url: service.Url = None,
    org: service.Org = None,
    as_json: service.Json = False,
) -> None:
    """Show CPU, memory, disk and requests of a project."""
    with service.connect(url, org) as found:
        answer = found.api.get_project_metrics(found.project_id(project), window=window)
    if not as_json:
        groups = ("ingestion", "requests", "cluster")
        answer = {**answer["metrics"], **{name: answer[name] for name in groups}}
    empty = "no samples yet: the metrics of a running project are read every 30 s"
    printing.record(answer, as_json=as_json, empty=empty)


def _named(resource: service.Row) -> str:
    return " ".join(filter(None, (resource["kind"], resource["name"] or resource["id"])))
